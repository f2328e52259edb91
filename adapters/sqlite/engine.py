"""SQLite's C module, loaded without the part of the standard library that it drags in.

When it starts, the module takes `lru_cache` from `functools`, for its prepared statements. That costs a plugin more
than SQLite itself does: `functools` loads `collections`, which loads six more. The C module `_functools` does the work
of `lru_cache`. So SQLite's module is shown, while it loads, a `functools` that has this one thing.

Invariant: afterwards `functools` is what it was, loaded or not; and an interpreter whose SQLite wants more gets it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def _stand_in() -> ModuleType:
    from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]  # typeshed has no stub

    def lru_cache(size: int) -> Callable[[Any], Any]:
        return lambda call: _lru_cache_wrapper(call, size, False, tuple)

    stand_in = type(sys)("functools")
    stand_in.lru_cache = lru_cache  # type: ignore[attr-defined]  # a module of our making
    return stand_in


def _load_small() -> None:
    try:
        sys.modules["functools"] = _stand_in()
        import _sqlite3  # noqa: F401 - the import below finds it
    except (ImportError, AttributeError):
        pass
    finally:
        sys.modules.pop("functools", None)


if "functools" not in sys.modules:
    _load_small()

import _sqlite3  # noqa: E402 - see above

__all__ = ["_sqlite3"]
