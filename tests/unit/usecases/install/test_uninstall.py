"""Taking an installation back, whatever it was interrupted by."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.memory.host_files import Entry
from domain.install.errors import CannotInstall
from ports.host_files import FOLDER, LINK, HostFileError
from worlds.install_world import BIN, CONF, IN_A_CLUSTER, NET, SECOND, InstallWorld


class Killed(BaseException):
    """The process is gone: nothing is cleaned up."""


def with_calico() -> InstallWorld:
    """A host that has run another one so far, as a pod of a cluster with secrets for etcd."""
    world = InstallWorld()
    world.be_a_pod()
    world.files.put("/calico-secrets/etcd-ca", "ca")
    world.files.put("/opt/cni/bin/portmap", "p2", 0o755)
    world.files.put(f"{BIN}/calico", "theirs", 0o755)
    world.files.put(f"{BIN}/portmap", "/usr/lib/portmap", kind=LINK)
    world.files.put(CONF, "their configuration", 0o644)
    return world


def install(world: InstallWorld) -> None:
    world.install(**IN_A_CLUSTER, CNI_WAIT_FOR_DATASTORE="false")


@pytest.fixture
def world() -> InstallWorld:
    return with_calico()


def test_everything_is_as_before(world: InstallWorld) -> None:
    before = world.on_the_host()
    install(world)
    assert world.uninstall() == (
        f"restored  {BIN}/calico",
        f"removed   {BIN}/calico-ipam",
        f"restored  {BIN}/portmap",
        f"restored  {CONF}",
        f"removed   {NET}/calico-tls",
        f"removed   {NET}/calico-kubeconfig",
    )
    assert world.on_the_host() == before


def test_what_is_kept_is_for_root_only(world: InstallWorld) -> None:
    install(world)
    for folder in (BIN, NET):
        found = world.files.look(f"{folder}/.tortie-replaced")
        assert found
        assert (found.kind, found.mode) == (FOLDER, 0o700)
    assert world.files.text(f"{BIN}/.tortie-replaced/calico") == "theirs"
    assert world.files.text(f"{NET}/.tortie-replaced/10-calico.conflist") == "their configuration"


def test_later_installations_keep_nothing_over_it(world: InstallWorld) -> None:
    before = world.on_the_host()
    install(world)
    for version in ("v2", "v3"):
        world.files.put("/usr/bin/calico", version, 0o755)
        world.files.put("/opt/cni/bin/tuning", version, 0o755)
        world.install(**IN_A_CLUSTER, CNI_CONF_NAME="20-calico.conflist", CNI_MTU=f"14{version[1]}0")
    assert world.files.text(f"{BIN}/.tortie-replaced/calico") == "theirs"
    world.uninstall()
    assert world.on_the_host() == before


def test_the_configuration_that_made_way_comes_back(world: InstallWorld) -> None:
    before = world.on_the_host()
    world.install(**IN_A_CLUSTER, CNI_CONF_NAME="20-calico.conflist")
    assert CONF not in world.files.entries
    world.uninstall()
    assert world.on_the_host() == before


def test_a_host_that_had_nothing_has_nothing_again() -> None:
    world = InstallWorld()
    world.files.put(SECOND, kind=FOLDER, mode=0o755)
    before = world.on_the_host()
    world.install()
    assert world.uninstall() == (
        f"removed   {CONF}",
        f"removed   {BIN}/calico",
        f"removed   {BIN}/calico-ipam",
        f"removed   {SECOND}/calico",
        f"removed   {SECOND}/calico-ipam",
    )
    assert world.on_the_host() == before


def test_credentials_that_were_there_stay(world: InstallWorld) -> None:
    """Others write them all the time, in the same form."""
    world.files.put(f"{NET}/calico-kubeconfig", "theirs", 0o600)
    world.files.put(f"{NET}/calico-tls/etcd-ca", "theirs", 0o600)
    install(world)
    world.uninstall()
    assert "token" in world.files.text(f"{NET}/calico-kubeconfig")
    assert world.files.text(f"{NET}/calico-tls/etcd-ca") == "ca"


def test_what_was_the_same_already_is_what_comes_back() -> None:
    world = InstallWorld()
    world.files.put(f"{BIN}/calico", "v1", 0o755)
    world.install(CNI_NETWORK_CONFIG="{}")
    world.files.put("/usr/bin/calico", "v2", 0o755)
    world.install(CNI_NETWORK_CONFIG="{}")
    world.uninstall()
    assert world.files.text(f"{BIN}/calico") == "v1"
    assert world.names(BIN) == ("calico",)


def test_a_file_whose_content_is_ours_too_has_its_mode_again() -> None:
    """A configuration that is installed as it was is 0600 from then on."""
    world = InstallWorld()
    world.files.put(CONF, "{}", 0o644)
    before = world.on_the_host()
    world.install(CNI_NETWORK_CONFIG="{}")
    found = world.files.look(CONF)
    assert found
    assert found.mode == 0o600
    assert f"restored  {CONF}" in world.uninstall()
    assert {path: entry for path, entry in world.on_the_host().items() if path in before} == before


@pytest.mark.parametrize("kept", ["gone", "another"])
def test_a_file_whose_kept_one_is_not_it_stays(kept: str) -> None:
    world = InstallWorld()
    world.files.put(CONF, "{}", 0o644)
    world.install(CNI_NETWORK_CONFIG="{}")
    if kept == "gone":
        world.files.remove(f"{NET}/.tortie-replaced/10-calico.conflist")
    else:
        world.files.put(f"{NET}/.tortie-replaced/10-calico.conflist", "another", 0o644)
    assert f"unchanged {CONF}" in world.uninstall()


class TestSomebodyElse:
    def test_nothing_is_changed_without_force(self, world: InstallWorld) -> None:
        install(world)
        world.files.put(f"{BIN}/calico", "newer", 0o755)
        world.files.put(CONF, "edited")
        before = world.on_the_host()
        with pytest.raises(CannotInstall, match=f"^somebody else has replaced {CONF}, {BIN}/calico since; nothing"):
            world.uninstall()
        assert world.on_the_host() == before

    def test_force_puts_back_what_was_there_before_us(self, world: InstallWorld) -> None:
        before = world.on_the_host()
        install(world)
        world.files.put(f"{BIN}/calico", "newer", 0o755)
        world.files.put(CONF, "edited")
        world.uninstall(force=True)
        assert world.on_the_host() == before

    def test_where_nothing_was_before_us_theirs_stays(self, world: InstallWorld) -> None:
        install(world)
        world.files.put(f"{BIN}/calico-ipam", "newer", 0o755)
        assert f"left      {BIN}/calico-ipam, which somebody else has put there" in world.uninstall(force=True)
        assert world.files.text(f"{BIN}/calico-ipam") == "newer"

    @pytest.mark.parametrize("force", [False, True])
    def test_what_was_kept_has_to_be_what_it_was(self, world: InstallWorld, *, force: bool) -> None:
        install(world)
        world.files.put(f"{BIN}/.tortie-replaced/calico", "changed", 0o755)
        before = world.on_the_host()
        with pytest.raises(CannotInstall, match=f"^{BIN}/.tortie-replaced/calico is not what was kept there any more"):
            world.uninstall(force=force)
        assert world.on_the_host() == before


def test_without_an_installation_there_is_nothing_to_take_back(world: InstallWorld) -> None:
    with pytest.raises(CannotInstall, match=rf"^there is no installation to take back: none of {NET}, {BIN}, "):
        world.uninstall()
    install(world)
    world.uninstall()
    with pytest.raises(CannotInstall, match="no installation"):
        world.uninstall()


def test_what_is_in_the_place_of_the_kept_is_named(world: InstallWorld) -> None:
    world.files.put("/elsewhere", kind=FOLDER, mode=0o755)
    world.files.put(f"{BIN}/.tortie-replaced", "/elsewhere", kind=LINK)
    before = world.on_the_host()
    with pytest.raises(CannotInstall, match=f"^{BIN}/.tortie-replaced is a symbolic link: remove it"):
        install(world)
    assert world.on_the_host() == before


def test_a_damaged_record_is_named(world: InstallWorld) -> None:
    install(world)
    world.files.put(f"{BIN}/.tortie-replaced/.record", "{}")
    world.files.put("/usr/bin/calico", "v2", 0o755)
    for action in (world.uninstall, lambda: install(world)):
        with pytest.raises(CannotInstall, match=f"^{BIN}/.tortie-replaced/.record is not what an installation has"):
            action()


def test_a_file_that_does_not_let_itself_be_removed_is_named(world: InstallWorld) -> None:
    def refuse(operation: str, path: str) -> None:
        if (operation, path) == ("remove", f"{BIN}/calico-ipam"):
            raise HostFileError(operation, path, "operation not permitted")

    install(world)
    world.files.trouble = refuse
    with pytest.raises(CannotInstall, match=f"^remove {BIN}/calico-ipam: operation not permitted$"):
        world.uninstall()


class Counted:
    """Lets some changes of the host's files pass, and ends all after them, or those that `need` room."""

    def __init__(self, passing: int, ending: Callable[[str, str], BaseException], room: bool = False) -> None:
        self.seen = 0
        self._passing = passing
        self._ending = ending
        self._room = room

    def __call__(self, operation: str, path: str) -> None:
        if path.startswith("/host/"):
            self.seen += 1
            if self.seen > self._passing and not (self._room and operation in ("remove", "rename")):
                raise self._ending(operation, path)


def killed(_operation: str, _path: str) -> BaseException:
    return Killed()


def full(operation: str, path: str) -> BaseException:
    return HostFileError(operation, path, "no space left on device")


def changes_of(action: Callable[[InstallWorld], object], world: InstallWorld) -> int:
    world.files.trouble = counted = Counted(1 << 30, killed)
    action(world)
    return counted.seen


def contents(world: InstallWorld) -> dict[str, Entry]:
    """But for tokens, of which each is another one."""
    return {path: entry for path, entry in world.on_the_host().items() if not path.endswith("/calico-kubeconfig")}


def taken_back(world: InstallWorld) -> None:
    """If there is something to take back."""
    try:
        world.uninstall()
    except CannotInstall as refused:
        if "no installation" not in str(refused):
            raise


INSTALLED = with_calico()
CHANGES = changes_of(install, INSTALLED)


@pytest.mark.parametrize("moment", range(CHANGES))
def test_killed_at_any_change_and_installed_again_all_is_there_and_can_be_taken_back(moment: int) -> None:
    world = with_calico()
    before = world.on_the_host()
    world.files.trouble = Counted(moment, killed)
    with pytest.raises(Killed):
        install(world)
    if world.files.text(CONF) != "their configuration":
        assert world.files.text(f"{BIN}/calico") == world.files.text(f"{BIN}/calico-ipam") == "v1"
        assert f"{NET}/calico-kubeconfig" in world.files.entries
    world.files.trouble = Counted(1 << 30, killed)
    install(world)
    assert contents(world) == contents(INSTALLED)
    world.uninstall()
    assert world.on_the_host() == before


@pytest.mark.parametrize("moment", range(CHANGES))
def test_killed_at_any_change_it_can_be_taken_back_at_once(moment: int) -> None:
    world = with_calico()
    before = world.on_the_host()
    world.files.trouble = Counted(moment, killed)
    with pytest.raises(Killed):
        install(world)
    world.files.trouble = Counted(1 << 30, killed)
    taken_back(world)
    assert {path: entry for path, entry in world.on_the_host().items() if "/.tortie-" not in path} == before


class Signalled(BaseException):
    """Raised at one change; what is undone after that goes through."""


@pytest.mark.parametrize("moment", range(CHANGES))
def test_ended_by_a_signal_at_any_change_nothing_stays_that_cannot_be_taken_back(moment: int) -> None:
    world = with_calico()
    before = world.on_the_host()

    def signalled(_operation: str, _path: str) -> BaseException:
        world.files.trouble = Counted(1 << 30, killed)
        return Signalled()

    world.files.trouble = Counted(moment, signalled)
    with pytest.raises(Signalled):
        install(world)
    taken_back(world)
    assert world.on_the_host() == before


@pytest.mark.parametrize("moment", range(CHANGES))
def test_c15_a_full_disk_at_any_change_leaves_all_as_it_was(moment: int) -> None:
    """Once everything is made ready no room is needed any more."""
    world = with_calico()
    before = world.on_the_host()
    world.files.trouble = Counted(moment, full, room=True)
    try:
        install(world)
    except CannotInstall as refused:
        assert "no space left on device" in str(refused)  # noqa: PT017 - or it needed no more room than that
        assert world.on_the_host() == before
    else:
        assert contents(world) == contents(INSTALLED)


def test_taking_back_can_be_interrupted_anywhere() -> None:
    first = with_calico()
    before = first.on_the_host()
    install(first)
    for moment in range(changes_of(lambda world: world.uninstall(), first)):
        world = with_calico()
        install(world)
        world.files.trouble = Counted(moment, killed)
        with pytest.raises(Killed):
            world.uninstall()
        world.files.trouble = Counted(1 << 30, killed)
        taken_back(world)
        assert world.on_the_host() == before, moment
