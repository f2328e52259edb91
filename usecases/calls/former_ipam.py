"""Release a container's addresses: by the IPAM plugin that the configuration names, and whatever another one gave.

`ipam.type` may have changed between ADD and DEL. Calico's own IPAM leaves a handle that bears the container's ID, and
host-local a file for each address that the endpoint has, with the container's ID in it; both are proof enough.

Invariant: only what bears this container's ID is released.
"""

from __future__ import annotations

from domain.cni.plugin_conf import OWN_IPAM
from domain.json_text import dumps
from domain.workload.host_local import HOST_LOCAL, text_for_release
from ports.datastore import HandleKey
from ports.errors import Damaged, PortError, Unauthorized, Unavailable
from ports.ipam_plugin import IpamCall
from usecases.ipam.sound_records import tell_damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.datastore import Stored
    from ports.runtime import Runtime
    from usecases.calls.call import Call

RESERVATIONS = "/var/lib/cni/networks"
_NO_IPAM = ("", "calico")  # no ADD succeeds without a type, or with the network plugin's own
_ANY_RANGE: Json = [[{"subnet": "0.0.0.0/0"}], [{"subnet": "::/0"}]]


def release_by_plugin(call: Call, runtime: Runtime) -> bool:
    """Ask the plugin that the configuration names; whether it, or the installed one, names one."""
    request, netconf = call.request, call.netconf
    if netconf.ipam.type not in _NO_IPAM:
        text = text_for_release(netconf, call.netconf_text)
        runtime.ipam_plugin.delete(IpamCall(request, netconf, text), call.deadline)
        return True
    from usecases.calls.lost_settings import ipam_of_add

    settings = ipam_of_add(call, runtime)
    runtime.log.warning(
        "DEL names no IPAM plugin", ipam=netconf.ipam.type, used=settings.source if settings else "none"
    )
    if settings is not None and settings.netconf.ipam.type not in (*_NO_IPAM, OWN_IPAM):
        text = text_for_release(settings.netconf, settings.text)
        plugin = runtime.former.runtime(settings.netconf).ipam_plugin
        plugin.delete(IpamCall(request, settings.netconf, text), call.deadline)
    return settings is not None


def release_others(call: Call, runtime: Runtime, endpoint: WorkloadEndpoint | None) -> bool:
    """What an IPAM plugin gave that the configuration does not name (any more); whether there was anything.

    `endpoint` is the container's.
    """
    type, found = call.netconf.ipam.type, False
    if type != OWN_IPAM and _has_handle(call, runtime):
        runtime.log.warning("Releasing addresses of calico-ipam, which this configuration does not name", ipam=type)
        runtime.former.calico_ipam().delete(IpamCall(call.request, call.netconf, call.netconf_text), call.deadline)
        found = True
    if type != HOST_LOCAL and endpoint is not None and _is_reserved(call, runtime, endpoint):
        runtime.log.warning("Releasing addresses of host-local, which this configuration does not name", ipam=type)
        netconf = call.netconf.replace(ipam=call.netconf.ipam.replace(type=HOST_LOCAL))
        text = dumps(
            {
                "cniVersion": netconf.cni_version,
                "name": netconf.name,
                "ipam": {"type": HOST_LOCAL, "ranges": _ANY_RANGE},
            }
        )
        runtime.former.host_local().delete(IpamCall(call.request, netconf, text), call.deadline)
        found = True
    return found


class RecordRemoval:
    """What one DEL takes back of the records.

    Addresses belong to the container, so they and the endpoint stay while an interface is there that the endpoint is
    about and this DEL is not.
    """

    def __init__(self, call: Call, runtime: Runtime, identity: Identity) -> None:
        self._call = call
        self._runtime = runtime
        self._identity = identity
        self._stored: Stored[WorkloadEndpoint] | None = None
        self._keep = False
        self._asked = False

    def _has_other_interface(self, ifname: str) -> bool:
        """Whether that is another interface than this DEL's, and still in the container's namespace."""
        request = self._call.request
        if not request.netns or ifname == request.ifname:
            return False
        try:
            seen = self._runtime.dataplane.look(request.netns, ifname, self._call.deadline)
        except PortError:
            return False  # the namespace is gone, and every interface with it
        return seen is not None and seen.link is not None

    def release(self) -> None:
        if not self._keep:
            self._asked = release_by_plugin(self._call, self._runtime)

    def release_others(self) -> None:
        """Unavailable if the configuration no longer says who gave the addresses, and nothing else does."""
        if self._keep:
            return
        found = release_others(self._call, self._runtime, self._stored.record if self._stored else None)
        lost = self._call.netconf.lost_ipam
        if lost and self._stored is not None and not (found or self._asked):
            raise Unavailable(f"{lost}: nothing says who gave the addresses; put back what ADD had")


def _has_handle(call: Call, runtime: Runtime) -> bool:
    """False on a node that may not read handles. A damaged handle counts: it is there."""
    key = HandleKey(f"{call.netconf.name}.{call.request.container_id}")
    try:
        return runtime.datastore.get(key, call.deadline) is not None
    except Unauthorized as error:
        runtime.log.debug("No right to look for addresses of calico-ipam", error=error)
        return False
    except Damaged as error:
        tell_damaged(runtime.log, error)
        return True


def _is_reserved(call: Call, runtime: Runtime, endpoint: WorkloadEndpoint) -> bool:
    """Whether one of the endpoint's addresses has a file of host-local's that names this very container."""
    container, network = call.request.container_id, call.netconf.name
    if endpoint.container_id != container or not network or "/" in network:
        return False
    for address in endpoint.addresses:
        try:
            text = runtime.node.read(f"{RESERVATIONS}/{network}/{address}")
        except PortError:
            continue
        if text.partition("\n")[0].strip() == container:
            return True
    return False
