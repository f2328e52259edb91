"""The bridge plugin's executable as far as it gets without root: its names, its log, what it loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.memory.clock import MemoryClock
from domain.bridge.conf import read_bridge_conf
from entrypoints import bridge
from entrypoints.logs import CallLog
from entrypoints.version import VERSION
from entrypoints.wiring import bridge as bridge_wiring
from unit.entrypoints.test_import_budget import ALWAYS, CALLS, MACHINE, OWN, foreign, run_plugin

# the hash in the names of packet filter rules, from the C module alone
HASH = {"_sha512", "_sha2"}


@pytest.mark.parametrize("name", ["my-custom-cni", "bridge"])
def test_version_loads_what_reads_a_request_and_nothing_else(name: str) -> None:
    loaded, answer = run_plugin(name, {"CNI_COMMAND": "VERSION"})
    assert json.loads(answer)["supportedVersions"][-1] == "1.1.0"
    assert foreign(loaded) <= ALWAYS | MACHINE
    own = {module for module in loaded if module.partition(".")[0] in OWN} - {"adapters.linux"}
    own -= {"adapters.linux.spare_memory"}
    assert not {module for module in own if module.startswith(("adapters.", "domain.bridge", "usecases"))}


@pytest.mark.parametrize("verb", ["ADD", "DEL", "CHECK", "GC", "STATUS"])
def test_a_call_stays_in_its_budget_and_loads_nothing_of_calicos(verb: str, tmp_path: Path) -> None:
    """As far as a call gets without root: CNI_NETNS is no namespace."""
    environment = {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": "c1",
        "CNI_NETNS": str(tmp_path / "absent"),
        "CNI_IFNAME": "eth0",
        "CNI_PATH": str(tmp_path),
    }
    conf = {
        "cniVersion": "1.1.0",
        "name": "net1",
        "bridge": "br-of-no-host",
        "stateDir": str(tmp_path / "state"),
        "ipam": {"type": "host-local", "subnet": "10.0.0.0/24", "dataDir": str(tmp_path / "networks")},
        "cni.dev/valid-attachments": [],
    }
    loaded, answer = run_plugin("my-custom-cni", environment, json.dumps(conf))
    assert not answer or json.loads(answer)["code"] in {50, 999}
    assert foreign(loaded) <= ALWAYS | MACHINE | CALLS | HASH
    assert "domain.bridge.conf" in loaded
    assert not {"domain.cni.netconf", "domain.ipam.block", "adapters.records.ipam", "pyroute2"} & loaded


def test_the_flag_and_the_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert bridge.main("bridge", ("-v",), {}) == 0
    assert capfd.readouterr().out == f"{VERSION}\n"
    assert bridge.main("bridge", ("-x",), {}) == 2
    assert "Usage of bridge:" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("value", "level"), [("", "warning"), ("0", "warning"), ("false", "warning"), ("1", "debug"), ("yes", "debug")]
)
def test_cni_debug_decides_how_much_is_said(value: str, level: str, capfd: pytest.CaptureFixture[str]) -> None:
    log = bridge.call_log("my-custom-cni", {"CNI_DEBUG": value, "CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c1"})
    log.configure(read_bridge_conf({"name": "n"}, own_name=True))
    log.debug("a small thing")
    log.warning("a large thing")
    said = capfd.readouterr().err
    assert ("a small thing" in said) == (level == "debug")
    assert 'a large thing command="ADD" container="c1" ifname=""' in said


def test_the_configurations_level_goes_before_that(capfd: pytest.CaptureFixture[str]) -> None:
    log = CallLog("bridge", default="warning")
    log.configure(read_bridge_conf({"name": "n", "logLevel": "debug"}, own_name=True))
    log.debug("a small thing")
    assert "a small thing" in capfd.readouterr().err


def test_which_host_local_serves(tmp_path: Path) -> None:
    clock, log = MemoryClock(), CallLog("bridge")

    def chosen(**members) -> str:
        conf = read_bridge_conf({"name": "n", "ipam": {"type": "host-local"}, **members}, own_name=True)
        return type(bridge_wiring.ipam_plugin(conf.ipam.type, conf, {"CNI_PATH": str(tmp_path)}, clock, log)).__name__

    assert chosen() == "OwnHostLocal"
    (tmp_path / "host-local").touch()
    assert chosen() == "ExecutedIpamPlugin"
    assert chosen(gcHostLocal=True) == "CollectedHostLocal"
    assert chosen(ipam={"type": "static"}) == "ExecutedIpamPlugin"
