"""What `tortie doctor` makes of what it has seen: each judgement by itself."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from domain.cni.netconf import IpamSettings
from domain.doctor.configuration import chosen_file, judge_configuration, judge_others, read_network_file
from domain.doctor.credentials import TokenTimes, judge_token, span, token_times
from domain.doctor.diagnosis import ERROR, OK, WARNING, count, listed, ok
from domain.doctor.files import (
    KeptBefore,
    judge_lock,
    judge_log,
    judge_metrics,
    judge_mode,
    judge_plugins,
    judge_replaced,
    judge_versions,
)
from domain.doctor.kernel import (
    BRIDGE,
    DISABLE_IPV6,
    NETNS,
    NFTABLES,
    RP_FILTER_ALL,
    VETH,
    VXLAN,
    judge_features,
    judge_mtu,
    judge_route,
    judge_settings,
)
from domain.doctor.leftovers import Alive, Reserved, Strays, judge_reservations, judge_strays, strays
from domain.doctor.records import judge_node_name, judge_node_record, judge_pools, tunnel_takes, versions_wanted
from domain.doctor.seen import CredentialsSeen, FileSeen, Uplink
from domain.ipam.address import Cidr
from domain.ipam.pools import Pool
from domain.json_text import dumps
from domain.linux.link import Link
from domain.moment import SECOND
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint

FILE, FOLDER = FileSeen("a regular file", 0o644), FileSeen("a folder", 0o755)
PROGRAM, SECRET = FILE.replace(mode=0o755), FILE.replace(mode=0o600)


def states(diagnoses):
    """Each one's state, once its advice is as the state demands."""
    diagnoses = diagnoses if isinstance(diagnoses, tuple) else (diagnoses,)
    for diagnosis in diagnoses:
        assert bool(diagnosis.advice) == (diagnosis.state != OK)
        assert diagnosis.seen
    return [diagnosis.state for diagnosis in diagnoses]


def network(path, *types, name="net1", **more):
    return read_network_file(path, dumps({"name": name, "plugins": [{"type": type, **more} for type in types]}))


class TestConfiguration:
    def test_a_list_has_a_section_for_each_plugin_as_the_plugin_gets_it(self):
        file = read_network_file(
            "a",
            '{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "calico", "ipam": {"type": "calico-ipam"}}]}',
        )
        assert file.section("calico")["cniVersion"] == "1.0.0"
        assert file.types == ("calico", "calico-ipam")
        assert file.section("portmap") is None

    def test_a_single_configuration_is_a_list_of_one(self):
        assert read_network_file("a", '{"name": "n", "type": "calico"}').types == ("calico",)

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("{", "not JSON"),
            ("[]", "not a JSON object"),
            ('{"type": "calico"}', 'no "name"'),
            ('{"name": 1}', 'no "name"'),
            ('{"name": "n", "plugins": {}}', '"plugins" has to be a list'),
            ('{"name": "n", "plugins": []}', '"plugins" has to be a list'),
            ('{"name": "n", "plugins": [1]}', 'no "type"'),
            ('{"name": "n", "plugins": [{"type": ""}]}', 'no "type"'),
            ('{"name": "n"}', 'no "type"'),
        ],
    )
    def test_what_is_no_configuration_is_a_fault_of_its_file(self, text, fault):
        file = read_network_file("a", text)
        assert fault in file.fault
        assert not file.is_ours

    def test_the_first_with_calico_is_chosen_before_one_of_the_bridge(self):
        bridge, calico = network("10", "my-custom-cni"), network("20", "calico")
        assert chosen_file([bridge, calico]) == calico
        assert chosen_file([network("5", "flannel"), bridge]) == bridge
        assert chosen_file([network("5", "flannel")]) is None

    def test_it_is_in_order_if_there_is_one(self):
        assert states(judge_configuration("/d", [network("10", "calico", "portmap")])) == [OK]

    @pytest.mark.parametrize(
        ("files", "words"),
        [
            ([], "/d has no network configuration"),
            ([network("5", "flannel")], "5 (flannel)"),
            ([read_network_file("6", "{")], "6 (not JSON"),
        ],
    )
    def test_without_one_it_says_what_there_is(self, files, words):
        found = judge_configuration("/d", files)
        assert states(found) == [ERROR]
        assert words in found.seen
        assert judge_others(files) == ()

    def test_nothing_before_ours_is_in_order(self):
        assert states(judge_others([network("10", "calico"), network("20", "flannel")])) == [OK]

    def test_multus_sorts_before_everybody_and_is_no_rival(self):
        files = [network("00", "multus"), network("10", "calico")]
        assert states(judge_others(files)) == [OK]
        assert states(judge_others([read_network_file("05", "{"), *files])) == [ERROR]

    @pytest.mark.parametrize("before", [network("05", "flannel"), read_network_file("05", "{")])
    def test_what_sorts_before_ours_is_an_error(self, before):
        (found,) = judge_others([before, network("10", "calico")])
        assert states(found) == [ERROR]
        assert "05" in found.seen


class TestFiles:
    @pytest.mark.parametrize(
        ("seen", "secret", "state"),
        [
            (FILE, False, None),
            (FILE, True, WARNING),
            (SECRET, True, None),
            (FILE.replace(mode=0o666), False, ERROR),
            (FILE.replace(mode=0o620), True, ERROR),
            (SECRET.replace(owner=1000), True, WARNING),
        ],
    )
    def test_who_may_write_and_read(self, seen, secret, state):
        found = judge_mode("c", "/f", seen, secret=secret)
        assert (found.state if found else None) == state

    def test_programs_that_are_there_are_in_order(self):
        assert states(judge_plugins("/b", ["calico", "calico-ipam"], {"calico": PROGRAM, "calico-ipam": PROGRAM})) == [
            OK
        ]

    @pytest.mark.parametrize(
        ("seen", "words"),
        [
            (None, "/b/portmap is not there"),
            (FOLDER, "is a folder"),
            (FILE, "mode 0644: it cannot be executed"),
            (PROGRAM.replace(mode=0o777), "others than root can write"),
        ],
    )
    def test_a_program_that_cannot_run_is_an_error(self, seen, words):
        (found,) = judge_plugins("/b", ["calico", "portmap"], {"calico": PROGRAM, "portmap": seen})
        assert states(found) == [ERROR]
        assert words in found.seen

    def test_advice_knows_whose_program_it_is(self):
        calico, portmap = judge_plugins("/b", ["calico", "portmap"], {})
        assert "tortie install" in calico.advice
        assert "CNI project" in portmap.advice

    def test_versions(self):
        assert states(judge_versions({"calico": "v1", "calico-ipam": "v1"}, {})) == [OK]
        assert states(judge_versions({"calico": "v1", "calico-ipam": "v2"}, {})) == [WARNING]
        assert states(judge_versions({"calico": "v1"}, {"tortie": "no"})) == [ERROR]
        assert states(judge_versions({"calico": "v1"}, {"tortie": "no"}, elsewhere=True)) == [WARNING]
        assert judge_versions({}, {}) == ()

    def test_the_lock_may_be_missing_and_nothing_but_a_file(self):
        assert states(judge_lock("/l", None)) == [OK]
        assert states(judge_lock("/l", SECRET)) == [OK]
        assert states(judge_lock("/l", FOLDER)) == [ERROR]
        assert states(judge_lock("/l", FILE.replace(mode=0o666))) == [ERROR]

    def test_the_log(self):
        assert states(judge_log("", None, "", None)) == [OK]
        assert states(judge_log("/v/l", None, "/v", None)) == [OK]
        assert states(judge_log("/v/l", FILE, "/v", FOLDER)) == [OK]
        assert states(judge_log("/v/l", None, "/v", FILE)) == [ERROR]
        assert states(judge_log("/v/l", FOLDER, "/v", FOLDER)) == [ERROR]
        assert states(judge_log("/v/l", FILE, "/v", FOLDER.replace(mode=0o777))) == [ERROR]
        assert states(judge_log("/v/l", FILE.replace(mode=0o666), "/v", FOLDER)) == [ERROR]

    @pytest.mark.parametrize(
        ("folder", "seen", "file", "state", "words"),
        [
            ("m", None, None, WARNING, "no absolute path"),
            ("/m", None, None, OK, "the first call makes it"),
            ("/m", FOLDER, None, OK, "the first call makes it"),
            ("/m", FILE, None, WARNING, "/m is a regular file: no call is counted"),
            ("/m", FOLDER, FILE, OK, "/m/tortie_cni.prom, 0 bytes"),
            ("/m", FOLDER, FOLDER, WARNING, "/m/tortie_cni.prom is a folder"),
        ],
    )
    def test_the_metrics(self, folder, seen, file, state, words):
        found = judge_metrics(folder, seen, file)
        assert (found.state, words in found.seen) == (state, True)
        assert bool(found.advice) is (state == WARNING)

    @pytest.mark.parametrize(
        ("seen", "names", "staged", "state", "words"),
        [
            (None, (), (), OK, "nothing is kept"),
            (FOLDER, (), (), OK, "removes what was installed"),
            (FOLDER, ("calico",), (), OK, "puts back /r/calico"),
            (FOLDER, ("calico",), ("/b/.tortie-1.tmp",), WARNING, "/b/.tortie-1.tmp"),
            (FILE, (), (), ERROR, "/r is a regular file"),
            (FOLDER.replace(mode=0o777), (), (), ERROR, "others than root"),
        ],
    )
    def test_what_an_installation_replaced(self, seen, names, staged, state, words):
        (found,) = judge_replaced([KeptBefore("/q", None), KeptBefore("/r", seen, names)], staged)
        assert (states(found), words in found.seen) == ([state], True), found


def jwt(**claims):
    return f"x.{urlsafe_b64encode(dumps(claims).encode()).decode().rstrip('=')}.y"


class TestToken:
    NOW = 1_000_000

    def judged(self, **claims):
        return judge_token(CredentialsSeen("s", "a token", jwt(**claims)), self.NOW * SECOND)

    @pytest.mark.parametrize("token", ["abc", "a.b", "a.!.c", "a.e30.c", "a.W10.c", f"a.{'/' * 5}.c", "a.gA.c"])
    def test_what_is_no_jwt_has_no_times(self, token):
        assert token_times(token) == TokenTimes()

    @pytest.mark.parametrize("claim", ["soon", None, True, [1], -1, 10**15])
    def test_a_time_is_a_number(self, claim):
        assert token_times(jwt(exp=claim, iat=5.5)) == TokenTimes(5, None)

    @pytest.mark.parametrize(
        ("issued", "expires", "state", "words"),
        [
            (-100, 86_300, OK, "1 min 40 s old of 1 d"),
            (-40_000, 46_400, OK, "11 h 6 min old"),
            (-50_000, 36_400, WARNING, "nobody has renewed it"),
            (-86_400, 0, ERROR, "expired"),
            (-90_000, -3600, ERROR, "1 h ago"),
            (300, 86_700, WARNING, "from now by this host's clock"),
            (30, 86_430, OK, "0 s old"),
        ],
    )
    def test_its_age(self, issued, expires, state, words):
        found = self.judged(iat=self.NOW + issued, exp=self.NOW + expires)
        assert (states(found), words in found.seen) == ([state], True), found

    def test_one_without_an_age_is_good_until_its_end(self):
        assert states(self.judged(exp=self.NOW + 5)) == [OK]

    def test_others_than_tokens_have_no_age(self):
        assert "client certificate" in judge_token(CredentialsSeen("s", "a client certificate"), 0).seen
        assert states(judge_token(CredentialsSeen("s", "a token", "opaque"), 0)) == [OK]

    @pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (60, "1 min"), (90_061, "1 d 1 h"), (3601, "1 h")])
    def test_spans(self, seconds, text):
        assert span(seconds) == text


class TestKernel:
    def test_all_there(self):
        (found,) = judge_features({}, {})
        assert states(found) == [OK]
        assert found.seen == "network namespaces, veth, bridge, vxlan, nftables"

    def test_what_nobody_needs_may_be_missing(self):
        (found,) = judge_features({VXLAN: "the kernel has none"}, {VETH: "every container"})
        assert states(found) == [OK]
        assert found.seen.endswith("; not needed here: vxlan (the kernel has none)")

    def test_what_somebody_needs_may_not(self):
        needs = dict.fromkeys((NETNS, VETH, BRIDGE, NFTABLES), "somebody")
        found = judge_features(dict.fromkeys(needs, "none"), needs)
        assert states(found) == [ERROR] * 4
        assert [one.advice for one in found][1:] == [
            "`modprobe veth`, or a kernel that has it",
            "`modprobe bridge`, or a kernel that has it",
            "`modprobe nf_tables`, or a kernel that has it",
        ]

    ON = {"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1", RP_FILTER_ALL: "1", DISABLE_IPV6: "0"}

    @pytest.mark.parametrize(
        ("change", "versions", "expected"),
        [
            ({}, (4, 6), [OK, OK]),
            ({"net.ipv4.ip_forward": "0"}, (4, 6), [ERROR, OK]),
            ({"net.ipv4.ip_forward": "0"}, (6,), [OK, OK]),
            ({"net.ipv6.conf.all.forwarding": "0", DISABLE_IPV6: "1"}, (4, 6), [ERROR, ERROR, OK]),
            ({"net.ipv6.conf.all.forwarding": "0"}, (4,), [OK, OK]),
            ({"net.ipv4.ip_forward": ""}, (4,), [WARNING, OK]),
            ({"net.ipv4.ip_forward": "0", "net.ipv6.conf.all.forwarding": ""}, (4, 6), [ERROR, WARNING, OK]),
            ({RP_FILTER_ALL: "2"}, (4,), [OK, WARNING]),
            ({RP_FILTER_ALL: ""}, (4,), [OK, WARNING]),
        ],
    )
    def test_settings(self, change, versions, expected):
        assert states(judge_settings({**self.ON, **change}, versions)) == expected

    def test_a_default_route_of_ipv4(self):
        assert states(judge_route([Uplink(4, "eth0"), Uplink(4, "eth0")])) == [OK]
        assert states(judge_route([Uplink(6, "eth0")])) == [ERROR]

    @pytest.mark.parametrize(
        ("mtu", "uplinks", "takes", "state"),
        [
            (1500, [Uplink(4, "eth0", 1500)], (0, ""), OK),
            (0, [Uplink(4, "eth0", 1500)], (0, ""), OK),
            (0, [Uplink(4, "eth0", 1450), Uplink(6, "eth1", 9000)], (0, ""), WARNING),
            (1450, [Uplink(4, "eth0", 1500)], (50, "VXLAN"), OK),
            (1460, [Uplink(4, "eth0", 1500)], (50, "VXLAN"), WARNING),
            (9000, [], (0, ""), OK),
            (9000, [Uplink(4, "eth0", 0)], (0, ""), OK),
        ],
    )
    def test_mtu(self, mtu, uplinks, takes, state):
        assert states(judge_mtu(mtu, "a file", uplinks, takes)) == [state]


def pool(name, cidr, **more):
    return Pool(Metadata(name), cidr, **more)


class TestRecords:
    POOLS = (pool("p4", "10.0.0.0/16"), pool("p6", "fd00::/48"), pool("off", "10.9.0.0/16", disabled=True))

    @pytest.mark.parametrize(
        ("ipam", "versions"),
        [
            (IpamSettings(), (4,)),
            (IpamSettings(assign_ipv6="true"), (4, 6)),
            (IpamSettings(assign_ipv4="false", assign_ipv6="true"), (6,)),
        ],
    )
    def test_which_versions(self, ipam, versions):
        assert versions_wanted(ipam) == versions

    def test_the_name(self):
        assert states(judge_node_name("n", "somewhere", None)) == [OK]
        assert states(judge_node_name("n", "somewhere", "n")) == [OK]
        assert states(judge_node_name("n", "somewhere", "m")) == [ERROR]
        assert states(judge_node_name("", "somewhere", None)) == [ERROR]

    def test_its_record(self):
        assert states(judge_node_record("n", is_there=True)) == [OK]
        assert "tortie init --node n" in judge_node_record("n", is_there=False).advice

    def test_pools_that_serve(self):
        found, serving = judge_pools(self.POOLS, "n", {}, IpamSettings(assign_ipv6="true"))
        assert states(found) == [OK, OK]
        assert [one.metadata.name for one in serving] == ["p4", "p6"]

    def test_none_that_serves(self):
        found, serving = judge_pools(self.POOLS[2:], "n", {}, IpamSettings(assign_ipv6="true"))
        assert (states(found), serving) == ([ERROR, ERROR], ())
        assert "off" in found[0].seen

    def test_one_version_may_be_optional(self):
        ipam = IpamSettings(assign_ipv6="true", optional_families=True)
        assert states(judge_pools(self.POOLS[:1], "n", {}, ipam)[0]) == [OK, OK]

    @pytest.mark.parametrize(
        ("named", "state"), [("p4", OK), ("10.0.0.0/16", OK), ("off", ERROR), ("10.7.0.0/16", ERROR), ("p6", ERROR)]
    )
    def test_pools_that_the_configuration_names(self, named, state):
        assert states(judge_pools(self.POOLS, "n", {}, IpamSettings(ipv4_pools=(named,)))[0]) == [state]

    def test_what_tunnels_take(self):
        assert tunnel_takes([pool("a", "10.0.0.0/16", vxlan_mode="Never")]) == (0, "")
        assert tunnel_takes([pool("a", "10.0.0.0/16", ipip_mode="Always", vxlan_mode="Never")]) == (20, "IPIP")
        both = [pool("a", "fd00::/48", vxlan_mode="CrossSubnet"), pool("b", "10.0.0.0/16", ipip_mode="Always")]
        assert tunnel_takes(both) == (70, "VXLAN")
        assert tunnel_takes([pool("a", "?", vxlan_mode="Always")]) == (50, "VXLAN")


def link(name, kind="veth"):
    return Link(1, name, kind, up=True, mtu=1500, mac="")


ADDRESSES = (Cidr.parse("10.0.0.2/32"),)


def endpoint(name, device, node="n", container="c", networks=ADDRESSES):
    return WorkloadEndpoint(
        Metadata(name, namespace="ns"), node=node, interface_name=device, container_id=container, ip_networks=networks
    )


class TestLeftovers:
    def test_each_endpoint_with_its_device(self):
        links = [link("lo", ""), link("cali1"), link("eth0", ""), link("calidummy", "dummy"), link("vethx")]
        found = strays(links, [endpoint("a", "cali1"), endpoint("b", "cali9", node="m")], "n")
        assert not found
        assert states(judge_strays(found, 1)) == [OK, OK]

    def test_a_device_without_endpoint_and_an_endpoint_without_device(self):
        found = strays([link("cali1"), link("tap1")], [endpoint("a", "cali2")], "n", ("cali", "tap"))
        assert found == Strays(frozenset(["cali1", "tap1"]), frozenset([("ns/a", "cali2")]))
        assert states(judge_strays(found, 1)) == [WARNING, ERROR]

    def test_a_pod_without_an_address_needs_no_device_and_may_have_one(self):
        pending = [endpoint("a", "cali2", networks=()), endpoint("b", "cali3", networks=())]
        assert not strays([link("cali3")], pending, "n")

    def test_only_what_both_looks_have_found(self):
        one, two = Strays(frozenset("ab"), frozenset([("e", "d")])), Strays(frozenset("bc"))
        assert one.both(two) == Strays(frozenset("b"))

    RESERVED = Reserved("net1", "/r/net1", (("10.0.0.2", "c1"), ("10.0.0.3", "c2")))

    @pytest.mark.parametrize(
        ("alive", "state"),
        [
            (Alive(), OK),
            (Alive(results=frozenset()), WARNING),
            (Alive(frozenset(["c1"]), frozenset(["net1-c2-eth0"])), OK),
            (Alive(frozenset(["c1"]), frozenset(["net2-c2-eth0", "net1-c22-eth0"])), WARNING),
        ],
    )
    def test_reservations(self, alive, state):
        assert states(judge_reservations([self.RESERVED], alive)) == [state]

    def test_reservations_of_a_plugin_that_is_no_longer_used(self):
        (found,) = judge_reservations([self.RESERVED.replace(by_its_plugin=False)], Alive())
        assert states(found) == [WARNING]
        assert "upgrade" in found.advice

    def test_no_reservations(self):
        empty = self.RESERVED.replace(holders=(), by_its_plugin=False)
        assert states(judge_reservations([empty], Alive())) == [OK]
        assert states(judge_reservations([], Alive(results=frozenset()))) == [OK]


def test_many_are_counted():
    assert listed("abcd") == "a, b, c and 1 more"
    assert listed("abc") == "a, b, c"
    assert count([ok("a", "b")], OK) == 1
