"""The built-in host-local: its configuration, the order of addresses, and its verbs over a store in memory."""

from __future__ import annotations

import json

import pytest

from adapters.memory.address_files import MemoryAddressFiles
from adapters.memory.clock import MemoryClock
from domain.bridge.conf import AttachmentId
from domain.bridge.host_local import HostLocalConf, HostLocalPlace, read_host_local_conf, read_host_local_place
from domain.cni.errors import CniError
from domain.cni.request import parse_address_args
from domain.cni.result import Dns, ResultRoute
from domain.ipam.address import Address, Cidr
from ports.address_files import AddressFile
from ports.errors import Unavailable
from usecases import host_local

C1, C2 = AttachmentId("c1", "eth0"), AttachmentId("c2", "eth0")
DAY = 86_400 * 10**9


def read(ipam: dict | None = None, requested: str = "", **members) -> HostLocalConf:
    document = {"cniVersion": "1.0.0", "name": "net1", "ipam": ipam, **members}
    return read_host_local_conf(json.dumps(document), Address.parse(requested) if requested else None)


def ranges(*subnets: str) -> dict:
    return {"ranges": [[{"subnet": subnet}] for subnet in subnets]}


def refusal(ipam: object, **members) -> str:
    with pytest.raises(CniError) as refused:
        read(ipam, **members)
    assert refused.value.code == 999
    return refused.value.message


class Store:
    def __init__(self) -> None:
        self.clock = MemoryClock()
        self.files = MemoryAddressFiles(self.clock)

    def add(self, conf: HostLocalConf, owner: AttachmentId = C1) -> list[str]:
        result = host_local.allocate(conf, owner, self.files, [], self.clock.deadline(10))
        return [str(ip.address) for ip in result.ips]

    def refused(self, conf: HostLocalConf, owner: AttachmentId = C1) -> str:
        before = dict(self.files.reserved)
        with pytest.raises(CniError) as refused:
            self.add(conf, owner)
        assert self.files.reserved == before
        return refused.value.message

    def hold(self, address: str, container: str, ifname: str = "eth0", age: int = DAY) -> None:
        parsed = Address.parse(address)
        self.files.reserved[parsed] = AddressFile(parsed, container, ifname, self.clock.now() - age)


@pytest.fixture
def store() -> Store:
    return Store()


def test_the_first_address_is_the_second_of_the_subnet(store: Store) -> None:
    conf = read({"subnet": "10.244.0.0/24"})
    assert store.add(conf) == ["10.244.0.2/24"]
    assert store.add(conf, C2) == ["10.244.0.3/24"]


def test_the_gateway_and_the_routes_are_told(store: Store) -> None:
    conf = read({"subnet": "10.1.2.0/24", "gateway": "10.1.2.9", "routes": [{"dst": "0.0.0.0/0"}]})
    result = host_local.allocate(conf, C1, store.files, [], store.clock.deadline(10))
    assert str(result.ips[0].gateway) == "10.1.2.9"
    assert result.routes == (ResultRoute(Cidr.parse("0.0.0.0/0")),)


def test_addresses_go_round_and_the_gateway_is_passed_over(store: Store) -> None:
    conf = read({"subnet": "10.0.0.0/29", "gateway": "10.0.0.3"})
    given = [store.add(conf, AttachmentId(f"c{number}", "eth0"))[0] for number in range(3)]
    assert given == ["10.0.0.1/29", "10.0.0.2/29", "10.0.0.4/29"]
    host_local.release(AttachmentId("c0", "eth0"), store.files, store.clock.deadline(10))
    again = [store.add(conf, AttachmentId(f"d{number}", "eth0"))[0] for number in range(3)]
    assert again == ["10.0.0.5/29", "10.0.0.6/29", "10.0.0.1/29"]
    assert store.refused(conf, AttachmentId("full", "eth0")) == (
        "failed to allocate for range 0: no IP addresses available in range set: 10.0.0.1-10.0.0.6"
    )


def test_a_set_of_several_ranges_is_gone_through_in_order(store: Store) -> None:
    two = [{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.10", "rangeEnd": "10.0.0.11"}, {"subnet": "10.0.1.0/30"}]
    conf = read({"ranges": [two]})
    given = [store.add(conf, AttachmentId(f"c{number}", "eth0"))[0] for number in range(3)]
    assert given == ["10.0.0.10/24", "10.0.0.11/24", "10.0.1.2/30"]
    store.files.last[0] = Address.parse("10.0.0.11")
    host_local.release(AttachmentId("c0", "eth0"), store.files, store.clock.deadline(10))
    assert store.add(conf, AttachmentId("again", "eth0")) == ["10.0.0.10/24"]
    host_local.release(AttachmentId("c2", "eth0"), store.files, store.clock.deadline(10))
    assert store.add(conf, C2) == ["10.0.1.2/30"]
    assert "no IP addresses available" in store.refused(conf, AttachmentId("full", "eth0"))


def test_a_full_subnet_of_which_no_last_address_is_known(store: Store) -> None:
    store.hold("10.0.0.2", "c9")
    assert "no IP addresses available in range set: 10.0.0.1-10.0.0.2" in store.refused(read({"subnet": "10.0.0.0/30"}))


def test_a_last_address_from_elsewhere_counts_for_nothing(store: Store) -> None:
    store.files.last[0] = Address.parse("192.168.0.7")
    assert store.add(read({"subnet": "10.244.0.0/24"})) == ["10.244.0.2/24"]


def test_one_address_from_each_set(store: Store) -> None:
    conf = read({"subnet": "10.0.0.0/24", **ranges("fd00::/64", "10.2.0.0/24")})
    assert store.add(conf) == ["10.0.0.2/24", "fd00::2/64", "10.2.0.2/24"]
    assert str(conf.sets[1]) == "fd00::1-fd00::ffff:ffff:ffff:ffff"


def test_ranges_of_the_runtime_come_first() -> None:
    conf = read(ranges("10.2.0.0/24"), runtimeConfig={"ipRanges": [[{"subnet": "10.1.0.0/24"}]]})
    assert [str(one.ranges[0].subnet) for one in conf.sets] == ["10.1.0.0/24", "10.2.0.0/24"]


def test_the_directory_and_the_resolver_file() -> None:
    conf = read({"subnet": "10.0.0.0/24", "dataDir": "/run/x", "resolvConf": "/etc/resolv.conf"})
    assert (conf.name, conf.directory, conf.resolv_conf) == ("net1", "/run/x", "/etc/resolv.conf")
    assert read({"subnet": "10.0.0.0/24", "dataDir": ""}).directory == "/var/lib/cni/networks"


def test_addresses_in_particular(store: Store) -> None:
    conf = read(
        ranges("10.0.0.0/24", "fd00::/64"),
        "10.0.0.77",
        args={"cni": {"ips": ["fd00::77/64", None, ""]}},
        runtimeConfig={"ips": []},
    )
    assert store.add(conf) == ["10.0.0.77/24", "fd00::77/64"]
    conf = read(ranges("10.0.0.0/24"), "10.0.0.77")
    taken = "requested IP address 10.0.0.77 is not available in range set 10.0.0.1-10.0.0.254"
    assert store.refused(conf, C2) == f"failed to allocate for range 0: {taken}"
    conf = read(ranges("10.0.0.0/24"), "10.0.0.1")
    assert store.refused(conf, C2) == "failed to allocate for range 0: requested ip 10.0.0.1 is subnet's gateway"
    conf = read(ranges("10.0.0.0/24"), "10.9.9.9")
    assert store.refused(conf, C2) == "failed to allocate all requested IPs: 10.9.9.9"


def test_no_second_address_for_the_same_interface(store: Store) -> None:
    conf = read({"subnet": "10.0.0.0/24"})
    store.add(conf)
    said = "10.0.0.2 has been allocated to c1, duplicate allocation is not allowed"
    assert store.refused(conf) == f"failed to allocate for range 0: {said}"
    assert store.add(conf, AttachmentId("c1", "eth1")) == ["10.0.0.3/24"]
    store.hold("10.1.0.9", "c3")
    assert store.add(conf, AttachmentId("c3", "eth0")) == ["10.0.0.4/24"]


def test_b01_a_full_disk_is_told_and_nothing_stays_reserved(store: Store) -> None:
    store.files.room = 1
    with pytest.raises(Unavailable, match="no space left on device"):
        store.add(read(ranges("10.0.0.0/24", "10.1.0.0/24")))
    assert store.files.reserved == {}


def test_check_and_release(store: Store) -> None:
    conf, soon = read({"subnet": "10.0.0.0/24"}), store.clock.deadline(10)
    store.add(conf)
    store.hold("10.0.0.9", "c1", "")  # an older version's record
    host_local.check(C1, store.files, soon)
    with pytest.raises(CniError, match="host-local: Failed to find address added by container c2"):
        host_local.check(C2, store.files, soon)
    host_local.release(C2, store.files, soon)
    assert len(store.files.reserved) == 2
    host_local.release(C1, store.files, soon)
    assert store.files.reserved == {}


def test_b01_gc_frees_the_dead_and_leaves_the_living_and_the_young(store: Store) -> None:
    for number in range(250):
        store.hold(f"10.0.0.{number + 2}", f"c{number}")
    store.hold("10.0.1.1", "new", age=10**9)
    valid = [AttachmentId(f"c{number}", "eth0") for number in range(3)]
    gone = host_local.collect(valid, store.files, store.clock.deadline(10), store.clock.now())
    assert len(gone) == 247
    assert {one.container_id for one in store.files.reserved.values()} == {"c0", "c1", "c2", "new"}


@pytest.mark.parametrize(
    ("ipam", "said"),
    [
        (None, "IPAM config missing 'ipam' key"),
        ({}, "no IP ranges specified"),
        ({"ranges": [[]]}, "invalid range set 0: empty range set"),
        ({"ranges": [[{}]]}, "invalid range set 0: Network <nil> too small to allocate from"),
        (ranges("10.0.0.0/31"), "invalid range set 0: Network 10.0.0.0/31 too small to allocate from"),
        (
            ranges("10.0.0.0/24", "10.1.2.3/24"),
            (
                "invalid range set 1: Network has host bits set. "
                "For a subnet mask of length 24 the network address is 10.1.2.0"
            ),
        ),
        (
            {"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"},
            "invalid range set 0: RangeStart 10.0.1.1 not in network 10.0.0.0/24",
        ),
        (
            {"subnet": "10.0.0.0/24", "rangeEnd": "10.0.1.1"},
            "invalid range set 0: RangeEnd 10.0.1.1 not in network 10.0.0.0/24",
        ),
        (ranges("10.0.0.0/16", "10.0.2.0/24"), "range set 0 overlaps with 1"),
        (
            {"ranges": [[{"subnet": "10.0.0.0/16"}, {"subnet": "10.0.2.0/24"}]]},
            "invalid range set 0: subnets 10.0.0.1-10.0.255.254 and 10.0.2.1-10.0.2.254 overlap",
        ),
        (
            {"ranges": [[{"subnet": "10.0.0.0/16"}, {"subnet": "fd00::/64"}]]},
            "invalid range set 0: mixed address families",
        ),
        ({"subnet": "nonsense"}, "invalid CIDR address: nonsense"),
        ({"subnet": "10.0.0.0/24", "gateway": "x"}, "invalid IP address: x"),
    ],
)
def test_configurations_that_cannot_be(ipam, said: str) -> None:
    assert refusal(ipam) == said


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "x"])
def test_bt_05_old_versions_cannot_say_two_addresses_of_a_family(version: str) -> None:
    said = f"CNI version {version} does not support more than 1 address per family"
    assert refusal(ranges("10.0.0.0/24", "10.1.0.0/24"), cniVersion=version) == said
    assert len(read(ranges("10.0.0.0/24", "fd00::/64"), cniVersion=version).sets) == 2


@pytest.mark.parametrize(
    "members",
    [
        {"ipam": {"ranges": {}}},
        {"ipam": {"ranges": [{}]}},
        {"ipam": {"ranges": [[7]]}},
        {"ipam": {"subnet": 7}},
        {"ipam": {"subnet": "10.0.0.0/24"}, "args": {"cni": {"ips": "x"}}},
    ],
)
def test_wrong_types(members) -> None:
    assert refusal(**members).startswith("json: cannot unmarshal")


@pytest.mark.parametrize(
    ("ipam", "said", "where"),
    [
        ({"routes": [{"dst": "default"}]}, "invalid CIDR address: default", "in ipam.routes.dst"),
        ({"routes": [{"dst": "10.1.2.3"}]}, "invalid CIDR address: 10.1.2.3", "in ipam.routes.dst"),
        ({"routes": [{"dst": ""}]}, "invalid CIDR address: ", "in ipam.routes.dst"),
        ({"routes": [{"gw": "10.1.0.1"}]}, "invalid CIDR address: ", "in ipam.routes.dst"),
        ({"routes": [None]}, "invalid CIDR address: ", "in ipam.routes.dst"),
        ({"routes": [{}]}, "invalid CIDR address: ", "in ipam.routes.dst"),
        ({"routes": [{"dst": "::/0", "gw": "router"}]}, "invalid IP address: router", "in ipam.routes.gw"),
        ({"routes": [{"dst": "::/0", "gw": "10.9.0"}]}, "invalid IP address: 10.9.0", "in ipam.routes.gw"),
        ({"rangeStart": "x"}, "invalid IP address: x", "in ipam.rangeStart"),
        ({"ranges": [[{"subnet": "10.0.0.0"}]]}, "invalid CIDR address: 10.0.0.0", "in ipam.ranges.subnet"),
        ({"dataDir": "a\0"}, "a path cannot have a zero byte in it", "in ipam.dataDir"),
    ],
)
def test_a_text_that_cannot_be_is_told_with_its_key(ipam, said: str, where: str) -> None:
    """The message is host-local's own."""
    with pytest.raises(CniError) as refused:
        read({**ranges("10.0.0.0/24"), **ipam})
    assert (refused.value.code, refused.value.message, refused.value.details) == (999, said, where)


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"name": "n", "ipam": {"dataDir": "/d", "routes": [None], "ranges": 5}}, HostLocalPlace("n", "/d")),
        ({"name": "n", "ipam": {"dataDir": ""}}, HostLocalPlace("n", "/var/lib/cni/networks")),
        ({"name": "n"}, HostLocalPlace("n", "/var/lib/cni/networks")),
        (5, HostLocalPlace("", "/var/lib/cni/networks")),
    ],
)
def test_releasing_needs_the_place_alone(document, place) -> None:
    assert read_host_local_place(json.dumps(document)) == place


@pytest.mark.parametrize("ipam", [5, {"dataDir": 5}, {"dataDir": "a\0"}])
def test_a_place_that_cannot_be_is_the_default_one(ipam: object) -> None:
    place = read_host_local_place(json.dumps({"name": "n", "ipam": ipam}))
    assert (place.name, place.directory) == ("n", "/var/lib/cni/networks")
    assert place.complaint


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_what_is_no_object(text: str) -> None:
    with pytest.raises(CniError):
        read_host_local_conf(text, None)


def test_an_address_wanted_by_cni_args() -> None:
    assert parse_address_args("IgnoreUnknown=1;IP=10.0.0.7;K=v") == Address.parse("10.0.0.7")
    assert parse_address_args("GATEWAY=10.0.0.1") is None
    with pytest.raises(CniError, match="unknown args"):
        parse_address_args("MAC=x")


def test_a_resolver_file() -> None:
    text = (
        "# c\n; d\nnameserver 1.1.1.1\nnameserver 2.2.2.2 x\ndomain a.b\nsearch a b\nsearch c\noptions o p\nbare\nx y\n"
    )
    assert host_local.read_dns(text) == Dns(("1.1.1.1", "2.2.2.2"), "a.b", ("a", "b", "c"), ("o", "p"))
    assert host_local.read_dns("") == Dns()
