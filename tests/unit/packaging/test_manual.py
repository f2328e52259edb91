"""The manual page says what the parser reads, and what shells complete by lies where they look."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.tortie.command_line import COMMANDS, EXIT_CODES, Group, below, command_parser

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    folder = tmp_path_factory.mktemp("share")
    subprocess.run([sys.executable, ROOT / "packaging" / "manual.py", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module")
def page(share):
    return (share / "man/man1/tortie.1").read_text()


def leaves(parser):
    known = below(parser)
    return [leaf for one in known.values() for leaf in leaves(one)] if known else [parser]


def test_every_command_and_option_is_in_the_manual(page):
    for parser in leaves(command_parser()):
        assert f"\n.SS {parser.prog.replace('-', chr(92) + '-')}\n" in page
        for action in parser._actions:
            for string in action.option_strings:
                assert string.replace("-", "\\-") in page, (parser.prog, string)


def test_no_line_of_text_is_taken_for_a_request(page):
    known = {"TH", "SH", "SS", "TP", "PP", "RS", "RE", "nf", "fi"}
    assert {line.split()[0][1:] for line in page.splitlines() if line.startswith(".")} == known
    assert not [line for line in page.splitlines() if line.startswith("'")]


def test_what_shells_complete_by_lies_where_they_look(share):
    files = {str(path.relative_to(share)) for path in share.rglob("*") if path.is_file()}
    assert files == {
        "man/man1/tortie.1",
        "bash-completion/completions/tortie",
        "zsh/site-functions/_tortie",
        "fish/vendor_completions.d/tortie.fish",
    }
    assert (share / "zsh/site-functions/_tortie").read_text().startswith("#compdef tortie\n")


def commands(items):
    return [one for item in items for one in (commands(item.commands) if isinstance(item, Group) else [item])]


@pytest.mark.parametrize("command", commands(COMMANDS), ids=lambda command: command.name)
def test_every_command_has_examples_that_the_parser_takes(command):
    """Those with a pipe, a redirection or a variable of their own are read up to it."""
    assert command.examples, "the help shows examples for every command"
    for line in command.examples.splitlines():
        found = re.search(r"tortie (.*?)(?:  .*| [|>].*|\) .*)?$", line)
        if found is None or line.startswith((" ", "source")):
            continue
        words = [word.strip("'\"") for word in re.findall(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""", found[1])]
        options = command_parser().parse_args(words)
        assert options.command is command or "|" in line or "datastore" in line
        assert options.command.objection(options) == ""


def test_documents_have_every_exit_code():
    text = (ROOT / "docs/commands.md").read_text()
    assert all(f"| {code} | " in text for code in EXIT_CODES)
