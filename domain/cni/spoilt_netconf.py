"""A network configuration with members of a wrong type, as a DEL reads it: a container has to end all the same.

Such a member counts as absent. One that says where records are is lost: the work on records needs it, the rest of the
DEL does without. A few say under which name things were made. With another value there than ADD had, a DEL would look
in the wrong place, find nothing and call that a success; so for these it is refused.

Invariant: what is left out is told, once for each member.
"""

from __future__ import annotations

from domain.cni.datastores import LEADING_FILE, LEADS, SETTINGS
from domain.cni.json_fields import WrongType, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from domain.cni.datastores import Place
    from domain.json_text import Json

# The node's name, and for the network plugin also who has made the device. `name` and `cniVersion` are read before
# (`domain.cni.request`).
_NEEDED_BY_IPAM: frozenset[Place] = frozenset([("nodename",), ("nodename_file",), ("hostname",)])
_NEEDED_BY_NETWORK = _NEEDED_BY_IPAM | {("dataplane_options",)}
# Who gave the addresses is found out otherwise, as far as that can be.
_WHO_GAVE_ADDRESSES: frozenset[Place] = frozenset([("ipam",), ("ipam", "type")])
# Each with the place that a value has to be found for.
_WHERE_RECORDS: dict[Place, Place] = {
    ("kubernetes",): ("kubernetes", "kubeconfig"),
    **{place: place for _, place, _, _, what in SETTINGS if place and what in (LEADS, LEADING_FILE)},
}
# What stands for a member of a wrong type where its default would hold DEL up.
_INSTEAD: dict[Place, dict[str, Any]] = {("nodename_file_optional",): {"nodename_file_optional": True}}


def without_spoilt(
    document: dict[str, Json], read: Callable[[dict[str, Json]], dict[str, Any]], *, ipam_only: bool
) -> dict[str, Any]:
    """The members by field, with `warnings`, `lost` and `lost_ipam`. WrongType for one that is needed.

    `read` gives the members of a document, or raises WrongType. `ipam_only` is the DEL of the IPAM plugin, which makes
    no devices and delegates to nobody.
    """
    needed = _NEEDED_BY_IPAM if ipam_only else _NEEDED_BY_NETWORK
    warnings: tuple[str, ...] = ()
    best: dict[str, Any] = {}
    lost: tuple[tuple[Place, str], ...] = ()
    lost_ipam = ""
    while True:
        try:
            return {**read(document), **best, "warnings": warnings, "lost": lost, "lost_ipam": lost_ipam}
        except WrongType as error:
            if error.place in needed:
                raise
            document = without(document, error.spelt)
            warnings += (f'DEL does without "{".".join(error.spelt)}" of the network configuration; mend it: {error}',)
            if error.place in _WHERE_RECORDS:
                lost += ((_WHERE_RECORDS[error.place], f"failed to load netconf: {error}"),)
            if error.place in _WHO_GAVE_ADDRESSES:
                lost_ipam = f"failed to load netconf: {error}"
            best.update(_INSTEAD.get(error.place, {}))
