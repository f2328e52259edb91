"""Running one other program: text in, text out, never longer than its deadline, never longer than we live.

`subprocess` costs more to load than most plugins take to run, and cannot tie a child to its parent's life; so the
steps are spelled out here. The child asks the kernel for SIGKILL at its parent's death (PR_SET_PDEATHSIG) and then
looks whether the parent is still there, so there is no moment at which it could outlive us.

Invariant: when `run` is left, normally or by any exception, the child is dead and reaped and its pipes are closed.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C core of `signal`, which loads `enum`; typeshed has no stub
import os
import select

from adapters.linux.process.system_calls import death_signal_setter
from domain.value import Value
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ports.clock import Clock, Deadline

LARGEST_OUTPUT = 16 << 20
_TERMINATION = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)
_EINVAL = 22
_CHUNK = 1 << 16
_LINGER = 1.0  # seconds that somebody else may keep a dead child's output open before we stop listening
_TICK = 0.02  # seconds between looks at a child that nothing will wake us for
_REAPING = 2.0  # seconds for a killed child to vanish; only a hung file system delays it


class ChildCommand(Value):
    """`arguments` are those after the program's own name. `waited_for` names it in `ports.errors.Expired`."""

    path: str
    environment: Mapping[str, str]
    stdin: bytes
    waited_for: str
    arguments: tuple[str, ...] = ()


class Finished(Value):
    """`status` is as from `waitpid`: 0 for success."""

    status: int
    stdout: bytes
    stderr: bytes


def run(command: ChildCommand, deadline: Deadline, clock: Clock) -> Finished:
    """Start the program and wait for its end.

    OSError when it cannot be started, with the errno of `execve`; `Expired`; `Refused` for endless output.
    """
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
    child = None
    try:
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _TERMINATION)
        child = _Child(command, before)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)  # a termination signal that came meanwhile raises here
        child.attend(deadline, clock)
        return child.finished()
    finally:
        try:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _TERMINATION)
        finally:
            if child:
                child.end()
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def dies_with_us() -> bool:
    """Whether children can be tied to our life; not where C functions cannot be called (some static interpreters)."""
    return death_signal_setter(_signal.SIGKILL) is not None


class _Child:
    def __init__(self, command: ChildCommand, mask: set[int]) -> None:
        """Called with termination signals blocked; `mask` is what the child gets."""
        self._command = command
        self._unsent = memoryview(command.stdin)
        self._status: int | None = None
        self._open: set[int] = set()
        self._watch = -1
        _let_children_be_waited_for()
        try:
            self._fork(mask)
        except BaseException:
            self._close_all()
            raise

    def _fork(self, mask: set[int]) -> None:
        theirs, self._stdin = self._pipe()
        self._stdout, their_stdout = self._pipe()
        self._stderr, their_stderr = self._pipe()
        self._failure, their_failure = self._pipe()
        self._read: dict[int, bytearray] = {fd: bytearray() for fd in (self._stdout, self._stderr, self._failure)}
        settle = death_signal_setter(_signal.SIGKILL)
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _become(
                self._command,
                (theirs, their_stdout, their_stderr, their_failure),
                lambda: _settle(mask, settle, parent),
            )
        for fd in (theirs, their_stdout, their_stderr, their_failure):
            self._close(fd)
        for fd in self._open:
            os.set_blocking(fd, False)
        try:
            self._watch = os.pidfd_open(self._pid)
        except OSError:  # an old kernel, or forbidden: then we look at the child from time to time
            self._watch = -1

    def attend(self, deadline: Deadline, clock: Clock) -> None:
        """Feed and listen until the child has ended and all that it said is here."""
        stop_listening = None
        while True:
            now = clock.monotonic()
            if self._reaped():
                stop_listening = stop_listening or now + _LINGER
                if not self._listening() or now >= stop_listening or deadline.passed(now):
                    return
            if deadline.passed(now):
                raise Expired(self._command.waited_for)
            self._exchange(min(deadline.left(now), 1.0))

    def finished(self) -> Finished:
        """OSError if it never became the program."""
        failure = self._read[self._failure]
        if failure:
            raise OSError(int(failure), os.strerror(int(failure)), self._command.path)
        return Finished(self._status or 0, bytes(self._read[self._stdout]), bytes(self._read[self._stderr]))

    def end(self) -> None:
        """Kill the child if it still runs, and let go of everything."""
        try:
            if not self._reaped():
                os.kill(self._pid, _signal.SIGKILL)
                for _ in range(round(_REAPING / _TICK)):
                    self._wait_for_end(_TICK)
                    if self._reaped():
                        break
        finally:
            self._close_all()

    def _listening(self) -> bool:
        return not self._open.isdisjoint(self._read)

    def _reaped(self) -> bool:
        if self._status is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it; what it wrote has to speak for it
                pid, status = self._pid, 0
            if pid:
                self._status = status
        return self._status is not None

    def _wait_for_end(self, seconds: float) -> None:
        poller = select.poll()
        if self._watch >= 0:
            poller.register(self._watch, select.POLLIN)
        poller.poll(round(seconds * 1000))

    def _exchange(self, seconds: float) -> None:
        poller = select.poll()
        for fd in self._open:
            poller.register(fd, select.POLLOUT if fd == self._stdin else select.POLLIN)
        if self._status is None and self._watch >= 0:
            poller.register(self._watch, select.POLLIN)
        else:
            seconds = min(seconds, _TICK)
        for fd, _event in poller.poll(round(seconds * 1000) + 1):
            if fd == self._stdin:
                self._send()
            elif fd in self._read:
                self._receive(fd)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent[:_CHUNK]) :]
        except BrokenPipeError:  # it does not want to know
            self._unsent = self._unsent[:0]
        except BlockingIOError:
            return
        if not self._unsent:
            self._close(self._stdin)

    def _receive(self, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._close(fd)
        self._read[fd] += data
        if len(self._read[fd]) > LARGEST_OUTPUT:
            raise Refused(f"netplugin failed: output of more than {LARGEST_OUTPUT >> 20} MiB")

    def _pipe(self) -> tuple[int, int]:
        ends = [_above_standard(fd) for fd in os.pipe()]
        self._open.update(ends)
        return ends[0], ends[1]

    def _close(self, fd: int) -> None:
        self._open.discard(fd)
        os.close(fd)

    def _close_all(self) -> None:
        for fd in tuple(self._open):
            self._close(fd)
        if self._watch >= 0:
            os.close(self._watch)
            self._watch = -1


def _above_standard(fd: int) -> int:
    """The same pipe end, but not at 0–2, where it would be in the way of the child's own; we may run without those."""
    if fd > 2:
        return fd
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    moved = fcntl(fd, F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _let_children_be_waited_for() -> None:
    """Whoever started us may ignore SIGCHLD; the kernel would then reap our children unseen."""
    if _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)


def _settle(mask: set[int], tie_to_parent: Callable[[], object] | None, parent: int) -> None:
    """In the child: ordinary signal handling again, and death together with the parent."""
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ, *_TERMINATION):
        ours = number not in _TERMINATION or callable(_signal.getsignal(number))
        if ours:  # Python ignores the first two; those that our starter ignores stay ignored
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
    if tie_to_parent:
        tie_to_parent()
    if os.getppid() != parent:
        os._exit(1)  # it died before the kernel knew of our wish


def _become(command: ChildCommand, ends: tuple[int, int, int, int], settle: Callable[[], None]) -> None:
    """In the child: turn into the program, or tell the parent why not. Never returns."""
    failure = _EINVAL  # a NUL in path or environment raises ValueError
    try:
        for target in range(3):
            os.dup2(ends[target], target)
        settle()
        os.execve(command.path, [command.path, *command.arguments], command.environment)  # noqa: S606 - no shell is the point
    except OSError as error:
        failure = error.errno or _EINVAL
    finally:
        try:
            os.write(ends[3], str(failure).encode())
        finally:
            os._exit(127)
