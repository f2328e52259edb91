"""YAML on the usual library, for files that somebody else has written: aliases must not blow a short text up.

Invariant: what is loaded is a tree, with at most `MOST_COPIES` values beyond those that the text spells out.
"""

from __future__ import annotations

import yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_COPIES = 10_000  # nodes that aliases may add to what a file spells out


class RefusedYaml(yaml.MarkedYAMLError):
    """YAML, but not as we take it."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class BoundedLoader(yaml.SafeLoader):
    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = 0  # so far, those that aliases stand for included
        self._copies = 0  # those alone
        self._sizes: dict[str, int] = {}  # nodes below each anchor, once it is complete

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # typeshed has no types for it
        if isinstance(event, yaml.AliasEvent):
            node = super().compose_node(parent, index)
            self._count_alias(event)
            return node
        before = self._nodes
        self._sizes.pop(event.anchor, None)  # an earlier document's
        node = super().compose_node(parent, index)
        self._nodes += 1
        if event.anchor:
            self._sizes[event.anchor] = self._nodes - before
        return node

    def _count_alias(self, event: Any) -> None:
        size = self._sizes.get(event.anchor)
        if size is None:
            raise RefusedYaml(f"alias {event.anchor} stands inside what it stands for", event.start_mark)
        self._nodes += size
        self._copies += size
        if self._copies > MOST_COPIES:
            raise RefusedYaml(f"aliases stand for more than {MOST_COPIES} values", event.start_mark)
