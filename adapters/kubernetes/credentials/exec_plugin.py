"""A credential plugin: a program that prints the credentials to use, as cloud providers' kubeconfigs name one.

It is run without a terminal and for a limited time, once for each reading of the credentials.

Invariant: nothing of what the program printed, and none of its arguments, gets into an error.
"""

from __future__ import annotations

import os

from adapters.kubernetes.credentials.fields import Malformed, flag, items, member, text, texts
from domain.json_text import dumps, parse
from domain.moment import parse_rfc3339
from domain.value import Value
from ports.errors import BadConfiguration, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapters.kubernetes.credentials.fields import Object
    from adapters.kubernetes.credentials.outside import Outside
    from domain.json_text import Json

LONGEST = 15.0  # seconds that a plugin may take
_EXTENSIONS = ("", ".exe") if os.name == "nt" else ("",)
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecPlugin(Value):
    """`command` has a slash, or is looked up in PATH."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    api_version: str = _VERSIONS[0]
    install_hint: str = ""
    wants_cluster: bool = False

    def __repr__(self) -> str:
        return f"ExecPlugin({self.command!r})"  # arguments and environment may be secrets


class ExecCredential(Value):
    """A token, or certificate and key, or both. `expires` is in nanoseconds since the epoch; None: not known."""

    token: str = ""
    cert: bytes = b""
    key: bytes = b""
    expires: int | None = None

    def __repr__(self) -> str:
        return "ExecCredential()"


def read_exec(entry: Object, beside: Callable[[str], str]) -> ExecPlugin:
    """The `exec` of a user; `beside` makes a path relative to the kubeconfig whole. ValueError."""
    version, command = text(entry, "apiVersion"), text(entry, "command")
    if version not in _VERSIONS:
        raise Malformed(f"exec.apiVersion is {version!r}, neither {_VERSIONS[0]} nor v1beta1")
    if not command:
        raise Malformed("exec.command is missing")
    mode = text(entry, "interactiveMode")
    if mode not in ("Never", "IfAvailable", "Always") and (mode or version == _VERSIONS[0]):
        raise Malformed("exec.interactiveMode is none of Never, IfAvailable, Always")
    if mode == "Always":
        raise Malformed(f"exec.command {command!r} wants a terminal (interactiveMode Always), and there is none here")
    return ExecPlugin(
        command=beside(command) if "/" in command else command,
        arguments=texts(entry, "args"),
        environment=tuple([(text(item, "name"), text(item, "value")) for item in items(entry, "env")]),
        api_version=version,
        install_hint=text(entry, "installHint"),
        wants_cluster=flag(entry, "provideClusterInfo"),
    )


def obtain(plugin: ExecPlugin, cluster: Json, outside: Outside) -> ExecCredential:
    """Run it. `cluster` is what it may know of the cluster.

    BadConfiguration if it cannot be run or answers wrongly; Unavailable if it has none to give now.
    """
    from adapters.kubernetes.credentials.outside import Program

    given: dict[str, Json] = {"interactive": False, **({"cluster": cluster} if plugin.wants_cluster else {})}
    info: Json = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": given}
    environment = {**outside.environment, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": dumps(info)}
    program = Program(_find(plugin, environment), plugin.arguments, environment)
    try:
        status, printed = outside.run(program, LONGEST)
    except OSError as error:
        raise BadConfiguration(f"credential plugin {program.path}: {error.strerror}") from None
    if status != 0:
        ended = f"exit status {status >> 8}" if status >> 8 else f"signal {status & 0x7F}"
        raise Unavailable(f"credential plugin {program.path} gave no credentials: it ended with {ended}")
    try:
        return _read(printed, plugin)
    except ValueError as error:
        raise BadConfiguration(f"credential plugin {program.path}: {error}") from None


def _find(plugin: ExecPlugin, environment: Mapping[str, str]) -> str:
    if "/" in plugin.command or os.sep in plugin.command:
        return plugin.command
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        for extension in _EXTENSIONS:
            path = os.path.join(folder, plugin.command + extension)
            if os.path.isabs(folder) and os.access(path, os.X_OK) and os.path.isfile(path):
                return path
    hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
    raise BadConfiguration(f"credential plugin {plugin.command!r} is not installed in any folder of PATH{hint}")


def _read(printed: bytes, plugin: ExecPlugin) -> ExecCredential:
    try:
        answer = parse(printed.decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise Malformed("its answer is not an ExecCredential")
    if answer.get("apiVersion") != plugin.api_version:
        raise Malformed(f"its answer is not of version {plugin.api_version}, which is configured")
    status = member(answer, "status")
    token = text(status, "token")
    cert, key = text(status, "clientCertificateData").encode(), text(status, "clientKeyData").encode()
    if bool(cert) != bool(key):
        raise Malformed("its answer has a certificate or a key, not both")
    if not token and not cert:
        raise Malformed("its answer has neither a token nor a certificate with its key")
    expires = text(status, "expirationTimestamp")
    return ExecCredential(token, cert, key, parse_rfc3339(expires) if expires else None)
