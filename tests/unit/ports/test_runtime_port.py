"""The ports of a call are opened on first use, once."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from ports.runtime import Runtime

PORTS = ("datastore", "cluster", "dataplane", "ipam_plugin", "node", "lock", "readiness", "former")


def runtime_over(opened: list[str], **failing: Exception) -> Runtime:
    def opener(name):
        def open_port():
            opened.append(name)
            if name in failing:
                raise failing[name]
            return f"the {name}"

        return open_port

    return Runtime(**{name: opener(name) for name in PORTS}, clock=MemoryClock(), log=RecordingLog())


def test_nothing_is_opened_before_it_is_asked_for():
    opened: list[str] = []
    runtime = runtime_over(opened)
    assert (runtime.clock.monotonic(), opened) == (0.0, [])


@pytest.mark.parametrize("name", PORTS)
def test_each_port_is_opened_once(name):
    opened: list[str] = []
    runtime = runtime_over(opened)
    assert [getattr(runtime, name), getattr(runtime, name)] == [f"the {name}"] * 2
    assert opened == [name]


def test_a_port_that_cannot_be_opened_is_tried_again():
    opened: list[str] = []
    runtime = runtime_over(opened, datastore=OSError("no"))
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            _ = runtime.datastore
    assert opened == ["datastore"] * 2


@pytest.mark.parametrize("name", ["dataport", "_opener", "__deepcopy__"])
def test_there_are_no_other_ports(name):
    with pytest.raises(AttributeError, match=name):
        getattr(runtime_over([]), name)
