"""Asking an IPAM plugin for addresses: another executable from CNI_PATH, or our own calico-ipam in this process.

Invariant: which of the two it is shows in nothing but the time that it takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.plugin_conf import PluginConf
    from domain.cni.request import Request
    from domain.cni.result import Result
    from ports.clock import Deadline


class IpamCall(Value):
    """`netconf_text` is what the plugin gets on stdin: the original text unless the network plugin had to change it."""

    request: Request
    netconf: PluginConf
    netconf_text: str


class IpamPlugin(ABC):
    """Errors of a plugin are `ports.errors.Refused` with its own code, message and details.

    A plugin that cannot be found or started: `Refused` 999 with the CNI library's text.
    """

    def expect(self, call: IpamCall, deadline: Deadline) -> None:  # noqa: B027 - as below
        """The request's verb follows in a moment: what it reads first may go along with other questions."""

    @abstractmethod
    def add(self, call: IpamCall, deadline: Deadline) -> Result:
        """Run ADD. The result is in our internal form, whatever version the plugin answered in."""

    @abstractmethod
    def delete(self, call: IpamCall, deadline: Deadline) -> None:
        """Run DEL: release all that the container holds. Nothing to release is fine."""

    @abstractmethod
    def check(self, call: IpamCall, deadline: Deadline) -> None:
        """Run CHECK."""

    @abstractmethod
    def withdraw(self, call: IpamCall, result: Result, deadline: Deadline) -> None:
        """Undo one `add`, and no more than that where the plugin allows it.

        An `add` that was cut short has no result: an empty one stands for whatever it may have given out.
        """

    def collect(self, call: IpamCall, deadline: Deadline) -> None:  # noqa: B027 - nothing to do is an answer
        """Run GC: release what belongs to none of the attachments that the configuration names. Fine without any."""

    def status(self, call: IpamCall, deadline: Deadline) -> None:  # noqa: B027 - as above
        """Run STATUS: Refused when an `add` could not succeed now, with code 50 if the plugin cannot be found at all.

        A plugin without that verb is ready.
        """
