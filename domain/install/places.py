"""Where an installer finds what it installs, and where it puts it.

In a container the host's folders are mounted below one root, `/host`; for an operator on the host itself that root is
`/`. The configuration names paths as the host sees them, so these come from the settings and not from here.

Invariant: all are absolute and end without a slash.
"""

from __future__ import annotations

from domain.value import Value

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PROGRAM, STAGED = "/usr/bin/calico", "/opt/cni/bin"
NAMES = ("calico", "calico-ipam")
"""The names under which our own executable is installed."""
KUBECONFIG, TLS = "calico-kubeconfig", "calico-tls"
TLS_FILES = ("etcd-ca", "etcd-cert", "etcd-key")
REPLACED = ".tortie-replaced"
"""The folder, beside what we have installed, with what was there before."""
RECORD = ".record"
"""The file in it that says so."""
_NEVER = ("install", "calico", "calico-ipam")
BESIDE = ".tortie"  # what a program of ours loads from files, in a folder beside it: each copy makes its own


class Places(Value):
    """`programs` are the places of our own executable, of which the first one that is there counts, and `names` those
    that it is installed under, the network plugin's first; `staged` is a folder of other plugins to install beside it,
    "" for none.
    """

    bin_dirs: tuple[str, ...] = ("/host/opt/cni/bin", "/host/secondary-bin-dir")
    net_dir: str = "/host/etc/cni/net.d"
    programs: tuple[str, ...] = (PROGRAM, f"{STAGED}/calico")
    staged: str = STAGED
    service_account: str = SERVICE_ACCOUNT
    names: tuple[str, ...] = NAMES

    @property
    def kubeconfig(self) -> str:
        return f"{self.net_dir}/{KUBECONFIG}"

    @property
    def tls_dir(self) -> str:
        return f"{self.net_dir}/{TLS}"


def below(root: str) -> Places:
    """The same of a host whose file system is at `root`."""
    root = root.rstrip("/")
    return Places(bin_dirs=(f"{root}/opt/cni/bin", f"{root}/secondary-bin-dir"), net_dir=f"{root}/etc/cni/net.d")


def is_own(name: str) -> bool:
    """Whether the name stands for something of the installation itself: no configuration or plugin can have it."""
    return name in (KUBECONFIG, TLS, RECORD) or name.startswith(".tortie-")


def plugins_to_copy(listed: tuple[str, ...], skipped: tuple[str, ...]) -> tuple[str, ...]:
    """Of what is staged, all but ourselves and what shall not be installed. Names are compared as they are."""
    never = {BESIDE, *_NEVER, *[f"{name}.exe" for name in _NEVER], *skipped}
    return tuple([name for name in listed if name not in never])
