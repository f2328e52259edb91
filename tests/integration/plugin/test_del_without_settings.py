"""DEL with a configuration that has lost what ADD had, on the installed plugins: what a runtime gets, what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.cni.errors import TRY_AGAIN_LATER
from integration.plugin.host import Answer, Container, Host


class Stripped:
    """DELs without the datastore's settings; `folder` is the runtime's."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.folder = host.folder / "net.d"
        self.folder.mkdir()
        self.lost: dict[str, Any] = dict.fromkeys(host.store.settings)

    def delete(self, container: Container, program: str = "calico") -> Answer:
        environment = self.host.environment("DEL", container, TORTIE_CNI_CONF_DIR=str(self.folder))
        return self.host.raw(environment, json.dumps(self.host.netconf(**self.lost)), program=program)

    def install(self, name: str, document: object) -> Path:
        path = self.folder / name
        path.write_text(json.dumps(document))
        return path


@pytest.mark.parametrize("own", [True, False])
def test_the_rest_waits_for_settings_and_is_done_when_they_are_installed(host: Host, own: bool) -> None:
    if not own:
        host.use_host_local()
    stripped, container = Stripped(host), host.container()
    host.add(container).result()
    for _ in range(2):
        stripped.delete(container).error(TRY_AGAIN_LATER, str(stripped.folder), "put back what ADD had")
        assert host.left().keys() == ({"endpoints", "handles", "allocated"} if own else {"endpoints"})
        assert container.inside.names() == {"lo"}
    whole = {key: value for key, value in host.netconf().items() if key != "name"}
    (stripped.folder / "00-broken.conf").write_text("{")
    (stripped.folder / "01-folder.conf").mkdir()
    (stripped.folder / "02-other.conf").write_text(json.dumps({**whole, "name": "net2", "sqlite_path": "/nowhere"}))
    path = stripped.install("10-calico.conflist", {"name": "net1", "plugins": [{"type": "portmap"}, whole]})
    for _ in range(2):
        stripped.delete(container).silent()
        assert host.left() == {}
    assert str(path) in host.log.read_text()


def test_calico_ipam_finds_them_by_itself(host: Host) -> None:
    stripped, container = Stripped(host), host.container()
    host.add(container, program="calico-ipam").result()
    stripped.delete(container, program="calico-ipam").error(TRY_AGAIN_LATER, "put back what ADD had")
    stripped.install("10-calico.conf", host.netconf())
    stripped.delete(container, program="calico-ipam").silent()
    assert host.left() == {}


def test_addresses_go_though_another_ipam_plugin_is_named_now(host: Host) -> None:
    container = host.container()
    host.add(container).result()
    host.use_host_local()
    host.delete(container).silent()
    assert host.left() == {}
