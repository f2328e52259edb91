"""Importing in the self-contained executable: quick, and with the same outcome as by importlib.

The program here is made as the executable is, but of modules that are about importing, and runs what it is given on
standard input. It goes importlib's own way once there is another finder, so that each piece of code can be run both
ways: the outcomes are the same, and what they should be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGING = Path(__file__).resolve().parents[3] / "packaging" / "executable"

MAIN = """
import sys
import time
import threading

def main():
    exec(compile(sys.stdin.read(), "given", "exec"), {"__name__": "given"})
    sys.stdout.flush()
    return 0

def all_that_is_frozen():
    import json.decoder, collections.abc, contextlib, socket, textwrap, string
    import {names}
"""

# The code of modules by name; those with others below them are packages.
MODULES = {
    "domain": "",
    "domain.plain": "VALUE = 1",
    "domain.package": "",
    "domain.package.sibling": "NAME = 'sibling'",
    "domain.package.inner": "from . import sibling\nfrom .sibling import NAME\nfrom ..plain import VALUE",
    "domain.package.deep": "",
    "domain.package.deep.down": "HERE = __name__, __package__",
    "domain.ring_a": "from domain import ring_b\nVALUE = 1",
    "domain.ring_b": "import domain.ring_a as a\nSEEN = hasattr(a, 'VALUE')",
    "domain.torn_a": "from domain.torn_b import OTHER\nVALUE = 1",
    "domain.torn_b": "from domain.torn_a import VALUE\nOTHER = 1",
    "domain.early": "import domain.early_below",
    "domain.early_below": "import domain\ndomain.early_below",
    "domain.broken": "import domain.plain\ndef fail():\n    raise ValueError('broken')\nfail()",
    "domain.exiting": "raise SystemExit(3)",
    "domain.broken_package": "import domain.broken_package.below\n1 / 0",
    "domain.broken_package.below": "",
    "domain.lacking": "def load():\n    import domain.nowhere\nload()",
    "domain.replaced": "import sys\nclass Other: VALUE = 5\nsys.modules[__name__] = Other",
    "domain.vanished": "import sys\ndel sys.modules[__name__]",
    "domain.pulling": "import domain.pulling.pulled",
    "domain.pulling.pulled": "",
    "domain.fragile": "import domain.broken_below\n",
    "domain.broken_below": "raise KeyError('below')",
    # A thread that asks for the module that is loading: it has to wait until it is whole.
    "domain.starter": """
import threading, time
seen, asked = [], threading.Event()
def ask():
    asked.set()
    import domain.starter
    seen.append(hasattr(domain.starter, "VALUE"))
    from domain.starter import VALUE
    seen.append(VALUE)
thread = threading.Thread(target=ask)
thread.start()
asked.wait()
time.sleep(0.2)
VALUE = 1
""",
    # The same, and the module then asks for what the thread is loading: one of them must not wait.
    "domain.knot": """
import threading, time
asked = threading.Event()
def ask():
    import domain.knot_other
thread = threading.Thread(target=ask)
thread.start()
asked.wait()
time.sleep(0.2)
import domain.knot_other
VALUE = 1
""",
    "domain.knot_other": "import sys\nsys.modules['domain.knot'].asked.set()\nimport domain.knot\nVALUE = 2",
    # Asked for by two threads, and broken in the end: both get to know.
    "domain.failing_late": """
import threading, time
asked, outcome = threading.Event(), []
def ask():
    asked.set()
    try:
        import domain.failing_late
    except BaseException as error:
        outcome.append(repr(error))
    else:
        outcome.append("loaded")
import builtins
builtins.late = thread, outcome = threading.Thread(target=ask), outcome
thread.start()
asked.wait()
time.sleep(0.2)
raise ValueError("late")
""",
}
MODULES |= {
    f"domain.crowd_{n}": f"import time\nfrom domain import crowd_{(n + 1) % 12}\ntime.sleep(0.001)\nVALUE = {n}"
    for n in range(12)
}
ELSEWHERE = """
class Nothing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None
sys.meta_path.insert(0, Nothing)
"""
START = """
import json, sys, threading, time
def show(outcome):
    print(json.dumps(outcome))
def error_of(action):
    try:
        action()
    except BaseException as error:
        return [type(error).__name__, str(error), getattr(error, "name", None)]
def loaded(prefix="domain"):
    return sorted(name for name in sys.modules if name.partition(".")[0] == prefix)
"""
Run = Callable[..., Any]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executable of the modules here."""
    folder = tmp_path_factory.mktemp("importing")
    sources = folder / "sources"
    main = MAIN.replace("{names}", ", ".join(MODULES))
    for name, text in {"entrypoints": "", "entrypoints.main": main, **MODULES}.items():
        package = name == "entrypoints" or any(other.startswith(f"{name}.") for other in MODULES)
        path = sources / name.replace(".", "/") / "__init__.py" if package else sources / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stage = folder / "stage"
    stage.mkdir()
    build = "import dist, pathlib, sys; dist.compile_all(dist.runtime(dist.here()), *map(pathlib.Path, sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGING)}
    subprocess.run([sys.executable, "-c", build, stage, sources], env=environment, check=True)
    return stage / "calico"


@pytest.fixture
def run(program: Path) -> Run:
    """What a piece of code shows, run both ways, which must agree."""

    def once(code: str) -> Any:
        done = subprocess.run([program], input=code, env={}, text=True, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def both(code: str) -> Any:
        code = textwrap.dedent(code)
        quick = once(START + code)
        assert quick == once(START + ELSEWHERE + code)
        return quick

    both.once = lambda code: once(START + textwrap.dedent(code))
    return both


# --- that it is quick -----------------------------------------------------------------------------------------------

COUNT = """
calls = []
sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
import domain.package.inner, textwrap
sys.setprofile(None)
show(calls.count("find_spec"))
"""


def test_importlib_is_not_asked_for_frozen_modules(run: Any) -> None:
    assert run.once(COUNT) == 0


def test_importlib_is_asked_when_there_is_another_finder(run: Any) -> None:
    """That comparing both ways compares something."""
    assert run.once(ELSEWHERE + COUNT) > 3


def test_importlib_is_asked_when_there_are_threads(run: Any) -> None:
    code = "end = threading.Event()\nthread = threading.Thread(target=end.wait)\nthread.start()\n"
    assert run.once(code + COUNT + "end.set()") > 3


# --- what a module is -----------------------------------------------------------------------------------------------


def test_modules_look_the_same(run: Run) -> None:
    """Every attribute, of ours and the standard library's, packages and others, and of their specs."""
    shown = run("""
        import domain.package.inner, domain.package.deep.down, domain.plain, textwrap, json.decoder, string
        def look(name):
            module = sys.modules[name]
            spec = {key: repr(value) for key, value in vars(module.__spec__).items()}
            own = [key for key in sorted(vars(module)) if key.startswith("__") and key != "__builtins__"]
            own = {key: repr(vars(module)[key]) for key in own}
            return [repr(module), sorted(vars(module)), spec, own, module.__spec__.parent, module.__spec__.has_location]
        show({name: look(name) for name in loaded() + loaded("json") + ["textwrap", "string"]})
    """)
    assert shown["domain.package.inner"][0] == "<module 'domain.package.inner' (frozen)>"
    assert "'__path__'" in repr(shown["domain.package"])
    assert shown["domain.plain"][4] == "domain"
    assert len(shown) > 8


def test_a_module_is_bound_in_its_package(run: Run) -> None:
    assert run("""
        import domain.package.deep.down
        top = sys.modules["domain"]
        show([top.package.deep.down is sys.modules["domain.package.deep.down"], top.package.deep.down.HERE, loaded()])
    """) == [
        True,
        ["domain.package.deep.down", "domain.package.deep"],
        ["domain", "domain.package", "domain.package.deep", "domain.package.deep.down"],
    ]


def test_a_module_may_put_another_in_its_place(run: Run) -> None:
    assert run("""
        import domain.replaced
        from domain import replaced
        show([domain.replaced.VALUE, replaced is sys.modules["domain.replaced"]])
    """) == [5, True]


def test_a_module_that_removes_itself_is_an_error(run: Run) -> None:
    assert run("""
        def load(): import domain.vanished
        show([error_of(load), loaded()])
    """) == [["KeyError", "'domain.vanished'", None], ["domain"]]


# --- forms of import ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("import domain.package.inner as x", "x.__name__"),
        ("import domain.package.inner", "domain.package.inner.NAME"),
        ("import domain.package.inner", "[domain.__name__, domain.package.inner.VALUE]"),
        ("from domain import plain", "plain.VALUE"),
        ("from domain.package import inner, sibling", "[inner.sibling is sibling, inner.__package__]"),
        ("from domain.package import *", "sorted(loaded())"),
        ("import domain.pulling", "domain.pulling.pulled.__name__"),
        ("x = __import__('domain.package.inner')", "x.__name__"),
        ("x = __import__('domain.package', fromlist=['inner'])", "[x.__name__, x.inner.__name__]"),
        ("x = __import__('package.inner', {'__package__': 'domain', '__spec__': None}, None, ('NAME',), 1)", "x.NAME"),
        ("import collections.abc, json.decoder, contextlib, socket", "json.decoder.__name__"),
    ],
)
def test_forms_of_import(statement: str, value: str, run: Run) -> None:
    assert run(f"{statement}\nshow({value})") is not None


def test_a_ring_of_modules(run: Run) -> None:
    assert run("import domain.ring_a\nshow([domain.ring_b.SEEN, domain.ring_a.VALUE])") == [False, 1]


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "kind", "name"),
    [
        ("import domain.nowhere", "ModuleNotFoundError", "domain.nowhere"),
        ("import domain.nowhere.below", "ModuleNotFoundError", "domain.nowhere"),
        ("import nowhere", "ModuleNotFoundError", "nowhere"),
        ("import domain.plain.below", "ModuleNotFoundError", "domain.plain.below"),
        ("from domain import nowhere", "ImportError", "domain"),
        ("from domain.package import nowhere", "ImportError", "domain.package"),
        ("import domain.lacking", "ModuleNotFoundError", "domain.nowhere"),
        ("from domain import lacking", "ModuleNotFoundError", "domain.nowhere"),
        ("import domain.torn_a", "ImportError", "domain.torn_a"),
        ("import domain.broken", "ValueError", None),
        ("from domain import broken", "ValueError", None),
        ("import domain.fragile", "KeyError", None),
        ("import domain.exiting", "SystemExit", None),
        ("sys.modules['domain.plain'] = None; import domain.plain", "ModuleNotFoundError", "domain.plain"),
        ("__import__('')", "ValueError", None),
        ("__import__('plain', {'__package__': 'domain', '__spec__': None}, None, (), 5)", "ImportError", None),
        ("import domain; domain.package.inner", "AttributeError", "package"),
        ("import domain.early", "AttributeError", "early_below"),
    ],
)
def test_errors(statement: str, kind: str, name: str | None, run: Run) -> None:
    """The same error both ways, a second time too, and nothing of the module is left behind."""
    found = run(f"""
        def load():
            {statement}
        show([error_of(load), loaded(), error_of(load), loaded()])
    """)
    assert (found[0][0], found[0][2]) == (kind, name), found
    assert found[0] == found[2]
    assert found[1] == found[3]
    assert not {"domain.broken", "domain.lacking", "domain.torn_a", "domain.exiting"}.intersection(found[1])


def test_traces_lead_from_the_module_to_where_it_fails(run: Run) -> None:
    places = run("""
        def load(): import domain.broken
        try:
            load()
        except ValueError as error:
            trace, places = error.__traceback__, []
            while trace is not None:
                places.append([trace.tb_frame.f_code.co_filename, trace.tb_frame.f_code.co_name, trace.tb_lineno])
                trace = trace.tb_next
            show([place for place in places if place[0].startswith("domain")])
    """)
    assert places == [["domain/broken.py", "<module>", 4], ["domain/broken.py", "fail", 3]]


def test_a_package_that_fails_keeps_what_it_has_loaded(run: Run) -> None:
    assert run("""
        def load(): import domain.broken_package.below
        show([error_of(load)[0], loaded(), error_of(load)])
    """) == ["ZeroDivisionError", ["domain", "domain.broken_package.below"], None]


def test_below_what_is_no_package_any_more_nothing_is_found(run: Run) -> None:
    assert run("""
        import domain
        del domain.__path__
        def load(): import domain.plain
        show(error_of(load))
    """) == ["ModuleNotFoundError", "No module named 'domain.plain'; 'domain' is not a package", "domain.plain"]


def test_a_module_can_be_loaded_after_it_has_failed(run: Run) -> None:
    assert run("""
        import builtins
        def load(): import domain.torn_a
        first = error_of(load)[0]
        import domain.plain
        sys.modules["domain.torn_b"] = domain.plain
        domain.plain.OTHER = 7
        load()
        show([first, sys.modules["domain.torn_a"].OTHER, sys.modules["domain"].torn_a.VALUE])
    """) == ["ImportError", 7, 1]


# --- threads --------------------------------------------------------------------------------------------------------


def test_threads_wait_until_a_module_is_whole(run: Run) -> None:
    assert run("""
        import domain.starter
        domain.starter.thread.join(10)
        show([domain.starter.thread.is_alive(), domain.starter.seen])
    """) == [False, [True, 1]]


def test_nobody_waits_for_ever(run: Run) -> None:
    """A module and a thread of its own that load each other's modules."""
    assert run("""
        import domain.knot
        domain.knot.thread.join(10)
        show([domain.knot.thread.is_alive(), domain.knot.VALUE, domain.knot_other.VALUE])
    """) == [False, 1, 2]


def test_who_waits_for_a_module_that_fails_tries_it_himself(run: Run) -> None:
    found = run("""
        def load(): import domain.failing_late
        first = error_of(load)
        import builtins
        builtins.late[0].join(10)
        show([first, loaded()])
    """)
    assert found == [["ValueError", "late", None], ["domain"]]


@pytest.mark.parametrize("turn", range(3))
def test_threads_that_import_at_once(turn: int, run: Run) -> None:
    """Twelve modules in a ring, asked for by twelve threads from twelve ends; nobody sees a half one."""
    assert run(f"""
        together, seen = threading.Barrier(12), {{}}
        def load(n):
            together.wait()
            name = f"domain.crowd_{{n}}"
            seen[n] = error_of(lambda: __import__(name))
        threads = [threading.Thread(target=load, args=((n * 5 + {turn}) % 12,)) for n in range(12)]
        [thread.start() for thread in threads]
        [thread.join(20) for thread in threads]
        values = [sys.modules[f"domain.crowd_{{n}}"].VALUE for n in range(12)]
        show([sum(thread.is_alive() for thread in threads), values, all(found is None for found in seen.values())])
    """) == [0, list(range(12)), True]


def test_a_child_process_imports_as_its_parent(run: Run) -> None:
    assert (
        run("""
        import os
        import domain.package
        child = os.fork()
        if child == 0:
            import domain.package.inner, textwrap
            os._exit(domain.package.inner.VALUE + 6)
        show(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
        == 7
    )
