"""What an installer's environment says, read once and before anything is touched.

Most variables count as they are, so that one that is set and empty is empty and not the default; a few have a type.
Wherever the original finds a mistake only when it comes to use the value, it is found here.

Invariant: settings that have been read can be used; a mistake is `CannotInstall` that names the variable.
"""

from __future__ import annotations

from domain.cni.go_quote import go_quoted
from domain.go_duration import parse_go_duration
from domain.install.errors import CannotInstall
from domain.install.places import is_own
from domain.install.token import ACCOUNT
from domain.moment import SECOND
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_NAME = "10-calico.conflist"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_MOST_MODE = 0o7777
_LONGEST_WAIT = 86_400.0
# Variables that replace a placeholder of their own name.
_SUBSTITUTED = {
    "LOG_LEVEL": "info",
    "LOG_FILE_PATH": "/var/log/calico/cni/cni.log",
    "LOG_FILE_MAX_SIZE": "100",
    "LOG_FILE_MAX_AGE": "30",
    "LOG_FILE_MAX_COUNT": "10",
    "DATASTORE_TYPE": "kubernetes",
    "CNI_MTU": "1500",
    "KUBERNETES_SERVICE_HOST": "",
    "KUBERNETES_SERVICE_PORT": "",
    "CALICO_API_GROUP": "crd.projectcalico.org/v1",
    "ETCD_ENDPOINTS": "",
    "ETCD_DISCOVERY_SRV": "",
    "REQUIRE_MTU_FILE": "false",
    "LOG_FORMAT": "text",
    "METRICS_DIR": "",
}


class InstallSettings(Value):
    """`substituted` are the values of placeholders, by name. `host_net_dir` is the host's own view of the folder of
    configurations. `old_conf_name` is removed where it is not `conf_name`.

    `wait_for_datastore` is None where nobody has said: then we wait for it, and go on without it. `built_in` is the
    template of this platform, "" for the usual one, and `platform` what is replaced in any template first, by what.
    """

    substituted: Mapping[str, str]
    host_net_dir: str = "/etc/cni/net.d"
    conf_name: str = DEFAULT_NAME
    old_conf_name: str = DEFAULT_NAME
    conf_mode: int = 0o600
    conf_mode_text: str = "0600"
    template: str = ""
    template_file: str = ""
    tls_assets_dir: str = "/calico-secrets"
    skipped: tuple[str, ...] = ()
    update: bool = True
    sleep: bool = True
    skip_tls_verify: bool = False
    service_protocol: str = "https"
    account: str = ACCOUNT
    wait_for_datastore: bool | None = None
    probe_timeout: float = 10.0
    built_in: str = ""
    platform: tuple[tuple[str, str], ...] = ()


def read_settings(environ: Mapping[str, str], host_name: str) -> InstallSettings:
    """`host_name` is the operating system's, as it is."""
    substituted = {name: environ.get(name, default) for name, default in _SUBSTITUTED.items()}
    substituted["KUBERNETES_NODE_NAME"] = environ.get("KUBERNETES_NODE_NAME", host_name.strip().lower())
    skipped = environ.get("SKIP_CNI_BINARIES", "")
    mode = environ.get("TEST_FILE_PERMISSION", "0600")
    return InstallSettings(
        substituted=substituted,
        host_net_dir=environ.get("CNI_NET_DIR", "/etc/cni/net.d"),
        conf_name=_file_name(environ, "CNI_CONF_NAME"),
        old_conf_name=_file_name(environ, "CNI_OLD_CONF_NAME"),
        conf_mode=_octal(mode),
        conf_mode_text=mode,
        template=environ.get("CNI_NETWORK_CONFIG", ""),
        template_file=environ.get("CNI_NETWORK_CONFIG_FILE", ""),
        tls_assets_dir=environ.get("TLS_ASSETS_DIR", "/calico-secrets"),
        skipped=tuple(skipped.split(",")) if skipped else (),
        update=_bool(environ, "UPDATE_CNI_BINARIES"),
        sleep=_bool(environ, "SLEEP"),
        skip_tls_verify=environ.get("SKIP_TLS_VERIFY") == "true",
        service_protocol=environ.get("KUBERNETES_SERVICE_PROTOCOL") or "https",
        account=environ.get("CALICO_CNI_SERVICE_ACCOUNT") or ACCOUNT,
        wait_for_datastore=_bool(environ, "CNI_WAIT_FOR_DATASTORE") if environ.get("CNI_WAIT_FOR_DATASTORE") else None,
        probe_timeout=_seconds(environ, "CNI_DATASTORE_PROBE_TIMEOUT", "10"),
    )


def _bool(environ: Mapping[str, str], name: str) -> bool:
    text = environ.get(name, "true")
    if text not in (*_TRUE, *_FALSE):
        raise CannotInstall(f"{name}={go_quoted(text)} is no bool: it may be {', '.join((*_TRUE, *_FALSE))}")
    return text in _TRUE


def _file_name(environ: Mapping[str, str], name: str) -> str:
    """Set and empty it would be the folder itself; with a slash in it, something outside; of our own names, what has
    just been installed.
    """
    text = environ.get(name, DEFAULT_NAME)
    if not text or "/" in text or text in (".", ".."):
        raise CannotInstall(f"{name}={go_quoted(text)} is no file name: it goes into the folder of CNI configurations")
    if is_own(text):
        raise CannotInstall(f"{name}={go_quoted(text)} is the name of something else that the installer puts there")
    return text


def _octal(text: str) -> int:
    digits = text.removeprefix("0o")
    if not digits or not set(digits) <= set("01234567") or int(digits, 8) > _MOST_MODE:
        raise CannotInstall(f"TEST_FILE_PERMISSION={go_quoted(text)} is no file mode: it has to be octal, such as 0600")
    return int(digits, 8)


def _seconds(environ: Mapping[str, str], name: str, default: str) -> float:
    text = environ.get(name) or default
    try:
        seconds = parse_go_duration(f"{text}s" if text[-1:].isdigit() else text) / SECOND
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise CannotInstall(f"{name}={go_quoted(text)} is no time to wait: it may be 0s to 24h, such as 30 or 1m30s")
    return seconds
