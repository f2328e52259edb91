"""The recorded answers to bad calls, as far as they are given before any port is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from descriptors import stdin
from entrypoints import calico, calico_ipam
from ports.errors import Refused
from worlds.no_ports import opener_without_ports

STEPS = json.loads((Path(__file__).parents[2] / "golden" / "errors.json").read_text())["steps"]
# What asks a port first: the node's files, the datastore, the dataplane, an IPAM plugin.
ASK_A_PORT = {2, *range(23, 33), *range(35, 38), 46, *range(67, 76), *range(79, 82)}


open_runtime = opener_without_ports(Refused("a port was asked"))


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_recorded_bad_call_is_answered_to_the_letter(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    call = STEPS[number]["call"]
    main = calico_ipam.main if call["program"] == "calico-ipam" else calico.main
    with stdin(call["stdin"]):
        code = main(call["argv"], call["env"], open_runtime)
    out = capfd.readouterr().out
    if number in ASK_A_PORT and "a port was asked" in out:
        assert code == 1
        return
    assert (code, out) == (call["exit"], call["stdout"])
