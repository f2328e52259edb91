"""Profiles ↔ JSON text, and the one profile that exists without being stored.

Invariant: a rule is rewritten with every member that it was read with; only a source that is nothing but a selector
becomes `Rule.source_selector`.
"""

from __future__ import annotations

from adapters.records.members import Members, labels_text, object_text
from adapters.records.resources import encode_resource, open_resource
from domain.json_text import dumps
from domain.resource import Metadata
from domain.workload.profiles import Profile, Rule

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
