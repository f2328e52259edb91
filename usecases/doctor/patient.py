"""What the checks of one `tortie doctor` share: the host, its network configuration, and the way to its datastore.

Invariant: whatever is read is read once, and a thing that cannot be read is a diagnosis of the check that is about it.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.cni.netconf import NetConf, read_netconf
from domain.doctor.configuration import CALICO, NetworkFile, chosen_file
from domain.resource import NO_LABELS
from domain.value import Value
from ports.runtime import unheard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from domain.doctor.seen import CredentialsSeen
    from domain.ipam.pools import Pool
    from domain.workload.endpoint import WorkloadEndpoint
    from ports.clock import Clock
    from ports.datastore import Datastore
    from ports.host_view import HostView

NET_DIR, BIN_DIR = "/etc/cni/net.d", "/opt/cni/bin"


class Folders(Value):
    """The host's paths, as the host has them."""

    net: str = NET_DIR
    bin: str = BIN_DIR
    results: str = "/var/lib/cni/results"
    reservations: str = "/var/lib/cni/networks"
    elsewhere: bool = False
    """Whether this is another root than that of the process."""


class Ways(Value):
    """How what is not the host itself is reached. `datastore` opens the one that a configuration leads to, with None
    that of the command line; `as_operator` the former, as somebody who may do more than plugins, if one is known.
    `credentials` reads a kubeconfig. `prefixes` are those of containers' devices.
    """

    datastore: Callable[[NetConf | None], Datastore]
    credentials: Callable[[str], CredentialsSeen]
    as_operator: Callable[[NetConf], Datastore] | None = None
    prefixes: tuple[str, ...] = ("cali",)
    own_datastore: bool = False
    """Whether the command line or the environment names a datastore."""


class Patient:
    """`netconf` is None where no file has a section of calico; `fault` says why the section cannot be used."""

    def __init__(self, host: HostView, clock: Clock, folders: Folders, ways: Ways) -> None:
        self.host, self.clock, self.folders, self.ways = host, clock, folders, ways
        self.doing: Callable[[str], None] = unheard  # for a person who waits
        self.files: Sequence[NetworkFile] = ()
        self.node = ""
        self.labels: Mapping[str, str] = NO_LABELS  # the node's
        self.reached = False  # whether the datastore has answered
        self.serving: tuple[Pool, ...] = ()
        self.endpoints: tuple[WorkloadEndpoint, ...] = ()
        self._store: list[Datastore] = []

    @property
    def chosen(self) -> NetworkFile | None:
        return chosen_file(self.files)

    @property
    def fault(self) -> str:
        return self._read()[1]

    @property
    def netconf(self) -> NetConf | None:
        return self._read()[0]

    def _read(self) -> tuple[NetConf | None, str]:
        chosen = self.chosen
        section = chosen.section(CALICO) if chosen else None
        if section is None:
            return None, ""
        try:
            return read_netconf({**section}), ""
        except CniError as error:
            return None, str(error)

    @property
    def datastore(self) -> Datastore:
        """Opened on first use."""
        if not self._store:
            self._store.append(self.ways.datastore(None if self.ways.own_datastore else self.netconf))
        return self._store[0]

    @property
    def has_datastore(self) -> bool:
        return self.netconf is not None or self.ways.own_datastore
