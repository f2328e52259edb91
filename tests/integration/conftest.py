"""What several suites share: one Kubernetes API server, which starts when the first test asks for it.

TORTIE_BIN is the folder of the programs that are tested. The self-contained executable has lean transports only, so
with it the tests that ask its calls for library transports are left out. TORTIE_TRANSPORT says what calls work with
that do not ask.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer

from integration.plugin.kubernetes_store import Served
from integration.scheduling import ByFileAndGroup
from services.apiserver import shared_apiserver

SUBJECT = os.environ.get("TORTIE_BIN", "")
ELF = b"\x7fELF"


def self_contained(folder: str) -> bool:
    if not folder:
        return False
    with Path(folder, "calico").open("rb") as program:
        return program.read(len(ELF)) == ELF


def pytest_report_header() -> str:
    kind = "self-contained executable" if self_contained(SUBJECT) else "bundle"
    return f"subject: {kind} {SUBJECT}, transports: {os.environ.get('TORTIE_TRANSPORT') or 'lean'}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileAndGroup | None:
    """With `--dist loadfile`."""
    return ByFileAndGroup(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not self_contained(SUBJECT):
        return
    unfit = [item for item in items if wants_library(item)]
    config.hook.pytest_deselected(items=unfit)
    items[:] = [item for item in items if item not in unfit]


def wants_library(item: pytest.Item) -> bool:
    """Whether it calls a program with library transports; tests that load them themselves do not."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    called = {"binaries", "bridge_binaries"} & set(getattr(item, "fixturenames", ()))
    return parameters.get("transport") == "library" and bool(called)


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    with shared_apiserver() as server, Served(server) as served:
        yield served
