"""What every node keeps: derive, provide `node` and `place` (a directory path that `node` may write to)."""

from __future__ import annotations

import pytest

from ports.errors import Missing, Refused
from ports.node import ThisNode


class NodeContract:
    def test_what_is_written_is_read(self, node: ThisNode, place: str) -> None:
        node.write(f"{place}/mtu", "1440\n")
        assert node.read(f"{place}/mtu") == "1440\n"

    def test_writing_replaces_the_whole_file(self, node: ThisNode, place: str) -> None:
        node.write(f"{place}/f", "a long text")
        node.write(f"{place}/f", "ü")
        assert node.read(f"{place}/f") == "ü"

    def test_writing_makes_the_directories_above(self, node: ThisNode, place: str) -> None:
        node.write(f"{place}/a/b/c", "x")
        assert node.read(f"{place}/a/b/c") == "x"

    def test_a_missing_file_is_missing_in_gos_words(self, node: ThisNode, place: str) -> None:
        with pytest.raises(Missing) as missing:
            node.read(f"{place}/none")
        assert str(missing.value) == f"open {place}/none: no such file or directory"

    def test_a_file_of_more_than_a_mebibyte_is_refused(self, node: ThisNode, place: str) -> None:
        node.write(f"{place}/large", "x" * (1 << 20))
        assert len(node.read(f"{place}/large")) == 1 << 20
        node.write(f"{place}/large", "x" * ((1 << 20) + 1))
        with pytest.raises(Refused, match="file too large"):
            node.read(f"{place}/large")

    def test_existence_follows_writing_and_removing(self, node: ThisNode, place: str) -> None:
        path = f"{place}/f"
        assert not node.exists(path)
        node.write(path, "")
        assert node.exists(path)
        node.remove(path)
        assert not node.exists(path)

    def test_removing_what_is_not_there_is_fine(self, node: ThisNode, place: str) -> None:
        node.remove(f"{place}/none")
        node.remove(f"{place}/no/directory")

    def test_only_our_own_namespace_is_our_own(self, node: ThisNode, place: str) -> None:
        node.write(f"{place}/file", "")
        assert node.is_own_namespace("/proc/self/ns/net")
        assert not node.is_own_namespace(f"{place}/file")
        assert not node.is_own_namespace("/nowhere/at/all")
        assert not node.is_own_namespace("")

    def test_the_host_has_a_name(self, node: ThisNode, place: str) -> None:
        assert isinstance(node.host_name(), str)
