"""What is asked of allocation and what came of it, its owners and its errors (LIB-181 to LIB-185)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import Affinity, Attribute, Handle, HostReservedAttr, Owner
from domain.ipam.errors import BlockLimitReached, HandleFull, IpamError, StillContended
from domain.ipam.pools import AllocationConfig, IPAMConfiguration
from domain.ipam.request import Allocation, Assigned, AssignRequest
from domain.resource import Metadata

BLOCK = Cidr.parse("10.0.0.64/26")
STRICT = "No more free affine blocks and strict affinity enabled"
LIMIT = "Need to allocate an IPAM block but could not - limit of 20 blocks reached for this node"
EXHAUSTED = "No IPs available in pools: [192.168.0.0/24 192.168.1.0/24]"
NONE_OF_ONE = "Assigned 0 out of 1 requested IPv4 addresses"


@pytest.mark.parametrize(
    ("got", "requested", "messages", "text"),
    [
        pytest.param(1, 1, (), "", id="LIB-181"),
        pytest.param(256, 256, (), "", id="LIB-182"),
        pytest.param(0, 1, (STRICT,), f"{NONE_OF_ONE}; {STRICT}", id="LIB-183"),
        pytest.param(0, 1, (LIMIT,), f"{NONE_OF_ONE}; {LIMIT}", id="LIB-184"),
        pytest.param(0, 1, (EXHAUSTED,), f"{NONE_OF_ONE}; {EXHAUSTED}", id="LIB-185"),
        pytest.param(0, 1, ("a", "b"), f"{NONE_OF_ONE}; a; b", id="messages keep their order"),
        pytest.param(0, 1, (), NONE_OF_ONE, id="no message"),
    ],
)
def test_a_shortfall_says_what_was_missing_and_why(got, requested, messages, text):
    allocation = (Allocation(BLOCK, 0, 1),) * got
    assert Assigned(4, requested, allocation, messages).shortfall == text


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        pytest.param((), f"{NONE_OF_ONE}; HostReservedAttr: windows-reserved-ipam-handle", id="LIB-186"),
        pytest.param(
            (STRICT, EXHAUSTED),
            f"{NONE_OF_ONE}; {STRICT}; {EXHAUSTED}; HostReservedAttr: windows-reserved-ipam-handle",
            id="LIB-187",
        ),
    ],
)
def test_a_shortfall_says_that_the_host_keeps_addresses_for_itself(messages, text):
    assert Assigned(4, 1, (), messages, HostReservedAttr(3, 1)).shortfall == text


@pytest.mark.parametrize(
    ("version", "host_reserved", "longest"),
    [(4, None, 32), (6, None, 128), (4, (3, 1), 29), (6, (3, 1), 125), (4, (2, 1), 30), (4, (32, 33), 25)],
)
def test_what_the_host_keeps_must_leave_room_in_a_block(version, host_reserved, longest):
    """spec: ipam 7, step 1."""
    request = AssignRequest(
        Owner("host", "n"),
        "h",
        {},
        {},
        host_reserved={version: HostReservedAttr(*host_reserved)} if host_reserved else {},
    )
    assert request.longest_block(version) == longest


@pytest.mark.parametrize("host_reserved", [(0, 0), (-1, 5), (5, -1)])
def test_a_host_that_keeps_nothing_is_a_mistake(host_reserved):
    request = AssignRequest(Owner("host", "n"), "h", {}, {}, host_reserved={4: HostReservedAttr(*host_reserved)})
    with pytest.raises(IpamError, match=r"^HostReservedAttr has wrong parameters$"):
        request.longest_block(4)
    assert request.longest_block(6) == 128


def test_a_taken_address_is_answered_with_its_blocks_mask_or_alone():
    allocation = Allocation(BLOCK, 5, 7)
    assert str(allocation.address) == "10.0.0.69"
    assert str(allocation.in_block) == "10.0.0.69/26"
    assert str(allocation.alone) == "10.0.0.69/32"
    assert allocation.answer == allocation.in_block
    held = allocation.replace(held_before=True)
    assert held.answer == held.alone


def test_a_request_knows_the_attribute_it_leaves_behind():
    request = AssignRequest(Owner("host", "n"), "net1.c1", {"node": "n"}, {4: 1})
    assert request.attribute == Attribute("net1.c1", {"node": "n"})
    assert (request.use, request.max_blocks, request.max_per_handle) == ("Workload", 0, 0)


@pytest.mark.parametrize("text", ["host:node1", "virtual:load-balancer", "host:a:b", "host:"])
def test_an_owner_is_read_as_it_is_written(text):
    assert str(Owner.parse(text)) == text
    assert Owner.parse("host:a:b").name == "a:b"


def test_errors_carry_code_and_details():
    error = IpamError("no", code=7, details="because")
    assert (str(error), error.code, error.details) == ("no", 7, "because")
    assert (IpamError("no").code, IpamError("no").details) == (999, "")


def test_the_block_limits_error_is_the_originals_and_names_the_limit():
    """F05: the details say what the text does not."""
    error = BlockLimitReached(20, 21, "the default")
    assert str(error) == "cannot allocate new block due to per host block limit"
    assert error.details == "the node owns 21 blocks and may own 20 (the default)"
    assert error.limit == 20


def test_a_full_handle_is_told_in_the_originals_words():
    assert str(HandleFull("h", 1, 1)) == "handle h already has 1 allocation(s), cannot allocate more (maxAlloc=1)"


def test_lost_races_name_the_contended_record():
    error = StillContended("BlockKey(cidr=10.0.0.0/26)")
    assert str(error) == "Max retries hit - excessive concurrent IPAM requests"
    assert error.details == "last contended record: BlockKey(cidr=10.0.0.0/26)"


def test_defaults_are_those_of_a_cluster_without_configuration():
    """spec: ipam 6."""
    config = AllocationConfig()
    assert (config.strict_affinity, config.auto_allocate_blocks, config.max_blocks_per_host) == (False, True, 0)
    assert (config.kubevirt_persistence, config.cooldown_seconds) == ("Enabled", 0)
    assert IPAMConfiguration(Metadata("default")).kubevirt_persistence is None
    assert (Affinity("pending").deleted, Handle({}).deleted) == (False, False)
