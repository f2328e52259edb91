"""The CNI versions we speak, and the library's checks of what a configuration asks for.

Two comparisons exist and must not be confused: ADD and DEL want the configuration's version to be in the list to the
letter; CHECK, GC and STATUS first ask whether it is at least the one that introduced the verb.

Invariant: what is refused is refused in the CNI library's words.
"""

from __future__ import annotations

from domain.cni.errors import DECODING_FAILURE, INCOMPATIBLE_VERSION, CniError
from domain.cni.go_quote import go_quoted, go_quoted_list
from domain.json_text import dumps

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0")
SUPPORTED_BY_BRIDGE = (*SUPPORTED, "1.1.0")
UNDECLARED = "0.1.0"  # what a configuration without `cniVersion` counts as in these checks
_LIBRARY = "1.1.0"  # the original's VERSION answer names its library's version, which it then refuses (Calico quirk)
_INTRODUCED = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}
_PARTS = ("major", "minor", "micro")


class BadVersion(ValueError):
    """`str()` is the CNI library's text."""


def version_text(supported: tuple[str, ...] = SUPPORTED) -> str:
    """The answer to VERSION: one line, with its newline."""
    return dumps({"cniVersion": _LIBRARY, "supportedVersions": list(supported)}) + "\n"


def supported_text(supported: tuple[str, ...] = SUPPORTED) -> str:
    """The line that follows the about text."""
    return "CNI protocol versions supported: " + ", ".join(supported)


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit()


def parse_version(text: str) -> tuple[int, int, int]:
    """Major, minor, micro; missing parts are 0, an empty text is 0.1.0. BadVersion for what is none."""
    if not text:
        text = UNDECLARED
    parts = text.split(".")
    if len(parts) > 3:
        raise BadVersion(f"invalid version {go_quoted(text)}: too many parts")
    numbers = [0, 0, 0]
    for at, part in enumerate(parts):
        if not _is_integer(part):
            shown = go_quoted(part)
            why = f"strconv.Atoi: parsing {shown}: invalid syntax"
            raise BadVersion(f"failed to convert {_PARTS[at]} version part {shown}: {why}")
        numbers[at] = int(part[:20])  # an int64 at most in the original; beyond it only "very large" matters
    return numbers[0], numbers[1], numbers[2]


def check_version(verb: str, version: str, supported: tuple[str, ...] = SUPPORTED) -> None:
    """Whether a configuration of that version may ask for that verb. CniError 1, or 6 for a version that is none."""
    if verb in _INTRODUCED:
        try:
            wanted = parse_version(version)
        except BadVersion as error:
            raise CniError(DECODING_FAILURE, str(error)) from None
        if wanted < parse_version(_INTRODUCED[verb]):
            raise CniError(INCOMPATIBLE_VERSION, f"config version does not allow {verb}")
        if wanted > parse_version(supported[-1]):
            raise CniError(INCOMPATIBLE_VERSION, f"plugin version does not allow {verb}")
    if version not in supported:
        details = f"config is {go_quoted(version)}, plugin supports {go_quoted_list(supported)}"
        raise CniError(INCOMPATIBLE_VERSION, "incompatible CNI versions", details)
