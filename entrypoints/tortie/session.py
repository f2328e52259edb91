"""What one command of `tortie` works with: the datastore, the cluster, this machine, and the terminal.

Invariant: the datastore is opened when it is first asked for, once.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager

from entrypoints.tortie.answer import Screen
from ports.errors import PortError
from ports.runtime import unheard
from usecases.ipam.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from domain.ipam.address import Address
    from entrypoints.wiring.container import Container
    from entrypoints.wiring.plain_container import PlainContainer
    from ports.clock import Clock, Deadline
    from ports.cluster import Cluster
    from ports.datastore import Datastore
    from ports.host_view import HostView
    from ports.log import Log
    from ports.node import ThisNode

BUDGET = 60.0  # seconds for one command


class Session:
    def __init__(self, container: Container | PlainContainer, budget: float = BUDGET) -> None:
        self._container = container
        self._datastore: Datastore | None = None
        self.clock: Clock = container.clock()
        self.log: Log = container.log()
        self.deadline: Deadline = self.clock.deadline(budget)
        self.doing: Callable[[str], None] = unheard

    @property
    def datastore(self) -> Datastore:
        if self._datastore is None:
            self._datastore = self._container.datastore()
        return self._datastore

    def writable(self, *, dry: bool) -> Datastore:
        """The datastore; or one in which what is written stays in memory."""
        if not dry:
            return self.datastore
        from adapters.memory.rehearsal import Rehearsal

        return Rehearsal(self.datastore)

    @property
    def environment(self) -> Mapping[str, str]:
        environment: Mapping[str, str] = self._container.environment()
        return environment

    @property
    def is_kubernetes(self) -> bool:
        """Whether the datastore is a cluster, which says itself which nodes and pods there are."""
        from domain.cni.datastores import KUBERNETES
        from entrypoints.wiring.datastores import datastore_kind

        return datastore_kind(self._container.exported()) == KUBERNETES

    def host(self, root: str) -> HostView:
        """This host, or the one whose root is mounted there."""
        from entrypoints.wiring.calico import host_view

        return host_view(self.clock, root)

    def unless_set(self, settings: Mapping[str, str]) -> None:
        """These hold where the environment says nothing. Before anything is opened."""
        self._container.environment.override({**settings, **self.environment})

    @property
    def screen(self) -> Screen:
        return Screen.of(self.environment)

    def work(self, waiting: float = 0.0) -> Work:
        """What the steps of a use case share; `waiting` seconds of it will pass in waiting on purpose."""
        work = Work(self.datastore, self.clock, self.log, self.clock.deadline(BUDGET + waiting))
        work.doing = self.doing
        return work

    def step(self) -> Deadline:
        """For one of many steps: what takes its time because there is much of it is not stopped half-way."""
        return self.clock.deadline(BUDGET)

    @contextmanager
    def progress(self) -> Iterator[None]:
        """While it lasts, what the command says that it is `doing` is on stderr, if that is a terminal."""
        if sys.stderr is None or not sys.stderr.isatty():
            yield
            return
        from entrypoints.logs import CallLog
        from entrypoints.tortie.progress import CLEAR, Progress

        with Progress(self.environment) as progress:
            if progress.is_shown:
                self.doing = progress.doing
                if isinstance(self.log, CallLog):
                    self.log.lead = CLEAR.encode()
            yield

    def hush(self) -> None:
        """For a command that has a screen of its own."""
        self.doing = unheard

    @property
    def cluster(self) -> Cluster | None:
        """What the kubeconfig of the environment leads to, if there is one that can be used."""
        try:
            cluster: Cluster = self._container.cluster()
        except PortError as error:
            self.log.warning("Nobody can be asked which virtual machines there are", error=error)
            return None
        return cluster

    @property
    def datastore_cluster(self) -> Cluster:
        """The one that the datastore is in, or is for."""
        cluster: Cluster = self._container.datastore_cluster()
        return cluster

    @property
    def this_node(self) -> ThisNode:
        node: ThisNode = self._container.node()
        return node

    def host_routes(self) -> tuple[tuple[Address, str], ...]:
        """Of this machine, whose pods' addresses they may be."""
        routes: tuple[tuple[Address, str], ...] = self._container.node().host_routes()
        return routes

    def host_name(self) -> str:
        name: str = self._container.node().host_name()
        return name.strip().lower()

    def close(self) -> None:
        """The last process to close an embedded datastore folds its log into the file; others have nothing to close."""
        getattr(self._datastore, "close", lambda: None)()
