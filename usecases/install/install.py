"""`calico component cni install`: executables, secrets, kubeconfig and configuration, onto the host.

The configuration tells the runtime that this node has a network, so it comes last, and only when the datastore answers
or has had its time. Everything is made ready before anything is put into its place: whatever goes wrong until then,
a full disk among it, leaves the host as it was.

Invariant: at every moment the configuration that is in force finds the executables and credentials that it needs.
"""

from __future__ import annotations

from contextlib import ExitStack

from domain.install.errors import CannotInstall
from domain.install.kubeconfig import MODE
from domain.install.places import KUBECONFIG, TLS
from domain.install.template import Template
from ports.errors import PortError
from ports.host_files import FOLDER, HostFileError
from usecases.install.binaries import Binaries, own_program, writable_folders
from usecases.install.datastore_probe import await_datastore
from usecases.install.secrets import remove_stale, secrets_at, stage_secrets
from usecases.install.service_account import own_pod, requested_kubeconfig
from usecases.install.staging import StagedFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.install.places import Places
    from domain.install.settings import InstallSettings
    from domain.install.template import Rendered
    from usecases.install.installer import Installer


def install(places: Places, settings: InstallSettings, host: Installer) -> None:
    """CannotInstall with what to change; then the host is as it was. Only if a file cannot be replaced, since it is
    immutable or a mount of its own, what comes before it is installed, which the text says.
    """
    work = _Installation(places, settings, host)
    try:
        try:
            work.make_ready()
            with ExitStack() as holds:
                for folder in work.folders():
                    holds.enter_context(host.files.held(folder))
                work.put_in_place()
        finally:
            work.close()
    except PortError as error:
        raise CannotInstall(str(error)) from error
    host.log.info(f"Done configuring CNI.  Sleep= {'true' if settings.sleep else 'false'}")


class _Installation:
    def __init__(self, places: Places, settings: InstallSettings, host: Installer) -> None:
        self._places = places
        self._settings = settings
        self._host = host
        self._folders: list[StagedFolder] = []
        self._binaries: list[Binaries] = []
        self._secrets: tuple[str, ...] = ()

    def make_ready(self) -> None:
        """In the order in which it will be needed; what can be found wrong without a file, before the first file."""
        settings, host = self._settings, self._host
        pod = own_pod(self._places, settings, host)
        template = _template(settings, host)
        template.render(settings, pod.token if pod else "", secrets_at(settings.tls_assets_dir, host))
        writable = writable_folders(self._places, settings, host)
        _require_folder(self._places.net_dir, writable, host)
        net = self._staged(self._places.net_dir)
        self._secrets = stage_secrets(net, settings, host)
        for folder in writable:
            self._binaries.append(Binaries(self._staged(folder)))
            self._binaries[-1].stage(own_program(self._places, host), self._places, settings, host)
        if pod:
            net.others_rewrite(KUBECONFIG)
            net.write(KUBECONFIG, requested_kubeconfig(pod, self._places, settings, host), MODE)
        rendered = template.render(settings, pod.token if pod else "", self._secrets)
        host.log.info(f"CNI config file permission is set to {settings.conf_mode_text}")
        net.write(settings.conf_name, rendered.text, settings.conf_mode)
        if settings.old_conf_name != settings.conf_name:
            net.will_remove(settings.old_conf_name)
        self._await_datastore(rendered, net)

    def folders(self) -> list[str]:
        """In the order in which everybody holds them."""
        return [folder.folder for folder in self._folders]

    def put_in_place(self) -> None:
        """Nobody else may do so at the same time: the first of two keeps what was there, and the second sees that."""
        self._keep_what_is_there()
        try:
            self._replace()
        except PortError as error:
            done = "what comes before it has been installed, and `tortie uninstall` takes it back"
            raise CannotInstall(f"{error}; see whether it is immutable, or a mount of its own; {done}") from error

    def _replace(self) -> None:
        places, settings, host = self._places, self._settings, self._host
        net = self._folders[0]
        net.put_folder_in_place(TLS)
        for binaries in self._binaries:
            binaries.put_in_place(host)
        net.put_in_place(KUBECONFIG)
        net.put_in_place(settings.conf_name)
        host.log.info(f"Created {places.net_dir}/{settings.conf_name}")
        self._remove_old_configuration()
        remove_stale(places, self._secrets, host)

    def _keep_what_is_there(self) -> None:
        try:
            for folder in self._folders:
                folder.keep_what_is_there()
        except BaseException:  # also a signal, which may come at any moment
            for folder in self._folders:
                folder.forget_what_was_kept()
            raise

    def close(self) -> None:
        with ExitStack() as closing:
            for folder in self._folders:
                closing.callback(folder.close)

    def _staged(self, folder: str) -> StagedFolder:
        self._folders.append(StagedFolder(self._host.files, folder))
        return self._folders[-1]

    def _await_datastore(self, rendered: Rendered, net: StagedFolder) -> None:
        """With the credentials that are going to be there, by whichever executable of ours is."""
        host_net_dir = f"{self._settings.host_net_dir}/"

        def place_of(path: str) -> str:
            return net.path(path.removeprefix(host_net_dir)) if path.startswith(host_net_dir) else path

        probes = rendered.probes(place_of)
        name = self._places.names[0]
        program = self._binaries[0].folder.path(name) if self._binaries else f"{self._places.bin_dirs[0]}/{name}"
        await_datastore(probes, program, self._settings, self._host)

    def _remove_old_configuration(self) -> None:
        old = self._settings.old_conf_name
        if old == self._settings.conf_name:
            return
        path = f"{self._places.net_dir}/{old}"
        self._host.log.info(f"Removing {path}")
        try:
            if self._host.files.look(path) is None:
                raise HostFileError("remove", path, "no such file or directory")
            self._host.files.remove(path)
        except HostFileError as error:
            self._host.log.warning(f"Failed to remove {old}", error=error)


def _require_folder(path: str, others: Sequence[str], host: Installer) -> None:
    found = host.files.look(path, follow=True)
    if found is None or found.kind != FOLDER:
        raise CannotInstall(f"{path} is no folder: make it, or mount the host's folder of CNI configurations there")
    for other in others:
        if host.files.identity(path) == host.files.identity(other):
            raise CannotInstall(f"{path} and {other} are one folder: CNI configurations need one of their own")


def _template(settings: InstallSettings, host: Installer) -> Template:
    template = Template(settings.built_in) if settings.built_in else Template()
    if settings.template:
        host.log.info("Using CNI config template from CNI_NETWORK_CONFIG environment variable.")
        template = Template(settings.template, "CNI_NETWORK_CONFIG")
    if settings.template_file:
        host.log.info("Using CNI config template from CNI_NETWORK_CONFIG_FILE")
        try:
            text = host.files.read(settings.template_file).decode("utf-8", "surrogateescape")
        except PortError as error:
            raise CannotInstall(f"cannot read the template that CNI_NETWORK_CONFIG_FILE names: {error}") from error
        template = Template(text, f"CNI_NETWORK_CONFIG_FILE={settings.template_file}")
    if unknown := template.unknown(settings):
        names = ", ".join(unknown)
        host.log.warning("Unknown placeholders stay in the CNI config", placeholders=names, template=template.origin)
    return template
