"""Our own calico-ipam as an IPAM plugin of the network plugin, in the same process.

Starting a second interpreter for it would double what a pod start costs. It shares the network plugin's datastore
connection, clock and deadline, and can undo exactly what it has given out.

Invariant: it answers and writes what the executed calico-ipam would.
"""

from __future__ import annotations

from adapters.linux.spare_memory import give_back
from domain.cni.errors import CniError
from domain.ipam.errors import IpamError
from ports.errors import Refused
from ports.ipam_plugin import IpamPlugin
from usecases.calls.call import Call
from usecases.calls.safeguards import Undo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from domain.cni.result import Result
    from ports.clock import Deadline
    from ports.ipam_plugin import IpamCall
    from ports.runtime import Runtime


class OwnIpamPlugin(IpamPlugin):
    """`runtime` is the network plugin's own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._undo = Undo(runtime.clock, runtime.log)

    def expect(self, call: IpamCall, deadline: Deadline) -> None:
        if call.request.command == "ADD":
            from usecases.assign_addresses import expect_assignment

            expect_assignment(_call(call, deadline), self._runtime)
        elif call.request.command == "DEL":
            from usecases.release_addresses import expect_release

            expect_release(_call(call, deadline), self._runtime)

    def add(self, call: IpamCall, deadline: Deadline) -> Result:
        from usecases.assign_addresses import assign_addresses

        try:
            return assign_addresses(_call(call, deadline), self._runtime, self._undo)
        except BaseException as error:
            give_back()
            self._undo.run()
            if isinstance(error, (CniError, IpamError)):
                raise Refused(str(error), error.code, error.details) from error
            raise

    def delete(self, call: IpamCall, deadline: Deadline) -> None:
        from usecases.release_addresses import release_held

        try:
            release_held(_call(call, deadline), self._runtime)
        except (CniError, IpamError) as error:
            raise Refused(str(error), error.code, error.details) from error

    def check(self, call: IpamCall, deadline: Deadline) -> None:
        from usecases.check_addresses import check_addresses

        check_addresses(_call(call, deadline), self._runtime)

    def withdraw(self, call: IpamCall, result: Result, deadline: Deadline) -> None:  # noqa: ARG002 - the undo knows what was given out
        self._undo.run()


def _call(call: IpamCall, deadline: Deadline) -> Call:
    from domain.cni.request import parse_args_of

    netconf: NetConf = call.netconf  # type: ignore[assignment]  # the network plugin's own: nobody else calls this
    return Call(call.request, parse_args_of(call.request), netconf, call.netconf_text, deadline)
