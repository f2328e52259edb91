"""Kubeconfigs that the lean reader does not understand: what the original's library reads is read."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapters.kubernetes.credentials.kubeconfig import inline_kubeconfig
from adapters.kubernetes.credentials.whole_yaml import first_document
from adapters.kubernetes.credentials.yaml_subset import parse_yaml
from patience import at_best
from ports.errors import BadConfiguration

BY_HAND = """\
%YAML 1.1
---
apiVersion: v1
kind: !!str Config
current-context: &me here
clusters:
- name: c
  cluster: &server {server: "https://10.0.0.1:6443", insecure-skip-tls-verify: true}
- name: d
  cluster:
    <<: *server
    server: https://10.0.0.2:6443
users:
- name: u
  user: {token: !token 0123}
contexts:
- name: *me
  context: {cluster: d, user: u}
---
what: ever
"""


def test_anchors_merge_keys_tags_and_a_second_document():
    with pytest.raises(ValueError, match="line 1: a directive"):
        parse_yaml(BY_HAND)
    cluster, user = inline_kubeconfig(BY_HAND, "")
    assert (cluster.server, cluster.insecure, user.token) == ("https://10.0.0.2:6443", True, "0123")


def test_keys_are_the_texts_that_they_look_like():
    assert first_document("a: &a {true: b, ~: c, 1: d}\ne: !!set {f}\ng: {<<: *a, 1: h}\ni: !!omap [j: k]") == {
        "a": {"true": "b", "~": "c", "1": "d"},
        "e": {"f": None},
        "g": {"true": "b", "~": "c", "1": "h"},
        "i": [{"j": "k"}],
    }
    extra = "as-user-extra: {a: [b], true: [c], ~: [d]}"
    text = BY_HAND.replace("token: !token 0123", f"token: !token t, {extra}")
    assert inline_kubeconfig(text, "")[1].headers == (
        ("Impersonate-Extra-a", "b"),
        ("Impersonate-Extra-true", "c"),
        ("Impersonate-Extra-~", "d"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "? \0",
        "? \x85\x01",
        "a: &a [*a]",
        "password: *planted-secret",
        "a: !!bool planted-secret",
        "? [a]\n: b",
        "&a x: \t- y",
        "a: &a {k: v}\n"
        + "".join(f"{name}: &{name} [*{chr(ord(name) - 1)}, *{chr(ord(name) - 1)}]\n" for name in "bcdefghijklmnopqrs"),
        "a: &a {k: v}\n"
        + "".join(
            f"{name}: &{name} {{<<: [*{chr(ord(name) - 1)}, *{chr(ord(name) - 1)}]}}\n" for name in "bcdefghijklmnopqrs"
        ),
    ],
)
def test_what_neither_reads_is_told_by_line_and_shows_nothing(text):
    def refuse():
        with pytest.raises(BadConfiguration, match=r"kubeconfig inline \(\d+ bytes\): line 1") as refused:
            inline_kubeconfig(text, "")
        assert "planted-secret" not in str(refused.value)

    at_best(5, refuse)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(st.characters(codec="ascii", exclude_categories=["Cc"])),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=8,
    )
)
def test_scalars_mean_what_they_mean_to_the_lean_reader(document):
    text = yaml.safe_dump({"document": document})
    assert first_document("%YAML 1.1\n---\n" + text) == {"document": document}
    assert first_document("--- &x\n" + json.dumps({"document": document})) == {"document": document}


def test_numbers_and_dates_are_texts():
    assert first_document("{a: &x 0123, b: 2026-11-30, c: 1.5, d: !!int 7, e: ~, f: yes, <<: {g: *x}}") == {
        "a": "0123",
        "b": "2026-11-30",
        "c": "1.5",
        "d": "7",
        "e": None,
        "f": True,
        "g": "0123",
    }
    assert first_document("") is None
