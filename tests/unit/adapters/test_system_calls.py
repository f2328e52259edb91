"""System calls by each of their ways; the built-in module of a static interpreter is played by one made here."""

from __future__ import annotations

import subprocess
import sys
from errno import EBADF, ENOENT
from pathlib import Path

import pytest

from adapters.linux.process.system_calls import death_signal_setter, filesystem_type, setns

ROOT = Path(__file__).resolve().parents[3]
CLONE_NEWNET = 0x40000000
PROC_MAGIC = 0x9FA0


def test_a_refusal_has_its_errno():
    with pytest.raises(OSError, match="Bad file descriptor") as refused:
        setns(-1, CLONE_NEWNET)
    assert refused.value.errno == EBADF


def test_the_type_of_a_file_system_is_its_magic_number_or_nothing():
    assert filesystem_type("/proc") == PROC_MAGIC
    assert filesystem_type("/nowhere/at/all") == 0


def test_a_child_can_be_tied_to_our_life():
    assert death_signal_setter(9) is not None


STATIC = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
class BuiltIn:
    def setns(self, descriptor, kind):
        print("setns", descriptor, kind)
    def prctl(self, option, value):
        print("prctl", option, value)
        raise PermissionError
    def inotify_init1(self, flags):
        return flags + 1
    def inotify_add_watch(self, descriptor, path, mask):
        print("watch", descriptor, path, mask)
        return 5
    def statfs_type(self, path):
        raise FileNotFoundError({ENOENT}, "no", path)
sys.builtin_module_names += ("_tortie_syscalls",)
sys.modules["_tortie_syscalls"] = BuiltIn()
from adapters.linux.process import system_calls
import os
if not hasattr(os, "setns"):
    system_calls.setns(7, 8)
else:
    print("setns 7 8")
system_calls.death_signal_setter(9)()
print(system_calls.inotify_add_watch(system_calls.inotify_init(7), "/x", 2))
print(system_calls.filesystem_type("/proc"), "_ctypes" in sys.modules)
"""


def test_a_static_interpreters_own_module_is_preferred():
    done = subprocess.run([sys.executable, "-ISB", "-c", STATIC], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["setns 7 8", "prctl 1 9", "watch 8 b'/x' 2", "5", "0 False"]


def test_where_functions_cannot_be_looked_up_nothing_is_tied_and_no_type_known():
    """A static interpreter without that module."""
    code = "import sys; sys.modules['_ctypes'] = None\n" + STATIC.replace("sys.builtin_module_names +=", "ignored =")
    code = code.replace("system_calls.setns(7, 8)", "pass").replace("setter(9)()", "setter(9)")
    code = code.replace("print(system_calls.inotify", "#")
    done = subprocess.run([sys.executable, "-ISB", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].startswith("0 ")


def test_loading_ctypes_is_never_needed():
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    code += "from adapters.linux.process.system_calls import *\nfrom adapters.linux.process import system_calls as s\n"
    code += "s.filesystem_type('/proc'); s.death_signal_setter(9)\ntry: s.setns(-1, 0)\nexcept OSError: pass\n"
    code += "print('ctypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-ISB", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
