"""Which network configuration a container runtime takes from its folder, and what stands in the way of ours.

A runtime sorts the files by name and takes the first. Some stumble over a file that they cannot read, some pass it
over; with either, the pods of a node do not get the network that its operator thinks of.

Invariant: a text that makes no sense is a fault of its file, and hides no other file.
"""

from __future__ import annotations

from domain.doctor.diagnosis import error, listed, ok, warning
from domain.json_text import JsonError, parse
from domain.value import Value
from domain.workload.kept_wish import BadSetting, require_sense

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.cni.netconf import NetConf
    from domain.doctor.diagnosis import Diagnosis
    from domain.json_text import Json

SUFFIXES = (".conf", ".conflist", ".json")
CALICO = "calico"
OURS = (CALICO, "my-custom-cni")
_DELEGATING = frozenset(["multus", "multus-shim"])  # they take the next file's network, or one that they name
CONFIGURATION, OTHERS = "configuration", "other-configurations"
_INSTALL = "write it with `tortie install`, or apply one of the manifests"


class NetworkFile(Value):
    """A configuration file as a runtime reads it; `plugins` are their sections, each as its plugin gets it."""

    path: str
    name: str = ""
    plugins: tuple[Mapping[str, Json], ...] = ()
    fault: str = ""

    @property
    def types(self) -> tuple[str, ...]:
        """Of its plugins, and of the IPAM plugins behind them, each once."""
        found: list[str] = []
        for plugin in self.plugins:
            ipam = plugin.get("ipam")
            found += [str(plugin.get("type"))]
            found += [str(ipam["type"])] if isinstance(ipam, dict) and ipam.get("type") else []
        return tuple(dict.fromkeys(found))

    def section(self, type: str) -> Mapping[str, Json] | None:
        return next((plugin for plugin in self.plugins if plugin.get("type") == type), None)

    @property
    def is_ours(self) -> bool:
        return any(self.section(type) is not None for type in OURS)


def read_network_file(path: str, text: str) -> NetworkFile:
    try:
        document = parse(text)
    except JsonError as error:
        return NetworkFile(path, fault=f"not JSON: {error}")
    if not isinstance(document, dict):
        return NetworkFile(path, fault="not a JSON object")
    name, plugins = document.get("name"), document.get("plugins", [document])
    if not isinstance(name, str) or not name:
        return NetworkFile(path, fault='it has no "name"')
    if not isinstance(plugins, list) or not plugins:
        return NetworkFile(path, name, fault='"plugins" has to be a list of at least one')
    shared: dict[str, Json] = {member: document[member] for member in ("cniVersion", "name") if member in document}
    sections: list[Mapping[str, Json]] = []
    for plugin in plugins:
        if not isinstance(plugin, dict) or not isinstance(plugin.get("type"), str) or not plugin["type"]:
            return NetworkFile(path, name, fault='a plugin of it has no "type"')
        sections.append({**plugin, **shared})
    return NetworkFile(path, name, tuple(sections))


def chosen_file(files: Sequence[NetworkFile]) -> NetworkFile | None:
    """The one that this host should be networked by: the first with a plugin of ours, with `calico` if there is one."""
    of_calico = [file for file in files if file.section(CALICO) is not None]
    return next(iter(of_calico or [file for file in files if file.is_ours]), None)


def judge_configuration(folder: str, files: Sequence[NetworkFile]) -> Diagnosis:
    chosen = chosen_file(files)
    if chosen is not None:
        types = ", ".join([str(plugin.get("type")) for plugin in chosen.plugins])
        return ok(CONFIGURATION, f"{chosen.path}: network {chosen.name} of {types}")
    if not files:
        return error(CONFIGURATION, f"{folder} has no network configuration", _INSTALL)
    there = listed([_shown(file) for file in files])
    if any(file.fault for file in files):
        return error(
            CONFIGURATION, f"none with the plugin calico in {folder}: {there}", f"mend that file, or {_INSTALL}"
        )
    return error(CONFIGURATION, f"none with the plugin calico in {folder}: {there}", _INSTALL)


def judge_settings(path: str, netconf: NetConf) -> tuple[Diagnosis, ...]:
    """What an ADD refuses or warns of, before a pod meets it."""
    found = [warning(CONFIGURATION, f"{path}: {text}", "mend that member") for text in netconf.warnings]
    try:
        if netconf.ipam.keep_addresses is not None:
            require_sense(netconf.ipam.keep_addresses)
    except BadSetting as refused:
        found.append(error(CONFIGURATION, f"{path}: {refused}", "mend that member"))
    return tuple(found)


def _shown(file: NetworkFile) -> str:
    return f"{file.path} ({file.fault or ', '.join(file.types)})"


def judge_others(files: Sequence[NetworkFile]) -> tuple[Diagnosis, ...]:
    """Files that a runtime meets before the chosen one."""
    chosen = chosen_file(files)
    if chosen is None:
        return ()
    before = files[: files.index(chosen)]
    if not before:
        return (ok(OTHERS, f"no other file sorts before {chosen.path}"),)
    remove = "remove it, or rename it so that it does not end in .conf, .conflist or .json"
    taken = [file for file in before if not file.fault and not _DELEGATING.intersection(file.types)]
    if not taken and not any(file.fault for file in before):
        asked = listed([_shown(file) for file in before])
        return (ok(OTHERS, f"{asked} sorts before {chosen.path}, and leaves pods' first network to another"),)
    if taken:
        seen = f"{listed([_shown(file) for file in taken])} sorts before {chosen.path}, so runtimes take it first"
        return (error(OTHERS, seen, remove),)
    spoilt = listed([_shown(file) for file in before if file.fault])
    seen = f"{spoilt} sorts before {chosen.path}, and runtimes may stop at it"
    return (error(OTHERS, seen, remove),)
