"""The original's sub-commands as far as this build has them: another way to start the plugins, and the version.

What Calico's combined executable has beyond that (felix, calicoctl, …) is not here; saying so beats guessing.

Invariant: whatever is not here ends with an error that names it.
"""

from __future__ import annotations

from entrypoints.stdio import say, send
from entrypoints.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HELP = """\
Calico's CNI plugins. A container runtime starts them with CNI_COMMAND set.

  calico -v                            the version
  calico -t < NETCONF                  can the datastore be reached, and is it ready?
  calico component cni plugin [-v|-t]  the network plugin
  calico component cni ipam [-v]       the IPAM plugin (-upgrade: from host-local)
  calico component cni install         install both on a host, by the environment's settings
  calico component cni uninstall       put back what was there before (--help)
  calico component node monitor-token  the plugins' kubeconfig, kept usable for ever (also: tortie refresh-token)
  calico version                       the version
"""
# What is a command of `tortie` as well.
_OPERATORS = {"cni uninstall": "uninstall", "node monitor-token": "refresh-token"}


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """The exit code of `calico <arguments>` when no runtime is calling."""
    if not arguments:
        from entrypoints.calico import main

        return main((), {})  # without a verb the plugin says what it is
    first = arguments[0]
    if first == "version":
        return 0 if send(VERSION + "\n") else 1
    if first == "help":
        return 0 if send(_HELP) else 1
    if first == "component":
        return _component(arguments[1:], environ)
    if first in ("ctl", "health"):
        hint = "; `tortie` shows and changes the datastore" if first == "ctl" else ""
        return _refuse(f"`{first}` is not part of this build{hint}")
    return _refuse(f'unknown command "{first}" for "calico"')


def _component(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    if tuple(arguments[:2]) == ("cni", "plugin"):
        from entrypoints.calico import main as plugin

        return plugin(arguments[2:], environ)
    if tuple(arguments[:2]) == ("cni", "ipam"):
        from entrypoints.calico_ipam import main as ipam

        return ipam(arguments[2:], environ)
    if tuple(arguments) == ("cni", "install"):
        from entrypoints.install import main as install
        from entrypoints.tortie.guard import guarded

        return guarded(lambda: install(environ))
    if command := _OPERATORS.get(" ".join(arguments[:2])):
        from entrypoints.tortie.guard import guarded
        from entrypoints.tortie.main import main as operate

        return guarded(lambda: operate((command, *arguments[2:]), environ))
    named = 2 if tuple(arguments[:1]) in (("cni",), ("node",)) else 1
    return _refuse(f"`{' '.join(['component', *arguments[:named]])}` is not part of this build")


def _refuse(why: str) -> int:
    say(f"Error: {why}\n")
    return 1
