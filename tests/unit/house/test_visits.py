"""A reader who follows one request has to open few files."""

from __future__ import annotations

import subprocess
import sys

from house.reach import PACKAGES, Definition
from house.visits import ROOT, visits

MOST = 49  # it goes down with files that become one; who needs another one says why in the commit


def test_an_ipam_add_enters_few_files():
    run = [sys.executable, "-B", str(ROOT / "tests/house/visits.py")]  # in a process whose environment may change
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = done.stdout.splitlines()
    assert "entrypoints/calico_ipam.py" in done.stdout
    assert len(files) <= MOST, done.stdout


def test_a_file_is_entered_by_its_functions_only():
    from domain.ipam.address import Address
    from domain.moment import rfc3339

    def action() -> None:
        class Local:
            made = 1

        rfc3339(0)
        rfc3339(1)
        str(Address(4, 1))
        Definition("not", "ours")

    entered = visits(action)
    assert entered[0] == "domain/moment.py"
    assert entered.count("domain/moment.py") == 1
    assert "domain/ipam/address.py" in entered
    assert all(file.startswith(PACKAGES) for file in entered)
