"""What the host's files keep that not every file system has: security labels, and files that are being executed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from adapters.linux.host_files import LinuxHostFiles

LABEL = "security.selinux"
BIN = b"system_u:object_r:bin_t:s0\0"


@pytest.fixture
def files() -> LinuxHostFiles:
    return LinuxHostFiles()


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    path = tmp_path / "calico"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, LABEL, BIN)
    except OSError as error:
        pytest.skip(f"NO LABELS HERE: {tmp_path} takes no {LABEL}: {error.strerror}")
    return path


def test_what_replaces_a_labelled_file_has_its_label(files: LinuxHostFiles, labelled: Path) -> None:
    stage = files.open_stage(str(labelled.parent))
    files.write(f"{stage}/calico", b"new", 0o755, like=str(labelled))
    files.copy(str(labelled), f"{stage}/copied", like=str(labelled))
    assert os.getxattr(f"{stage}/copied", LABEL) == BIN
    files.move(f"{stage}/calico", str(labelled))
    files.close_stage(stage)
    assert (labelled.read_bytes(), os.getxattr(labelled, LABEL)) == (b"new", BIN)


def test_what_is_kept_keeps_its_label(files: LinuxHostFiles, labelled: Path) -> None:
    files.keep(str(labelled), f"{labelled}.kept")
    assert os.getxattr(f"{labelled}.kept", LABEL) == BIN


def test_a_new_file_has_no_label_of_ours(files: LinuxHostFiles, labelled: Path) -> None:
    files.replace(f"{labelled.parent}/another", b"", 0o755)
    assert LABEL not in os.listxattr(f"{labelled.parent}/another")


def test_i01_a_program_that_runs_is_replaced_and_the_new_one_can_be_executed_at_once(
    files: LinuxHostFiles, tmp_path: Path
) -> None:
    """Writing to it would be ETXTBSY, as would executing what somebody still writes to."""
    files.copy("/bin/sleep", f"{tmp_path}/portmap")
    with subprocess.Popen([f"{tmp_path}/portmap", "60"]) as running:
        try:
            for source in ("/bin/true", "/bin/sleep") * 20:
                stage = files.open_stage(str(tmp_path))
                files.copy(source, f"{stage}/portmap")
                files.move(f"{stage}/portmap", f"{tmp_path}/portmap")
                subprocess.run([f"{tmp_path}/portmap", "0"], check=True)
                files.close_stage(stage)
            assert running.poll() is None
        finally:
            running.kill()
