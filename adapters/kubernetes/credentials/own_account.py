"""As whom installer and token refresher ask an API server: KUBECONFIG's user, else the pod that they are part of, else
the kubeconfig of whoever is logged in.

Invariant: settings of the plugins, such as K8S_API_ENDPOINT or a network configuration's, count for nothing here.
"""

from __future__ import annotations

from adapters.kubernetes.credentials.settings import NothingConfigured, read_pod_settings
from domain.cni.netconf import KubernetesSettings, NetConf
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.kubernetes.credentials.outside import Outside
    from adapters.kubernetes.credentials.settings import Settings


def read_own_account(outside: Outside) -> Settings:
    """BadConfiguration."""
    named = outside.environment.get("KUBECONFIG", "")
    try:
        return _settings(named, outside)
    except NothingConfigured as error:
        home = outside.environment.get("HOME", "")
        path = f"{home}/.kube/config"
        from os.path import isfile

        if home and isfile(path):
            return _settings(path, outside)
        raise BadConfiguration(
            f"{error}; run as a pod with a service account, or name a kubeconfig with KUBECONFIG"
        ) from None


def _settings(kubeconfig: str, outside: Outside) -> Settings:
    return read_pod_settings(NetConf(kubernetes=KubernetesSettings(kubeconfig=kubeconfig)), outside)
