"""What the plugins may do is what they do: the shipped manifest gives each right that some call needs, and no other.

Stories are told with the rights of the manifest, then each again without one of those that it has used.

Invariant: the server refuses nothing of what the stories ask; every right of the manifest is asked for by one; without
any one right at least one story fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from integration.kubefaults.kube_rig import KubeRig, KubeRigs
from integration.kubefaults.rights import RBAC, Accounts, Right, right_of, rights_of, without
from integration.kubefaults.stories import STORIES
from integration.plugin.kubernetes_store import MANIFEST, Served
from services.custom_resources import GROUPS
from services.kube_client import Object


def shipped_rules() -> list[Object]:
    documents = yaml.safe_load_all(MANIFEST.read_text())
    rules: list[Object] = next(one for one in documents if one["kind"] == "ClusterRole")["rules"]
    return rules


def tell(rig: KubeRig, name: str) -> set[Right]:
    """The rights that it has used."""
    rig.proxy.forget()
    STORIES[name](rig)
    assert rig.proxy.refusals == []
    return {right_of(asked) for asked in rig.proxy.asked}


@pytest.fixture
def accounts(own: Served) -> Iterator[Accounts]:
    """Nobody may ask which groups there are but who is told so: the usual binding for all is taken away meanwhile."""
    path = f"{RBAC}/clusterrolebindings/system:discovery"
    accounts = Accounts(own.server.cluster)
    binding = own.server.client.get(path)
    own.server.client.delete(path)
    try:
        yield accounts
    finally:
        accounts.remove()
        kept = {name: binding["metadata"][name] for name in ("name", "labels", "annotations")}
        own.server.client.create(path.rpartition("/")[0], binding | {"metadata": kept})


@pytest.mark.parametrize("group", ["v1", "v3"])
def test_the_manifest_gives_what_calls_need_and_no_more(
    binaries: Path, folders: list[Path], own: Served, accounts: Accounts, group: str
) -> None:
    rules = shipped_rules()
    with ExitStack() as undo:
        rigs = KubeRigs([KubeRig(binaries, folder, undo, group, own) for folder in folders])
        rigs.one.begin(kubevirt=True)
        used = dict(zip(STORIES, rigs.each(list(STORIES), tell)))
        mine = {right for right in rights_of(rules) if right.group not in other_groups(group)}
        asked_for = set().union(*used.values())
        assert asked_for - mine == set()
        assert mine - asked_for == set(), "a right that nothing exercises"
        control = accounts.token("no-less", without(rules, Right("", "", "")))
        tokens = {right: accounts.token(f"less-{n}", without(rules, right)) for n, right in enumerate(sorted(mine))}

        def fails_without(rig: KubeRig, right: Right) -> str:
            rig.proxy.kubeconfig(rig.folder / "kubeconfig", token=tokens[right])
            concerned = [name for name in STORIES if right in used[name]]
            return next((name for name in concerned if fails(rig, name, right)), "")

        rigs.one.proxy.kubeconfig(rigs.one.folder / "kubeconfig", token=control)
        for name in STORIES:
            tell(rigs.one, name)  # rules of one right each say the same
        needed = dict(zip(tokens, rigs.each(list(tokens), fails_without)))
        assert {str(right) for right, name in needed.items() if not name} == tolerated(group), needed


def other_groups(group: str) -> set[str]:
    return {path.partition("/")[0] for name, path in GROUPS.items() if name not in (group, "kubevirt")}


def tolerated(group: str) -> set[str]:
    """Without discovery the older group is assumed, which is right where it is served."""
    return {"get /apis.-"} if group == "v1" else set()


def fails(rig: KubeRig, name: str, right: Right) -> bool:
    """And because of that right alone."""
    rig.proxy.forget()
    try:
        STORIES[name](rig)
    except AssertionError:
        refused = {right_of(asked) for asked in rig.proxy.asked if asked.status == 403}
        if refused != {right}:
            raise
        for device in rig.devices():  # it ended in the middle
            rig.net.ip("link", "del", device)
        return True
    return False
