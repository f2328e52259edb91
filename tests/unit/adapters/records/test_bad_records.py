"""K03: corrupt records are named with their fault, old spellings are read (DATASTORE G.1)."""

from __future__ import annotations

import json

import pytest

from adapters.records.codec import decode, encode
from adapters.records.members import BadRecord
from domain.ipam.address import Cidr
from domain.ipam.block import Affinity, Attribute, Block, Handle, Owner
from domain.ipam.pools import AllocationConfig
from domain.workload.endpoint import Rule
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPAMConfigurationKey,
    IPPoolKey,
    NodeKey,
    ProfileKey,
    WorkloadEndpointKey,
)
from ports.errors import Refused

META = ("uid", "creationTimestamp", "generateName", "annotations")
CIDR = Cidr.parse("10.0.0.0/30")
KEY = BlockKey(CIDR)
AFFINITY = AffinityKey(Owner("host", "n"), CIDR)
BLOCK = {
    "cidr": "10.0.0.0/30",
    "affinity": "host:n",
    "affinity_claim_time": "2026-11-29T13:06:12Z",
    "allocations": [0, None, None, None],
    "unallocated": [1, 2, 3],
    "attributes": [{"handle_id": "h", "secondary": {"node": "n"}}],
    "sequenceNumber": 1795957572345678901,
    "sequenceNumberForAllocation": {"0": 1795957572345678900},
    "deleted": False,
}


def block_text(**changes):
    return json.dumps({name: value for name, value in (BLOCK | changes).items() if value is not ...})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"allocations": [1, None, None, None]}, "allocations[0] is 1, but there are 1 attributes"),
        ({"allocations": [-1, None, None, None]}, "allocations[0] is -1, but there are 1 attributes"),
        ({"allocations": [True, None, None, None]}, "allocations[0] must be a number, not a boolean"),
        ({"allocations": ["0", None, None, None]}, "allocations[0] must be a number, not a string"),
        ({"allocations": [0, None]}, "allocations has 2 entries in a block of 4"),
        ({"allocations": ...}, "allocations has 0 entries in a block of 4"),
        ({"unallocated": [0, 1, 2, 3]}, "unallocated lists ordinal 0, which is in use"),
        ({"unallocated": [1, 1, 2]}, "unallocated lists ordinal 1 twice"),
        ({"unallocated": [4]}, "unallocated lists ordinal 4 outside of the block"),
        ({"unallocated": [1.0]}, "unallocated lists 1.0, which is no ordinal"),
        ({"unallocated": {}}, "unallocated must be a list, not an object"),
        ({"attributes": [7]}, "attributes[0] must be an object, not a number"),
        ({"attributes": [{"handle_id": 1}]}, "attributes[0].handle_id must be a string, not a number"),
        ({"attributes": [{"secondary": {"a": 1}}]}, "attributes[0].secondary.a must be a string, not a number"),
        ({"attributes": [{"secondary": []}]}, "attributes[0].secondary must be an object, not a list"),
        ({"sequenceNumber": "7"}, "sequenceNumber must be a number, not a string"),
        ({"sequenceNumber": 1.5}, "sequenceNumber must be a number, not a fraction"),
        ({"sequenceNumberForAllocation": {"x": 1}}, "sequenceNumberForAllocation has the key 'x', which is no ordinal"),
        ({"sequenceNumberForAllocation": {"0": None}}, "sequenceNumberForAllocation.0 must be a number, not null"),
        ({"sequenceNumberForAllocation": []}, "sequenceNumberForAllocation must be an object"),
        ({"deleted": "no"}, "deleted must be a boolean, not a string"),
        ({"affinity": 1}, "affinity must be a string, not a number"),
        ({"cidr": "10.0.0.0/33"}, "invalid CIDR address: 10.0.0.0/33"),
        ({"cidr": ...}, "invalid IP address: "),
        ({"cidr": "10.0.0.4/30"}, "its cidr is 10.0.0.4/30"),
    ],
)
def test_a_block_that_must_not_be_used_is_named_with_its_fault(changes, fault):
    with pytest.raises(BadRecord) as caught:
        decode(KEY, block_text(**changes))
    assert str(caught.value) == f"record ipamblock 10-0-0-0-30 is corrupt: {fault}"
    assert isinstance(caught.value, Refused)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "<html></html>", "{}x", '{"a":NaN}', "[" * 100000])
def test_text_that_is_no_json_object_is_a_bad_record(text):
    with pytest.raises(BadRecord):
        decode(KEY, text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (HandleKey("h"), '{"block":[]}'),
        (HandleKey("h"), '{"block":[1]}'),
        (HandleKey("h"), '{"block":{"10.0.0.0/30":"1"}}'),
        (HandleKey("h"), '{"block":{"x":1}}'),
        (AFFINITY, '{"state":1}'),
        (AFFINITY, '{"deleted":"maybe"}'),
        (AFFINITY, '{"deleted":1}'),
        (AFFINITY, '{"deleted":[]}'),
        (AllocationConfigKey(), '{"strict_affinity":"true"}'),
        (AllocationConfigKey(), '{"maxBlocksPerHost":true}'),
        (NodeKey("n"), '{"metadata":[]}'),
        (NodeKey("n"), '{"metadata":{"name":"n","labels":{"a":null}}}'),
        (NodeKey("n"), "{}"),
        (NodeKey("n"), '{"metadata":{"name":"m"}}'),
        (ClusterInformationKey("default"), '{"metadata":{"name":"default"},"spec":{"datastoreReady":"true"}}'),
        (IPPoolKey("p"), '{"metadata":{"name":"p"},"spec":{"allowedUses":[1]}}'),
        (IPPoolKey("p"), '{"metadata":{"name":"p"},"spec":{},"status":[]}'),
        (IPPoolKey("p"), '{"metadata":{"name":"p"},"spec":{},"status":{"conditions":[{"type":1}]}}'),
        (WorkloadEndpointKey("d", "w"), '{"metadata":{"name":"w","namespace":"d"},"spec":{"ipNetworks":["x"]}}'),
        (WorkloadEndpointKey("d", "w"), '{"metadata":{"name":"w","namespace":"e"},"spec":{}}'),
        (WorkloadEndpointKey("d", "w"), '{"metadata":{"name":"w","namespace":"d"},"spec":{"ports":[1]}}'),
    ],
)
def test_wrong_types_make_a_record_bad_and_never_crash(key, text):
    with pytest.raises(BadRecord, match=r"^record .* is corrupt: "):
        decode(key, text)


def test_an_old_block_without_sequences_claim_time_or_attributes_reads():
    old = decode(
        KEY,
        '{"cidr":"10.0.0.0/30","affinity":null,"allocations":[null,null,null,null],"unallocated":[0,1,2,3],'
        '"attributes":null,"strictAffinity":false}',
    )
    assert old == Block(CIDR, None, None, (None,) * 4, (0, 1, 2, 3), (), 0, {}, False, (("strictAffinity", "false"),))
    assert encode(KEY, old) == (
        '{"cidr":"10.0.0.0/30","affinity":null,"allocations":[null,null,null,null],"unallocated":[0,1,2,3],'
        '"attributes":null,"sequenceNumber":0,"sequenceNumberForAllocation":{},"deleted":false,"strictAffinity":false}'
    )


def test_a_block_of_one_address_may_spell_its_cidr_without_length():
    key = BlockKey(Cidr.parse("10.0.0.1/32"))
    text = '{"cidr":"10.0.0.1","allocations":[null],"unallocated":[0]}'
    assert decode(key, text).cidr == key.cidr


def test_a_new_block_has_null_attributes_and_a_used_one_a_list():
    """What the original writes: an unset list before the first allocation, an empty one after the last release."""
    new = Block(CIDR, "host:n", None, (None,) * 4, (0, 1, 2, 3), (), 7, {})
    assert '"attributes":null' in encode(KEY, new)
    assert '"attributes":[]' in encode(KEY, new.replace(unallocated=(1, 2, 3, 0)))


def test_an_attribute_omits_what_it_lacks_and_keeps_what_we_do_not_know():
    """DATASTORE C.3: cooldown, migration; G.4: unknown attribute members are preserved."""
    block = decode(KEY, block_text(attributes=[{"releasedAt": "2026-11-29T13:20:00Z", "zone": [1]}]))
    assert block.attributes == (Attribute(None, {}, None, "2026-11-29T13:20:00Z", (("zone", "[1]"),)),)
    assert '"attributes":[{"releasedAt":"2026-11-29T13:20:00Z","zone":[1]}]' in encode(KEY, block)
    moving = decode(KEY, block_text(attributes=[{"handle_id": "", "alternateOwnerAttrs": {"pod": "b"}}]))
    assert moving.attributes == (Attribute("", {}, {"pod": "b"}),)
    assert '"attributes":[{"handle_id":"","alternateOwnerAttrs":{"pod":"b"}}]' in encode(KEY, moving)


def test_sequence_entries_are_written_in_the_order_of_their_texts():
    key = BlockKey(Cidr.parse("10.0.0.0/28"))
    block = Block(key.cidr, None, None, (0,) * 16, (), (Attribute("h", {}),), 9, dict.fromkeys(range(16), 1))
    assert '"sequenceNumberForAllocation":{"0":1,"1":1,"10":1,"11":1,"12":1' in encode(key, block)


@pytest.mark.parametrize(
    ("text", "affinity"),
    [
        ("", Affinity("")),
        ("{}", Affinity("")),
        ('{"state":"confirmed"}', Affinity("confirmed")),
        ('{"state":null,"deleted":null}', Affinity("")),
        ('{"state":"pending","deleted":"true"}', Affinity("pending", True)),
        ('{"state":"pending","deleted":"false"}', Affinity("pending")),
        ('{"state":"pending","deleted":""}', Affinity("pending")),
        ('{"state":"pending","deleted":true}', Affinity("pending", True)),
    ],
)
def test_old_spellings_of_an_affinity_read(text, affinity):
    assert decode(AFFINITY, text) == affinity


def test_affinities_are_written_with_a_boolean():
    assert encode(AFFINITY, Affinity("pending", True)) == '{"state":"pending","deleted":true}'


def test_an_empty_allocation_config_switches_automatic_blocks_off():
    config = decode(AllocationConfigKey(), "{}")
    assert config == AllocationConfig(False, False, 0, None, 0)
    assert encode(AllocationConfigKey(), config) == "{}"


def test_all_settings_are_written_in_the_order_of_the_original():
    config = AllocationConfig(True, True, 3, "Disabled", 60)
    assert encode(AllocationConfigKey(), config) == (
        '{"strict_affinity":true,"auto_allocate_blocks":true,"maxBlocksPerHost":3,'
        '"kubeVirtVMAddressPersistence":"Disabled","ipCooldownSeconds":60}'
    )


def test_the_v3_configuration_always_has_its_two_booleans():
    key = IPAMConfigurationKey("default")
    text = (
        '{"kind":"IPAMConfiguration","apiVersion":"projectcalico.org/v3","metadata":{"name":"default"},'
        '"spec":{"strictAffinity":false,"autoAllocateBlocks":false}}'
    )
    assert encode(key, decode(key, text)) == text


def test_a_handle_without_blocks_reads_and_is_written_in_full():
    assert decode(HandleKey("h"), "{}") == Handle({})
    assert encode(HandleKey("h"), Handle({})) == '{"block":{},"deleted":false}'


def test_revision_and_self_link_are_never_stored():
    text = '{"metadata":{"name":"n","resourceVersion":"7","selfLink":"/x","creationTimestamp":null}}'
    assert encode(NodeKey("n"), decode(NodeKey("n"), text)) == (
        '{"kind":"Node","apiVersion":"projectcalico.org/v3","metadata":{"name":"n"},"spec":{},"status":{}}'
    )


def test_a_pool_keeps_its_whole_status():
    key = IPPoolKey("p")
    status = '{"conditions":[{"type":"Allocatable","status":"False","reason":"Terminating","message":"m"}]}'
    text = (
        '{"kind":"IPPool","apiVersion":"projectcalico.org/v3","metadata":{"name":"p",'
        '"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"cidr":"10.0.0.0/16","natOutgoing":true},'
        f'"status":{status}}}'
    )
    pool = decode(key, text)
    assert pool.deleting
    assert pool.conditions == (("Allocatable", "False"),)
    assert encode(key, pool) == text
    changed = encode(key, pool.replace(conditions=(("Allocatable", "True"),)))
    assert changed.endswith('"status":{"conditions":[{"type":"Allocatable","status":"True"}]}}')


def test_rules_keep_sources_that_are_more_than_a_selector():
    key = ProfileKey("p")
    text = (
        '{"kind":"Profile","apiVersion":"projectcalico.org/v3","metadata":{"name":"p"},"spec":{"ingress":['
        '{"action":"Allow","source":{}},{"action":"Deny","source":{"selector":"a","nets":["10.0.0.0/8"]}},'
        '{"action":"Allow","source":{"selector":"a \\u003c b"}}]}}'
    )
    profile = decode(key, text)
    assert profile.ingress[2] == Rule("Allow", "a < b")
    assert profile.ingress[1].source_selector == ""
    assert encode(key, profile) == text


def test_an_endpoint_with_everything_is_written_in_the_order_of_the_original():
    """DATASTORE C.4."""
    key = WorkloadEndpointKey("default", "node1-k8s-web--0-eth0")
    text = (
        '{"kind":"WorkloadEndpoint","apiVersion":"projectcalico.org/v3","metadata":{"name":"node1-k8s-web--0-eth0",'
        '"generateName":"web-","namespace":"default","uid":"u","creationTimestamp":"2026-11-29T13:06:13Z",'
        '"labels":{"app":"web"}},"spec":{"orchestrator":"k8s","workload":"w","node":"node1","containerID":"CID",'
        '"pod":"web-0","endpoint":"eth0","serviceAccountName":"web","ipNetworks":["172.16.178.160/32"],'
        '"ipNATs":[{"internalIP":"172.16.178.160","externalIP":"1.2.3.4"}],"ipv4Gateway":"169.254.1.1",'
        '"ipv6Gateway":"fe80::1","profiles":["kns.default","ksa.default.web"],"interfaceName":"cali0d7763386da",'
        '"mac":"ee:ee:ee:ee:ee:ee","ports":[{"name":"http","protocol":"TCP","port":8080,"hostPort":0,"hostIP":""},'
        '{"name":"","protocol":6,"port":1,"hostPort":2,"hostIP":"::"}],"allowSpoofedSourcePrefixes":["10.0.0.0/8"],'
        '"qosControls":{"ingressBandwidth":1000}}}'
    )
    assert encode(key, decode(key, text)) == text
    for protocol in ('"007"', '"²"', '"٦"', '"-6"'):  # digits, but no numbers to JSON
        odd = text.replace('"TCP"', protocol)
        assert encode(key, decode(key, odd)) == odd


@pytest.mark.parametrize(
    ("key", "member", "spare"),
    [
        *[(NodeKey("n"), name, f'{{"metadata":{{"name":"n","{name}":7}},"spec":{{}},"status":{{}}}}') for name in META],
        (NodeKey("n"), "spec", '{"metadata":{"name":"n"},"spec":[1],"status":{}}'),
        (NodeKey("n"), "status", '{"metadata":{"name":"n"},"spec":{},"status":"x"}'),
        *[
            (ClusterInformationKey("default"), name, f'{{"metadata":{{"name":"default"}},"spec":{{"{name}":[]}}}}')
            for name in ("clusterGUID", "clusterType", "calicoVersion")
        ],
        *[
            (IPPoolKey("p"), name, f'{{"metadata":{{"name":"p"}},"spec":{{"cidr":"10.0.0.0/8","{name}":7}}}}')
            for name in ("natOutgoing", "disableBGPExport", "ipipMode", "vxlanMode")
        ],
    ],
)
def test_a_wrong_type_where_no_call_looks_is_kept_and_makes_nothing_bad(key, member, spare):
    record = decode(key, spare)
    assert decode(key, encode(key, record)) == record
    written, stored = json.loads(encode(key, record)), json.loads(spare)
    assert {name: written[name] for name in stored} == stored
    assert encode(key, record).count(f'"{member}"') == 1
