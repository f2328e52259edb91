"""The installer that stays: secrets that change are installed again, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.memory.folder_watch import MemoryFolderWatch
from adapters.memory.host_files import MemoryHostFiles
from domain.install.errors import CannotInstall
from domain.install.kubeconfig import KubeconfigCluster
from domain.install.settings import read_settings
from ports.errors import Unavailable
from ports.host_files import FILE, FOLDER, HostFileError, Look
from usecases.install.refresh_token import Renewal, TokenRefresher
from usecases.install.stay import Vigil, stay
from worlds.install_world import ACCOUNT, CERTIFICATE, IN_A_CLUSTER, NET, InstallWorld

TLS = f"{NET}/calico-tls"


class Ended(BaseException):
    """By a signal."""


class Steps(MemoryFolderWatch):
    """Something happens in each wait; after the last one a signal comes."""

    def __init__(self, world: InstallWorld, steps: list[Callable[[], object]]) -> None:
        super().__init__(world.clock)
        self._steps = steps

    def wait(self, seconds: float) -> tuple[str, ...]:
        if not self._steps:
            raise Ended
        self.script = [()]
        super().wait(seconds)
        told = self._steps.pop(0)()
        return (told,) if isinstance(told, str) else ()


@pytest.fixture
def world() -> InstallWorld:
    world = InstallWorld()
    world.files.put("/calico-secrets/etcd-cert", "old", 0o640)
    world.install()
    return world


def stays(world: InstallWorld, *steps: Callable[[], object]) -> None:
    with pytest.raises(Ended):
        stay(world.places, read_settings({}, "host"), world.host, vigil(world, *steps))


def vigil(world: InstallWorld, *steps: Callable[[], object]) -> Vigil:
    renewal = Renewal(NET, ACCOUNT, as_installed=True)
    refresher = TokenRefresher(renewal, world.issuer, world.files, world.clock, chance=lambda: 0.0)
    return Vigil(Steps(world, list(steps)), refresher)


def updates(world: InstallWorld) -> int:
    return len([line for line in world.log.shown("info") if line.startswith("Updating installed secrets at: 20")])


def test_a_secret_that_changes_is_installed_with_its_mode(world: InstallWorld) -> None:
    before = world.on_the_host()
    stays(world, lambda: world.files.put("/calico-secrets/etcd-cert", "newer", 0o600), lambda: None)
    assert world.files.text(f"{TLS}/etcd-cert") == "newer"
    assert world.files.look(f"{TLS}/etcd-cert") == Look(FILE, 5, 0o600)
    assert updates(world) == 1
    assert {path for path, entry in world.on_the_host().items() if before.get(path) != entry} == {f"{TLS}/etcd-cert"}


def test_what_stays_the_same_is_not_touched(world: InstallWorld) -> None:
    before = world.on_the_host()
    stays(world, lambda: None, lambda: None)
    assert world.on_the_host() == before
    assert updates(world) == 0


def test_with_one_that_changes_all_others_come_along(world: InstallWorld) -> None:
    """Hidden ones too, but for the kubelet's own; a folder is told."""

    def change() -> None:
        for name in ("etcd-ca", ".hidden"):
            world.files.put(f"/calico-secrets/{name}", name)
        for name in ("..data", "folder"):
            world.files.put(f"/calico-secrets/{name}", kind=FOLDER, mode=0o755)

    stays(world, change)
    assert world.names(TLS) == (".hidden", "etcd-ca", "etcd-cert")
    (told,) = world.log.shown("warning")[-1:]
    assert told.startswith(f"Failed to update {TLS}/folder error=open /calico-secrets/folder")
    assert not [line for line in world.log.shown() if "..data" in line]


def test_a_disk_that_is_full_for_a_while_is_told_and_tried_again(world: InstallWorld) -> None:
    def full() -> None:
        def trouble(operation: str, path: str) -> None:
            raise HostFileError(operation, path, "no space left on device")

        world.files.put("/calico-secrets/etcd-cert", "newer", 0o640)
        world.files.trouble = trouble

    def empty() -> None:
        assert world.files.text(f"{TLS}/etcd-cert") == "old"
        world.files.trouble = lambda _operation, _path: None

    stays(world, full, empty)
    assert world.files.text(f"{TLS}/etcd-cert") == "newer"
    assert updates(world) == 2
    assert "no space left on device" in world.log.shown("warning")[-1]


def test_secrets_that_cannot_be_read_are_no_reason_to_end(world: InstallWorld) -> None:
    class Broken(MemoryHostFiles):
        def same(self, source: str, target: str) -> bool:
            raise HostFileError("read", source, "input/output error")

    def gone() -> None:
        world.files.remove_tree("/calico-secrets")

    stays(world, lambda: setattr(world.files, "__class__", Broken), lambda: None)
    world.files.__class__ = MemoryHostFiles
    stays(world, gone, lambda: None)
    assert updates(world) == 0
    assert world.files.text(f"{TLS}/etcd-cert") == "old"


def test_secrets_that_go_while_they_are_copied_are_told(world: InstallWorld) -> None:
    class Going(MemoryHostFiles):
        def names(self, folder: str) -> tuple[str, ...]:
            self.remove_tree("/calico-secrets")
            return super().names(folder)

    def change() -> None:
        world.files.put("/calico-secrets/etcd-cert", "newer")
        world.files.__class__ = Going

    stays(world, change)
    assert world.log.shown("warning")[-1].startswith("Failed to list /calico-secrets error=")


def test_a_change_that_is_told_brings_all_of_them(world: InstallWorld) -> None:
    def change() -> str:
        world.files.put("/calico-secrets/.hidden", "h")
        return "/calico-secrets"

    stays(world, change)
    assert world.names(TLS) == (".hidden", "etcd-cert")
    assert updates(world) == 1


def test_what_has_changed_before_it_was_watched_is_seen_at_once(world: InstallWorld) -> None:
    world.files.put("/calico-secrets/etcd-cert", "newer", 0o640)
    stays(world)
    assert world.files.text(f"{TLS}/etcd-cert") == "newer"


def test_without_anything_to_watch_it_ends(world: InstallWorld) -> None:
    settings = read_settings({"TLS_ASSETS_DIR": "/none"}, "host")
    with pytest.raises(CannotInstall, match=r"^there is nothing to watch: /none/etcd-cert \(TLS_ASSETS_DIR\)"):
        stay(world.places, settings, world.host, vigil(world))


def test_a_pod_stays_without_secrets(world: InstallWorld) -> None:
    world.be_a_pod()
    world.files.remove_tree("/calico-secrets")
    stays(world, lambda: None)


class TestInAPod:
    """The token is renewed by the process that has installed it, in the text that it has installed."""

    @pytest.fixture
    def world(self) -> InstallWorld:
        world = InstallWorld()
        world.be_a_pod()
        world.install(**IN_A_CLUSTER)
        return world

    def text(self, world: InstallWorld) -> str:
        return world.files.text(f"{NET}/calico-kubeconfig")

    def test_only_the_token_becomes_another(self, world: InstallWorld) -> None:
        before = self.text(world)
        world.issuer.known_cluster = KubeconfigCluster("https://10.96.0.1:443", CERTIFICATE.encode())
        stays(world)
        assert self.text(world) == before.replace("calico-cni-plugin.token.1", "calico-cni-plugin.token.2")
        assert self.text(world) != before

    def test_it_is_renewed_in_time_and_at_once_when_the_pods_own_is_another(self, world: InstallWorld) -> None:
        stays(world, *[lambda: None] * 361, lambda: ACCOUNT, lambda: None)
        assert len(world.issuer.asked) == 1 + 3

    def test_secrets_are_looked_at_meanwhile(self, world: InstallWorld) -> None:
        world.files.put("/calico-secrets/etcd-cert", "new")
        world.issuer.fault = Unavailable("nobody listens")
        stays(world, lambda: None)
        assert world.files.text(f"{TLS}/etcd-cert") == "new"
        assert world.log.shown("error")

    def test_who_cannot_tell_his_namespace_ends(self, world: InstallWorld) -> None:
        world.issuer.own_namespace = lambda: (_ for _ in ()).throw(Unavailable("namespace"))
        with pytest.raises(CannotInstall, match=r"^the plugins' token cannot be renewed: namespace$"):
            stay(world.places, read_settings({}, "host"), world.host, vigil(world))
