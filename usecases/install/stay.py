"""What an installer does that stays (SLEEP): secrets that change are installed again.

Invariant: nothing that goes wrong with a secret ends the watching; what is installed stays until the new one is whole.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.moment import go_string
from ports.host_files import FOLDER
from usecases.install.secrets import have_changed, secrets_at, update_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from domain.install.places import Places
    from domain.install.settings import InstallSettings
    from usecases.install.installer import Installer

_BETWEEN_LOOKS = 60.0  # seconds


def stay(places: Places, settings: InstallSettings, host: Installer) -> NoReturn:
    """Until a signal ends it. CannotInstall if there is nothing to stay for."""
    source = settings.tls_assets_dir
    token = host.files.look(f"{places.service_account}/token", follow=True)
    if "etcd-cert" not in secrets_at(source, host) and (token is None or token.kind == FOLDER):
        raise CannotInstall(
            f"there is nothing to watch: {source}/etcd-cert (TLS_ASSETS_DIR) is missing, and this is no pod whose token"
            " could be renewed; everything is installed, set SLEEP=false to end then"
        )
    while True:
        host.clock.sleep(_BETWEEN_LOOKS)
        if have_changed(places, settings, host):
            host.log.info(f"Updating installed secrets at: {go_string(host.clock.now())}")
            update_secrets(places, settings, host)
