"""How many calls there were, how they ended and how long they took, in a file for node exporter's textfile collector.

A plugin lives for one call, so nobody can scrape it. Each call adds itself to `tortie_cni.prom` instead, once its
answer is out: read, add, write a temporary file, rename. Who finds the lock taken does not wait, but leaves its count
beside it, in the name of an empty file; whoever has the lock takes that along, and looks once more after giving it up.

Invariant: a call neither fails nor waits because of this, and each is counted once (a kill between two system calls of
the merging apart). A file that makes no sense is set aside.
"""

from __future__ import annotations

import os
from errno import EEXIST
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from stat import S_ISREG

from domain.cni.plugin_conf import METRICS_FILE as FILE
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.log import Log

SET_ASIDE = f"{FILE}.set-aside"
LABELS = ("plugin", "verb", "outcome", "datastore")
BOUNDS = ("0.01", "0.02", "0.03", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "30", "60")  # seconds
CALLS, DURATION = "tortie_cni_calls_total", "tortie_cni_call_duration_seconds"

_LOCK, _TEMPORARY, _PENDING = ".tortie_cni.lock", ".tortie_cni.prom.new", ".tortie_cni.pending,"
_LIMITS = tuple([round(float(bound) * 1_000_000) for bound in BOUNDS])  # microseconds
_LARGEST = 1 << 20
_MOST_PENDING = 1000
_ROUNDS = 3
_DAMAGED = "it is damaged, or another version's"
_BUCKETS = (*BOUNDS, "+Inf")
_LINES = len(_BUCKETS) + 2
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_OF_CALLS = f"# HELP {CALLS} Calls of CNI plugins that were answered.\n# TYPE {CALLS} counter\n"
_OF_DURATION = (
    f"# HELP {DURATION} Time of a call from its first line of code to its answer, undoing included.\n"
    f"# TYPE {DURATION} histogram\n"
)
EMPTY = _OF_CALLS + _OF_DURATION


class FinishedCall(Value):
    """`labels` are in the order of LABELS, each made of letters, digits, `-` and `_`."""

    labels: tuple[str, ...]
    microseconds: int


class Senseless(Exception):
    """The file is not what we write."""


def count_call(folder: str, call: FinishedCall, log: Log) -> None:
    """One line in the log if it cannot be done."""
    try:
        if not folder.startswith("/"):
            raise OSError("it is not an absolute path")
        _count(folder, call, log)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        from entrypoints.log_file import why

        shown = why(f"{folder}/{FILE}", error)
        log.warning("The call is not counted: metrics_dir cannot be used", metrics_dir=folder, error=shown)


def _count(folder: str, call: FinishedCall, log: Log) -> None:
    lock = _open_lock(folder)
    try:
        held = _try(lock)
        own: tuple[FinishedCall, ...] = (call,)
        if not held:
            _leave(folder, call)
            own = ()
        for _ in range(_ROUNDS):
            if not held and not _try(lock):
                return  # who has it looks for what was left when it is done
            _merge(folder, own, log)
            flock(lock, LOCK_UN)
            held, own = False, ()
            if not _left(folder):
                return
    finally:
        os.close(lock)


def _open_lock(folder: str) -> int:
    """It is its owner's alone: who could lock it would stop the counting."""
    path, flags = f"{folder}/{_LOCK}", os.O_RDWR | os.O_CREAT | _FLAGS
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        from adapters.linux.files import make_directory

        make_directory(folder)
        return os.open(path, flags, 0o600)


def _try(lock: int) -> bool:
    try:
        flock(lock, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- what those leave who do not wait ---------------------------------------------------------------------------------


def _leave(folder: str, call: FinishedCall) -> None:
    """An empty file is there as a whole or not at all."""
    if len(_left(folder)) >= _MOST_PENDING:
        raise OSError("its lock has been held for too long; end whoever holds it")
    text = ",".join([str(os.getpid()), *call.labels, str(call.microseconds)])
    os.close(os.open(f"{folder}/{_PENDING}{text}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600))


def _left(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(_PENDING)]


def left_call(name: str) -> FinishedCall | None:
    """None if it is not the name of one."""
    words = name.split(",")[2:]
    if len(words) != len(LABELS) + 1 or not all(_is_word(word) for word in words) or not words[-1].isdecimal():
        return None
    return FinishedCall(tuple(words[:-1]), int(words[-1]))


def _is_word(label: str) -> bool:
    return label.isascii() and label.replace("-", "").replace("_", "").isalnum()


# --- the file ---------------------------------------------------------------------------------------------------------


def _merge(folder: str, own: tuple[FinishedCall, ...], log: Log) -> None:
    """The lock is held."""
    left = _left(folder)
    path = f"{folder}/{FILE}"
    calls = [call for call in (*own, *[left_call(name) for name in left]) if call]
    try:
        text = _with_all(checked(_read(path)), calls)
    except FileNotFoundError:
        text = _with_all(EMPTY, calls)
    except Senseless as error:
        os.replace(path, f"{folder}/{SET_ASIDE}")
        log.warning("Counting begins anew: the metrics file makes no sense", path=path, kept=SET_ASIDE, error=error)
        text = _with_all(EMPTY, calls)
    _write(folder, text)
    failure: OSError | None = None
    for name in left:
        try:
            os.unlink(f"{folder}/{name}")
        except OSError as error:  # what cannot be taken away must not have the others counted once more
            failure = error
    if failure is not None:
        raise failure


def _with_all(text: str, calls: list[FinishedCall]) -> str:
    for call in calls:
        text = with_call(text, call)
    return text


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Senseless(error.strerror) from None
    try:
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode):
            raise Senseless("it is not a regular file")
        content = os.read(descriptor, min(status.st_size, _LARGEST))
    finally:
        os.close(descriptor)
    return content.decode("ascii", "replace")


def _write(folder: str, text: str) -> None:
    """Whole or not at all. Not forced to the disk: counters may begin anew after a power failure."""
    new = f"{folder}/{_TEMPORARY}"
    try:
        descriptor = _create(new)
    except OSError as error:
        if error.errno != EEXIST:
            raise
        os.unlink(new)  # of a process that was killed
        descriptor = _create(new)
    try:
        os.fchmod(descriptor, 0o644)  # whoever scrapes is another user
        content = text.encode()
        if os.write(descriptor, content) != len(content):
            raise OSError("no space left on device")
        os.rename(new, f"{folder}/{FILE}")
    except OSError:
        os.unlink(new)
        raise
    finally:
        os.close(descriptor)


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o644)


# --- its text ---------------------------------------------------------------------------------------------------------


def checked(text: str) -> str:
    """The text itself. Senseless if `with_call` has not made it of EMPTY, as far as its lines and marks tell.

    The lines of a series are read when it changes, and no others: each call would pay for them.
    """
    series = text.count(f"\n{CALLS}{{")
    wanted = {
        **dict.fromkeys((f"\n{DURATION}_sum{{", f"\n{DURATION}_count{{", "+Inf"), series),
        f"\n{DURATION}_bucket{{": series * len(_BUCKETS),
        CALLS: series + EMPTY.count(CALLS),
        DURATION: series * _LINES + EMPTY.count(DURATION),
        '"': 2 * series * (len(LABELS) * (1 + _LINES) + len(_BUCKETS)),
        "\n": series * (1 + _LINES) + EMPTY.count("\n"),
        f"\n{_OF_DURATION}": 1,
        "\0": 0,
    }
    ends = text.startswith(_OF_CALLS) and text.endswith("\n") and text.isascii()
    if not ends or any(text.count(mark) != times for mark, times in wanted.items()):
        raise Senseless(_DAMAGED)
    return text


def with_call(text: str, call: FinishedCall) -> str:
    """The text with one call more. Senseless if the lines about such calls make none."""
    named = ",".join([f'{name}="{value}"' for name, value in zip(LABELS, call.labels)])
    start = text.find(f'{DURATION}_bucket{{{named},le="{BOUNDS[0]}"}} ')
    if start < 0:
        counters, _, histograms = text.partition(_OF_DURATION)
        numbers = _plus([0] * _LINES, call.microseconds)
        return f"{counters}{CALLS}{{{named}}} 1\n{_OF_DURATION}{histograms}{_block(named, numbers)}"
    try:
        end = text.index("\n", text.index(f"{DURATION}_count{{{named}}} ", start)) + 1
        numbers = [int(line.rpartition(" ")[2].replace(".", "")) for line in text[start:end].splitlines()]
    except ValueError:
        raise Senseless(_DAMAGED) from None
    known = f"{CALLS}{{{named}}} {numbers[-1]}\n"
    if _block(named, numbers) != text[start:end] or not _is_sound(numbers) or f"\n{known}" not in text[:start]:
        raise Senseless(_DAMAGED)
    numbers = _plus(numbers, call.microseconds)
    return text[:start].replace(known, f"{CALLS}{{{named}}} {numbers[-1]}\n", 1) + _block(named, numbers) + text[end:]


def _plus(numbers: list[int], microseconds: int) -> list[int]:
    """`numbers` are calls up to each bound, all calls, their microseconds, all calls."""
    buckets = [number + (microseconds <= limit) for number, limit in zip(numbers, _LIMITS)]
    return [*buckets, numbers[-3] + 1, numbers[-2] + microseconds, numbers[-1] + 1]


def _block(named: str, numbers: list[int]) -> str:
    """The lines of one series' histogram."""
    start = f'{DURATION}_bucket{{{named},le="'
    lines = [f'{start}{bound}"}} {number}\n' for bound, number in zip(_BUCKETS, numbers)]
    seconds, rest = divmod(numbers[-2], 1_000_000)
    return "".join(lines) + (
        f"{DURATION}_sum{{{named}}} {seconds}.{rest:06d}\n{DURATION}_count{{{named}}} {numbers[-1]}\n"
    )


def _is_sound(numbers: list[int]) -> bool:
    """Whether they can be a histogram's."""
    buckets = [0, *numbers[: len(_BUCKETS)]]
    return buckets == sorted(buckets) and numbers[-3] == numbers[-1] and numbers[-2] >= 0
