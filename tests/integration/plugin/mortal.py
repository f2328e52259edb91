"""Calls at the same time, and calls that are ended by a signal at a random moment of their life.

Invariant: `seed` repeats all choices, and is in every message.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from integration.plugin.host import Answer, Container, Host

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 16
SIGNALS = (signal.SIGKILL, signal.SIGTERM)


def all_at_once(work: Callable[[T], R], items: Sequence[T], workers: int = AT_ONCE) -> list[R]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))


def address(answer: Answer) -> str:
    (ip,) = answer.result()["ips"]
    return str(ip["address"].partition("/")[0])


class Mortal:
    """Calls of one program, each ended within `life` seconds."""

    def __init__(self, host: Host, program: str, life: float) -> None:
        self.host = host
        self.program = program
        self.life = life
        self.seed = int.from_bytes(os.urandom(4), "big")
        self.random = random.Random(self.seed)

    def call(self, verb: str, container: Container, number: int, delay: float) -> Answer:
        process = self.host.start(self.host.environment(verb, container), program=self.program)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        try:
            process.stdin.write(json.dumps(self.host.netconf()).encode())
            process.stdin.close()
        except BrokenPipeError:
            pass
        time.sleep(delay)
        process.send_signal(number)
        out, err = process.stdout.read(), process.stderr.read()
        return Answer(process.wait(60), out.decode(), err.decode())

    def round(self, verb: str, containers: Sequence[Container]) -> list[Answer]:
        """Spread over the life, so that one of them comes early enough to meet it; that one is SIGKILL."""
        delays = spread(self.random, self.life, len(containers))
        plans = [
            (container, signal.SIGKILL if delay == min(delays) else self.random.choice(SIGNALS), delay)
            for container, delay in zip(containers, delays)
        ]
        return all_at_once(lambda plan: self.check(verb, *plan), plans, 8)

    def check(self, verb: str, container: Container, number: int, delay: float) -> Answer:
        """An error that was answered has been undone; what was answered otherwise is whole."""
        answer = self.call(verb, container, number, delay)
        if answer.exit == 0 and verb == "ADD":
            assert address(answer)
        elif answer.exit == 1:
            answer.error(11, "SIGTERM")
            if verb == "ADD":
                assert f"net1.{container.identity}" not in self.host.store.allocated(), (self.seed, answer)
        elif answer.exit:
            assert answer.exit == -number, (self.seed, answer)
            if number == signal.SIGTERM:  # it came before anything was done, so before any answer too
                assert answer.stdout == "", (self.seed, answer)
                assert f"net1.{container.identity}" not in self.host.store.handles() or verb == "DEL", self.seed
        return answer


def spread(chance: random.Random, life: float, count: int) -> list[float]:
    """One moment in each of so many equal parts of a life, in any order."""
    moments = [life * (number + chance.random()) / count for number in range(count)]
    chance.shuffle(moments)
    return moments


def typical_life(host: Host, program: str, container: Container) -> float:
    """Seconds that an ADD takes while eight run at once. The least of three: a busy machine makes one of them long."""

    def once() -> float:
        began = time.monotonic()
        host.add(container, program=program).result()
        host.delete(container, program=program).silent()
        return time.monotonic() - began

    return min(once() for _ in range(3)) / 2 * 4
