"""`calico`, `calico-ipam` and the sub-commands, apart from what a runtime asks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from descriptors import replaced, stdin
from domain.cni.versions import SUPPORTED_BY_BRIDGE, supported_text
from entrypoints import calico, calico_ipam
from entrypoints import sub_commands as commands
from entrypoints.version import VERSION
from ports.errors import Unavailable
from worlds.no_ports import opener_without_ports

ROOT = Path(__file__).resolve().parents[3]


open_runtime = opener_without_ports(Unavailable("context deadline exceeded"))


@pytest.mark.parametrize("main", [calico.main, calico_ipam.main])
@pytest.mark.parametrize("environ", [{}, {"CNI_COMMAND": "VERSION"}, {"CNI_COMMAND": "ADD"}])
def test_v_prints_the_version(main: Any, environ: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-v"], environ) == 0
    assert capfd.readouterr() == (f"{VERSION}\n", "")


def test_v_comes_before_t(capfd: pytest.CaptureFixture[str]) -> None:
    assert calico.main(["-t", "-v"], {}) == 0
    assert capfd.readouterr().out == f"{VERSION}\n"


@pytest.mark.parametrize("main", [calico.main, calico_ipam.main])
def test_a_version_that_nobody_gets_is_a_failure(main: Any) -> None:
    with replaced(1, os.open("/dev/full", os.O_WRONLY)):
        assert main(["-v"], {}) == 1


def test_an_unknown_flag_shows_the_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert calico.main(["-x"], {"CNI_COMMAND": "ADD"}) == 2
    assert capfd.readouterr().err == (
        "flag provided but not defined: -x\nUsage of Calico:\n  -t\tTest datastore connection\n  -v\tDisplay version\n"
    )
    assert calico_ipam.main(["-help"], {}) == 0
    assert capfd.readouterr().err.startswith("Usage of calico-ipam:\n  -upgrade\n")


def test_an_upgrade_needs_the_nodes_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert calico_ipam.main(["-upgrade"], {}) == 1
    out, said = capfd.readouterr()
    assert out == ""
    assert said.splitlines()[-1] == "Error: KUBERNETES_NODE_NAME not specified, refusing to migrate..."


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("", "failed to load netconf: unexpected end of JSON input"),
        ('{"name": "net1"}', "context deadline exceeded"),
    ],
)
def test_t_reports_what_is_wrong(text: str, details: str, capfd: pytest.CaptureFixture[str]) -> None:
    with stdin(text):
        assert calico.main(["-t"], {"CNI_COMMAND": "VERSION"}, open_runtime) == 1
    out, logged = capfd.readouterr()
    answer = json.loads(out)
    assert (answer["code"], answer["msg"]) == (100, "data store connection failed")
    assert details in answer["details"]
    assert "[ERROR]" in logged


def test_without_a_verb_or_word_calico_says_what_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run((), {}) == 0
    assert capfd.readouterr().err.startswith(f"Calico CNI plugin {VERSION}\nCNI protocol versions supported: 0.1.0,")
    assert calico_ipam.main((), {}) == 0
    assert capfd.readouterr().err.startswith(f"Calico CNI IPAM {VERSION}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("ctl get nodes", "Error: `ctl` is not part of this build"),
        ("health --port=9099", "Error: `health` is not part of this build"),
        ("component", "Error: `component` is not part of this build"),
        ("component felix", "Error: `component felix` is not part of this build"),
        ("component flexvol mount /dest", "Error: `component flexvol` is not part of this build"),
        ("component cni", "Error: `component cni` is not part of this build"),
        ("component cni install now", "Error: `component cni install` is not part of this build"),
        ("bogus", 'Error: unknown command "bogus" for "calico"'),
    ],
)
def test_what_is_not_there_says_so(words: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(tuple(words.split()), {}) == 1
    assert capfd.readouterr().err.startswith(said)


@pytest.mark.parametrize("words", ["version", "component cni plugin -v", "component cni ipam -v"])
def test_sub_commands_that_show_the_version(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(tuple(words.split()), {}) == 0
    assert capfd.readouterr().out == f"{VERSION}\n"


def test_help_names_the_sub_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert commands.run(("help",), {}) == 0
    assert "component cni plugin" in capfd.readouterr().out


def start(argv: list[str], shell: str = '"$@"', **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the product's main() in a process of its own, started by a shell line."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = {argv!r}\n"
        "from entrypoints.main import main; sys.exit(main())"
    )
    words = ["/bin/sh", "-c", shell, "sh", sys.executable, "-ISBc", program]
    return subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)


ADD = {"CNI_COMMAND": "ADD", "CNI_CONTAINERID": "e", "CNI_NETNS": "/n", "CNI_IFNAME": "e", "CNI_PATH": "/p"}


@pytest.mark.parametrize(
    ("argv", "code", "out", "said"),
    [
        (["/opt/cni/bin/calico", "-v"], 0, f"{VERSION}\n", ""),
        (["calico-ipam", "-v"], 0, f"{VERSION}\n", ""),
        (["calico", "version"], 0, f"{VERSION}\n", ""),
        (["my-custom-cni", "-v"], 0, f"{VERSION}\n", ""),
        (["bridge"], 0, "", f"CNI bridge plugin {VERSION}\n{supported_text(SUPPORTED_BY_BRIDGE)}\n"),
        (["x/frob"], 2, "", "Unknown binary name: frob\n"),
        (["x/\x1b[31mred\n"], 2, "", "Unknown binary name: \\x1b[31mred\\n\n"),
    ],
)
def test_the_name_decides(argv: list[str], code: int, out: str, said: str) -> None:
    ended = start(argv)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, out, said)


@pytest.mark.parametrize("program", ["calico", "calico-ipam"])
@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_descriptors_are_survived(program: str, closed: str) -> None:
    """An empty stdin is what a closed one counts as; nothing of ours lands on a closed stderr."""
    ended = start([program], f'"$@" {closed}', **ADD)
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["code"] == 6


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-", ">/dev/full"])
def test_a_call_fails_when_its_answer_has_nowhere_to_go(closed: str) -> None:
    assert start(["calico"], f'"$@" {closed}', CNI_COMMAND="VERSION").returncode == 1
