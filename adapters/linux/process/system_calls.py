"""System calls that Python does not offer: one way to each of them, whatever kind of interpreter this is.

Python learnt `setns` and `unshare` in 3.12 and knows neither `prctl`, `statfs` nor inotify. An interpreter linked
statically cannot look functions up by name; it brings a built-in module `_tortie_syscalls` with `setns(descriptor,
kind)`, `unshare(kind)`, `prctl(option, value)`, `statfs_type(path)`, `inotify_init1(flags)` and
`inotify_add_watch(descriptor, path, mask)`. Any other finds them through `_ctypes`, the core of `ctypes`, which loads
in a tenth of that one's time.

Invariant: nothing is loaded before it is needed, and a refusal is an OSError with its errno, as of any other call.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_BUILT_IN = "_tortie_syscalls"
_PR_SET_PDEATHSIG = 1
_known: dict[str, Callable[..., int]] = {}  # looked up once
_STATFS_WORDS = 64  # more than any architecture's struct statfs, whose first word is the type


def setns(descriptor: int, kind: int) -> None:
    """Move the calling thread into that namespace, which must be of that kind (CLONE_NEW…)."""
    if hasattr(os, "setns"):
        os.setns(descriptor, kind)
    else:
        _function("setns")(descriptor, kind)


def unshare(kind: int) -> None:
    """Move the calling process into a new namespace of that kind (CLONE_NEW…)."""
    if hasattr(os, "unshare"):
        os.unshare(kind)
    else:
        _function("unshare")(kind)


def death_signal_setter(number: int) -> Callable[[], object] | None:
    """What a child calls to get that signal when its parent dies; None where it cannot be tied to it.

    Looked up here, so that between fork and exec nothing is loaded any more.
    """
    try:
        prctl = _function("prctl")
    except (ImportError, OSError, AttributeError):
        return None

    def ask_for_it() -> None:
        try:  # noqa: SIM105 - contextlib costs 4 ms to load
            prctl(_PR_SET_PDEATHSIG, number)
        except OSError:  # a sandbox forbids it; the child has to live without
            pass

    return ask_for_it


def filesystem_type(path: str) -> int:
    """The magic number of the file system that the path is on; 0 where it cannot be had."""
    try:
        return _function("statfs_type")(os.fsencode(path))
    except (ImportError, OSError, AttributeError):
        return 0


def inotify_init(flags: int) -> int:
    """The descriptor of a new queue of changes. OSError; ImportError or AttributeError where there are none."""
    return _function("inotify_init1")(flags)


def inotify_add_watch(descriptor: int, path: str, mask: int) -> int:
    """The number under which changes of that path come from the queue. Errors as above."""
    return _function("inotify_add_watch")(descriptor, os.fsencode(path), mask)


def copy_attribute(path: str, descriptor: int, name: str) -> None:
    """Give the open file the extended attribute of what is at the path itself. OSError without one, or if it cannot.

    Python knows such attributes where the C library is not musl.
    """
    if hasattr(os, "getxattr"):
        os.setxattr(descriptor, name, os.getxattr(path, name, follow_symlinks=False))
    else:
        _function("copy_xattr")(os.fsencode(path), descriptor, name.encode())


def _function(name: str) -> Callable[..., int]:
    """ImportError, OSError or AttributeError where there is no such thing."""
    if name not in _known:
        if _BUILT_IN in sys.builtin_module_names:
            _known[name] = getattr(__import__(_BUILT_IN), name)
        else:
            _known[name] = _statfs_type if name == "statfs_type" else _looked_up(name)
    return _known[name]


def _looked_up(name: str) -> Callable[..., int]:
    """A function of the C library; arguments are integers, bytes and `_ctypes` arrays."""
    import _ctypes

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO

    function = Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), name))  # type: ignore[arg-type]  # None: this process

    def call(*arguments: object) -> int:
        answer: int = function(*arguments)
        if answer == -1:
            number = _ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer

    return call


def _statfs_type(path: bytes) -> int:
    statfs = _looked_up("statfs")
    import _ctypes

    class Word(_ctypes._SimpleCData):  # type: ignore[type-arg]  # generic for type checkers only
        _type_ = "L"

    found = (Word * _STATFS_WORDS)()
    statfs(path, found)
    return int(found[0])
