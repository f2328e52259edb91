"""Windows under Wine, with the fake DLLs in its system folder. `make windows` builds what is tried here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_hns.build import for_windows, powershell

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "packaging" / "windows"))

from wine import Wine  # noqa: E402 - not before it can be found


@pytest.fixture(scope="session")
def wine() -> Iterator[Wine]:
    with Wine() as wine:
        system = wine.drive_c / "windows" / "system32"
        for_windows(system)
        powershell(system / "WindowsPowerShell" / "v1.0")
        yield wine


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with calico.exe."""
    return Path(os.environ["TORTIE_WINDOWS_BIN"])
