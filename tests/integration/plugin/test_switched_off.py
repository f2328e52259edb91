"""The bridge plugin on hosts without IPv6 or with settings that cannot be written, and namespaces that vanish.

(What `calico` does on the former is in test_dataplane_cases.py.)
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.plugin.host import Answer, Container, Host
from patience import until

READ_ONLY = 'mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec "$@"'
HIDDEN = 'mount -t tmpfs none /proc/sys/net/ipv6; exec "$@"'
DISABLED = ""
V4, V6 = {"subnet": "10.44.0.0/16"}, {"subnet": "fd00:44::/64"}


def conf(host: Host, *ranges: dict[str, str], **more: Any) -> dict[str, Any]:
    ipam = {"type": "host-local", "ranges": [[one] for one in ranges], "dataDir": str(host.folder / "networks")}
    return {"type": "my-custom-cni", "bridge": "off0", "stateDir": str(host.folder / "state"), "ipam": ipam} | more


def call(
    host: Host, verb: str, container: Container, netconf: dict[str, Any], through: str = "", path: str = ""
) -> Answer:
    environment = host.environment(
        verb, container, CNI_PATH=path or str(host.bin), PATH="/usr/sbin:/usr/bin:/sbin:/bin"
    )
    return host.raw(environment, json.dumps(host.netconf(**netconf)), program="my-custom-cni", through=through)


def left(host: Host) -> dict[str, Any]:
    found = host.left()
    found.pop("routes", None)
    found["devices"] = found.get("devices", set()) - {"off0"}
    return {name: value for name, value in found.items() if value}


@pytest.mark.sqlite_file
@pytest.mark.parametrize(
    ("ranges", "gateway", "through", "why"),
    [
        ((V4,), True, HIDDEN, ""),
        ((V4,), True, DISABLED, ""),
        ((V4,), True, READ_ONLY, "failed to enable forwarding: open /proc/sys/net/ipv4/ip_forward: read-only"),
        ((V6,), True, HIDDEN, "failed to enable forwarding: open /proc/sys/net/ipv6/conf/all/forwarding: no such"),
        ((V4, V6), False, HIDDEN, ""),
        ((V4, V6), True, DISABLED, "permission denied (IPv6 is switched off: disable_ipv6)"),
        ((V6,), False, READ_ONLY, "read-only file system"),
    ],
)
def test_a_bridge_on_a_host_that_lacks_something(
    host: Host, ranges: tuple[dict[str, str], ...], gateway: bool, through: str, why: str
) -> None:
    container = host.container()
    netconf = conf(host, *ranges, isGateway=gateway, isDefaultGateway=gateway, ipMasq=False)
    if through == DISABLED:
        for namespace in (host.net, container.inside):
            for scope in ("all", "default"):
                namespace.set_sysctl(f"ipv6/conf/{scope}/disable_ipv6", "1")
    added = call(host, "ADD", container, netconf, through)
    if why:
        error = json.loads(added.stdout)
        assert (added.exit, error["code"]) == (1, 999), added
        assert why in error["msg"]
        assert left(host) == {}
        assert container.inside.names() == {"lo"}
    else:
        added.result()
    call(host, "DEL", container, netconf, through).silent()
    assert left(host) == {}
    assert container.inside.names() == {"lo"}


@pytest.mark.sqlite_file
@pytest.mark.parametrize("program", ["calico", "my-custom-cni"])
def test_a_namespace_that_vanishes_while_addresses_are_given_out(host: Host, program: str) -> None:
    """The path is gone; the bridge plugin holds the namespace open and needs it no more."""
    plugins = host.folder / "plugins"
    plugins.mkdir()
    script = plugins / "vanishing"
    answer = json.dumps({"cniVersion": "1.0.0", "ips": [{"address": "10.55.0.9/24", "gateway": "10.55.0.1"}]})
    vanish = f'umount -l "$CNI_NETNS"; rm "$CNI_NETNS"; echo \'{answer}\''
    script.write_text(f'#!/bin/sh\necho "$CNI_COMMAND" >> "$0.log"\n[ "$CNI_COMMAND" != ADD ] || {{ {vanish}; }}\n')
    script.chmod(0o755)
    container = host.container()
    more = {"type": program, "cniVersion": "1.0.0", "ipam": {"type": "vanishing"}}
    netconf = json.dumps(host.netconf(**(conf(host, V4) | more if program != "calico" else more)))

    def run(verb: str) -> Answer:
        path = f"{host.bin}:{plugins}"
        environment = host.environment(verb, container, CNI_PATH=path, PATH="/usr/sbin:/usr/bin:/sbin:/bin")
        return host.raw(environment, netconf, program=program)

    added = run("ADD")
    if program == "calico":
        added.error(999, f'failed to Statfs "{container.netns}": no such file or directory')
        assert left(host) == {}
        assert script.with_name("vanishing.log").read_text().split() == ["ADD", "DEL"]
    else:
        added.result()
    run("DEL").silent()
    until(lambda: left(host) == {}, lambda: left(host))  # the namespace ends when the kernel comes to it
