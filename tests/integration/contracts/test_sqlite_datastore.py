"""The embedded datastore keeps the port's contract, also when many processes use it and any of them is killed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from adapters.records.members import BadRecord
from adapters.sqlite.database import uuid4
from adapters.sqlite.datastore import SqliteDatastore
from contracts.datastore import SOON, DatastoreContract
from domain.cluster import Node
from domain.ipam.address import Cidr
from domain.ipam.block import Handle
from domain.resource import Metadata
from ports.datastore import HandleKey, Handles, NodeKey
from ports.errors import AlreadyExists, BadConfiguration, Expired, Unavailable

ROOT = Path(__file__).parents[3]
KEY = HandleKey("counter")
BLOCK = Cidr.parse("10.0.0.0/26")


CLOCK = SystemClock()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "datastore.db")


@pytest.fixture
def made(path):
    """The path of an empty datastore."""
    with SqliteDatastore(path, CLOCK, create=True) as store:
        store.open(CLOCK.deadline(5))
    return path


@pytest.fixture
def umask():
    """Sets the umask for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


class TestSqliteDatastore(DatastoreContract):
    @pytest.fixture
    def store(self, clock, path):
        with SqliteDatastore(path, clock, create=True) as store:
            yield store

    def put_text(self, store, key_text, text):
        store.open(SOON)
        with sqlite3.connect(store.path) as other:
            other.execute("INSERT INTO records VALUES (?, ?, 1)", (key_text, text))
        other.close()


# --- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0, 0o022, 0o777])
def test_the_files_are_private_and_the_folders_are_not_whatever_the_umask(tmp_path, umask, mask):
    """Design rule 16."""
    umask(mask)
    path = tmp_path / "var/lib/tortie/datastore.db"
    with SqliteDatastore(str(path), CLOCK, create=True) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"datastore.db": 0o600, "datastore.db-wal": 0o600, "datastore.db-shm": 0o600}
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in list(path.parents)[:3]] == [0o755] * 3


@pytest.mark.parametrize(
    ("mode", "owner", "told"),
    [(0o600, 0, ""), (0o640, 0, "mode 0640"), (0o666, 0, "mode 0666"), (0o600, 12345, "belongs to user 12345")],
)
def test_a_file_that_others_may_read_or_change_is_used_and_told(made, mode, owner, told):
    os.chmod(made, mode)
    os.chown(made, owner, -1)
    log = RecordingLog()
    with SqliteDatastore(made, CLOCK, log=log) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))
        store.get(KEY, CLOCK.deadline(5))
    warnings = log.shown("warning")
    assert len(warnings) == bool(told)
    assert told in "".join(warnings)


def test_closing_leaves_one_file(made):
    with SqliteDatastore(made, CLOCK) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))
    assert os.listdir(os.path.dirname(made)) == ["datastore.db"]


def test_what_was_written_is_there_for_the_next_process(made):
    with SqliteDatastore(made, CLOCK) as store:
        created = store.create(NodeKey("n"), Node(Metadata("n")), CLOCK.deadline(5))
    with SqliteDatastore(made, CLOCK) as store:
        assert store.get(NodeKey("n"), CLOCK.deadline(5)) == created


def test_a_store_that_was_closed_opens_again(made):
    store = SqliteDatastore(made, CLOCK)
    store.create(KEY, Handle({}), CLOCK.deadline(5))
    store.close()
    store.close()
    assert store.get(KEY, CLOCK.deadline(5)) is not None
    store.close()


def test_making_a_datastore_again_leaves_what_is_in_it(made):
    with SqliteDatastore(made, CLOCK, create=True) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))
    with SqliteDatastore(made, CLOCK, create=True) as store:
        assert len(store.list(Handles(), CLOCK.deadline(5))) == 1


def test_names_that_mean_something_in_a_uri_are_plain_names(tmp_path):
    path = str(tmp_path / "a?mode=memory#b%20c.db")
    with SqliteDatastore(path, CLOCK, create=True) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))
        assert "a?mode=memory#b%20c.db" in os.listdir(tmp_path)


def test_uids_are_random_uuids():
    made = {uuid4() for _ in range(100)}
    assert len(made) == 100
    assert {(uuid.UUID(one).version, uuid.UUID(one).variant, str(uuid.UUID(one)) == one) for one in made} == {
        (4, uuid.RFC_4122, True)
    }


def fault_of(path, *, create=False):
    store = SqliteDatastore(str(path), CLOCK, create=create)
    with store, pytest.raises(Unavailable) as caught:
        store.get(KEY, CLOCK.deadline(1))
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_not_made_by_accident(path):
    assert fault_of(path) == f"datastore {path}: no such file; `tortie init --pool CIDR` makes one"
    assert not os.path.exists(path)


def test_an_empty_file_is_not_filled_by_accident(path):
    Path(path).touch()
    assert "the file is empty; `tortie init` fills it" in fault_of(path)


def test_an_empty_file_is_filled_when_a_new_datastore_is_wanted(path):
    """So is what a killed `init` left behind."""
    Path(path).touch()
    with SqliteDatastore(path, CLOCK, create=True) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("content", [b"x", b"not a database\n" * 1000, b"\0" * 8192])
def test_a_file_that_is_no_database_is_left_alone(path, content, create):
    Path(path).write_bytes(content)
    assert "it is not a SQLite database" in fault_of(path, create=create)
    assert Path(path).read_bytes() == content


@pytest.mark.parametrize("create", [False, True])
def test_a_database_of_another_program_is_left_alone(path, create):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = Path(path).read_bytes()
    assert "the database belongs to another program" in fault_of(path, create=create)
    assert Path(path).read_bytes() == before


def test_a_layout_of_another_version_is_named(made):
    with sqlite3.connect(made) as other:
        other.execute("PRAGMA user_version = 9")
    other.close()
    assert "its layout has version 9, this program knows version 1" in fault_of(made)


def test_a_damaged_file_is_named(made):
    with SqliteDatastore(made, CLOCK) as store:
        for at in range(200):
            store.create(HandleKey(f"h{at}"), Handle({BLOCK: 1}), CLOCK.deadline(5))
    with open(made, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(made) - 4096))
    assert "the database is damaged" in fault_of(made)


@pytest.mark.parametrize("create", [False, True])
def test_a_symbolic_link_is_not_followed(made, tmp_path, create):
    """Design rule 16."""
    link = tmp_path / "link.db"
    link.symlink_to(made)
    assert "it is a symbolic link, which is not followed" in fault_of(link, create=create)
    dangling = tmp_path / "dangling.db"
    dangling.symlink_to(tmp_path / "nothing")
    assert "it is a symbolic link" in fault_of(dangling, create=create)


def test_other_kinds_of_files_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in fault_of(tmp_path / "pipe")
    assert "it is not a regular file" in fault_of(tmp_path)
    assert "Not a directory" in fault_of(Path("/dev/null/datastore.db"), create=True)


@pytest.mark.parametrize("path", ["", "a\0b", "a\udcffb", "a\ud800"])
def test_a_path_that_can_name_no_file_is_bad_configuration(path):
    with SqliteDatastore(path, CLOCK) as store, pytest.raises(BadConfiguration, match="is not the name of a file"):
        store.get(KEY, CLOCK.deadline(1))


# --- full and read-only disks ----------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 kB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root: full and read-only disks were NOT tested")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0755", "tortie-test", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_and_loses_nothing(small_disk):
    """After the error every answered write is there, and the datastore works again once there is room."""
    path = str(small_disk / "datastore.db")
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 60_000)
    written = []
    with SqliteDatastore(path, CLOCK, create=True) as store:
        with pytest.raises(Unavailable, match=r"datastore .*: (no space is left|the disk reports an error)"):
            written.extend(
                store.create(HandleKey(f"h{at:04}"), Handle({BLOCK: at + 1}), CLOCK.deadline(5)) for at in range(1000)
            )
        assert 0 < len(written) < 1000
        assert store.list(Handles(), CLOCK.deadline(5)) == tuple(written)
    ballast.unlink()
    with SqliteDatastore(path, CLOCK) as store:
        assert store.list(Handles(), CLOCK.deadline(5)) == tuple(written)
        store.delete(written[0].key, written[0].revision, CLOCK.deadline(5))
        assert store.list(Handles(), CLOCK.deadline(5)) == tuple(written[1:])


def test_a_disk_that_is_full_from_the_start_is_named(small_disk):
    ballast = os.open(small_disk / "ballast", os.O_WRONLY | os.O_CREAT)
    assert os.write(ballast, b"x" * 1_000_000) < 1_000_000
    os.close(ballast)
    store = SqliteDatastore(str(small_disk / "datastore.db"), CLOCK, create=True)
    with (
        store,
        pytest.raises(Unavailable, match=r"datastore .*: (no space is left|the disk reports|it cannot be opened)"),
    ):
        store.open(CLOCK.deadline(1))


def test_a_read_only_disk_is_named(small_disk):
    path = str(small_disk / "datastore.db")
    with SqliteDatastore(path, CLOCK, create=True) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert "it cannot be opened" in fault_of(path)
    missing = SqliteDatastore(str(small_disk / "other.db"), CLOCK, create=True)
    with missing, pytest.raises(Unavailable, match=r"other.db: Read-only file system"):
        missing.open(CLOCK.deadline(1))


def test_a_file_that_one_may_not_open_is_named(made):
    """As somebody who is not root, since root may open anything."""
    if os.geteuid() != 0:
        pytest.skip("changing the user needs root: refused permission was NOT tested")
    child = run_code(
        "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: store.get(KEY, CLOCK.deadline(1))\n"
        "except Unavailable as error: print(error)\n",
        made,
    )
    out, _ = child.communicate(timeout=30)
    assert out.startswith(f"datastore {made}: ")
    assert "Permission denied" in out or "it cannot be opened" in out


# --- many processes --------------------------------------------------------------------------------------------------

PRELUDE = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from adapters.linux.clock import SystemClock
from adapters.sqlite.database import uuid4
from adapters.sqlite.datastore import SqliteDatastore
from domain.ipam.address import Cidr
from domain.ipam.block import Handle
from ports.datastore import HandleKey
from ports.errors import Conflict, Unavailable
CLOCK, KEY, BLOCK, path = SystemClock(), HandleKey("counter"), Cidr.parse("10.0.0.0/26"), sys.argv[1]
store = SqliteDatastore(path, CLOCK)
"""
INCREMENT = """
def increment():
    while True:
        held = store.get(KEY, CLOCK.deadline(60))
        try:
            count = held.record.blocks[BLOCK] + 1
            return store.update(KEY, Handle({BLOCK: count}), held.revision, CLOCK.deadline(60))
        except Conflict:
            continue
"""


def run_code(code: str, path: str) -> subprocess.Popen[str]:
    """A Python process with the names of the prelude."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code, path], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def children():
    """Processes that a test started; none outlives it."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        child.kill()
        child.communicate()


def start_counter(path):
    with SqliteDatastore(path, CLOCK) as store:
        store.create(KEY, Handle({BLOCK: 1}), CLOCK.deadline(5))


def count_of(path):
    with SqliteDatastore(path, CLOCK) as store:
        return store.get(KEY, CLOCK.deadline(5)).record.blocks[BLOCK] - 1


def test_eight_processes_that_count_together_lose_nothing(made, children):
    start_counter(made)
    for _ in range(8):
        children.append(run_code(INCREMENT + "for _ in range(40): increment()\nstore.close()\n", made))
    assert [child.wait(timeout=120) for child in children] == [0] * 8
    assert count_of(made) == 320


def test_eight_processes_killed_at_random_moments_lose_no_answered_write(made, children):
    """Each says what it has counted after it was answered; at most the write in flight may come on top."""
    start_counter(made)
    code = INCREMENT + "while True:\n    increment()\n    print('+', end='', flush=True)\n"
    rng = random.Random(8)
    answered = killed = 0
    for _ in range(3):
        round_ = [run_code(code, made) for _ in range(8)]
        children += round_
        for child in round_:
            assert os.read(child.stdout.fileno(), 1) == b"+"  # each is counting now
            answered += 1
        for child in rng.sample(round_, 8):
            time.sleep(rng.uniform(0, 0.1))
            child.send_signal(signal.SIGKILL)
        for child in round_:
            out, _ = child.communicate(timeout=30)
            answered += len(out)
            killed += child.returncode == -signal.SIGKILL
        assert answered <= count_of(made) <= answered + killed
    assert killed == 24
    assert answered > 0


def test_a_process_killed_inside_a_write_leaves_the_record_as_it_was(made, children):
    start_counter(made)
    code = (
        "c = store.open(CLOCK.deadline(5)) or store._connection\n"
        "c.execute('BEGIN IMMEDIATE')\n"
        "c.execute('UPDATE records SET text = ?', ('{',))\n"
        "print('in', flush=True)\n"
        "time.sleep(60)\n"
    )
    child = run_code(code, made)
    children.append(child)
    assert child.stdout.readline() == "in\n"
    assert count_of(made) == 0
    child.kill()
    child.wait()
    assert count_of(made) == 0
    with SqliteDatastore(made, CLOCK) as store:
        held = store.get(KEY, CLOCK.deadline(5))
        store.update(KEY, Handle({BLOCK: 2}), held.revision, CLOCK.deadline(5))
    assert count_of(made) == 1


def test_of_two_processes_that_name_the_same_revision_one_conflicts(made, children):
    start_counter(made)
    code = (
        "held = store.get(KEY, CLOCK.deadline(5))\n"
        "print('read', flush=True)\n"
        "while not os.path.exists(path + '.go'): time.sleep(0.001)\n"
        "try: store.update(KEY, Handle({BLOCK: 2}), held.revision, CLOCK.deadline(5)); print('written')\n"
        "except Conflict: print('conflict')\n"
    )
    children += [run_code(code, made) for _ in range(2)]
    assert [child.stdout.readline() for child in children] == ["read\n"] * 2
    Path(made + ".go").touch()
    assert sorted(child.communicate(timeout=30)[0] for child in children) == ["conflict\n", "written\n"]


def test_processes_that_make_the_same_datastore_all_find_it_made(path, children):
    code = (
        "with SqliteDatastore(path, CLOCK, create=True) as made:\n"
        "    made.create(HandleKey(uuid4()), Handle({}), CLOCK.deadline(30))\n"
    )
    children += [run_code(code, path) for _ in range(6)]
    assert [child.wait(timeout=60) for child in children] == [0] * 6
    with SqliteDatastore(path, CLOCK) as store:
        assert len(store.list(Handles(), CLOCK.deadline(5))) == 6


def test_a_writer_in_the_way_is_awaited_until_the_deadline_and_not_longer(made):
    start_counter(made)
    with SqliteDatastore(made, CLOCK) as first, SqliteDatastore(made, CLOCK) as second:
        first.open(CLOCK.deadline(5))
        second.open(CLOCK.deadline(5))
        first._connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(Expired, match=rf"deadline exceeded while waiting for datastore {made}"):
            second.create(HandleKey("x"), Handle({}), CLOCK.deadline(0.3))
        assert 0.25 < time.monotonic() - began < 10
        assert second.get(KEY, CLOCK.deadline(5)) is not None  # readers do not wait for writers
        timer = threading.Timer(0.2, lambda: first._connection.execute("COMMIT"))
        timer.start()
        second.create(HandleKey("x"), Handle({}), CLOCK.deadline(30))
        timer.join()


def test_an_error_inside_a_write_leaves_no_transaction_open(made):
    with SqliteDatastore(made, CLOCK) as store:
        store.create(KEY, Handle({}), CLOCK.deadline(5))
        with pytest.raises(AlreadyExists):
            store.create(KEY, Handle({}), CLOCK.deadline(5))
        assert not store._connection.in_transaction
        with SqliteDatastore(made, CLOCK) as other:
            other.create(HandleKey("other"), Handle({}), CLOCK.deadline(1))


def test_revisions_grow_over_all_records_and_never_come_back(path):
    with SqliteDatastore(path, MemoryClock(), create=True) as store:
        first = int(store.create(HandleKey("a"), Handle({}), SOON).revision)
        second = int(store.create(HandleKey("b"), Handle({}), SOON).revision)
        store.delete(HandleKey("b"), None, SOON)
        third = int(store.create(HandleKey("b"), Handle({}), SOON).revision)
        assert first < second
        assert third == second + 2  # the delete was a write too, as it is for etcd


# --- values that are not what the column is for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"\xff\xfe{", id="octets"),
        pytest.param(b"", id="no octets"),
        pytest.param(7, id="number"),
        pytest.param(2**63 - 1, id="large number"),
        pytest.param(1.5, id="fraction"),
        pytest.param("\0", id="zero byte"),
    ],
)
def test_a_value_of_another_type_is_one_bad_record_and_hurts_no_other(made, value):
    start_counter(made)
    put(made, "/calico/ipam/v2/handle/bad", value)
    with SqliteDatastore(made, CLOCK) as store:
        assert [one.key for one in store.list(Handles(), CLOCK.deadline(5))] == [KEY]
        assert [one.key for one in store.unreadable(CLOCK.deadline(5))] == [HandleKey("bad")]
        with pytest.raises(BadRecord, match="is corrupt"):
            store.get(HandleKey("bad"), CLOCK.deadline(5))
        store.delete(HandleKey("bad"), None, CLOCK.deadline(5))
        assert store.unreadable(CLOCK.deadline(5)) == ()


def test_text_that_is_no_utf_8_hurts_no_other_record(made):
    """In a value, in a key, and in a revision."""
    start_counter(made)
    with sqlite3.connect(made) as other:
        for row in ((b"a", b"\xff", b"1"), (b"b\xff", b"{", b"2"), (b"c", b"{", b"\xff")):
            key = "'/calico/ipam/v2/handle/' || CAST(? AS TEXT)"
            other.execute(f"INSERT INTO records VALUES ({key}, CAST(? AS TEXT), CAST(? AS TEXT))", row)  # noqa: S608 - the text is our own
    other.close()
    with SqliteDatastore(made, CLOCK) as store:
        assert [one.key for one in store.list(Handles(), CLOCK.deadline(5))] == [KEY]
        assert [one.key.handle for one in store.unreadable(CLOCK.deadline(5))] == ["a", "b\ufffd", "c"]


def test_octets_that_spell_a_record_are_one(made):
    put(made, "/calico/ipam/v2/handle/h", b'{"block":{"10.0.0.0/26":1},"deleted":false}')
    with SqliteDatastore(made, CLOCK) as store:
        found = store.get(HandleKey("h"), CLOCK.deadline(5))
        assert store.update(found.key, Handle({}), found.revision, CLOCK.deadline(5)).record == Handle({})


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE meta SET revision = 'x'",
        "UPDATE meta SET revision = X'FF'",
        "UPDATE meta SET revision = -1",
        "UPDATE meta SET revision = 9223372036854775807",
        "DELETE FROM meta",
        "INSERT INTO meta VALUES (7)",
    ],
)
def test_a_counter_that_cannot_count_is_named_before_anything_is_written(made, damage):
    start_counter(made)
    with sqlite3.connect(made) as other:
        other.execute(damage)
    other.close()
    with SqliteDatastore(made, CLOCK) as store:
        before = store.list(Handles(), CLOCK.deadline(5))
        for write in (
            lambda: store.create(HandleKey("new"), Handle({}), CLOCK.deadline(5)),
            lambda: store.update(KEY, Handle({}), before[0].revision, CLOCK.deadline(5)),
            lambda: store.delete(KEY, None, CLOCK.deadline(5)),
        ):
            with pytest.raises(Unavailable, match=rf"datastore {made}: the database is damaged; restore .*counter"):
                write()
        assert store.list(Handles(), CLOCK.deadline(5)) == before


@pytest.mark.parametrize(
    "damage", ["DROP TABLE records", "DROP TABLE meta", "ALTER TABLE records RENAME COLUMN text TO other"]
)
def test_tables_that_are_not_ours_are_named(made, damage):
    with sqlite3.connect(made) as other:
        other.execute(damage)
    other.close()
    with SqliteDatastore(made, CLOCK) as store, pytest.raises(Unavailable, match=rf"{made}: its tables are not as we"):
        store.create(KEY, Handle({}), CLOCK.deadline(5))


def test_whatever_the_file_holds_the_answer_is_an_error_that_names_it(made):
    """Pages of garbage, cut off, swapped: each a plain answer or `Unavailable`, in bounded time."""
    with SqliteDatastore(made, CLOCK) as store:
        for at in range(300):
            store.create(HandleKey(f"h{at}"), Handle({BLOCK: 1}), CLOCK.deadline(5))
    whole, chance = Path(made).read_bytes(), random.Random(6)
    for _ in range(150):
        octets = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(octets))
            octets[at : at + 200] = chance.choice([b"\0", b"\xff", chance.randbytes(1)]) * chance.randint(1, 200)
        Path(made).write_bytes(octets[: chance.choice([len(octets), chance.randrange(1, len(octets))])])
        with SqliteDatastore(made, CLOCK) as store:
            for ask in (
                lambda: store.unreadable(CLOCK.deadline(5)),
                lambda: store.list(Handles(), CLOCK.deadline(5)),
                lambda: store.create(HandleKey("new"), Handle({}), CLOCK.deadline(5)),
            ):
                with suppress(Unavailable, AlreadyExists):
                    ask()


def put(path, key, value):
    with sqlite3.connect(path) as other:
        other.execute("INSERT INTO records VALUES (?, ?, 1)", (key, value))
    other.close()
