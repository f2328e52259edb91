"""Get a pod's addresses from whichever IPAM plugin is configured, or from the pod itself.

Building a `PodIpam` finds out what to ask, and allocates nothing; `addresses` asks.

Invariant: the plugin gets the configuration as it came but for the members that the pod or its node decide.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.plugin_conf import OWN_IPAM
from domain.cni.result import Result, ResultIp
from domain.workload.attachment import DEFAULT_ROUTES
from domain.workload.host_local import HOST_LOCAL, needs_pod_cidrs, pod_routes, text_for_assignment
from domain.workload.pool_text import with_kept, with_pools
from ports.errors import Refused, Unavailable
from ports.ipam_plugin import IpamCall
from usecases.calls.effects import ask_ipam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address, Cidr
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo
    from usecases.pods.read_pod import PodSubject

AZURE = "azure-vnet-ipam"


class PodIpam:
    """`routes` are the destinations that the pod reaches through its gateway."""

    def __init__(self, call: Call, runtime: Runtime, subject: PodSubject) -> None:
        self._call = call
        self._runtime = runtime
        self._subject = subject
        self.routes: tuple[Cidr, ...] = DEFAULT_ROUTES
        netconf, text = call.netconf, call.netconf_text
        try:
            if netconf.ipam.type == OWN_IPAM:
                netconf, text = with_pools(netconf, text, subject.pools)
                if subject.keep_as is not None:
                    netconf, text = with_kept(netconf, text, subject.keep_as)
            elif netconf.ipam.type == HOST_LOCAL:
                text = self._with_ranges(text)
                if runtime.on_windows:
                    from domain.windows.host_local import with_pinned_ranges

                    text = with_pinned_ranges(text)
                self.routes = pod_routes(text, include_default_routes=netconf.include_default_routes)
            elif netconf.ipam.type == AZURE:
                from usecases.pods.azure_state import before_add

                text = before_add(runtime.node, netconf.name, text)
        except ValueError as error:
            raise CniError(INTERNAL, str(error)) from error
        self._settings = netconf.ipam
        self._ask = IpamCall(call.request, netconf, text)

    def _with_ranges(self, text: str) -> str:
        if not needs_pod_cidrs(text):
            return text
        node = self._call.netconf.kubernetes.node_name or self._subject.endpoint.node
        return text_for_assignment(text, node, self._runtime.cluster.pod_cidrs(node, self._call.deadline))

    def addresses(self, undo: Undo) -> Result:
        """At least one address. Fixed ones and those that no IPAM knows come without routes."""
        fixed = self._subject.fixed
        if fixed is not None and not fixed.from_ipam:
            return Result(ips=tuple([ResultIp(address.host_cidr) for address in fixed.addresses]))
        if fixed is not None:
            return Result(ips=tuple([self._fixed(address, undo) for address in fixed.addresses]))
        result = ask_ipam(self._runtime, self._ask, self._call.deadline, undo)
        if not result.ips:
            raise CniError(INTERNAL, "IPAM plugin returned missing IP config", self._settings.why_nothing)
        if self._call.netconf.ipam.type == AZURE:
            from usecases.pods.azure_state import after_add

            after_add(self._runtime.node, self._call.netconf.name, self._call.request, result)
        return result

    def _fixed(self, address: Address, undo: Undo) -> ResultIp:
        """One of the addresses that the pod asks for by name."""
        request = self._ask.request
        args = f"{request.args};IP={address}" if request.args else f"IP={address}"
        ask = self._ask.replace(request=request.replace(args=args))
        try:
            result = ask_ipam(self._runtime, ask, self._call.deadline, undo)
        except Unavailable:
            raise
        except Refused as error:
            raise CniError(INTERNAL, f"error getting IP from IPAM: {error}", error.details) from error
        if not result.ips:
            raise CniError(INTERNAL, "IPAM plugin returned missing IP config")
        return result.ips[0]
