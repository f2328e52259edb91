"""The pod that an installer runs as: its service account's files, and what the cluster's variables say of the server.

Invariant: a kubeconfig is written only in a pod, which is told by its token file.
"""

from __future__ import annotations

from domain.install.certificates import fault_of_certificates
from domain.install.errors import CannotInstall
from domain.install.kubeconfig import BadKubeconfigValue, KubeconfigCluster, installed_kubeconfig, service_url
from domain.install.token import VALIDITY
from domain.value import Value
from ports.errors import PortError
from ports.host_files import FOLDER
from ports.node import MissingFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.install.places import Places
    from domain.install.settings import InstallSettings
    from usecases.install.installer import Installer

_REQUEST = 60.0  # seconds for the API server


class Pod(Value):
    """`token` is the pod's own, as it stands in its file."""

    token: str
    cluster: KubeconfigCluster

    def __repr__(self) -> str:
        return f"Pod(cluster={self.cluster.server})"  # not the token


def is_pod(places: Places, host: Installer) -> bool:
    found = host.files.look(f"{places.service_account}/token", follow=True)
    return found is not None and found.kind != FOLDER


def own_pod(places: Places, settings: InstallSettings, host: Installer) -> Pod | None:
    """CannotInstall if we are one, and are not told where the API server is."""
    if not is_pod(places, host):
        return None
    path = f"{places.service_account}/token"
    host.log.info("Running as a Kubernetes pod")
    host_name, port = [settings.substituted[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT")]
    if not host_name or not port:
        raise CannotInstall(
            "unable to load in-cluster configuration, "
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    url = service_url(host_name, port, settings.service_protocol)
    token = host.files.read(path).decode("utf-8", "replace")
    return Pod(token, KubeconfigCluster(url, _authority(places, host), settings.skip_tls_verify))


def _authority(places: Places, host: Installer) -> bytes:
    path = f"{places.service_account}/ca.crt"
    try:
        pem = host.files.read(path)
        fault = fault_of_certificates(pem)
    except PortError as error:
        fault = str(error)
    if fault:
        host.log.error(f"Expected to load root CA config from {path}, but got err: {fault}")
        return b""
    return pem


def requested_kubeconfig(pod: Pod, places: Places, settings: InstallSettings, host: Installer) -> str:
    """With a new token for the plugins' account. CannotInstall."""
    path = f"{places.service_account}/namespace"
    try:
        namespace = host.files.read(path).decode("utf-8", "replace")
    except (PortError, MissingFile) as error:
        raise CannotInstall(f"Failed to read service account namespace file: {error}") from error
    account = settings.account
    try:
        token = host.issuer.request_token(namespace, account, VALIDITY, host.clock.deadline(_REQUEST))
        return installed_kubeconfig(pod.cluster, token.text)
    except (PortError, BadKubeconfigValue) as error:
        who = f"the service account {namespace}/{account} (CALICO_CNI_SERVICE_ACCOUNT)"
        raise CannotInstall(f"Unable to create token for CNI kubeconfig: {who}: {error}") from error
