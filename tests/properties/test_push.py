"""After any changes of a folder, a push makes the server's copy equal to it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from qmd.kb import KnowledgeBase
from qmd.settings import Settings
from qmd.transfer.push import FolderPush
from qmd.values import Collection
from qmd.values.transfer import Push, PushedFile, PushReport

NAMES = st.sampled_from(
    ["a.md", "b.md", "文.md", "sub/a.md", "sub/c.md", "a.md/x.md", "sub/deep/d.md"]
)
TEXTS = st.sampled_from(["", "# One\n", "# Two\n", "alpha\n" * 40, "# One\nmore\n"])


class Direct:
    """A knowledge base in this process, in the place of `PushServer`."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    def files(self, name: str) -> dict[str, PushedFile]:
        files: dict[str, PushedFile] = {}
        while True:
            page = self._kb.pushed_files(name, after=max(files, default="", key=_parts))
            files |= {file.path: file for file in page.files}
            if not page.more:
                return files

    def push(self, name: str, push: Push) -> PushReport:
        return self._kb.push(name, push)


def _parts(path: str) -> list[str]:
    return path.split("/")


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


class PushedNotes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.notes = self.home / "notes"
        self.notes.mkdir()
        settings_ = Settings(push_folder=self.home / "pushed")
        self.kb = self.open(settings_)
        self.push = self.fresh_push()

    def open(self, settings_: Settings) -> KnowledgeBase:
        return KnowledgeBase.open(self.home / "team.db", settings_, create=True)

    def fresh_push(self) -> FolderPush:
        folder = Collection(
            0, "notes", str(self.notes), "**/*.md", (), 0, None, None, owner="alice"
        )
        return FolderPush(Direct(self.kb), folder)  # type: ignore[arg-type]

    @initialize()
    def first(self) -> None:
        (self.notes / "kept.md").write_text("# Kept\n")

    @rule(name=NAMES, text=TEXTS)
    def write(self, name: str, text: str) -> None:
        path = self.notes / name
        for above in path.parents:
            if above.is_file():
                above.unlink()
        if path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @rule(old=NAMES, new=NAMES)
    def move(self, old: str, new: str) -> None:
        source, target = self.notes / old, self.notes / new
        if (
            source.is_file()
            and not target.is_dir()
            and all(not p.is_file() for p in target.parents)
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if (self.notes / name).is_file():
            (self.notes / name).unlink()

    @rule()
    def another_process(self) -> None:
        self.push = self.fresh_push()

    @invariant()
    def the_copy_is_equal(self) -> None:
        if not (self.notes / "kept.md").exists():
            return
        summary = self.push.run()
        assert (summary.refused, summary.waiting) == ([], [])
        copy = self.home / "pushed" / "notes"
        assert tree(copy) == tree(self.notes)
        stored = {each.path for each in self.kb.documents("notes")}
        assert stored == set(tree(self.notes))
        assert self.push.run().stored == 0

    def teardown(self) -> None:
        self.kb.close()
        shutil.rmtree(self.home)


TestPush = PushedNotes.TestCase
TestPush.settings = settings(max_examples=8, stateful_step_count=6, deadline=None)
