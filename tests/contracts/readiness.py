"""What every readiness check keeps: derive, provide `clock`, `readiness`, `answering` and `files`.

`answering(status)` gives a URL that answers so. `files` has `path(name)` and `create(path)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pytest

from ports.clock import Clock
from ports.errors import Expired, Refused
from ports.readiness import Readiness


class Files(Protocol):
    def path(self, name: str) -> str: ...

    def create(self, path: str) -> None: ...


class ReadinessContract:
    @pytest.mark.parametrize("status", [200, 204, 304, 399])
    def test_a_ready_gate_opens_at_once(
        self, clock: Clock, readiness: Readiness, answering: Callable[[int], str], status: int
    ) -> None:
        """K8S-041; improvement G6: the original waits five seconds first."""

        def quickly() -> bool:
            before = clock.monotonic()
            readiness.gate(answering(status), clock.deadline(30))
            return clock.monotonic() - before < 4

        assert any(quickly() for _ in range(5))  # once, on a machine that is busy

    @pytest.mark.parametrize("status", [400, 404, 503])
    def test_a_gate_that_never_opens_expires_at_the_deadline(
        self, clock: Clock, readiness: Readiness, answering: Callable[[int], str], status: int
    ) -> None:
        before, url = clock.monotonic(), answering(status)
        with pytest.raises(Expired) as expired:
            readiness.gate(url, clock.deadline(0.3))
        assert expired.value.waited_for == f"readiness gate {url}"
        assert 0.25 <= clock.monotonic() - before < 30

    @pytest.mark.parametrize("url", ["/a/path", "*", "ftp://127.0.0.1/", "http:///x"])
    def test_what_is_a_url_but_cannot_be_fetched_expires(self, clock: Clock, readiness: Readiness, url: str) -> None:
        with pytest.raises(Expired):
            readiness.gate(url, clock.deadline(0.1))

    @pytest.mark.parametrize(
        ("url", "why"),
        [
            ("", 'parse "": empty url'),
            ("9099/x", 'parse "9099/x": invalid URI for request'),
            ("no url", 'parse "no url": invalid URI for request'),
        ],
    )
    def test_what_is_no_url_is_refused(self, clock: Clock, readiness: Readiness, url: str, why: str) -> None:
        with pytest.raises(Refused) as refused:
            readiness.gate(url, clock.deadline(30))
        assert str(refused.value) == f"invalid URL set for ReadinessGates:{url} Error:{why}"

    def test_a_password_in_a_url_is_not_told(self, clock: Clock, readiness: Readiness) -> None:
        for url, error in (("http://u:secret@127.0.0.1:1/", Expired), ("http://u:secret@127.0.0.1:x/", Refused)):
            with pytest.raises(error) as told:
                readiness.gate(url, clock.deadline(0.05))
            assert "secret" not in str(told.value)

    def test_a_file_that_is_there_is_seen_at_once(self, clock: Clock, readiness: Readiness, files: Files) -> None:
        path = files.path("k8s default%2Fpod eth0")
        files.create(path)
        assert readiness.file_appears(path, clock.deadline(0)) is True

    def test_a_file_that_does_not_come_is_reported_at_the_deadline(
        self, clock: Clock, readiness: Readiness, files: Files
    ) -> None:
        """Its directory does not exist either."""
        before = clock.monotonic()
        assert readiness.file_appears(files.path("no/such/place"), clock.deadline(0.2)) is False
        assert 0.19 <= clock.monotonic() - before < 20
