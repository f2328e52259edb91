"""`calico-ipam -upgrade`: from host-local to calico-ipam, as an init container of the node runs it.

As in the original the environment says where the datastore is, and it is a Kubernetes one, unless DATASTORE_TYPE names
one of the others that we have. Places and times of the original are fixed; a variable of ours changes each.

Exit code 0: done, or nothing to do. 1: refused, ended by a signal, or something is left that cannot be moved.

Invariant: the process ends with the datastore as ready as it found it, unless it is killed or cannot reach it.
"""

from __future__ import annotations

import gc
import os
import sys

from domain.cni.datastores import ETCD, KUBERNETES, SQLITE
from domain.cni.netconf import KubernetesSettings, NetConf
from domain.value import Value
from entrypoints.logs import CallLog
from entrypoints.stdio import say
from entrypoints.termination import Interrupted, ignore, raise_when_signalled, seen, settle
from entrypoints.wiring import calico, datastores
from ports.cluster import NOT_CONFIGURED
from ports.errors import BadConfiguration, PortError
from ports.runtime import UpgradeRuntime
from usecases.calls.safeguards import Undo
from usecases.upgrade_ipam import Wish, upgrade_until_done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from ports.clock import Clock
    from ports.log import Log
    from ports.reservation_files import ReservationFiles
    from usecases.upgrade.reservations import Outcome

    T = TypeVar("T")

DIRECTORY = "/var/lib/cni/networks/k8s-pod-network"
PROGRAMS = ("calico", "host-local")
WAIT = 5.0
# A cluster waits for the end of this, so an API server gets more requests a second than the plugins send. It has a
# fairness of its own.
PACE = {"K8S_CLIENT_QPS": "200", "K8S_CLIENT_BURST": "400"}
_OTHERS = (ETCD, SQLITE)
INTERRUPTED = "interrupted; what has moved stays moved, and the upgrade goes on when it is started again"
_SHOWN = 3  # of what is left, in one line
_LONGEST_WAIT = 3600.0


class Places(Value):
    """Where the upgrade works on this machine, and how many seconds it waits for programs that still run."""

    directory: str = DIRECTORY
    programs: str = "/host/opt/cni/bin"
    wait: float = WAIT

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Places:
        """BadConfiguration names the variable."""
        text = environ.get("TORTIE_UPGRADE_WAIT", "")
        return cls(
            environ.get("TORTIE_HOST_LOCAL_DIR") or DIRECTORY,
            environ.get("TORTIE_CNI_BIN_DIR") or cls().programs,
            seconds(text, "TORTIE_UPGRADE_WAIT") if text else WAIT,
        )


def seconds(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _LONGEST_WAIT:
        raise BadConfiguration(f"{what} {text!r} is not a number of seconds from 0 to {_LONGEST_WAIT:g}")
    return number


def old_programs(folder: str) -> tuple[str, ...]:
    """Paths of what must not run during an upgrade.

    A `calico` that is this very program stays: it works only while the datastore is ready, and the runtime needs it
    when it is ready again. Perhaps it is what is running right now, under another name.
    """
    from adapters.plugin_path import is_this_program

    own = getattr(sys.modules["__main__"], "__file__", None) or sys.executable
    paths = [os.path.join(folder, name) for name in PROGRAMS]
    return tuple([path for path in paths if not is_this_program(path, own)])


def open_reservations(directory: str, clock: Clock) -> ReservationFiles:
    from adapters.linux.reservation_files import HostLocalDirectory

    return HostLocalDirectory(directory, clock)


def main(environ: Mapping[str, str]) -> int:
    """The exit code."""
    gc.enable()  # a plugin's call is over before it pays
    log = CallLog("ipam")
    log.info("migrating from host-local to calico-ipam...")
    node = environ.get("KUBERNETES_NODE_NAME", "")
    if not node:
        return _fatal("KUBERNETES_NODE_NAME not specified, refusing to migrate...")
    try:
        places = Places.of(environ)
        wish = Wish(node, old_programs(places.programs), places.wait)
        runtime = _open_runtime(environ, places.directory, log)
        outcome = guarded(lambda undo: upgrade_until_done(runtime, wish, undo), runtime.clock, log)
    except PortError as error:
        return _fatal(f"failed to initialize api client: {told(error)}")
    if outcome is None:
        return _fatal(INTERRUPTED)
    if outcome.left:
        return _fatal(refusal(outcome))
    log.info("migration from host-local to calico-ipam complete", moved=len(outcome.recorded))
    return 0


def _fatal(why: str) -> int:
    say(f"Error: {why}\n")
    return 1


def told(error: PortError) -> str:
    """With the setting that an upgrade goes by."""
    text = str(error)
    unknown = "nobody can be asked for the node's pods; set KUBECONFIG to a file that leads to their API server"
    return unknown if text == NOT_CONFIGURED else text


def refusal(outcome: Outcome) -> str:
    """What is left, in one line."""
    named = "; ".join([f"{one.name}: {one.why}" for one in outcome.left[:_SHOWN]])
    more = f"; and {len(outcome.left) - _SHOWN} more" if len(outcome.left) > _SHOWN else ""
    done = len(outcome.recorded)
    return f"{len(outcome.left)} of host-local's reservations are left, {done} moved: {named}{more}; then upgrade again"


def guarded(upgrade: Callable[[Undo], T], clock: Clock, log: Log) -> T | None:
    """What the upgrade gives; None if a signal has ended it. However it ends without success, it is taken back."""
    undo = Undo(clock, log)
    try:
        raise_when_signalled()
        done = upgrade(undo)
        settle()
    except Interrupted as signal:
        seen()
        log.warning("Interrupted", signal=str(signal))
        undo.run()
        return None
    except BaseException:
        settle_after_failure()
        undo.run()
        raise
    finally:
        ignore()
    return done


def settle_after_failure() -> None:
    """From here on a signal changes nothing: the process is ending already."""
    try:
        settle()
    except Interrupted:
        seen()


def upgraded_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """With the type of the datastore that is meant, and a pace where nobody has set one."""
    kind = datastores.setting(environ, "DATASTORE_TYPE")
    return {**PACE, **environ, "CALICO_DATASTORE_TYPE": kind if kind in _OTHERS else KUBERNETES}


def _open_runtime(environ: Mapping[str, str], directory: str, log: CallLog) -> UpgradeRuntime:
    environment = upgraded_environment(environ)
    netconf = NetConf(kubernetes=KubernetesSettings(kubeconfig=datastores.setting(environ, "KUBECONFIG")))
    clock = calico.clock()
    servers = datastores.api_servers(netconf, environment, clock)
    datastore = datastores.datastore(environment, "", clock, servers, log=log)
    cluster = datastores.datastore_cluster(netconf, environment, servers)
    return UpgradeRuntime(
        datastore=lambda: datastore,
        cluster=lambda: cluster,
        reservations=lambda: open_reservations(directory, clock),
        node=calico.node,
        clock=clock,
        log=log,
    )
