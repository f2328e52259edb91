"""host-local without its executable: the built-in one, and a GC for the real one, which has none.

Invariant: it answers and writes what the executed host-local would.
"""

from __future__ import annotations

import os

from adapters.linux.process.plugin_exec import ExecutedIpamPlugin
from domain.bridge.conf import AttachmentId, BridgeConf
from domain.bridge.host_local import read_host_local_conf, read_host_local_place
from domain.cni.errors import CniError
from domain.cni.request import parse_address_args
from ports.errors import Refused
from ports.ipam_plugin import IpamPlugin
from usecases import host_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.bridge.host_local import HostLocalConf, HostLocalPlace
    from domain.cni.result import Result
    from domain.ipam.address import Address
    from ports.address_files import AddressFiles
    from ports.clock import Clock, Deadline
    from ports.ipam_plugin import IpamCall
    from ports.log import Log


def open_files(place: HostLocalConf | HostLocalPlace, clock: Clock) -> AddressFiles:
    from adapters.linux.host_local_files import HostLocalFiles

    return HostLocalFiles(os.path.join(place.directory, place.name), clock)


class OwnHostLocal(IpamPlugin):
    """For machines where CNI_PATH has no host-local. `open_files` opens the store of a place."""

    def __init__(self, clock: Clock, log: Log, open_files: Callable[..., AddressFiles] = open_files) -> None:
        self._clock, self._log, self._open_files = clock, log, open_files
        self._given: list[Address] = []

    def add(self, call: IpamCall, deadline: Deadline) -> Result:
        from adapters.linux.node_files import NodeFiles

        conf = _conf(call)
        dns = host_local.read_dns(NodeFiles().read(conf.resolv_conf)) if conf.resolv_conf else None
        files, owner = self._open_files(conf, self._clock), _owner(call)
        result = _refusing(lambda: host_local.allocate(conf, owner, files, self._given, deadline))
        return result if dns is None else result.replace(dns=dns)

    def delete(self, call: IpamCall, deadline: Deadline) -> None:
        host_local.release(_owner(call), self._open_files(_place(call, self._log), self._clock), deadline)

    def check(self, call: IpamCall, deadline: Deadline) -> None:
        files, owner = self._open_files(_conf(call), self._clock), _owner(call)
        _refusing(lambda: host_local.check(owner, files, deadline))

    def withdraw(self, call: IpamCall, result: Result, deadline: Deadline) -> None:  # noqa: ARG002 - we know what we gave
        """Only what was given out: an `add` that was refused may have found the addresses of an earlier one."""
        if not self._given:
            return
        files = self._open_files(_place(call, self._log), self._clock)
        with files.held(deadline):
            while self._given:
                files.release(self._given[-1])
                self._given.pop()

    def collect(self, call: IpamCall, deadline: Deadline) -> None:
        collect(call, self._clock, self._log, deadline, self._open_files)

    def status(self, call: IpamCall, deadline: Deadline) -> None:  # noqa: ARG002 - a configuration that can be read will do
        _conf(call)


class CollectedHostLocal(ExecutedIpamPlugin):
    """The real one, for which `gcHostLocal` asks us to tidy up."""

    def collect(self, call: IpamCall, deadline: Deadline) -> None:
        super().collect(call, deadline)
        collect(call, self._clock, self._log, deadline)


def collect(
    call: IpamCall, clock: Clock, log: Log, deadline: Deadline, open_files: Callable[..., AddressFiles] = open_files
) -> None:
    netconf = call.netconf
    valid = netconf.valid_attachments if isinstance(netconf, BridgeConf) else None
    if valid is None:
        return
    released = host_local.collect(valid, open_files(_place(call, log), clock), deadline, clock.now())
    for file in released:
        log.info("Released a stale address", address=file.address, container=file.container_id)


def _conf(call: IpamCall) -> HostLocalConf:
    return _refusing(lambda: read_host_local_conf(call.netconf_text, parse_address_args(call.request.args)))


def _place(call: IpamCall, log: Log) -> HostLocalPlace:
    place = read_host_local_place(call.netconf_text)
    if place.complaint:
        log.warning("host-local's directory cannot be read, taking the default", error=place.complaint)
    return place


def _owner(call: IpamCall) -> AttachmentId:
    return AttachmentId(call.request.container_id, call.request.ifname)


if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")


def _refusing(step: Callable[[], T]) -> T:
    """What a plugin in a process of its own would have printed."""
    try:
        return step()
    except CniError as error:
        raise Refused(error.message, error.code, error.details) from error
