"""`tortie ipam metrics`, from its command line over a memory datastore to what Prometheus' own parser reads."""

from __future__ import annotations

import stat

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapters.memory.node import MemoryNode
from domain.ipam.metrics import KNOWN, Metric
from entrypoints.tortie import main as operator
from entrypoints.tortie.ipam.metrics import exposition
from entrypoints.wiring.container import Container
from ports.errors import Unavailable
from worlds.one_node import NODE, OneNode


def samples(text):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Tortie(OneNode):
    def __init__(self, capsys):
        super().__init__()
        self.capsys = capsys

    def run(self, *arguments):
        container = Container()
        container.datastore.override(self.datastore)
        container.clock.override(self.clock)
        container.log.override(self.log)
        container.node.override(MemoryNode(NODE))
        code = operator.run(("ipam", "metrics", *arguments), {"DATASTORE_TYPE": "sqlite"}, container)
        return code, *self.capsys.readouterr()


@pytest.fixture
def tortie(capsys):
    tortie = Tortie(capsys)
    tortie.add("c1")
    return tortie


def test_prometheus_reads_what_a_look_finds(tortie):
    code, out, err = tortie.run("--blocks")
    assert (code, err) == (0, "")
    found = samples(out)
    assert found["ipam_ippool_size", "pool0"] == 256
    assert found["ipam_allocations_in_use", "pool0", NODE] == found["ipam_blocks", "pool0", NODE] == 1
    assert found["tortie_ipam_addresses_free", "pool0"] == 255
    free = [key for key in found if key[:3] == ("tortie_ipam_block_addresses", "pool0", NODE) and key[4] == "free"]
    assert [found[key] for key in free] == [63]
    families = {family.name: family for family in text_string_to_metric_families(out)}
    assert set(families) <= {name for name, _, _ in KNOWN}
    assert {family.type for family in families.values()} == {"gauge"}
    assert all(family.documentation for family in families.values())


def test_a_file_is_whole_and_anybody_may_read_it(tortie, tmp_path):
    file = tmp_path / "tortie_ipam.prom"
    file.write_text("old")
    assert tortie.run("--output", str(file)) == (0, "", "")
    assert samples(file.read_text())["tortie_ipam_nodes",] == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [*tmp_path.iterdir()] == [file]


def test_an_outage_leaves_the_file_as_it_was(tortie, tmp_path):
    file = tmp_path / "tortie_ipam.prom"
    file.write_text("old")

    def away(_verb, _key):
        raise Unavailable("away")

    tortie.datastore.before = away
    assert tortie.run("--output", str(file)) == (1, "", "Error: away\n")
    assert file.read_text() == "old"


def test_a_folder_that_is_not_there_is_one_line(tortie, tmp_path):
    code, out, err = tortie.run("--output", str(tmp_path / "absent/x.prom"))
    assert (code, out, err) == (1, "", f"Error: {tmp_path}/absent/x.prom: No such file or directory\n")


def test_names_cannot_break_out_of_their_label():
    name = 'a"} 1\nb\\'
    text = exposition([Metric("m", "About.", ("ippool",), (((name,), 1 << 80),))])
    assert samples(text) == {("m", name): float(1 << 80)}
