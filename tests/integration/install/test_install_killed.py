"""The installer on a real disk, ended or refused at each of its system calls that change a file."""

from __future__ import annotations

import errno
import subprocess

import pytest

from integration.install.rig import CONF, Hostile, put, tree

KILLED = 137


@pytest.fixture
def installed(hostile: Hostile) -> dict[str, tuple[str, int, object]]:
    assert hostile.install().exit == 0
    found = tree(hostile.host)
    hostile.reset()
    return found


def test_killed_at_each_change_and_installed_again_all_is_there_and_can_be_taken_back(
    hostile: Hostile, installed: dict[str, tuple[str, int, object]]
) -> None:
    """C15"""
    ends = []
    for at in range(1, 500):
        hostile.reset()
        ended = hostile.install(at=at).exit
        if ended == 0:
            break
        assert ended == KILLED
        for path, contents in {
            hostile.bin / "calico": (b"old calico", hostile.program),
            hostile.net / CONF: (b"old configuration", installed[f"etc/cni/net.d/{CONF}"][2]),
            hostile.net / "calico-tls/etcd-ca": (b"old ca", b"ca"),
        }.items():
            assert path.read_bytes() in contents, (at, path)
        if (hostile.net / CONF).read_bytes() != b"old configuration":
            assert (hostile.bin / "calico-ipam").read_bytes() == hostile.program, at
            assert (hostile.net / "calico-tls/etcd-key").read_bytes() == b"key", at
        answer = hostile.install()
        assert answer.exit == 0, (at, answer)
        assert tree(hostile.host) == installed, at
        if at % 4 == 0:
            answer = hostile.uninstall()
            assert answer.exit == 0, (at, answer)
            assert hostile.restored() == hostile.before, at
        ends.append(ended)
    assert len(ends) > 40


def test_a_full_disk_at_each_write_leaves_all_as_it_was(hostile: Hostile) -> None:
    """C15"""
    hostile.install(what=errno.ENOSPC)
    count = hostile.count
    assert count > 25
    for at in range(1, count + 1):
        hostile.reset()
        answer = hostile.install(at=at, what=errno.ENOSPC)
        assert answer.exit == 1, (at, answer)
        errors = [line for line in answer.stderr.splitlines() if "[ERROR]" in line]
        assert len(errors) == 1, (at, answer)
        assert errors[0].endswith("no space left on device") or "no space left on device; /" in errors[0], errors
        assert hostile.without_leftovers() == hostile.before, at
        assert tree(hostile.host) == hostile.before, at


def test_a_second_installation_on_a_full_disk_leaves_the_first(hostile: Hostile) -> None:
    """C15"""
    assert hostile.install().exit == 0
    put(hostile.folder / "program", '#!/bin/sh\n[ "$1" = -t ] || echo v10\n', 0o755)
    before = tree(hostile.host)
    for at in range(1, 100):
        answer = hostile.install(at=at, what=errno.ENOSPC)
        if answer.exit == 0:
            break
        assert "no space left on device" in answer.stderr
        assert tree(hostile.host) == before, at
    assert at > 15
    assert b"v10" in (hostile.bin / "calico-ipam").read_bytes()


def test_installers_at_the_same_time_keep_what_was_there(hostile: Hostile) -> None:
    """As when a pod is replaced by the next one."""
    for _ in range(8):
        hostile.reset()
        running = [
            subprocess.Popen(hostile.words, env=hostile.environment, stderr=subprocess.DEVNULL) for _ in range(4)
        ]
        assert [process.wait(60) for process in running] == [0] * 4
        assert (hostile.bin / "calico").read_bytes() == (hostile.bin / "calico-ipam").read_bytes() == hostile.program
        answer = hostile.uninstall()
        assert answer.exit == 0, answer
        assert hostile.restored() == hostile.before
