"""Random edits, moves, deletions, undos and writes from outside, against plain Python models."""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from qmd import KnowledgeBase
from qmd.errors import ConflictError, NotFoundError
from qmd.system.session import in_session
from qmd.values.writing import NoteEdit

#: Thousands of small commits: on a disk they would cost ten times the work itself.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

Files = dict[str, bytes]

FOLDERS = ["", "a/", "b/", "a/b/"]
NAMES = ["Plan.md", "plan.md", "Old idea.md", "v1.2.md", "Ünï (x).md"]
LINKS = [
    *("[[Plan]]", "[[plan#Part|shown]]", "![[a/Plan]]", "[[b/Plan.md#^id]]", "[[a/b/plan]]"),
    *("[[Old idea]]", "[[./Old idea]]", "[[../Plan]]", "[[v1.2]]", "[[b/v1.2|x]]", "[[Ünï (x)]]"),
    *("[p](Plan.md)", "[p](a/Plan.md#part)", "![o](Old%20idea.md)", "[o](<../Old idea.md>)"),
    *("[u](a/%C3%9Cn%C3%AF%20%28x%29.md)", "[v](/b/v1.2.md)", "[w](./v1.2)", "[[#Part]]"),
    *("[[nowhere]]", "[web](https://example.org/Plan.md)"),
]
#: Places where nothing is a link.
VERBATIM = ["`[[Plan]]`", "```\n[[Plan]]\n[p](Plan.md)\n```"]

paths = st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)).map("".join)
numbers = st.integers(0, 30)
lines = st.lists(st.sampled_from(LINKS + VERBATIM), max_size=4)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    body = ["# Part", *draw(lines), "last ^id"]
    if draw(st.booleans()):
        body[:0] = ["---", 'up: "[[Plan]]"', "---"]
    text = "\n\n".join(body).replace("\n", end) + end
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    return text.encode(encoding)


# --- the model of links: plain loops over all files, by the rules of docs and issue ------

_LINK = re.compile(
    r"```.*?```|`[^`]*`|\[\[(?P<wiki>[^\]|#]*)[^\]]*\]\]|\]\((?:<(?P<angle>[^>#]*)|(?P<plain>[^)#]*))",
    re.DOTALL,
)


def text_of(data: bytes) -> str:
    return data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")


class LinkPath(str):
    """The path of a link; ``is_markdown`` for ``[text](path)``."""

    is_markdown: bool


def links_of(text: str) -> list[LinkPath | None]:
    """The path of each link; None for one that leads to no other file."""
    links: list[LinkPath | None] = []
    for match in _LINK.finditer(text):
        wiki, angle, plain = match["wiki"], match["angle"], match["plain"]
        if wiki is None and angle is None and plain is None:
            continue
        path = LinkPath(wiki if wiki is not None else unquote(angle or plain or ""))
        path.is_markdown = wiki is None
        links.append(None if not path or "://" in path else path)
    return links


def meaning(link: LinkPath, source: str, files: Files, *, is_vault: bool) -> str | None:
    """The file that a link leads to: as Obsidian would say, or first as CommonMark."""
    folder = posixpath.dirname(source)
    path = str(link)
    if link.is_markdown and not is_vault and not path.startswith("/"):
        beside = posixpath.normpath(posixpath.join(folder, path))
        for spelling in spellings(beside):
            same = [each for each in files if each.casefold() == spelling.casefold()]
            if same:
                return best(same, spelling)
    is_whole = path.startswith(("/", "./", "../"))
    if path.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join(folder, path))
        while is_vault and path.startswith("../"):
            path = path.removeprefix("../")
    path = path.lstrip("/")
    for spelling in spellings(path):
        sought = spelling.casefold()
        exact = [each for each in files if each.casefold() == sought]
        ending = [each for each in files if f"/{each}".casefold().endswith(f"/{sought}")]
        below = [each for each in ending if not folder or each.casefold().startswith(f"{folder}/")]
        for candidates in (exact, *((below, ending) if not is_whole else ())):
            if candidates:
                return best(candidates, spelling)
    return None


def spellings(path: str) -> tuple[str, str]:
    return (path, path + ".md") if "." in path.split("/")[-1] else (path + ".md", path)


def best(files: list[str], spelling: str) -> str:
    return min(
        files,
        key=lambda each: (
            len(each),
            each.casefold(),
            not f"/{each}".endswith(f"/{spelling}"),
            each,
        ),
    )


def meanings(source: str, data: bytes, files: Files, *, is_vault: bool) -> list[str | None]:
    return [
        None if path is None else meaning(path, source, files, is_vault=is_vault)
        for path in links_of(text_of(data))
    ]


def without_paths(data: bytes) -> str:
    """A text without what a move may change: the paths of links, outside code."""

    def blank(match: re.Match[str]) -> str:
        whole = match.group()
        for name in ("wiki", "angle", "plain"):
            if match[name] is not None:
                start, end = (each - match.start() for each in match.span(name))
                return whole[:start] + whole[end:]
        return whole

    return _LINK.sub(blank, text_of(data))


WITHOUT_EFFECT = 0  # in place of the number of an undo whose steps took back each other


class Edits(RuleBasedStateMachine):
    """
    Attributes:
        files: What is on the disk.
        changes: Number of a change → its session, and each file before and after it.
        undone_by: Number of a change → the change that undid it.
        undos: Number of an undo → whether it is a redo: what it undid were undos.
        at_start: The files when the session began; None after a write from outside.
        is_vault: Whether the folder has Obsidian's settings: other rules for Markdown links.
    """

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(dir=MEMORY, prefix="qmd-machine-"))
        self.root = self.home / "notes"
        self.root.mkdir()
        self.files: Files = {}
        self.changes: dict[int, tuple[str, dict[str, tuple[bytes | None, bytes | None]]]] = {}
        self.undone_by: dict[int, int] = {}
        self.undos: dict[int, bool] = {}
        self.session = 0
        self.at_start: Files | None = {}
        self.is_indexed = True
        self.is_vault = False
        self.kb = self.open()
        self.kb.add_collection(self.root, name="notes")

    def open(self) -> KnowledgeBase:
        """Open an empty database."""
        return KnowledgeBase.open(self.home / "kb.sqlite", create=True)

    def teardown(self) -> None:
        try:
            self.kb.index()
            self.is_indexed = True
            self.the_index_has_the_files()
            self.the_graph_agrees_with_the_model()
        finally:
            self.kb.close()
            shutil.rmtree(self.home)

    @initialize(
        notes=st.dictionaries(paths, contents(), min_size=3, max_size=8), is_vault=st.booleans()
    )
    def begin(self, notes: Files, is_vault: bool) -> None:
        self.is_vault = is_vault
        if is_vault:
            (self.root / ".obsidian").mkdir()
        for path, content in notes.items():
            self.write_outside(path, content)
        self.begin_session()
        self.index()

    # -- what tools do -----------------------------------------------------------------

    @rule(path=paths, content=contents())
    def create(self, path: str, content: bytes) -> None:
        with in_session(self.name), self.kb.files.change(tool="test") as change:
            change.rewrite(self.root / path, lambda _: content)
        self.note_change(change.number, {**self.files, path: content})

    @rule(path=paths, line=st.sampled_from(LINKS), heading=st.sampled_from([None, "Part"]))
    def edit(self, path: str, line: str, heading: str | None) -> None:
        with in_session(self.name), suppress(NotFoundError):
            note = self.kb.edit_note(
                f"notes/{path}", NoteEdit("append", text=line, heading=heading)
            )
            changed = note.file.removeprefix("notes/")
            assert line in text_of(self.on_disk()[changed])
            self.note_change(note.change, {**self.files, changed: self.on_disk()[changed]})

    @rule(number=numbers)
    def delete(self, number: int) -> None:
        path = self.one_of_the_files(number)
        if path is None:
            return
        with in_session(self.name):
            deleted = self.kb.delete_note(f"notes/{path}")
        self.note_change(
            deleted.change, {each: self.files[each] for each in self.files if each != path}
        )

    @rule(number=numbers, new=paths, preview=st.sampled_from([False, False, True]))
    def move(self, number: int, new: str, preview: bool) -> None:
        path = self.one_of_the_files(number)
        if path is None:
            return
        before = dict(self.files)
        with in_session(self.name):
            try:
                moved = self.kb.move_note(f"notes/{path}", f"notes/{new}", preview=preview)
            except ConflictError:
                assert new in before
                return
        if preview:
            assert self.on_disk() == before
            return
        assert new not in before
        self.is_indexed = True
        after = self.on_disk()
        places = {each: new if each == path else each for each in before}
        assert set(after) == set(places.values())
        changed = 0
        for old_place, place in places.items():
            old_data, data = before[old_place], after[place]
            assert without_paths(old_data) == without_paths(data)
            expected = meanings(old_place, old_data, before, is_vault=self.is_vault)
            present = meanings(place, data, after, is_vault=self.is_vault)
            for old_path, new_path, one, other in zip(
                *(links_of(text_of(old_data)), links_of(text_of(data)), expected, present),
                strict=True,
            ):
                if one is None:  # a link that led nowhere is not touched
                    assert old_path == new_path
                else:
                    assert other == places[one], (place, old_path, new_path)
            changed += old_data != data
            assert text_of(data).count("\r\n") == text_of(old_data).count("\r\n")
            assert data[:3] == old_data[:3] or not data.startswith(b"\xef")
        assert (moved.notes, moved.unchanged_links) == (changed, 0)
        self.note_change(moved.change, after)

    @rule()
    def undo_last(self) -> None:
        with in_session(self.name):
            in_effect = [
                number
                for number in self.changes
                if number not in self.undos and self.is_in_effect(number)
            ]
            if not in_effect:
                return
            reply = self.kb.undo.undo_last()
        [number] = [
            *(undone.change for undone in reply.undone),
            *(refused.change for refused in reply.refused),
        ]
        assert number == in_effect[-1]
        self.check_undo(reply.change, [number] if reply.undone else [])
        if not reply.undone:
            assert not self.can_be_undone(number)

    @rule()
    def redo_last(self) -> None:
        behind_the_last = list(takewhile(lambda each: each in self.undos, reversed(self.changes)))
        undos = [
            number
            for number in behind_the_last
            if number not in self.undone_by and not self.undos[number]
        ]
        with in_session(self.name):
            try:
                reply = self.kb.undo.redo_last()
            except NotFoundError:
                assert not undos
                return
        number = undos[0]
        assert number in {each.change for each in (*reply.undone, *reply.refused)}
        self.check_undo(reply.change, [number] if reply.undone else [])
        if not reply.undone:
            assert not self.can_be_undone(number)

    @rule()
    def undo_session(self) -> None:
        with in_session(self.name):
            try:
                reply = self.kb.undo.undo_session(self.name)
            except NotFoundError:
                return
        if self.at_start is not None:
            assert not reply.refused
            assert self.on_disk() == self.at_start
        self.check_undo(reply.change, [each.change for each in reply.undone])

    @rule()
    def begin_session(self) -> None:
        self.session += 1
        self.at_start = dict(self.files)

    # -- what other programs do --------------------------------------------------------

    @rule(path=paths, content=st.none() | contents())
    def write_outside(self, path: str, content: bytes | None) -> None:
        place = self.root / path
        if content is None:
            place.unlink(missing_ok=True)
            self.files.pop(path, None)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            self.files[path] = content
        self.at_start = None
        self.is_indexed = False

    @rule()
    def index(self) -> None:
        self.kb.index()
        self.is_indexed = True

    # -- what must be true -------------------------------------------------------------

    @invariant()
    def the_disk_has_the_files(self) -> None:
        assert self.on_disk() == self.files

    @invariant()
    def the_index_has_the_files(self) -> None:
        if not self.is_indexed:
            return
        documents = {each.path: self.kb.get(each.file).text for each in self.kb.documents()}
        assert documents == {path: text_of(data) for path, data in self.files.items()}

    def the_graph_agrees_with_the_model(self) -> None:
        for path, data in self.files.items():
            targets = meanings(path, data, self.files, is_vault=self.is_vault)
            expected = sorted(each for each in targets if each)
            links = self.kb.links(f"notes/{path}").links
            present = sorted(
                link.file.removeprefix("notes/")
                for link in links
                if link.file is not None and not link.target.startswith("#")
            )
            assert present == expected

    # -- helpers -----------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"session-{self.session}"

    def one_of_the_files(self, number: int) -> str | None:
        return sorted(self.files)[number % len(self.files)] if self.files else None

    def on_disk(self) -> Files:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def note_change(self, number: int | None, after: Files) -> None:
        places = dict.fromkeys((*self.files, *after))
        steps = {
            path: (self.files.get(path), after.get(path))
            for path in places
            if self.files.get(path) != after.get(path)
        }
        if number is not None:
            self.changes[number] = (self.name, steps)
        else:
            assert not steps
        self.files = after

    def check_undo(self, number: int | None, undone: list[int]) -> None:
        after = dict(self.files)
        for each in [each for each in reversed(self.changes) if each in undone]:
            for path, (old, _) in self.changes[each][1].items():
                after.pop(path, None)
                if old is not None:
                    after[path] = old
            self.undone_by[each] = WITHOUT_EFFECT if number is None else number
        assert self.on_disk() == after
        self.note_change(number, after)
        if number is not None:
            self.undos[number] = all(each in self.undos for each in undone) and not any(
                self.undos.get(each) for each in undone
            )

    def is_in_effect(self, number: int) -> bool:
        if number == WITHOUT_EFFECT:
            return True
        by = self.undone_by.get(number)
        return bool(self.changes[number][1]) and (by is None or not self.is_in_effect(by))

    def can_be_undone(self, number: int) -> bool:
        return all(
            self.files.get(path) == new for path, (_, new) in self.changes[number][1].items()
        )


TestEdits = Edits.TestCase
TestEdits.settings = settings(
    max_examples=settings().max_examples // 2,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


if __name__ == "__main__":  # a longer run: python -m tests.properties.test_edit_state_machine 2000
    run_state_machine_as_test(
        Edits,
        settings=settings(
            TestEdits.settings, max_examples=int(sys.argv[1]), stateful_step_count=50
        ),
    )
