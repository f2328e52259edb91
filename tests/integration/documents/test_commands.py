"""Commands that documents show do what is said: each document's are run in their order, by one shell, as root.

The shell is in namespaces of its own for the network, mounts and processes, with a default route that leads nowhere;
whatever commands write to goes with it. What a document calls the executable is the one that is tested; a block that
needs the self-contained one is left out where that is not the subject, which is said.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from house.command_blocks import ROOT, Block, agrees, blocks, documents
from integration.conftest import SUBJECT, self_contained
from services.etcd import find_etcd

SANDBOX = Path(__file__).parent / "sandbox.sh"
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
FOLDER = "/run/tortie-documents"  # of the sandbox
OURS = ("TORTIE_", "CNI_", "MAKE", "PYTEST", "KEEP", "ETCD")  # variables that no reader has,
OURS += ("COLUMNS", "LINES")  # or that readline sets in a process of pytest, though nothing is on a terminal there
LONGEST = 300
CLUSTER = "TORTIE_DOCUMENTS_CLUSTER" in os.environ  # as in `make documents`
SERVERS = ("etcd", "cluster")


def runnable(document: str) -> list[Block]:
    return [
        block
        for block in blocks(document)
        if "not run" not in block.sayings and (CLUSTER or not needs(block, "cluster"))
    ]


def needs(block: Block, thing: str) -> bool:
    return thing in block.sayings.get("with", "").split()


def script(found: list[Block]) -> str:
    """Each step says its number before it begins; what a command prints goes into a file of that number."""
    lines = []
    for number, block in enumerate(found):
        lines += [f"server {name}" for name in SERVERS if needs(block, name)]
        lines += [block.sayings.get("after", ":")]
        for at, command in enumerate(block.commands):
            wanted = block.sayings.get("exit code", "0") if at == len(block.commands) - 1 else "0"
            lines += [f"echo {number}.{at} > {FOLDER}/at", "set -e" if wanted == "0" else "set +e", "{"]
            lines += [command.text.rstrip("\n"), f"}} > {FOLDER}/{number}.{at} 2>&1 < /dev/null"]
            lines += [] if wanted == "0" else [f"ended $? {wanted}"]
    return "\n".join([*lines, f"echo done > {FOLDER}/at"]) + "\n"


def run(found: list[Block], keep: Path) -> str:
    """What the shell says itself, which is nothing if all went well."""
    needs_etcd = any(needs(block, "etcd") for block in found)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
    environment |= {"KEEP": str(keep), "ETCD": find_etcd() if needs_etcd else ""}
    ran = subprocess.run(
        [*NAMESPACES, str(SANDBOX), str(ROOT), SUBJECT],
        input=script(found),
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    return f"{ran.stdout[-500:]}{ran.stderr[-2000:]}"


@pytest.mark.parametrize("document", [name for name in documents() if runnable(name)])
def test_commands_of_a_document(document, tmp_path):
    found = runnable(document)
    if not self_contained(SUBJECT) and any(needs(block, "executable") for block in found):
        pytest.skip(f"{document} is about the self-contained executable: SUBJECT=dist")
    said = run(found, tmp_path)
    at = (tmp_path / "at").read_text().strip() if (tmp_path / "at").exists() else ""
    if at != "done":
        number, step = at.split(".") if at else (0, 0)
        command = found[int(number)].commands[int(step)].text
        printed = (tmp_path / at).read_text()[-3000:] if (tmp_path / at).is_file() else ""
        pytest.fail(f"{document}, line {found[int(number)].line}: {command}\n{printed}\n{said}", pytrace=False)
    for number, block in enumerate(found):
        for step, command in enumerate(block.commands):
            printed = (tmp_path / f"{number}.{step}").read_text()
            if command.printed is not None and not agrees(printed, command.printed):
                where = f"{document}, line {block.line}: {shlex.quote(command.text)}"
                pytest.fail(
                    f"{where} prints\n{printed}\nand is said to print\n{chr(10).join(command.printed)}", pytrace=False
                )
