"""kb.move_note and its faces: the note, the links to it, the index and the history agree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    ConflictError,
    DocumentNotFoundError,
    FileChangedError,
    InputError,
    InvalidPathError,
    NotFoundError,
    OutsideRootsError,
    QmdError,
)
from qmd.files.writing.writer import one_move_at_a_time
from qmd.operations import edit_texts, texts
from qmd.operations.replies import TextBlock
from qmd.tools.toolsets import select
from qmd.values.writing import NoteEdit
from tests.support import photos

Files = dict[str, bytes]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    (root / "a").mkdir(parents=True)
    (root / "a/Old.md").write_bytes(b"# Old\n\n[[Old#Old]] [s](../src.md)\n")
    (root / "src.md").write_bytes(b"[[Old]]\r\n\r\n![[a/Old#Old|x]]\r\n")
    (root / "other.md").write_bytes("Größe [o](a/Old.md)\n".encode("utf-16"))
    return root


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        yield kb


def on_disk(root: Path) -> Files:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def test_a_move_is_one_change_with_all_links_and_undo_takes_it_back(
    kb: KnowledgeBase, notes: Path
) -> None:
    before = on_disk(notes)
    moved = kb.move_note("Old", "notes/b/New name")
    assert (moved.file, moved.moved_from) == ("notes/b/New name.md", "notes/a/Old.md")
    assert (moved.notes, moved.links, moved.unchanged_links) == (3, 4, 0)
    assert on_disk(notes) == {
        "b/New name.md": b"# Old\n\n[[New name#Old]] [s](../src.md)\n",
        "src.md": b"[[New name]]\r\n\r\n![[New name#Old|x]]\r\n",
        "other.md": "Größe [o](b/New%20name.md)\n".encode("utf-16"),
    }
    [change] = kb.undo.changes()
    assert (change.number, change.tool, len(change.files)) == (moved.change, "move_note", 4)
    kb.undo.undo_last()
    assert on_disk(notes) == before


@pytest.mark.parametrize("name", ["notes/a/Old.md:1", "Old#Old"])
def test_a_part_of_a_note_is_neither_moved_nor_deleted(
    kb: KnowledgeBase, notes: Path, name: str
) -> None:
    before = on_disk(notes)
    with pytest.raises(InputError, match="is a part of a note") as caught:
        kb.move_note(name, "New")
    assert caught.value.hint == "Name the note: notes/a/Old.md"
    with pytest.raises(InputError, match="is a part of a note"):
        kb.delete_note(name)
    assert on_disk(notes) == before


def test_the_document_keeps_its_id_and_searches_have_the_new_path(kb: KnowledgeBase) -> None:
    [number] = [each.id for each in kb.documents() if each.file == "notes/a/Old.md"]
    kb.move_note("Old", "New")
    [document] = [each for each in kb.documents() if each.id == number]
    assert document.file == "notes/a/New.md"
    assert {link.file for link in kb.backlinks("New").links} == {"notes/src.md", "notes/other.md"}


def test_a_preview_writes_nothing_and_says_the_same(kb: KnowledgeBase, notes: Path) -> None:
    before = on_disk(notes)
    preview = kb.move_note("Old", "New", preview=True)
    assert (on_disk(notes), preview.written, preview.change) == (before, False, None)
    moved = kb.move_note("Old", "New", if_docid=preview.docid)
    assert preview.rewritten == moved.rewritten


def test_links_that_are_not_to_be_rewritten_are_listed(kb: KnowledgeBase, notes: Path) -> None:
    before = on_disk(notes)
    moved = kb.move_note("Old", "New", rewrite_links=False)
    assert [(link.file, link.line, link.link) for link in moved.unchanged] == [
        ("notes/a/New.md", 3, "[[Old#Old]]"),
        ("notes/other.md", 1, "[o](a/Old.md)"),
        ("notes/src.md", 1, "[[Old]]"),
        ("notes/src.md", 3, "[[a/Old#Old|x]]"),
    ]
    before["a/New.md"] = before.pop("a/Old.md")
    assert on_disk(notes) == before


@pytest.mark.parametrize(
    ("new_path", "file"),
    [
        ("New", "a/New.md"),
        ("New.md", "a/New.md"),
        ("v1.2", "a/v1.2.md"),
        ("Node.js", "a/Node.js.md"),
        ("x.pdf.md", "a/x.pdf.md"),
        ("OLD", "a/OLD.md"),
        ("b/", "b/Old.md"),
        ("b/c/New", "b/c/New.md"),
        ("/New", "New.md"),
        ("/b/New", "b/New.md"),
        ("notes/New", "New.md"),
        ("qmd://notes/x%20y.md", "x y.md"),
    ],
)
def test_what_a_new_path_means(kb: KnowledgeBase, notes: Path, new_path: str, file: str) -> None:
    assert kb.move_note("Old", new_path).file == f"notes/{file}"
    assert file in on_disk(notes)


def test_an_existing_folder_takes_the_note(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "box").mkdir()
    assert kb.move_note("Old", "box").file == "notes/box/Old.md"
    assert kb.move_note("Old", str(notes / "New.md")).file == "notes/New.md"


@pytest.mark.parametrize(
    ("new_path", "reason"),
    [
        (".trash/", "The folder '.trash' is hidden"),
        ("a/b/.Old", "The file 'a/b/.Old.md' is hidden"),
        ("drafts/2025/", "Line 1 of .qmdignore, 'drafts/', matches 'drafts'."),
        ("node_modules/x/", "Folders named 'node_modules' hold other people's files."),
        ("box/", None),
    ],
)
def test_a_path_that_searches_leave_out_is_told_also_before_the_move(
    kb: KnowledgeBase, notes: Path, new_path: str, reason: str | None
) -> None:
    (notes / ".qmdignore").write_text("drafts/\n")
    for preview in (True, False):
        moved = kb.move_note("Old", f"notes/{new_path}", preview=preview)
        assert (moved.problem or "").startswith(reason or "")
        assert (moved.problem is None) == (reason is None)
        text = edit_texts.moved(moved)
        assert ("\nNot searchable there: " in text) == (reason is not None)


@pytest.mark.parametrize(
    ("new_path", "error"),
    [
        ("notes/src.md", ConflictError),
        ("Old.md", ConflictError),
        ("../x.md", InvalidPathError),
        ("~/x/y.md", InvalidPathError),
        ("what?.md", InvalidPathError),
        ("nope.txt", InvalidPathError),
        ("a/Nope.PDF", InvalidPathError),
    ],
)
def test_a_path_that_cannot_be_moved_to_is_refused(
    kb: KnowledgeBase, notes: Path, new_path: str, error: type[Exception]
) -> None:
    before = on_disk(notes)
    with pytest.raises(error):
        kb.move_note("Old", new_path)
    assert on_disk(notes) == before


@pytest.mark.parametrize("name", ["notes/a", "a/", "qmd://notes/a"])
def test_a_folder_is_refused_as_one(kb: KnowledgeBase, notes: Path, name: str) -> None:
    before = on_disk(notes)
    for change in (lambda: kb.move_note(name, "b/"), lambda: kb.delete_note(name)):
        with pytest.raises(NotFoundError, match="notes/a is a folder"):
            change()
    assert on_disk(notes) == before


@pytest.mark.parametrize("name", ["", " ", ".", "/", "qmd://"])
def test_an_empty_name_is_no_folder(kb: KnowledgeBase, name: str) -> None:
    with pytest.raises(DocumentNotFoundError):
        kb.delete_note(name)


def test_a_note_that_has_changed_since_it_was_read_is_not_moved(
    kb: KnowledgeBase, notes: Path
) -> None:
    docid = kb.get("Old").document.docid
    (notes / "a/Old.md").write_bytes(b"new\n")
    with pytest.raises(FileChangedError):
        kb.move_note("Old", "New", if_docid=docid)
    assert (notes / "a/Old.md").exists()


CARD = b'{"nodes": [{"type": "text", "x": 0, "y": 0, "width": 9, "height": 9, "text": "%s"}]}'


@pytest.mark.parametrize("name", ["map.canvas", "tower.jpg"])
def test_a_docid_is_that_of_the_text_in_the_index_whatever_the_format(
    kb: KnowledgeBase, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "life" / name
    if name == "tower.jpg":
        photos.make(file)
    else:
        file.parent.mkdir()
        file.write_bytes(CARD % b"see [[Old]]")
    kb.add_collection(file.parent, mask="**/*.{canvas,jpg}")
    kb.index()
    docid = kb.get(name).document.docid
    assert kb.delete_note(name, if_docid=docid, preview=True).docid == docid
    assert kb.move_note(name, "new", if_docid=docid, preview=True).docid == docid
    moved = kb.move_note(name, "new", if_docid=docid)
    now = kb.get(moved.file).document.docid
    assert moved.docid == now
    if name == "map.canvas":
        (tmp_path / "life/new.canvas").write_bytes(CARD % b"by hand")
        with pytest.raises(FileChangedError, match=f"since it was read as {now}") as caught:
            kb.delete_note("new.canvas", if_docid=now)
        assert (caught.value.diff or "").endswith("-see [[Old]]\n+by hand\n")
        (tmp_path / "life/new.canvas").write_bytes(b"{")
        with pytest.raises(FileChangedError, match=r"\(it is no document now\)"):
            kb.delete_note("new.canvas", if_docid=now)
        return
    kb.delete_note(moved.file, if_docid=now)
    assert not list(file.parent.iterdir())


def test_a_file_that_is_no_document_has_no_docid_and_is_moved_and_deleted(
    kb: KnowledgeBase, notes: Path
) -> None:
    (notes / "no text.md").write_bytes(bytes(range(256)))
    moved = kb.move_note("notes/no text.md", "bytes")
    assert (moved.docid, moved.file) == (None, "notes/bytes.md")
    assert edit_texts.moved(moved).startswith("Moved notes/no text.md to notes/bytes.md (change ")
    preview = kb.delete_note("notes/bytes.md", preview=True)
    assert "notes/bytes.md is no document\n" in edit_texts.deleted(preview)
    assert kb.delete_note("notes/bytes.md", if_docid=preview.docid).written


def test_links_written_since_the_last_index_run_are_rewritten(
    kb: KnowledgeBase, notes: Path
) -> None:
    (notes / "late.md").write_bytes(b"[[Old]]\n")
    kb.move_note("Old", "New")
    assert (notes / "late.md").read_bytes() == b"[[New]]\n"


def test_a_note_whose_encoding_lacks_the_new_name_is_reported_and_stays(
    kb: KnowledgeBase, notes: Path
) -> None:
    western = "Die Größe der Länge überrascht: [[Old]]\n".encode("cp1252")
    (notes / "west.md").write_bytes(western)
    moved = kb.move_note("Old", "新")
    [link] = moved.unchanged
    assert (link.file, link.line, link.link) == ("notes/west.md", 1, "[[Old]]")
    assert "lacks" in link.reason
    assert (notes / "west.md").read_bytes() == western


def test_between_collections_links_cannot_follow(
    kb: KnowledgeBase, notes: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "x").mkdir(parents=True)
    (other / "x/Moved.md").write_bytes(b"# Moved\n")
    (other / "x/y.md").write_bytes(b"[[Moved]]\n")
    kb.add_collection(other, name="other")
    kb.index()
    moved = kb.move_note("notes/a/Old.md", "other/Moved")
    assert (other / "Moved.md").read_bytes() == b"# Old\n\n[[Moved#Old]] [s](../src.md)\n"
    assert {(link.file, link.line) for link in moved.unchanged} == {
        ("other/Moved.md", 3),
        ("notes/src.md", 1),
        ("notes/src.md", 3),
        ("notes/other.md", 1),
    }
    assert kb.links("other/x/y.md").links[0].file == "other/x/Moved.md"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind")
def test_a_note_that_cannot_be_read_is_reported(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "src.md").chmod(0)
    moved = kb.move_note("Old", "New")
    assert [(link.file, link.line) for link in moved.unchanged] == [("notes/src.md", None)]


def test_a_note_outside_the_write_roots_is_reported(
    kb: KnowledgeBase, notes: Path, tmp_path: Path
) -> None:
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(write_roots=(str(notes / "a"),))
    ) as narrow:
        preview = narrow.move_note("Old", "New", preview=True)
        moved = narrow.move_note("Old", "New")
        assert preview.unchanged == moved.unchanged
        assert [(each.file, each.line) for each in moved.unchanged] == [
            ("notes/other.md", 1),
            ("notes/src.md", 1),
            ("notes/src.md", 3),
        ]
        assert [each.file for each in moved.rewritten] == ["notes/a/New.md"]
        with pytest.raises(OutsideRootsError):
            narrow.move_note("New", "notes/elsewhere/")


def test_the_tool_says_what_was_rewritten(kb: KnowledgeBase) -> None:
    docid = kb.get("Old").document.docid
    [tool] = [each for each in select(["edit"]).tools if each.name == "move_note"]
    reply = tool.call(kb, {"file": "Old", "new_path": "New", "preview": True}, texts.MCP)
    [block] = reply.blocks
    assert isinstance(block, TextBlock)
    assert block.text.startswith(
        f"Preview, nothing was written: notes/a/Old.md ({docid}) would move to notes/a/New.md\n"
        "It would rewrite 4 links in 3 notes:\n- notes/a/New.md: 1 link\n"
    )
    assert reply.structured is not None and reply.structured["written"] is False


def test_moves_at_the_same_time_lose_no_link(tmp_path: Path) -> None:
    root = tmp_path / "all"
    root.mkdir()
    names = [f"n{number}" for number in range(16)]
    for name in names:
        (root / f"{name}.md").write_text("".join(f"[[{each}]] [x]({each}.md)\n" for each in names))
    with KnowledgeBase.open(tmp_path / "all.sqlite", create=True) as kb:
        kb.add_collection(root, name="all")
        kb.index()

        def move(name: str) -> int:
            with KnowledgeBase.open(tmp_path / "all.sqlite") as own_kb:
                return own_kb.move_note(name, f"all/{name[-1]}/new {name}").unchanged_links

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(move, names[:8])) == 0
        kb.index()
        for path in on_disk(root):
            links = kb.links(f"all/{path}", limit=100).links
            assert {link.state for link in links} == {"document"}, path


def test_a_move_waits_for_its_turn(
    kb: KnowledgeBase, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmd.files.writing.writer.WAIT_S", 0)
    before = on_disk(notes)
    database = kb.path
    with one_move_at_a_time(database):
        kb.move_note("Old", "New", preview=True)
        with pytest.raises(ConflictError), one_move_at_a_time(database):
            raise AssertionError
    assert on_disk(notes) == before


LONG_NAME = "é" * 200  # 400 bytes in UTF-8, of at most 255


@pytest.mark.parametrize("new_path", [LONG_NAME, f"{LONG_NAME}/b", f"/{LONG_NAME}", "Old.md/b"])
def test_a_path_that_the_disk_does_not_take_is_refused_and_nothing_changes(
    kb: KnowledgeBase, notes: Path, new_path: str
) -> None:
    before = on_disk(notes)
    with pytest.raises(QmdError):
        kb.move_note("a/Old.md", f"notes/a/{new_path}")
    assert on_disk(notes) == before


@pytest.mark.parametrize("new_path", ["\0", "/notes/\0", "~\0/x", "qmd://notes/\0"])
def test_a_nul_character_is_in_no_path(kb: KnowledgeBase, new_path: str) -> None:
    with pytest.raises(InvalidPathError, match="NUL"):
        kb.move_note("a/Old.md", new_path)


@pytest.mark.parametrize("name", [LONG_NAME, f"notes/{LONG_NAME}.md", f"notes/{LONG_NAME}/b.md"])
def test_a_name_that_is_too_long_for_the_disk_is_that_of_no_note(
    kb: KnowledgeBase, name: str
) -> None:
    edit = NoteEdit("append", text="x")
    for run in (
        kb.delete_note,
        partial(kb.edit_note, edit=edit),
        partial(kb.move_note, new_path="b"),
    ):
        with pytest.raises(DocumentNotFoundError):
            run(name)
