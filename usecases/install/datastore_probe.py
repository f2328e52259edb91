"""Waiting, before the configuration is installed, until the datastore can be reached with it.

A runtime starts pods as soon as there is a configuration; if the datastore then does not answer, each of them fails. So
the plugin itself is asked (`calico -t`), every second. But the datastore of a new cluster may become ready only after
this node has a network, so in the end the configuration is installed all the same, unless somebody wants it otherwise.

Invariant: the waiting ends in time.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.install.settings import InstallSettings
    from ports.clock import Deadline
    from usecases.install.installer import Installer

_BETWEEN = 1.0  # seconds
_ONE_TRY = 10.0  # seconds for an executable that answers within a few


def await_datastore(probes: tuple[str, ...], program: str, settings: InstallSettings, host: Installer) -> None:
    """`probes` are the configurations of our plugins, `program` is the plugin. CannotInstall where it is required."""
    if settings.wait_for_datastore is False:
        host.log.info("Not waiting for the datastore: CNI_WAIT_FOR_DATASTORE=false")
        return
    if not probes:
        host.log.info("Not waiting for the datastore: the CNI config has no plugin of type calico")
        return
    deadline = host.clock.deadline(settings.probe_timeout)
    for probe in probes:
        fault = _fault(program, probe, deadline, host)
        if fault and settings.wait_for_datastore:
            how = f"after {settings.probe_timeout:g} s (CNI_DATASTORE_PROBE_TIMEOUT), and CNI_WAIT_FOR_DATASTORE=true"
            raise CannotInstall(f"The datastore is not to be had {how}: {fault}")
        if fault:
            host.log.warning("The datastore is not to be had; installing the CNI config all the same", error=fault)


def _fault(program: str, probe: str, deadline: Deadline, host: Installer) -> str:
    """Why it is not to be had when the time is over; "" as soon as it is."""
    told = ""
    while True:
        now = host.clock.monotonic()
        try:
            host.program.test_connection(program, probe, host.clock.deadline(_ONE_TRY))
        except PortError as error:
            if deadline.left(host.clock.monotonic()) < _BETWEEN:
                return str(error)
            if str(error) != told:
                told = str(error)
                host.log.info("Waiting for the datastore", error=error)
            host.clock.sleep(max(0.0, _BETWEEN - (host.clock.monotonic() - now)))
        else:
            return ""
