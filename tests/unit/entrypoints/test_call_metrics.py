"""Counting calls in a file that Prometheus reads."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapters.memory.log import RecordingLog
from descriptors import replaced, signals_restored, stdin
from entrypoints import bridge, calico, calico_ipam
from entrypoints.call_metrics import (
    BOUNDS,
    CALLS,
    DURATION,
    EMPTY,
    FILE,
    LABELS,
    SET_ASIDE,
    FinishedCall,
    Senseless,
    checked,
    count_call,
    with_call,
)
from ports.errors import BadConfiguration, NoWay, Refused, Unavailable
from worlds.no_ports import opener_without_ports

ROOT = Path(__file__).resolve().parents[3]
ADD = ("calico", "ADD", "success", "etcdv3")
DEL = ("calico", "DEL", "try-again-later", "kubernetes")


def call(labels: tuple[str, ...] = ADD, microseconds: int = 15_000) -> FinishedCall:
    return FinishedCall(labels, microseconds)


def samples(text: str) -> dict[tuple[str, ...], float]:
    """As Prometheus' own parser reads it: (name, values of labels…) to number."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("counter", "histogram")
        for sample in family.samples:
            found[sample.name, *[sample.labels[name] for name in (*LABELS, "le") if name in sample.labels]] = (
                sample.value
            )
    return found


def counted(folder: Path, labels: tuple[str, ...] = ADD) -> float:
    return samples((folder / FILE).read_text())[CALLS, *labels]


def others(folder: Path) -> list[str]:
    """What is in the folder beside the file and its lock."""
    return sorted({path.name for path in folder.iterdir()} - {FILE, ".tortie_cni.lock"})


def test_prometheus_reads_what_is_written() -> None:
    text = EMPTY
    for labels, microseconds in ((ADD, 9_000), (DEL, 7), (ADD, 10_000), (ADD, 10_001), (ADD, 61_000_000)):
        text = with_call(checked(text), call(labels, microseconds))
    read = samples(text)
    assert read[CALLS, *ADD] == read[f"{DURATION}_count", *ADD] == 4
    assert read[f"{DURATION}_sum", *ADD] == 61.029001
    assert [read[f"{DURATION}_bucket", *ADD, bound] for bound in (*BOUNDS, "+Inf")] == [2, *[3] * 12, 4]
    assert read[CALLS, *DEL] == read[f"{DURATION}_bucket", *DEL, BOUNDS[0]] == 1
    assert len(read) == 2 * (1 + len(BOUNDS) + 3)


def test_the_lines_of_a_metric_stand_together() -> None:
    """As the format wants it."""
    text = with_call(with_call(EMPTY, call()), call(DEL))
    families = [line.split("{")[0].removesuffix("_bucket") for line in text.splitlines() if line[0] != "#"]
    assert families[:3] == [CALLS, CALLS, DURATION]
    assert CALLS not in families[3:]


def test_calls_add_up_and_anybody_may_read_them(tmp_path: Path) -> None:
    folder, log, umask = tmp_path / "a/b", RecordingLog(), os.umask(0o077)
    try:
        for labels in (ADD, DEL, ADD):
            count_call(str(folder), call(labels), log)
    finally:
        os.umask(umask)
    assert (counted(folder), counted(folder, DEL)) == (2, 1)
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o644
    assert stat.S_IMODE((folder / ".tortie_cni.lock").stat().st_mode) == 0o600
    assert others(folder) == []
    assert log.shown() == []


def test_who_finds_the_lock_taken_leaves_its_count_for_the_next(tmp_path: Path) -> None:
    log = RecordingLog()
    count_call(str(tmp_path), call(), log)
    lock = os.open(tmp_path / ".tortie_cni.lock", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for number in range(3):
        count_call(str(tmp_path), call(DEL, number), log)
    assert counted(tmp_path) == 1
    assert len(others(tmp_path)) == 3
    os.close(lock)
    (tmp_path / ".tortie_cni.pending,1,a b,ADD,x,y,5").touch()
    (tmp_path / ".tortie_cni.pending,nonsense").touch()
    count_call(str(tmp_path), call(), log)
    assert (counted(tmp_path), counted(tmp_path, DEL)) == (2, 3)
    assert others(tmp_path) == []
    assert log.shown() == []


def test_what_cannot_be_taken_away_has_nobody_counted_twice(tmp_path: Path) -> None:
    """A folder has the name of one that is left, and stands before or after the others."""
    log = RecordingLog()
    for name in ("0", "z"):
        (tmp_path / f".tortie_cni.pending,{name}").mkdir(parents=True)
    for number in range(4):
        (tmp_path / f".tortie_cni.pending,{number},{','.join(DEL)},5").touch()
    for _ in range(3):
        count_call(str(tmp_path), call(), log)
    assert (counted(tmp_path), counted(tmp_path, DEL)) == (3, 4)
    assert len(log.shown()) == 3


def test_what_is_left_while_somebody_merges_is_taken_along(tmp_path: Path) -> None:
    """The one who merges looks once more after giving up the lock, since nobody else may come."""

    class Rival(RecordingLog):
        def warning(self, message: str, **fields: object) -> None:
            """It is heard while the lock is held."""
            super().warning(message, **fields)
            count_call(str(tmp_path), call(DEL), RecordingLog())
            assert len(others(tmp_path)) == 2

    (tmp_path / FILE).write_text("damaged")
    count_call(str(tmp_path), call(), Rival())
    assert (counted(tmp_path), counted(tmp_path, DEL)) == (1, 1)
    assert others(tmp_path) == [SET_ASIDE]


def test_a_lock_that_is_held_for_ever_fills_no_folder(tmp_path: Path) -> None:
    log = RecordingLog()
    count_call(str(tmp_path), call(), log)
    for number in range(1000):
        (tmp_path / f".tortie_cni.pending,{number},{','.join(ADD)},1").touch()
    lock = os.open(tmp_path / ".tortie_cni.lock", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    count_call(str(tmp_path), call(), log)
    os.close(lock)
    assert len(others(tmp_path)) == 1000
    assert "held for too long" in str(log.shown())
    count_call(str(tmp_path), call(), log)
    assert counted(tmp_path) == 1002


def test_many_processes_lose_no_count(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from adapters.memory.log import RecordingLog\n"
        "from entrypoints.call_metrics import FinishedCall, count_call\n"
        f"for number in range(100): count_call({str(tmp_path)!r}, FinishedCall({ADD!r}, number), RecordingLog())\n"
    )
    processes = [subprocess.Popen([sys.executable, "-ISBc", program]) for _ in range(8)]
    assert [process.wait(300) for process in processes] == [0] * 8
    assert counted(tmp_path) == 800
    assert others(tmp_path) == []


GOOD = with_call(EMPTY, call(microseconds=1))


@pytest.mark.parametrize(
    "text",
    [
        *("", "\0" * 700, GOOD[:-1], GOOD[: len(GOOD) // 2], GOOD + "x 1\n", GOOD.replace("etcdv3", "etcd\0", 1)),
        *(GOOD.replace(" 1\n", " 2\n", 1), GOOD.replace(" 1\n", " -1\n"), GOOD.replace("0.02", "0.025")),
        *(GOOD.replace("Calls", "calls"), GOOD.replace('="calico"', ""), GOOD.replace(" 1\n", f" {'1' * 5000}\n")),
        *(GOOD.replace('le="60"} 1', 'le="60"} 0'), GOOD + GOOD, GOOD.replace("# HELP", "#", 1), GOOD[:50] + GOOD[51:]),
        GOOD.replace(f"{DURATION}_count{{", f"{DURATION}_count{{x"),
    ],
)
def test_a_damaged_file_is_set_aside_and_counting_begins_anew(text: str, tmp_path: Path) -> None:
    """The same of a file that a version with other metrics has written."""
    log = RecordingLog()
    (tmp_path / FILE).write_text(text)
    with pytest.raises(Senseless):
        with_call(checked(text), call())
    count_call(str(tmp_path), call(), log)
    assert counted(tmp_path) == 1
    assert (tmp_path / SET_ASIDE).read_text() == text
    (record,) = log.shown()
    assert "begins anew" in record


def test_what_is_no_file_is_set_aside_too(tmp_path: Path) -> None:
    log = RecordingLog()
    os.mkfifo(tmp_path / FILE)
    count_call(str(tmp_path), call(), log)
    assert stat.S_ISFIFO((tmp_path / SET_ASIDE).stat().st_mode)
    (tmp_path / FILE).unlink()
    (tmp_path / "victim").write_text("precious")
    (tmp_path / FILE).symlink_to(tmp_path / "victim")
    count_call(str(tmp_path), call(), log)
    assert (tmp_path / SET_ASIDE).is_symlink()
    assert (tmp_path / "victim").read_text() == "precious"
    assert len(log.shown()) == 2
    assert counted(tmp_path) == 1


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".tortie_cni.prom.new").write_text("half")
    count_call(str(tmp_path), call(), RecordingLog())
    assert counted(tmp_path) == 1
    assert others(tmp_path) == []


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("relative", "it is not an absolute path"),
        ("/proc/nowhere", "no such file or directory"),
        ("/dev/null", "not a directory"),
        ("/dev/null/x", "not a directory"),
        ("/tmp/\0", "it cannot be the name of a file"),
        ("/tmp/" + "x" * 300, "file name too long"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line(folder: str, why: str) -> None:
    log = RecordingLog()
    count_call(folder, call(), log)
    (record,) = log.shown()
    assert why in record


def test_a_folder_that_nobody_may_change_is_one_line(tmp_path: Path) -> None:
    """The file stays as it was; root is kept out by what stands in the temporary file's place."""
    log = RecordingLog()
    count_call(str(tmp_path), call(), log)
    (tmp_path / ".tortie_cni.prom.new").mkdir()
    count_call(str(tmp_path), call(), log)
    assert len(log.shown()) == 1
    assert counted(tmp_path) == 1


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """In a process of its own, whose files may not grow."""
    count_call(str(tmp_path), call(), RecordingLog())
    program = (
        f"import resource, signal, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from adapters.memory.log import RecordingLog\n"
        "from entrypoints.call_metrics import FinishedCall, count_call\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))\n"
        f"log = RecordingLog(); count_call({str(tmp_path)!r}, FinishedCall({DEL!r}, 1), log); print(len(log.entries))\n"
    )
    done = subprocess.run([sys.executable, "-ISBc", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert counted(tmp_path) == 1
    assert others(tmp_path) == []


# --- what a call counts as --------------------------------------------------------------------------------------------

ASKED = {"CNI_CONTAINERID": "c1", "CNI_NETNS": "/var/run/netns/c1", "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin"}


def ran(folder: Path, verb: str = "ADD", error: Exception | None = None, **conf: object) -> tuple[str, ...]:
    """The labels under which a call of `calico` is counted that ends with the error when it first needs a port."""
    document = {"cniVersion": "1.0.0", "name": "net1", "type": "calico", "metrics_dir": str(folder), "nodename": "n1"}
    opener = opener_without_ports(error or Refused("no"))
    with signals_restored(), stdin(json.dumps({**document, **conf})):
        calico.main((), {**ASKED, "CNI_COMMAND": verb}, opener)
    return counted_labels(folder)


def counted_labels(folder: Path) -> tuple[str, ...]:
    (labels,) = [key[1:] for key in samples((folder / FILE).read_text()) if key[0] == CALLS]
    return labels


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Refused("no", 42), "refused"),
        (Unavailable("away"), "try-again-later"),
        (BadConfiguration("mend it"), "bad-request"),
        (NoWay("mend it"), "internal"),
        (KeyError("a bug"), "internal"),
    ],
)
def test_the_outcome_says_who_has_to_act(error: Exception, outcome: str, tmp_path: Path) -> None:
    assert ran(tmp_path, error=error) == ("calico", "ADD", outcome, "kubernetes")


def test_a_success_and_the_datastore_that_was_asked_for(tmp_path: Path) -> None:
    assert ran(tmp_path, "CHECK", datastore_type="etcdv3") == ("calico", "CHECK", "success", "etcdv3")
    assert ran(tmp_path / "1", "CHECK", etcd_endpoints="http://x") == ("calico", "CHECK", "success", "etcdv3")
    assert ran(tmp_path / "2", "CHECK", datastore_type='x"\n') == ("calico", "CHECK", "success", "unknown")


def test_an_answer_that_nobody_takes_is_no_success(tmp_path: Path) -> None:
    with replaced(1, os.open("/dev/full", os.O_WRONLY)):
        assert ran(tmp_path, "CHECK")[2] == "undelivered"


def test_the_other_plugins_count_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """STATUS of the bridge plugin fails here for want of its IPAM plugin, whoever the user is."""
    document = {"cniVersion": "1.1.0", "name": "net1", "metrics_dir": str(tmp_path)}
    with signals_restored(), stdin(json.dumps({**document, "cniVersion": "1.0.0"})):
        calico_ipam.main((), {**ASKED, "CNI_COMMAND": "CHECK"}, opener_without_ports(Refused("no")))
    assert counted_labels(tmp_path) == ("calico-ipam", "CHECK", "success", "kubernetes")
    for name in ("my-custom-cni", "bridge"):
        conf = {**document, "type": name, "ipam": {"type": "absent"}, "metrics_dir": str(tmp_path / name)}
        with signals_restored(), stdin(json.dumps(conf)):
            bridge.main(name, (), {**ASKED, "CNI_COMMAND": "STATUS"})
        plugin, verb, outcome, datastore = counted_labels(tmp_path / name)
        assert (plugin, verb, datastore) == (name, "STATUS", "none")
        assert outcome != "success"
    assert "Traceback" not in capfd.readouterr().err


def loaded_by_a_check(**conf: str) -> set[str]:
    """The modules that a whole call of `calico` loads, in a process of its own."""
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = ['calico']\n"
        "from entrypoints.main import main; code = main()\n"
        "os.write(2, ' '.join(['loaded', *sys.modules]).encode()); sys.exit(code)"
    )
    document = json.dumps({"cniVersion": "1.0.0", "name": "net1", **conf})
    words, asked = [sys.executable, "-ISBc", program], {**ASKED, "CNI_COMMAND": "CHECK"}
    done = subprocess.run(words, env=asked, input=document, text=True, capture_output=True, check=True)
    return set(done.stderr.partition("loaded ")[2].split())


def test_each_key_loads_one_module_and_without_it_none(tmp_path: Path) -> None:
    """Beside those that another call loads in any case, for the name of its datastore."""
    without = loaded_by_a_check()
    assert loaded_by_a_check(metrics_dir="", log_format="") == without
    assert loaded_by_a_check(log_format="json") - without == {"entrypoints.call_record"}
    counting = loaded_by_a_check(metrics_dir=str(tmp_path)) - without
    assert counting >= {"entrypoints.call_metrics"}
    assert {name for name in counting if name.startswith("entrypoints.") and "wiring" not in name} == {
        "entrypoints.call_metrics"
    }
    assert counted_labels(tmp_path) == ("calico", "CHECK", "success", "kubernetes")


def test_processes_that_are_killed_leave_a_file_that_goes_on(tmp_path: Path) -> None:
    """At whichever moment: no lock stays held, no half file is read, and what lies about is tidied up."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from adapters.memory.log import RecordingLog\n"
        "from entrypoints.call_metrics import FinishedCall, count_call\n"
        "print('ready', flush=True)\n"
        f"while True: count_call({str(tmp_path)!r}, FinishedCall({ADD!r}, 1), RecordingLog())\n"
    )
    for _ in range(3):
        words = [sys.executable, "-ISBc", program]
        processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            process.kill()
            process.communicate()
    log = RecordingLog()
    count_call(str(tmp_path), call(), log)
    assert counted(tmp_path) >= 1
    assert others(tmp_path) == []
    assert log.shown() == []


def test_an_unusable_folder_is_one_line_and_the_call_succeeds(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    document = {"cniVersion": "1.0.0", "name": "net1", "metrics_dir": str(tmp_path / "file")}
    with signals_restored(), stdin(json.dumps(document)):
        assert calico.main((), {**ASKED, "CNI_COMMAND": "CHECK"}, opener_without_ports(Refused("no"))) == 0
    answer, said = capfd.readouterr()
    assert answer == "OK\n"
    (line,) = said.splitlines()
    assert "[WARNING]" in line
    assert 'error="not a directory"' in line
