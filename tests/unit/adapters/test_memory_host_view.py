"""The host in memory, which tests of `tortie doctor` run over, keeps the contract of the real one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.memory.host_view import MemoryHost
from contracts.host_view import SOON, HostViewContract
from domain.doctor.seen import FileSeen
from ports.errors import Refused


@pytest.fixture
def host() -> MemoryHost:
    return MemoryHost("node-a")


@pytest.fixture
def place() -> str:
    return "/place"


@pytest.fixture
def put(host: MemoryHost) -> Callable[..., None]:
    def put(path: str, text: str, mode: int) -> None:
        host.files[path] = text
        if mode != 0o600:
            host.seen[path] = FileSeen("a regular file", mode, 0, len(text))

    return put


class TestMemoryHost(HostViewContract):
    def test_a_program_has_a_version_and_may_run(self, host: MemoryHost) -> None:
        host.versions["/bin/p"] = "v1"
        assert host.version_of("/bin/p", SOON) == "v1"
        assert host.file("/bin/p") == FileSeen("a regular file", 0o755)
        assert host.place("/bin/p") == "/bin/p"

    def test_what_is_broken_may_not_be_looked_at(self, host: MemoryHost) -> None:
        host.broken.add("/secret")
        for look in (host.file, host.names):
            with pytest.raises(Refused, match="/secret: permission denied"):
                look("/secret")
