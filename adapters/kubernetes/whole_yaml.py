"""A kubeconfig that is written by hand, with anchors, aliases, merge keys, tags, or another document behind it.

The original's client library reads it, so it is read, on the usual YAML library. That takes longer to load than the
rest of a call, so it is asked only for what `yaml_subset` does not understand.

Invariant: scalars mean what they mean there; of several documents the first counts, as in the original.
"""

from __future__ import annotations

import yaml

from adapters.bounded_yaml import BoundedLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.json_text import Json

_KEPT = ("null", "bool", "merge")  # no field here is a number or a date


class _Loader(BoundedLoader):
    yaml_implicit_resolvers = {
        first: [(tag, rule) for tag, rule in rules if tag.rpartition(":")[2] in _KEPT]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def by_kind(self, node: Any) -> Any:
        """Whatever a tag says."""
        if isinstance(node, yaml.MappingNode):
            return self.construct_mapping(node, deep=True)
        return self.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


for _tag in (None, *[f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "int", "float", "timestamp", "binary")]):
    _Loader.add_constructor(_tag, _Loader.by_kind)  # None: any other tag


def first_document(text: str) -> Json:
    """ValueError if it is no YAML; its text may show what is secret."""
    loader = _Loader(text)
    try:
        found: Json = loader.get_data() if loader.check_data() else None  # type: ignore[no-untyped-call]  # typeshed has no types for these
    except (yaml.YAMLError, RecursionError, LookupError, TypeError) as error:
        raise ValueError(str(error)) from error
    return found
