"""Which worker runs which tests: a file's together, or those of a file that are about one group of Calico's resources,
or one alone where tests of a file do little but wait.

An API server takes seconds to serve another of the groups than before, and each worker has a server of its own; so a
worker stays with a group while there are tests of it. What takes longest begins first, so that nobody is left alone
with it at the end.

Invariant: tests of one file and group run in one worker, in their order, but for those that wait. Which worker it is
decides nothing else.
"""

from __future__ import annotations

import re

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_GROUPS = ("v1", "v3")
_GROUP = re.compile(rf"[\[-]({'|'.join(_GROUPS)})[\]-]")
_IMPLIED = {"/kubefaults/": "v1", "/tokens/": "v1"}  # of tests whose names have no group
_OWN_SERVERS = "/apiserver/"  # which start for a file
_WAITING = ("/test_etcd_connection_cases", "/test_etcd_outages")  # up to half a minute for each test
# Seconds that one test takes about, where it is not half a second; the first that fits.
_SECONDS = {
    "::test_p04_calls_end_in_time": 10.0,
    "test_a_member_pauses_for_30_seconds": 30.0,
    "test_tokens_that_expire_in_the_middle": 20.0,
    "/faults/": 1.5,
    "/test_etcd_connection_faults": 1.5,
    "/test_install_killed": 5.0,
    "/test_faulty_disk": 1.5,
    "/test_bundle": 2.0,
    "/test_concurrency": 1.0,
    "/test_soak": 5.0,
    "/test_pods_upgrade": 2.5,
    "/kubefaults/test_kube_configs": 0.8,
    "/kubefaults/test_kube_faults": 15.0,
    "/kubefaults/": 6.0,
    "/tokens/test_kube_token_expiry": 25.0,
    "/tokens/": 2.0,
    "_outages": 6.0,
    "/apiserver/": 5.0,
    "_load": 5.0,
}
_USUAL = 0.5


def group_of(nodeid: str) -> str:
    """`v1`, `v3`, or "" if a test does not care."""
    if found := _GROUP.search(nodeid):
        return found[1]
    return next((group for part, group in _IMPLIED.items() if part in nodeid), "")


def seconds_of(nodeid: str) -> float:
    return next((seconds for part, seconds in _SECONDS.items() if part in nodeid), _USUAL)


class ByFileAndGroup(LoadScopeScheduling):
    """In place of xdist's own distribution by file."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._groups: dict[WorkerController, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if any(part in file for part in _WAITING):
            return nodeid
        return file if _OWN_SERVERS in file else f"{file} {group_of(nodeid)}".rstrip()

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = self._best_for(node)
        self._groups[node] = _group_in(scope) or self._groups.get(node, "")
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _best_for(self, node: WorkerController) -> str:
        """The longest of its group, else of a group that nobody is at, else of all."""
        own = self._groups.get(node, "")
        others = {group for one, group in self._groups.items() if one is not node}

        def rank(scope: str) -> tuple[int, float]:
            group = _group_in(scope)
            near = 2 if group in ("", own) else 1 if group not in others else 0
            return near, sum(map(seconds_of, self.workqueue[scope]))

        return max(self.workqueue, key=rank)


def _group_in(scope: str) -> str:
    last = scope.rpartition(" ")[2]
    return last if last in _GROUPS else ""
