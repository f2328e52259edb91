"""A host as `tortie doctor` looks at it: this one, and another whose root is mounted somewhere."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from adapters.linux.alarm import within
from adapters.linux.clock import SystemClock
from adapters.linux.host_view import LinuxHost
from adapters.linux.namespaces import Inside
from contracts.host_view import HostViewContract
from domain.doctor.kernel import FEATURES
from integration.plugin.kernel import Namespace
from ports.errors import Expired, Refused


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture(params=["this host", "another root"])
def host(request: pytest.FixtureRequest, clock: SystemClock, tmp_path: Path) -> LinuxHost:
    return LinuxHost(clock, str(tmp_path) if request.param == "another root" else "")


@pytest.fixture
def place(host: LinuxHost, tmp_path: Path) -> str:
    return "/place" if host.place("/") != "/" else str(tmp_path / "place")


@pytest.fixture
def put(host: LinuxHost, tmp_path: Path) -> Callable[..., None]:
    def put(path: str, text: str, mode: int) -> None:
        real = Path(host.place(path))
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_text(text)
        real.chmod(mode)

    return put


class TestLinuxHost(HostViewContract):
    def test_the_first_line_is_the_version(self, host: LinuxHost, place: str, put: Callable[..., None]) -> None:
        put(f"{place}/p", '#!/bin/sh\n[ "$CNI_COMMAND $1" = "VERSION -v" ] && echo v1 && echo more\n', 0o755)
        assert host.version_of(f"{place}/p", host._clock.deadline(20)) == "v1"

    def test_a_link_says_by_its_name_which_program_it_is(
        self, host: LinuxHost, place: str, put: Callable[..., None]
    ) -> None:
        put(f"{place}/p", '#!/bin/sh\necho "${0##*/}"\n', 0o755)
        os.symlink("p", host.place(f"{place}/q"))
        os.symlink(f"{place}/p", host.place(place) + "/r")
        assert host.version_of(f"{place}/q", host._clock.deadline(20)) == "q"
        elsewhere = host.place("/") != "/"
        assert host.version_of(f"{place}/r", host._clock.deadline(20)) == ("p" if elsewhere else "r")

    @pytest.mark.parametrize(
        ("script", "words"), [("echo sorry >&2; exit 3", "sorry"), ("exit 3", "ends with status"), ("true", "nothing")]
    )
    def test_why_there_is_none(
        self, script: str, words: str, host: LinuxHost, place: str, put: Callable[..., None]
    ) -> None:
        put(f"{place}/p", f"#!/bin/sh\n{script}\n", 0o755)
        with pytest.raises(Refused, match=words):
            host.version_of(f"{place}/p", host._clock.deadline(20))

    def test_a_program_that_does_not_end_is_left(self, host: LinuxHost, place: str, put: Callable[..., None]) -> None:
        put(f"{place}/p", "#!/bin/sh\nsleep 600\n", 0o755)
        with pytest.raises(Expired):
            host.version_of(f"{place}/p", host._clock.deadline(0.2))

    def test_a_pipe_is_seen_and_not_waited_for(self, host: LinuxHost, place: str, put: Callable[..., None]) -> None:
        put(f"{place}/f", "", 0o600)
        os.mkfifo(host.place(f"{place}/pipe"))
        seen = host.file(f"{place}/pipe")
        assert seen is not None
        assert seen.kind == "a named pipe"
        assert host.read(f"{place}/pipe") == ""

    def test_a_link_to_nothing_is_there(self, host: LinuxHost, place: str, put: Callable[..., None]) -> None:
        put(f"{place}/f", "", 0o600)
        os.symlink("nowhere", host.place(f"{place}/link"))
        seen = host.file(f"{place}/link")
        assert seen is not None
        assert seen.kind == "a symbolic link to nothing"

    def test_what_nobody_may_look_at_is_refused(self, host: LinuxHost, place: str, put: Callable[..., None]) -> None:
        put(f"{place}/f", "", 0o600)
        for look in (host.file, host.names):
            with pytest.raises(Refused, match="file name too long"):
                look(f"{place}/{'x' * 300}")


def test_absolute_links_of_another_root_stay_in_it(clock: SystemClock, tmp_path: Path) -> None:
    """As a host's /var/run is a link to its /run, and kubelet's folders are full of links with `..` in them."""
    root = tmp_path / "host"
    (root / "run/calico").mkdir(parents=True)
    (root / "var").mkdir()
    (root / "var/run").symlink_to("/run")
    (root / "run/calico/up").symlink_to("../../../../../run/calico/f")
    (root / "run/calico/f").write_text("the host's")
    (root / "loop").symlink_to("loop")
    host = LinuxHost(clock, f"{root}/")
    assert host.read("/var/run/calico/f") == "the host's"
    assert host.read("/var/run/./calico/up") == "the host's"
    assert host.place("/var/run/calico") == f"{root}/run/calico"
    with pytest.raises(Refused, match="too many levels"):
        host.file("/loop")


def test_the_kernel_of_this_machine_is_tried_and_nothing_is_left(clock: SystemClock) -> None:
    """In a namespace of its own, since other tests' devices come and go on the machine meanwhile."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with ExitStack() as undo:
        descriptor = os.open(Namespace("host", undo).path, os.O_RDONLY)
        undo.callback(os.close, descriptor)
        undo.enter_context(Inside(descriptor))
        before, started_before = socket.if_nameindex(), set(children.read_text().split())
        found = LinuxHost(clock).lacking()
        assert set(found) <= set(FEATURES)
        assert "veth" not in found, "these tests need veth themselves"
        assert socket.if_nameindex() == before
        assert set(children.read_text().split()) <= started_before


def test_who_may_not_make_a_namespace_is_told(clock: SystemClock) -> None:
    """In a child, which gives up its rights."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            LinuxHost(clock).lacking()
        except Refused as refused:
            os.write(writing, str(refused).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 1000).decode() == ("what the kernel can do cannot be tried: operation not permitted")
    os.close(reading)


def test_links_and_default_routes_are_listed(clock: SystemClock) -> None:
    host = LinuxHost(clock)
    assert "lo" in {link.name for link in host.links()}
    for uplink in host.uplinks():
        assert uplink.version in (4, 6)
        assert uplink.device in {name for _, name in socket.if_nameindex()}
        assert uplink.mtu > 0
    assert host.setting("net.ipv4.ip_forward") in ("0", "1")


def test_a_look_that_takes_too_long_ends_and_leaves_the_former_timer() -> None:
    def nobody(_number: int, _frame: object) -> None:
        """Never called."""

    former = signal.signal(signal.SIGALRM, nobody)
    timer = signal.setitimer(signal.ITIMER_REAL, 500)
    try:
        with pytest.raises(Expired, match="a look"):
            within(0.05, "a look", lambda: time.sleep(60))
        assert signal.getsignal(signal.SIGALRM) is nobody
        assert 400 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, former)
