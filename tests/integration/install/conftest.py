"""A host to install to, and the installer as its container runs it: alone in a root with nothing but the executable."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import SUBJECT, self_contained
from integration.dist.conftest import executable
from integration.install.rig import Hostile, Image

__all__ = ["executable"]  # a fixture


@pytest.fixture(autouse=True)
def _alone() -> None:
    """An image has nothing but the executable, and a host nothing of the image."""
    if SUBJECT and not self_contained(SUBJECT):
        pytest.skip("NOT OF THE BUNDLE: what is installed has to run alone, so the executable is installed")


@pytest.fixture
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory: how long a disk takes is of no interest."""
    folder = Path("/dev/shm", f"tortie-install-{tmp_path_factory.mktemp('quick').stat().st_ino}")
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def image(executable: Path, quick: Path) -> Image:
    return Image(executable, quick / "root")


@pytest.fixture(scope="session")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("tracer") / "change_tracer"
    source = Path(__file__).with_name("change_tracer.c")
    subprocess.run(["cc", "-Wall", "-Werror", "-O1", "-o", program, source], check=True)
    return program


@pytest.fixture
def hostile(executable: Path, tracer: Path, quick: Path) -> Hostile:
    return Hostile(executable / "tortie", tracer, quick)
