"""kb.undo: changes are undone as a whole, and nothing is overwritten that changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import ConflictError, NotFoundError
from qmd.files.writing.writer import NewMetadata
from qmd.operations import edit_texts
from qmd.store.sql.revisions import MAX_REVISIONS
from qmd.system.session import in_session
from qmd.values.writing import UndoneFile, UndoReply
from tests.support import writes


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    return root


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(notes, name="notes")
        yield kb


def contents(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): path.read_text("utf-8")
        for path in directory.rglob("*")
        if path.is_file()
    }


def write(kb: KnowledgeBase, path: Path, text: str) -> None:
    writes.write(kb.files, path, text.encode(), tool="test")


def files(reply: UndoReply) -> list[UndoneFile]:
    return [file for change in reply.undone for file in change.files]


def change_all(kb: KnowledgeBase, notes: Path) -> None:
    """One change that writes, creates, moves and deletes."""
    with kb.files.change(tool="move_note") as change:
        change.move(notes / "a.md", notes / "new/a.md")
        change.rewrite(notes / "new/a.md", lambda present: b"a rewritten")
        change.rewrite(notes / "b.md", lambda _: b"b rewritten")
        change.delete(notes / "c.md")
        change.rewrite(notes / "d.md", lambda _: b"d created")


BEFORE = {"a.md": "a", "b.md": "b", "c.md": "c"}
AFTER = {"new/a.md": "a rewritten", "b.md": "b rewritten", "d.md": "d created"}


@pytest.fixture
def three(kb: KnowledgeBase, notes: Path) -> None:
    for name, text in BEFORE.items():
        (notes / name).write_text(text)
    kb.index()


@pytest.mark.usefixtures("three")
def test_a_change_is_undone_and_redone_as_a_whole(kb: KnowledgeBase, notes: Path) -> None:
    change_all(kb, notes)
    assert contents(notes) == AFTER
    reply = kb.undo.undo_last()
    assert contents(notes) == BEFORE
    assert files(reply) == [
        UndoneFile("notes/d.md", "deleted", "create"),
        UndoneFile("notes/c.md", "restored", "delete"),
        UndoneFile("notes/b.md", "restored", "write"),
        UndoneFile("notes/new/a.md", "restored", "write"),
        UndoneFile("notes/a.md", "moved back", "move", "notes/new/a.md"),
    ]
    assert reply.refused == ()
    assert {hit.file for hit in kb.search("a").hits} == {"notes/a.md"}
    again = kb.undo.redo_last()
    assert again.undone[0].change == reply.change
    assert contents(notes) == AFTER
    assert kb.get("notes/new/a.md").text == "a rewritten"
    kb.undo.undo_last()
    assert contents(notes) == BEFORE


def test_undo_walks_back_and_redo_forward(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    for text in ("1", "2", "3"):
        write(kb, path, text)

    def step(action: Callable[[], UndoReply]) -> str | None:
        assert action().refused == ()
        return path.read_text() if path.exists() else None

    undo, redo = kb.undo.undo_last, kb.undo.redo_last
    with pytest.raises(NotFoundError, match="nothing to redo"):
        redo()
    assert [step(undo) for _ in range(3)] == ["2", "1", None]
    with pytest.raises(NotFoundError, match="no change to undo"):
        undo()
    assert [step(redo) for _ in range(3)] == ["1", "2", "3"]
    with pytest.raises(NotFoundError, match="nothing to redo"):
        redo()
    assert [step(each) for each in (undo, undo, redo, undo, redo, redo)] == [*"212123"]
    redone = [each for each in kb.undo.changes() if each.redone_by is not None]
    assert [each.tool for each in redone] == ["test"] * 3
    assert redone[0].redone_by == kb.undo.changes()[0].number
    step(undo)
    write(kb, path, "other")
    with pytest.raises(NotFoundError, match="nothing to redo"):
        redo()
    assert [step(undo) for _ in range(3)] == ["2", "1", None]


def test_undo_and_redo_of_a_session_leave_those_of_others(kb: KnowledgeBase, notes: Path) -> None:
    with in_session("agent"):
        write(kb, notes / "x.md", "1")
    with in_session("other"):
        write(kb, notes / "y.md", "1")
        with pytest.raises(NotFoundError, match="nothing to redo"):
            kb.undo.redo_last("other")
    with in_session("agent"):
        kb.undo.undo_last("agent")
        assert contents(notes) == {"y.md": "1"}
        kb.undo.redo_last("agent")
    assert contents(notes) == {"x.md": "1", "y.md": "1"}


@pytest.mark.usefixtures("three")
def test_the_text_of_an_undo_says_what_was_undone(kb: KnowledgeBase, notes: Path) -> None:
    change_all(kb, notes)
    number = kb.undo.changes()[0].number
    lines = edit_texts.undone(
        kb.undo.undo_last(), redo="qmd undo --redo", by_number=""
    ).splitlines()
    assert lines[0] == (
        "Undid: moved notes/a.md to notes/new/a.md and 4 more files, just now, by move_note"
        f" (change {number})"
    )
    assert lines[1] == "- notes/d.md deleted"
    assert lines[-1] == "To redo: qmd undo --redo"
    (redone, *_) = edit_texts.undone(kb.undo.redo_last(), redo="", by_number="").splitlines()
    assert redone.startswith("Redid: moved notes/a.md to notes/new/a.md and 4 more files, undone")
    write(kb, notes / "new.md", "1")
    assert "Undid: created notes/new.md, " in edit_texts.undone(
        kb.undo.undo_last(), redo="", by_number=""
    )
    assert "Redid: created notes/new.md, " in edit_texts.undone(
        kb.undo.redo_last(), redo="", by_number=""
    )


@pytest.mark.usefixtures("three")
def test_a_change_has_one_number_for_its_undo_and_the_content_before(
    kb: KnowledgeBase, notes: Path
) -> None:
    change_all(kb, notes)
    (change,) = kb.undo.changes()
    for name in ("new/a.md", "b.md", "c.md"):
        revisions = kb.revisions.history(notes / name)
        assert {revision.number for revision in revisions} == {change.number}
        before = kb.revisions.content(notes / name, change.number)
        assert before.decode() == name.partition(".")[0][-1]
    kb.revisions.restore(notes / "new/a.md", change.number)
    assert (notes / "new/a.md").read_text() == "a"


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("changed", ["new/a.md", "b.md", "c.md", "d.md", "a.md"])
def test_nothing_is_overwritten_that_changed_since(
    kb: KnowledgeBase, notes: Path, changed: str
) -> None:
    change_all(kb, notes)
    (notes / changed).write_text("by hand")
    expected = contents(notes)
    reply = kb.undo.undo_last()
    assert contents(notes) == expected
    (refused,) = reply.refused
    assert reply.undone == ()
    assert refused.file == f"notes/{changed}"
    assert ("-by hand" in refused.diff) == (changed in ("new/a.md", "b.md"))
    assert not any(change.tool == "undo" for change in kb.undo.changes())
    if changed not in AFTER:
        (notes / changed).unlink()
    else:
        (notes / changed).write_text(AFTER[changed])
    kb.undo.undo_change(refused.change)
    assert contents(notes) == BEFORE


def test_an_earlier_change_is_named_if_one_is_refused(kb: KnowledgeBase, notes: Path) -> None:
    for name in ("a", "b", "c"):
        write(kb, notes / f"{name}.md", name)
    numbers = [change.number for change in kb.undo.changes()]
    (notes / "c.md").write_text("by hand")
    (notes / "b.md").write_text("by hand")
    reply = kb.undo.undo_last()
    assert [refused.change for refused in reply.refused] == numbers[:1]
    assert reply.earlier == numbers[2]  # that of b.md would be refused, too
    text = edit_texts.undone(reply, redo="redo", by_number="qmd undo {number}")
    assert text.endswith(f"An earlier change can be undone: qmd undo {numbers[2]}")
    assert kb.undo.undo_change(numbers[0], session="another").earlier is None
    assert files(kb.undo.undo_change(reply.earlier)) == [
        UndoneFile("notes/a.md", "deleted", "create")
    ]
    assert kb.undo.undo_last().earlier is None


def test_an_earlier_undo_is_named_if_a_redo_is_refused(kb: KnowledgeBase, notes: Path) -> None:
    for name in ("a", "b", "c"):
        write(kb, notes / f"{name}.md", name)
    undos = [kb.undo.undo_last().change for _ in range(3)]
    (notes / "a.md").write_text("by hand")
    for _ in range(2):
        reply = kb.undo.redo_last()
        assert [refused.change for refused in reply.refused] == undos[2:]
        assert reply.earlier == undos[1]
    text = edit_texts.undone(reply, redo="redo", by_number="qmd undo {number}")
    assert text.endswith(f"An earlier undo can be taken back: qmd undo {undos[1]}")
    kb.undo.undo_change(undos[1])
    assert kb.undo.redo_last().earlier == undos[0]
    kb.undo.undo_change(undos[0])
    assert kb.undo.redo_last().earlier is None
    assert [(notes / f"{name}.md").read_text() for name in ("b", "c")] == ["b", "c"]


def test_the_diff_shows_what_has_changed_since(kb: KnowledgeBase, notes: Path) -> None:
    path = notes / "x.md"
    write(kb, path, "one\n")
    write(kb, path, "two\n")
    number = kb.undo.changes()[0].number
    write(kb, path, "three\n")
    (refused,) = kb.undo.undo_change(number).refused
    assert refused.diff.splitlines()[1:] == ["-two", "+three"]
    path.unlink()
    (refused,) = kb.undo.undo_change(number).refused
    assert (refused.reason, refused.diff) == ("It is not there any more.", "")


@pytest.mark.usefixtures("three")
def test_a_session_is_undone_newest_first(kb: KnowledgeBase, notes: Path) -> None:
    write(kb, notes / "b.md", "by another session")
    with in_session("agent"):
        write(kb, notes / "a.md", "1")
        write(kb, notes / "a.md", "2")
        writes.move(kb.files, notes / "a.md", notes / "e.md", tool="move_note")
        kb.undo.undo_last("agent")
        writes.move(kb.files, notes / "a.md", notes / "f.md", tool="move_note")
        write(kb, notes / "new.md", "new")
        writes.delete(kb.files, notes / "c.md", tool="delete_note")
    reply = kb.undo.undo_session("agent")
    assert contents(notes) == {**BEFORE, "b.md": "by another session"}
    assert len(reply.undone) == 5
    with pytest.raises(NotFoundError, match="no change of session agent to undo"):
        kb.undo.undo_session("agent")
    assert reply.change is not None
    kb.undo.undo_change(reply.change)
    assert contents(notes) == {"b.md": "by another session", "f.md": "2", "new.md": "new"}
    kb.undo.undo_session("agent")
    assert contents(notes) == {**BEFORE, "b.md": "by another session"}


@pytest.mark.usefixtures("three")
def test_of_a_session_only_what_others_have_changed_stays(kb: KnowledgeBase, notes: Path) -> None:
    with in_session("agent"):
        for name in BEFORE:
            write(kb, notes / name, "by the agent")
    (notes / "b.md").write_text("by hand")
    reply = kb.undo.undo_session("agent")
    assert contents(notes) == {**BEFORE, "b.md": "by hand"}
    assert [refused.file for refused in reply.refused] == ["notes/b.md"]


def test_what_was_undone_is_not_undone_again(kb: KnowledgeBase, notes: Path) -> None:
    with pytest.raises(NotFoundError):
        kb.undo.undo_last()
    write(kb, notes / "x.md", "1")
    number = kb.undo.changes()[0].number
    undo = kb.undo.undo_last()
    with pytest.raises(ConflictError, match=f"undone already, by change {undo.change}"):
        kb.undo.undo_change(number)
    with pytest.raises(NotFoundError):
        kb.undo.undo_change(999)


def test_a_change_that_never_came_to_pass_is_undone_by_doing_nothing(
    kb: KnowledgeBase, notes: Path
) -> None:
    """As after a crash between the record and the write."""
    write(kb, notes / "x.md", "1")
    write(kb, notes / "x.md", "2")
    (notes / "x.md").write_text("1")
    reply = kb.undo.undo_last()
    assert files(reply) == [UndoneFile("notes/x.md", "unchanged", "write")]
    assert reply.change is None
    assert files(kb.undo.undo_last()) == [UndoneFile("notes/x.md", "deleted", "create")]
    assert contents(notes) == {}


def test_a_change_is_not_undone_by_halves_when_a_revision_is_gone(
    kb: KnowledgeBase, notes: Path
) -> None:
    with in_session("agent"):
        with kb.files.change(tool="test") as change:
            change.rewrite(notes / "x.md", lambda _: b"x")
            change.rewrite(notes / "y.md", lambda _: b"y")
        for number in range(MAX_REVISIONS + 2):
            write(kb, notes / "x.md", f"{number}")
    reply = kb.undo.undo_session("agent")
    assert contents(notes) == {"x.md": "1", "y.md": "y"}
    (refused,) = reply.refused
    assert "not kept any more" in refused.reason
    assert reply.not_kept == 2


def test_a_photo_is_not_undone(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "x.jpg").write_bytes(b"old")
    new = NewMetadata(b"new", b"{}", {}, {})
    kb.files.rewrite(notes / "x.jpg", lambda _: new, tool="images")
    (refused,) = kb.undo.undo_last().refused
    assert "only the earlier metadata is kept" in refused.reason
    assert (notes / "x.jpg").read_bytes() == b"new"


def test_the_policy_holds_for_undo(kb: KnowledgeBase, tmp_path: Path, notes: Path) -> None:
    write(kb, notes / "x.md", "1")
    kb._settings = Settings(write_roots=[tmp_path / "elsewhere"])
    (refused,) = kb.undo.undo_last().refused
    assert "not below a write root" in refused.reason
    assert contents(notes) == {"x.md": "1"}


def test_a_rename_in_case_alone_is_undone(kb: KnowledgeBase, notes: Path) -> None:
    write(kb, notes / "note.md", "1")
    writes.move(kb.files, notes / "note.md", notes / "Note.md", tool="test")
    kb.undo.undo_last()
    assert contents(notes) == {"note.md": "1"}


@pytest.mark.usefixtures("three")
def test_without_changes_of_its_own_a_session_is_told_the_last_one(
    kb: KnowledgeBase, notes: Path
) -> None:
    with pytest.raises(NotFoundError) as error:
        kb.undo.undo_last("new")
    assert "'qmd history'" in error.value.with_hint
    with in_session("ended"):
        change_all(kb, notes)
    for undo in (kb.undo.undo_last, kb.undo.undo_session):
        with pytest.raises(NotFoundError, match="no change of session new to undo") as error:
            undo("new")
        assert "(move_note, 20" in error.value.with_hint
        assert "notes/new/a.md and 4 more)" in error.value.with_hint
    number = int(error.value.with_hint.partition("session is ")[2].partition(" ")[0])
    kb.undo.undo_change(number)
    assert contents(notes) == BEFORE


def test_saves_that_go_on_with_each_other_are_one_change(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_text("first\n")
    kb.index()
    with in_session("s"):
        one = kb.replace_note("notes/a.md", "second\n").change
        two = kb.replace_note("notes/a.md", "third\n", continues=one).change
        assert one == two
        assert kb.replace_note("notes/a.md", "third\n", continues=two).change is None
    with in_session("other"):
        three = kb.replace_note("notes/a.md", "fourth\n", continues=one).change
    assert three != one
    kept = [
        kb.revisions.content("notes/a.md", each.number)
        for each in kb.revisions.history("notes/a.md")
    ]
    assert kept == [b"third\n", b"first\n"]
    kb.undo.undo_change(three)
    with in_session("s"):  # somebody else has changed the note in between
        assert kb.replace_note("notes/a.md", "x\n", continues=two).change not in (one, None)
        kb.undo.undo_last("s")
    kb.undo.undo_change(one)
    assert contents(notes) == {"a.md": "first\n"}
    assert kb.undo.changes("s")[-1].number == one


def test_a_long_run_of_saves_keeps_the_older_history(kb: KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_text("0\n")
    kb.index()
    with in_session("s"):
        for n in range(3):
            last = kb.replace_note("notes/a.md", f"kept {n}\n").change
        for n in range(3 * MAX_REVISIONS):
            last = kb.replace_note("notes/a.md", f"auto {n}\n", continues=last).change
    assert len(kb.revisions.history("notes/a.md")) == 3
