"""IPPools and IPReservations ↔ JSON text.

Invariant: a pool's status is rewritten as it was read as long as its conditions are the ones that were read; members
that readers must default (block size, uses, …) stay absent when they were.
"""

from __future__ import annotations

from adapters.records.members import Members, object_text, texts_text
from adapters.records.resources import encode_resource, open_resource, texts_members
from domain.ipam.pools import Pool
from domain.ipam.reservations import Reservation
from domain.json_text import dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.records.members import Unknown
    from domain.json_text import Json
    from domain.resource import Metadata

    Conditions = tuple[tuple[str, str], ...]


def _conditions(status: Json) -> Conditions:
    members = Members({} if status is None else status, "status")
    return tuple([(one.text("type"), one.text("status")) for one in members.objects("conditions")])


def _status_of(conditions: Conditions) -> str:
    if not conditions:
        return ""
    return dumps({"conditions": [{"type": kind, "status": status} for kind, status in conditions]})


def pool_spec(pool: Pool) -> str:
    known = [
        ("cidr", dumps(pool.cidr_text)),
        *texts_members([("vxlanMode", pool.vxlan_mode), ("ipipMode", pool.ipip_mode)]),
    ]
    flags = (
        ("natOutgoing", pool.nat_outgoing),
        ("disabled", pool.disabled),
        ("disableBGPExport", pool.disable_bgp_export),
    )
    known += [(name, "true") for name, flag in flags if flag]
    if pool.block_size:
        known.append(("blockSize", str(pool.block_size)))
    known += texts_members([("nodeSelector", pool.node_selector), ("namespaceSelector", pool.namespace_selector)])
    if pool.allowed_uses:
        known.append(("allowedUses", texts_text(pool.allowed_uses)))
    known += texts_members([("assignmentMode", pool.assignment_mode)])
    return object_text(known, pool.spec_unknown)


def encode_pool(pool: Pool) -> str:
    status, unknown = pool_status(pool)
    return encode_resource("IPPool", pool.metadata, pool_spec(pool), status, unknown)


def pool_status(pool: Pool) -> tuple[str, Unknown]:
    """The status: the text that was read when it still says the same, else made from `conditions`, "" for none; and
    the members that nobody knows.
    """
    kept = dict(pool.unknown).get("status", "")
    if not kept or _conditions(parse(kept)) != pool.conditions:
        kept = _status_of(pool.conditions)
    return kept, tuple([(name, text) for name, text in pool.unknown if name != "status"])


def decode_pool(text: str) -> Pool:
    return read_pool(*open_resource(text))


def read_pool(members: Members, metadata: Metadata) -> Pool:
    """The pool that the members besides the metadata describe."""
    spec = members.inner("spec")
    status = members.take("status")
    conditions = _conditions(status)
    kept = "" if status is None else dumps(status)
    if kept == _status_of(conditions):  # nothing in it that `conditions` does not say
        kept = ""
    return Pool(
        metadata=metadata,
        cidr_text=spec.text("cidr"),
        block_size=spec.number("blockSize"),
        disabled=spec.flag("disabled"),
        node_selector=spec.text("nodeSelector"),
        namespace_selector=spec.text("namespaceSelector"),
        allowed_uses=spec.texts("allowedUses"),
        assignment_mode=spec.text("assignmentMode"),
        ipip_mode=spec.spare("ipipMode", spec.text, ""),
        vxlan_mode=spec.spare("vxlanMode", spec.text, ""),
        nat_outgoing=spec.spare("natOutgoing", spec.flag, False),
        disable_bgp_export=spec.spare("disableBGPExport", spec.flag, False),
        conditions=conditions,
        deleting=any(name == "deletionTimestamp" and shown != "null" for name, shown in metadata.unknown),
        unknown=(*((("status", kept),) if kept else ()), *members.rest()),
        spec_unknown=spec.rest(),
    )


def encode_reservation(reservation: Reservation) -> str:
    spec = reservation_spec(reservation)
    return encode_resource("IPReservation", reservation.metadata, spec, unknown=reservation.unknown)


def reservation_spec(reservation: Reservation) -> str:
    known = [("reservedCIDRs", texts_text(reservation.cidrs))] if reservation.cidrs else []
    return object_text(known, reservation.spec_unknown)


def decode_reservation(text: str) -> Reservation:
    return read_reservation(*open_resource(text))


def read_reservation(members: Members, metadata: Metadata) -> Reservation:
    """The reservation that the members besides the metadata describe."""
    spec = members.inner("spec")
    return Reservation(
        metadata=metadata,
        cidrs=spec.texts("reservedCIDRs"),
        unknown=members.rest(),
        spec_unknown=spec.rest(),
    )
