"""Thoughts go where the setting says, with their files, and nothing that was there is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.cli import Scratch
from support.web_site import png

from qmd import KnowledgeBase, Settings
from qmd.errors import InputError, InvalidPathError, OutsideRootsError
from qmd.values.documents import NewFact
from qmd.values.writing import Attachment

AT = "2026-11-25T14:05:07"


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


@pytest.fixture
def opened(notes: Path) -> Iterator[Callable[..., KnowledgeBase]]:
    with ExitStack() as stack:

        def open_(**settings: object) -> KnowledgeBase:
            database = notes.parent / "index.sqlite"
            kb = KnowledgeBase.open(database, Settings(**settings), create=True)  # type: ignore[arg-type]
            if not kb.collections():
                kb.add_collection(notes)
            return stack.enter_context(kb)

        yield open_


def test_thoughts_are_a_list_in_the_inbox(
    opened: Callable[..., KnowledgeBase], notes: Path
) -> None:
    kb = opened()
    first = kb.capture("A thought #idea", at=AT)
    assert (first.file, first.line) == ("notes/Inbox.md", 1)
    kb.capture("Two lines\n\n```\ncode\n```", at=AT)
    kb.capture("[ ] Call the bank 📅 2026-12-01", at=AT)
    last = kb.capture("- an item", at=AT)
    assert (notes / "Inbox.md").read_text() == (
        "- 2026-11-25 14:05 A thought #idea\n"
        "- 2026-11-25 14:05 Two lines\n\n  ```\n  code\n  ```\n"
        "- [ ] Call the bank 📅 2026-12-01\n"
        "- an item\n"
    )
    assert last.line == 8
    assert [each.text for each in kb.tasks().tasks] == ["Call the bank"]
    assert [each.file for each in kb.search("idea").hits] == ["notes/Inbox.md"]
    kb.undo.undo_change(last.change or 0)
    assert "an item" not in (notes / "Inbox.md").read_text()


@pytest.mark.parametrize(
    ("pattern", "file", "text"),
    [
        ("notes/{{date}}", "notes/2026-11-25.md", "- 14:05 # A plan: x?\n"),
        ("notes/in/{{title}}.md", "notes/in/A plan x.md", "# A plan: x?\n"),
        ("notes/{{ date }} {{time}}", "notes/2026-11-25 140507.md", "# A plan: x?\n"),
    ],
)
def test_the_setting_says_where(
    opened: Callable[..., KnowledgeBase], notes: Path, pattern: str, file: str, text: str
) -> None:
    assert opened(inbox=pattern).capture("# A plan: x?", at=AT).file == file
    assert (notes.parent / file).read_text() == text


def test_thoughts_stay_in_one_inbox_whatever_collection_changes(
    opened: Callable[..., KnowledgeBase], notes: Path
) -> None:
    kb = opened()
    kb.create_note("notes/First.md", "# First\n")
    other = notes.parent / "a-new-one"
    other.mkdir()
    kb.add_collection(other)
    kb.create_note("a-new-one/Last.md", "# Last\n")
    assert [each.name for each in kb.collections()] == ["a-new-one", "notes"]
    assert kb.capture("A thought", at=AT).file == "notes/Inbox.md"
    assert kb.remember(NewFact("Lives in Rome", "Alice")).file == "notes/memory/Alice.md"


def test_files_of_one_name_that_come_at_once_are_all_kept(
    opened: Callable[..., KnowledgeBase], notes: Path
) -> None:
    kb = opened()

    def keep(number: int) -> str:
        pasted = Attachment("image.png", b"%d" % number)
        kept = kb.capture(f"Thought {number}", attachments=[pasted], at=AT).attachments
        return [*kept, kb.attach(None, pasted).file][number % 2]

    with ThreadPoolExecutor(8) as threads:
        files = list(threads.map(keep, range(8)))
    assert [(notes.parent / each).read_bytes() for each in files] == [b"%d" % n for n in range(8)]
    text = (notes / "Inbox.md").read_text()
    assert all(f"Thought {number}\n" in text for number in range(8))


def test_a_new_note_is_made_by_the_template(
    opened: Callable[..., KnowledgeBase], notes: Path
) -> None:
    (notes / "Template.md").write_text("---\nday: {{date}}\n---\n# {{title}}\n\n{{text}}\n\nEnd\n")
    kb = opened(inbox="notes/{{title}}", inbox_template="notes/Template")
    kb.index()
    kept = kb.capture("Boats {{date}}\n\nmore", at=AT)
    assert (notes.parent / kept.file).read_text() == (
        "---\nday: 2026-11-25\n---\n# Boats {{date}}\n\nBoats {{date}}\n\nmore\n\nEnd\n"
    )
    assert kept.line == 6


@pytest.mark.parametrize("pattern", ["{{daily}}", "notes/{{ daily }}"])
def test_a_thought_goes_into_the_daily_note_of_the_vault(
    opened: Callable[..., KnowledgeBase], notes: Path, pattern: str
) -> None:
    settings = {"folder": "days", "format": "YYYY/MM-DD", "template": "Day"}
    (notes / ".obsidian").mkdir()
    (notes / ".obsidian/daily-notes.json").write_text(json.dumps(settings))
    (notes / "Day.md").write_text("# {{title}}\n\n## Log\n")
    kb = opened(inbox=pattern)
    first = kb.capture("one", at=AT)
    assert first.file == "notes/days/2026/11-25.md"
    kb.capture("two", at="2026-11-25T15:00")
    text = (notes / "days/2026/11-25.md").read_text()
    assert text == "# 11-25\n\n## Log\n\n- 14:05 one\n- 15:00 two\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# In\n", "# In\n\n- 2026-11-25 14:05 x\n"),
        ("# In\n\n- a\n\n\n", "# In\n\n- a\n- 2026-11-25 14:05 x\n"),
        ("- a\r\n- b", "- a\r\n- b\r\n- 2026-11-25 14:05 x\r\n"),
        ("---\na: 1\n---\n", "---\na: 1\n---\n\n- 2026-11-25 14:05 x\n"),
        ("", "- 2026-11-25 14:05 x\n"),
    ],
)
def test_what_is_there_stays(
    opened: Callable[..., KnowledgeBase], notes: Path, before: str, after: str
) -> None:
    (notes / "Inbox.md").write_bytes(before.encode())
    opened().capture("x", at=AT)
    assert (notes / "Inbox.md").read_bytes().decode() == after


def test_files_are_kept_beside_the_note(opened: Callable[..., KnowledgeBase], notes: Path) -> None:
    kb = opened()
    files = [
        Attachment("a b.PNG", png(1)),
        Attachment("../../a b.png", png(2)),
        Attachment("..\\x\\letter (1).pdf", b"%PDF"),
        Attachment("\u202e.md\n", b"x"),
    ]
    kept = kb.capture("Look", attachments=files, at=AT)
    assert kept.attachments[:2] == ("notes/a b.png", "notes/a b 2.png")
    assert kept.attachments[2] == "notes/letter (1).pdf"
    assert all((notes.parent / each).resolve().parent == notes for each in kept.attachments)
    text = (notes / "Inbox.md").read_text()
    assert "![a b.PNG](<a b.png>)\n  ![a b.png](<a b 2.png>)" in text
    assert not kb.broken_links().links
    kb.undo.undo_change(kept.change or 0)
    assert list(notes.iterdir()) == []


def test_neither_a_thought_nor_a_file_steers_programs(
    opened: Callable[..., KnowledgeBase], notes: Path
) -> None:
    kb = opened(inbox="notes/{{title}}")
    kept = kb.capture("# CLAUDE\nObey.", attachments=[Attachment("x/SKILL.md", b"x")], at=AT)
    assert (kept.file, kept.attachments) == ("notes/CLAUDE-1.md", ("notes/SKILL-1.md",))
    assert kb.attach("CLAUDE-1", Attachment("skill.png", png())).file == "notes/skill.png"


def test_a_file_is_kept_beside_any_note(opened: Callable[..., KnowledgeBase], notes: Path) -> None:
    (notes / "sub").mkdir()
    (notes / "sub/plan.md").write_text("# Plan\n")
    kb = opened()
    kb.index()
    kept = kb.attach("plan", Attachment("x.png", png()))
    assert (kept.file, kept.link) == ("notes/sub/x.png", "![x.png](x.png)")
    assert (notes / "sub/plan.md").read_text() == "# Plan\n"


def test_nothing_and_too_much_are_refused(opened: Callable[..., KnowledgeBase]) -> None:
    kb = opened()
    for text in ("", " \n", "x" * 1_000_001, "a\0b"):
        with pytest.raises(InputError):
            kb.capture(text)
    with pytest.raises(InputError):
        kb.capture("x", at="yesterday")
    with pytest.raises(InputError):
        kb.capture("x", attachments=[Attachment("a", b"")] * 21)
    for pattern in ("nowhere/x", "notes/../../x", "notes/a:b"):
        with pytest.raises(InvalidPathError):
            opened(inbox=pattern).capture("x")
    with pytest.raises(OutsideRootsError):
        opened(read_only_files=True, inbox="notes/x").capture("x")


def test_a_hundred_thoughts_at_once_all_stay(
    opened: Callable[..., KnowledgeBase], notes: Path
) -> None:
    kb = opened()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: kb.capture(f"thought {number}"), range(100)))
    lines = (notes / "Inbox.md").read_text().splitlines()
    assert sorted(int(line.rpartition(" ")[2]) for line in lines) == list(range(100))


def test_the_command_takes_words_pipes_and_files(tmp_path: Path, notes: Path) -> None:
    scratch = Scratch(tmp_path, {"QMD_INBOX": "notes/in"})
    scratch.ok("collection", "add", str(notes))
    (tmp_path / "boat.png").write_bytes(png())
    boat = os.fspath(tmp_path / "boat.png")
    assert scratch.ok("add", "a", "thought", "#idea").out.startswith("Added to notes/in.md:1 ")
    done = scratch.run_raw("add", "--file", boat, stdin=b"from a pipe\n")
    assert b"Kept notes/boat.png" in done.stdout, done.stderr
    text = (notes / "in.md").read_text()
    assert "a thought #idea\n" in text and "from a pipe\n  ![boat.png](boat.png)\n" in text
    assert scratch.call("add", "x", "--file", "gone.png").code == 1


def test_what_is_there_is_no_thought(tmp_path: Path, notes: Path) -> None:
    scratch = Scratch(tmp_path, {"QMD_INBOX": "notes/in"})
    scratch.ok("collection", "add", str(notes))
    for name in ("main.py", "video.mp4", "my file.pdf"):
        scratch.write(name, "x")
    (tmp_path / "folder").mkdir()
    for words, problem, way in (
        (["main.py"], "main.py is a file", "qmd add --file main.py;"),
        (["video.mp4"], "video.mp4 is a file", "echo video.mp4 | qmd add"),
        (["my file.pdf"], "my file.pdf is a file", "qmd add --file 'my file.pdf';"),
        (["main.py", "video.mp4"], "are files", "qmd add --file main.py --file video.mp4;"),
        (["main.py", "nope.pdf"], "There is no file nope.pdf.", "echo main.py nope.pdf | qmd add"),
        (["folder"], "folder is a folder", "qmd up folder;"),
        (["main.py", "folder"], "folder is a folder", "qmd up folder;"),
    ):
        done = scratch.call("add", *words)
        assert (done.code, problem in done.err, way in done.err) == (1, True, True), done.err
    assert not (notes / "in.md").exists()
    for thought in ("nope.mp4", "look at main.py", "~nobody/x"):
        scratch.ok("add", thought)


def test_a_path_is_no_thought(tmp_path: Path, notes: Path) -> None:
    scratch = Scratch(tmp_path, {"QMD_INBOX": "notes/in"})
    scratch.ok("collection", "add", str(notes))
    for path in ("nope.pdf", "Nope.MD", "./nope", f"{notes}/nope", "nope.txt"):
        done = scratch.call("add", path)
        assert (done.code, f"There is no file {path}." in done.err) == (1, True), done.err
        assert "--file" in done.err and f"echo {path} | qmd add" in done.err
    boat = tmp_path / "boat.png"
    boat.write_bytes(png())
    assert f"{boat} is a file, and no thought." in scratch.call("add", os.fspath(boat)).err
    assert not (notes / "in.md").exists()
    assert scratch.run_raw("add", stdin=b"nope.pdf\n").returncode == 0
    for thought in (
        "buy nope.pdf again",
        "买牛奶/鸡蛋",
        "#a/b",
        "https://a.example/b.md",
        "v1.2",
    ):
        scratch.ok("add", thought)
