"""Starting a program as a container runtime would, and what it cost: wall time, processor time, peak memory.

A small static C program stands between: what a process inherits from the one that started it counts towards its peak,
and an interpreter is large. The same program does the floor's work (see floor.py), and without arguments nothing
at all, which is the least that any process costs.

Invariant: a call of ours that fails alone ends the run with its output; a peer's, and any in a burst, is told from
those that did not.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

_SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int start(char **words, struct rusage *used)
{
    int status = 0;
    pid_t child = vfork();
    if (child == 0) { execv(words[0], words); _exit(127); }
    return child < 0 || wait4(child, &status, 0, used) < 0 ? 126 : status;
}

/* run PROGRAM ARGUMENT...: its cost to descriptor 3, in microseconds and KiB */
static int measure(char **words)
{
    struct rusage used;
    struct timespec begun, ended;
    fcntl(3, F_SETFD, FD_CLOEXEC);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    int status = start(words, &used);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    long wall = (ended.tv_sec - begun.tv_sec) * 1000000 + (ended.tv_nsec - begun.tv_nsec) / 1000;
    long cpu = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    dprintf(3, "%ld %ld %ld", wall, cpu, used.ru_maxrss);
    return status != 0;
}

static int put(const char *path, const char *value)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = file < 0 ? -1 : write(file, value, strlen(value));
    if (file >= 0) close(file);
    return written < 0;
}

/* plan IP [batch FILE | write PATH VALUE | enter NAMESPACE]... */
static int perform(char **words)
{
    char *ip = *words++;
    for (; *words; words += 2) {
        int failed;
        if (strcmp(*words, "batch") == 0) {
            struct rusage used;
            failed = start((char *[]){ip, "-batch", words[1], NULL}, &used);
        } else if (strcmp(*words, "write") == 0) {
            failed = put(words[1], words[2]);
            words++;
        } else {
            int file = open(words[1], O_RDONLY | O_CLOEXEC);
            failed = file < 0 || setns(file, CLONE_NEWNET);
            close(file);
        }
        if (failed) { fprintf(stderr, "cannot: %s\n", words[1]); return 1; }
    }
    return 0;
}

int main(int count, char **words)
{
    if (count == 1) return 0;
    return strcmp(words[1], "run") == 0 ? measure(words + 2) : perform(words + 2);
}
"""


class Call(NamedTuple):
    """One start of a program: its words, all of its environment, and its standard input."""

    words: Sequence[str]
    env: dict[str, str]
    given: bytes = b""


class Sample(NamedTuple):
    """Milliseconds, milliseconds, MiB; with the processes that the program itself started and waited for."""

    wall: float
    processor: float
    peak: float


class Ended(NamedTuple):
    """`printed` is standard output and standard error."""

    status: int
    printed: str


class CallFailed(SystemExit):
    """With its output."""


class Starter:
    """`path` is the C program's, for use as a candidate of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "bench-start")
        source = folder / "bench-start.c"
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-O2", "-static", "-o", self.path, source], check=True)

    def run(self, call: Call) -> Sample:
        reading, writing = os.pipe()
        child, output = _spawn([self.path, "run", *call.words], call, writing)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as told:
            figures = told.read().split()
        _succeeded(call, status, output)
        wall, processor, peak = map(int, figures)
        return Sample(wall / 1000, processor / 1000, peak / 1024)


def burst(calls: Iterable[Call], at_once: int) -> tuple[float, list[Ended]]:
    """All calls, so many at once: the seconds from the first start to the last end, and how each ended."""
    running: dict[int, int] = {}
    waiting, ended = list(calls)[::-1], []
    began = time.perf_counter()
    while waiting or running:
        while waiting and len(running) < at_once:
            call = waiting.pop()
            child, output = _spawn(call.words, call)
            running[child] = output
        child, status = os.waitpid(-1, 0)
        if child not in running:
            raise SystemExit("a server has ended while it was measured")
        ended.append(Ended(os.waitstatus_to_exitcode(status), _printed(running.pop(child))))
    return time.perf_counter() - began, ended


class Processors(NamedTuple):
    """Ticks since the machine was started, of all processors together."""

    idle: int
    all: int


def processors(text: str = "") -> Processors:
    """`text` is that of /proc/stat."""
    first = (text or Path("/proc/stat").read_text()).partition("\n")[0]
    ticks = [int(word) for word in first.split()[1:9]]  # what guests took is in what users took
    return Processors(ticks[3] + ticks[4], sum(ticks))


def in_use(before: Processors, after: Processors) -> float:
    """The share that somebody used, from 0 to 1."""
    passed = after.all - before.all
    return 1 - (after.idle - before.idle) / passed if passed else 0.0


def _spawn(words: Sequence[str], call: Call, third: int | None = None) -> tuple[int, int]:
    """Its process id, and the file that it prints to."""
    reading, writing = os.pipe()
    os.write(writing, call.given)
    os.close(writing)
    output = os.memfd_create("output", os.MFD_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    if third is not None:
        actions.append((os.POSIX_SPAWN_DUP2, third, 3))
    child = os.posix_spawn(words[0], list(words), call.env, file_actions=actions)
    os.close(reading)
    return child, output


def _printed(output: int) -> str:
    os.lseek(output, 0, os.SEEK_SET)
    with os.fdopen(output, errors="replace") as printed:
        return printed.read()


def _succeeded(call: Call, status: int, output: int) -> None:
    """CallFailed if it has."""
    text = _printed(output)
    if status:
        raise CallFailed(f"{call.env.get('CNI_COMMAND', '')} {' '.join(call.words)} ended with {status}: {text}")
