"""Code of the product that nothing reaches from its executables: it is bound to something, or it goes.

What only tests call does not count as reached. Who adds something that is called by what this test cannot see writes it
down here, with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from house.reach import Definition, Reach

ROOT = Path(__file__).resolve().parents[3]
STARTS = [Definition("entrypoints.main", "main")]  # what packaging/launcher.py.in calls

# Modules, definitions or classes with all of theirs → who needs them.
EXCEPTIONS = {
    "adapters.memory": "the ports' promises in their shortest form, which tests of every level run over",
    "adapters.etcdv3.etcdrpc": "the package etcd3 looks up its services here",
    "domain.ipam.block:Block.is_consistent": "the invariant as code: properties hold every operation to it",
    "adapters.windows.memory_hns": "HNS in its shortest form, which tests of every level run over",
    "adapters.windows.memory_views": "of adapters.windows.memory_hns",
    "adapters.windows.memory_host": "the rest of a Windows host, likewise",
    "adapters.windows.seam:ADDRESS_TAKEN": "what HNS refuses with, in its fakes",
    "adapters.windows.seam:ENDPOINT_ATTACHED": "likewise",
    "adapters.windows.seam:NETWORK_EXISTS": "likewise",
    "usecases.ipam.affinities": "kept for Windows nodes, and for taking a node or a pool out of service",
    "usecases.ipam.owners": "kept for Felix's part of a live migration, which ours is tested against",
    "usecases.ipam.release_listed:free_cooled_down": "kept for a service that collects all the time",
    "domain.ipam.owner_update:require_sense": "of usecases.ipam.owners",
    "domain.ipam.errors:InCooldown": "of usecases.ipam.owners",
}


@pytest.fixture(scope="module")
def missed() -> set[Definition]:
    return Reach(ROOT, STARTS).missed()


def _covers(exception: str, definition: Definition) -> bool:
    at = str(definition)
    return at == exception or at.startswith((f"{exception}.", f"{exception}:"))


def test_nothing_is_out_of_reach(missed):
    left = sorted(str(one) for one in missed if not any(_covers(exception, one) for exception in EXCEPTIONS))
    assert not left, "nothing reaches these from the executables"


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_each_exception_is_still_one(exception, missed):
    assert any(_covers(exception, one) for one in missed), "it is reached by now, or gone: take it off the list"


SAMPLE = """
from ports.other import Base, called, not_called
import sqlite3

LIMIT, BESIDE = 1, 2
UNREAD = 3
TABLE = {"a": Base}


class Story(Base):
    _ways = {1: None}

    def __init__(self): self.told()
    def told(self): return called(LIMIT)
    def untold(self): return not_called()


class Row(sqlite3.Row):
    def keys(self): return ()


def late():
    return UNREAD


def main():
    from usecases import late

    getattr(Story(), "by_name")
    return late.now(Row)
"""
OTHER = """
class Base:
    def by_name(self): pass
    def never(self): pass

def called(count): return called(count - 1)
def not_called(): return not_called()
"""


def test_what_reach_sees(tmp_path):
    for path, text in {
        "entrypoints/main.py": SAMPLE,
        "ports/other.py": OTHER,
        "usecases/late.py": "def now(row): pass\ndef then(): pass\n",
    }.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    missed = {str(one) for one in Reach(tmp_path, STARTS).missed()}
    assert missed == {
        "entrypoints.main:TABLE",
        "entrypoints.main:UNREAD",
        "entrypoints.main:late",
        "entrypoints.main:Story.untold",
        "ports.other:Base.never",
        "ports.other:not_called",
        "usecases.late:then",
    }
