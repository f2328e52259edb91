"""Mesos labels, checklist UTIL-001 to UTIL-006."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.workload.mesos import mesos_endpoint_labels, mesos_namespace, sanitise_label


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("k", "k", id="UTIL-001"),
        pytest.param("-my-val", "my-val", id="UTIL-002"),
        pytest.param("$my..val", "my.val", id="UTIL-003"),
        pytest.param("m$y.val", "m-y.val", id="UTIL-004"),
        pytest.param("//my/val/", "my.val", id="UTIL-005"),
        pytest.param("some_val-with.lots*of^weird#characters", "some_val-with.lots-of-weird-characters", id="UTIL-006"),
        ("/a/b/c", "a.b.c"),
        ("a--b", "a--b"),
        ("a-.-b", "a.b"),
        ("a$$$b", "a-b"),
        ("ümlaut", "mlaut"),
        ("", ""),
        ("$", ""),
    ],
)
def test_sanitising_a_label(text, clean):
    assert sanitise_label(text) == clean


@given(st.text())
def test_a_sanitised_label_is_fit_for_kubernetes_and_stays_as_it_is(text):
    clean = sanitise_label(text)
    assert all(one.isascii() and (one.isalnum() or one in "-_.") for one in clean)
    assert clean == clean.strip(".-")
    assert ".." not in clean
    assert sanitise_label(clean) == clean


LABELS = (("k/1", "v 1"), ("projectcalico.org/namespace", "a"), ("projectcalico.org/namespace", "b/c"))


def test_the_last_namespace_label_is_the_namespace():
    assert mesos_namespace(LABELS) == "b.c"
    assert mesos_namespace(LABELS[:1]) == ""


def test_all_other_labels_go_to_the_endpoint():
    assert mesos_endpoint_labels(LABELS) == {"k.1": "v-1"}
