"""Modules of a package are imported without the package's own code, and the package afterwards whole."""

from __future__ import annotations

import importlib
import sys

import pytest

from adapters.wire.bare_packages import BarePackages


@pytest.fixture
def library(tmp_path, monkeypatch):
    """The names of what it has loaded, in order. `heavy.deep.part` imports `heavy.other`."""
    for name, text in {
        "heavy/__init__.py": "from heavy.log import LOADED; LOADED.append(__name__); from heavy.deep import part",
        "heavy/log.py": "LOADED = []",
        "heavy/other.py": "from heavy.log import LOADED; LOADED.append(__name__)",
        "heavy/deep/__init__.py": "from heavy.log import LOADED; LOADED.append(__name__)",
        "heavy/deep/part.py": "from heavy import other; other.LOADED.append(__name__)",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: sys.modules["heavy.log"].LOADED
    for name in [name for name in sys.modules if name.partition(".")[0] == "heavy"]:
        del sys.modules[name]


def test_a_module_is_loaded_without_its_packages(library):
    with BarePackages("heavy", "heavy.deep"):
        part = importlib.import_module("heavy.deep.part")
    assert library() == ["heavy.other", "heavy.deep.part"]
    assert (part.__name__, "heavy" in sys.modules, "heavy.deep" in sys.modules) == ("heavy.deep.part", False, False)


def test_afterwards_the_package_is_to_be_had_whole_with_the_same_modules(library):
    with BarePackages("heavy", "heavy.deep"):
        part = importlib.import_module("heavy.deep.part")
    whole = importlib.import_module("heavy")
    assert library() == ["heavy.other", "heavy.deep.part", "heavy", "heavy.deep"]
    assert whole.part is part


def test_one_that_is_imported_already_stays_as_it_is(library):
    whole = importlib.import_module("heavy")
    with BarePackages("heavy", "heavy.deep"):
        assert importlib.import_module("heavy") is whole
    assert sys.modules["heavy"] is whole


@pytest.mark.parametrize("names", [("no_such_library",), ("heavy", "heavy.nothing")])
def test_one_that_is_not_installed_is_named_and_leaves_nothing(library, names):
    with pytest.raises(ModuleNotFoundError, match=names[-1]), BarePackages(*names):
        raise AssertionError("there is nothing to import")
    assert "heavy" not in sys.modules
