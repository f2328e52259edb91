"""Which pods' addresses stay, and with which name (F01)."""

from __future__ import annotations

import pytest

from domain.cni.netconf import KeepAddresses, KeepAs
from domain.workload.annotations import KEEP_ADDRESSES, BadAnnotation
from domain.workload.kept_wish import BadSetting, is_name, named_by, require_sense, wished_name
from domain.workload.pod import OwnerReference, Pod

SETTINGS = KeepAddresses()


def pod(annotation="", kind="", *, controller=True):
    owners = (OwnerReference("apps/v1", kind, "web", "s1", controller),) if kind else ()
    return Pod("web-0", "shop", "u1", annotations={KEEP_ADDRESSES: annotation} if annotation else {}, owners=owners)


@pytest.mark.parametrize(
    ("made", "wish"),
    [
        (pod(), None),
        (pod(kind="ReplicaSet"), None),
        (pod(kind="StatefulSet", controller=False), None),
        (pod(kind="StatefulSet"), KeepAs("web-0", "u1", "StatefulSet/web s1")),
        (pod("false", "StatefulSet"), None),
        (pod("true"), KeepAs("web-0", "u1")),
        (pod("true", "ReplicaSet"), KeepAs("web-0", "u1", "ReplicaSet/web s1")),
        (pod("db"), KeepAs("db", "u1")),
        (pod("db", "StatefulSet"), KeepAs("db", "u1", "StatefulSet/web s1")),
    ],
)
def test_a_pod_of_such_a_controller_or_one_that_says_so(made, wish):
    assert wished_name(made, SETTINGS) == wish


def test_which_kinds_of_controllers_is_set():
    kinds = KeepAddresses(owners=("Cluster",))
    assert wished_name(pod(kind="StatefulSet"), kinds) is None
    assert wished_name(pod(kind="Cluster"), kinds) == KeepAs("web-0", "u1", "Cluster/web s1")
    assert wished_name(pod(kind="StatefulSet"), KeepAddresses(owners=())) is None


@pytest.mark.parametrize("name", ["True", "a.b", "-a", "a-", "ä", "a b", "a" * 64, "a/b"])
def test_a_name_that_no_record_can_have_is_refused(name):
    with pytest.raises(BadAnnotation, match="lower-case letters, digits and dashes") as told:
        wished_name(pod(name), SETTINGS)
    assert (told.value.key, told.value.raw) == (KEEP_ADDRESSES, name)
    assert named_by(pod(name)) == ""


def test_names():
    assert all(map(is_name, ("a", "0", "a-b", "a" * 63)))
    assert not is_name("")
    assert [named_by(pod(text)) for text in ("db", "true", "false", "")] == ["db", "", "", ""]


@pytest.mark.parametrize(
    ("member", "value", "limits"),
    [
        ("seconds", 0, "from 1 to 31622400"),
        ("seconds", 31622401, "from 1 to"),
        ("max_per_node", -1, "from 0 to"),
        ("max_pool_percent", 0, "from 1 to 100"),
        ("max_pool_percent", 101, "from 1 to 100"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(member, value, limits):
    with pytest.raises(BadSetting, match=rf"ipam\.keep_addresses\.{member} is {value}, and must be {limits}"):
        require_sense(SETTINGS.replace(**{member: value}))
    require_sense(SETTINGS)
