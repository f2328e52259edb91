"""The bridge plugin's configuration: every key with its type, default and error (docs/configuration.md lists them).

The plugin answers to two names. As `bridge` it has the defaults of the CNI project's plugin of that name. As
`my-custom-cni` it is a gateway and default gateway unless the configuration says something about that, names the
host's device after the container, and makes devices with an MTU of 1500.

Invariant: what `read_bridge_conf` returned is complete and possible; no later code knows which name was called.
"""

from __future__ import annotations

from domain.bridge.trunk import LAST, BadTrunk, TrunkItem, trunk_vlans
from domain.cni.errors import INTERNAL, INVALID_CONFIG, CniError
from domain.cni.json_fields import WrongType, flag, integer, read_fields, section, sections, text, without
from domain.cni.plugin_conf import Delegate, PluginConf
from domain.cni.request import check_new_ifname
from domain.cni.result import Dns, read_dns
from domain.json_text import dumps, kind_of
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from domain.cni.json_fields import Fields
    from domain.json_text import Json

DEFAULT_BRIDGE, DEFAULT_MTU = "cni0", 1500
LONGEST_NAME = 15  # bytes of a device's name
SMALLEST_MTU, LARGEST_MTU = 68, 65535  # the kernel's for bridges and pairs
ENDING = ("DEL", "GC")  # verbs that need little of a configuration, and after which nothing may be left
DEFAULT_STATE_DIR = "/var/lib/cni/my-custom-cni"
OWN_NAMES = ("my-custom-cni", "bridge")
NAMED_AFTER_CONTAINER, NAMED_AT_RANDOM = "tutorial", "random"
IPTABLES, NFTABLES = "iptables", "nftables"


class AttachmentId(Value):
    """One interface of one container; with the network's name it says whose a resource is."""

    container_id: str = ""
    ifname: str = ""


class BridgeConf(PluginConf):
    """`vlans` are the trunk's; `has_trunk` whether the key is there at all, which alone makes a bridge filter VLANs.

    `mtu` 0 leaves the kernel's default. `masquerade_backend` "" is whatever works. `valid_attachments` is None when
    the configuration does not tell. `mac` is what it asks for, unread.
    """

    bridge: str = DEFAULT_BRIDGE
    is_gateway: bool = False
    is_default_gateway: bool = False
    force_address: bool = False
    masquerade: bool = False
    masquerade_backend: str = ""
    mtu: int = 0
    hairpin: bool = False
    promiscuous: bool = False
    vlan: int = 0
    vlans: tuple[int, ...] = ()
    has_trunk: bool = False
    preserve_default_vlan: bool = False
    mac_spoof_check: bool = False
    dad: bool = False
    disable_container_interface: bool = False
    port_isolation: bool = False
    dns: Dns = Dns()
    mac: str = ""
    host_naming: str = NAMED_AT_RANDOM
    loopback_up: bool = False
    state_dir: str = DEFAULT_STATE_DIR
    collect_host_local: bool = False
    requires_prev_result: bool = True
    valid_attachments: tuple[AttachmentId, ...] | None = None

    @property
    def layer_3(self) -> bool:
        return bool(self.ipam.type)

    @property
    def filters_vlans(self) -> bool:
        """Whether a bridge that this configuration makes keeps its ports' VLANs apart."""
        return bool(self.vlan) or self.has_trunk


def read_bridge_conf(document: Json, *, own_name: bool, verb: str = "ADD") -> BridgeConf:
    """`own_name`: whether the plugin was called as my-custom-cni.

    CniError 999 `failed to load netconf: …` for a member of a wrong type, 999 or 7 for a value that cannot be. A verb
    that ends something (ENDING) warns of it instead and goes on with the default, unless it would not know what to end.
    """
    if document is None:
        document = {}
    if not isinstance(document, dict):
        why = f"json: cannot unmarshal {kind_of(document)} into Go value of type main.NetConf"
        raise CniError(INTERNAL, f"failed to load netconf: {why}")
    ending = verb in ENDING
    found, warnings = _members(document, verb)
    for key, field, read in _VALUES:
        try:
            if field in found:
                found[field] = read(found[field])
        except CniError as error:
            if not ending:
                raise
            del found[field]
            warnings.append(_does_without(verb, key, error.message))
    has_trunk = "vlans" in found
    conf = BridgeConf(
        **{**_defaults(found, own_name=own_name), **_mac(found), **_valid(found), **found},
        has_trunk=has_trunk,
        warnings=tuple(warnings),
    )
    return conf.replace(mtu=max(0, conf.mtu), is_gateway=conf.is_gateway or conf.is_default_gateway)


def _members(document: dict[str, Json], verb: str) -> tuple[dict[str, Any], list[str]]:
    """(fields, warnings). If it cannot be read whether rules were asked for, they are looked for; if it cannot be
    read what is valid, GC does nothing.
    """
    warnings: list[str] = []
    best: dict[str, Any] = {}
    while True:
        try:
            return {**read_fields(document, _CONF, "NetConf"), **best}, warnings
        except WrongType as error:
            if verb not in ENDING or (verb == "GC" and error.place[0] in _VALID):
                raise CniError(INTERNAL, f"failed to load netconf: {error}") from None
            document = without(document, error.spelt)
            warnings.append(_does_without(verb, ".".join(error.spelt), str(error)))
            best.update(_INSTEAD.get(error.place[0], {}))


def _does_without(verb: str, member: str, why: str) -> str:
    return f'{verb} does without "{member}" of the network configuration; mend it: {why}'


def refuse_contradictions(conf: BridgeConf) -> None:
    """What only an ADD minds. CniError 999 with the reference plugin's texts."""
    if conf.layer_3 and conf.disable_container_interface:
        raise CniError(INTERNAL, "cannot use IPAM when DisableContainerInterface flag is set")
    if conf.hairpin and conf.promiscuous:
        raise CniError(INTERNAL, "cannot set hairpin mode and promiscuous mode at the same time")
    if conf.vlan and conf.is_gateway and conf.layer_3 and len(f"{conf.bridge}.{conf.vlan}".encode()) > LONGEST_NAME:
        why = f"it has more than {LONGEST_NAME} bytes; shorten bridge"
        raise CniError(INVALID_CONFIG, f'invalid name "{conf.bridge}.{conf.vlan}" of the gateway in VLAN: {why}')
    if conf.masquerade and conf.masquerade_backend not in {"", IPTABLES, NFTABLES}:
        raise CniError(INTERNAL, f'unknown ipmasq backend "{conf.masquerade_backend}"')


def _defaults(found: dict[str, Any], *, own_name: bool) -> dict[str, Any]:
    if not own_name:
        return {}
    gateway = "is_gateway" not in found
    return {
        "is_gateway": gateway,
        "is_default_gateway": gateway,
        "host_naming": NAMED_AFTER_CONTAINER,
        "loopback_up": True,
        "mtu": DEFAULT_MTU,
        "requires_prev_result": False,
    }


def _mac(found: dict[str, Any]) -> dict[str, Any]:
    """The runtime's wish goes before that of the configuration."""
    wishes = (found.pop("runtime_mac", ""), found.pop("args_mac", ""))
    return {"mac": wishes[0] or wishes[1]}


def _valid(found: dict[str, Any]) -> dict[str, Any]:
    """Under the specification's key, or the one that it had before."""
    valid, older = found.pop("valid", None), found.pop("older_valid", None)
    return {"valid_attachments": older if valid is None else valid}


def _vlan(vlan: int) -> int:
    if not 0 <= vlan <= LAST:
        raise CniError(INTERNAL, f"invalid VLAN ID {vlan} (must be between 0 and {LAST})")
    return vlan


def _trunk(items: tuple[TrunkItem, ...]) -> tuple[int, ...]:
    try:
        return trunk_vlans(items)
    except BadTrunk as error:
        raise CniError(INTERNAL, str(error)) from None


def _mtu(mtu: int) -> int:
    if mtu > 0 and not SMALLEST_MTU <= mtu <= LARGEST_MTU:
        limits = f"must be between {SMALLEST_MTU} and {LARGEST_MTU}, or 0 for the default"
        raise CniError(INVALID_CONFIG, f"invalid mtu {mtu} ({limits})")
    return mtu


def _bridge(name: str) -> str:
    try:
        check_new_ifname(name)
    except CniError as error:
        raise CniError(INVALID_CONFIG, f'invalid bridge name "{name}": {error.message}', error.details) from None
    return name


def _host_naming(naming: str) -> str:
    if naming not in {NAMED_AFTER_CONTAINER, NAMED_AT_RANDOM}:
        known = f'"{NAMED_AFTER_CONTAINER}" or "{NAMED_AT_RANDOM}"'
        raise CniError(INVALID_CONFIG, f'invalid hostVethNaming "{naming}" (must be {known})')
    return naming


def _ipam(ipam: Delegate) -> Delegate:
    if "/" in ipam.type:
        raise CniError(INTERNAL, f"invalid plugin name: {ipam.type}")
    if ipam.type in OWN_NAMES:
        raise CniError(INVALID_CONFIG, f'ipam.type "{ipam.type}" is this plugin itself; "host-local" is an IPAM plugin')
    return ipam


def _state_dir(directory: str) -> str:
    if not directory.startswith("/"):
        raise CniError(INVALID_CONFIG, f'invalid stateDir "{directory}": not an absolute path')
    if "\0" in directory:
        raise CniError(INVALID_CONFIG, "invalid stateDir: it has a zero byte in it")
    return directory


# What may be of the right type and yet no value: key, field, and what returns it or raises CniError.
_VALUES: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("vlan", "vlan", _vlan),
    ("vlanTrunk", "vlans", _trunk),
    ("mtu", "mtu", _mtu),
    ("bridge", "bridge", _bridge),
    ("hostVethNaming", "host_naming", _host_naming),
    ("ipam.type", "ipam", _ipam),
    ("stateDir", "state_dir", _state_dir),
)
_VALID = ("cni.dev/valid-attachments", "cni.dev/attachments")
_INSTEAD = {"ipMasq": {"masquerade": True}, "macspoofchk": {"mac_spoof_check": True}}


def _raw(value: Json, _where: str) -> str:
    return dumps(value)


def _mac_in(name: str, path: str, go_type: str) -> Any:
    """A reader for an object of which only `mac` counts."""
    return section({"mac": ("mac", text)}, lambda found: found.get("mac", ""), go_type, path, name)


_ATTACHMENT: Fields = {"containerID": ("container_id", text), "ifname": ("ifname", text)}


def _attachments(key: str) -> Any:
    return sections(_ATTACHMENT, "types.GCAttachment", f"{key}.", lambda found: AttachmentId(**found))


_TRUNK: Fields = {"minID": ("min_id", integer), "maxID": ("max_id", integer), "id": ("id", integer)}
_ARGS: Fields = {"cni": ("mac", _mac_in("BridgeArgs", "args.cni.", "main.BridgeArgs"))}
_CONF: Fields = {
    "cniVersion": ("cni_version", text),
    "name": ("name", text),
    "type": ("type", text),
    "ipam": ("ipam", section({"type": ("type", text)}, lambda found: Delegate(**found), "types.IPAM", "ipam.")),
    "prevResult": ("prev_result", _raw),
    "timeout_seconds": ("timeout_seconds", integer),
    "logLevel": ("log_level", text),
    "logFormat": ("log_format", text),
    "logFile": ("log_file_path", text),
    "metrics_dir": ("metrics_dir", text),
    "bridge": ("bridge", text),
    "isGateway": ("is_gateway", flag),
    "isDefaultGateway": ("is_default_gateway", flag),
    "forceAddress": ("force_address", flag),
    "ipMasq": ("masquerade", flag),
    "ipMasqBackend": ("masquerade_backend", text),
    "mtu": ("mtu", integer),
    "hairpinMode": ("hairpin", flag),
    "promiscMode": ("promiscuous", flag),
    "vlan": ("vlan", integer),
    "vlanTrunk": ("vlans", sections(_TRUNK, "main.VlanTrunk", "vlanTrunk.", lambda found: TrunkItem(**found))),
    "preserveDefaultVlan": ("preserve_default_vlan", flag),
    "macspoofchk": ("mac_spoof_check", flag),
    "enabledad": ("dad", flag),
    "disableContainerInterface": ("disable_container_interface", flag),
    "portIsolation": ("port_isolation", flag),
    "dns": ("dns", read_dns),
    "args": ("args_mac", section(_ARGS, lambda found: found.get("mac", ""), "main.Args", "args.")),
    "runtimeConfig": ("runtime_mac", _mac_in("RuntimeConfig", "runtimeConfig.", "main.RuntimeConfig")),
    "hostVethNaming": ("host_naming", text),
    "stateDir": ("state_dir", text),
    "gcHostLocal": ("collect_host_local", flag),
    _VALID[0]: ("valid", _attachments(_VALID[0])),
    _VALID[1]: ("older_valid", _attachments(_VALID[1])),
}
