"""What the kernel and the node's files say: netlink messages, host-local's directory, our SQLite file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adapters.linux.attachment_files import AttachmentFiles
from adapters.linux.host_local_files import HostLocalFiles
from adapters.linux.netlink import rtnetlink
from adapters.linux.netlink.bridge_lean import LeanBridgeNetlink
from adapters.linux.netlink.messages import (
    NLM_F_ACK,
    NLM_F_MULTI,
    NLMSG_DONE,
    NLMSG_ERROR,
    NetlinkRequest,
    attribute,
    envelope,
    u32,
)
from adapters.linux.netlink.seam import KernelError
from adapters.memory.clock import MemoryClock
from adapters.records.codec import key_text
from adapters.sqlite.datastore import SqliteDatastore
from domain.bridge.conf import AttachmentId
from domain.ipam.address import V4, V6, Address
from fuzz.records import KEYS
from fuzz.target import Allowed, Target, require
from ports.clock import Deadline
from ports.datastore import Blocks, Handles, IPPools, WorkloadEndpoints
from ports.errors import PortError

_NEVER = Deadline(float("inf"))
_CLOCK = MemoryClock()

# --- netlink ---------------------------------------------------------------------------------------------------------


class _Kernel:
    """A socket whose other side says given octets, in datagrams, whatever it is asked."""

    def __init__(self, octets: bytes) -> None:
        self._left = _datagrams(octets)

    def send(self, octets: bytes) -> int:
        return len(octets)

    def recv(self, _size: int) -> bytes:
        if not self._left:
            raise TimeoutError("the kernel says nothing more")
        return self._left.pop(0)

    def close(self) -> None:
        pass


def _datagrams(octets: bytes) -> list[bytes]:
    """One after the other, each with its length in two octets before it."""
    found = []
    while octets:
        size = int.from_bytes(octets[:2], "little")
        found.append(octets[2 : 2 + size])
        octets = octets[2 + size :]
    return found


_QUESTIONS: tuple[Callable[[LeanBridgeNetlink], object], ...] = (
    lambda kernel: kernel.link("eth0"),
    lambda kernel: kernel.port("eth0"),
    lambda kernel: kernel.ports(),
    lambda kernel: kernel.addresses(2, V4),
    lambda kernel: kernel.has_tentative(2),
    lambda kernel: kernel.known_addresses(2, V6),
    lambda kernel: kernel.routes(V4),
    lambda kernel: kernel.known_routes(V6),
    lambda kernel: kernel.port_vlans(2),
    lambda kernel: kernel.namespace_id(5),
    lambda kernel: kernel.delete_link(2),
)


def _netlink(octets: bytes) -> None:
    """The first octet says what was asked."""
    chosen = (octets[0] if octets else 0) % len(_QUESTIONS)
    with Allowed(KernelError):
        repr(_QUESTIONS[chosen](LeanBridgeNetlink(_Kernel(octets[1:]))))


def _said(*messages: tuple[int, int, bytes]) -> bytes:
    """A datagram of (kind, flags, body) as answers to a first request."""
    datagram = b"".join([envelope(NetlinkRequest(kind, flags, body), 1) for kind, flags, body in messages])
    return len(datagram).to_bytes(2, "little") + datagram


def _text(kind: int, text: str) -> bytes:
    return attribute(kind, text.encode() + b"\0")


_V4, _V6 = bytes([10, 0, 0, 1]), b"\xfd" + bytes(14) + b"\1"
_DONE = (NLMSG_DONE, NLM_F_MULTI, u32(0))
_LINK = (
    rtnetlink.link_header(2, 0x1003)
    + _text(3, "eth0")
    + attribute(4, u32(1500))
    + attribute(1, bytes(6))
    + attribute(18, _text(1, "veth") + _text(4, "bridge") + attribute(5, attribute(4, b"\1") + attribute(33, b"\0")))
    + attribute(5, u32(7))
    + attribute(37, u32(0))
    + attribute(10, u32(3))
    + attribute(16, b"\6")
    + _text(20, "alias")
)
_ADDRESS4 = bytes([2, 24, 0, 0]) + u32(2) + attribute(1, _V4) + attribute(2, _V4)
_ADDRESS6 = bytes([10, 64, 0, 0]) + u32(2) + attribute(1, _V6) + attribute(8, u32(0x40))
_ROUTE4 = bytes([2, 24, 0, 0, 254, 3, 0, 1]) + u32(0) + attribute(1, _V4) + attribute(5, _V4) + attribute(4, u32(2))
_ROUTE6 = (
    bytes([10, 64, 0, 0, 252, 3, 0, 1]) + u32(0) + attribute(1, _V6) + attribute(15, u32(1000)) + attribute(6, u32(5))
) + attribute(8, attribute(2, u32(1400)) + attribute(8, u32(1300)))
_VLANS = bytes([7, 0, 0, 0]) + u32(2) + bytes(8) + attribute(26, attribute(2, b"\6\0\1\0") + attribute(2, b"\0\0\5\0"))
_QUOTED = envelope(NetlinkRequest(18, NLM_F_ACK, b""), 1)[:16]
_REFUSED = (NLMSG_ERROR, 0x200, u32((1 << 32) - 19) + _QUOTED + _text(1, "no such device"))
_SAID = (
    _said((16, 0, _LINK)),
    _said((16, 0, _LINK)),
    _said((16, NLM_F_MULTI, _LINK), _DONE),
    _said((20, NLM_F_MULTI, _ADDRESS4), _DONE),
    _said((20, NLM_F_MULTI, _ADDRESS6)) + _said(_DONE),
    _said((24, NLM_F_MULTI, _ROUTE4), _DONE),
    _said((24, NLM_F_MULTI, _ROUTE6), _DONE),
    _said((16, NLM_F_MULTI, _VLANS), _DONE),
    _said((88, 0, bytes(4) + attribute(1, u32(3)))),
    _said(_REFUSED),
)

# --- files -----------------------------------------------------------------------------------------------------------


class Folder:
    """A folder in memory for one input; nothing of it is left."""

    def __enter__(self) -> Path:
        self._path = Path(
            tempfile.mkdtemp(prefix="tortie-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        )
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path)


def _host_local(octets: bytes) -> None:
    """Files as lines of name, tab and content (`|` is a line's end)."""
    with Folder() as folder:
        for line in octets.split(b"\n")[:8]:
            name, _, content = line.partition(b"\t")
            if name and len(name) < 200 and not set(name) & set(b"/\0") and name not in (b".", b"..", b"lock"):
                (folder / os.fsdecode(name)).write_bytes(content.replace(b"|", b"\r\n"))
        files = HostLocalFiles(str(folder), _CLOCK)
        with Allowed(PortError), files.held(_NEVER):
            for one in files.reservations():
                require(one.container_id, "nobody's reservation", one)
            last = files.last_reserved(0)
            require(last is None or isinstance(last, Address), "no address", last)
            files.reserve(Address.parse("10.0.0.9"), "c1", "eth0", 0)
            require(files.last_reserved(0) == Address.parse("10.0.0.9"), "not the last one", octets)
            files.release(Address.parse("10.0.0.9"))
        require(not [name for name in os.listdir(folder) if name.startswith(".tortie-")], "a file is left", octets)


def _attachments(octets: bytes) -> None:
    with Folder() as folder:
        files = AttachmentFiles(str(folder))
        (folder / "net1").mkdir()
        (folder / "net1/c1-eth0.json").write_bytes(octets)
        with Allowed(PortError):
            found = files.load("net1", AttachmentId("c1", "eth0"))
            require(found is None or files.all("net1") == (found,), "two answers about one file", octets)


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _read_all(path: str) -> None:
    with SqliteDatastore(path, _CLOCK) as datastore:
        for need in (*KEYS, Blocks(), Handles(), IPPools(), WorkloadEndpoints()):
            with Allowed(PortError):
                datastore.fetch(need, deadline=_NEVER)
        with Allowed(PortError):
            datastore.unreadable(_NEVER)


def _database(*rows: tuple[object, object, object]) -> bytes:
    with Folder() as folder:
        path = str(folder / "d.db")
        with SqliteDatastore(path, _CLOCK, create=True) as datastore:
            datastore.open(_NEVER)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 512")
        connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
        connection.commit()
        connection.execute("VACUUM")
        connection.close()
        return Path(path).read_bytes()


def _sqlite_file(octets: bytes) -> None:
    with Folder() as folder:
        (folder / "d.db").write_bytes(octets)
        _read_all(str(folder / "d.db"))
        require({one.removeprefix("d.db") for one in os.listdir(folder)} <= {"", "-wal", "-shm", "-journal"}, "left")


_BASE: list[bytes] = []


def _sqlite_rows(octets: bytes) -> None:
    """Values of other types in sound tables: lines of three, each with what it is before it."""
    if not _BASE:
        _BASE.append(_database())
    with Folder() as folder:
        path = str(folder / "d.db")
        Path(path).write_bytes(_BASE[0])
        connection = sqlite3.connect(path)
        for line in octets.split(b"\n")[:4]:
            values = [_value(one) for one in line.split(b"\t")[:3]]
            try:
                connection.execute("INSERT INTO records VALUES (?, ?, ?)", (*values, None, None, None)[:3])
            except (sqlite3.Error, OverflowError):
                continue
        connection.commit()
        connection.close()
        _read_all(path)


def _value(octets: bytes) -> Any:
    kind, rest = octets[:1], octets[1:]
    if kind == b"i":
        return int.from_bytes(rest[:7], "big", signed=True)
    if kind == b"f":
        return float(len(rest)) / 3
    return rest if kind == b"b" else None if kind == b"n" else octets.decode("utf-8", "replace")


_ROW = (key_text(KEYS[2]), '{"blocks": {"10.0.0.0/29": 1}}', 5)
_LINES = "\n".join(
    [
        f"{key_text(KEYS[2])}\t{_ROW[1]}\ti\1",
        f"{key_text(KEYS[0])}\tb\0\xff\ti\2",
        f"b{key_text(KEYS[7])}\tx\ti\2",
        f"{key_text(KEYS[7])}\tf1\tfx",
    ]
)
TARGETS = (
    Target("netlink", _netlink, tuple(bytes([number]) + said for number, said in enumerate(_SAID)), most=1024),
    Target(
        "host_local_files",
        _host_local,
        (b"10.0.0.2\tc1|eth0\nlast_reserved_ip.0\t10.0.0.2\nfd00::1\tc2\n10.0.0.9\t", b"10.0.0.3\t|", b"x\ty"),
        form="text",
        most=512,
    ),
    Target("attachment_files", _attachments, (b'{"containerID": "c1", "ifname": "eth0"}', b"{"), form="json", most=512),
    Target("sqlite_file", _sqlite_file, (_database(_ROW),), most=16384),
    Target("sqlite_rows", _sqlite_rows, (_LINES.encode("latin-1"),), form="text", most=1024),
)
