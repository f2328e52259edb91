"""`tortie` in this process over a memory datastore: each command gives exit code, stdout and stderr."""

from __future__ import annotations

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from adapters.memory.node import MemoryNode
from entrypoints.tortie import main as operator
from entrypoints.wiring.container import Container


class Tortie:
    def __init__(self, capsys):
        self.capsys = capsys
        self.clock = MemoryClock()
        self.datastore = MemoryDatastore(self.clock)
        self.environment = {}

    def __call__(self, *arguments):
        container = Container()
        container.datastore.override(self.datastore)
        container.clock.override(self.clock)
        container.node.override(MemoryNode(" Host-1.Example\n"))
        code = operator.run(arguments, self.environment, container)
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def done(self, *arguments):
        code, out, err = self(*arguments)
        assert (code, err) == (0, "")
        return out

    def failed(self, *arguments):
        code, out, err = self(*arguments)
        assert (code, out) == (1, "")
        assert err.startswith("Error: ")
        assert err.count("\n") == 1
        return err.removeprefix("Error: ").rstrip()

    def misunderstood(self, *arguments):
        code, out, err = self(*arguments)
        assert (code, out) == (2, "")
        return err

    def store(self, key, record):
        self.datastore.create(key, record, self.clock.deadline(60))

    def get(self, key):
        stored = self.datastore.get(key, self.clock.deadline(60))
        return None if stored is None else stored.record
