"""The kubeconfig that plugins go by, as its two writers spell it: the installer, and whoever renews its token.

It is text from a template, not from a YAML library, so that it is the original's to the octet. What goes into it comes
from elsewhere (variables, other kubeconfigs, an API server), so a value that would not stay on its line is refused.

Invariant: the text that is returned reads back as one cluster, one user with that token, and their context.
"""

from __future__ import annotations

from domain.value import Value

MODE = 0o600  # it holds a secret

_INSTALLED = "# Kubeconfig file for Calico CNI plugin."
_RENEWED = "# Kubeconfig file for Calico CNI plugin. Installed by calico/node."
_TEMPLATE = """\
{comment}
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: {server}
    {trust}
users:
- name: calico
  user:
    token: {token}
contexts:
- name: calico-context
  context:
    cluster: local
    user: calico
current-context: calico-context"""
_INSECURE = "insecure-skip-tls-verify: true"


class BadKubeconfigValue(ValueError):
    """Nothing that can stand in the file. The text names it, and does not show a token."""


class KubeconfigCluster(Value):
    """`server` is a URL; `ca` is PEM, b"" for none; `insecure`: whoever answers there is believed."""

    server: str
    ca: bytes = b""
    insecure: bool = False


def service_url(host: str, port: str, protocol: str = "") -> str:
    """Where the cluster's own service variables say that the API server is; IPv6 gets brackets."""
    place = f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
    return f"{protocol or 'https'}://{place}"


def installed_kubeconfig(cluster: KubeconfigCluster, token: str) -> str:
    """As the installer writes it. BadKubeconfigValue."""
    trust = _INSECURE if cluster.insecure else f"certificate-authority-data: {_base64(cluster.ca)}"
    return _filled(_INSTALLED, cluster.server, trust, token) + "\n"


def renewed_kubeconfig(cluster: KubeconfigCluster, token: str) -> str:
    """As calico/node writes it, without a line end at its end. BadKubeconfigValue.

    The original knows no `insecure` here: a cluster that was installed so would be cut off by the first renewal.
    """
    trust = _INSECURE if cluster.insecure else f'certificate-authority-data: "{_base64(cluster.ca)}"'
    return _filled(_RENEWED, cluster.server, trust, token)


def _filled(comment: str, server: str, trust: str, token: str) -> str:
    token = token.strip()  # one from a file may end with a line end, which a reader drops as well
    if "://" not in server or not _is_plain(server):
        raise BadKubeconfigValue(f"the API server's URL {server!r} cannot stand in a kubeconfig")
    if not _is_plain(token):
        raise BadKubeconfigValue("the service account's token has characters that no token has, or none at all")
    return _TEMPLATE.format(comment=comment, server=server, trust=trust, token=token)


def _is_plain(text: str) -> bool:
    """Whether YAML reads the text, unquoted, as that text. (A `:` is one of its own only before a blank.)"""
    return (
        text.isascii() and text.isprintable() and text[:1].isalnum() and not set(text) & set(' "#') and text[-1] != ":"
    )


def _base64(octets: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(octets, newline=False).decode("ascii")
