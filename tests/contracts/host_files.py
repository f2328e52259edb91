"""What every adapter of the host's files keeps: derive, provide `files` and `place` (a folder that exists)."""

from __future__ import annotations

import pytest

from ports.errors import Missing
from ports.host_files import FILE, FOLDER, LINK, HostFileError, HostFiles, Look

BLOCK = bytes(range(256)) * 1000


class HostFilesContract:
    def link(self, files: HostFiles, path: str, target: str) -> None:
        """A symbolic link, which the port cannot make."""
        raise NotImplementedError

    def test_what_is_written_has_its_mode_and_content(self, files: HostFiles, place: str) -> None:
        files.write(f"{place}/secret", b"token", 0o600)
        assert files.look(f"{place}/secret") == Look(FILE, 5, 0o600)
        assert files.read(f"{place}/secret") == b"token"

    def test_nothing_is_written_over(self, files: HostFiles, place: str) -> None:
        files.write(f"{place}/one", b"1", 0o644)
        with pytest.raises(HostFileError) as failed:
            files.write(f"{place}/one", b"2", 0o644)
        assert str(failed.value) == f"open {place}/one: file exists"
        with pytest.raises(HostFileError):
            files.copy(f"{place}/one", f"{place}/one")
        with pytest.raises(HostFileError):
            files.keep(f"{place}/one", f"{place}/one")
        assert files.read(f"{place}/one") == b"1"

    def test_a_missing_folder_is_an_error_that_names_the_path(self, files: HostFiles, place: str) -> None:
        with pytest.raises(HostFileError) as failed:
            files.write(f"{place}/none/one", b"", 0o644)
        assert str(failed.value) == f"open {place}/none/one: no such file or directory"
        with pytest.raises(HostFileError, match="no such file or directory"):
            files.open_stage(f"{place}/none")

    def test_a_folder_is_the_same_whatever_leads_to_it(self, files: HostFiles, place: str) -> None:
        files.make_folder(f"{place}/one")
        files.make_folder(f"{place}/two")
        files.write(f"{place}/file", b"", 0o600)
        self.link(files, f"{place}/link", f"{place}/one")
        assert files.identity(f"{place}/link") == files.identity(f"{place}/one")
        assert files.identity(f"{place}/one") not in ("", files.identity(f"{place}/two"))
        assert (files.identity(f"{place}/file"), files.identity(f"{place}/none")) == ("", "")

    def test_what_is_missing_is_seen_as_such(self, files: HostFiles, place: str) -> None:
        path = f"{place}/none"
        assert files.look(path) is None
        assert files.look(path, follow=True) is None
        assert files.digest(path) == ""
        assert files.why_unwritable(path) == "no such file or directory"
        files.remove(path)
        files.remove_tree(path)
        with pytest.raises(Missing, match="no such file or directory"):
            files.read(path)
        with pytest.raises(Missing, match="no such file or directory"):
            files.names(path)
        for verb in (files.copy, files.keep, files.move):
            with pytest.raises(HostFileError, match="no such file or directory"):
                verb(path, f"{place}/other")

    def test_replacing_keeps_nothing_of_what_was_there(self, files: HostFiles, place: str) -> None:
        files.replace(f"{place}/conf", b"a longer text", 0o644)
        files.replace(f"{place}/conf", b"short", 0o600)
        assert files.read(f"{place}/conf") == b"short"
        assert files.look(f"{place}/conf") == Look(FILE, 5, 0o600)
        assert files.names(place) == ("conf",)

    def test_a_link_is_replaced_and_not_followed(self, files: HostFiles, place: str) -> None:
        files.write(f"{place}/elsewhere", b"theirs", 0o644)
        self.link(files, f"{place}/conf", f"{place}/elsewhere")
        assert files.look(f"{place}/conf", follow=True) == Look(FILE, 6, 0o644)
        found = files.look(f"{place}/conf")
        assert found
        assert found.kind == LINK
        files.replace(f"{place}/conf", b"ours", 0o644)
        assert files.read(f"{place}/conf") == b"ours"
        assert files.read(f"{place}/elsewhere") == b"theirs"

    def test_a_link_as_the_source_is_followed(self, files: HostFiles, place: str) -> None:
        files.write(f"{place}/data", b"secret", 0o640)
        self.link(files, f"{place}/etcd-key", f"{place}/data")
        files.copy(f"{place}/etcd-key", f"{place}/copied")
        assert files.read(f"{place}/copied") == b"secret"
        assert files.look(f"{place}/copied") == Look(FILE, 6, 0o640)
        assert files.same(f"{place}/etcd-key", f"{place}/copied")

    def test_a_folder_is_no_source(self, files: HostFiles, place: str) -> None:
        files.make_folder(f"{place}/sub")
        with pytest.raises(HostFileError) as failed:
            files.copy(f"{place}/sub", f"{place}/copied")
        assert str(failed.value) == f'copy {place}/sub: CopyFile: non-regular source file sub ("drwxr-xr-x")'
        assert files.look(f"{place}/copied") is None
        with pytest.raises(HostFileError):
            files.read(f"{place}/sub")

    def test_a_folder_is_not_replaced_by_a_file(self, files: HostFiles, place: str) -> None:
        files.make_folder(f"{place}/calico")
        with pytest.raises(HostFileError, match=r"^rename .*/calico: .*directory"):
            files.replace(f"{place}/calico", b"", 0o755)
        with pytest.raises(HostFileError, match=r"^remove .*/calico: .*directory"):
            files.remove(f"{place}/calico")
        assert files.names(place) == ("calico",)

    def test_a_folder_moves_with_all_that_is_in_it(self, files: HostFiles, place: str) -> None:
        files.make_folder(f"{place}/stage/tls")
        files.write(f"{place}/stage/tls/key", b"k", 0o600)
        files.move(f"{place}/stage/tls", f"{place}/tls")
        assert files.read(f"{place}/tls/key") == b"k"
        assert files.names(f"{place}/stage") == ()

    def test_folders_are_made_with_those_above(self, files: HostFiles, place: str) -> None:
        files.make_folder(f"{place}/a/b/c", 0o700)
        files.make_folder(f"{place}/a/b/c", 0o755)
        found = [files.look(f"{place}/{name}") for name in ("a", "a/b", "a/b/c")]
        assert [(look.kind, look.mode) for look in found if look] == [(FOLDER, 0o755), (FOLDER, 0o755), (FOLDER, 0o700)]
        assert files.why_unwritable(f"{place}/a") == ""
        assert files.names(f"{place}/a") == ("b",)

    def test_a_folder_is_held_again_and_changed_meanwhile(self, files: HostFiles, place: str) -> None:
        for _ in range(2):
            with files.held(place):
                files.replace(f"{place}/conf", b"{}", 0o600)

    def test_a_stage_is_seen_by_nobody_and_goes_with_what_is_in_it(self, files: HostFiles, place: str) -> None:
        stage = files.open_stage(place)
        found = files.look(stage)
        assert found
        assert (found.kind, found.mode) == (FOLDER, 0o700)
        assert stage.startswith(f"{place}/.")
        assert not stage.endswith((".conf", ".conflist", ".json"))
        files.write(f"{stage}/calico", b"new", 0o755)
        assert files.names(place) == ()
        files.move(f"{stage}/calico", f"{place}/calico")
        files.write(f"{stage}/never", b"", 0o755)
        files.close_stage(stage)
        assert files.look(stage) is None
        assert files.names(place) == ("calico",)

    def test_what_is_only_called_alike_is_no_stage(self, files: HostFiles, place: str) -> None:
        files.make_folder(f"{place}/.tortie-replaced")
        files.write(f"{place}/.tortie-replaced/one", b"", 0o600)
        files.close_stage(files.open_stage(place))
        assert files.names(place) == (".tortie-replaced",)
        assert files.names(f"{place}/.tortie-replaced") == ("one",)

    def test_what_is_kept_stays_when_the_original_is_replaced(self, files: HostFiles, place: str) -> None:
        files.write(f"{place}/calico", b"old", 0o750)
        files.make_folder(f"{place}/kept", 0o700)
        files.keep(f"{place}/calico", f"{place}/kept/calico")
        before = files.digest(f"{place}/calico")
        files.replace(f"{place}/calico", b"new", 0o755)
        assert files.read(f"{place}/kept/calico") == b"old"
        assert files.look(f"{place}/kept/calico") == Look(FILE, 3, 0o750)
        assert files.digest(f"{place}/kept/calico") == before != files.digest(f"{place}/calico")
        files.move(f"{place}/kept/calico", f"{place}/calico")
        assert files.digest(f"{place}/calico") == before
        assert files.names(f"{place}/kept") == ()

    def test_a_link_is_kept_as_one(self, files: HostFiles, place: str) -> None:
        self.link(files, f"{place}/calico", "/nowhere")
        files.keep(f"{place}/calico", f"{place}/kept")
        found = files.look(f"{place}/kept")
        assert found
        assert found.kind == LINK
        assert files.digest(f"{place}/kept") == files.digest(f"{place}/calico") != ""

    def test_a_tree_goes_whole_and_links_in_it_are_not_followed(self, files: HostFiles, place: str) -> None:
        files.make_folder(f"{place}/tls/sub")
        files.make_folder(f"{place}/other")
        files.write(f"{place}/other/stays", b"", 0o600)
        files.write(f"{place}/tls/sub/key", b"", 0o600)
        self.link(files, f"{place}/tls/link", f"{place}/other")
        files.remove_tree(f"{place}/tls")
        assert files.names(place) == ("other",)
        assert files.names(f"{place}/other") == ("stays",)
        self.link(files, f"{place}/link", f"{place}/other")
        files.remove_tree(f"{place}/link")
        assert files.names(f"{place}/other") == ("stays",)

    @pytest.mark.parametrize(
        ("source", "target", "modes", "expected"),
        [
            pytest.param(b"text", b"text", (0o644, 0o644), True, id="INST-015"),
            pytest.param(b"text", b"another text", (0o644, 0o644), False, id="INST-016"),
            pytest.param(b"foobar", b"barfoo", (0o644, 0o644), False, id="INST-017"),
            pytest.param(b"text", b"text", (0o644, 0o777), False, id="INST-018"),
            pytest.param(BLOCK, BLOCK[:10], (0o644, 0o644), False, id="INST-019"),
            pytest.param(BLOCK[:10], BLOCK, (0o644, 0o644), False, id="INST-020"),
            pytest.param(BLOCK[:128002], BLOCK[:128003], (0o644, 0o644), False, id="INST-021"),
            pytest.param(BLOCK, BLOCK, (0o644, 0o644), True, id="INST-022"),
            pytest.param(BLOCK, BLOCK[:-1] + b"x", (0o644, 0o644), False, id="the last byte"),
        ],
    )
    def test_files_are_the_same_by_size_mode_and_content(
        self, files: HostFiles, place: str, source: bytes, target: bytes, modes: tuple[int, int], *, expected: bool
    ) -> None:
        files.write(f"{place}/source", source, modes[0])
        files.write(f"{place}/target", target, modes[1])
        assert files.same(f"{place}/source", f"{place}/target") is expected
        assert (files.digest(f"{place}/source") == files.digest(f"{place}/target")) is (source == target)

    def test_what_is_missing_or_a_link_is_not_the_same(self, files: HostFiles, place: str) -> None:
        files.write(f"{place}/source", b"", 0o755)
        assert not files.same(f"{place}/source", f"{place}/none")
        self.link(files, f"{place}/link", f"{place}/source")
        assert not files.same(f"{place}/source", f"{place}/link")
        with pytest.raises(HostFileError) as failed:
            files.same(f"{place}/none", f"{place}/source")
        assert str(failed.value) == f"stat {place}/none: no such file or directory"
