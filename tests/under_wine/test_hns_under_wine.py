"""The bindings' own tests once more, in a Windows process: its ABI, its C library, its CoTaskMemFree, its System32."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

from wine import CACHE, Wine, windows_path

ROOT = Path(__file__).resolve().parents[2]
BINDINGS = ROOT / "tests" / "integration" / "windows" / "test_hns_library.py"


def test_the_contract_holds_in_a_windows_process(wine: Wine) -> None:
    [python] = CACHE.glob("cpython-*/python.exe")
    packages = windows_path(Path(sysconfig.get_path("purelib")))
    runner = windows_path(ROOT / "tests" / "under_wine" / "on_windows.py")
    plain = ["-q", "--noconftest", "-c", "NUL", "-p", "no:cacheprovider"]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = wine.run(python, "-I", runner, packages, *plain, windows_path(BINDINGS), environment=alone, at=ROOT)
    said = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, said + done.stderr.decode("utf-8", "replace")
    assert re.search(r"\b5\d passed in", said), said
