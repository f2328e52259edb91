"""What a runtime asks for: the CNI environment variables, checked in the CNI library's order.

Names go into paths, records and handles, so they are checked before anything else happens. CNI_ARGS are read here
too: `calico` ignores keys it does not know, `calico-ipam` only if it is told to.

Invariant: a `Request` that `read_request` returned has well-formed names; nothing later checks them again.
"""

from __future__ import annotations

from domain.cni.errors import (
    DECODING_FAILURE,
    INTERNAL,
    INVALID_CONFIG,
    INVALID_ENVIRONMENT,
    CniError,
)
from domain.cni.go_quote import go_quoted, go_quoted_list
from domain.cni.json_fields import WrongType, read_fields, text
from domain.cni.versions import UNDECLARED
from domain.ipam.address import Address
from domain.json_text import JsonError, kind_of, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from domain.json_text import Json

_NEEDED = {
    "ADD": ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"),
    "CHECK": ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"),
    "DEL": ("CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"),
    "GC": ("CNI_PATH",),
    "STATUS": ("CNI_PATH",),
}
_ORDER = ("CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH")
_ALNUM = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME = _ALNUM | frozenset("_.-")
_LONGEST_IFNAME = 15  # bytes: the kernel's IFNAMSIZ without the final zero


class CniArgs(Value):
    """CNI_ARGS as far as we know its keys. `ip` is the address asked for, None without one.

    `warnings` say what was not understood, where that is no reason to refuse.
    """

    ip: Address | None = None
    pod_name: str = ""
    pod_namespace: str = ""
    infra_container_id: str = ""
    pod_uid: str = ""
    test_namespace: str = ""
    mac: str = ""
    warnings: tuple[str, ...] = ()


class Request(Value):
    """One call. `args` is the text of CNI_ARGS as IPAM plugins get it; `path` CNI_PATH split; `netns` "" if absent.

    `netns_override` allows CNI_NETNS to be the plugin's own namespace. `interface_prefixes` is the text of
    FELIX_INTERFACEPREFIX: what Felix, on the same node, recognises pods' host devices by.
    """

    command: str
    container_id: str
    netns: str
    ifname: str
    args: str
    path: tuple[str, ...]
    netns_override: bool = False
    interface_prefixes: str = ""


def _well_formed(name: str) -> bool:
    r"""`^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`."""
    return name[:1] in _ALNUM and _NAME.issuperset(name)


def check_container_id(container_id: str) -> None:
    if not container_id or not _well_formed(container_id):
        raise CniError(INVALID_ENVIRONMENT, "invalid characters in containerID", container_id)


def check_ifname(ifname: str) -> None:
    """The kernel's rules for a device's name."""
    why, details = "", ""
    if not ifname:
        why = "interface name is empty"
    elif len(ifname.encode("utf-8", "surrogateescape")) > _LONGEST_IFNAME:
        why = "interface name is too long"
        details = f"interface name should be less than {_LONGEST_IFNAME + 1} characters"
    elif ifname in (".", ".."):
        why = "interface name is . or .."
    elif any(character in "/:" or character.isspace() for character in ifname):
        why = "interface name contains / or : or whitespace characters"
    elif any("\ud800" <= character <= "\udfff" for character in ifname):  # how an environment shows other bytes
        why = "interface name is not UTF-8"
    if why:
        raise CniError(INVALID_ENVIRONMENT, why, details)


def check_new_ifname(ifname: str) -> None:
    """For a device that is to be made: the kernel fills in a number for `%d`, so that the device has another name."""
    check_ifname(ifname)
    if "%" in ifname:
        raise CniError(INVALID_ENVIRONMENT, "interface name contains %", f"choose a name without %: {ifname}")


_CHECKS = {"CNI_CONTAINERID": check_container_id, "CNI_IFNAME": check_ifname}
_ADD_CHECKS = {**_CHECKS, "CNI_IFNAME": check_new_ifname}


def read_request(environ: Mapping[str, str], *, ignore_unknown_args: bool = False) -> Request:
    """The call as the environment describes it, checked in the CNI library's order. CniError 4.

    `ignore_unknown_args` puts `IgnoreUnknown=1` before CNI_ARGS, as `calico` does for itself and its IPAM plugin.
    """
    command = environ.get("CNI_COMMAND", "")
    needed = ("CNI_COMMAND", *_NEEDED.get(command, ()))
    checks = _ADD_CHECKS if command == "ADD" else _CHECKS
    missing = []
    for variable in _ORDER:
        if variable not in needed:
            continue
        given = environ.get(variable, "")
        if not given:
            missing.append(variable)
        elif variable in checks:
            checks[variable](given)
    if missing:
        raise CniError(INVALID_ENVIRONMENT, f"required env variables [{','.join(missing)}] missing")
    args = environ.get("CNI_ARGS", "")
    if ignore_unknown_args:
        args = f"IgnoreUnknown=1;{args}" if args else "IgnoreUnknown=1"
    return Request(
        command=command,
        container_id=environ.get("CNI_CONTAINERID", ""),
        netns=environ.get("CNI_NETNS", ""),
        ifname=environ.get("CNI_IFNAME", ""),
        args=args,
        path=tuple(environ.get("CNI_PATH", "").split(":")),
        netns_override=environ.get("CNI_NETNS_OVERRIDE", "").lower() in ("1", "true"),
        interface_prefixes=environ.get("FELIX_INTERFACEPREFIX", ""),
    )


def check_command(request: Request) -> None:
    """Whether the verb is one of the specification's; the library asks only after it has read stdin."""
    if request.command not in _NEEDED:
        raise CniError(INVALID_ENVIRONMENT, f"unknown CNI_COMMAND: {request.command}")


def check_config(netconf_text: str) -> dict[str, Json]:
    """The configuration's members, its name checked. CniError 6 for what is no JSON object, 7 for a bad name."""
    try:
        document = parse(netconf_text)
        if document is None:
            document = {}
        if not isinstance(document, dict):
            wanted = 'struct { Name string "json:\\"name\\"" }'
            raise JsonError(f"json: cannot unmarshal {kind_of(document)} into Go value of type {wanted}")
        name: str = read_fields(document, {"name": ("name", text)}, "").get("name", "")
    except (JsonError, WrongType) as error:
        raise CniError(DECODING_FAILURE, f"error unmarshall network config: {error}") from None
    if not name:
        raise CniError(INVALID_CONFIG, "missing network name")
    if not _well_formed(name):
        raise CniError(INVALID_CONFIG, "invalid characters found in network name", name)
    return document


def config_version(document: dict[str, Json]) -> str:
    """The configuration's `cniVersion`, 0.1.0 if it declares none. CniError 6 if it is no text."""
    try:
        found = read_fields(document, {"cniVersion": ("version", text)}, "")
    except WrongType as error:
        raise CniError(DECODING_FAILURE, f"decoding version from network config: {error}") from None
    return found.get("version", "") or UNDECLARED


def _truth(value: str) -> bool:
    lowered = value.lower()
    if lowered not in ("1", "true", "0", "false"):
        raise ValueError(f"boolean unmarshal error: invalid input {value}")
    return lowered in ("1", "true")


def _requested(value: str) -> Address | None:
    return Address.parse(value) if value else None


_COMMON = {"IgnoreUnknown": ("ignore_unknown", _truth), "IP": ("ip", _requested)}
_KNOWN = {
    **_COMMON,
    "K8S_POD_NAME": ("pod_name", str),
    "K8S_POD_NAMESPACE": ("pod_namespace", str),
    "K8S_POD_INFRA_CONTAINER_ID": ("infra_container_id", str),
    "CNI_TEST_NAMESPACE": ("test_namespace", str),
}
_POD_UID = "K8S_POD_UID"  # runtimes give it; the original does not know it, and refuses it where nothing unknown may be


def _read_pairs(args: str, known: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """CniError 999 for the first pair that is wrong, and for unknown keys where these are not to be ignored."""
    found, unknown, wrong = _look_at_pairs(args, known)
    if wrong:
        raise CniError(INTERNAL, wrong[0])
    if unknown and not found.pop("ignore_unknown", False):
        raise CniError(INTERNAL, f"ARGS: unknown args {go_quoted_list(unknown)}")
    found.pop("ignore_unknown", None)
    return found


def _look_at_pairs(args: str, known: Mapping[str, tuple[str, Any]]) -> tuple[dict[str, Any], list[str], list[str]]:
    """The known values, the pairs of other keys, and what is wrong with the rest."""
    found: dict[str, Any] = {}
    unknown: list[str] = []
    wrong: list[str] = []
    for pair in args.split(";") if args else ():
        if pair.count("=") != 1:
            wrong.append(f"ARGS: invalid pair {go_quoted(pair)}")
            continue
        key, _, value = pair.partition("=")
        if key not in known:
            unknown.append(pair)
            if key == _POD_UID:
                found["pod_uid"] = value
            continue
        field, read = known[key]
        try:
            found[field] = read(value)
        except ValueError as error:
            wrong.append(f"ARGS: error parsing value of pair {go_quoted(pair)}: {error}")
    return found, unknown, wrong


def parse_args(args: str) -> CniArgs:
    """The values of `K=V;K=V`. CniError 999 `ARGS: …` for a malformed pair or value, or a key we do not know.

    Unknown keys are fine when a pair says `IgnoreUnknown=1`; the last such pair decides.
    """
    return CniArgs(**_read_pairs(args, _KNOWN))


def parse_args_of(request: Request) -> CniArgs:
    """Those of a call. A DEL needs no more than the pod's name: it does without what it does not understand."""
    if request.command != "DEL":
        return parse_args(request.args)
    found, _, wrong = _look_at_pairs(request.args, _KNOWN)
    found.pop("ignore_unknown", None)
    return CniArgs(**found, warnings=tuple([f"DEL does without a pair of CNI_ARGS; mend it: {why}" for why in wrong]))


def check_address_args(args: str) -> None:
    """The original's calico-ipam reads CNI_ARGS again on ADD, knowing `IgnoreUnknown` and `IP` only (Calico quirk).

    So a pod's name without `IgnoreUnknown=1` is refused there. Same errors as `parse_args`.
    """
    _read_pairs(args, _COMMON)


def parse_mac_args(args: str) -> CniArgs:
    """The values of CNI_ARGS for a plugin that knows `IgnoreUnknown` and `MAC` only. Errors as `parse_args`."""
    return CniArgs(**_read_pairs(args, {"IgnoreUnknown": _COMMON["IgnoreUnknown"], "MAC": ("mac", str)}))


def parse_address_args(args: str) -> Address | None:
    """The `IP` of CNI_ARGS, for host-local, which knows `GATEWAY` too but does nothing with it."""
    found: Address | None = _read_pairs(args, {**_COMMON, "GATEWAY": ("gateway", _requested)}).get("ip")
    return found
