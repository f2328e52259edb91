"""The node's account may do what an upgrade from host-local does, and nothing else.

Invariant: without any one right the upgrade comes to no end, and what it is refused is that right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.kubefaults.kube_rig import SPACE, KubeRig
from integration.kubefaults.rights import Accounts, Right, right_of, rights_of, without
from integration.manifests.test_kube_manifest_rights import FORBIDDEN, LONGEST_WAIT, rules_of
from integration.plugin.host import stop
from integration.plugin.kubernetes_store import Served
from integration.plugin.store import cluster_records
from services.apiserver import ApiServer
from services.custom_resources import GROUPS
from services.kube_client import Object
from services.request_faults import at, before

POOL, RANGE = "10.244.0.0/16", "10.244.7.0/24"
BLOCK = "10-244-7-0-26"
PODS = {"web-0": ["10.244.7.2"], "web-1": ["10.244.7.3", "fd00:244::7"]}  # the last is of another block


@pytest.fixture(params=["v1", "v3"])
def rig(request: pytest.FixtureRequest, binaries: Path, tmp_path: Path, server: ApiServer) -> Iterator[KubeRig]:
    with ExitStack() as undo:
        served = undo.enter_context(Served(server))
        undo.callback(server.cluster.serve)  # nothing: manifests bring definitions of their own
        undo.callback(server.cluster.clear)
        yield KubeRig(binaries, tmp_path, undo, request.param, served)


@pytest.fixture
def accounts(rig: KubeRig) -> Iterator[Accounts]:
    accounts = Accounts(rig.cluster)
    yield accounts
    accounts.remove()


def prepare(rig: KubeRig) -> None:
    """A node with pods that have addresses of host-local, and one that nobody has any more."""
    rig.served.fresh(rig.kind)
    rig.store.put_all(cluster_records(POOL))
    rig.pools("fd00:244::/48")
    rig.cluster.client.drop(f"/api/v1/nodes/{rig.node}")
    rig.cluster.add_node(rig.node, pod_cidrs=[RANGE])
    rig.cluster.add_namespace(SPACE)
    folder = rig.folder / "k8s-pod-network"
    folder.mkdir(exist_ok=True)
    for number, (name, addresses) in enumerate(PODS.items()):
        rig.cluster.add_pod(SPACE, name, node=rig.node)
        shown = [{"ip": address} for address in addresses]
        rig.cluster.set_pod_status(SPACE, name, phase="Running", podIP=addresses[0], podIPs=shown)
        for address in addresses:
            (folder / address).write_text(f"{number}" * 64 + "\r\neth0")
    (folder / "10.244.7.9").write_text("9" * 64 + "\r\neth0")


# --- what others may do meanwhile -------------------------------------------------------------------------------------


def nothing(rig: KubeRig) -> None:
    rig.proxy.forget()


def a_rival_claims_the_block(rig: KubeRig) -> None:
    """Between our claim and our block, so that the claim has to go."""
    empty = {
        "cidr": "10.244.7.0/26",
        "affinity": "host:node-b",
        "allocations": [None] * 64,
        "unallocated": list(range(64)),
        "attributes": [],
        "strictAffinity": False,
        "deleted": False,
    }
    rig.proxy.arm(at("POST", "/ipamblocks"), before(lambda: rig.cluster.add(rig.kind, "ipamblocks", BLOCK, empty)), 1)


def a_rival_takes_the_addresses(rig: KubeRig) -> None:
    """Between our counting and our writing, so that what has been counted has to go."""
    path = f"/apis/{GROUPS[rig.kind]}/ipamblocks/{BLOCK}"

    def take() -> None:
        block = rig.cluster.client.get(path)
        spec = block["spec"]
        for ordinal in (1, 2, 3):
            spec["allocations"][ordinal] = 0
        spec["unallocated"] = [one for one in spec["unallocated"] if one > 3]
        spec["attributes"] = [{"handle_id": "somebody", "secondary": {"node": "node-b"}}]
        rig.cluster.client.put(path, block)

    rig.proxy.arm(lambda asked: at("PUT", BLOCK)(asked) and counted(rig), before(take), 1)


def counted(rig: KubeRig) -> bool:
    """Whether a pod's handle is there, and not only the tunnel's."""
    return any(one["metadata"]["name"].startswith("k8s-pod-network.") for one in rig.store.objects("ipamhandles"))


STORIES: dict[str, tuple[Callable[[KubeRig], None], int]] = {
    "nothing": (nothing, 0),
    "a rival claims the block": (a_rival_claims_the_block, 0),
    "a rival takes the addresses": (a_rival_takes_the_addresses, 1),  # they cannot be moved then
}


def settings(rig: KubeRig, token: str) -> dict[str, str]:
    return {
        "KUBERNETES_NODE_NAME": rig.node,
        "DATASTORE_TYPE": "kubernetes",
        "CALICO_API_GROUP": GROUPS[rig.kind],
        "KUBECONFIG": str(rig.proxy.kubeconfig(rig.folder / "upgrade.kubeconfig", token=token)),
        "TORTIE_HOST_LOCAL_DIR": str(rig.folder / "k8s-pod-network"),
        "TORTIE_CNI_BIN_DIR": str(rig.folder),
        "TORTIE_UPGRADE_WAIT": "0",
    }


def upgraded(rig: KubeRig, token: str, story: str) -> set[Right]:
    """What it has asked for."""
    prepare(rig)
    begin, ends_with = STORIES[story]
    begin(rig)
    answer = rig.raw(settings(rig, token), "", "-upgrade", program="calico-ipam")
    assert answer.exit == ends_with, answer
    assert rig.proxy.refusals == []
    return {right_of(asked) for asked in rig.proxy.asked}


def refused(rig: KubeRig, token: str, story: str) -> set[Right]:
    """What an upgrade that is tried again and again is refused."""
    prepare(rig)
    STORIES[story][0](rig)
    process = rig.start(settings(rig, token), "-upgrade", program="calico-ipam")
    try:
        ends = time.monotonic() + LONGEST_WAIT
        while not any(asked.status == FORBIDDEN for asked in rig.proxy.asked):
            assert process.poll() is None, f"it has ended with {process.returncode}"
            assert time.monotonic() < ends, "it is refused nothing"
            time.sleep(0.02)
    finally:
        stop(process)
    return {right_of(asked) for asked in rig.proxy.asked if asked.status == FORBIDDEN}


def test_the_upgrade_needs_each_of_its_rights(rig: KubeRig, accounts: Accounts) -> None:
    rules: list[Object] = rules_of("from-host-local.yaml", "tortie-upgrade")
    mine = {right for right in rights_of(rules) if right.group in {"", GROUPS[rig.kind].partition("/")[0]}}
    token = accounts.token("all", rules)
    used = {story: upgraded(rig, token, story) for story in STORIES}
    together: set[Right] = set().union(*used.values())
    assert together - mine == set()
    assert mine - together == set(), "a right that nothing exercises"
    for number, right in enumerate(sorted(mine)):
        story = next(story for story in STORIES if right in used[story])
        assert refused(rig, accounts.token(f"less-{number}", without(rules, right)), story) == {right}
