"""pytest within a Windows interpreter: `on_windows.py SITE-PACKAGES ARGUMENTS…`, from the root of the sources.

The packages are those of the tests' environment, of which only pure Python is used. `_wmi`, which `platform` would ask
for the version of Windows, kills a process under Wine.
"""

from __future__ import annotations

import os
import sys

sys.dont_write_bytecode = True
sys.modules["_wmi"] = None
sys.path[:0] = [os.getcwd(), os.path.join(os.getcwd(), "tests"), sys.argv[1]]

import pytest  # noqa: E402 - not before it can be found

sys.exit(pytest.main(sys.argv[2:]))
