"""Calls of the bundle on a disk that fails at any of its writes, and with every system call interrupted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from errno import ENOSPC, EROFS
from pathlib import Path

import pytest

from integration.plugin.conftest import ROOT
from integration.plugin.faults import FaultyHost, built_in
from integration.plugin.host import Answer, Container, Host

pytestmark = pytest.mark.sqlite_file


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_in(tmp_path_factory.mktemp("preloaded"))


@pytest.fixture(scope="module")
def bundle(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library is preloaded into programs that are linked dynamically only; the executable's Python is the same."""
    if not (binaries / "calico").read_bytes().startswith(b"\x7fELF"):
        return binaries
    target = tmp_path_factory.mktemp("bundle")
    words = ["build", "--lock", ROOT / "requirements.lock", target]
    subprocess.run(
        [sys.executable, ROOT / "packaging" / "bundle.py", *words], check=True, capture_output=True, timeout=120
    )
    return target


@pytest.fixture(params=["calico", "my-custom-cni"])
def faulty(
    host: Host, bundle: Path, library: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> FaultyHost:
    host.bin = bundle
    folder = tmp_path_factory.mktemp("counted")
    if request.param == "calico":
        return FaultyHost(host, library, folder, request.param)
    host.use_host_local()
    more = {"type": request.param, "bridge": "full0", "stateDir": str(host.folder / "attachments")}
    return FaultyHost(host, library, folder, request.param, **more)


def left(host: Host) -> dict[str, object]:
    """But for the bridge and its routes, which stay."""
    found = host.left()
    found["devices"] = found.get("devices", set()) - {"full0"}
    found.pop("routes", None)
    found["temporary"] = {path.name for path in host.folder.rglob(".tortie-*") if path.is_file()}
    return {name: value for name, value in found.items() if value}


def one_error(answer: Answer) -> None:
    error = json.loads(answer.stdout)
    error.pop("cniVersion", None)
    assert (answer.exit, error["code"]) == (1, 11), answer
    assert error["msg"]


def at_each(faulty: FaultyHost, verb: str, container: Container, number: int, then: Callable[[Answer], None]) -> int:
    """How many changes of files the call tries; each of some ten of them fails once."""
    answer = faulty.call(verb, container)
    count = faulty.count
    then(answer)
    for at in range(1, count + 1, 1 + count // 10):
        answer = faulty.call(verb, container, at=at, errno=number)
        if answer.exit:
            one_error(answer)
        then(answer)
    return count


def test_a_full_disk_at_any_write_leaves_nothing(faulty: FaultyHost) -> None:
    host, container = faulty.host, faulty.host.container()

    def after_add(answer: Answer) -> None:
        if answer.exit:
            assert left(host) == {}
            assert container.inside.names() == {"lo"}
        else:
            faulty.call("DEL", container).silent()
            assert left(host) == {}

    def after_delete(answer: Answer) -> None:
        if answer.exit:
            faulty.call("DEL", container).silent()
        assert left(host) == {}
        assert container.inside.names() == {"lo"}
        faulty.call("ADD", container).result()

    assert at_each(faulty, "ADD", container, ENOSPC, after_add) > 5
    faulty.call("ADD", container).result()
    assert at_each(faulty, "DEL", container, ENOSPC, after_delete) >= 1


@pytest.mark.parametrize("number", [ENOSPC, EROFS])
def test_a_disk_that_stays_broken_keeps_no_device_and_a_later_delete_ends_the_container(
    faulty: FaultyHost, number: int
) -> None:
    """Records cannot be taken back on it."""
    host, container = faulty.host, faulty.host.container()
    faulty.call("ADD", container).result()
    faulty.call("DEL", container).silent()
    for at in range(1, 60, 20):
        answer = faulty.call("ADD", container, at=at, errno=number, lasts=1)
        if answer.exit:
            one_error(answer)
            assert "devices" not in left(host)
        one_end = faulty.call("DEL", container, at=1, errno=number, lasts=1)
        if one_end.exit:
            one_error(one_end)
        assert container.inside.names() == {"lo"}
        faulty.call("DEL", container).silent()
        found = left(host)
        remains = found.pop("temporary", set())  # nothing is removed from a read-only disk
        assert number == EROFS or not remains
        assert found.pop("reservations", set()) <= remains
        assert found == {}


def test_every_system_call_interrupted_changes_nothing(faulty: FaultyHost) -> None:
    container = faulty.host.container()
    faulty.call("ADD", container, storm=1).result()
    faulty.call("DEL", container, storm=1).silent()
    assert left(faulty.host) == {}
    assert container.inside.names() == {"lo"}
