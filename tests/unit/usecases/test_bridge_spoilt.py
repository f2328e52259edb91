"""A configuration that was spoilt between a container's ADD and its DEL or GC: nothing may be left for that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from adapters.memory.address_files import MemoryAddressFiles
from domain.bridge.attachment import BridgeAttachment
from domain.bridge.conf import read_bridge_conf
from domain.cni.errors import CniError
from domain.cni.request import CniArgs
from domain.cni.result import ResultRoute
from domain.ipam.address import Address, Cidr
from entrypoints.wiring.own_host_local import OwnHostLocal
from ports.errors import PortError, Refused, Unavailable
from spoiling import Path, Spoilt, spoilt_documents
from usecases.add_bridge import add_bridge
from usecases.calls.call import BridgeCall
from usecases.calls.safeguards import Undo
from usecases.collect_bridge import collect_bridge
from usecases.delete_bridge import delete_bridge
from worlds.one_host import NETWORK, ONE_V4, OneHost

CONF: dict[str, Any] = {
    "cniVersion": "1.1.0",
    "name": NETWORK,
    "type": "my-custom-cni",
    "bridge": "mycni0",
    "isGateway": True,
    "isDefaultGateway": True,
    "forceAddress": True,
    "ipMasq": True,
    "ipMasqBackend": "nftables",
    "mtu": 1400,
    "hairpinMode": True,
    "promiscMode": False,
    "vlan": 7,
    "vlanTrunk": [{"minID": 5, "maxID": 6}, {"id": 9}],
    "preserveDefaultVlan": False,
    "macspoofchk": True,
    "enabledad": False,
    "disableContainerInterface": False,
    "portIsolation": False,
    "dns": {"nameservers": ["1.1.1.1"], "domain": "d", "search": ["s"], "options": ["o"]},
    "args": {"cni": {"mac": "02:00:00:00:00:07", "ips": ["10.0.0.9"]}},
    "runtimeConfig": {"mac": "02:00:00:00:00:08", "ips": ["10.0.0.9"], "ipRanges": [[{"subnet": "10.7.0.0/24"}]]},
    "hostVethNaming": "tutorial",
    "stateDir": "/state",
    "gcHostLocal": True,
    "timeout_seconds": 60,
    "logLevel": "debug",
    "logFile": "/var/log/x",
    "capabilities": {"mac": True},
    "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0c1"}]},
    "cni.dev/valid-attachments": [],
    "ipam": {
        "type": "host-local",
        "dataDir": "/networks",
        "subnet": "10.9.0.0/24",
        "rangeStart": "10.9.0.5",
        "rangeEnd": "10.9.0.50",
        "gateway": "10.9.0.1",
        "ranges": [[{"subnet": "10.0.0.0/24", "gateway": "10.0.0.1"}], [{"subnet": "fd00::/64"}]],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.0.0.1", "mtu": 1400, "table": 254}],
        "resolvConf": "",
    },
}
NEEDED: tuple[Path, ...] = (("cniVersion",), ("name",))
NEEDED_BY_GC: tuple[Path, ...] = (*NEEDED, ("cni.dev/valid-attachments",))


class Host(OneHost):
    """With the built-in host-local; `stores` are its directories."""

    def __init__(self) -> None:
        super().__init__()
        self.stores: dict[tuple[str, str], MemoryAddressFiles] = {}
        self.ipam = OwnHostLocal(self.clock, self.log, self._files)

    def _files(self, place, clock) -> MemoryAddressFiles:
        return self.stores.setdefault((place.directory, place.name), MemoryAddressFiles(clock))

    def called(self, verb: str, text: str) -> BridgeCall:
        conf = read_bridge_conf(json.loads(text), own_name=True, verb=verb)
        call = self.call(conf, *([] if verb != "GC" else ["", ""]), command=verb)
        return BridgeCall(call.request, CniArgs(), conf, text, call.deadline)

    def add_whole(self) -> None:
        undo = Undo(self.clock, self.log)
        add_bridge(self.called("ADD", json.dumps(CONF)), self.runtime(), undo)
        assert self.reserved() == {"10.0.0.9", "10.7.0.2", "10.9.0.5", "fd00::2"}

    def reserved(self) -> set[str]:
        return {str(address) for store in self.stores.values() for address in store.reserved}

    def assert_nothing_is_left(self) -> None:
        assert self.reserved() == set()
        assert self.inside() is None
        assert self.host("eth0c1") is None
        assert self.firewall.masqueraded == {}
        assert self.firewall.guarded == {}
        assert self.attachments.kept == {}


@given(spoilt_documents(CONF, NEEDED))
def test_a_del_leaves_nothing_whatever_else_is_spoilt(spoilt: Spoilt) -> None:
    host = Host()
    host.add_whole()
    delete_bridge(host.called("DEL", spoilt.text), host.runtime())
    host.assert_nothing_is_left()
    delete_bridge(host.called("DEL", spoilt.text), host.runtime())


@given(spoilt_documents(CONF, NEEDED_BY_GC))
def test_nor_does_a_gc(spoilt: Spoilt) -> None:
    host = Host()
    host.add_whole()
    collect_bridge(host.called("GC", spoilt.text), host.runtime())
    host.assert_nothing_is_left()


@given(spoilt_documents(CONF, NEEDED))
def test_an_add_is_refused_as_a_request_or_leaves_what_a_del_takes(spoilt: Spoilt) -> None:
    """No error but those that say who has to act."""
    host = Host()
    undo = Undo(host.clock, host.log)
    try:
        add_bridge(host.called("ADD", spoilt.text), host.runtime(), undo)
    except (CniError, PortError):
        undo.run()
    else:
        delete_bridge(host.called("DEL", spoilt.text), host.runtime())
    host.assert_nothing_is_left()


@pytest.mark.parametrize("ipam", [None, {}, {"type": "dhcp"}, {"type": "host-local", "dataDir": 5}, {"type": 5}, 5])
def test_the_plugin_that_gave_addresses_is_asked_with_the_section_that_add_had(ipam: object) -> None:
    host = Host()
    host.add_whole()
    delete_bridge(host.called("DEL", json.dumps({**CONF, "ipam": ipam})), host.runtime())
    host.assert_nothing_is_left()
    assert any("Releasing with the ipam section that ADD had" in one for one in host.log.shown("warning"))


def test_a_directory_that_was_changed_meanwhile() -> None:
    """The key may be written in any case."""
    host = Host()
    host.add_whole()
    spelled = {"IPAM": {"type": "host-local", "dataDir": "/elsewhere"}}
    delete_bridge(host.called("DEL", json.dumps({**CONF, "ipam": None, **spelled})), host.runtime())
    host.assert_nothing_is_left()


def test_a_record_of_an_older_version_names_the_plugin_alone() -> None:
    host = OneHost()
    host.add()
    (key,) = host.attachments.kept
    host.attachments.kept[key] = host.attachments.kept[key].replace(ipam_section="")
    host.delete(host.conf(ipam={}))
    assert host.verbs() == ["ADD", "DEL"]
    assert json.loads(host.ipam.calls[-1].call.netconf_text)["ipam"] == {"type": "host-local"}


def test_a_record_that_somebody_has_been_at() -> None:
    host = OneHost()
    host.add()
    (key,) = host.attachments.kept
    host.attachments.kept[key] = host.attachments.kept[key].replace(ipam_section="{")
    host.delete(host.conf(ipam={}))
    assert host.verbs() == ["ADD", "DEL"]


def test_the_first_failure_is_told_if_neither_section_will_do() -> None:
    host = OneHost()
    host.add()
    (key,) = host.attachments.kept
    host.attachments.kept[key] = host.attachments.kept[key].replace(ipam_section='{"type":"host-local","x":1}')
    host.ipam.fails("host-local", "DEL", Refused("no"))
    with pytest.raises(Refused, match="no"):
        host.delete()
    assert host.verbs() == ["ADD", "DEL", "DEL"]
    assert host.attachments.kept


def test_layer_2_asks_nobody_and_a_container_that_never_was_the_configurations() -> None:
    host = OneHost()
    host.add(host.conf(ipam={}))
    host.delete(host.conf(ipam={}))
    assert host.verbs() == []
    host.delete()
    assert host.verbs() == ["DEL"]


def test_the_record_keeps_the_section() -> None:
    host = Host()
    host.add_whole()
    (record,) = host.attachments.kept.values()
    assert isinstance(record, BridgeAttachment)
    assert json.loads(record.ipam_section) == CONF["ipam"]


def test_a_folder_of_records_that_cannot_be_listed_holds_up_nobody() -> None:
    """The rules that the container's interfaces share stay, as long as another one may need them."""
    host = OneHost()
    host.add(host.conf(ipMasq=True))
    host.attachments.unlisted = Unavailable("cannot list /dev/null/net1: not a directory")
    host.delete(host.conf(ipMasq=True), "c1", "eth7", netns="")
    assert host.firewall.masqueraded
    assert "Cannot tell whether the container has other interfaces" in host.log.shown("warning")[0]


def test_a_store_that_nobody_has_made_is_not_made_to_release_something() -> None:
    host = Host()
    delete_bridge(host.called("DEL", json.dumps(CONF)), host.runtime())
    collect_bridge(host.called("GC", json.dumps(CONF)), host.runtime())
    assert not any(store.is_made for store in host.stores.values())


def test_an_impossible_gateway_or_route_of_an_ipam_plugin_is_given_back() -> None:
    host = OneHost()
    (ip,) = ONE_V4.ips
    for wrong in (
        ONE_V4.replace(ips=(ip.replace(gateway=Address.parse("fd00::1")),)),
        ONE_V4.replace(ips=(ip.replace(address=ip.address.replace(number=2**32 - 1, length=32), gateway=None),)),
    ):
        host.ipam.answers("host-local", wrong)
        with pytest.raises(CniError, match=r"address .*: (gateway fd00::1 is of the other|has no room for a gateway)"):
            host.add()
        assert host.ipam.withdrawn[-1] == wrong
        assert not host.attachments.kept


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"mtu": 2**40}, "route 0.0.0.0/0: mtu 1099511627776 is not between 0 and 4294967295"),
        ({"mtu": -1}, "route 0.0.0.0/0: mtu -1 is not between 0 and 4294967295"),
        ({"advmss": 2**32}, "route 0.0.0.0/0: advmss 4294967296 is not between"),
        ({"priority": -1}, "route 0.0.0.0/0: priority -1 is not between"),
        ({"table": 2**40}, "route 0.0.0.0/0: table 1099511627776 is not between"),
        ({"scope": 300}, "route 0.0.0.0/0: scope 300 is not between 0 and 255"),
        ({"gateway": Address.parse("fd00::1")}, "route 0.0.0.0/0: gw fd00::1 is of the other IP version"),
    ],
)
def test_a_route_that_no_kernel_can_have_is_named(members, said: str) -> None:
    host = OneHost()
    route = ResultRoute(**{"dst": Cidr.parse("0.0.0.0/0"), **members})
    host.ipam.answers("host-local", ONE_V4.replace(routes=(route,)))
    with pytest.raises(CniError) as refused:
        host.add()
    assert refused.value.message.startswith(said)
    assert host.ipam.withdrawn
