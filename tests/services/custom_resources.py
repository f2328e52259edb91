"""The custom resource definitions that tests need: Calico's in both API groups, and KubeVirt's.

    serve(client, "v1")               of all groups known here, exactly this one is served when it returns
    serve(client, "v3", "kubevirt")

Written from what the plugins rely on: names, scope, required members, types, defaults and limits. The kinds of IPAM
have complete schemas, so that an API server drops a member that we misspell as it would in a real cluster; where much
is of no interest to the plugins, unknown members stay.
"""

from __future__ import annotations

import time
from typing import Any

from services.kube_client import KubeClient, Object

GROUPS = {"v1": "crd.projectcalico.org/v1", "v3": "projectcalico.org/v3", "kubevirt": "kubevirt.io/v1"}
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LONGEST_CHANGE = 180.0
_HOLDS_BACK = 2.0  # seconds for which a server delays each creation of a resource whose definition is new

_TEXT: Object = {"type": "string"}
_FLAG: Object = {"type": "boolean"}
_NUMBER: Object = {"type": "integer", "format": "int64"}
_TIME: Object = {"type": "string", "format": "date-time"}
_TEXTS: Object = {"type": "object", "additionalProperties": _TEXT}
_NUMBERS: Object = {"type": "object", "additionalProperties": _NUMBER}
_OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _list(items: Object) -> Object:
    return {"type": "array", "items": items}


def _one_of(*words: str) -> Object:
    return _TEXT | {"enum": list(words)}


def _struct(required: str, **members: Object) -> Object:
    """An object that has these members only. `required` names those that must be there, between blanks."""
    return {"type": "object", "properties": members} | ({"required": required.split()} if required else {})


def _checked(schema: Object, *rules: str) -> Object:
    return schema | {"x-kubernetes-validations": [{"rule": rule} for rule in rules]}


_SINGLE_BLOCK_SIZE = "self == 0 || (self >= 20 && self <= 32) || (self >= 116 && self <= 128)"
_FITS_ONE_BLOCK = (
    "(has(self.disabled) && self.disabled) || !has(self.blockSize) || self.blockSize == 0"
    " || !isCIDR(self.cidr) || cidr(self.cidr).prefixLength() <= self.blockSize"
)


def _specs(version: str) -> dict[str, Object]:
    """The schema of `spec` by plural. In v3 the server fills in defaults, and an affinity's `deleted` is a boolean."""
    newer = version == "v3"

    def default(schema: Object, value: object) -> Object:
        return schema | ({"default": value} if newer else {})

    block = _struct(
        "allocations attributes cidr strictAffinity unallocated",
        cidr=_TEXT,
        affinity=_TEXT | ({"pattern": r"^(host|virtual):[a-zA-Z0-9\.\-_]+$"} if newer else {}),
        affinityClaimTime=_TIME,
        allocations=_list({"type": "integer", "nullable": True}),
        unallocated=_list({"type": "integer"}),
        attributes=_list(
            _struct("", handle_id=_TEXT, secondary=_TEXTS, alternateOwnerAttrs=_TEXTS, releasedAt=_TIME),
        ),
        sequenceNumber=_NUMBER | {"default": 0},
        sequenceNumberForAllocation=_NUMBERS,
        deleted=_FLAG,
        strictAffinity=_FLAG,
    )
    affinity = _struct(
        "cidr deleted node state",
        cidr=_TEXT,
        node=_TEXT,
        type=_TEXT,
        state=_one_of("", "confirmed", "pending", "pendingDeletion") if newer else _TEXT,
        deleted=default(_FLAG, value=False) if newer else _TEXT,
    )
    config = _struct(
        "autoAllocateBlocks strictAffinity",
        strictAffinity=default(_FLAG, value=False),
        autoAllocateBlocks=default(_FLAG, value=True),
        maxBlocksPerHost=default(
            {"type": "integer", "minimum": 0, "maximum": 1_000_000 if newer else 2_147_483_647}, value=0
        ),
        ipCooldownSeconds={"type": "integer", "minimum": 0, "maximum": 1200},
        kubeVirtVMAddressPersistence=_one_of("Enabled", "Disabled"),
    )
    pool = _checked(
        _OPEN
        | _struct(
            "cidr",
            cidr=_checked(_TEXT | {"format": "cidr", "maxLength": 48}, "self == oldSelf"),
            blockSize=_checked({"type": "integer"}, "self == oldSelf", _SINGLE_BLOCK_SIZE),
            nodeSelector=default(_TEXT, "all()"),
            assignmentMode=default(_one_of("Automatic", "Manual"), "Automatic"),
            allowedUses=_list(_TEXT),
            disabled=_FLAG,
        ),
        _FITS_ONE_BLOCK,
    )
    return {
        "ippools": pool,
        "ipreservations": _struct("", reservedCIDRs=_list(_TEXT | {"format": "cidr"})),
        "ipamblocks": block,
        "ipamhandles": _struct("block handleID", handleID=_TEXT, block=_NUMBERS, deleted=_FLAG),
        "blockaffinities": affinity,
        "ipamconfigurations" if newer else "ipamconfigs": config,
        "clusterinformations": _OPEN | _struct("", datastoreReady=_FLAG),
    }


_KINDS = {
    "ippools": "IPPool",
    "ipreservations": "IPReservation",
    "ipamblocks": "IPAMBlock",
    "ipamhandles": "IPAMHandle",
    "blockaffinities": "BlockAffinity",
    "ipamconfigs": "IPAMConfig",
    "ipamconfigurations": "IPAMConfiguration",
    "clusterinformations": "ClusterInformation",
    "virtualmachines": "VirtualMachine",
    "virtualmachineinstances": "VirtualMachineInstance",
    "virtualmachineinstancemigrations": "VirtualMachineInstanceMigration",
}
_KUBEVIRT = ["virtualmachines", "virtualmachineinstances", "virtualmachineinstancemigrations"]
_SHORT_NAMES = {"ipamconfigurations": ["ipamconfig", "ipamconfigs"]}


def kinds(group: str) -> dict[str, str]:
    """Plural → kind of each resource of a group, which is a key of GROUPS."""
    return {plural: _KINDS[plural] for plural in (_KUBEVIRT if group == "kubevirt" else _specs(group))}


def definitions(group: str) -> list[Object]:
    """The definitions of a group's resources, as the API server takes them."""
    if group == "kubevirt":
        return [_definition(group, plural, {"spec": _OPEN, "status": _OPEN}) for plural in _KUBEVIRT]
    return [
        _definition(group, plural, {"spec": spec} | ({"status": _OPEN} if plural == "ippools" else {}))
        for plural, spec in _specs(group).items()
    ]


def _definition(group: str, plural: str, members: dict[str, Object]) -> Object:
    name, version = GROUPS[group].split("/")
    served: dict[str, Any] = {"name": version, "served": True, "storage": True}
    served["schema"] = {"openAPIV3Schema": {"type": "object", "properties": members}}
    if plural == "ippools":
        served["subresources"] = {"status": {}}
    kind = _KINDS[plural]
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {
        "group": name,
        "scope": "Namespaced" if group == "kubevirt" else "Cluster",
        "names": names | ({"shortNames": _SHORT_NAMES[plural]} if plural in _SHORT_NAMES else {}),
        "versions": [served],
    }
    # The group projectcalico.org is open to all; kubernetes.io and k8s.io would want an approval annotation.
    metadata = {"name": f"{plural}.{name}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def served(client: KubeClient) -> list[str]:
    """The groups known here that the server has, as keys of GROUPS."""
    found = {group["name"] for group in client.get("/apis")["groups"]}
    return [name for name, group in GROUPS.items() if group.split("/")[0] in found]


def serve(client: KubeClient, *groups: str) -> None:
    """Install these groups and remove the others, with their objects; return when the server behaves so."""
    have = {one["metadata"]["name"] for one in client.list(_DEFINITIONS)}
    created = False
    for group in GROUPS:
        for one in definitions(group):
            name = one["metadata"]["name"]
            if group in groups and name not in have:
                client.create(_DEFINITIONS, one)
                created = True
            elif group not in groups and name in have:
                client.delete(f"{_DEFINITIONS}/{name}")
    ends = time.monotonic() + _LONGEST_CHANGE
    while missing := _not_yet(client, groups):
        if time.monotonic() > ends:
            raise RuntimeError(f"the API server has not changed to serve {groups} only: {missing}")
        time.sleep(0.05)
    if created:
        time.sleep(_HOLDS_BACK)  # here, and not within whatever a test measures


def _not_yet(client: KubeClient, groups: tuple[str, ...]) -> str:
    """What is not yet as wanted, "" if nothing. Discovery lags behind a definition, and lists behind discovery."""
    found = served(client)
    for group, path in GROUPS.items():
        if (group in groups) != (group in found):
            return f"group {group}"
        version = client.find(f"/apis/{path}")
        if (group in groups) != (version is not None):
            return f"version {path}"
        if version is not None:
            listed = {one["name"] for one in version["resources"]}
            for plural in kinds(group):
                if plural not in listed or client.find(f"/apis/{path}/{plural}?limit=1") is None:
                    return plural
    return ""
