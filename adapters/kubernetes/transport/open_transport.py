"""Opening a transport to a kube-apiserver: the lean one, or the one on the `kubernetes` package.

Invariant: the package is loaded nowhere but here, and only when it is asked for.
"""

from __future__ import annotations

from adapters.kubernetes.credentials.settings import with_plugin
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.kubernetes.credentials.outside import Outside
    from adapters.kubernetes.credentials.settings import Settings
    from adapters.kubernetes.transport.seam import ApiTransport


def open_transport(
    settings: Settings, read: Callable[[], Settings], outside: Outside, *, library: bool
) -> ApiTransport:
    """Nothing is connected before the first request, but an exec plugin runs now.

    `read` reads the settings anew, for credentials that have changed. BadConfiguration; Unavailable from a plugin.
    """
    complete = with_plugin(settings, outside)

    def renewed() -> Settings:
        return with_plugin(read(), outside)

    if not library:
        from adapters.kubernetes.transport.lean import LeanApiTransport

        return LeanApiTransport(complete, renewed)
    try:
        from adapters.kubernetes.transport.on_kubernetes import KubernetesTransport
    except ImportError as error:
        raise BadConfiguration(
            f'datastore type "kubernetes" needs the package of the extra "kubernetes": {error}'
        ) from error
    return KubernetesTransport(complete, renewed)
