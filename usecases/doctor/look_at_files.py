"""The checks of what an installation consists of: configuration, programs, name, credentials, lock, log.

Invariant: nothing is opened but for reading, and a missing file is no failure of a check.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.cni.plugin_conf import METRICS_FILE
from domain.doctor.configuration import (
    CALICO,
    CONFIGURATION,
    SUFFIXES,
    NetworkFile,
    judge_configuration,
    judge_others,
    judge_settings,
    read_network_file,
)
from domain.doctor.credentials import KUBECONFIG, RENEW, judge_token
from domain.doctor.diagnosis import error, ok
from domain.doctor.files import (
    OWN_PROGRAMS,
    KeptBefore,
    judge_lock,
    judge_log,
    judge_metrics,
    judge_mode,
    judge_plugins,
    judge_replaced,
    judge_versions,
)
from domain.doctor.records import NODE_NAME, judge_node_name
from domain.install.places import REPLACED
from ports.errors import PortError
from ports.host_files import STAGE, STAGE_END
from usecases.calls.this_node import NODENAME_FILE, node_name, require_nodename_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.cni.netconf import NetConf
    from domain.doctor.diagnosis import Diagnosis
    from ports.host_view import HostView
    from usecases.doctor.patient import Patient

LOCK_FILE = "/var/run/calico/ipam.lock"
_PROGRAM = 5.0  # seconds for one to say its version
_INSTALL = "write it anew: `tortie install`"


def look_at_configuration(patient: Patient) -> Iterable[Diagnosis]:
    """It also reads the files, for all that follow."""
    host, folder = patient.host, patient.folders.net
    names = [name for name in host.names(folder) or () if name.endswith(SUFFIXES)]
    patient.files = [
        _network_file(host, f"{folder}/{name}") for name in names if not _is_folder(host, f"{folder}/{name}")
    ]
    chosen = patient.chosen
    if chosen is not None and patient.fault:
        yield error(CONFIGURATION, f"{chosen.path}: {patient.fault}", "mend that member")
        return
    seen = host.file(chosen.path) if chosen else None
    section = chosen.section(CALICO) if chosen else None
    secret = section is not None and "k8s_auth_token" in str(section.get("policy"))
    wrong = judge_mode(CONFIGURATION, chosen.path, seen, secret=secret) if chosen and seen else None
    odd = judge_settings(chosen.path, patient.netconf) if chosen and patient.netconf else ()
    yield from odd
    if wrong or not odd:
        yield wrong or judge_configuration(folder, patient.files)


def _is_folder(host: HostView, path: str) -> bool:
    """Runtimes pass over a folder, whatever its name ends with."""
    try:
        seen = host.file(path)
    except PortError:
        return False
    return seen is not None and seen.is_folder


def _network_file(host: HostView, path: str) -> NetworkFile:
    try:
        return read_network_file(path, host.read(path))
    except PortError as refused:
        return NetworkFile(path, fault=str(refused))


def look_at_others(patient: Patient) -> Iterable[Diagnosis]:
    return judge_others(patient.files)


def look_at_plugins(patient: Patient) -> Iterable[Diagnosis]:
    chosen, folder = patient.chosen, patient.folders.bin
    if chosen is None:
        return ()
    return judge_plugins(folder, chosen.types, {name: patient.host.file(f"{folder}/{name}") for name in chosen.types})


def look_at_versions(patient: Patient) -> Iterable[Diagnosis]:
    """Of what is there; what is not is the matter of another check."""
    versions: dict[str, str] = {}
    faults: dict[str, str] = {}
    for name in OWN_PROGRAMS:
        path = f"{patient.folders.bin}/{name}"
        seen = patient.host.file(path)
        if seen is None or not seen.is_file or not seen.mode & 0o111:
            continue
        try:
            versions[name] = patient.host.version_of(path, patient.clock.deadline(_PROGRAM))
        except PortError as refused:
            faults[name] = str(refused)
    return judge_versions(versions, faults, elsewhere=patient.folders.elsewhere)


def look_at_name(patient: Patient) -> Iterable[Diagnosis]:
    netconf, host = patient.netconf, patient.host
    if netconf is None:
        return
    try:
        require_nodename_file(netconf, host)
    except CniError as refused:
        yield error(NODE_NAME, str(refused), refused.details or "see that calico-node runs on this host")
        return
    patient.node = node_name(netconf, host)
    path = netconf.nodename_file or NODENAME_FILE
    in_file = host.read(path).strip() if host.exists(path) else None
    yield judge_node_name(patient.node, _source(netconf, path, in_file), in_file)


def _source(netconf: NetConf, path: str, in_file: str | None) -> str:
    if netconf.nodename:
        return '"nodename" of the configuration'
    if in_file:
        return path
    return '"hostname" of the configuration' if netconf.hostname else "the host's name"


def look_at_credentials(patient: Patient) -> Iterable[Diagnosis]:
    """Of the kubeconfig that the configuration names, if it does."""
    path = patient.netconf.kubernetes.kubeconfig if patient.netconf else ""
    if not path:
        return
    seen = patient.host.file(path)
    if seen is None:
        yield error(KUBECONFIG, f"{path} is not there, and the configuration names it", f"{_INSTALL}, or {RENEW}")
        return
    try:
        credentials = patient.ways.credentials(path)
    except PortError as refused:
        yield error(KUBECONFIG, str(refused), _INSTALL)
        return
    yield judge_mode(KUBECONFIG, path, seen, secret=True) or ok(KUBECONFIG, f"{path}, server {credentials.server}")
    yield judge_token(credentials, patient.clock.now())


def look_at_lock(patient: Patient) -> Iterable[Diagnosis]:
    if patient.netconf is not None:
        path = patient.netconf.ipam_lock_file or LOCK_FILE
        yield judge_lock(path, patient.host.file(path))


def look_at_log(patient: Patient) -> Iterable[Diagnosis]:
    if patient.netconf is None:
        return
    path = patient.netconf.log_file_path
    folder = path.rpartition("/")[0] or "/"
    if path:
        yield judge_log(path, patient.host.file(path), folder, patient.host.file(folder))
    else:
        yield judge_log("", None, "", None)


def look_at_metrics(patient: Patient) -> Iterable[Diagnosis]:
    if patient.netconf is not None and (folder := patient.netconf.metrics_dir):
        whole = folder.startswith("/")
        file = patient.host.file(f"{folder}/{METRICS_FILE}") if whole else None
        yield judge_metrics(folder, patient.host.file(folder) if whole else None, file)


def look_at_replaced(patient: Patient) -> Iterable[Diagnosis]:
    host, found = patient.host, []
    for folder in (patient.folders.bin, patient.folders.net):
        path = f"{folder}/{REPLACED}"
        seen = host.file(path)
        names = host.names(path) if seen is not None and seen.is_folder else ()
        found.append(KeptBefore(path, seen, tuple([name for name in names or () if not name.startswith(".")])))
    staged = [
        f"{folder}/{name}"
        for folder in (patient.folders.bin, patient.folders.net)
        for name in host.names(folder) or ()
        if name.startswith(STAGE) and name.endswith(STAGE_END)
    ]
    return judge_replaced(found, staged)
