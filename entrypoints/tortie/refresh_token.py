"""`tortie refresh-token`: what keeps plugins able to ask the API server, resident in a container of the DaemonSet.

Plugins go by a token in a file, which expires after a day. Invariant: as long as this runs and the server answers, the
file has one that is good; it ends at once when it is asked to, with exit code 0.
"""

from __future__ import annotations

from domain.moment import rfc3339
from entrypoints.logs import CallLog
from entrypoints.termination import Interrupted, raise_when_signalled, seen
from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command, place
from usecases.install.refresh_token import keep_fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import NoReturn

    from entrypoints.tortie.session import Session
    from ports.clock import Clock
    from ports.log import Log
    from usecases.install.refresh_token import TokenRefresher

_ROOT, _NET_DIR = "/host", "etc/cni/net.d"
_KEYBOARD = 130  # what a shell reports of a process that the signal killed
_EXAMPLES = """\
tortie refresh-token                     as a container of the DaemonSet, for ever
KUBECONFIG=admin.conf tortie refresh-token --once --root / --namespace kube-system
                                         once, by hand, on the host itself"""
_MORE = """\
It asks as the pod that it runs in, or as KUBECONFIG says, which has to be allowed to create serviceaccounts/token of
the plugins' account (CALICO_CNI_SERVICE_ACCOUNT, else calico-cni-plugin), and writes calico-kubeconfig into the folder
of CNI configurations: at once, every six to twelve hours (CNI_TOKEN_REFRESH_INTERVAL=30m: every 30 to 60 minutes), when
the pod's own token has been replaced, and five to ten seconds after a failure. SKIP_TLS_VERIFY=true lets the plugins
believe any server."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="renew it now, and end; exit code 1 if that fails")
    parser.add_argument(
        "--root", metavar="DIR", type=place, default=_ROOT, help=f"where the host's file system is (default: {_ROOT})"
    )
    parser.add_argument(
        "--net-dir", metavar="DIR", type=place, help=f"for CNI configurations (default: {_NET_DIR} below the root)"
    )
    parser.add_argument(
        "--namespace", metavar="NAME", default="", help="of the plugins' account (default: the one of this pod)"
    )


def _run(options: Namespace, session: Session) -> Answer:
    from entrypoints.wiring.token_refresher import renewal, token_refresher

    log = CallLog("cni-config-monitor")
    net_dir = options.net_dir or f"{options.root.rstrip('/')}/{_NET_DIR}"
    raise_when_signalled()
    try:
        chosen = renewal(session.environment, net_dir, log, namespace=options.namespace)
        refresher = token_refresher(chosen, session.environment, session.clock)
        refresher.prepare()
        if options.once:
            token = refresher.renew()
            return Answer(f"{chosen.path} has a new token, good until {rfc3339(token.expires)}\n")
        _stay(refresher, session.clock, log)
    except Interrupted as signal:
        seen()
        log.info(f"Ended by {signal}")
        return Answer("", code=_KEYBOARD if str(signal) == "SIGINT" else 0)


def _stay(refresher: TokenRefresher, clock: Clock, log: Log) -> NoReturn:
    from entrypoints.wiring.token_refresher import folder_watch

    watch = folder_watch(refresher.renewal.watched, clock=clock)
    try:
        keep_fresh(refresher, watch, log)
    finally:
        watch.close()


COMMAND = Command(
    "refresh-token",
    "Keep the token of the plugins' kubeconfig good, for ever or --once.",
    _run,
    _add_arguments,
    uses_datastore=False,
    examples=_EXAMPLES,
    more=_MORE,
)
