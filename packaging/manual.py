#!/usr/bin/env python3
"""Writes what an operator's system shows and completes of `tortie`: its manual page, and a completion for each shell.

    manual.py /usr/local/share      man/man1/tortie.1, bash-completion/completions/tortie, …

The page is made from the very parser that reads the command line, so that it cannot say anything else.

Invariant: the same sources give the same files.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from entrypoints.tortie.command_line import EXIT_CODES, CommandParser, below, command_parser
from entrypoints.tortie.completion_scripts import BASH, FISH, ZSH
from entrypoints.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ENVIRONMENT = (
    ("DATASTORE_TYPE", "kubernetes, etcdv3 or sqlite"),
    ("KUBECONFIG", "for a Kubernetes datastore, and to ask which pods and virtual machines there are"),
    ("ETCD_ENDPOINTS, ETCD_CA_CERT_FILE, ETCD_CERT_FILE, ETCD_KEY_FILE", "for an etcd"),
    ("TORTIE_SQLITE_PATH", "the embedded datastore's file"),
    ("NO_COLOR, COLUMNS", "no colours; the width, whatever the terminal says"),
)
_FILES = (
    ("/etc/calico/calicoctl.cfg", "calicoctl's configuration; if it is there it settles which datastore is meant"),
    ("/var/lib/tortie/datastore.db", "the embedded datastore, unless something else is said"),
)


def page() -> str:
    """The manual page, in roff's man macros."""
    top = command_parser()
    lines = [
        f'.TH TORTIE 1 "" "tortie {VERSION}" "Calico\'s CNI plugins in Python"',
        *_section("NAME", rf"tortie \- {_first_small(str(top.description))}"),
        *_section("SYNOPSIS", r"\fBtortie\fR [\fIOPTION\fR...] \fICOMMAND\fR [\fIARGUMENT\fR...]"),
        *_section(
            "DESCRIPTION", "Resources and words are calicoctl's. Standard output has the answer, and nothing else."
        ),
        ".SH OPTIONS OF EVERY COMMAND",
        *_options(top),
        ".SH COMMANDS",
        *[line for parser in _leaves(top) for line in _command(parser)],
        *_table("EXIT STATUS", [(str(code), about) for code, about in EXIT_CODES.items()]),
        *_table("ENVIRONMENT", _ENVIRONMENT),
        *_table("FILES", _FILES),
        *_section("SEE ALSO", "calicoctl, kubectl(1), jq(1)"),
    ]
    return "\n".join(lines) + "\n"


def _first_small(text: str) -> str:
    return _safe(text[:1].lower() + text[1:].rstrip("."))


def _section(name: str, text: str) -> list[str]:
    return [f".SH {name}", text]


def _table(name: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f".SH {name}", *[line for word, about in rows for line in (".TP", rf"\fB{_safe(word)}\fR", _safe(about))]]


def _safe(text: str) -> str:
    """As text of a page: nothing in it is a request, and a hyphen can be copied as one."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _leaves(parser: CommandParser) -> Iterable[CommandParser]:
    known = below(parser)
    if not known:
        yield parser
    for one in known.values():
        yield from _leaves(one)


def _command(parser: CommandParser) -> Iterable[str]:
    yield f".SS {_safe(parser.prog)}"
    yield _safe(parser.description or "")
    yield from _options(parser, shared=False)
    command = parser.about
    if command is not None and command.examples:
        yield from (".PP", "Examples:", ".PP", ".RS 4", ".nf", *map(_safe, command.examples.splitlines()), ".fi", ".RE")
    if command is not None and command.more:
        yield from (".PP", _safe(command.more.replace("\n", " ")))


def _options(parser: CommandParser, *, shared: bool = True) -> Iterable[str]:
    """The shared ones stand once, at the top."""
    formatter = argparse.HelpFormatter(prog=parser.prog)
    common = {string for action in command_parser()._actions for string in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or (
            not shared and not common.isdisjoint(action.option_strings)
        ):
            continue
        yield ".TP"
        yield rf"\fB{_safe(formatter._format_action_invocation(action))}\fR"
        yield _safe(formatter._expand_help(action) if action.help else "")


def files() -> dict[str, str]:
    """What goes into a `share` folder, by its path there."""
    return {
        "man/man1/tortie.1": page(),
        "bash-completion/completions/tortie": BASH,
        "zsh/site-functions/_tortie": ZSH,
        "fish/vendor_completions.d/tortie.fish": FISH,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("share", type=Path, help="folder, such as /usr/local/share")
    share: Path = parser.parse_args().share
    for name, text in files().items():
        path = share / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8")
        beside.chmod(0o644)
        beside.replace(path)
        print(f"== {path}")


if __name__ == "__main__":
    main()
