"""Whether a pod's addresses are to stay with its name, and under which name.

A pod of a StatefulSet is made anew under the name that it had, so its name is what its addresses are kept for. Any
other pod says so by an annotation: `true` for its own name, or a name, which pods that follow one another share.
`false` is for the pod of a StatefulSet that wants none of it.

Invariant: depends on the pod and the configuration alone; what cannot be honoured is refused, and says what can be.
"""

from __future__ import annotations

from domain.cni.netconf import KeepAs
from domain.workload.annotations import KEEP_ADDRESSES, BadAnnotation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import KeepAddresses
    from domain.workload.pod import OwnerReference, Pod

LONGEST = 366 * 86_400  # seconds that an address may be kept
_LONGEST_NAME = 63
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_LATER = _FIRST | {"-"}


class BadSetting(ValueError):
    """A member of `keep_addresses` that cannot be. `str()` says which, and what can."""


def require_sense(settings: KeepAddresses) -> None:
    """BadSetting for numbers that mean nothing."""
    for name, value, low, high in (
        ("seconds", settings.seconds, 1, LONGEST),
        ("max_per_node", settings.max_per_node, 0, 1 << 31),
        ("max_pool_percent", settings.max_pool_percent, 1, 100),
    ):
        if not low <= value <= high:
            raise BadSetting(f"ipam.keep_addresses.{name} is {value}, and must be from {low} to {high}")


def wished_name(pod: Pod, settings: KeepAddresses) -> KeepAs | None:
    """None for a pod like any other. BadAnnotation for a name that is none."""
    controller = next((owner for owner in pod.owners if owner.controller), None)
    raw = pod.annotations.get(KEEP_ADDRESSES, "")
    if raw == "false" or (not raw and (controller is None or controller.kind not in settings.owners)):
        return None
    name = raw if raw and raw != "true" else pod.name
    if name == raw and not is_name(raw):
        words = "it must be true, false or a name of at most 63 lower-case letters, digits and dashes"
        raise BadAnnotation(KEEP_ADDRESSES, raw, f'annotation "{KEEP_ADDRESSES}" is "{raw}": {words}')
    return KeepAs(name, pod.uid, _shown(controller))


def is_name(text: str) -> bool:
    """Whether it can be part of a record's name: a label of DNS."""
    return (
        0 < len(text) <= _LONGEST_NAME
        and text[0] in _FIRST
        and text[-1] in _FIRST
        and all(character in _LATER for character in text)
    )


def named_by(pod: Pod) -> str:
    """The name that the pod's annotation gives; "" if it gives none."""
    raw = pod.annotations.get(KEEP_ADDRESSES, "")
    return raw if raw not in ("true", "false") and is_name(raw) else ""


def _shown(controller: OwnerReference | None) -> str:
    return f"{controller.kind}/{controller.name} {controller.uid}" if controller else ""
