"""A machine's name and files as a string and a dict from path to text.

Invariant: what was written is what is read, until somebody else changes the dict.
"""

from __future__ import annotations

from ports.errors import Refused, Unavailable
from ports.node import MissingFile, ThisNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Address

LARGEST = 1 << 20


class MemoryNode(ThisNode):
    """`files` and `name` may be changed by a test at any time; paths in `broken` can be neither read nor changed."""

    def __init__(self, name: str = "", files: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.files: dict[str, str] = dict(files or {})
        self.broken: set[str] = set()
        self.own_addresses: tuple[Address, ...] = ()
        self.own_namespaces: set[str] = {"/proc/self/ns/net"}
        self.routes: dict[Address, str] = {}  # to one address each, and over which interface

    def addresses(self) -> tuple[Address, ...]:
        return self.own_addresses

    def interface_of(self, address: Address) -> str:
        return self.routes.get(address, "")

    def host_routes(self) -> tuple[tuple[Address, str], ...]:
        return tuple(self.routes.items())

    def is_own_namespace(self, netns: str) -> bool:
        return netns in self.own_namespaces

    def host_name(self) -> str:
        return self.name

    def read(self, path: str) -> str:
        if path in self.broken:
            raise Refused(f"open {path}: permission denied")
        if path not in self.files:
            raise MissingFile(path)
        if len(self.files[path].encode("utf-8", "replace")) > LARGEST:
            raise Refused(f"read {path}: file too large")
        return self.files[path]

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.broken

    def write(self, path: str, text: str) -> None:
        if path in self.broken:
            raise Unavailable(f"open {path}: permission denied")
        self.files[path] = text

    def remove(self, path: str) -> None:
        if path in self.broken:
            raise Unavailable(f"remove {path}: permission denied")
        self.files.pop(path, None)
