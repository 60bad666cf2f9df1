"""Photos in a collection whose mask includes them: found, filtered, read and explained."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from qmd import KnowledgeBase, Settings
from qmd.values import Filters
from tests.support.dump import assert_sound
from tests.support.embedder import HashEmbedder
from tests.support.photos import MASK, make, set_tags


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two photos with metadata, one without, a note that shares a word."""
    root = tmp_path / "life"
    set_tags(
        make(root / "2024/tower.jpg"),
        *("-XMP-dc:Subject=家庭", "-XMP-dc:Subject=张三", "-XMP-dc:Subject=trip/paris"),
        *("-XMP-iptcExt:PersonInImage=张三", "-XMP-dc:Description=Evening at the tower"),
        "-XMP-iptcCore:Location=埃菲尔铁塔",
    )
    set_tags(make(root / "2023/beach.heic"), "-DateTimeOriginal=2023:08:01 09:00:00")
    set_tags(root / "2023/beach.heic", "-XMP-dc:Subject=海滩", "-XMP-dc:Description=Warm sand")
    make(root / "plain.PNG", exif=Image.Exif())
    (root / "note.md").write_text("# Note\n\nThe tower is tall. Camera, date, tags, people.\n")
    return root


@pytest.fixture
def kb(tmp_path: Path, root: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(embedder=HashEmbedder()), create=True
    ) as opened:
        opened.add_collection(root, mask=MASK)
        opened.index()
        yield opened


def found(kb: KnowledgeBase, query: str, **filters: object) -> set[str]:
    return {hit.path for hit in kb.search(query, filters=Filters(**filters)).hits}  # type: ignore[arg-type]


def test_words_of_every_field_find_the_photo(kb: KnowledgeBase) -> None:
    for query in ("家庭", "张三", "Evening", "埃菲尔", "X100", "trip", '"2024-07-14"'):
        assert "2024/tower.jpg" in found(kb, query), query
    assert found(kb, "tower") == {"2024/tower.jpg", "note.md"}
    assert found(kb, "plain") == {"plain.PNG"}
    assert found(kb, 'description:"evening at"') == {"2024/tower.jpg"}
    assert found(kb, "description:trip") == set()


def test_tags_and_people_are_tags(kb: KnowledgeBase) -> None:
    assert found(kb, "tag:张三") == {"2024/tower.jpg"}
    assert found(kb, "tower", tags=("trip",)) == {"2024/tower.jpg"}
    assert found(kb, "sand", tags=("海滩",)) == {"2023/beach.heic"}


def test_dates_are_when_the_photo_was_taken(kb: KnowledgeBase) -> None:
    assert found(kb, "acme", after="2024-07-14") == {"2024/tower.jpg"}
    assert found(kb, "acme", before="2024-07-14") == {"2023/beach.heic"}
    assert found(kb, "acme", after="2024-07-14T16:29Z", before="2024-07-14T16:31Z") == {
        "2024/tower.jpg"
    }


def test_what_names_the_lines_is_no_word(kb: KnowledgeBase) -> None:
    for word in ("camera", "date", "tags", "people"):
        assert found(kb, word) == {"note.md"}


def test_get_shows_the_text(kb: KnowledgeBase) -> None:
    text = kb.get("life/2024/tower.jpg").text
    assert text.startswith("# tower\n\nEvening at the tower\n\n- 🏷 家庭, trip/paris\n- 👤 张三\n")
    assert "📍 埃菲尔铁塔" in text
    reply = kb.multi_get("life/2024/*.jpg")
    assert [item.document.path for item in reply.items] == ["2024/tower.jpg"]


def test_photos_have_vectors_like_any_text(kb: KnowledgeBase) -> None:
    kb.embed()
    assert kb.status().needs_embedding == 0
    hits = kb.vsearch("Evening at the tower", min_score=0).hits
    assert "2024/tower.jpg" in {hit.path for hit in hits}


def test_the_usual_mask_leaves_photos_alone(tmp_path: Path, root: Path) -> None:
    with KnowledgeBase.open(tmp_path / "other.sqlite", create=True) as kb:
        kb.add_collection(root)
        report = kb.index()
        assert (report.total_documents, report.skipped) == (1, ())


def test_a_photo_that_changed_is_read_again_and_others_are_not(
    kb: KnowledgeBase, root: Path
) -> None:
    kb.index()
    set_tags(root / "2024/tower.jpg", "-XMP-dc:Subject=夜景")
    report = kb.index()
    assert (report.updated, report.unchanged) == (1, 3)
    assert found(kb, "夜景") == {"2024/tower.jpg"}
    assert found(kb, "家庭") == set()


def test_a_moved_photo_keeps_its_document(kb: KnowledgeBase, root: Path) -> None:
    before = kb.get("life/2024/tower.jpg").document
    (root / "2024/tower.jpg").rename(root / "tower.jpg")
    assert kb.index().moved == 1
    assert kb.get("life/tower.jpg").document.docid == before.docid


def test_a_photo_of_any_size_is_read_by_its_headers(kb: KnowledgeBase, root: Path) -> None:
    photo = set_tags(make(root / "large.jpg"), "-XMP-dc:Subject=巨大")
    os.truncate(photo, 100 * 1024 * 1024)
    report = kb.index()
    assert report.skipped == ()
    assert found(kb, "巨大") == {"large.jpg"}


def test_what_is_no_photo_is_reported_and_explained(kb: KnowledgeBase, root: Path) -> None:
    (root / "fake.jpg").write_text("only text")
    (root / "empty.heic").touch()
    make(root / "real.png").rename(root / "wrong.jpg")
    report = kb.index()
    assert {(skip.path, skip.reason) for skip in report.skipped} == {
        ("fake.jpg", "no photo"),
        ("empty.heic", "no photo"),
        ("wrong.jpg", "no photo"),
    }
    why = kb.why(str(root / "wrong.jpg"))
    assert not why.indexed
    assert "It is a PNG image" in why.reason
    assert why.remedy is not None and "suffix" in why.remedy


def test_damaged_metadata_is_a_warning_and_the_photo_a_document(
    kb: KnowledgeBase, root: Path
) -> None:
    photo = set_tags(make(root / "odd.jpg"), "-XMP-dc:Subject=first", "-XMP-dc:Title=T")
    photo.write_bytes(photo.read_bytes().replace(b"</rdf:RDF>", b"</rdf:XXX>"))
    report = kb.index()
    (warning,) = report.warnings
    assert warning.startswith("life/odd.jpg: The XMP is not well-formed")
    assert found(kb, "tag:first") == {"odd.jpg"}
    assert "well-formed" in kb.why(str(photo)).reason


@pytest.mark.skipif(sys.platform == "win32", reason="what Windows cannot name or do")
def test_a_folder_full_of_traps_is_read_to_the_end(
    kb: KnowledgeBase, root: Path, tmp_path: Path
) -> None:
    good = make(tmp_path / "good.jpg").read_bytes()
    traps = root / "traps"
    traps.mkdir()
    for number, length in enumerate(range(0, len(good), 97)):
        (traps / f"cut{number:03}.jpg").write_bytes(good[:length])
    for name, data in {
        "endless.jpg": b"\xff\xd8\xff" + b"\xff" * 100_000,
        "zero.jpg": b"\xff\xd8\xff" + b"\0" * 100_000,
        "segments.jpg": b"\xff\xd8" + b"\xff\xfe\x00\x02" * 100_000,
        "long.png": b"\x89PNG\r\n\x1a\n" + b"\0\0\0\0abcd\0\0\0\0" * 20_000,
        "lie.png": b"\x89PNG\r\n\x1a\n" + b"\xff\xff\xff\xfftEXt",
        "boxes.heic": b"\0\0\0\x10ftypheic\0\0\0\0" + b"\0\0\0\x08free" * 20_000,
        "zero size.heic": b"\0\0\0\x10ftypheic\0\0\0\0" + b"\0\0\0\0meta" + b"\xff" * 1000,
        "items.heic": b"\0\0\0\x10ftypheic\0\0\0\0"
        + b"\0\0\0\x2cmeta\0\0\0\0\0\0\0\x10iinf\x01\0\0\0\xff\xff\xff\xff"
        + b"\0\0\0\x10iloc\x01\0\0\0\xff\xff\xff\xff",
        "new\nline.jpg": good,
    }.items():
        (traps / name).write_bytes(data)
    (traps / "link.jpg").symlink_to("/etc/passwd")
    os.mkfifo(traps / "fifo.jpg")
    kb.index()
    assert found(kb, "tower") == {"2024/tower.jpg", "note.md"}
    assert kb.get("life/traps/new\nline.jpg").text.startswith("# new line\n")
    assert_sound(kb.path)
