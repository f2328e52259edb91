"""The `ipam` section of a configuration as text, so that what an ADD had can be handed to the IPAM plugin later.

Invariant: pure; what `with_ipam_section` returned has that section and no other, and is otherwise what it was.
"""

from __future__ import annotations

from domain.json_text import JsonError, dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

_KEY = "ipam"


def ipam_section(netconf_text: str) -> str:
    """An empty text without one."""
    document = _document(netconf_text)
    section = next((value for key, value in document.items() if key.lower() == _KEY), None)
    return dumps(section) if isinstance(section, dict) else ""


def with_ipam_section(netconf_text: str, section: str) -> str:
    kept = {key: value for key, value in _document(netconf_text).items() if key.lower() != _KEY}
    return dumps({**kept, _KEY: parse(section)})


def _document(text: str) -> dict[str, Json]:
    try:
        document = parse(text)
    except JsonError:
        return {}
    return document if isinstance(document, dict) else {}
