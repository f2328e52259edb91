"""Labels that Mesos hands over: free text, made fit for Kubernetes' label rules.

Invariant: a sanitised text holds only letters, digits, `-`, `_` and `.`, and neither begins nor ends with `-` or `.`.
"""

from __future__ import annotations

NAMESPACE_LABEL = "projectcalico.org/namespace"
_ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def sanitise_label(text: str) -> str:
    """`/` becomes `.`, a run of foreign characters `-`, a dotted run of `.` and `-` one `.`; ends are stripped."""
    kept: list[str] = []
    in_foreign_run = False
    for character in text.replace("/", "."):
        foreign = character not in _ALLOWED
        if not (foreign and in_foreign_run):
            kept.append("-" if foreign else character)
        in_foreign_run = foreign
    return _join_dotted_runs("".join(kept)).strip(".-")


def _join_dotted_runs(text: str) -> str:
    """Each run of `.` and `-` that holds a `.` becomes one `.`; a run of `-` alone stays."""
    joined: list[str] = []
    at = 0
    while at < len(text):
        tail = text[at:]
        length = len(tail) - len(tail.lstrip(".-"))
        run = tail[: length or 1]
        joined.append("." if length and "." in run else run)
        at += len(run)
    return "".join(joined)


def mesos_namespace(labels: tuple[tuple[str, str], ...]) -> str:
    """The namespace that the labels ask for, sanitised; "" when they ask for none. The last one counts."""
    asked = [value for key, value in labels if key == NAMESPACE_LABEL]
    return sanitise_label(asked[-1]) if asked else ""


def mesos_endpoint_labels(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The labels for the endpoint, keys and values sanitised; the namespace label is not one of them."""
    return {sanitise_label(key): sanitise_label(value) for key, value in labels if key != NAMESPACE_LABEL}
