"""The installer's container: what it puts on the host, what it refuses, and what runs afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.install.rig import CONF, FINAL, Image, put, tree
from services.mounted_secret import MountedSecret

BOTH = {"calico", "calico-ipam"}


def installed_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != ".tortie-replaced"}


def test_inst_001_002_a_host_that_had_nothing(image: Image) -> None:
    log = image.installed()
    assert installed_in(image.bin) == BOTH
    for name in BOTH:
        assert (image.bin / name).read_bytes() == image.program
        assert (image.bin / name).stat().st_mode & 0o7777 == 0o755
    assert image.conf.read_text() == FINAL
    assert image.conf.stat().st_mode & 0o7777 == 0o600
    assert installed_in(image.net) == {CONF}
    assert " cni-installer/" in log
    for line in (
        "Installed /host/opt/cni/bin/calico\n",
        "Wrote Calico CNI binaries to /host/opt/cni/bin\n",
        "CNI plugin version: v",
        "CNI config file permission is set to 0600\n",
        f"Created /host/etc/cni/net.d/{CONF}\n",
        "Done configuring CNI.  Sleep= false\n",
    ):
        assert line in log


def test_what_is_installed_runs_with_an_empty_environment(image: Image) -> None:
    image.installed()
    for name in BOTH:
        answer = image.run(f"/host/opt/cni/bin/{name}", "-v")
        assert (answer.exit, answer.stderr) == (0, "")
        assert answer.stdout.startswith("v")


def test_one_folder_mounted_twice_is_installed_to_once(image: Image) -> None:
    image.second.mkdir()
    image.mounts = f"mount --bind {image.bin} {image.second}"
    log = image.installed()
    assert log.count("Wrote Calico CNI binaries to ") == 1
    assert installed_in(image.bin) == BOTH
    (image.root / "usr/bin/tortie").symlink_to("calico")
    assert image.run("/usr/bin/tortie", "uninstall").exit == 0
    assert list(image.bin.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_modes_do_not_depend_on_the_umask(image: Image, umask: int) -> None:
    put(image.root / "calico-secrets/etcd-key", "k", 0o640)
    image.mounts = f"umask {umask:04o}"
    image.installed(TEST_FILE_PERMISSION="0644")
    modes = {path: mode for path, (_, mode, _) in tree(image.root / "host").items()}
    assert modes["opt/cni/bin/calico"] == 0o755
    assert modes["opt/cni/bin/.tortie-replaced"] == 0o700
    assert modes["opt/cni/bin/.tortie-replaced/.record"] == 0o600
    assert modes[f"etc/cni/net.d/{CONF}"] == 0o644
    assert modes["etc/cni/net.d/calico-tls"] == 0o755
    assert modes["etc/cni/net.d/calico-tls/etcd-key"] == 0o640


class TestFolders:
    def test_inst_003_a_read_only_one_alone(self, image: Image) -> None:
        image.read_only = [image.bin]
        image.refused("found no writeable directory, exiting: /host/opt/cni/bin: read-only file system; ")

    def test_inst_004_another_one_beside_it(self, image: Image) -> None:
        image.second.mkdir()
        image.read_only = [image.bin]
        assert "/host/opt/cni/bin is not writeable, skipping" in image.installed()
        assert (installed_in(image.second), installed_in(image.bin)) == (BOTH, set())

    def test_inst_005_two_of_them(self, image: Image) -> None:
        image.second.mkdir()
        image.read_only = [image.bin, image.second]
        image.refused("found no writeable directory, exiting")

    def test_inst_006_007_what_is_there_may_do_if_it_is_complete(self, image: Image) -> None:
        image.second.mkdir()
        image.read_only = [image.bin, image.second]
        put(image.bin / "calico", "stub", 0o755)
        image.refused("found no writeable directory, exiting", UPDATE_CNI_BINARIES="false")
        put(image.bin / "calico-ipam", "stub", 0o755)
        assert "UPDATE_CNI_BINARIES=false; continuing" in image.installed(UPDATE_CNI_BINARIES="false")
        assert image.conf.read_text() == FINAL

    def test_all_that_can_be_written_to_get_them(self, image: Image) -> None:
        image.second.mkdir()
        image.installed()
        assert installed_in(image.bin) == installed_in(image.second) == BOTH

    def test_i01_one_from_which_nothing_can_be_executed(self, image: Image) -> None:
        image.mounts = f"mount -t tmpfs -o noexec,size=64M tmpfs {image.bin}"
        image.refused("Failed to verify installed binary /host/opt/cni/bin/calico", "noexec")

    def test_c15_one_that_is_full(self, image: Image) -> None:
        image.mounts = f"mount -t tmpfs -o size=1M tmpfs {image.bin}"
        image.refused("Failed to install /host/opt/cni/bin/calico: failed to copy file: ", "no space left on device")

    def test_c15_one_for_configurations_that_is_full(self, image: Image) -> None:
        """16 kB: the configuration fits, and what was there before, but not the certificate."""
        put(image.root / "calico-secrets/etcd-ca", "x" * 20_000)
        image.mounts = f"mount -t tmpfs -o size=16k tmpfs {image.net}"
        image.refused("Failed to install etcd-ca of TLS_ASSETS_DIR=/calico-secrets", "no space left on device")

    def test_none_for_configurations(self, image: Image) -> None:
        image.net.rmdir()
        image.refused("/host/etc/cni/net.d is no folder")


class TestExecutables:
    def test_staged_ones_come_along_but_for_what_is_skipped(self, image: Image) -> None:
        """`calico` itself cannot be skipped."""
        for name in ("portmap", "tuning", "bandwidth"):
            put(image.root / f"opt/cni/bin/{name}", name, 0o750)
        put(image.root / "opt/cni/bin/install", "no plugin", 0o755)
        image.installed(SKIP_CNI_BINARIES="tuning,calico")
        assert installed_in(image.bin) == BOTH | {"portmap", "bandwidth"}
        assert (image.bin / "portmap").stat().st_mode & 0o7777 == 0o750

    def test_a_folder_among_them_is_refused(self, image: Image) -> None:
        (image.root / "opt/cni/bin/sub").mkdir(parents=True)
        image.refused('failed to copy file: copy /opt/cni/bin/sub: CopyFile: non-regular source file sub ("drwx')

    def test_what_is_up_to_date_keeps_its_inode(self, image: Image) -> None:
        image.installed()
        before = {name: os.stat(image.bin / name) for name in BOTH}
        assert "File is already up to date, skipping" in image.installed()
        for name, found in before.items():
            now = os.stat(image.bin / name)
            assert (now.st_ino, now.st_mtime_ns) == (found.st_ino, found.st_mtime_ns)
        (image.bin / "calico").chmod(0o700)
        image.installed()
        assert (image.bin / "calico").stat().st_mode & 0o7777 == 0o755

    def test_inst_012_i01_those_that_run_are_replaced(self, image: Image) -> None:
        put(image.root / "opt/cni/bin/portmap", Path("/bin/sleep").read_bytes(), 0o755)
        put(image.bin / "portmap", Path("/bin/sleep").read_bytes() + b"older", 0o755)
        with subprocess.Popen([image.bin / "portmap", "60"]) as running:
            try:
                image.installed()
                subprocess.run([image.bin / "portmap", "0"], check=True)
                assert running.poll() is None
            finally:
                running.kill()
        assert (image.bin / "portmap").read_bytes() == Path("/bin/sleep").read_bytes()

    @pytest.mark.parametrize("target", ["/usr/bin/calico", "/nowhere", "../../../usr/bin/calico"])
    def test_i01_a_link_in_the_way_is_replaced(self, image: Image, target: str) -> None:
        """In the container it may lead to the very source; on the host it leads elsewhere."""
        (image.bin / "calico").symlink_to(target)
        image.installed()
        assert not (image.bin / "calico").is_symlink()
        assert (image.bin / "calico").read_bytes() == image.program
        assert (image.root / "usr/bin/calico").read_bytes() == image.program

    def test_a_folder_in_the_way_is_named(self, image: Image) -> None:
        (image.bin / "calico-ipam").mkdir()
        image.refused("/host/opt/cni/bin/calico-ipam is a folder: remove it")

    def test_what_a_killed_installer_has_left_goes(self, image: Image) -> None:
        put(image.bin / ".tortie-0123456789abcdef.tmp/calico", "half")
        put(image.bin / "calico.tmp", "of the original")
        image.installed()
        assert installed_in(image.bin) == BOTH | {"calico.tmp"}


class TestConfiguration:
    def test_inst_008_another_name(self, image: Image) -> None:
        put(image.conf, "{}")
        put(image.net / "99-other.conf", "{}")
        image.installed(CNI_CONF_NAME="20-calico.conflist")
        assert (image.net / "20-calico.conflist").read_text() == FINAL
        assert installed_in(image.net) == {"20-calico.conflist", "99-other.conf"}

    @pytest.mark.parametrize("old", ["20-calico.conflist", "05-missing.conf"])
    def test_the_old_name_may_be_the_same_or_missing(self, image: Image, old: str) -> None:
        put(image.conf, "{}")
        log = image.installed(CNI_CONF_NAME="20-calico.conflist", CNI_OLD_CONF_NAME=old)
        assert installed_in(image.net) == {CONF, "20-calico.conflist"}
        assert (f"Failed to remove {old}" in log) is (old == "05-missing.conf")

    def test_inst_009_an_empty_object(self, image: Image) -> None:
        image.installed(CNI_NETWORK_CONFIG="{}")
        assert image.conf.read_text() == "{}"

    def test_inst_010_one_that_does_not_parse(self, image: Image) -> None:
        image.refused("CNI config is not valid JSON: ", "CNI_NETWORK_CONFIG", CNI_NETWORK_CONFIG='{"missing quote}')

    def test_inst_011_a_file_wins(self, image: Image) -> None:
        text = FINAL.replace("  ", "    ")
        put(image.net / "alternate-config", text)
        file = "/host/etc/cni/net.d/alternate-config"
        image.installed(CNI_NETWORK_CONFIG="garbage", CNI_NETWORK_CONFIG_FILE=file)
        assert image.conf.read_text() == text

    def test_a_link_in_the_way_is_replaced_and_what_it_leads_to_stays(self, image: Image) -> None:
        victim = put(image.root / "victim", "theirs")
        image.conf.symlink_to("/victim")
        image.installed()
        assert image.conf.read_text() == FINAL
        assert victim.read_text() == "theirs"

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("SLEEP", ""),
            ("UPDATE_CNI_BINARIES", "maybe"),
            ("CNI_CONF_NAME", "../../passwd"),
            ("TEST_FILE_PERMISSION", "rw"),
            ("CNI_NETWORK_CONFIG_FILE", "/none"),
            ("CNI_DATASTORE_PROBE_TIMEOUT", "soon"),
        ],
    )
    def test_a_mistake_is_one_line_that_names_the_variable(self, image: Image, name: str, text: str) -> None:
        image.refused(name, text, **{name: text})

    def test_d01_the_mtu_and_whether_its_file_is_required_are_the_environments(self, image: Image) -> None:
        image.installed(CNI_MTU="0", REQUIRE_MTU_FILE="true")
        assert '"mtu": 0,' in image.conf.read_text()
        assert '"require_mtu_file": true,' in image.conf.read_text()

    def test_c17_the_log_file_and_its_limits_are_the_environments(self, image: Image) -> None:
        template = (
            '{"a": "__LOG_LEVEL__ __LOG_FILE_PATH__ __LOG_FILE_MAX_SIZE__ __LOG_FILE_MAX_AGE__ __LOG_FILE_MAX_COUNT__"}'
        )
        image.installed(CNI_NETWORK_CONFIG=template)
        assert image.conf.read_text() == '{"a": "info /var/log/calico/cni/cni.log 100 30 10"}'
        environ = {"LOG_LEVEL": "debug", "LOG_FILE_PATH": "/x", "LOG_FILE_MAX_SIZE": "1", "LOG_FILE_MAX_COUNT": ""}
        image.installed(CNI_NETWORK_CONFIG=template, **environ)
        assert image.conf.read_text() == '{"a": "debug /x 1 30 "}'


class TestSecrets:
    def test_inst_013_hidden_files_are_none(self, image: Image) -> None:
        put(image.root / "calico-secrets/.hidden", "")
        image.installed()
        assert not (image.net / "calico-tls").exists()

    def test_inst_014_a_certificate_and_its_path(self, image: Image) -> None:
        put(image.root / "calico-secrets/etcd-cert", "pem", 0o600)
        image.installed(CNI_NETWORK_CONFIG='{"etcd_cert": "__ETCD_CERT_FILE__"}')
        assert (image.net / "calico-tls/etcd-cert").read_text() == "pem"
        assert image.conf.read_text() == '{"etcd_cert": "/etc/cni/net.d/calico-tls/etcd-cert"}'

    def test_those_of_a_mounted_secret_are_files_on_the_host(self, image: Image) -> None:
        MountedSecret(image.root / "calico-secrets").put(**{"etcd-ca": "ca", "etcd-key": "key"})
        put(image.net / "calico-tls/etcd-cert", "stale")
        image.installed()
        assert installed_in(image.net / "calico-tls") == {"etcd-ca", "etcd-key"}
        assert not (image.net / "calico-tls/etcd-key").is_symlink()


class TestStaying:
    @pytest.fixture
    def resident(self, image: Image) -> Iterator[subprocess.Popen[str]]:
        secret = MountedSecret(image.root / "calico-secrets")
        secret.put(**{"etcd-cert": "one"})
        environ = image.environment(SLEEP="true")
        process = subprocess.Popen(
            image.words("/usr/bin/calico", "component", "cni", "install"),
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr
            for line in process.stderr:
                if "Done configuring CNI.  Sleep= true" in line:
                    break
            self.secret = secret
            yield process
        finally:
            process.kill()
            process.wait()
            if process.stderr:
                process.stderr.close()

    def test_a_secret_that_is_swapped_is_installed_each_time(
        self, image: Image, resident: subprocess.Popen[str]
    ) -> None:
        conf = os.stat(image.conf)
        for version in ("two", "three"):
            self.secret.put(**{"etcd-cert": version, "etcd-key": f"key {version}"})
            ends = time.monotonic() + 60
            installed = image.net / "calico-tls/etcd-cert"
            while installed.read_text() != version:
                assert time.monotonic() < ends, version
                time.sleep(0.02)
        assert os.stat(image.conf).st_mtime_ns == conf.st_mtime_ns
        assert resident.poll() is None

    @pytest.mark.parametrize("number", [15, 2])
    def test_a_signal_ends_it_at_once_and_well(self, resident: subprocess.Popen[str], number: int) -> None:
        resident.send_signal(number)
        assert resident.wait(60) == 0

    def test_without_anything_to_watch_it_says_so(self, image: Image) -> None:
        answer = image.install(SLEEP="true")
        assert answer.exit == 1
        assert "there is nothing to watch: /calico-secrets/etcd-cert (TLS_ASSETS_DIR) is missing" in answer.stderr
        assert image.conf.read_text() == FINAL


class TestWayBack:
    def test_from_within_the_container_or_by_what_is_installed(self, image: Image) -> None:
        put(image.conf, "theirs")
        put(image.bin / "calico", "theirs", 0o755)
        before = tree(image.root / "host")
        for program in ("/usr/bin/calico", "/host/opt/cni/bin/calico"):
            image.installed()
            answer = image.run(program, "component", "cni", "uninstall")
            assert answer.exit == 0, answer
            assert f"restored  /host/etc/cni/net.d/{CONF}\n" in answer.stdout
            assert "removed   /host/opt/cni/bin/calico-ipam\n" in answer.stdout
            assert tree(image.root / "host") == before

    def test_what_somebody_else_has_replaced_is_not_touched(self, image: Image) -> None:
        before = tree(image.root / "host")
        image.installed()
        put(image.conf, "edited by hand")
        answer = image.run("/usr/bin/calico", "component", "cni", "uninstall")
        assert (answer.exit, answer.stdout) == (1, "")
        assert answer.stderr.startswith(f"Error: somebody else has replaced /host/etc/cni/net.d/{CONF} since; ")
        assert image.conf.read_text() == "edited by hand"
        answer = image.run("/usr/bin/calico", "component", "cni", "uninstall", "--force")
        assert answer.exit == 0, answer
        assert image.conf.read_text() == "edited by hand"  # there was none before us
        image.conf.unlink()
        assert tree(image.root / "host") == before
