"""Writing metadata into photos: what changes, what must not, and what is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import PhotoError
from qmd.files.photos.exiftool import ExifTool
from qmd.files.photos.images import MAX_BYTES
from qmd.values import PhotoChange
from tests.support import child, disk
from tests.support.photos import (
    MASK,
    SUFFIXES,
    exiftool,
    listed,
    make,
    others,
    pixels,
    set_tags,
    tags,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and permissions of POSIX")


@pytest.fixture
def album(tmp_path: Path) -> Path:
    directory = tmp_path / "album"
    directory.mkdir()
    return directory


class LongLived(ExifTool):
    """One process for all tests: starting it takes longer than most of them."""

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def tool() -> Iterator[ExifTool]:
    shared = LongLived()
    yield shared
    super(LongLived, shared).close()


@pytest.fixture
def kb(tmp_path: Path, album: Path, tool: ExifTool) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(write_roots=[tmp_path]), create=True
    ) as opened:
        opened._opened.exiftool = tool
        opened.add_collection(album, mask=MASK)
        yield opened


@pytest.fixture(params=SUFFIXES)
def photo(request: pytest.FixtureRequest, album: Path) -> Path:
    return make(album / f"photo.{request.param}")


@pytest.fixture
def jpg(album: Path) -> Path:
    return make(album / "photo.jpg")


def problem(kb: KnowledgeBase, path: str | Path, change: PhotoChange | None = None) -> PhotoError:
    with pytest.raises(PhotoError) as caught:
        kb.images.write(path, change or PhotoChange(tags=("x",)))
    return caught.value


WHOLE = PhotoChange(
    tags=("家庭", "海滩 2", "emoji 😀"),
    people=("张三", "O'Neill"),
    description="第一行\nsecond line with <xml> & “quotes”",
    location="法国巴黎埃菲尔铁塔",
)


# --- what is written -----------------------------------------------------------------


def test_every_field_stands_where_other_programs_look(kb: KnowledgeBase, photo: Path) -> None:
    written = kb.images.write(photo, WHOLE)
    found = tags(photo)
    keywords = ["家庭", "海滩 2", "emoji 😀", "张三", "O'Neill"]
    assert listed(found["XMP-dc:Subject"]) == keywords
    assert listed(found["XMP-iptcExt:PersonInImage"]) == ["张三", "O'Neill"]
    assert found["XMP-dc:Description"] == WHOLE.description
    assert found["IFD0:ImageDescription"] == WHOLE.description
    assert found["XMP-iptcCore:Location"] == WHOLE.location
    iptc = {name: value for name, value in found.items() if name.startswith("IPTC")}
    if photo.suffix == ".jpg":
        assert listed(iptc["IPTC:Keywords"]) == keywords
        assert iptc["IPTC:Caption-Abstract"] == WHOLE.description
        assert iptc["IPTC:Sub-location"] == WHOLE.location
        assert iptc["IPTC:CodedCharacterSet"] == "\x1b%G"
    else:
        assert iptc == {}
    assert (written.changed, written.kept, written.problem) == (True, (), None)


def test_what_nobody_asked_to_write_stays_as_it_was(kb: KnowledgeBase, photo: Path) -> None:
    set_tags(
        photo,
        *("-XMP-xmp:Rating=4", "-XMP-dc:Creator=me", "-XMP-dc:Title=T", "-XMP-dc:Title-de=D"),
        *("-XMP-dc:Description-de=Der Turm", "-XMP-lr:HierarchicalSubject=a|b"),
        *("-XMP-mwg-rs:RegionInfo={RegionList=[{Name=Ann,Type=Face}]}", "-EXIF:Artist=me"),
    )
    if photo.suffix == ".jpg":
        set_tags(photo, "-IPTC:CodedCharacterSet=UTF8", "-IPTC:City=北京", "-IPTC:Headline=H")
    before, image = others(photo), pixels(photo)
    assert len(before) > 40
    for change, overwrite in (
        (WHOLE, True),
        (PhotoChange(tags=("more",), description="not taken"), False),
        (PhotoChange(tags=(), people=()), True),
    ):
        kb.images.write(photo, change, overwrite=overwrite)
        after = others(photo)
        moved = {"QuickTime:MediaDataSize", "QuickTime:MediaDataOffset"}
        assert {k: v for k, v in before.items() if k not in moved} == {
            name: value for name, value in after.items() if name in before and name not in moved
        }
        # IPTC has a version of its own, where there was none.
        assert after.keys() - before.keys() <= {"IPTC:EnvelopeRecordVersion"}
        assert pixels(photo) == image


def test_raw_blocks_are_byte_for_byte_the_same(kb: KnowledgeBase, photo: Path) -> None:
    def raw() -> dict[str, str]:
        blocks = ("-ICC_Profile", "-MakerNoteUnknown", "-UserComment", "-XPKeywords")
        return dict(json.loads(exiftool("-q", "-q", "-j", "-b", *blocks, photo))[0])

    before = raw()
    assert len(before) == 5 and before["MakerNoteUnknown"].startswith("base64:")
    kb.images.write(photo, WHOLE)
    assert raw() == before


def test_thumbnails_previews_and_trailers_stay(kb: KnowledgeBase, album: Path) -> None:
    photo = make(album / "phone.jpg")
    set_tags(photo, f"-ThumbnailImage<={make(album / 'thumb.jpg')}")
    video = b"\0\0\0\x18ftypmp42" + random.Random(5).randbytes(5000)
    photo.write_bytes(photo.read_bytes() + video)
    thumbnail = tags(photo)["IFD1:ThumbnailImage"]
    kb.images.write(photo, WHOLE)
    assert tags(photo)["IFD1:ThumbnailImage"] == thumbnail
    assert photo.read_bytes().endswith(video)


def test_iptc_in_an_old_encoding_becomes_utf8_as_a_whole(kb: KnowledgeBase, album: Path) -> None:
    photo = make(album / "old.jpg")
    set_tags(photo, "-IPTC:City=Zürich", "-IPTC:Keywords=Grüße", "-IPTC:By-line=José")
    assert b"Z\xfcrich" in photo.read_bytes()
    kb.images.write(photo, PhotoChange(tags=("新",)), overwrite=False)
    found = tags(photo)
    assert (found["IPTC:City"], found["IPTC:By-line"]) == ("Zürich", "José")
    assert found["IPTC:Keywords"] == found["XMP-dc:Subject"] == ["Grüße", "新"]
    assert "Zürich".encode() in photo.read_bytes()


def test_unmarked_utf8_in_iptc_is_kept_and_marked(kb: KnowledgeBase, album: Path) -> None:
    photo = make(album / "unmarked.jpg")
    set_tags(photo, "-IPTC:CodedCharacterSet=UTF8", "-IPTC:City=北京", "-IPTC:Keywords=海滩")
    data = photo.read_bytes()
    unmarked = data.replace(b"\x1c\x01\x5a\x00\x03\x1b%G", b"\x1c\x01\x64\x00\x03abc")
    assert unmarked != data
    photo.write_bytes(unmarked)
    kb.images.write(photo, PhotoChange(tags=("新",)), overwrite=False)
    assert tags(photo)["IPTC:City"] == "北京"
    assert tags(photo)["IPTC:Keywords"] == ["海滩", "新"]


@pytest.mark.unmeasured
def test_the_longest_metadata_fits(kb: KnowledgeBase, photo: Path) -> None:
    names = tuple(f"{number:02}" + "标" * 98 for number in range(50))
    people = tuple(f"{number:02}" + "人" * 98 for number in range(50))
    kb.images.write(photo, PhotoChange(names, people, "描" * 10_000, "地" * 1000))
    found = tags(photo)
    assert listed(found["XMP-dc:Subject"]) == [*names, *people]
    assert found["IFD0:ImageDescription"] == "描" * 10_000
    if photo.suffix == ".jpg":
        assert listed(found["IPTC:Keywords"]) == [*names, *people]
    shown = kb.images.show(photo)
    assert (shown.tags, shown.people, shown.location) == (names, people, "地" * 1000)


# --- overwrite and append --------------------------------------------------------------


def test_tags_and_people_are_replaced_each_for_itself(kb: KnowledgeBase, jpg: Path) -> None:
    kb.images.write(jpg, PhotoChange(tags=("a", "b"), people=("P",)))
    kb.images.write(jpg, PhotoChange(tags=("c",)))
    assert listed(tags(jpg)["XMP-dc:Subject"]) == ["c", "P"]
    kb.images.write(jpg, PhotoChange(people=("Q", "c")))
    assert listed(tags(jpg)["XMP-dc:Subject"]) == ["Q", "c"]
    kb.images.write(jpg, PhotoChange(people=()))
    assert "XMP-iptcExt:PersonInImage" not in tags(jpg)
    assert "XMP-dc:Subject" not in tags(jpg)


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_empties_its_fields(kb: KnowledgeBase, photo: Path, blank: str) -> None:
    kb.images.write(photo, PhotoChange(("a",), None, "old", "here"))
    kb.images.write(photo, PhotoChange(description=blank, location=blank))
    metadata = kb.photo_metadata(photo)
    assert (metadata.tags, metadata.description, metadata.location) == (("a",), None, None)
    assert not kb.images.write(photo, PhotoChange(description=blank)).changed


def test_appending_unites_lists_and_keeps_texts(kb: KnowledgeBase, photo: Path) -> None:
    kb.images.write(photo, PhotoChange(("a", "b"), ("P",), "old", "here"))
    change = PhotoChange(("b", "c"), ("P", "Q"), "new", "there")
    written = kb.images.write(photo, change, overwrite=False)
    found = tags(photo)
    assert found["XMP-dc:Subject"] == ["a", "b", "c", "P", "Q"]
    assert found["XMP-iptcExt:PersonInImage"] == ["P", "Q"]
    assert (found["XMP-dc:Description"], found["XMP-iptcCore:Location"]) == ("old", "here")
    assert written.kept == ("description", "location")


def test_appending_a_text_where_there_is_none_writes_it(kb: KnowledgeBase, jpg: Path) -> None:
    written = kb.images.write(jpg, PhotoChange(description="first"), overwrite=False)
    assert written.kept == ()
    assert tags(jpg)["XMP-dc:Description"] == "first"


@pytest.mark.parametrize("change", [PhotoChange(), WHOLE])
def test_what_is_so_already_is_not_written(
    kb: KnowledgeBase, jpg: Path, change: PhotoChange
) -> None:
    if change == WHOLE:
        kb.images.write(jpg, WHOLE)
    before = jpg.stat()
    assert not kb.images.write(jpg, change).changed
    after = jpg.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_no_change_needs_no_exiftool(tmp_path: Path, album: Path) -> None:
    photo = make(album / "a.jpg")
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(exiftool="/nowhere"), create=True
    ) as kb:
        assert not kb.images.write(photo, PhotoChange()).changed
        assert kb.images.show(photo).camera == "ACME X100"
        refused = problem(kb, photo)
    assert (refused.problem, refused.cause) == ("not_written", "missing")


# --- the index and the history ---------------------------------------------------------


def test_searches_find_the_new_words_when_it_returns(kb: KnowledgeBase, jpg: Path) -> None:
    kb.images.write(jpg, WHOLE)
    for query in ("海滩", "tag:张三", "埃菲尔铁塔", "second line", "O'Neill", '"emoji"'):
        assert [hit.path for hit in kb.search(query).hits] == [jpg.name], query
    kb.images.write(jpg, PhotoChange(tags=("山",)))
    assert kb.search("海滩").hits == ()
    assert "山" in kb.get(f"album/{jpg.name}").text


def test_the_metadata_before_is_kept_not_the_bytes(kb: KnowledgeBase, jpg: Path) -> None:
    kb.images.write(jpg, WHOLE)
    kb.images.write(jpg, PhotoChange(("b",), (), "new", "there"))
    newest, oldest = kb.revisions.history(jpg)
    assert newest.kind == "metadata"
    assert json.loads(kb.revisions.content(jpg, newest.number)) == {
        "tags": ["家庭", "海滩 2", "emoji 😀"],
        "people": ["张三", "O'Neill"],
        "description": WHOLE.description,
        "location": WHOLE.location,
    }
    assert json.loads(kb.revisions.content(jpg, oldest.number))["tags"] == []


# --- the file itself -------------------------------------------------------------------


@posix
def test_mode_owner_attributes_and_links_are_kept(kb: KnowledgeBase, tmp_path: Path) -> None:
    store = tmp_path / "album" / "store"
    photo = make(store / "blob.jpg").rename(store / "blob")  # a name without a suffix
    photo.chmod(0o640)
    if sys.platform == "linux":
        os.setxattr(photo, "user.note", b"mine")
    if os.geteuid() == 0:
        os.chown(photo, 12345, 23456)
    before = photo.stat()
    link = tmp_path / "album/link.jpg"
    link.symlink_to("store/blob")
    kb.images.write(link, PhotoChange(tags=("x",)))
    assert link.is_symlink()
    after = photo.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    if sys.platform == "linux":
        assert os.getxattr(photo, "user.note") == b"mine"
    assert kb.images.show(link).tags == ("x",)
    assert [each.name for each in store.iterdir()] == ["blob"]


def test_letter_case_of_the_suffix_does_not_matter(kb: KnowledgeBase, album: Path) -> None:
    for name in ("a.JPG", "b.Jpeg", "c.PNG", "d.HeIc"):
        photo = make(album / name)
        kb.images.write(photo, PhotoChange(tags=("x",)))
        assert listed(tags(photo)["XMP-dc:Subject"]) == ["x"]
    assert {hit.path for hit in kb.search("tag:x").hits} == {"a.JPG", "b.Jpeg", "c.PNG", "d.HeIc"}


def untouched(kb: KnowledgeBase, photo: Path, change: PhotoChange | None = None) -> PhotoError:
    """The problem; the folder must be as it was."""
    before = {each: each.read_bytes() for each in photo.parent.iterdir() if each.is_file()}
    found = problem(kb, photo, change)
    assert before == {each: each.read_bytes() for each in photo.parent.iterdir() if each.is_file()}
    return found


def test_what_is_not_there_is_not_found(kb: KnowledgeBase, album: Path) -> None:
    file = make(album / "a.jpg")
    for path in (album / "none.jpg", album / "none.txt", file / "below.jpg", "/n\0l.jpg"):
        assert problem(kb, path).problem == "not_found"


@posix
def test_what_is_no_regular_file_is_not_readable(kb: KnowledgeBase, album: Path) -> None:
    (album / "folder.jpg").mkdir()
    os.mkfifo(album / "fifo.jpg")
    secret = make(album / "secret.jpg")
    secret.chmod(0)
    for name in ("folder.jpg", "fifo.jpg", "secret.jpg"):
        assert problem(kb, album / name).problem == "not_readable"


@posix
def test_a_read_only_file_is_not_writable_for_the_superuser_either(
    kb: KnowledgeBase, jpg: Path
) -> None:
    jpg.chmod(0o444)
    assert untouched(kb, jpg).problem == "not_writable"


PERMISSIONS = """
import sys
from qmd import KnowledgeBase
from qmd.errors import PhotoError
from qmd.values import PhotoChange
with KnowledgeBase.open(sys.argv[1]) as kb:
    for photo in sys.argv[2:]:
        try:
            kb.images.write(photo, PhotoChange(tags=("x",)))
            print("written")
        except PhotoError as error:
            print(error.problem)
"""


@posix
def test_permissions_of_file_and_folder_hold(kb: KnowledgeBase, tmp_path: Path) -> None:
    unreadable, unwritable, closed, fine = (
        make(tmp_path / name / "a.jpg") for name in ("one", "two", "three", "four")
    )
    unreadable.chmod(0o200)
    unwritable.chmod(0o444)
    closed.parent.chmod(0o555)
    out = child.unprivileged(PERMISSIONS, kb.path, unreadable, unwritable, closed, fine)
    assert out.split() == ["not_readable", "not_writable", "not_writable", "written"]
    assert [each.name for each in closed.parent.iterdir()] == ["a.jpg"]


def test_outside_the_write_roots_nothing_is_written(tmp_path: Path, album: Path, jpg: Path) -> None:
    (tmp_path / "open").mkdir()
    link = tmp_path / "open/link.jpg"
    link.symlink_to(jpg)
    for settings in (Settings(write_roots=[tmp_path / "open"]), Settings(read_only_files=True)):
        with KnowledgeBase.open(tmp_path / "x.sqlite", settings, create=True) as kb:
            for path in (jpg, link):
                refused = problem(kb, path)
                assert (refused.problem, refused.cause) == ("not_writable", "outside")
                assert "--" in refused.reason


def test_read_only_comes_before_whether_there_is_such_a_file(tmp_path: Path, jpg: Path) -> None:
    with KnowledgeBase.open(
        tmp_path / "x.sqlite", Settings(read_only_files=True), create=True
    ) as kb:
        told = {str(problem(kb, path)) for path in (jpg, tmp_path / "none.jpg", tmp_path)}
    assert len(told) == 1


@posix
@pytest.mark.parametrize(
    "name",
    [
        *("-o", "new\nline", "\n-execute\n", "%d%f", "quo'te\"", "中文 图", "carriage\r"),
        *("#x", "@x", " lead", "{ready}", "$(x)", "*?", "back\\slash"),
    ],
)
def test_any_file_name_will_do(kb: KnowledgeBase, album: Path, name: str) -> None:
    folder = album / f"in {name} %d"
    folder.mkdir()
    photo = make(folder / "photo.jpg").rename(folder / f"{name}.jpg")
    assert kb.images.write(photo, PhotoChange(tags=("sea",))).changed
    assert kb.images.show(photo).tags == ("sea",)
    assert [each.name for each in folder.iterdir()] == [f"{name}.jpg"]


def test_another_format_is_not_supported(kb: KnowledgeBase, album: Path) -> None:
    (album / "note.md").write_text("# text")
    (album / "text.jpg").write_text("text")
    (album / "empty.png").touch()
    make(album / "p.png").rename(album / "p.jpg")
    make(album / "j.jpg").rename(album / "j.heic")
    for name in ("note.md", "text.jpg", "empty.png", "p.jpg", "j.heic"):
        assert untouched(kb, album / name).problem == "unsupported"


def test_a_photo_of_more_than_256_mb_is_left_alone(kb: KnowledgeBase, photo: Path) -> None:
    os.truncate(photo, MAX_BYTES + 1)
    with pytest.raises(PhotoError) as caught:
        kb.images.write(photo, PhotoChange(tags=("x",)))
    assert (caught.value.problem, caught.value.cause) == ("not_written", "size")
    assert "256 MB" in str(caught.value)


def test_a_photo_that_ends_too_early_is_left_alone(kb: KnowledgeBase, photo: Path) -> None:
    data = photo.read_bytes()
    for length in (len(data) - 2, len(data) // 2):
        photo.write_bytes(data[:length])
        found = untouched(kb, photo)
        assert (found.problem, found.cause) == ("not_written", "truncated")


def test_metadata_is_checked_before_the_file_is_looked_at(kb: KnowledgeBase, album: Path) -> None:
    blank = PhotoChange(tags=(" ",))
    assert problem(kb, album / "none.jpg", blank).problem == "invalid_metadata"


# --- trouble ---------------------------------------------------------------------------


def impostor(path: Path, text: str) -> Path:
    """A program in the place of exiftool, which it may call by ``$REAL``."""
    path.write_text(f"#!/bin/sh\nREAL={shutil.which('exiftool')}\n{text}")
    path.chmod(0o755)
    return path


@posix
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 1", ("not_written", "ended")),
        ("exec sleep 1000", ("not_written", "timeout")),
        # Reads well and writes another thing than was asked for.
        (
            'sed -u "s/^-XMP-dc:Subject=.*/-XMP-dc:Subject=other/" | exec $REAL "$@"',
            ("not_verified", "different"),
        ),
    ],
)
def test_an_exiftool_that_fails_changes_nothing(
    tmp_path: Path, album: Path, script: str, expected: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from qmd.files.photos import exiftool as module

    photo = make(album / "a.jpg")
    if expected[1] == "timeout":
        monkeypatch.setattr(module.ExifTool.__init__, "__kwdefaults__", {"timeout_s": 0.5})
    program = impostor(tmp_path / "impostor", script)
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(exiftool=program, write_roots=[tmp_path]), create=True
    ) as kb:
        found = untouched(kb, photo)
    assert (found.problem, found.cause) == expected


SPOILER = f"""#!{sys.executable}
import subprocess, sys
arguments = []
for line in sys.stdin:
    arguments.append(line.rstrip("\\n"))
    if not line.startswith("-execute"):
        continue
    *given, _, end, execute = arguments
    arguments = []
    done = subprocess.run(["exiftool", *given], capture_output=True)
    if "-o" in given:
        with open(given[given.index("-o") + 1], "r+b") as copy:
            copy.seek(-20, 2)
            copy.write(b"x")
    ready = execute.replace("-execute", "{{ready") + "}}\\n"
    sys.stdout.buffer.write(done.stdout + ready.encode())
    sys.stdout.flush()
    sys.stderr.write(end + "\\n")
    sys.stderr.flush()
"""


@posix
def test_a_copy_with_another_image_does_not_take_the_photos_place(
    tmp_path: Path, jpg: Path
) -> None:
    program = tmp_path / "spoiler"
    program.write_text(SPOILER)
    program.chmod(0o755)
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(exiftool=program, write_roots=[tmp_path]), create=True
    ) as kb:
        found = untouched(kb, jpg)
    assert (found.problem, found.cause) == ("not_verified", "different")
    assert "image" in found.reason


@posix
def test_a_photo_that_another_program_keeps_saving_is_not_overwritten(
    tmp_path: Path, album: Path
) -> None:
    photo = make(album / "a.jpg")
    theirs = make(tmp_path / "theirs.jpg")
    set_tags(theirs, "-XMP-dc:Title=theirs")
    # Saves its own version as soon as the copy is asked for.
    script = (
        f"while read -r line; do printf '%s\\n' \"$line\"; case $line in -o) cp '{theirs}' "
        f"'{photo}';; esac; done | $REAL \"$@\""
    )
    program = impostor(tmp_path / "impostor", script)
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(exiftool=program, write_roots=[tmp_path]), create=True
    ) as kb:
        found = problem(kb, photo)
    assert found.problem in ("not_written", "not_verified")
    assert photo.read_bytes() == theirs.read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disk.small(tmp_path / "disk", "64k") as directory:
        yield directory


def test_a_full_disk_leaves_the_photo_as_it_was(kb: KnowledgeBase, small_disk: Path) -> None:
    photo = make(small_disk / "a.jpg")
    (small_disk / "rest").write_bytes(b"x" * 48 * 1024)
    found = untouched(kb, photo, PhotoChange(description="描" * 10_000))
    assert (found.problem, found.cause) == ("not_written", "disk_full")
    (small_disk / "rest").unlink()
    assert kb.images.write(photo, PhotoChange(description="x")).changed


# --- at once ---------------------------------------------------------------------------


def test_writers_in_threads_lose_no_tag(kb: KnowledgeBase, jpg: Path) -> None:
    def work(number: int) -> None:
        kb.images.write(jpg, PhotoChange(tags=(f"t{number}",)), overwrite=False)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(kb.images.show(jpg).tags) == [f"t{number}" for number in range(8)]


WRITER = """
import sys
from qmd import KnowledgeBase
from qmd.values import PhotoChange
database, photo, name = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with KnowledgeBase.open(database) as kb:
    for number in range(4):
        kb.images.write(photo, PhotoChange(tags=(f"{name}{number}",)), overwrite=False)
"""


@posix
@pytest.mark.unmeasured
def test_writers_in_processes_lose_no_tag(kb: KnowledgeBase, album: Path) -> None:
    photo = make(album / "a.jpg")
    writers = [child.start(WRITER, kb.path, photo, name) for name in "xyz"]
    for process in writers:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in writers:
        child.finish(process)
    assert sorted(kb.images.show(photo).tags) == [f"{n}{i}" for n in "xyz" for i in range(4)]
    assert exiftool("-validate", "-warning", "-error", "-a", photo).count("Error") == 0
    assert [each.name for each in album.iterdir()] == ["a.jpg"]


ENDLESS = """
import sys
from qmd import KnowledgeBase
from qmd.values import PhotoChange
with KnowledgeBase.open(sys.argv[1]) as kb:
    for number in range(1000):
        kb.images.write(sys.argv[2], PhotoChange(description=f"number {number} " + "x" * 5000))
        print(number, flush=True)
"""


@pytest.mark.nightly
@posix
def test_killed_at_any_moment_it_leaves_the_old_photo_or_the_new(
    kb: KnowledgeBase, jpg: Path
) -> None:
    before, image = others(jpg), pixels(jpg)
    for rounds in range(5):
        process = child.start(ENDLESS, kb.path, jpg)
        assert process.stdout is not None and process.stdin is not None
        for _ in range(rounds + 1):
            last = int(process.stdout.readline())
        if rounds % 2:  # else right behind a write
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01 * rounds)
        process.kill()
        process.wait()
        last = max(last, *map(int, process.stdout.read().split()), 0)
        process.stdout.close()
        process.stdin.close()
        description = tags(jpg)["XMP-dc:Description"]
        assert int(description.split()[1]) in (last, last + 1)  # one may be done and not told
        assert pixels(jpg) == image
    with KnowledgeBase.open(kb.path) as opened:
        opened.images.write(jpg, PhotoChange(tags=("end",)))
    assert [each.name for each in jpg.parent.iterdir()] == [jpg.name]
    assert before.items() <= others(jpg).items()
