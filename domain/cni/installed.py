"""A plugin's configuration as it lies in a runtime's folder: by itself (conf), or in a network's list (conflist).

Invariant: what comes out is what a runtime would give the plugin, as far as the file says it.
"""

from __future__ import annotations

from domain.json_text import JsonError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json


def plugin_document(text: str, network: str, plugin: str) -> dict[str, Json] | None:
    """The network's configuration of that plugin; None if the text has none, or is none."""
    try:
        document = parse(text)
    except JsonError:
        return None
    if not isinstance(document, dict) or document.get("name") != network:
        return None
    plugins = document.get("plugins")
    shared: dict[str, Json] = {member: document[member] for member in ("cniVersion", "name") if member in document}
    for one in plugins if isinstance(plugins, list) else [document]:
        if isinstance(one, dict) and one.get("type") == plugin:
            return {**one, **shared}
    return None
