"""`tortie ipam check` and `gc` over what only custom resources can look like."""

from __future__ import annotations

from adapters.kubernetes.api import Api
from adapters.kubernetes.datastore import KubernetesDatastore
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from ports.clock import Deadline
from services.fake_apiserver import GROUPS, FakeApiserver
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import DONE, Sweep, collect_ipam
from usecases.ipam.work import Work

ROOT = f"/apis/{GROUPS['v1']}"


def test_an_affinity_that_an_old_version_has_written_is_brought_up_to_date():
    """It has no labels, so no listing shows it, and the node does not find its block."""
    server = FakeApiserver("v1")
    server.create("/api/v1/nodes", {"metadata": {"name": "node-a"}})
    pool = {"cidr": "10.0.0.0/24", "blockSize": 30, "allowedUses": ["Workload"]}
    server.create(f"{ROOT}/ippools", {"metadata": {"name": "p4"}, "kind": "IPPool", "spec": pool})
    block = {"cidr": "10.0.0.0/30", "affinity": "host:node-a", "allocations": [None] * 4, "unallocated": [0, 1, 2, 3]}
    spec = {**block, "attributes": [], "strictAffinity": False}
    server.create(f"{ROOT}/ipamblocks", {"metadata": {"name": "10-0-0-0-30"}, "kind": "IPAMBlock", "spec": spec})
    old = {"cidr": "10.0.0.0/30", "node": "node-a", "state": "confirmed", "deleted": "false"}
    named = {"metadata": {"name": "node-a-10-0-0-0-30"}, "kind": "BlockAffinity", "spec": old}
    server.create(f"{ROOT}/blockaffinities", named)
    clock = MemoryClock()
    work = Work(
        KubernetesDatastore(Api(server.transport(), clock), clock, group=GROUPS["v1"]),
        clock,
        RecordingLog(),
        Deadline(1000.0),
    )
    (outcome,) = collect_ipam(work, Sweep(grace=0))
    assert (outcome.finding.kind, outcome.outcome) == ("block-without-affinity", DONE)
    assert check_ipam(work).findings == ()
