"""Keeps Azure's small state files around a call of its IPAM plugin.

The caller asks `before_add`, runs the plugin, and tells `after_add`; for a DEL it asks `before_delete`, runs the
plugin unless the answer is None, and tells `after_delete`.

Invariant: an endpoint's file exists from a successful ADD until its release has succeeded, so a failed release can
be tried again.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.workload.azure import (
    AzureEndpoint,
    AzureNetwork,
    ask_for_release,
    ask_for_subnet,
    endpoint_path,
    endpoint_text,
    network_after_add,
    network_path,
    network_text,
    parse_endpoint,
    parse_network,
)
from ports.errors import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.request import Request
    from domain.cni.result import Result
    from ports.node import ThisNode


def before_add(node: ThisNode, network: str, netconf_text: str) -> str:
    """The text to give the plugin on ADD."""
    return ask_for_subnet(netconf_text, _network(node, network))


def after_add(node: ThisNode, network: str, request: Request, result: Result) -> None:
    """Remember the subnet and the addresses that the plugin chose."""
    addresses = tuple([ip.address for ip in result.ips])
    node.write(network_path(network), network_text(network_after_add(network, addresses)))
    bare = tuple([str(address.address) for address in addresses])
    endpoint = AzureEndpoint(network, request.container_id, request.ifname, bare)
    node.write(endpoint_path(network, request.container_id, request.ifname), endpoint_text(endpoint))


def before_delete(node: ThisNode, network: str, request: Request, netconf_text: str) -> str | None:
    """The text to give the plugin on DEL; None if no ADD has succeeded: then the plugin is left out."""
    path = endpoint_path(network, request.container_id, request.ifname)
    text = _read(node, path)
    if text is None:
        return None
    try:
        endpoint = parse_endpoint(text)
    except ValueError as error:
        raise _damaged(path, error) from error
    return ask_for_release(netconf_text, _network(node, network), endpoint)


def after_delete(node: ThisNode, network: str, request: Request) -> None:
    """Forget an endpoint whose addresses are released."""
    node.remove(endpoint_path(network, request.container_id, request.ifname))


def _network(node: ThisNode, network: str) -> AzureNetwork | None:
    path = network_path(network)
    text = _read(node, path)
    try:
        return None if text is None else parse_network(text)
    except ValueError as error:
        raise _damaged(path, error) from error


def _read(node: ThisNode, path: str) -> str | None:
    try:
        return node.read(path)
    except Missing:
        return None


def _damaged(path: str, error: ValueError) -> CniError:
    return CniError(INTERNAL, f"failed to read Azure state file {path}: {error}; remove it if it is damaged")
