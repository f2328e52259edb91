"""The installation, over files in memory: what ends up where, in which order, and what is refused."""

from __future__ import annotations

import pytest

from adapters.memory.host_files import MemoryHostFiles
from domain.install.errors import CannotInstall
from domain.install.kubeconfig import KubeconfigCluster
from ports.errors import Unauthorized
from ports.host_files import FILE, FOLDER, LINK, HostFileError, Look
from usecases.install.service_account import Pod
from worlds.install_world import ACCOUNT, BIN, CONF, IN_A_CLUSTER, NET, SECOND, InstallWorld


@pytest.fixture
def world() -> InstallWorld:
    return InstallWorld()


def mode(world: InstallWorld, path: str) -> int:
    found = world.files.look(path)
    assert found
    return found.mode


def refuse(world: InstallWorld, verb: str, start: str, reason: str) -> None:
    def trouble(operation: str, path: str) -> None:
        if operation == verb and path.startswith(start):
            raise HostFileError(operation, path, reason)

    world.files.trouble = trouble


def test_inst_001_executables_under_both_names_and_a_configuration(world: InstallWorld) -> None:
    world.install()
    assert world.names(BIN) == ("calico", "calico-ipam")
    assert world.names(NET) == ("10-calico.conflist",)
    assert world.files.look(f"{BIN}/calico") == Look(FILE, 2, 0o755)
    assert world.files.text(f"{BIN}/calico-ipam") == "v1"
    assert mode(world, CONF) == 0o600


def test_everything_is_told_in_the_originals_words(world: InstallWorld) -> None:
    world.be_a_pod()
    world.files.put("/calico-secrets/etcd-cert", "c")
    world.install(**IN_A_CLUSTER, SLEEP="false", CNI_CONF_NAME="20-calico.conflist")
    not_removed = f"Failed to remove 10-calico.conflist error=remove {CONF}: no such file or directory"
    assert world.log.shown() == [
        "Running as a Kubernetes pod",
        f"{SECOND} is not writeable, skipping reason=no such file or directory",
        "Installing any TLS assets",
        "Missing etcd-ca",
        "Missing etcd-key",
        "CNI config file permission is set to 0600",
        f"Installed {BIN}/calico",
        f"Installed {BIN}/calico-ipam",
        f"Wrote Calico CNI binaries to {BIN}",
        "CNI plugin version: v1.2.3",
        f"Created {NET}/20-calico.conflist",
        f"Removing {CONF}",
        not_removed,
        "Done configuring CNI.  Sleep= false",
    ]
    assert world.log.shown("warning") == ["Missing etcd-ca", "Missing etcd-key", not_removed]


def test_the_configuration_is_what_comes_last(world: InstallWorld) -> None:
    moved = []

    def note(operation: str, path: str) -> None:
        if operation == "rename" and ".tortie-" not in path:
            moved.append(path)

    world.be_a_pod()
    world.files.put("/calico-secrets/etcd-key", "k")
    world.files.put("/opt/cni/bin/portmap", "p", 0o755)
    world.files.trouble = note
    world.install(**IN_A_CLUSTER)
    names = ("calico", "calico-ipam", "portmap")
    assert moved == [
        f"{NET}/calico-tls",
        *[f"{BIN}/{name}" for name in names],
        f"{NET}/calico-kubeconfig",
        CONF,
    ]


class TestExecutables:
    def test_what_is_staged_goes_along_but_for_what_is_skipped(self, world: InstallWorld) -> None:
        for name in ("portmap", "tuning", "install", "calico"):
            world.files.put(f"/opt/cni/bin/{name}", name, 0o755)
        world.install(SKIP_CNI_BINARIES="tuning,calico")
        assert world.names(BIN) == ("calico", "calico-ipam", "portmap")
        assert world.files.text(f"{BIN}/calico") == "v1"

    def test_nothing_is_staged_where_no_folder_is_named(self, world: InstallWorld) -> None:
        world.files.put("/opt/cni/bin/portmap", "p", 0o755)
        world.places = world.places.replace(staged="")
        world.install()
        assert world.names(BIN) == ("calico", "calico-ipam")

    def test_without_one_in_the_image_the_staged_one_is_taken(self, world: InstallWorld) -> None:
        del world.files.entries["/usr/bin/calico"]
        world.files.put("/opt/cni/bin/calico", "staged", 0o755)
        world.install()
        assert world.files.text(f"{BIN}/calico-ipam") == "staged"

    def test_without_any_the_places_are_named(self, world: InstallWorld) -> None:
        del world.files.entries["/usr/bin/calico"]
        with pytest.raises(CannotInstall, match=r"none of /usr/bin/calico, /opt/cni/bin/calico is a file"):
            world.install()

    def test_one_that_is_at_its_place_already_stays_there(self, world: InstallWorld) -> None:
        """As on a host whose own folder is the source."""
        world.files.put(f"{BIN}/calico", "v1", 0o755)
        world.places = world.places.replace(programs=(f"{BIN}/calico",))
        world.install()
        assert world.files.text(f"{BIN}/calico-ipam") == "v1"

    def test_inst_004_every_folder_that_takes_them_gets_them(self, world: InstallWorld) -> None:
        world.files.put(SECOND, kind=FOLDER, mode=0o755)
        world.install()
        assert world.names(SECOND) == world.names(BIN) == ("calico", "calico-ipam")
        world.files.read_only.add(BIN)
        world.files.put("/usr/bin/calico", "v2", 0o755)
        world.install()
        assert (world.files.text(f"{SECOND}/calico"), world.files.text(f"{BIN}/calico")) == ("v2", "v1")
        assert f"{BIN} is not writeable, skipping reason=read-only file system" in world.log.shown()

    def test_inst_003_005_no_folder_that_takes_them_is_an_error(self, world: InstallWorld) -> None:
        world.files.read_only.add(BIN)
        before = world.on_the_host()
        with pytest.raises(CannotInstall) as refused:
            world.install()
        assert str(refused.value) == (
            f"found no writeable directory, exiting: {BIN}: read-only file system; {SECOND}: no such file or directory"
        )
        assert world.on_the_host() == before

    def test_a_folder_that_is_missing_is_the_hosts_to_make(self, world: InstallWorld) -> None:
        """In a container a new one would lie beside the host's, and be of no use."""
        world.files.remove_tree(BIN)
        with pytest.raises(CannotInstall) as refused:
            world.install()
        assert str(refused.value).endswith(
            f"{SECOND}: no such file or directory; make {BIN}, or mount the host's folder of CNI programs there"
        )
        assert world.files.look(BIN) is None

    def test_inst_006_what_is_there_may_do(self, world: InstallWorld) -> None:
        world.files.read_only.add(BIN)
        for name in ("calico", "calico-ipam"):
            world.files.put(f"{BIN}/{name}", "stub", 0o755)
        world.install(UPDATE_CNI_BINARIES="false")
        assert world.log.shown()[2] == (
            f"No writeable CNI bin directory found but [calico calico-ipam] already exist at {BIN}"
            " and UPDATE_CNI_BINARIES=false; continuing"
        )
        assert world.names(NET) == ("10-calico.conflist",)
        with pytest.raises(CannotInstall):
            world.install()

    def test_inst_007_one_of_the_two_will_not(self, world: InstallWorld) -> None:
        world.files.read_only.add(BIN)
        world.files.put(f"{BIN}/calico", "stub", 0o755)
        with pytest.raises(CannotInstall, match="found no writeable directory"):
            world.install(UPDATE_CNI_BINARIES="false")

    def test_what_is_there_is_not_updated_if_nobody_wants_that(self, world: InstallWorld) -> None:
        world.files.put(f"{BIN}/calico", "old", 0o755)
        world.install(UPDATE_CNI_BINARIES="false")
        assert (world.files.text(f"{BIN}/calico"), world.files.text(f"{BIN}/calico-ipam")) == ("old", "v1")
        assert f"Skipping installation of {BIN}/calico" in world.log.shown()
        assert f"Installed {BIN}/calico" not in world.log.shown()

    def test_what_is_up_to_date_stays_untouched(self, world: InstallWorld) -> None:
        world.install()
        before = {path: id(entry) for path, entry in world.on_the_host().items() if path.startswith(BIN)}
        world.install()
        assert {path: id(entry) for path, entry in world.on_the_host().items() if path.startswith(BIN)} == before
        assert world.log.shown().count(f"File is already up to date, skipping file={BIN}/calico") == 1

    def test_another_mode_is_mended(self, world: InstallWorld) -> None:
        world.files.put(f"{BIN}/calico", "v1", 0o644)
        world.install()
        assert world.files.look(f"{BIN}/calico") == Look(FILE, 2, 0o755)

    def test_i01_a_link_is_replaced_by_the_file(self, world: InstallWorld) -> None:
        world.files.put("/usr/lib/calico", "v1", 0o755)
        world.files.put(f"{BIN}/calico", "/usr/lib/calico", kind=LINK)
        world.install()
        assert world.files.look(f"{BIN}/calico") == Look(FILE, 2, 0o755)
        assert world.files.text("/usr/lib/calico") == "v1"

    def test_a_folder_among_what_is_staged_is_refused(self, world: InstallWorld) -> None:
        world.files.put("/opt/cni/bin/sub", kind=FOLDER, mode=0o755)
        before = world.on_the_host()
        with pytest.raises(CannotInstall, match=rf"^Failed to install {BIN}/sub: failed to copy file: .*non-regular"):
            world.install()
        assert world.on_the_host() == before

    def test_a_folder_in_the_way_is_named(self, world: InstallWorld) -> None:
        world.files.put(f"{BIN}/calico-ipam", kind=FOLDER, mode=0o755)
        before = world.on_the_host()
        with pytest.raises(CannotInstall, match=f"^{BIN}/calico-ipam is a folder"):
            world.install()
        assert world.on_the_host() == before

    def test_i01_one_that_does_not_run_there_is_not_installed(self, world: InstallWorld) -> None:
        world.program.unfit = "exec /x: permission denied"
        before = world.on_the_host()
        with pytest.raises(CannotInstall) as refused:
            world.install()
        told = (
            f"Failed to verify installed binary {BIN}/calico, a copy of /usr/bin/calico: exec /x: permission denied; "
        )
        assert str(refused.value).startswith(told)
        assert world.on_the_host() == before

    def test_both_names_are_tried_where_they_are_made_ready(self, world: InstallWorld) -> None:
        world.install(CNI_WAIT_FOR_DATASTORE="false")
        (first, flag), (second, _) = world.program.tried
        assert flag == "-v"
        assert first.startswith(f"{BIN}/.tortie-")
        assert (first.rpartition("/")[2], second.rpartition("/")[2]) == ("calico", "calico-ipam")

    @pytest.mark.parametrize("name", [".record", ".tortie-replaced"])
    def test_a_plugin_has_none_of_the_installers_own_names(self, world: InstallWorld, name: str) -> None:
        world.files.put(f"/opt/cni/bin/{name}", "x", 0o755)
        before = world.on_the_host()
        with pytest.raises(CannotInstall, match=f"^/opt/cni/bin/{name} has a name of the installer's own"):
            world.install()
        assert world.on_the_host() == before

    def test_a_copy_that_is_not_its_source_is_refused(self, world: InstallWorld) -> None:
        class Racing(MemoryHostFiles):
            def copy(self, source: str, path: str, like: str = "") -> None:
                super().copy(source, path, like)
                self.put(source, "what has come while it was copied", 0o755)

        world.files.__class__ = Racing
        with pytest.raises(CannotInstall, match=f"^Failed to verify installed binary {BIN}/calico: it is not what"):
            world.install()


def test_a_file_that_cannot_be_replaced_is_named_with_what_has_been_done_before(world: InstallWorld) -> None:
    before = world.on_the_host()
    refuse(world, "rename", CONF, "device or resource busy")
    with pytest.raises(CannotInstall) as refused:
        world.install()
    assert str(refused.value).startswith(f"rename {CONF}: device or resource busy; see whether it is immutable")
    assert "`tortie uninstall` takes it back" in str(refused.value)
    world.uninstall()
    assert world.on_the_host() == before


class TestOneFolderUnderTwoNames:
    def test_it_is_installed_to_once(self, world: InstallWorld) -> None:
        world.files.put(SECOND, BIN, kind=LINK)
        world.install()
        assert world.log.shown().count(f"Wrote Calico CNI binaries to {BIN}") == 1
        assert f"Wrote Calico CNI binaries to {SECOND}" not in world.log.shown()
        assert world.names(BIN) == ("calico", "calico-ipam")

    def test_it_is_not_for_executables_and_configurations(self, world: InstallWorld) -> None:
        world.files.put(SECOND, NET, kind=LINK)
        before = world.on_the_host()
        world.places = world.places.replace(bin_dirs=(SECOND,))
        with pytest.raises(CannotInstall, match=f"{NET} and {SECOND} are one folder"):
            world.install()
        assert world.on_the_host() == before

    def test_it_is_taken_back_once(self, world: InstallWorld) -> None:
        world.install()
        world.places = world.places.replace(bin_dirs=(BIN, NET))
        assert world.uninstall() == (f"removed   {CONF}", f"removed   {BIN}/calico", f"removed   {BIN}/calico-ipam")


class TestConfiguration:
    def test_inst_008_another_name_and_the_old_one_goes(self, world: InstallWorld) -> None:
        world.files.put(CONF, "{}")
        world.install(CNI_CONF_NAME="20-calico.conflist")
        assert world.names(NET) == ("20-calico.conflist",)

    def test_no_other_file_is_touched(self, world: InstallWorld) -> None:
        world.files.put(f"{NET}/05-cilium.conf", "theirs")
        world.install(CNI_OLD_CONF_NAME="10-old.conf")
        assert world.names(NET) == ("05-cilium.conf", "10-calico.conflist")

    def test_an_old_one_that_stays_is_only_told(self, world: InstallWorld) -> None:
        world.files.put(CONF, "{}")
        refuse(world, "remove", CONF, "operation not permitted")
        world.install(CNI_CONF_NAME="20-calico.conflist")
        assert world.names(NET) == ("10-calico.conflist", "20-calico.conflist")
        assert world.log.shown("warning")[-1].startswith("Failed to remove 10-calico.conflist error=remove")

    def test_inst_009_an_empty_object_is_one(self, world: InstallWorld) -> None:
        world.install(CNI_NETWORK_CONFIG="{}", TEST_FILE_PERMISSION="0644")
        assert (world.files.text(CONF), mode(world, CONF)) == ("{}", 0o644)
        assert "CNI config file permission is set to 0644" in world.log.shown()

    def test_inst_010_one_that_does_not_parse_changes_nothing(self, world: InstallWorld) -> None:
        world.install()
        world.files.put("/usr/bin/calico", "v2", 0o755)
        before = world.on_the_host()
        with pytest.raises(CannotInstall, match=r"^CNI config is not valid JSON: .*made from CNI_NETWORK_CONFIG$"):
            world.install(CNI_NETWORK_CONFIG='{"missing quote}')
        assert world.on_the_host() == before

    def test_a_mistake_in_the_template_is_found_before_anybody_is_asked(self, world: InstallWorld) -> None:
        world.be_a_pod()
        with pytest.raises(CannotInstall, match="not valid JSON"):
            world.install(**IN_A_CLUSTER, CNI_NETWORK_CONFIG="[]")
        assert (world.issuer.asked, world.program.tried) == ([], [])

    def test_inst_011_the_file_wins(self, world: InstallWorld) -> None:
        text = '{\n    "name": "four blanks"\n}\n'
        world.files.put(f"{NET}/alternate-config", text)
        world.install(CNI_NETWORK_CONFIG="garbage", CNI_NETWORK_CONFIG_FILE=f"{NET}/alternate-config")
        assert world.files.text(CONF) == text
        assert world.log.shown()[:2] == [
            "Using CNI config template from CNI_NETWORK_CONFIG environment variable.",
            "Using CNI config template from CNI_NETWORK_CONFIG_FILE",
        ]

    def test_a_file_that_is_missing_is_named_with_its_variable(self, world: InstallWorld) -> None:
        with pytest.raises(CannotInstall, match=r"CNI_NETWORK_CONFIG_FILE names: open /none: no such file or dir"):
            world.install(CNI_NETWORK_CONFIG_FILE="/none")

    def test_an_unknown_placeholder_stays_with_a_warning(self, world: InstallWorld) -> None:
        world.install(CNI_NETWORK_CONFIG='{"a": "__NOBODY__"}')
        assert world.files.text(CONF) == '{"a": "__NOBODY__"}'
        assert world.log.shown("warning") == [
            "Unknown placeholders stay in the CNI config placeholders=__NOBODY__ template=CNI_NETWORK_CONFIG"
        ]

    def test_the_folder_has_to_be_there(self, world: InstallWorld) -> None:
        del world.files.entries[NET]
        with pytest.raises(CannotInstall, match=f"^{NET} is no folder"):
            world.install()


class TestSecrets:
    def test_inst_013_hidden_files_are_none(self, world: InstallWorld) -> None:
        world.files.put("/calico-secrets/.hidden", "")
        world.install()
        assert world.names(NET) == ("10-calico.conflist",)
        assert "No TLS assets found in /calico-secrets, skipping" in world.log.shown()

    def test_inst_014_a_certificate_and_its_path(self, world: InstallWorld) -> None:
        world.files.put("/calico-secrets/etcd-cert", "pem", 0o640)
        world.install(CNI_NETWORK_CONFIG='{"etcd_cert": "__ETCD_CERT_FILE__"}')
        assert world.files.text(CONF) == '{"etcd_cert": "/etc/cni/net.d/calico-tls/etcd-cert"}'
        assert world.files.look(f"{NET}/calico-tls/etcd-cert") == Look(FILE, 3, 0o640)

    def test_no_stale_one_survives(self, world: InstallWorld) -> None:
        world.files.put(f"{NET}/calico-tls/etcd-key", "stale")
        world.files.put(f"{NET}/calico-tls/sub/x", "stale")
        world.files.put("/calico-secrets/etcd-ca", "ca")
        world.install(CNI_NETWORK_CONFIG='{"key": "__ETCD_KEY_FILE__"}')
        assert world.names(f"{NET}/calico-tls") == ("etcd-ca",)
        assert world.files.text(CONF) == '{"key": ""}'
        del world.files.entries["/calico-secrets/etcd-ca"]
        world.install()
        assert world.names(NET) == ("10-calico.conflist",)

    def test_one_that_cannot_be_removed_is_only_told(self, world: InstallWorld) -> None:
        world.files.put(f"{NET}/calico-tls/etcd-key", "stale")
        refuse(world, "remove", f"{NET}/calico-tls", "operation not permitted")
        world.install()
        assert world.log.shown("warning")[-1].startswith("Error removing old TLS directory error=remove")

    def test_what_is_in_the_place_of_their_folder_makes_way(self, world: InstallWorld) -> None:
        world.files.put("/elsewhere/etcd-ca", "theirs")
        world.files.put(f"{NET}/calico-tls", "/elsewhere", kind=LINK)
        world.files.put("/calico-secrets/etcd-ca", "ours")
        world.install()
        assert world.files.text(f"{NET}/calico-tls/etcd-ca") == "ours"
        assert world.files.text("/elsewhere/etcd-ca") == "theirs"

    def test_one_that_is_there_and_cannot_be_copied_is_an_error(self, world: InstallWorld) -> None:
        class Full(MemoryHostFiles):
            def copy(self, source: str, path: str, like: str = "") -> None:
                if source.endswith("etcd-ca"):
                    raise HostFileError("write", path, "no space left on device")
                super().copy(source, path, like)

        world.files.put("/calico-secrets/etcd-ca", "ca")
        before = world.on_the_host()
        world.files.__class__ = Full
        with pytest.raises(CannotInstall, match=r"^Failed to install etcd-ca of TLS_ASSETS_DIR=/calico-secrets: "):
            world.install()
        assert world.on_the_host() == before


class TestPod:
    def test_it_has_a_kubeconfig_with_a_new_token(self, world: InstallWorld) -> None:
        world.be_a_pod()
        world.install(**IN_A_CLUSTER)
        text = world.files.text(f"{NET}/calico-kubeconfig")
        assert "    token: calico-cni-plugin.token.1\n" in text
        assert "    server: https://10.96.0.1:443\n" in text
        assert "certificate-authority-data: LS0t" in text
        assert world.issuer.asked == [("kube-system", "calico-cni-plugin", 86400)]
        assert mode(world, f"{NET}/calico-kubeconfig") == 0o600

    def test_inst_023_025_protocol_and_verification_are_the_environments(self, world: InstallWorld) -> None:
        world.be_a_pod()
        world.install(**IN_A_CLUSTER, KUBERNETES_SERVICE_PROTOCOL="http", SKIP_TLS_VERIFY="true")
        text = world.files.text(f"{NET}/calico-kubeconfig")
        assert "server: http://10.96.0.1:443" in text
        assert "insecure-skip-tls-verify: true" in text
        assert "certificate-authority-data" not in text

    @pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
    def test_without_the_servers_place_it_is_refused(self, world: InstallWorld, missing: str) -> None:
        world.be_a_pod()
        with pytest.raises(CannotInstall, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"):
            world.install(**{**IN_A_CLUSTER, missing: ""})

    def test_a_folder_in_the_place_of_the_token_is_no_pod(self, world: InstallWorld) -> None:
        world.files.put(f"{ACCOUNT}/token", kind=FOLDER, mode=0o755)
        world.install()
        assert world.names(NET) == ("10-calico.conflist",)

    @pytest.mark.parametrize("text", ["garbage", None])
    def test_an_authority_that_cannot_be_used_is_told_and_left_out(self, world: InstallWorld, text: str | None) -> None:
        world.be_a_pod()
        del world.files.entries[f"{ACCOUNT}/ca.crt"]
        if text:
            world.files.put(f"{ACCOUNT}/ca.crt", text)
        world.install(**IN_A_CLUSTER)
        assert "certificate-authority-data: \n" in world.files.text(f"{NET}/calico-kubeconfig")
        (told,) = world.log.shown("error")
        assert told.startswith(f"Expected to load root CA config from {ACCOUNT}/ca.crt, but got err: ")

    def test_the_pods_own_token_goes_into_the_template_as_it_is(self, world: InstallWorld) -> None:
        world.be_a_pod()
        world.install(**IN_A_CLUSTER, CNI_NETWORK_CONFIG='{"token": "__SERVICEACCOUNT_TOKEN__"}')
        assert world.files.text(CONF) == '{"token": "my-secret-key"}'

    def test_without_its_namespace_it_is_refused(self, world: InstallWorld) -> None:
        world.be_a_pod()
        del world.files.entries[f"{ACCOUNT}/namespace"]
        with pytest.raises(CannotInstall, match=r"^Failed to read service account namespace file: open "):
            world.install(**IN_A_CLUSTER)

    def test_a_missing_account_is_named_with_its_variable(self, world: InstallWorld) -> None:
        world.be_a_pod()
        world.install(**IN_A_CLUSTER)
        before = world.on_the_host()
        with pytest.raises(CannotInstall) as refused:
            world.install(**IN_A_CLUSTER, CALICO_CNI_SERVICE_ACCOUNT="nobody")
        assert str(refused.value).startswith(
            "Unable to create token for CNI kubeconfig: "
            "the service account kube-system/nobody (CALICO_CNI_SERVICE_ACCOUNT): resource does not exist"
        )
        world.issuer.fault = Unauthorized("no")
        with pytest.raises(CannotInstall, match=r"^Unable to create token for CNI kubeconfig: .*unauthorized: no$"):
            world.install(**IN_A_CLUSTER)
        assert world.on_the_host() == before

    def test_a_token_is_in_no_representation(self) -> None:
        assert repr(Pod("planted", KubeconfigCluster("https://a:1"))) == "Pod(cluster=https://a:1)"


class TestDatastore:
    def test_the_plugin_is_asked_with_what_will_be_there(self, world: InstallWorld) -> None:
        world.be_a_pod()
        world.install(**IN_A_CLUSTER)
        path, netconf = world.program.tried[-1]
        assert path.startswith(f"{BIN}/.tortie-")
        assert path.endswith("/calico")
        assert f'"kubeconfig":"{NET}/.tortie-' in netconf
        assert world.clock.slept == []

    def test_it_is_waited_for_every_second_until_it_answers(self, world: InstallWorld) -> None:
        world.program.answers = ["away", "away", "not ready", ""]
        world.install()
        assert world.clock.slept == [1.0, 1.0, 1.0]
        told = [line for line in world.log.shown() if line.startswith("Waiting")]
        assert told == ["Waiting for the datastore error=away", "Waiting for the datastore error=not ready"]
        assert world.log.shown("warning") == []

    def test_in_the_end_the_configuration_is_installed_all_the_same(self, world: InstallWorld) -> None:
        world.program.answers = ["away"]
        world.install(CNI_DATASTORE_PROBE_TIMEOUT="3")
        assert world.clock.slept == [1.0, 1.0, 1.0]
        assert world.log.shown("warning") == [
            "The datastore is not to be had; installing the CNI config all the same error=away"
        ]
        assert world.names(NET) == ("10-calico.conflist",)

    def test_unless_it_is_wanted_by_all_means(self, world: InstallWorld) -> None:
        world.program.answers = ["away"]
        before = world.on_the_host()
        with pytest.raises(CannotInstall) as refused:
            world.install(CNI_DATASTORE_PROBE_TIMEOUT="2s", CNI_WAIT_FOR_DATASTORE="true")
        how = "after 2 s (CNI_DATASTORE_PROBE_TIMEOUT), and CNI_WAIT_FOR_DATASTORE=true"
        assert str(refused.value) == f"The datastore is not to be had {how}: away"
        assert world.on_the_host() == before

    def test_it_is_not_asked_if_nobody_wants_that(self, world: InstallWorld) -> None:
        world.install(CNI_WAIT_FOR_DATASTORE="false")
        assert "Not waiting for the datastore: CNI_WAIT_FOR_DATASTORE=false" in world.log.shown()
        assert {flag for _, flag in world.program.tried} == {"-v"}

    def test_nor_without_a_plugin_of_ours(self, world: InstallWorld) -> None:
        world.install(CNI_NETWORK_CONFIG='{"type": "bridge"}')
        assert "Not waiting for the datastore: the CNI config has no plugin of type calico" in world.log.shown()

    def test_where_nothing_is_installed_the_one_that_is_there_is_asked(self, world: InstallWorld) -> None:
        world.files.read_only.add(BIN)
        for name in ("calico", "calico-ipam"):
            world.files.put(f"{BIN}/{name}", "stub", 0o755)
        world.install(UPDATE_CNI_BINARIES="false")
        assert world.program.tried[-1][0] == f"{BIN}/calico"
