"""Find the settings that a DEL has lost where its ADD would have them now.

A runtime may have kept half of a configuration, or a file that it names may be gone. What the call still says counts;
only what it lacks is taken from the network's installed configuration, and a kubeconfig from Calico's installation.

Invariant: a setting that the call has stays, but for the path of a file that is gone.
"""

from __future__ import annotations

from domain.cni.datastores import FILE, LEADING_FILE, NUMBER, SETTINGS, TEXT, said_at
from domain.cni.errors import CniError
from domain.cni.netconf import NetConf, read_netconf
from domain.json_text import JsonError, dumps, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.datastores import Place
    from domain.json_text import Json
    from ports.former import Installed
    from ports.node import ThisNode
    from ports.runtime import Runtime
    from usecases.calls.call import Call

# Beside what leads to the datastore: under which node's name the records are.
_NODE = ((("nodename",), TEXT), (("hostname",), TEXT), (("nodename_file",), FILE))
_COMPLETED = (*[(place, what) for _, place, _, _, what in SETTINGS if place and what != NUMBER], *_NODE)


class FoundSettings(Value):
    """The configuration with what it lacked, the files that this is from, and `text` for an IPAM plugin's stdin."""

    netconf: NetConf
    source: str
    text: str = ""


def settings_of_add(netconf: NetConf, runtime: Runtime) -> FoundSettings | None:
    """None if what is installed adds nothing to the configuration."""
    installed, node = runtime.former.installed(), runtime.node
    completed, sources = netconf, []
    path, other = _of_same_network(netconf, installed)
    if other is not None:
        completed = _completed(netconf, other, node)
        sources += [path] if completed != netconf else []
    if _lacks_kubeconfig(completed, node) and installed.kubeconfig:
        completed = completed.replace(kubernetes=completed.kubernetes.replace(kubeconfig=installed.kubeconfig))
        sources.append(installed.kubeconfig)
    return FoundSettings(completed, ", ".join(sources)) if sources else None


def ipam_of_add(call: Call, runtime: Runtime) -> FoundSettings | None:
    """The same with the `ipam` section that is installed, for a call that has none."""
    for path, text in runtime.former.installed().configurations:
        document = plugin_document(text, call.netconf.name, call.netconf.type)
        if document is not None and isinstance(document.get("ipam"), dict):
            try:
                ipam = read_netconf(document).ipam
            except CniError:
                continue
            return FoundSettings(call.netconf.replace(ipam=ipam), path, dumps(document))
    return None


def plugin_document(text: str, network: str, plugin: str) -> dict[str, Json] | None:
    """The network's configuration of that plugin, as a runtime would give it, from a file that has it by itself (conf)
    or in a list (conflist); None if it is not there, or the text is no configuration.
    """
    try:
        document = parse(text)
    except JsonError:
        return None
    if not isinstance(document, dict) or document.get("name") != network:
        return None
    plugins = document.get("plugins")
    shared: dict[str, Json] = {member: document[member] for member in ("cniVersion", "name") if member in document}
    for entry in plugins if isinstance(plugins, list) else [document]:
        if isinstance(entry, dict) and entry.get("type") == plugin:
            return {**entry, **shared}
    return None


def _of_same_network(netconf: NetConf, installed: Installed) -> tuple[str, NetConf | None]:
    """A configuration that cannot be read is none."""
    for path, text in installed.configurations:
        document = plugin_document(text, netconf.name, netconf.type)
        if document is None:
            continue
        try:
            return path, read_netconf(document)
        except CniError:
            continue
    return "", None


def _completed(netconf: NetConf, other: NetConf, node: ThisNode) -> NetConf:
    for place, what in _COMPLETED:
        has, gives = said_at(netconf, place), said_at(other, place)
        lacks = _is_lost(has, node) if what in (FILE, LEADING_FILE) else not has
        if lacks and gives:
            netconf = _with(netconf, place, gives)
    return netconf


def _with(netconf: NetConf, place: Place, said: str) -> NetConf:
    name, *inside = place
    if not inside:
        return netconf.replace(**{name: said})
    section = getattr(netconf, name)
    return netconf.replace(**{name: section.replace(**{inside[0]: said})})


def _is_lost(path: str, node: ThisNode) -> bool:
    """A list of kubeconfigs is lost if none of it is there. On Windows semicolons separate, and drives have colons."""
    separator = ";" if ";" in path or path[1:2] == ":" else ":"
    return not any(node.exists(part) for part in path.split(separator) if part)


def _lacks_kubeconfig(netconf: NetConf, node: ThisNode) -> bool:
    kubernetes = netconf.kubernetes
    if netconf.datastore_type not in ("", "kubernetes"):
        return False  # whose pods' API server, if it has one, is a matter of the network's configuration
    return not (kubernetes.k8s_api_root or netconf.policy.k8s_api_root) and _is_lost(kubernetes.kubeconfig, node)
