"""What an installer does that stays (SLEEP): secrets that change are installed again, and the plugins' token is renewed
before it expires, by the one process that has installed all of it.

Invariant: nothing that goes wrong with a secret or a token ends the watching; what is installed stays until the new one
is whole.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.moment import go_string
from domain.value import Value
from ports.errors import PortError
from usecases.install.secrets import have_changed, secrets_at, update_secrets
from usecases.install.service_account import is_pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from domain.install.places import Places
    from domain.install.settings import InstallSettings
    from ports.folder_watch import FolderWatch
    from usecases.install.installer import Installer
    from usecases.install.refresh_token import TokenRefresher

_BETWEEN_LOOKS = 60.0  # seconds, for changes that no watch has told


class Vigil(Value):
    """`watch` is of the folders of secrets and of the pod's own account; `refresher` knows the latter."""

    watch: FolderWatch
    refresher: TokenRefresher


def stay(places: Places, settings: InstallSettings, host: Installer, vigil: Vigil) -> NoReturn:
    """Until a signal ends it. CannotInstall if there is nothing to stay for."""
    source = settings.tls_assets_dir
    has_token = is_pod(places, host)
    if "etcd-cert" not in secrets_at(source, host) and not has_token:
        raise CannotInstall(
            f"there is nothing to watch: {source}/etcd-cert (TLS_ASSETS_DIR) is missing, and this is no pod whose token"
            " could be renewed; everything is installed, set SLEEP=false to end then"
        )
    if has_token:
        _prepare(vigil.refresher)
    changed: tuple[str, ...] = ()
    while True:
        vigil.watch.unwatched()
        if has_token:
            vigil.refresher.turn(changed, host.log)
        if source in changed or have_changed(places, settings, host):  # the latter also before it was watched
            host.log.info(f"Updating installed secrets at: {go_string(host.clock.now())}")
            update_secrets(places, settings, host)
        changed = vigil.watch.wait(min(_BETWEEN_LOOKS, vigil.refresher.pause() if has_token else _BETWEEN_LOOKS))


def _prepare(refresher: TokenRefresher) -> None:
    try:
        refresher.prepare()
    except PortError as error:
        raise CannotInstall(f"the plugins' token cannot be renewed: {error}") from error
