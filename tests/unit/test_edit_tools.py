"""The toolset edit and kb.edit_note: a note is edited as it is on the disk, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    DocumentNotFoundError,
    FileChangedError,
    InputError,
    NotFoundError,
    WriteDeclinedError,
)
from qmd.operations import texts
from qmd.operations.replies import Reply, TextBlock
from qmd.system.session import in_session
from qmd.tools.toolsets import select
from qmd.values.proposed import Proposed, ProposedText
from qmd.values.writing import NoteEdit
from tests.support import writes


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "plan.md").write_bytes(b"# Plan\r\n\r\n- [ ] call the bank\r\n")
    return root


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        with in_session("test"):
            yield kb


def call(kb: KnowledgeBase, name: str, **arguments: Any) -> Reply:
    (tool,) = (tool for tool in select(["edit"]).tools if tool.name == name)
    return tool.call(kb, arguments, texts.MCP)


def text_of(reply: Reply) -> str:
    block = reply.blocks[0]
    assert isinstance(block, TextBlock)
    return block.text


PLAN = "notes/plan.md"
APPEND = NoteEdit("append", text="- [ ] new")


# --- kb ------------------------------------------------------------------------------------


def test_an_edit_is_found_at_once_and_can_be_undone(kb: KnowledgeBase, notes: Path) -> None:
    note = kb.edit_note(PLAN, NoteEdit("tick", old="call the bank"))
    assert (notes / "plan.md").read_bytes() == b"# Plan\r\n\r\n- [x] call the bank\r\n"
    assert note.docid == kb.get(PLAN).document.docid
    assert note.diff.splitlines()[-2:] == ["-- [ ] call the bank", "+- [x] call the bank"]
    assert kb.revisions.history(PLAN)[0].tool == "edit_note"
    assert note.change is not None
    kb.undo.undo_change(note.change)
    assert b"[ ]" in (notes / "plan.md").read_bytes()


def test_the_disk_counts_and_not_the_index(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "plan.md").write_text("# Plan\nby hand\n")
    (notes / "unseen.md").write_text("never indexed\n")
    kb.edit_note(PLAN, NoteEdit("replace", old="by hand", text="edited"))
    kb.edit_note("notes/unseen.md", NoteEdit("append", text="more"))
    assert (notes / "plan.md").read_text() == "# Plan\nedited\n"
    assert kb.get("notes/unseen.md").text == "never indexed\n\nmore\n"
    (notes / "plan.md").unlink()
    with pytest.raises(NotFoundError, match="not there any more"):
        kb.edit_note(PLAN, APPEND)
    with pytest.raises(DocumentNotFoundError):
        kb.edit_note("notes/none.md", APPEND)
    with pytest.raises(DocumentNotFoundError):
        kb.edit_note("notes/../../etc/passwd", APPEND)


def test_a_preview_writes_nothing(kb: KnowledgeBase, notes: Path) -> None:
    before = (notes / "plan.md").read_bytes()
    preview = kb.edit_note(PLAN, APPEND, preview=True)
    assert (notes / "plan.md").read_bytes() == before
    assert not preview.written
    assert preview.change is None
    note = kb.edit_note(PLAN, APPEND, if_docid=preview.docid)
    assert note.diff == preview.diff
    assert note.docid != preview.docid
    deletion = kb.delete_note(PLAN, if_docid=note.docid, preview=True)
    assert (deletion.written, deletion.docid) == (False, note.docid)
    assert (notes / "plan.md").exists()


def test_an_edit_that_changes_nothing_writes_nothing(kb: KnowledgeBase, notes: Path) -> None:
    state = (notes / "plan.md").stat()
    note = kb.edit_note(PLAN, NoteEdit("replace", old="bank", text="bank"))
    assert not note.written
    assert (notes / "plan.md").stat() == state
    assert kb.undo.changes() == []


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_note_that_changed_since_it_was_read_is_refused_with_the_diff(
    kb: KnowledgeBase, notes: Path, is_indexed: bool
) -> None:
    docid = kb.get(PLAN).document.docid
    kb.edit_note(PLAN, APPEND, if_docid=docid)
    if not is_indexed:
        (notes / "plan.md").write_text("by hand\n")
    expected = (notes / "plan.md").read_bytes()
    for write in (
        lambda: kb.edit_note(PLAN, APPEND, if_docid=docid),
        lambda: kb.edit_note(PLAN, APPEND, if_docid=docid, preview=True),
        lambda: kb.delete_note(PLAN, if_docid=docid),
    ):
        with pytest.raises(FileChangedError, match=f"since it was read as {docid}") as caught:
            write()
        assert ("+- [ ] new" if is_indexed else "+by hand") in (caught.value.diff or "")
    assert (notes / "plan.md").read_bytes() == expected
    with pytest.raises(FileChangedError) as caught:
        kb.edit_note(PLAN, APPEND, if_docid="#000000")
    assert caught.value.diff is None
    with pytest.raises(InputError, match="is no docid"):
        kb.edit_note(PLAN, APPEND, if_docid="xyz")


def test_a_note_changed_between_preview_and_edit(kb: KnowledgeBase, notes: Path) -> None:
    docid = kb.get(PLAN).document.docid
    kb.edit_note(PLAN, NoteEdit("replace", old="bank", text="B"), if_docid=docid, preview=True)
    (notes / "plan.md").write_bytes(b"# Plan\r\n\r\n- [ ] call the bank today\r\n")
    with pytest.raises(FileChangedError) as caught:
        kb.edit_note(PLAN, NoteEdit("replace", old="bank", text="B"), if_docid=docid)
    assert "+- [ ] call the bank today" in (caught.value.diff or "")


def test_an_edit_by_a_function(kb: KnowledgeBase, notes: Path) -> None:
    kb.edit_note(PLAN, str.upper)
    assert (notes / "plan.md").read_bytes() == b"# PLAN\r\n\r\n- [ ] CALL THE BANK\r\n"


def test_a_file_in_another_encoding_keeps_it(kb: KnowledgeBase, notes: Path) -> None:
    text = "# 计划\n\n这是一个中文的笔记，我们在这里写下一些内容。\n"
    (notes / "zh.md").write_bytes(text.encode("gb18030"))
    kb.edit_note("notes/zh.md", NoteEdit("append", text="数据库"))
    assert (notes / "zh.md").read_bytes() == (text + "\n数据库\n").encode("gb18030")
    (notes / "bom.md").write_bytes("# T\r\n".encode("utf-16"))
    kb.edit_note("notes/bom.md", NoteEdit("append", text="x"))
    assert (notes / "bom.md").read_bytes() == "# T\r\nx\r\n".encode("utf-16")
    (notes / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(DocumentNotFoundError):  # the rules leave it out
        kb.edit_note("notes/photo.jpg", APPEND)


def test_a_person_agrees_to_the_very_edit(tmp_path: Path, notes: Path) -> None:
    asked: list[Proposed] = []

    def confirm(proposed: Proposed) -> bool:
        asked.append(proposed)
        return len(asked) == 1

    settings = Settings(confirm_writes=confirm)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        kb.edit_note(PLAN, NoteEdit("replace", old="bank", text="B"))
        with pytest.raises(WriteDeclinedError):
            kb.edit_note(PLAN, NoteEdit("replace", old="B", text="C"))
    first = asked[0]
    assert isinstance(first, ProposedText)
    assert first.after == (notes / "plan.md").read_bytes() == b"# Plan\r\n\r\n- [ ] call the B\r\n"


# --- tools ---------------------------------------------------------------------------------


def test_the_tools_edit_and_undo_in_their_session(kb: KnowledgeBase, notes: Path) -> None:
    writes.write(kb.files, notes / "other.md", b"by another session", tool="create_note")
    with in_session("agent"):
        reply = call(kb, "edit_note", file=PLAN, action="tick", old="bank")
        assert reply.structured is not None
        docid = reply.structured["docid"]
        number = reply.structured["change"]
        assert text_of(reply).startswith(f"Edited {PLAN}, now {docid} (change {number})\n@@")
        call(kb, "edit_note", file=PLAN, action="set_property", property="tags", value=["a", 1])
        deleted = call(kb, "delete_note", file=PLAN).structured
        assert deleted == {
            "file": PLAN,
            "docid": None,
            "written": True,
            "diff": reply_diff(kb),
            "change": kb.undo.changes(limit=1)[0].number,
        }
        assert not (notes / "plan.md").exists()
        assert f"Undid: deleted {PLAN}, " in text_of(call(kb, "undo"))
        assert f"Redid: deleted {PLAN}, " in text_of(call(kb, "undo", redo=True))
        assert call(kb, "undo", redo=True, change=number).is_error
        assert f"Undid: deleted {PLAN}, " in text_of(call(kb, "undo"))
        reply = call(kb, "undo", session=True)
    assert not reply.is_error
    assert (notes / "plan.md").read_bytes() == b"# Plan\r\n\r\n- [ ] call the bank\r\n"
    assert (notes / "other.md").exists()
    assert call(kb, "undo", change=99).is_error


def reply_diff(kb: KnowledgeBase) -> str:
    """The diff of the last deletion."""
    revision = kb.revisions.history(PLAN)[0]
    text = kb.revisions.content(PLAN, revision.number).decode().replace("\r\n", "\n")
    lines = text.splitlines()
    return f"@@ -1,{len(lines)} +0,0 @@\n" + "".join(f"-{line}\n" for line in lines)


def test_a_refusal_shows_the_diff(kb: KnowledgeBase, notes: Path) -> None:
    docid = kb.get(PLAN).document.docid
    (notes / "plan.md").write_text("by hand\n")
    reply = call(kb, "edit_note", file=PLAN, action="append", text="x", if_docid=docid)
    assert reply.is_error
    assert "What has changed since:\n@@" in text_of(reply)
    assert "+by hand" in text_of(reply)


def test_an_undo_that_is_refused_is_an_error_with_the_diff(kb: KnowledgeBase, notes: Path) -> None:
    call(kb, "edit_note", file=PLAN, action="append", text="x")
    (notes / "plan.md").write_text("by hand\n")
    reply = call(kb, "undo")
    assert reply.is_error
    assert "was not undone: notes/plan.md: It was changed since" in text_of(reply)
    assert (notes / "plan.md").read_text() == "by hand\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "replace", "text": "x"}, "needs old"),
        ({"action": "paint"}, "action"),
        ({"action": "append", "text": "x", "ifDocid": "#abc"}, "'#abc' is no docid"),
        ({"action": "tick", "line": 99}, "is no task"),
        ({"action": "tick", "old": "pay", "line": 3}, "line 3 is another: call the bank"),
    ],
)
def test_wrong_arguments_are_told(
    kb: KnowledgeBase, arguments: dict[str, Any], message: str
) -> None:
    reply = call(kb, "edit_note", file=PLAN, **arguments)
    assert reply.is_error
    assert message in text_of(reply)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (f"{PLAN}:3", {"action": "tick", "line": 4}, "and the task is to be in line 4"),
        (f"{PLAN}:3", {"action": "tick", "old": "pay"}, "line 3 is another: call the bank"),
        (f"{PLAN}:1", {"action": "tick"}, "Line 1 is no task"),
        ("plan#Plan", {"action": "append", "text": "x"}, f"Name the note: {PLAN}"),
        (f"{PLAN}:3", {"action": "prepend", "text": "x"}, "prepend adds to the whole note"),
    ],
)
def test_a_place_in_the_name_is_not_ignored(
    kb: KnowledgeBase, notes: Path, name: str, arguments: dict[str, Any], message: str
) -> None:
    before = (notes / "plan.md").read_bytes()
    reply = call(kb, "edit_note", file=name, **arguments)
    assert reply.is_error
    assert message in text_of(reply)
    assert (notes / "plan.md").read_bytes() == before


def test_the_line_in_the_name_is_that_of_the_task(kb: KnowledgeBase, notes: Path) -> None:
    assert not call(kb, "edit_note", file="plan.md:3", action="tick").is_error
    assert b"- [x] call the bank" in (notes / "plan.md").read_bytes()
    assert not call(kb, "edit_note", file="plan.md:3", action="untick", old="bank").is_error
    assert b"- [ ] call the bank" in (notes / "plan.md").read_bytes()
    # Where the edit says its place, the name may be that of a hit.
    replaced = call(kb, "edit_note", file="plan.md:3", action="replace", old="bank", text="shop")
    assert not replaced.is_error


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit_note", {"action": "append", "text": "x"}),
        ("delete_note", {}),
        ("move_note", {"newPath": "notes/other.md"}),
    ],
)
def test_a_blank_docid_is_no_docid_and_not_absent(
    kb: KnowledgeBase, notes: Path, name: str, arguments: dict[str, Any], blank: str
) -> None:
    """A client whose variable is empty must not lose the guard."""
    before = (notes / "plan.md").read_bytes()
    reply = call(kb, name, file=PLAN, ifDocid=blank, **arguments)
    assert reply.is_error
    assert f"{blank!r} is no docid" in text_of(reply)
    assert (notes / "plan.md").read_bytes() == before


def test_a_property_is_not_emptied_by_a_forgotten_value(kb: KnowledgeBase, notes: Path) -> None:
    before = (notes / "plan.md").read_bytes()
    reply = call(kb, "edit_note", file=PLAN, action="set_property", property="status")
    assert reply.is_error
    assert "set_property needs value" in text_of(reply)
    assert (notes / "plan.md").read_bytes() == before
    empty = call(kb, "edit_note", file=PLAN, action="set_property", property="status", value="")
    assert not empty.is_error


def test_a_read_only_server_withholds_the_tools() -> None:
    selection = select(["edit"], read_only=True)
    assert selection.tools == ()
    assert {"edit_note", "delete_note", "undo"} <= {tool.name for tool in selection.withheld}
