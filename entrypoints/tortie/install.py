"""`tortie install`: what the installer's container does, by hand, for the host itself or for one that is mounted.

Invariant: without options the places are the container's; the environment's variables count here as they do there.
"""

from __future__ import annotations

from domain.install.places import Places, below
from domain.value import Value
from entrypoints.logs import CallLog
from entrypoints.tortie.answer import Answer
from entrypoints.tortie.command import Command, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from entrypoints.tortie.session import Session

_ROOT = "/host"
_EXAMPLES = """\
tortie install --root /                       onto this host, with the built-in CNI configuration
DATASTORE_TYPE=etcdv3 CNI_NETWORK_CONFIG_FILE=etcd.conflist tortie install --root /
tortie install --root /mnt/node               onto a host whose file system is mounted there
tortie install --bin-dir /usr/lib/cni --net-dir /etc/cni/net.d"""
_MORE = """\
Everything else is said by the variables of Calico's installer: CNI_NETWORK_CONFIG, CNI_CONF_NAME, CNI_MTU,
KUBERNETES_NODE_NAME, LOG_LEVEL, UPDATE_CNI_BINARIES, SKIP_CNI_BINARIES, TLS_ASSETS_DIR and the others; SLEEP is false
unless it is set. `tortie uninstall` puts back what was there before."""


class HostOptions(Value):
    """Where the host is that is meant."""

    root: str
    bin_dirs: tuple[str, ...]
    net_dir: str

    def places(self) -> Places:
        places = below(self.root)
        return places.replace(bin_dirs=self.bin_dirs or places.bin_dirs, net_dir=self.net_dir or places.net_dir)

    def host_net_dir(self) -> str:
        """The folder of configurations as the host sees it."""
        net_dir = self.places().net_dir
        root = self.root.rstrip("/")
        return net_dir.removeprefix(root) if net_dir.startswith(f"{root}/") else net_dir


def add_host_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--root", metavar="DIR", type=place, default=_ROOT, help=f"where the host's file system is (default: {_ROOT})"
    )
    parser.add_argument(
        "--bin-dir",
        metavar="DIR",
        type=place,
        action="append",
        default=[],
        help="for executables; repeatable (default: opt/cni/bin and secondary-bin-dir below the root)",
    )
    parser.add_argument("--net-dir", metavar="DIR", type=place, help="for CNI configurations (default: etc/cni/net.d)")


def host_options(options: Namespace) -> HostOptions:
    return HostOptions(options.root, tuple(options.bin_dir), options.net_dir or "")


def _add_arguments(parser: ArgumentParser) -> None:
    add_host_arguments(parser)
    parser.add_argument("--from", dest="source", metavar="FILE", type=place, help="executable (default: this one)")
    parser.add_argument("--plugins", metavar="DIR", type=place, help="also install the executables in this folder")


def _run(options: Namespace, session: Session) -> Answer:
    from entrypoints.install import run
    from entrypoints.wiring.this_program import own_path

    host = host_options(options)
    places = host.places().replace(
        programs=(options.source or own_path(),),
        staged=options.plugins or "",
    )
    environ = {"SLEEP": "false", "CNI_NET_DIR": host.host_net_dir(), **session.environment}
    return Answer("", run(places, environ, CallLog("cni-installer")))


COMMAND = Command(
    "install",
    "Install the CNI plugins, their credentials and a CNI configuration.",
    _run,
    _add_arguments,
    uses_datastore=False,
    examples=_EXAMPLES,
    more=_MORE,
)
