"""The checks of the datastore: whether it answers and is ready, and what it has for this node.

Invariant: one failed answer ends these checks, so that a datastore that is away is told once.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.doctor.diagnosis import error, ok
from domain.doctor.records import DATASTORE, judge_node_record, judge_pools
from domain.resource import NO_LABELS
from ports.datastore import IPPools, NodeKey
from ports.errors import BadConfiguration, PortError, Unauthorized
from usecases.calls.cluster_ready import cluster_information, require_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.cni.netconf import NetConf
    from domain.doctor.diagnosis import Diagnosis
    from usecases.doctor.patient import Patient

ANSWER = 5.0  # seconds
_BY_TEXT = "docs/troubleshooting.md goes by the text"
_REACH = f"see that it runs and that this host reaches it; {_BY_TEXT}"
_MEND = f"mend the file or setting that the text names; {_BY_TEXT}"
_ADMIT = f"give the plugins' account its rights, or the plugins new credentials; {_BY_TEXT}"
_READY = (
    "`tortie init` makes a new datastore ready; in an old one, see who has set datastoreReady to false (an upgrade?)"
)


def look_at_datastore(patient: Patient) -> Iterable[Diagnosis]:
    """`patient.reached` says afterwards whether the others can go on."""
    if not patient.has_datastore:
        return
    started = patient.clock.monotonic()
    try:
        stored = cluster_information(patient.datastore, patient.clock.deadline(ANSWER))
    except (PortError, CniError) as refused:
        yield error(DATASTORE, str(refused), getattr(refused, "details", "") or _advice(refused))
        return
    patient.reached = True
    took = round((patient.clock.monotonic() - started) * 1000)
    try:
        require_ready(stored)
    except CniError as refused:
        yield error(DATASTORE, str(refused), _READY)
        return
    yield ok(DATASTORE, f"{_shown(patient.netconf)} answers in {took} ms and is ready")


def _advice(refused: Exception) -> str:
    if isinstance(refused, BadConfiguration):
        return _MEND
    if isinstance(refused.__cause__, Unauthorized):
        return _ADMIT
    return _REACH


def _shown(netconf: NetConf | None) -> str:
    if netconf is None:
        return "the one of the command line"
    if netconf.datastore_type == "sqlite":
        return netconf.sqlite_path or "the embedded datastore"
    if netconf.kubernetes.kubeconfig and not netconf.etcd_endpoints:
        return f"the cluster of {netconf.kubernetes.kubeconfig}"
    return netconf.etcd_endpoints or netconf.datastore_type or "it"


def look_at_node_record(patient: Patient) -> Iterable[Diagnosis]:
    if not patient.reached or not patient.node:
        return
    stored = patient.datastore.get(NodeKey(patient.node), patient.clock.deadline(ANSWER))
    patient.labels = stored.record.metadata.labels if stored else NO_LABELS
    yield judge_node_record(patient.node, is_there=stored is not None)


def look_at_pools(patient: Patient) -> Iterable[Diagnosis]:
    """Only where Calico's IPAM gives the addresses."""
    netconf = patient.netconf
    if not patient.reached or netconf is None or netconf.ipam.type != "calico-ipam":
        return ()
    stored = patient.datastore.list(IPPools(), patient.clock.deadline(ANSWER))
    found, patient.serving = judge_pools([one.record for one in stored], patient.node, patient.labels, netconf.ipam)
    return found
