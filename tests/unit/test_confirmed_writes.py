"""Somebody agrees to a change, and that very change is what is written, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.agent.executor import ToolExecutor, ToolResult
from qmd.agent.parser import ToolCall
from qmd.errors import FileChangedError, NoteAccessError, PhotoError, WriteDeclinedError
from qmd.operations import summary as summary_texts
from qmd.tools.toolsets import select
from qmd.values import PhotoChange
from qmd.values.proposed import Proposed, ProposedFields, ProposedText
from tests.support import writes
from tests.support.photos import MASK, make


class Person:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Proposed] = []
        self.answer: Callable[[Proposed], object] = lambda proposed: True

    def __call__(self, proposed: Proposed) -> bool:
        self.asked.append(proposed)
        return self.answer(proposed)  # type: ignore[return-value]


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    return root


@pytest.fixture
def kb(
    tmp_path: Path, notes: Path, person: Person, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KnowledgeBase]:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(confirm_writes=person), create=True) as opened:
        opened.add_collection(notes, name="notes", mask=MASK)
        yield opened


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*"))


def test_what_was_agreed_to_is_what_is_written(
    kb: KnowledgeBase, notes: Path, person: Person
) -> None:
    kb.notes.create("notes/sub/a", "one\r\n")
    kb.notes.create("notes/sub/a", "two", mode="append")
    kb.notes.create("notes/sub/a", "three")
    target = notes / "sub/a.md"
    assert person.asked == [
        ProposedText("create_note", target, None, b"one\r\n"),
        ProposedText("create_note", target, b"one\r\n", b"one\r\ntwo"),
        ProposedText("create_note", target, b"one\r\ntwo", b"three"),
    ]
    assert target.read_bytes() == b"three"


def test_a_summary_is_written_with_the_time_that_was_shown(
    kb: KnowledgeBase, notes: Path, person: Person
) -> None:
    (notes / "log.md").write_text("old\n", "utf-8")
    summary = kb.summary
    hours = iter(range(24))
    summary._now = lambda: time.struct_time((2026, 1, 1, next(hours), 0, 0, 0, 0, 0))
    summary.update("new", str(notes / "log.md"))
    (proposed,) = person.asked
    assert isinstance(proposed, ProposedText)
    assert (notes / "log.md").read_bytes() == proposed.after
    assert b"[2026-01-01 00:00:00]" in proposed.after


@pytest.mark.parametrize("answer", [False, None, 1, "y"])
def test_anything_but_yes_leaves_everything_as_it_was(
    kb: KnowledgeBase, notes: Path, person: Person, answer: object
) -> None:
    (notes / "a.md").write_text("old", "utf-8")
    person.answer = lambda proposed: answer
    with pytest.raises(NoteAccessError, match="Failed to write file: The person declined"):
        kb.notes.create("notes/a", "new")
    with pytest.raises(NoteAccessError, match="The person declined"):
        kb.notes.create("notes/new/folder/b", "new")
    with pytest.raises(WriteDeclinedError, match="The person declined") as declined:
        kb.summary.update("new", str(notes / "sub/c.md"))
    message = str(summary_texts.in_words(declined.value, "c.md", kb.policy))
    assert message.startswith("写入文件失败：未获用户同意，文件未改动（The person declined")
    assert files(notes) == ["a.md"]
    assert (notes / "a.md").read_text("utf-8") == "old"


def test_a_note_that_changes_while_the_person_reads_is_not_written(
    kb: KnowledgeBase, notes: Path, person: Person
) -> None:
    def editing(proposed: Proposed) -> bool:
        assert isinstance(proposed, ProposedText)
        proposed.path.write_bytes((proposed.before or b"") + b"edited meanwhile\n")
        return True

    person.answer = editing
    (notes / "a.md").write_text("old", "utf-8")
    for mode in ("overwrite", "append"):
        with pytest.raises(NoteAccessError, match="has changed since the person was asked"):
            kb.notes.create("notes/a", "new", mode=mode)  # type: ignore[arg-type]
    with pytest.raises(NoteAccessError, match="has changed since"):
        kb.notes.create("notes/b", "new")
    with pytest.raises(FileChangedError) as changed:
        (notes / "c.md").unlink(missing_ok=True)
        kb.summary.update("new", str(notes / "c.md"), "overwrite")
    message = str(summary_texts.in_words(changed.value, "c.md", kb.policy))
    assert "文件在征求用户同意之后发生了变化" in message
    with pytest.raises(FileChangedError):
        (notes / "a.md").write_text("old", "utf-8")
        writes.write(kb.files, notes / "a.md", b"new", tool="test")
    assert files(notes) == ["a.md", "b.md", "c.md"]
    assert all(path.read_bytes().endswith(b"edited meanwhile\n") for path in notes.iterdir())
    assert not any(b"new" in path.read_bytes() for path in notes.iterdir())


def test_others_may_write_in_the_directory_while_the_person_thinks(
    kb: KnowledgeBase, tmp_path: Path, notes: Path, person: Person
) -> None:
    def waiting(proposed: Proposed) -> bool:
        with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as other:
            other.notes.create("notes/other", "written meanwhile")
        return True

    person.answer = waiting
    kb.notes.create("notes/mine", "mine")
    assert files(notes) == ["mine.md", "other.md"]


# --- photos ----------------------------------------------------------------------------


def test_a_photos_fields_are_shown_and_then_written(
    kb: KnowledgeBase, notes: Path, person: Person
) -> None:
    photo = make(notes / "photo.jpg")
    kb.images.write(photo, PhotoChange(tags=("sea",)))
    kb.images.write(photo, PhotoChange(tags=("sky",)), overwrite=False)
    first, second = person.asked
    assert isinstance(first, ProposedFields)
    assert isinstance(second, ProposedFields)
    assert (first.tool, first.path) == ("writeImageMetadata", photo)
    assert first.before == {"XMP-dc:Subject": (), "IPTC:Keywords": ()}
    assert first.after == {"XMP-dc:Subject": ("sea",), "IPTC:Keywords": ("sea",)}
    assert second.before == first.after
    assert second.after["XMP-dc:Subject"] == ("sea", "sky")
    assert kb.photo_metadata(photo).tags == ("sea", "sky")
    # Nothing to change, nothing to ask.
    assert not kb.images.write(photo, PhotoChange(tags=("sea", "sky"))).changed
    assert len(person.asked) == 2


def test_a_photo_is_left_alone_unless_the_person_agrees(
    kb: KnowledgeBase, notes: Path, person: Person
) -> None:
    photo = make(notes / "photo.jpg")
    before = photo.read_bytes()
    person.answer = lambda proposed: False
    with pytest.raises(PhotoError, match="The person declined"):
        kb.images.write(photo, PhotoChange(tags=("sea",)))
    assert photo.read_bytes() == before

    def replacing(proposed: Proposed) -> bool:
        photo.write_bytes(before + b"\n")
        return True

    person.answer = replacing
    with pytest.raises(PhotoError, match="changed the photo meanwhile"):
        kb.images.write(photo, PhotoChange(tags=("sea",)))
    assert photo.read_bytes() == before + b"\n"
    assert files(notes) == ["photo.jpg"]


# --- what the model is told ---------------------------------------------------------------


def call(kb: KnowledgeBase, tool: str, **params: object) -> ToolResult:
    return ToolExecutor(kb, select().tools).execute(ToolCall(tool, params))


def test_each_tool_says_in_its_own_words_that_the_person_declined(
    kb: KnowledgeBase, notes: Path, person: Person
) -> None:
    photo = make(notes / "photo.jpg")
    person.answer = lambda proposed: False
    results = [
        call(kb, "create_note", path="notes/a", content="x"),
        call(kb, "update_summary", content="x", file_path=str(notes / "a.md")),
        call(kb, "writeImageMetadata", filePath=str(photo), metadata={"tags": ["a"]}),
    ]
    assert [each.success for each in results] == [False] * 3
    assert all("The person declined this write" in str(each.error) for each in results)
    assert str(results[0].error).startswith("Failed to write file: ")
    assert '"status": "error"' in str(results[1].error)
    assert str(results[2].error).startswith("元数据写入失败: ")


@pytest.mark.parametrize(
    "path",
    [
        *("notes/CLAUDE.md", "notes/agents", "notes/sub/SKILL", "notes/.git/hooks/pre-commit"),
        *("notes/.obsidian/a", "notes/.cursorrules", "notes/.github/copilot-instructions"),
    ],
)
def test_what_steers_programs_is_never_written(
    kb: KnowledgeBase, notes: Path, person: Person, path: str
) -> None:
    (notes / ".git/hooks").mkdir(parents=True)
    before = files(notes)
    note = call(kb, "create_note", path=path, content="x")
    target = notes.parent / (path if path.endswith(".md") else f"{path}.md")
    summary = call(kb, "update_summary", content="x", file_path=str(target))
    assert "never written by an agent" in str(note.error)
    assert "智能体不得写入" in str(summary.error)
    assert files(notes) == before
    assert person.asked == []


def test_a_hidden_collection_that_the_person_has_opened(tmp_path: Path, person: Person) -> None:
    (tmp_path / ".nb").mkdir()
    for roots, good in (([], False), ([tmp_path / ".nb"], True)):
        path = tmp_path / "other.sqlite"
        with KnowledgeBase.open(
            path, Settings(confirm_writes=person, write_roots=roots), create=True
        ) as opened:
            if not good:
                opened.add_collection(tmp_path / ".nb")
            assert call(opened, "create_note", path=".nb/a", content="x").success is good
            assert not call(opened, "create_note", path=".nb/.git/a", content="x").success


def test_nothing_is_written_outside(
    kb: KnowledgeBase, tmp_path: Path, notes: Path, person: Person
) -> None:
    photo = make(tmp_path / "photo.jpg")
    before = files(tmp_path)
    for path in (str(tmp_path / "a.md"), "a.md", "~/a.md"):
        result = call(kb, "update_summary", content="x", file_path=path)
        assert "智能体只能写入那里" in str(result.error)
    result = call(kb, "writeImageMetadata", filePath=str(photo), metadata={"tags": ["a"]})
    assert "不可写" in str(result.error)
    assert files(tmp_path) == before
    assert person.asked == []
