"""The IPAM plugin's verbs, and `calico -t` (spec: ipam 3 to 5; CNI-028; LIB-200; recording `connection-test`)."""

from __future__ import annotations

import pytest

from adapters.memory.node import MemoryNode
from adapters.records.codec import key_text
from domain.cni.errors import CniError
from domain.cni.netconf import BOTH_OFF, IpamSettings, KubernetesSettings, NetConf, PolicySettings
from domain.cni.request import CniArgs
from domain.ipam.address import Address, Cidr
from domain.ipam.block import Affinity, Handle
from domain.ipam.errors import BlockLimitReached, IpamError
from domain.ipam.pools import AllocationConfig, IPReservation
from domain.moment import go_string
from domain.resource import Metadata
from domain.workload.pod import Pod
from ports.clock import Deadline
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    HandleKey,
    IPPools,
    IPReservationKey,
    IPReservations,
    Listing,
)
from ports.errors import BadConfiguration, Expired, Refused, Unavailable
from usecases import check_connection as connection
from usecases.assign_addresses import assign_addresses
from usecases.check_addresses import check_addresses
from usecases.ipam.assign_specific import UPGRADED
from usecases.ipam.explain_shortage import explain_shortage
from worlds.one_node import NEVER, NODE, OWNER

POD = CniArgs(pod_name="web-0", pod_namespace="shop")
BLOCK4, BLOCK6 = "10.244.0.128/26", "fd00:10:244::80/122"


def ipam(**fields) -> IpamSettings:
    return IpamSettings(type="calico-ipam", **fields)


def assigned(node, container: str = "c1", **fields) -> list[str]:
    result = node.assign(container, **fields)
    assert [route.dst for route in result.routes] == [ip.address for ip in result.ips]
    assert (result.interfaces, [ip.gateway for ip in result.ips]) == ((), [None] * len(result.ips))
    return [str(ip.address) for ip in result.ips]


def refusal(node, kind: type[Exception] = IpamError, **fields) -> str:
    held = node.holders()
    with pytest.raises(kind) as caught:
        node.assign(**fields)
    assert node.holders() == held
    assert node.counts_match()
    assert not node.lock.held_now
    return str(caught.value)


# --- ADD, automatic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["10.244.0.128/26"]),
        ({"assign_ipv4": "true"}, ["10.244.0.128/26"]),
        ({"assign_ipv6": "true"}, ["10.244.0.128/26", "fd00:10:244::80/122"]),
        ({"assign_ipv4": "false", "assign_ipv6": "true"}, ["fd00:10:244::80/122"]),
        ({"assign_ipv4": "", "assign_ipv6": ""}, ["10.244.0.128/26"]),
        ({"assign_ipv4": "FALSE", "assign_ipv6": "yes"}, ["10.244.0.128/26"]),
        ({"assign_ipv4": "false"}, []),
        ({"assign_ipv4": "false", "assign_ipv6": "TRUE"}, []),
    ],
)
def test_the_configuration_says_which_versions_are_assigned(node, settings, expected):
    assert assigned(node, ipam=ipam(**settings)) == expected


def test_a_configuration_that_asks_for_nothing_takes_nothing(node):
    before = node.datastore.list(Blocks(), NEVER)
    node.assign(ipam=ipam(assign_ipv4="false"))
    assert node.datastore.list(Blocks(), NEVER) == before == ()
    assert node.counts() == {}
    assert BOTH_OFF in node.log.shown("warning")


@pytest.mark.parametrize("pod", [False, True])
def test_the_network_plugin_says_why_there_is_nothing_to_network(node, pod):
    node.cluster.namespaces, args = {"shop": {}}, CniArgs()
    if pod:
        node.cluster.pods["shop", "p"] = Pod("p", "shop", node=NODE)
        args = CniArgs(pod_name="p", pod_namespace="shop")
    with pytest.raises(CniError, match=r"IPAM plugin returned (no IP|missing IP)") as refused:
        node.add(ipam=ipam(assign_ipv4="false"), args=args, text='{"ipam": {}}')
    assert refused.value.details == BOTH_OFF
    assert node.leftovers() == {}


def test_the_holder_is_described_under_the_networks_handle(node):
    """CNI-028."""
    before = node.clock.now()
    node.assign()
    holder = node.block(BLOCK4).holder(0)
    assert holder.handle == "net1.c1"
    assert set(holder.secondary) == {"node", "timestamp"}
    assert holder.secondary["node"] == NODE
    assert holder.secondary["timestamp"][:19] == go_string(before)[:19]


def test_a_pod_is_described_too(node):
    node.assign(args=POD)
    holder = node.block(BLOCK4).holder(0)
    assert list(holder.secondary) == ["namespace", "node", "pod", "timestamp"]
    assert (holder.secondary["namespace"], holder.secondary["pod"]) == ("shop", "web-0")


def test_two_adds_of_one_container_hold_two_addresses_on_one_handle(node):
    """spec: ipam 3.2: ADD is not idempotent."""
    assert [assigned(node), assigned(node)] == [["10.244.0.128/26"], ["10.244.0.129/26"]]
    assert node.counts() == {"net1.c1": {BLOCK4: 2}}


def test_the_work_is_done_under_the_host_lock(node):
    held = []
    node.datastore.before = lambda verb, _key: held.append(node.lock.held_now) if verb != "fetch" else None
    node.assign()
    node.release()
    assert held == [True] * len(held)
    assert held != []
    assert node.lock.given == [True, True]


def test_what_can_be_no_lock_refuses_an_add_and_lets_a_delete_go_on(node):
    node.assign()
    node.lock.unfit = "/run/ipam.lock: it is a folder"
    with pytest.raises(BadConfiguration, match="it is a folder"):
        node.assign()
    with pytest.raises(BadConfiguration, match="it is a folder"):
        node.assign(args=CniArgs(ip=Address.parse("10.244.0.130")))
    assert node.counts() == {"net1.c1": {BLOCK4: 1}}
    node.release()
    assert node.counts() == {}
    assert "it is a folder" in node.log.shown("error")[0]


def test_a_lock_that_is_held_elsewhere_only_delays(node):
    """L03."""
    node.lock.hold_elsewhere()
    assert assigned(node, seconds=60) == ["10.244.0.128/26"]
    assert node.clock.monotonic() == 20


# --- pools -----------------------------------------------------------------------------------------------------------


def test_pools_are_asked_for_by_range_or_by_name(node):
    """C06: whatever the spelling."""
    node.add_pool("extra", "10.99.0.1/24")
    for number, text in enumerate(("extra", "10.99.0.0/24", "10.99.0.77/24")):
        (found,) = assigned(node, f"c{number}", ipam=ipam(ipv4_pools=(text,)))
        assert Cidr.parse(found).network in Cidr.parse("10.99.0.0/24")


def test_pools_of_both_versions_are_asked_for_independently(node):
    node.add_pool("four", "10.99.0.0/26")
    node.add_pool("six", "FD99::1/122")
    settings = ipam(assign_ipv6="true", ipv4_pools=("four",), ipv6_pools=("fd99:0::/122",))
    assert assigned(node, ipam=settings) == ["10.99.0.0/26", "fd99::/122"]
    assert assigned(node, "c2", ipam=ipam(assign_ipv6="true", ipv4_pools=("four",))) == ["10.99.0.1/26", "fd99::1/122"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ipv4_pools": ("foo",)}, 'error parsing pool "foo": invalid CIDR address: foo'),
        ({"ipv4_pools": ("fd00::/64",)}, '"fd00::" isn\'t a IPv4 address'),
        ({"ipv6_pools": ("10.0.0.0/8",)}, '"10.0.0.0" isn\'t a IPv6 address'),
        ({"ipv4_pools": ("pool1",)}, '"fd00:10:244::" isn\'t a IPv4 address'),
        ({"ipv4_pools": ("broken",)}, 'error parsing pool "broken": invalid CIDR address: nonsense'),
        ({"ipv4_pools": ("10.9.0.0/16",)}, "the given pool (10.9.0.0/16) does not exist, or is not enabled"),
    ],
)
def test_a_pool_that_cannot_be_used_is_named(node, settings, text):
    """spec: ipam 3.2, 7."""
    node.add_pool("broken", "nonsense")
    assert refusal(node, ipam=ipam(**settings)).startswith(text)


def test_without_pools_in_the_configuration_none_are_looked_up(node):
    node.assign()
    fetches = node.datastore.calls["fetch"]
    node.assign("c2", ipam=ipam(ipv4_pools=("pool0",)))
    node.assign("c3")
    assert node.datastore.calls["fetch"] - fetches == 2 * 2 + 1


@pytest.mark.parametrize("in_one_go", [False, True])
def test_where_a_listing_may_have_to_wait_nothing_is_listed_under_the_hosts_lock(node, in_one_go):
    """Else each call waits after the one before. Where it costs nothing, what is read is of the moment it is used."""
    node.assign()
    node.datastore.lists_in_one_go = in_one_go
    listed = []

    def note(_verb, need):
        if isinstance(need, Listing):
            listed.append((type(need), node.lock.held_now))

    node.datastore.before = note
    node.assign("c2")
    assert listed == [(kind, in_one_go) for kind in (IPReservations, IPPools, Affinities)]


@pytest.mark.parametrize(("waited", "listed"), [(0.9, [False]), (1.1, [False, True])])
def test_what_was_read_before_a_long_wait_for_the_lock_is_read_again(node, waited, listed):
    node.assign()
    node.datastore.lists_in_one_go = False
    node.lock.hold_elsewhere(waited)
    pools = []
    node.datastore.before = lambda _verb, need: pools.append(node.lock.held_now) if type(need) is IPPools else None
    node.assign("c2")
    assert pools == listed


@pytest.mark.parametrize("before", [{"disabled": True}, {"cidr": "10.9.0.0/24"}, {"node_selector": "gone == 'x'"}])
def test_a_pool_as_it_was_a_moment_ago_is_no_reason_to_refuse(node, before):
    """Where a listing may lag; the pool serves by now."""
    node.add_pool("pool0", **{"cidr": "10.244.0.0/24", **before})
    node.datastore.lists_in_one_go = False
    node.datastore.lag = node.datastore.snapshot()
    node.add_pool("pool0", "10.244.0.0/24")
    assert assigned(node, ipam=ipam(ipv4_pools=("10.244.0.0/24",))) == ["10.244.0.128/26"]


def full_of_late(node) -> None:
    """The first pool has no address left; listings that may lag show no more than that."""
    node.add_pool("pool0", "10.244.0.0/30", block_size=30)
    for number in range(4):
        node.assign(f"full{number}")
    node.datastore.lists_in_one_go = False
    node.datastore.lag = node.datastore.snapshot()


def test_a_pool_that_was_made_a_moment_ago_serves_when_the_others_are_full(node):
    full_of_late(node)
    node.add_pool("pool9", "10.250.0.0/30", block_size=30)
    assert assigned(node) == ["10.250.0.0/30"]


def test_addresses_that_were_reserved_until_a_moment_ago_are_given_out(node):
    node.put(IPReservationKey("all"), IPReservation(Metadata("all"), ("10.244.0.0/16",)))
    node.datastore.lists_in_one_go = False
    node.datastore.lag = node.datastore.snapshot()
    node.remove(IPReservationKey("all"))
    assert assigned(node) == ["10.244.0.128/26"]


def test_blocks_of_a_pool_that_was_usable_until_a_moment_ago_do_not_count_as_the_nodes(node):
    node.put(AllocationConfigKey(), AllocationConfig(max_blocks_per_host=1))
    full_of_late(node)
    node.add_pool("pool0", "10.244.0.0/30", block_size=30, disabled=True)
    node.add_pool("pool9", "10.250.0.0/30", block_size=30)
    assert assigned(node) == ["10.250.0.0/30"]


def test_a_limit_that_is_lifted_while_the_call_looks_for_a_block_refuses_nothing(node):
    node.put(AllocationConfigKey(), AllocationConfig(max_blocks_per_host=1))
    node.add_pool("pool9", "10.250.0.0/30", block_size=30)
    full_of_late(node)

    def lift(_verb, need):
        if isinstance(need, IPPools) and not need.may_lag:
            node.put(AllocationConfigKey(), AllocationConfig())

    node.datastore.before = lift
    assert assigned(node) == ["10.250.0.0/30"]


def test_a_version_whose_last_pool_has_gone_a_moment_ago_may_be_left_out(node):
    full_of_late(node)
    node.add_pool("pool0", "10.244.0.0/30", block_size=30, disabled=True)
    both = ipam(assign_ipv4="true", assign_ipv6="true", optional_families=True)
    assert assigned(node, ipam=both) == ["fd00:10:244::80/122"]


@pytest.mark.parametrize(("limit", "kind"), [(0, IpamError), (1, BlockLimitReached)])
def test_what_is_refused_by_what_is_so_now_is_not_tried_again(node, limit, kind):
    """Pools are read before the host's lock, before a block is claimed and before the refusal; then to explain it."""
    node.put(AllocationConfigKey(), AllocationConfig(max_blocks_per_host=limit))
    full_of_late(node)
    listed = []
    node.datastore.before = lambda _verb, need: listed.append(need) if isinstance(need, (IPPools, Blocks)) else None
    with pytest.raises(kind):
        node.assign()
    explaining = [] if limit else [False]
    assert [need.may_lag for need in listed if isinstance(need, IPPools)] == [True, False, False, *explaining]
    assert sum(isinstance(need, Blocks) for need in listed) == (0 if limit else 2)


# --- why there is no address -----------------------------------------------------------------------------------------


def details(node, **fields) -> str:
    with pytest.raises(IpamError) as caught:
        node.assign(**fields)
    return caught.value.details


def test_an_address_inside_a_pool_that_is_off_names_the_pool(node):
    node.add_pool("off", "10.66.0.0/24", disabled=True)
    asked = CniArgs(ip=Address.parse("10.66.0.9"))
    assert refusal(node, args=asked) == "The provided IP address is not in a configured pool\n"
    assert details(node, args=asked) == "IPPool off (10.66.0.0/24) has it, but is disabled"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"ipv4_pools": ("nope",)}, "IPv4 pools: IPPool off (10.66.0.0/24), IPPool pool0 (10.244.0.0/24)"),
        ({"ipv4_pools": ("pool1",)}, '"pool1" is IPv6: it belongs into ipv6_pools'),
        ({"ipv4_pools": ("off",)}, "IPPool off (10.66.0.0/24) is disabled"),
        ({"ipv4_pools": ("10.244.0.0/26",)}, "IPPool pool0 (10.244.0.0/24) overlaps it: ask for the pool's name or"),
    ],
)
def test_a_pool_that_is_asked_for_in_vain_is_told_with_what_could_be_asked_for(node, asked, said):
    node.add_pool("off", "10.66.0.0/24", disabled=True)
    assert details(node, ipam=ipam(**asked)).startswith(said)


def test_a_shortage_is_told_with_what_does_not_serve(node):
    node.add_pool("pool0", "10.244.0.0/30", block_size=30)
    node.add_pool("off", "10.66.0.0/24", disabled=True)
    node.add_pool("tunnels", "10.67.0.0/24", allowed_uses=("Tunnel",))
    node.put(IPReservationKey("routers"), IPReservation(Metadata("routers"), ("10.244.0.0/30",)))
    assert details(node) == (
        "IPPool off (10.66.0.0/24) is disabled; IPPool tunnels (10.67.0.0/24) is not for Workload "
        "(allowedUses: [Tunnel]); IPReservation routers keeps 10.244.0.0/30"
    )


def test_a_shortage_that_cannot_be_explained_is_told_all_the_same(node):
    node.add_pool("off", "10.66.0.0/24", disabled=True)
    assert explain_shortage(node.work(), node.request(), 4)
    node.fail("fetch", IPPools)
    assert explain_shortage(node.work(), node.request(), 4) == ""


# --- namespaces ------------------------------------------------------------------------------------------------------


def namespaced(node) -> None:
    node.add_pool("pool0", "10.244.0.0/24", namespace_selector="team == 'a'")
    node.cluster.namespaces = {"shop": {"team": "a"}, "default": {"team": "b"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"kubernetes": KubernetesSettings(kubeconfig="/etc/kubeconfig")},
        {"policy": PolicySettings(type="k8s")},
    ],
)
def test_where_a_cluster_is_configured_the_namespaces_labels_decide(node, fields):
    namespaced(node)
    assert assigned(node, args=POD, **fields) == ["10.244.0.128/26"]
    assert refusal(node, **fields).startswith("no configured Calico pools for node node1")


def test_without_one_no_namespace_is_looked_up(node):
    assert node.cluster.namespaces is None  # asking it would fail
    assert assigned(node) == ["10.244.0.128/26"]


def test_a_namespace_that_is_not_there_is_named(node):
    node.cluster.namespaces = {}
    text = refusal(node, CniError, args=POD, policy=PolicySettings(type="k8s"))
    assert text.startswith('failed to get namespace shop: namespaces "shop" not found')


def test_a_cluster_that_is_not_configured_is_an_error(node):
    text = refusal(node, CniError, policy=PolicySettings(type="k8s"))
    assert text.startswith("failed to get namespace default: invalid configuration: no configuration has been provided")


def test_a_cluster_that_is_away_makes_the_runtime_try_again(node):
    class Away:
        def namespace(self, _name, _deadline):
            raise Unavailable("no route")

    node.cluster = Away()
    assert refusal(node, Unavailable, policy=PolicySettings(type="k8s")) == "no route"


# --- what does not go well -------------------------------------------------------------------------------------------


def test_a_version_that_comes_back_short_fails_the_call_and_gives_the_other_back(node):
    """spec: ipam 3.2, step 6."""
    node.add_pool("pool1", "fd00:10:244::/128", block_size=128)
    node.add_block("fd00:10:244::/128", None, ("x", 1), state="")
    node.put(HandleKey("x"), Handle({Cidr.parse("fd00:10:244::/128"): 1}))
    text = refusal(node, ipam=ipam(assign_ipv6="true"))
    assert text == (
        "failed to request IPv6 addresses: Assigned 0 out of 1 requested IPv6 addresses; "
        "No IPs available in pools: [fd00:10:244::/128]"
    )


def test_c01_a_version_that_no_pool_serves_can_be_left_out(node):
    """C01: if the configuration says so, and the other version has its address."""
    node.add_pool("pool0", "10.244.0.0/24", assignment_mode="Manual")
    both = {"assign_ipv4": "true", "assign_ipv6": "true"}
    assert refusal(node, ipam=ipam(**both)) == "no configured Calico pools for node node1"
    optional = {**both, "optional_families": True}
    assert assigned(node, ipam=ipam(**optional)) == ["fd00:10:244::80/122"]
    found = assigned(node, "c2", ipam=ipam(**optional, ipv4_pools=("pool0",)))
    assert found == ["10.244.0.128/26", "fd00:10:244::81/122"]
    node.add_pool("pool1", "fd00:10:244::/120", assignment_mode="Manual")
    assert refusal(node, container="c3", ipam=ipam(**optional)) == "no configured Calico pools for node node1"


def test_a_single_network_node_claims_one_block_only(node):
    fields = {"windows_use_single_network": True, "ipam": ipam(ipv4_pools=("10.244.0.0/24",))}
    node.add_block(BLOCK4, None, ("x", 64))
    for text in ("10.244.0.192/26",):
        node.add_block(text)
    for number in range(64):
        node.assign(f"d{number}", **fields)
    with pytest.raises(BlockLimitReached) as caught:
        node.assign("d64", **fields)
    assert caught.value.limit == 1


def test_an_answer_that_cannot_be_delivered_gives_the_addresses_back(node):
    undo = node.undo()
    assign_addresses(node.call(ipam=ipam(assign_ipv6="true")), node.runtime(), undo)
    assert len(node.holders()) == 2
    undo.run()
    assert (node.holders(), node.counts()) == ({}, {})


def test_add_and_del_refuse_the_plugins_own_namespace(node):
    fields, text = {"netns": "/proc/self/ns/net"}, "plugin's netns and netns from CNI_NETNS"
    assert refusal(node, CniError, **fields).startswith(text)
    with pytest.raises(CniError, match=text):
        node.release(**fields)


def test_del_of_what_add_refuses_for_its_name_has_nothing_to_release(node):
    node.assign()
    fields = {"ifname": "eth-"}
    assert refusal(node, CniError, **fields).startswith("error constructing WorkloadEndpoint name")
    node.release(**fields)
    assert node.holders() == {"10.244.0.128": "net1.c1"}


@pytest.mark.parametrize("nodename", ["node/a", "-node", "node-"])
def test_del_releases_by_container_whatever_the_node_is_called_now(node, nodename):
    node.assign()
    assert f"field node = '{nodename}'" in refusal(node, CniError, container="c2", nodename=nodename)
    node.release(nodename=nodename)
    node.release(nodename=nodename)
    assert node.holders() == {}


# --- ADD, one particular address -------------------------------------------------------------------------------------


def wanted(text: str) -> CniArgs:
    return CniArgs(ip=Address.parse(text))


def test_a_requested_address_is_answered_alone(node):
    """spec: ipam 3.1."""
    assert assigned(node, args=wanted("10.244.0.5")) == ["10.244.0.5/32"]
    assert assigned(node, "c2", args=wanted("fd00:10:244::5")) == ["fd00:10:244::5/128"]
    assert node.holders() == {"10.244.0.5": "net1.c1", "fd00:10:244::5": "net1.c2"}


def test_a_requested_address_is_given_back_when_the_answer_cannot_be_delivered(node):
    undo = node.undo()
    assign_addresses(node.call(args=wanted("10.244.0.5")), node.runtime(), undo)
    undo.run()
    assert (node.holders(), node.counts()) == ({}, {})


def test_a_requested_address_that_is_taken_stays_its_holders(node):
    """G15: the failed call does not free the running container's address either."""
    node.assign(args=wanted("10.244.0.5"))
    for container in ("c1", "c2"):
        assert "already assigned" in refusal(node, container=container, args=wanted("10.244.0.5"))
    assert node.holders() == {"10.244.0.5": "net1.c1"}


def test_old_affinity_records_are_brought_up_to_date_once_before_a_requested_address(node):
    """IPAM-019; spec: ipam 3.1, 13.4."""
    node.assign()
    assert UPGRADED not in node.node.files
    node.assign("c2", args=wanted("10.244.0.5"))
    assert node.node.files[UPGRADED] == ""
    node.node.broken.add(UPGRADED)  # it exists, so it is not written again
    node.assign("c3", args=wanted("10.244.0.6"))


class Unwritable(MemoryNode):
    def __init__(self, error: Exception) -> None:
        super().__init__(NODE, {"/var/lib/calico/nodename": NODE})
        self.error = error

    def write(self, path, text):
        raise self.error


@pytest.mark.parametrize("error", [Unavailable("no space left on device"), Refused("read-only file system")])
def test_records_that_cannot_be_brought_up_to_date_end_the_call(node, error):
    """IPAM-019."""
    node.node = Unwritable(error)
    assert refusal(node, type(error), args=wanted("10.244.0.5")) == f"failed to upgrade IPAM database: {error}"


def test_the_nodes_own_addresses_are_left_alone(node):
    node.node.own_addresses = (Address.parse("10.244.0.128"), Address.parse("192.0.2.1"))
    assert assigned(node) == ["10.244.0.129/26"]


def used(node, *texts: str) -> None:
    """This host has a route to each, over an interface that is not ours to take."""
    node.node.routes = dict.fromkeys(map(Address.parse, texts), "cali123")


def test_an_address_that_is_free_in_ipam_but_in_use_on_this_host_is_passed_over(node):
    """A holder that was released and never taken off the network: the kernel would refuse a second route to it."""
    used(node, "10.244.0.128", "10.244.0.129", "fd00:10:244::80")
    both = ipam(assign_ipv4="true", assign_ipv6="true")
    assert assigned(node, ipam=both) == ["10.244.0.130/26", "fd00:10:244::81/122"]
    assert [line for line in node.log.shown("warning") if "in_use_by=cali123" in line and "=10.244.0.129" in line]


def test_it_is_passed_over_for_as_long_as_it_is_in_use(node):
    """Each call looks for itself, so nothing has to be remembered."""
    used(node, "10.244.0.128")
    assert assigned(node, "c1") == ["10.244.0.129/26"]
    used(node)
    assert assigned(node, "c2") == ["10.244.0.128/26"]


def test_a_block_whose_free_addresses_are_all_in_use_on_this_host_counts_as_full(node):
    node.add_pool("pool0", "10.244.0.0/24", block_size=30)
    first = assigned(node)[0].split("/")[0]
    node.release()
    used(node, *[str(Cidr.parse(f"{first}/30").at(ordinal)) for ordinal in range(4)])
    (other,) = assigned(node)
    assert Cidr.parse(other).network != Cidr.parse(f"{first}/30").network


def test_a_requested_address_that_is_in_use_on_this_host_is_not_replaced_by_another(node):
    """Whoever names it shall learn of it: the network plugin's error is the original's."""
    used(node, "10.244.0.5")
    assert assigned(node, args=wanted("10.244.0.5")) == ["10.244.0.5/32"]


# --- DEL -------------------------------------------------------------------------------------------------------------


def test_del_frees_whatever_the_container_holds(node):
    """spec: ipam 5: `IP` is ignored."""
    node.assign(ipam=ipam(assign_ipv6="true"))
    node.assign(args=wanted("10.244.0.5"))
    node.assign("c2")
    node.release(args=wanted("10.244.0.77"))
    assert set(node.holders().values()) == {"net1.c2"}
    assert node.counts() == {"net1.c2": {"10.244.0.0/26": 1}}


def test_del_of_a_container_that_holds_nothing_succeeds_and_says_so_in_the_log(node):
    """K01."""
    node.release()
    assert node.log.shown("warning") == ["Asked to release a container that holds no address handle=net1.c1"]


def test_other_networks_addresses_of_the_container_stay(node):
    node.assign(name="net1")
    node.assign(name="net2")
    node.release(name="net1")
    assert set(node.holders().values()) == {"net2.c1"}


def test_addresses_whose_handle_record_is_gone_are_freed_as_well(node):
    """The blocks are the truth, the handle an index to them."""
    node.assign(ipam=ipam(assign_ipv6="true"))
    node.assign("c2")
    node.remove(HandleKey("net1.c1"))
    node.release()
    assert node.holders() == {"10.244.0.129": "net1.c2"}
    assert node.log.shown("warning") == ["Freed addresses whose handle record was gone handle=net1.c1"]


@pytest.mark.parametrize("damaged", [False, True])
def test_without_a_handle_record_the_nodes_own_blocks_are_searched_where_listings_go_page_by_page(node, damaged):
    """A damaged block hides nothing but itself (K03); an affinity without a block nothing at all."""
    node.datastore.lists_in_one_go = False
    node.add_block("10.244.0.0/30", OWNER, ("net1.c1", 2))
    node.put(AffinityKey(OWNER, Cidr.parse("10.244.0.8/30")), Affinity("pending"))
    if damaged:
        node.add_block("10.244.0.4/30")
        node.datastore.load({key_text(BlockKey(Cidr.parse("10.244.0.4/30"))): "<html>"})
    node.release()
    assert node.holders() == {}
    assert len(node.log.shown("error")) == int(damaged)


@pytest.mark.parametrize(("args", "legacy"), [(CniArgs(), "c1"), (POD, "shop.web-0")])
def test_handles_of_old_versions_are_released_where_there_is_no_other(node, args, legacy):
    node.add_block(BLOCK4, None, (legacy, 1))
    node.put(HandleKey(legacy), Handle({Cidr.parse(BLOCK4): 1}))
    node.release(args=args)
    assert (node.holders(), node.counts()) == ({}, {})
    assert node.log.shown("warning") == []


def test_a_del_that_cannot_reach_the_datastore_lets_go_of_the_lock(node):
    node.assign()
    node.fail("fetch", HandleKey)
    with pytest.raises(Unavailable):
        node.release()
    assert not node.lock.held_now


# --- CHECK and -t ----------------------------------------------------------------------------------------------------


def test_check_without_a_previous_result_has_nothing_to_compare(node):
    calls = dict(node.datastore.calls)
    check_addresses(node.call("CHECK"), node.runtime())
    assert node.datastore.calls == calls


def test_a_ready_cluster_passes_the_connection_test(node):
    connection.check_connection(NetConf(), node.runtime(), Deadline(60.0))


def test_the_connection_test_says_what_add_would_say(node):
    node.set_ready(ready=False)
    with pytest.raises(CniError, match="Calico is currently not ready to process requests"):
        connection.check_connection(NetConf(), node.runtime(), Deadline(60.0))
    node.remove(ClusterInformationKey("default"))
    with pytest.raises(CniError, match="error getting ClusterInformation"):
        connection.check_connection(NetConf(), node.runtime(), Deadline(60.0))


def test_the_connection_test_says_why_the_datastore_is_away(node):
    node.fail("fetch", ClusterInformationKey, Unavailable("no route to host"))
    with pytest.raises(Unavailable, match="error getting ClusterInformation: no route to host"):
        connection.check_connection(NetConf(), node.runtime(), Deadline(60.0))


def test_the_connection_test_waits_two_seconds(node):
    class Silent(type(node.datastore)):
        def fetch(self, *needs, deadline):
            node.clock.sleep(deadline.left(node.clock.monotonic()))
            raise Expired("the datastore")

    with pytest.raises(Unavailable, match=r"error getting ClusterInformation: (context )?deadline exceeded"):
        connection.check_connection(NetConf(), node.runtime(datastore=lambda: Silent(node.clock)), Deadline(60.0))
    assert node.clock.monotonic() == 2
