"""What an ADD under another configuration than this DEL's may have used.

A runtime may hand a DEL a configuration that has changed, or lost members, since the ADD. What the ADD made must still
be found: by the files that it was configured with, and by the IPAM plugin that it used.

Invariant: what is found so is only used to take back, never to make.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.netconf import NetConf
    from ports.ipam_plugin import IpamPlugin
    from ports.runtime import Runtime


class Installed(Value):
    """What lies in the runtime's `folder`: configurations as (path, text) in the order of their names, those that
    cannot be read left out; and the path of the kubeconfig that Calico's installation makes, "" if it is not there.
    """

    folder: str
    configurations: tuple[tuple[str, str], ...] = ()
    kubeconfig: str = ""


class Former(ABC):
    @abstractmethod
    def installed(self) -> Installed:
        """What this node's runtime is configured with now."""

    @abstractmethod
    def runtime(self, netconf: NetConf) -> Runtime:
        """The same ports for another configuration. Locks that this call holds stay held, and are not waited for."""

    @abstractmethod
    def calico_ipam(self) -> IpamPlugin:
        """Our own, in this process, whatever the configuration names."""

    @abstractmethod
    def host_local(self) -> IpamPlugin:
        """The built-in one: it can release what another host-local has reserved in its default folder."""
