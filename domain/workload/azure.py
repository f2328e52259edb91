"""What Azure's IPAM plugin needs to be told, and what has to be remembered for that.

`azure-vnet-ipam` hands out addresses of one subnet and wants to be asked with the subnet it chose first; on release
it wants the address. So the subnet is kept per network and the addresses per endpoint, in small files. This module
turns texts into texts; `usecases/pods/azure_state.py` reads and writes the files.

Invariant: what `network_text` and `endpoint_text` write, `parse_network` and `parse_endpoint` read back. A
configuration that needs no change is passed on character by character.
"""

from __future__ import annotations

from domain.bounded_name import LONGEST_FILE_NAME, bounded_name
from domain.cni.errors import INVALID_CONFIG, CniError
from domain.ipam.address import Cidr
from domain.json_text import dumps, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

PLUGIN = "azure-vnet-ipam"
STATE_DIRECTORY = "/var/run/calico/azure/networks"


class BadStateFile(ValueError):
    """`str()` says what it should hold."""


class AzureNetwork(Value):
    """`subnets` are CIDR texts; only the first is used."""

    name: str
    subnets: tuple[str, ...] = ()


class AzureEndpoint(Value):
    """`addresses` are address texts, a prefix length allowed; only the first is used."""

    network: str
    container_id: str
    interface: str
    addresses: tuple[str, ...] = ()


def network_path(network: str) -> str:
    return f"{_folder(network)}/network.json"


def endpoint_path(network: str, container_id: str, interface: str) -> str:
    return f"{_folder(network)}/{bounded_name(f'{container_id}-{interface}', LONGEST_FILE_NAME)}"


def _folder(network: str) -> str:
    return f"{STATE_DIRECTORY}/{bounded_name(network, LONGEST_FILE_NAME)}"


def network_text(network: AzureNetwork) -> str:
    return dumps({"Name": network.name, "Subnets": list(network.subnets)})


def endpoint_text(endpoint: AzureEndpoint) -> str:
    return dumps(
        {
            "Network": endpoint.network,
            "ContainerID": endpoint.container_id,
            "Interface": endpoint.interface,
            "Addresses": list(endpoint.addresses),
        }
    )


def parse_network(text: str) -> AzureNetwork:
    """ValueError, as by JSON's reader, if the text is not what `network_text` writes."""
    read = _object(text)
    return AzureNetwork(_text(read, "Name"), _texts(read, "Subnets"))


def parse_endpoint(text: str) -> AzureEndpoint:
    """ValueError, as by JSON's reader, if the text is not what `endpoint_text` writes."""
    read = _object(text)
    return AzureEndpoint(
        _text(read, "Network"), _text(read, "ContainerID"), _text(read, "Interface"), _texts(read, "Addresses")
    )


def network_after_add(name: str, addresses: tuple[Cidr, ...]) -> AzureNetwork:
    """The network as the first address of an answer shows it."""
    return AzureNetwork(name, tuple([str(address.network) for address in addresses[:1]]))


def ask_for_subnet(netconf_text: str, network: AzureNetwork | None) -> str:
    """The configuration for an ADD: with the subnet of the network, if one is known."""
    if network is None or not network.subnets:
        return netconf_text
    return _with_ipam(netconf_text, {"subnet": network.subnets[0]})


def ask_for_release(netconf_text: str, network: AzureNetwork | None, endpoint: AzureEndpoint | None) -> str:
    """The configuration for a DEL: with the address to release and its subnet, if both are known."""
    if network is None or not network.subnets or endpoint is None or not endpoint.addresses:
        return netconf_text
    address = endpoint.addresses[0].partition("/")[0]
    return _with_ipam(netconf_text, {"ipAddress": address, "subnet": network.subnets[0]})


def _with_ipam(netconf_text: str, members: dict[str, Json]) -> str:
    """The configuration with members of `ipam` set: keys sorted, no blanks, as the original writes it."""
    netconf = _object(netconf_text)
    ipam = netconf.get("ipam")
    if not isinstance(ipam, dict):
        raise CniError(INVALID_CONFIG, f"`ipam` in the network configuration must be an object to use {PLUGIN}")
    return dumps(_sorted({**netconf, "ipam": {**ipam, **members}}))


def _object(text: str) -> dict[str, Json]:
    read = parse(text)
    if isinstance(read, dict):
        return read
    raise BadStateFile("a JSON object is expected")


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


def _text(read: dict[str, Json], field: str) -> str:
    value = read.get(field, "")
    if isinstance(value, str):
        return value
    raise BadStateFile(f"{field} must be a string")


def _texts(read: dict[str, Json], field: str) -> tuple[str, ...]:
    values = read.get(field) or []
    texts = [value for value in values if isinstance(value, str)] if isinstance(values, list) else None
    if texts != values:
        raise BadStateFile(f"{field} must be a list of strings")
    return tuple(texts)
