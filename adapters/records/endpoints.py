"""WorkloadEndpoints and Profiles ↔ JSON text, and the one profile that exists without being stored.

Invariant: every spec member of an endpoint is absent when empty; a port has all five of its members. A rule is
rewritten with every member that it was read with; only a source that is nothing but a selector becomes
`Rule.source_selector`.
"""

from __future__ import annotations

from adapters.records.members import Members, labels_text, object_text, texts_text
from adapters.records.resources import encode_resource, open_resource, texts_members
from domain.ipam.address import Cidr
from domain.json_text import dumps
from domain.resource import Metadata
from domain.workload.endpoint import Nat, Port, Profile, Rule, WorkloadEndpoint


def _encode_port(port: Port) -> str:
    protocol = port.protocol if _is_number(port.protocol) else dumps(port.protocol)  # a number names a protocol too
    known = [
        ("name", dumps(port.name)),
        ("protocol", protocol),
        ("port", str(port.port)),
        ("hostPort", str(port.host_port)),
        ("hostIP", dumps(port.host_ip)),
    ]
    return object_text(known)


def _is_number(text: str) -> bool:
    """Whether JSON has a number that is spelled so."""
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")


def _decode_port(members: Members) -> Port:
    protocol = members.take("protocol")
    return Port(
        name=members.text("name"),
        protocol="" if protocol is None else str(protocol),
        port=members.number("port"),
        host_port=members.number("hostPort"),
        host_ip=members.text("hostIP"),
    )


def _encode_nat(nat: Nat) -> str:
    return object_text([("internalIP", dumps(nat.internal)), ("externalIP", dumps(nat.external))])


def _lists(endpoint: WorkloadEndpoint) -> dict[str, str]:
    """The members that are lists, empty text where there is nothing to write."""
    return {
        "ipNetworks": texts_text([str(network) for network in endpoint.ip_networks]) if endpoint.ip_networks else "",
        "ipNATs": "[" + ",".join([_encode_nat(nat) for nat in endpoint.ip_nats]) + "]" if endpoint.ip_nats else "",
        "profiles": texts_text(endpoint.profiles) if endpoint.profiles else "",
        "ports": "[" + ",".join([_encode_port(port) for port in endpoint.ports]) + "]" if endpoint.ports else "",
        "allowSpoofedSourcePrefixes": (
            texts_text(endpoint.allowed_source_prefixes) if endpoint.allowed_source_prefixes else ""
        ),
    }


def encode_endpoint(endpoint: WorkloadEndpoint) -> str:
    lists = _lists(endpoint)
    known = texts_members(
        [
            ("orchestrator", endpoint.orchestrator),
            ("workload", endpoint.workload),
            ("node", endpoint.node),
            ("containerID", endpoint.container_id),
            ("pod", endpoint.pod),
            ("endpoint", endpoint.endpoint),
            ("serviceAccountName", endpoint.service_account),
        ]
    )
    known += [("ipNetworks", lists["ipNetworks"]), ("ipNATs", lists["ipNATs"])]
    known += texts_members([("ipv4Gateway", endpoint.ipv4_gateway), ("ipv6Gateway", endpoint.ipv6_gateway)])
    known.append(("profiles", lists["profiles"]))
    known += texts_members([("interfaceName", endpoint.interface_name), ("mac", endpoint.mac)])
    known += [(name, lists[name]) for name in ("ports", "allowSpoofedSourcePrefixes")]
    known.append(("qosControls", endpoint.qos_controls))
    spec = object_text([(name, text) for name, text in known if text], endpoint.spec_unknown)
    return encode_resource("WorkloadEndpoint", endpoint.metadata, spec, unknown=endpoint.unknown)


def decode_endpoint(text: str) -> WorkloadEndpoint:
    members, metadata = open_resource(text)
    spec = members.inner("spec")
    return WorkloadEndpoint(
        metadata=metadata,
        orchestrator=spec.text("orchestrator"),
        workload=spec.text("workload"),
        node=spec.text("node"),
        container_id=spec.text("containerID"),
        pod=spec.text("pod"),
        endpoint=spec.text("endpoint"),
        service_account=spec.text("serviceAccountName"),
        ip_networks=tuple([Cidr.parse_lenient(one) for one in spec.texts("ipNetworks")]),
        ip_nats=tuple([Nat(one.text("internalIP"), one.text("externalIP")) for one in spec.objects("ipNATs")]),
        ipv4_gateway=spec.text("ipv4Gateway"),
        ipv6_gateway=spec.text("ipv6Gateway"),
        profiles=spec.texts("profiles"),
        interface_name=spec.text("interfaceName"),
        mac=spec.text("mac"),
        ports=tuple([_decode_port(one) for one in spec.objects("ports")]),
        allowed_source_prefixes=spec.texts("allowSpoofedSourcePrefixes"),
        qos_controls=spec.json("qosControls", ""),
        unknown=members.rest(),
        spec_unknown=spec.rest(),
    )


DEFAULT_ALLOW = Profile(Metadata("projectcalico-default-allow"), (Rule("Allow"),), (Rule("Allow"),))


def _encode_rule(rule: Rule) -> str:
    known = [("action", dumps(rule.action))]
    if rule.source_selector:
        known.append(("source", object_text([("selector", dumps(rule.source_selector))])))
    return object_text(known, rule.unknown)


def _decode_rule(members: Members) -> Rule:
    action = members.text("action")
    source = members.take("source")
    selector = ""
    if isinstance(source, dict) and list(source) == ["selector"] and isinstance(source["selector"], str):
        selector = source["selector"]
    kept = (("source", dumps(source)),) if source is not None and not selector else ()
    return Rule(action, selector, (*kept, *members.rest()))


def _encode_rules(name: str, rules: tuple[Rule, ...]) -> list[tuple[str, str]]:
    return [(name, "[" + ",".join([_encode_rule(rule) for rule in rules]) + "]")] if rules else []


def encode_profile(profile: Profile) -> str:
    known = [*_encode_rules("ingress", profile.ingress), *_encode_rules("egress", profile.egress)]
    if profile.labels_to_apply:
        known.append(("labelsToApply", labels_text(profile.labels_to_apply)))
    spec = object_text(known, profile.spec_unknown)
    return encode_resource("Profile", profile.metadata, spec, unknown=profile.unknown)


def decode_profile(text: str) -> Profile:
    members, metadata = open_resource(text)
    spec = members.inner("spec")
    return Profile(
        metadata=metadata,
        ingress=tuple([_decode_rule(one) for one in spec.objects("ingress")]),
        egress=tuple([_decode_rule(one) for one in spec.objects("egress")]),
        labels_to_apply=spec.labels("labelsToApply"),
        unknown=members.rest(),
        spec_unknown=spec.rest(),
    )
