"""IPAM plugins as scripts: what each type answers to each verb is written down beforehand by the test.

Invariant: every call is recorded in order, also those that fail.
"""

from __future__ import annotations

from domain.cni.result import Result
from domain.value import Value
from ports.errors import Expired, Refused
from ports.ipam_plugin import IpamCall, IpamPlugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock, Deadline


class Ran(Value):
    """One call that reached a plugin: `verb` is ADD, DEL, CHECK, GC, STATUS or, for `withdraw`, WITHDRAW."""

    verb: str
    call: IpamCall


class ScriptedIpamPlugin(IpamPlugin):
    """Tell it with `answers`, `fails` and `takes` what a plugin type does; a type never told of is not in CNI_PATH.

    `added` holds the results that `add` gave and no `delete` or `withdraw` has taken back yet, by container ID;
    `withdrawn` what `withdraw` has taken back, oldest first.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[str, list[Result]] = {}
        self._errors: dict[tuple[str, str], Exception] = {}
        self._seconds: dict[str, float] = {}
        self.calls: list[Ran] = []
        self.added: dict[str, list[Result]] = {}
        self.withdrawn: list[Result] = []

    def answers(self, type: str, *results: Result) -> None:
        """ADD of that type gives these results, one a call, the last one for ever. Without any: an empty result."""
        self._answers[type] = list(results) or [Result()]

    def fails(self, type: str, verb: str, error: Exception | None) -> None:
        """That verb raises the error (None: works again); `ports.errors.Refused` is what a real plugin causes."""
        self._answers.setdefault(type, [Result()])
        if error is None:
            self._errors.pop((type, verb), None)
        else:
            self._errors[type, verb] = error

    def takes(self, type: str, seconds: float) -> None:
        """Every call of that type takes so long, and expires when that is past its deadline."""
        self._answers.setdefault(type, [Result()])
        self._seconds[type] = seconds

    def add(self, call: IpamCall, deadline: Deadline) -> Result:
        self._run("ADD", call, deadline)
        left = self._answers[call.netconf.ipam.type]
        result = left.pop(0) if len(left) > 1 else left[0]
        self.added.setdefault(call.request.container_id, []).append(result)
        return result

    def delete(self, call: IpamCall, deadline: Deadline) -> None:
        self._run("DEL", call, deadline)
        self.added.pop(call.request.container_id, None)

    def check(self, call: IpamCall, deadline: Deadline) -> None:
        self._run("CHECK", call, deadline)

    def collect(self, call: IpamCall, deadline: Deadline) -> None:
        self._run("GC", call, deadline)

    def status(self, call: IpamCall, deadline: Deadline) -> None:
        self._run("STATUS", call, deadline)

    def withdraw(self, call: IpamCall, result: Result, deadline: Deadline) -> None:
        """Takes back exactly that result, as our own calico-ipam can."""
        self._run("WITHDRAW", call, deadline)
        held = self.added.get(call.request.container_id, [])
        if result in held:
            held.remove(result)
            self.withdrawn.append(result)

    def _run(self, verb: str, call: IpamCall, deadline: Deadline) -> None:
        type = call.netconf.ipam.type
        self._find(type, call.request.path)
        self.calls.append(Ran(verb, call))
        now = self._clock.monotonic()
        seconds = self._seconds.get(type, 0.0)
        self._clock.sleep(min(seconds, deadline.left(now)))
        if seconds > deadline.left(now):
            raise Expired(f"IPAM plugin {type}")
        if (type, verb) in self._errors:
            raise self._errors[type, verb]

    def _find(self, type: str, path: tuple[str, ...]) -> None:
        if not type:
            raise Refused("no plugin name provided")
        if "/" in type:
            raise Refused(f"invalid plugin name: {type}")
        if not path:
            raise Refused("no paths provided")
        if type not in self._answers:
            raise Refused(f'failed to find plugin "{type}" in path [{" ".join(path)}]')
