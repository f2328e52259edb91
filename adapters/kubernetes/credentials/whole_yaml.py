"""A kubeconfig that is written by hand, with anchors, aliases, merge keys, tags, or another document behind it.

The original's client library reads it, so it is read, on the usual YAML library. That takes longer to load than the
rest of a call, so it is asked only for what `yaml_subset` does not understand.

Invariant: scalars mean what they mean there; of several documents the first counts, as in the original.
"""

from __future__ import annotations

import yaml

from adapters.bounded_yaml import BoundedLoader, RefusedYaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.json_text import Json

_KEPT = ("null", "bool", "merge")  # no field here is a number or a date


class _KubeconfigLoader(BoundedLoader):
    yaml_implicit_resolvers = {
        first: [(tag, rule) for tag, rule in rules if tag.rpartition(":")[2] in _KEPT]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: ARG002 - its own
        """Keys are the texts that they look like, as everywhere else here: a `true` or `~` among them is no boolean."""
        self.flatten_mapping(node)
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise RefusedYaml("a key that is no text", key.start_mark)
            found[key.value] = self.construct_object(value, deep=True)
        return found

    def by_kind(self, node: Any) -> Any:
        """Whatever a tag says."""
        if isinstance(node, yaml.MappingNode):
            return self.construct_mapping(node, deep=True)
        return self.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


_KubeconfigLoader.yaml_constructors = {
    None: _KubeconfigLoader.by_kind,  # any other tag: no set, date or octets leaves this
    **{tag: make for tag, make in yaml.SafeLoader.yaml_constructors.items() if (tag or "").rpartition(":")[2] in _KEPT},
}


class NoYaml(ValueError):
    """`line` is where, counted from 1; 0: it is YAML, but refused. The text may show what is secret."""

    line = 0


def first_document(text: str) -> Json:
    """NoYaml if it makes no sense."""
    try:
        loader = _KubeconfigLoader(text)
        found: Json = loader.get_data() if loader.check_data() else None  # type: ignore[no-untyped-call]  # typeshed has no types for these
    except (yaml.YAMLError, RecursionError, LookupError, TypeError) as error:
        fault = NoYaml(str(error))
        if isinstance(error, (yaml.scanner.ScannerError, yaml.parser.ParserError)) and error.problem_mark:
            fault.line = error.problem_mark.line + 1
        raise fault from error
    return found
