"""Archives of notes: names in old encodings, paths that lead out, bombs, damage."""

from __future__ import annotations

import io
import os
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.errors import InputError, NotFoundError, QmdError
from qmd.kb import KnowledgeBase
from qmd.transfer import markdown_zip
from qmd.values.transfer import UnpackReport

unpack = KnowledgeBase.unpack_notes


class OldInfo(zipfile.ZipInfo):
    """A name as Windows writes it: bytes of the system's encoding, and no word about it."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode("cp437"), self.flag_bits


def packed(path: Path, entries: dict[str, bytes], encoding: str | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            if encoding is None:
                archive.writestr(zipfile.ZipInfo(name, (2024, 3, 1, 10, 0, 0)), data)
            else:
                archive.writestr(OldInfo(name.encode(encoding).decode("cp437")), data)
    return path


def unpacked(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def reasons(report: UnpackReport) -> dict[str, str]:
    return {each.subject: each.reason for each in report.not_taken}


class TestFiles:
    def test_they_come_with_their_folders_and_times(self, tmp_path: Path) -> None:
        files = {"a.md": b"# A\n", "b/c.md": b"# C\n", "b/d.png": b"\x89PNG"}
        report = unpack(packed(tmp_path / "n.zip", files), tmp_path / "new/notes")
        assert unpacked(tmp_path / "new/notes") == files
        assert (report.files, report.present, report.bytes) == (3, 0, 12)
        modified = (tmp_path / "new/notes/a.md").stat()
        assert modified.st_mtime < 1_800_000_000 and modified.st_mode & 0o111 == 0

    def test_a_second_time_nothing_is_written_and_nothing_replaced(self, tmp_path: Path) -> None:
        archive = packed(tmp_path / "n.zip", {"a.md": b"# A\n", "b.md": b"# B\n"})
        unpack(archive, tmp_path / "notes")
        (tmp_path / "notes/b.md").write_text("mine\n")
        report = unpack(archive, tmp_path / "notes")
        assert (report.files, report.present) == (0, 1)
        assert reasons(report) == {"b.md": "Another file of this name is there."}
        assert (tmp_path / "notes/b.md").read_text() == "mine\n"

    def test_a_dry_run_counts_the_same_and_writes_nothing(self, tmp_path: Path) -> None:
        archive = packed(tmp_path / "n.zip", {"a.md": b"# A\n", "../b.md": b"x"})
        planned = unpack(archive, tmp_path / "notes", dry_run=True)
        assert not (tmp_path / "notes").exists()
        done = unpack(archive, tmp_path / "notes")
        assert (planned.files, planned.bytes) == (done.files, done.bytes)
        assert planned.not_taken == done.not_taken

    def test_an_archive_in_the_archive_is_unpacked_once(self, tmp_path: Path) -> None:
        deepest = packed(tmp_path / "3.zip", {"deep.md": b"x"}).read_bytes()
        inner = packed(tmp_path / "2.zip", {"page.md": b"# Page\n", "3.zip": deepest})
        outer = {"Export-Part-1.zip": inner.read_bytes(), "bad.zip": b"no archive"}
        report = unpack(packed(tmp_path / "1.zip", outer), tmp_path / "notes")
        assert unpacked(tmp_path / "notes") == {"page.md": b"# Page\n", "3.zip": deepest}
        assert "bad.zip is no ZIP archive" in reasons(report)["bad.zip"]


class TestNames:
    @pytest.mark.parametrize(
        ("name", "encoding", "detected"),
        [
            ("笔记/会议记录.md", "gbk", "gb18030"),
            ("笔记.md", "gbk", "gb18030"),
            ("筆記/會議記錄.md", "big5", "big5hkscs"),
            ("会議/メモ.md", "shift_jis", "cp932"),
            ("메모/회의.md", "euc-kr", "euc_kr"),
            ("Übersicht/äpfel.md", "cp437", "cp437"),
            ("笔记/ü.md", "utf-8", "utf-8"),  # without the flag, as on macOS
        ],
    )
    def test_the_encoding_is_detected(
        self, tmp_path: Path, name: str, encoding: str, detected: str
    ) -> None:
        report = unpack(packed(tmp_path / "n.zip", {name: b"x"}, encoding), tmp_path / "notes")
        assert list(unpacked(tmp_path / "notes")) == [name]
        assert report.encoding == detected

    def test_it_can_be_named(self, tmp_path: Path) -> None:
        archive = packed(tmp_path / "n.zip", {"план.md": b"x"}, "cp866")
        unpack(archive, tmp_path / "notes", encoding="cp866")
        assert list(unpacked(tmp_path / "notes")) == ["план.md"]
        with pytest.raises(InputError, match="no encoding"):
            unpack(archive, tmp_path / "notes", encoding="klingon")

    def test_the_field_of_info_zip_counts(self, tmp_path: Path) -> None:
        raw = "笔记.md".encode("gbk")
        info = OldInfo(raw.decode("cp437"))
        field = b"\x01" + struct.pack("<I", zlib.crc32(raw)) + "真名.md".encode()
        info.extra = struct.pack("<HH", 0x7075, len(field)) + field
        with zipfile.ZipFile(tmp_path / "n.zip", "w") as archive:
            archive.writestr(info, b"x")
        unpack(tmp_path / "n.zip", tmp_path / "notes")
        assert list(unpacked(tmp_path / "notes")) == ["真名.md"]

    def test_backslashes_of_windows_are_folders(self, tmp_path: Path) -> None:
        unpack(packed(tmp_path / "n.zip", {"a\\b.md": b"x"}), tmp_path / "notes")
        assert list(unpacked(tmp_path / "notes")) == ["a/b.md"]


class TestHostileArchives:
    @pytest.mark.parametrize(
        "name",
        [
            "../x.md",
            "a/../../x.md",
            "/etc/x.md",
            "C:\\x.md",
            "..\\x.md",
            "\\\\host\\x.md",
            "a/../x",
        ],
    )
    def test_a_path_that_leads_out_is_refused(self, tmp_path: Path, name: str) -> None:
        report = unpack(packed(tmp_path / "n.zip", {name: b"evil"}), tmp_path / "in/notes")
        assert unpacked(tmp_path / "in") == {}
        assert list(reasons(report).values()) == ["Its path leads out of the folder."]

    @pytest.mark.parametrize("kind", [0o120777, 0o010644, 0o020644, 0o040755])
    def test_links_and_devices_are_refused(self, tmp_path: Path, kind: int) -> None:
        info = zipfile.ZipInfo("link.md")
        info.external_attr = kind << 16
        with zipfile.ZipFile(tmp_path / "n.zip", "w") as archive:
            archive.writestr(info, b"/etc/passwd")
        report = unpack(tmp_path / "n.zip", tmp_path / "notes")
        assert list((tmp_path / "notes").iterdir()) == []
        assert list(reasons(report)) == ["link.md"]

    def test_hooks_of_git_and_other_hidden_files_are_left_out(self, tmp_path: Path) -> None:
        files = {".git/hooks/post-merge": b"evil", "a/.hidden": b"", "__MACOSX/._a.md": b""}
        report = unpack(packed(tmp_path / "n.zip", files | {"a.md": b"x"}), tmp_path / "notes")
        assert list(unpacked(tmp_path / "notes")) == ["a.md"]
        assert list(reasons(report)) == ["3 hidden"]

    @pytest.mark.parametrize("name", ["CLAUDE.md", "a/Agents.md", "skill/SKILL.md", "x.prompt.md"])
    def test_orders_for_assistants_are_not_unpacked(self, tmp_path: Path, name: str) -> None:
        report = unpack(packed(tmp_path / "n.zip", {name: b"Do it."}), tmp_path / "notes")
        assert unpacked(tmp_path / "notes") == {}
        assert "unpack it yourself" in reasons(report)[name]

    def test_no_link_in_the_folder_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "secret").mkdir()
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes/sub").symlink_to(tmp_path / "secret")
        (tmp_path / "notes/file.md").symlink_to(tmp_path / "secret/new.md")
        files = {"sub/a.md": b"evil", "file.md": b"evil"}
        report = unpack(packed(tmp_path / "n.zip", files), tmp_path / "notes")
        assert list((tmp_path / "secret").iterdir()) == []
        assert set(reasons(report)) == {"sub/a.md", "file.md"}

    def test_a_file_where_a_folder_must_be_is_listed(self, tmp_path: Path) -> None:
        files = {"a": b"file", "a/b.md": b"below a file", "x" * 250 + "/" + "y" * 256: b"long"}
        report = unpack(packed(tmp_path / "n.zip", files), tmp_path / "notes")
        assert unpacked(tmp_path / "notes") == {"a": b"file"}
        assert len(reasons(report)) == 2

    def test_a_bomb_is_refused_and_its_file_removed(self, tmp_path: Path) -> None:
        bomb = tmp_path / "bomb.zip"
        with (
            zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
            archive.open("zeros.md", "w") as file,
        ):
            for _ in range(200):
                file.write(bytes(1024 * 1024))
        for dry_run in (True, False):
            with pytest.raises(InputError, match="holds too much"):
                unpack(bomb, tmp_path / "notes", dry_run=dry_run)
        assert unpacked(tmp_path / "notes") == {}

    def test_a_bomb_in_an_archive_is_refused(self, tmp_path: Path) -> None:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros.md", bytes(100 * 1024 * 1024))
        with pytest.raises(InputError, match="holds too much"):
            unpack(packed(tmp_path / "n.zip", {"i.zip": data.getvalue()}), tmp_path / "notes")

    def test_too_many_entries_are_refused_before_they_are_loaded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        archive = packed(tmp_path / "n.zip", {"a.md": b"x"})
        data = bytearray(archive.read_bytes())
        place = data.rfind(b"PK\x05\x06")
        struct.pack_into("<I", data, place + 12, 100 * 1024 * 1024)
        (tmp_path / "large.zip").write_bytes(data)
        with pytest.raises(InputError, match="100,000 entries"):
            unpack(tmp_path / "large.zip", tmp_path / "notes")
        monkeypatch.setattr(markdown_zip, "MAX_ENTRIES", 2)
        many = packed(tmp_path / "many.zip", {f"{number}.md": b"" for number in range(3)})
        with pytest.raises(InputError, match="more than 2 entries"):
            unpack(many, tmp_path / "notes")

    def test_an_encrypted_one_says_what_to_do(self, tmp_path: Path) -> None:
        data = bytearray(packed(tmp_path / "n.zip", {"a.md": b"x"}).read_bytes())
        for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.find(signature) + offset] |= 1
        (tmp_path / "n.zip").write_bytes(data)
        with pytest.raises(InputError, match="encrypted") as caught:
            unpack(tmp_path / "n.zip", tmp_path / "notes")
        assert "qmd up FOLDER" in (caught.value.hint or "")

    def test_a_damaged_file_is_listed_and_the_others_are_taken(self, tmp_path: Path) -> None:
        archive = packed(tmp_path / "n.zip", {"a.md": os.urandom(5000), "b.md": b"fine"})
        data = bytearray(archive.read_bytes())
        data[200:300] = bytes(100)
        archive.write_bytes(data)
        report = unpack(archive, tmp_path / "notes")
        assert unpacked(tmp_path / "notes") == {"b.md": b"fine"}
        assert reasons(report)["a.md"].startswith("It is damaged")

    def test_what_is_no_archive_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "n.zip").write_text("text")
        with pytest.raises(InputError, match="no ZIP archive"):
            unpack(tmp_path / "n.zip", tmp_path / "notes")
        with pytest.raises(NotFoundError):
            unpack(tmp_path / "gone.zip", tmp_path / "notes")


@settings(deadline=None)
@given(
    names=st.dictionaries(
        st.text(st.sampled_from("ab./\\:é文\n"), min_size=1, max_size=12), st.binary(max_size=20)
    ),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
)
def test_whatever_an_archive_holds_stays_in_the_folder(
    names: dict[str, bytes], changes: list[tuple[float, int]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for name, content in names.items():
                archive.writestr(name, content)
        damaged = bytearray(data.getvalue())
        for place, value in changes:
            damaged[int(place * len(damaged))] = value
        (root / "n.zip").write_bytes(damaged)
        (root / "in").mkdir()
        try:
            report = unpack(root / "n.zip", root / "in/notes")
        except QmdError:
            pass
        else:
            assert report.files == len(unpacked(root / "in/notes"))
        assert {path.name for path in root.iterdir()} == {"n.zip", "in"}
        assert {path.name for path in (root / "in").iterdir()} <= {"notes"}
        assert not any(path.is_symlink() for path in (root / "in").rglob("*"))
