"""Makes an executable begin where it stands once its interpreter is started and all its modules are loaded.

The executable itself writes down its memory (snapshot.c). Here that becomes part of the file: the data of the
interpreter and of our own C take the place of what the linker wrote, and the memory that it has allocated becomes one
more segment, at the address that it had. The data of the C library and of OpenSSL stay as they were linked.

Invariant: the process whose memory it is has no environment, no random addresses and no random hashes; so equal
executables give equal snapshots.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

STATE, TAKE, IS = b"tortie snapshot\0", 1, 2  # in snapshot.c
PLACE, ALIGNED = 0x200000000, 0x10000
LOAD, GNU_RELRO = 1, 0x6474E552
WRITABLE, READABLE = 2, 4
NO_RANDOM_ADDRESSES = 0x0040000
HEADER, SEGMENT = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")
# The name of a part of a section, its address, its size, and the file that it is from; long names end their line.
PART = re.compile(r"^ (?:\.|COMMON)\S*\s+0x(\w+)\s+0x(\w+)\s+(\S.*)$", re.MULTILINE)


class Segment(NamedTuple):
    """A line of an ELF file's table of segments."""

    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    in_file: int
    in_memory: int
    alignment: int


class Elf:
    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        self._header = list(HEADER.unpack_from(content))
        table, size, count = self._header[5], self._header[9], self._header[10]
        self._places = [table + size * number for number in range(count)]
        self.segments = [Segment(*SEGMENT.unpack_from(content, place)) for place in self._places]

    @property
    def data(self) -> int:
        """The number of the segment that is written to."""
        (found,) = [at for at, one in enumerate(self.segments) if one.kind == LOAD and one.flags & WRITABLE]
        return found

    def mark(self, kind: int) -> None:
        """Say what the file is for."""
        place = self.content.index(STATE) + len(STATE)
        struct.pack_into("<q", self.content, place, kind)

    def put(self, number: int, segment: Segment) -> None:
        self.segments[number] = segment
        SEGMENT.pack_into(self.content, self._places[number], *segment)

    def forget_sections(self) -> None:
        """The table of sections is behind the data, and nobody needs it to run the program."""
        self._header[6] = self._header[12] = self._header[13] = 0
        HEADER.pack_into(self.content, 0, *self._header)


def begin_loaded(linked: Path, links: Path, own: tuple[str, ...]) -> None:
    """Put the snapshot into the file. `links` is the linker's map, `own` the files whose data belong to a snapshot."""
    elf = Elf(linked.read_bytes())
    data = elf.segments[elf.data]
    memory = taken(linked, elf, data)
    kept = bytearray(elf.content[data.offset : data.offset + data.in_file]).ljust(data.in_memory, b"\0")
    for start, size in parts(links.read_text(), own):
        if data.address <= start < data.address + data.in_memory:
            at = start - data.address
            kept[at : at + size] = memory[at : at + size]
    linked.write_bytes(joined(elf, bytes(kept), memory[data.in_memory :]))


def taken(linked: Path, elf: Elf, data: Segment) -> bytes:
    """What the executable writes when it is told to: its data, then what it has allocated."""
    elf.mark(TAKE)
    taking = linked.with_name("taking")
    taking.write_bytes(elf.content)
    taking.chmod(0o700)
    ends = [f"{address:x}" for address in (data.address, data.address + data.in_memory)]
    done = subprocess.run(
        ["calico", *ends],
        executable=taking,
        env={"TZ": "UTC0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        preexec_fn=place_nothing_at_random,
    )
    if done.returncode:
        sys.exit(f"There is no snapshot ({done.returncode}): {done.stderr.decode(errors='replace')}")
    return done.stdout


def place_nothing_at_random() -> None:
    ctypes.CDLL(None).personality(NO_RANDOM_ADDRESSES)


def parts(links: str, own: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Addresses and sizes of what comes from our files."""
    for address, size, file in PART.findall(links):
        if re.sub(r"\(.*\)$", "", file).rpartition("/")[2] in own:
            yield int(address, 16), int(size, 16)


def joined(elf: Elf, data: bytes, allocated: bytes) -> bytes:
    """The file with the process's data, and one segment more."""
    at = elf.data
    old = elf.segments[at]
    elf.put(at, old._replace(in_file=len(data)))
    (spare,) = [at for at, one in enumerate(elf.segments) if one.kind == GNU_RELRO]  # for dynamic loaders
    end = -(-(old.offset + len(data)) // ALIGNED) * ALIGNED
    size = len(allocated)
    elf.put(spare, Segment(LOAD, READABLE | WRITABLE, end, PLACE, PLACE, size, size, ALIGNED))
    elf.forget_sections()
    elf.content[old.offset :] = data.ljust(end - old.offset, b"\0") + allocated
    elf.mark(IS)
    return bytes(elf.content)
