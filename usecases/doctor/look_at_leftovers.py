"""The checks of what containers have left behind: devices, endpoints, reservations.

Invariant: what is called left over was so in two looks, some time apart, because calls may be at work.
"""

from __future__ import annotations

from domain.doctor.diagnosis import ok
from domain.doctor.leftovers import DEVICES, Alive, Reserved, Strays, judge_reservations, judge_strays, strays
from domain.ipam.address import Address
from ports.datastore import WorkloadEndpoints
from ports.errors import Unauthorized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.doctor.configuration import NetworkFile
    from domain.doctor.diagnosis import Diagnosis
    from domain.workload.endpoint import WorkloadEndpoint
    from ports.datastore import Stored
    from usecases.doctor.patient import Patient

ANSWER = 10.0  # seconds
_NOT_SEEN = "not looked at: the plugins' account may not list pods; with KUBECONFIG set to one that may, they are"
APART = 2.0  # seconds between two looks: many times what a call needs from the device to the record
_MOST = 10_000  # reservations


def look_at_strays(patient: Patient) -> Iterable[Diagnosis]:
    """In a Kubernetes cluster endpoints are pods, which the plugins' account may not list."""
    if not patient.reached or not patient.node:
        return ()
    try:
        found = _strays(patient)
    except Unauthorized:
        return (ok(DEVICES, _NOT_SEEN),)
    if found:
        patient.clock.sleep(APART)
        found = found.both(_strays(patient))
    return judge_strays(found, len(_own(patient)))


def _strays(patient: Patient) -> Strays:
    patient.endpoints = tuple([one.record for one in _endpoints(patient)])
    return strays(patient.host.links(), patient.endpoints, patient.node, patient.ways.prefixes)


def _endpoints(patient: Patient) -> tuple[Stored[WorkloadEndpoint], ...]:
    try:
        return patient.datastore.list(WorkloadEndpoints(node=patient.node), patient.clock.deadline(ANSWER))
    except Unauthorized:
        if patient.ways.as_operator is None or patient.netconf is None:
            raise
        wider = patient.ways.as_operator(patient.netconf)
        return wider.list(WorkloadEndpoints(node=patient.node), patient.clock.deadline(ANSWER))


def _own(patient: Patient) -> list[WorkloadEndpoint]:
    return [endpoint for endpoint in patient.endpoints if endpoint.node == patient.node]


def look_at_reservations(patient: Patient) -> Iterable[Diagnosis]:
    """host-local's, of each network that is configured."""
    reserved = [one for file in patient.files if file.name and (one := _reserved(patient, file)) is not None]
    results = patient.host.names(patient.folders.results)
    containers = frozenset([endpoint.container_id for endpoint in _own(patient) if endpoint.container_id])
    return judge_reservations(reserved, Alive(containers, None if results is None else frozenset(results)))


def _reserved(patient: Patient, file: NetworkFile) -> Reserved | None:
    folder, uses_it = patient.folders.reservations, False
    for plugin in file.plugins:
        ipam = plugin.get("ipam")
        if isinstance(ipam, dict) and ipam.get("type") == "host-local":
            uses_it, folder = True, str(ipam.get("dataDir") or folder)
    folder = f"{folder}/{file.name}"
    names = patient.host.names(folder)
    if names is None:
        return None
    holders = [(name, _container(patient, f"{folder}/{name}")) for name in names[:_MOST] if _is_address(name)]
    return Reserved(file.name, folder, tuple(holders), uses_it)


def _is_address(name: str) -> bool:
    try:
        Address.parse(name)
    except ValueError:
        return False
    return True


def _container(patient: Patient, path: str) -> str:
    return patient.host.read(path).strip().partition("\n")[0].strip() if patient.host.exists(path) else ""
