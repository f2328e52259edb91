"""The checks of the kernel: what it can do, how it is set, and how large packets may be.

Invariant: what the configuration and the pools do not need is not asked for.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.doctor.diagnosis import error, warning
from domain.doctor.kernel import (
    BRIDGE,
    KERNEL,
    MTU,
    NETNS,
    SETTINGS,
    VETH,
    VXLAN,
    judge_features,
    judge_mtu,
    judge_route,
    judge_settings,
)
from domain.doctor.records import tunnel_takes, versions_wanted
from ports.errors import Refused
from usecases.calls.this_node import MTU_FILE, device_mtu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.doctor.diagnosis import Diagnosis
    from ports.log import Log
    from usecases.doctor.patient import Patient


def look_at_features(patient: Patient) -> Iterable[Diagnosis]:
    needs = {NETNS: "every container", VETH: "every container"}
    types = {type for file in patient.files for type in file.types}
    if types & {"bridge", "my-custom-cni"}:
        needs[BRIDGE] = "the bridge plugin"
    if any(pool.vxlan_mode not in ("", "Never") for pool in patient.serving):
        needs[VXLAN] = "a pool's VXLAN"
    try:
        return judge_features(patient.host.lacking(), needs)
    except Refused as refused:
        return (warning(KERNEL, str(refused), "run it as root, in a container as a privileged one"),)


def look_at_settings(patient: Patient) -> Iterable[Diagnosis]:
    values = {name: patient.host.setting(name) for name in SETTINGS}
    versions = versions_wanted(patient.netconf.ipam) if patient.netconf else (4,)
    return judge_settings(values, versions)


def look_at_route(patient: Patient) -> Iterable[Diagnosis]:
    if patient.netconf is not None and 4 in versions_wanted(patient.netconf.ipam):
        yield judge_route(patient.host.uplinks())


def look_at_mtu(patient: Patient, log: Log) -> Iterable[Diagnosis]:
    netconf = patient.netconf
    if netconf is None:
        return
    try:
        mtu = device_mtu(netconf, patient.host, log)
    except CniError as refused:
        do = f'calico-node writes {MTU_FILE}; without it, remove the file and set "mtu" in the configuration'
        yield error(MTU, str(refused), do)
        return
    source = '"mtu" of the configuration' if netconf.mtu else MTU_FILE if mtu else "the kernel's own"
    yield judge_mtu(mtu, source, patient.host.uplinks(), tunnel_takes(patient.serving))
