"""Modules of a library without all of the library: importing one of a package's modules first runs the package itself.

What `kubernetes` and `pyroute2` load then, every class of an API server's objects, every client of the kernel's, takes
several times as long as what we use of them.

Invariant: afterwards the packages are as not imported, though some of their modules are. Whoever imports one then gets
it whole, with these modules in it (but not as its attributes, which is for `from` to find).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType, TracebackType


class BarePackages:
    """For a `with` block of imports: these packages, outer ones first, are folders of modules and nothing more.

    One that has been imported before stays as it is. ModuleNotFoundError for one that is not installed.
    """

    def __init__(self, *names: str) -> None:
        self._names = names
        self._made: dict[str, ModuleType] = {}

    def __enter__(self) -> None:
        from importlib.util import find_spec, module_from_spec

        for name in self._names:
            if name in sys.modules:
                continue
            spec = find_spec(name)
            if spec is None:
                self.__exit__(None, None, None)
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            self._made[name] = sys.modules[name] = module_from_spec(spec)  # which is not executed

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for name, module in self._made.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
