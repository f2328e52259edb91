"""What a shell completes: the walk over the parser, and real shells that ask it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from domain.cluster import Node
from domain.resource import Metadata
from entrypoints.tortie.completion import answered
from entrypoints.tortie.completion_scripts import SCRIPTS
from ports.datastore import NodeKey
from ports.errors import Unavailable
from worlds.tortie_command import Tortie

ROOT = Path(__file__).resolve().parents[4]
RUN_BY_A_SHELL = ["$(id)", "`id`", "p;id", "p|id", "p&id", "p>x", "~", "p*", "p'", 'p"', "p\\", "!1", "p#", "{a,b}"]
NAMES = {"IPPool": ["p1", "p2", "bad name", "x\x1b[2J", *RUN_BY_A_SHELL], "Node": ["n1"], "WorkloadEndpoint": ["w"]}


def asked(*words, given=None):
    def names(kind, options):
        if given is not None:
            given.update(options)
        return NAMES.get(kind.name, [])

    return [line.partition("\t")[0] for line in answered(words, names).splitlines()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["ge"], ["get"]),
        (["ipam", "sh"], ["show"]),
        (["help", "ipam", "che"], ["check"]),
        (["help", "nope", ""], []),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["completion", "bash", ""], []),
        (["get", "ippo"], ["ippools"]),
        (["get", "poo"], ["pool"]),
        (["get", "ippools,no"], ["ippools,nodes"]),
        (["get", "ippools", ""], ["p1", "p2"]),
        (["get", "ippools", "p1", ""], ["p2"]),
        (["get", "pool/"], ["pool/p1", "pool/p2"]),
        (["get", "frob", ""], []),
        (["get", "frob/"], []),
        (["get", "ipamb"], ["ipamblocks"]),
        (["delete", "ipamb"], []),
        (["get", "nodes", "-o", "cus"], ["custom-columns="]),
        (["get", "nodes", "--output=j"], ["--output=json"]),
        (["get", "nodes", "-o=j"], ["-o=json"]),
        (["get", "nodes", "--nope=j"], []),
        (["get", "nodes", "--all-n"], ["--all-namespaces"]),
        (["get", "-A", "-n", "x", "no"], ["nodes"]),
        (["patch", "pool", "p1", "--type", "m"], ["merge"]),
        (["apply", "-f", "x"], [":files"]),
        (["apply", "--filename=x"], [":files"]),
        (["doctor", "--root", ""], [":folders"]),
        (["ipam", "check", "-o", "rep"], [":files"]),
        (["ipam", "show", "--node", ""], ["n1"]),
        (["ipam", "show", "--ip", ""], []),
        (["ipam", "configure", "--strictaffinity", ""], ["true", "false"]),
        (["get", "ippools", "--", ""], ["p1", "p2"]),
        (["-c", "x", "ge"], ["get"]),
    ],
)
def test_what_may_stand_at_the_cursor(words, found):
    assert asked(*words) == found


def test_without_a_word_there_are_all_commands():
    assert {"get", "ipam", "doctor", "completion", "help"} <= set(asked()) == set(asked(""))


def test_names_are_those_of_the_datastore_that_the_line_means():
    given = {}
    asked("get", "--context=c", "-n", "prod", "ippools", "", given=given)
    assert given == {"context": "c", "namespace": "prod"}


def test_a_name_that_would_be_an_option_is_left_out(capsys):
    tortie = Tortie(capsys)
    for name in ("-f", "--all", ":files", "n1"):
        tortie.store(NodeKey(name), Node(Metadata(name)))
    assert tortie.done("__complete", "delete", "nodes", "") == "n1\n"


def test_a_datastore_that_does_not_answer_leaves_its_names_out(capsys):
    tortie = Tortie(capsys)
    tortie.store(NodeKey("n1"), Node(Metadata("n1")))
    assert tortie.done("__complete", "get", "nodes", "") == "n1\n"

    def away(_verb, _key):
        raise Unavailable("no route")

    tortie.datastore.before = away
    assert tortie.done("__complete", "get", "nodes", "") == ""
    assert tortie.done("__complete", "--config", "/no/such", "get", "nodes", "") == ""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell")
    path = folder / "tortie"
    run = "import sys; from entrypoints.tortie.main import main; sys.exit(main(sys.argv[1:]))"
    path.write_text(f"#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -c '{run}' \"$@\"\n")
    path.chmod(0o755)
    (folder / "pools.yaml").touch()
    for shell, text in SCRIPTS.items():
        (folder / shell).write_text(text)
    return folder


def shell(program, name, script):
    if shutil.which(name) is None:
        pytest.skip(f"{name} NOT INSTALLED: its completion is not tried here")
    environment = {"PATH": f"{program}:{os.environ['PATH']}", "HOME": str(program), "TERM": "dumb"}
    done = subprocess.run(
        [name, *({"zsh": ["-f"], "bash": ["--norc"], "fish": ["--no-config"]}[name]), "-c", script],
        env=environment,
        cwd=program,
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes(program):
    """COMP_WORDS as bash splits them: at `=`, too."""
    lines = [
        ("tortie ge", "tortie ge"),
        ("tortie get nodes --output=j", "tortie get nodes --output = j"),
        ("tortie apply -f po", "tortie apply -f po"),
    ]
    script = "source bash; compopt() { :; };"
    for line, words in lines:
        script += f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({words});"
        script += "COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _tortie; echo ${COMPREPLY[@]};"
    assert shell(program, "bash", script) == ["get", "json", "pools.yaml"]
    assert shell(program, "bash", "source bash; complete -p tortie") == ["complete", "-F", "_tortie", "tortie"]


def test_fish_completes(program):
    script = "source fish; complete -C 'tortie ge'; complete -C 'tortie apply -f po'; complete -C 'tortie completion f'"
    assert shell(program, "fish", script) == ["get", "Show", "resources", "pools.yaml", "fish"]


def test_zsh_takes_the_script(program):
    script = "autoload -U compinit; compinit -u -D; source ./zsh; print -- $_comps[tortie]"
    assert shell(program, "zsh", script) == ["_tortie"]
