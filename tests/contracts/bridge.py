"""What the ports of the bridge plugin promise, whoever keeps the promise: memory or this machine.

Each class needs the fixtures that it names; `near` is a deadline that does not pass.
"""

from __future__ import annotations

import pytest

from domain.bridge.attachment import BridgeAttachment
from domain.bridge.conf import AttachmentId, read_bridge_conf
from domain.bridge.plan import (
    bridge_plan,
    container_plan,
    gateway_plan,
    layer_2_plan,
    pair_plan,
    port_check_plan,
    port_plan,
)
from domain.cni.result import Result, ResultIp, ResultRoute
from domain.ipam.address import Address, Cidr
from domain.linux.bridge_steps import EnsureAddress
from domain.linux.steps import CONTAINER, HOST, Device, Step
from ports.bridge import NamespaceGone
from ports.clock import Deadline
from ports.errors import Expired, Refused
from ports.firewall import RuleOwner

C1, C1_ETH1, C2 = AttachmentId("c1", "eth0"), AttachmentId("c1", "eth1"), AttachmentId("c2", "eth0")
V4, V6 = Cidr.parse("10.44.0.2/24"), Cidr.parse("fd44::2/64")
OTHER_V4 = Cidr.parse("10.44.0.3/24")
PASSED = Deadline(-1.0)


class AttachmentsContract:
    """`attachments`: an empty store."""

    def test_what_was_saved_is_there_until_it_is_forgotten(self, attachments) -> None:
        one = BridgeAttachment(C1, "cni0", "eth0c1", addresses=(V4, V6), masquerade="nftables", guarded=True)
        attachments.save("net1", one)
        attachments.save("net1", one.replace(host_name="veth1"))
        assert attachments.load("net1", C1) == one.replace(host_name="veth1")
        attachments.forget("net1", C1)
        attachments.forget("net1", C1)
        assert attachments.load("net1", C1) is None

    def test_names_of_any_length_serve(self, attachments) -> None:
        """Also those that begin alike, and a network's."""
        for length in (64, 245, 246, 300, 5000):
            network = "n" * length
            owners = [AttachmentId("c" * length + tail, "eth0") for tail in ("", "a", "b")]
            for owner in owners:
                attachments.save(network, BridgeAttachment(owner, "cni0", owner.container_id[-1]))
            assert {one.id for one in attachments.all(network)} == set(owners)
            for owner in owners:
                assert attachments.load(network, owner).id == owner
                attachments.forget(network, owner)
            assert attachments.all(network) == ()

    def test_networks_and_interfaces_are_kept_apart(self, attachments) -> None:
        for network, owner in (("net1", C1), ("net1", C1_ETH1), ("net1", C2), ("net2", C1)):
            attachments.save(network, BridgeAttachment(owner, "cni0", network))
        assert [one.id for one in attachments.all("net1")] == [C1, C1_ETH1, C2]
        assert [one.host_name for one in attachments.all("net2")] == ["net2"]
        assert attachments.all("net3") == ()
        attachments.forget("net3", C1)


class AddressFilesContract:
    """`files`: an empty store."""

    def test_reserving_releasing_and_the_last_one(self, files, near) -> None:
        assert not files.exist()
        with files.held(near):
            assert files.exist()
            assert files.last_reserved(0) is None
            files.reserve(V4.address, "c1", "eth0", 0)
            files.reserve(V6.address, "c1", "eth0", 1)
        found = {one.address: one for one in files.reservations()}
        assert set(found) == {V4.address, V6.address}
        assert (found[V4.address].container_id, found[V4.address].ifname) == ("c1", "eth0")
        assert found[V4.address].made > 0
        assert (files.last_reserved(0), files.last_reserved(1)) == (V4.address, V6.address)
        with files.held(near):
            files.release(V4.address)
            files.release(V4.address)
        assert [one.address for one in files.reservations()] == [V6.address]
        assert files.last_reserved(0) == V4.address

    def test_the_lock_is_waited_for_until_the_deadline(self, files) -> None:
        self.hold_elsewhere(files)
        with pytest.raises(Expired), files.held(PASSED):
            pytest.fail("it was not held")

    def hold_elsewhere(self, files) -> None:
        """Let somebody else have the lock."""


class FirewallContract:
    """`firewall`: without rules, both back ends working."""

    owner, other, second = RuleOwner("net1", C1), RuleOwner("net1", C2), RuleOwner("net1", C1_ETH1)
    backends = pytest.mark.parametrize("backend", ["iptables", "nftables"])

    def test_iptables_is_the_default_if_it_works(self, firewall, near) -> None:
        assert firewall.choose_backend("", near) == "iptables"
        assert firewall.choose_backend("nftables", near) == "nftables"

    @backends
    def test_masquerading_begins_and_ends(self, firewall, near, backend: str) -> None:
        both = (V4, V6)
        assert firewall.missing_masquerade(backend, self.owner, both, near) == both
        firewall.masquerade(backend, self.owner, both, near)
        firewall.masquerade(backend, self.owner, both, near)
        firewall.masquerade(backend, self.other, (OTHER_V4,), near)
        assert firewall.missing_masquerade(backend, self.owner, both, near) == ()
        firewall.stop_masquerade(backend, self.owner, both, near)
        assert firewall.missing_masquerade(backend, self.owner, both, near) == both
        assert firewall.missing_masquerade(backend, self.other, (OTHER_V4,), near) == ()
        firewall.stop_masquerade(backend, self.owner, both, near)

    @backends
    def test_the_back_end_and_the_addresses_need_not_be_known(self, firewall, near, backend: str) -> None:
        firewall.masquerade(backend, self.owner, (V4, V6), near)
        firewall.masquerade(backend, self.other, (OTHER_V4,), near)
        firewall.stop_masquerade("", self.owner, (), near)
        assert firewall.missing_masquerade(backend, self.owner, (V4, V6), near) == (V4, V6)
        assert firewall.missing_masquerade(backend, self.other, (OTHER_V4,), near) == ()

    @backends
    def test_two_interfaces_of_a_container_do_not_take_each_others_rules(self, firewall, near, backend: str) -> None:
        firewall.masquerade(backend, self.owner, (V4,), near)
        firewall.masquerade(backend, self.second, (OTHER_V4,), near)
        firewall.stop_masquerade(backend, self.owner, (V4,), near)
        assert firewall.missing_masquerade(backend, self.second, (OTHER_V4,), near) == ()
        assert firewall.missing_masquerade(backend, self.owner, (V4,), near) == (V4,)

    @backends
    def test_bt_30_collecting_leaves_the_valid_and_the_neighbours(self, firewall, near, backend: str) -> None:
        neighbour = RuleOwner("net2", C1)
        for owner in (self.owner, self.other, neighbour):
            firewall.masquerade(backend, owner, (V4, V6), near)
        for _ in range(2):
            firewall.collect_masquerade("net1", (C2,), near)
            assert firewall.missing_masquerade(backend, self.owner, (V4, V6), near) == (V4, V6)
            assert firewall.missing_masquerade(backend, self.other, (V4, V6), near) == ()
            assert firewall.missing_masquerade(backend, neighbour, (V4, V6), near) == ()

    def test_iptables_rules_stay_while_another_interface_of_the_container_is_valid(self, firewall, near) -> None:
        """They do not tell the interfaces apart."""
        firewall.masquerade("iptables", self.owner, (V4,), near)
        firewall.collect_masquerade("net1", (C1_ETH1,), near)
        assert firewall.missing_masquerade("iptables", self.owner, (V4,), near) == ()

    def test_collecting_where_there_is_nothing(self, firewall, near) -> None:
        firewall.collect_masquerade("net1", (), near)

    def test_guarding_begins_and_ends(self, firewall, near) -> None:
        assert not firewall.is_guarded(self.owner, near)
        firewall.stop_guarding(self.owner, near)
        firewall.guard(self.owner, "veth1", "02:00:00:00:00:01", near)
        firewall.guard(self.other, "veth2", "02:00:00:00:00:02", near)
        assert firewall.is_guarded(self.owner, near)
        firewall.stop_guarding(self.owner, near)
        firewall.stop_guarding(self.owner, near)
        assert not firewall.is_guarded(self.owner, near)
        assert firewall.is_guarded(self.other, near)

    def test_past_the_deadline(self, firewall) -> None:
        with pytest.raises(Expired):
            firewall.stop_masquerade("nftables", self.owner, (), PASSED)


def conf(**members):
    return read_bridge_conf({"name": "net1", "isDefaultGateway": True, **members}, own_name=False)


class BridgesContract:
    """`bridges`: the host's side; `netns`: the path of a namespace; `bridge`: a name that no device has yet."""

    pod = Device(CONTAINER, "eth0")
    answer = Result(
        ips=(ResultIp(V4, 2, Address.parse("10.44.0.1")), ResultIp(V6, 2, Address.parse("fd44::1"))),
        routes=(
            ResultRoute(Cidr.parse("0.0.0.0/0"), Address.parse("10.44.0.1")),
            ResultRoute(Cidr.parse("10.77.0.0/16"), None, priority=55, table=100),
        ),
    )

    def connect(self, sides, bridge: str, wanted: str = "", **members) -> Device:
        whole = conf(bridge=bridge, **members)
        sides.apply(bridge_plan(whole))
        (host,) = sides.apply(pair_plan(conf(mtu=1400), self.pod, wanted, "02:00:00:00:00:07"))
        sides.apply(port_plan(whole, host, "mark"))
        sides.apply(container_plan(whole, self.pod, self.answer))
        sides.apply(gateway_plan(whole, self.answer))
        sides.apply(port_check_plan(whole, host))
        return host

    def test_a_container_is_connected(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            host = self.connect(sides, bridge, hairpinMode=True, portIsolation=True)
            made, port, inside = sides.link(Device(HOST, bridge)), sides.link(host), sides.link(self.pod)
            assert (made.kind, made.up, made.promiscuous) == ("bridge", True, False)
            assert (port.master, port.alias, port.state) == (made.index, "mark", "up")
            assert (port.hairpin, port.isolated, port.mtu) == (True, True, 1400)
            assert (inside.kind, inside.up, inside.mac) == ("veth", True, "02:00:00:00:00:07")
            assert (inside.peer_index, port.peer_index) == (port.index, inside.index)
            assert sides.addresses(self.pod) == (V4, V6)
            assert set(sides.addresses(Device(HOST, bridge))) == {Cidr.parse("10.44.0.1/24"), Cidr.parse("fd44::1/64")}
            assert port.name in [link.name for link in sides.host_links()]

    def test_routes_are_found_in_their_tables(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            self.connect(sides, bridge)
            index = sides.link(self.pod).index
            known = [route for route in sides.routes(4) if route.link == index]
        gateway = Address.parse("10.44.0.1")
        assert {(str(one.destination), one.gateway, one.table, one.priority) for one in known} >= {
            ("0.0.0.0/0", gateway, 254, 0),
            ("10.44.0.0/24", None, 254, 0),
            ("10.77.0.0/16", gateway, 100, 55),
        }

    def test_a_wanted_name_is_taken_if_it_is_free(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            name = f"{bridge}v"
            assert self.connect(sides, bridge, name).name == name
            sides.remove(self.pod)
            assert sides.link(Device(HOST, name)) is None

    def test_bt_34_and_a_random_one_if_it_is_not(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            sides.apply(bridge_plan(conf(bridge=bridge)))
            (host,) = sides.apply(pair_plan(conf(), self.pod, bridge, ""))
            assert host.name.startswith("veth")
            assert len(host.name) == 12

    def test_what_is_not_a_bridge(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            sides.apply(pair_plan(conf(), self.pod, bridge, ""))
            said = f'failed to create bridge "{bridge}": "{bridge}" already exists but is not a bridge'
            with pytest.raises(Refused, match=said):
                sides.apply(bridge_plan(conf(bridge=bridge)))

    def test_bt_04_a_bridge_is_made_once(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            sides.apply(bridge_plan(conf(bridge=bridge, mtu=1300)))
            first = sides.link(Device(HOST, bridge))
            sides.apply(bridge_plan(conf(bridge=bridge, mtu=1200, promiscMode=True)))
            second = sides.link(Device(HOST, bridge))
        assert (first.index, first.mtu, first.promiscuous) == (second.index, 1300, False)
        assert (second.mtu, second.promiscuous) == (1300, True)

    def test_bt_13_an_address_in_the_gateways_way(self, bridges, netns: str, bridge: str, near) -> None:
        device = Device(HOST, bridge)
        wanted = [Cidr.parse(text) for text in ("10.1.0.1/24", "10.2.0.1/24", "fd01::1/64", "fd02::1/64", "fd02::1/80")]

        def ensure(number: int, *, force: bool = False) -> None:
            sides.apply((Step(EnsureAddress(device, wanted[number], force=force), "no: "),))

        with bridges.enter(netns, near) as sides:
            sides.apply(bridge_plan(conf(bridge=bridge)))
            for number in (0, 0, 2, 3):
                ensure(number)
            for number in (1, 4):
                said = f'no: "{bridge}" already has an IP address different from {wanted[number]}'
                with pytest.raises(Refused, match=said):
                    ensure(number)
                ensure(number, force=True)
            assert set(sides.addresses(device)) == {wanted[1], wanted[2], wanted[4]}

    def test_a_link_local_gateway_stands_beside_the_kernels_own_address(
        self, bridges, netns, bridge: str, near
    ) -> None:
        device = Device(HOST, bridge)
        wanted = [Cidr.parse(text) for text in ("fe80::1/64", "fe80::2/64", "fd01::1/64")]
        with bridges.enter(netns, near) as sides:
            whole = conf(bridge=bridge)
            sides.apply(bridge_plan(whole))
            (host,) = sides.apply(pair_plan(whole, self.pod, "", ""))
            sides.apply((*port_plan(whole, host, ""), *layer_2_plan(whole, self.pod), *port_check_plan(whole, host)))
            sides.apply(tuple([Step(EnsureAddress(device, cidr, force=False), "no: ") for cidr in wanted * 2]))
            assert sides.addresses(device) == (wanted[2],)
            assert set(wanted) < set(sides.addresses(device, link_local=True))

    def test_what_nobody_can_delete_is_not_ours(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            sides.remove(Device(CONTAINER, "lo"))
            assert sides.link(Device(CONTAINER, "lo")) is not None

    def test_layer_2(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            whole = conf(bridge=bridge)
            sides.apply(bridge_plan(whole))
            (host,) = sides.apply(pair_plan(whole, self.pod, "", ""))
            sides.apply(port_plan(whole, host, ""))
            sides.apply(layer_2_plan(whole, self.pod))
            sides.apply(port_check_plan(whole, host))
            assert sides.addresses(self.pod) == ()
            assert sides.link(self.pod).up

    def test_what_is_not_there(self, bridges, netns: str, bridge: str, near) -> None:
        with bridges.enter(netns, near) as sides:
            assert sides.link(self.pod) is None
            assert sides.addresses(self.pod) == ()
            sides.remove(self.pod)
            with pytest.raises(Refused, match=r'failed to set "eth0" up: Link not found'):
                sides.apply(layer_2_plan(conf(bridge=bridge), self.pod))

    def test_k01_a_namespace_that_is_not_there(self, bridges, near) -> None:
        with pytest.raises(NamespaceGone, match='failed to open netns "/absent"'):
            bridges.enter("/absent", near)
        with bridges.enter("", near) as sides:
            assert isinstance(sides.host_links(), tuple)

    def test_own_namespace_and_privilege(self, bridges, netns: str) -> None:
        assert bridges.is_own_namespace("/proc/self/ns/net")
        assert not bridges.is_own_namespace(netns)
        bridges.require_privilege()

    def test_past_the_deadline(self, bridges, netns: str) -> None:
        with pytest.raises(Expired):
            bridges.enter(netns, PASSED)
