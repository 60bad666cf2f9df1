"""Whatever happens to the files, the index then holds what a fresh index would hold."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from qmd import KnowledgeBase, Settings
from tests.support.dump import assert_sound, dump, vector_rows
from tests.support.embedder import HashEmbedder

#: Thousands of small commits: on a disk they would cost ten times the work itself.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

FOLDERS = ["", "a", "a/b", "中文", "c d", ".hidden", "node_modules", "x.md"]
NAMES = ["x.md", "X.md", "y.md", "note.txt", "笔记 %_#.md"]
SECTION = "A paragraph about sourdough that goes on for a while. " * 30
CONTENTS = [
    b"",
    b"plain, so that the file name is the title\n",
    b"# Boat\n\nWe sail [there](y.md) and [[x|back]]. #sea\n",
    b"---\ntitle: Named\ntags: [one, two/three]\naliases: [other]\ndate: 2025-03-01\n---\ntext\n",
    b"---\ntitle: [broken\n---\n# Still here\n",
    b"---\nonly: frontmatter\n---\n",
    "# 数据库\n\n每天备份数据库，恢复时先停止写入。\n".encode(),
    "# 数据库\n\n每天备份数据库，恢复时先停止写入，然后检查日志文件。\n".encode("gbk"),
    "# Wide\n\nencoded in sixteen bits\n".encode("utf-16"),
    b"# CRLF\r\n\r\none\r\ntwo\r\n",
    b"broken \xff\xfe\xfa bytes, \xc3\x28 here\n",
    b"\x00\x01\x02binary\x00",
    f"# Long\n\n## One\n\n{SECTION}\n\n## Two\n\n{SECTION}!\n\n## Three\n\n{SECTION}?\n".encode(),
    f"# Long\n\n## Two\n\n{SECTION}!\n\n## Zero\n\nnew\n\n## One\n\n{SECTION}\n".encode(),
]
IGNORES = ["", "y.md\n", "a/\n", "*.md\n!x.md\n", "# nothing\n"]

folders = st.sampled_from(FOLDERS)
paths = st.tuples(folders, st.sampled_from(NAMES)).map(lambda p: "/".join(filter(None, p)))
contents = st.sampled_from(CONTENTS)


class Files(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(dir=MEMORY, prefix="qmd-machine-"))
        self.root = self.home / "notes"
        self.root.mkdir()
        self.database = self.home / "kept.sqlite"
        self.empty = self.home / "empty.sqlite"
        self.clock = 1_600_000_000_123_456_789
        self.embedder = HashEmbedder()

    @initialize(options=st.sampled_from([("**/*.md", ()), ("**/*.{md,txt}", ("a/b",))]))
    def add_collection(self, options: tuple[str, tuple[str, ...]]) -> None:
        mask, ignore = options
        for name, content in zip(
            ("y.md", "a/x.md", "中文/笔记.md", "z.md"), CONTENTS[1:5], strict=True
        ):
            (self.root / name).parent.mkdir(exist_ok=True)
            self.put(self.root / name, content, aged=True)
        with KnowledgeBase.open(self.empty, create=True) as kb:
            kb.add_collection(self.root, name="notes", mask=mask, ignore=ignore)
        self.begin(mask, ignore)

    def begin(self, mask: str, ignore: tuple[str, ...]) -> None:
        """Open the database with the collection, which is empty."""
        shutil.copy(self.empty, self.database)
        self.kb = KnowledgeBase.open(self.database, Settings(embedder=self.embedder))

    def assert_as(self, fresh: Path) -> None:
        """The database says what a fresh index says."""
        assert dump(self.database) == dump(fresh)

    def assert_vectors_as(self, fresh: Path) -> None:
        assert vector_rows(self.database) == vector_rows(fresh)

    def assert_sound(self) -> None:
        assert_sound(self.database)

    def teardown(self) -> None:
        try:
            if hasattr(self, "kb"):
                self.index(verify=False)
                self.kb.close()
        finally:
            shutil.rmtree(self.home)

    # -- the disk ----------------------------------------------------------------------

    def place(self, path: str) -> Path | None:
        """The path with its folders made, or None where a file stands in the way."""
        target = self.root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            return None
        return None if target.is_dir() and not target.is_symlink() else target

    def put(self, target: Path, data: bytes, aged: bool) -> None:
        target.write_bytes(data)
        if aged:  # else it is too young for its time to be trusted
            self.age(target)

    def age(self, target: Path) -> None:
        self.clock += 1_000_000_007
        os.utime(target, ns=(self.clock, self.clock))

    def pick(self, data: st.DataObject, kind: str) -> Path | None:
        """An existing file or folder below the root."""
        found = sorted(
            p for p in self.root.rglob("*") if (p.is_dir() if kind == "folder" else p.is_file())
        )
        return data.draw(st.sampled_from(found)) if found else None

    @rule(path=paths, content=contents, aged=st.booleans())
    def write(self, path: str, content: bytes, aged: bool) -> None:
        target = self.place(path)
        if target is not None:
            target.unlink(missing_ok=True)
            self.put(target, content, aged)

    @rule(data=st.data(), content=contents, aged=st.booleans())
    def rewrite(self, data: st.DataObject, content: bytes, aged: bool) -> None:
        if target := self.pick(data, "file"):
            self.put(target, content, aged)

    @rule(data=st.data(), aged=st.booleans())
    def edit_without_changing_the_size(self, data: st.DataObject, aged: bool) -> None:
        if target := self.pick(data, "file"):
            old = target.read_bytes()
            new = old.replace(b"a", b"e") if b"a" in old else old.replace(b"e", b"a")
            self.put(target, new, aged)

    @rule(data=st.data(), aged=st.booleans())
    def append(self, data: st.DataObject, aged: bool) -> None:
        if target := self.pick(data, "file"):
            self.put(target, target.read_bytes() + b"\nmore of it #added\n", aged)

    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        if target := self.pick(data, "file"):
            self.age(target)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if target := self.pick(data, "file"):
            target.unlink()

    @rule(data=st.data(), path=paths)
    def move_over_anything(self, data: st.DataObject, path: str) -> None:
        source, target = self.pick(data, "file"), self.place(path)
        if source and target:
            source.replace(target)

    @rule(data=st.data(), path=paths, with_times=st.booleans())
    def copy(self, data: st.DataObject, path: str, with_times: bool) -> None:
        source, target = self.pick(data, "file"), self.place(path)
        if source and target and source != target and not target.is_symlink():
            (shutil.copy2 if with_times else shutil.copy)(source, target)

    @rule(data=st.data())
    def swap(self, data: st.DataObject) -> None:
        one, two = self.pick(data, "file"), self.pick(data, "file")
        if one and two and one != two:
            third = self.home / "third"
            one.rename(third)
            two.rename(one)
            third.rename(two)

    @rule(data=st.data(), name=st.sampled_from(["a", "z", "中文", ".hidden", "x.md"]))
    def rename_folder(self, data: st.DataObject, name: str) -> None:
        source = self.pick(data, "folder")
        if source and not os.path.lexists(source.parent / name):
            source.rename(source.parent / name)

    @rule(data=st.data())
    def delete_folder(self, data: st.DataObject) -> None:
        if target := self.pick(data, "folder"):
            shutil.rmtree(target)

    @rule(data=st.data(), content=contents)
    def replace_file_by_folder(self, data: st.DataObject, content: bytes) -> None:
        if target := self.pick(data, "file"):
            target.unlink()
            target.mkdir()
            self.put(target / "y.md", content, aged=True)

    @rule(data=st.data(), content=contents)
    def replace_folder_by_file(self, data: st.DataObject, content: bytes) -> None:
        if target := self.pick(data, "folder"):
            shutil.rmtree(target)
            self.put(target, content, aged=True)

    @rule(path=paths, to=st.sampled_from(["x.md", "../outside.md", "nowhere.md"]))
    def link(self, path: str, to: str) -> None:
        target = self.place(path)
        if target is not None and not target.exists() and not target.is_symlink():
            target.symlink_to(to)

    @rule(folder=folders, name=st.sampled_from([".gitignore", ".qmdignore"]),
          text=st.sampled_from(IGNORES))  # fmt: skip
    def ignore(self, folder: str, name: str, text: str) -> None:
        target = self.place(f"{folder}/{name}".lstrip("/"))
        if target is not None:
            target.write_text(text) if text else target.unlink(missing_ok=True)

    # -- the index ---------------------------------------------------------------------

    def fresh(self, *, embed: bool = False) -> Path:
        path = self.home / "fresh.sqlite"
        shutil.copy(self.empty, path)
        with KnowledgeBase.open(path, Settings(embedder=self.embedder)) as kb:
            kb.index()
            if embed:
                kb.embed()
        return path

    @rule(verify=st.booleans())
    def index(self, verify: bool) -> None:
        report = self.kb.index(verify=verify)
        assert not report.errors
        fresh = self.fresh()
        self.assert_as(fresh)
        again = self.kb.index()
        assert (again.added, again.updated, again.moved, again.removed) == (0, 0, 0, 0)
        assert again.unchanged == again.total_documents == report.total_documents
        self.assert_as(fresh)

    @rule()
    def embed(self) -> None:
        self.kb.index()
        self.kb.embed()
        self.assert_vectors_as(self.fresh(embed=True))

    @rule()
    def cleanup(self) -> None:
        self.kb.cleanup()

    @rule()
    def reopen(self) -> None:
        location = self.kb.location
        self.kb.close()
        self.assert_sound()
        self.kb = KnowledgeBase.open(location, Settings(embedder=self.embedder))

    @precondition(lambda self: hasattr(self, "kb"))
    @rule(data=st.data(), folder=folders, name=st.sampled_from(["moved.md", "away.md"]))
    def a_moved_document_keeps_its_ids(self, data: st.DataObject, folder: str, name: str) -> None:
        self.kb.index()
        before = self.ids()
        target = self.place("/".join(filter(None, (folder, name))))
        if not before or target is None or target.exists() or target.is_symlink():
            return
        old = data.draw(st.sampled_from(sorted(before)))
        (self.root / old).rename(target)
        self.kb.index()
        new = target.relative_to(self.root).as_posix()
        after = self.ids()
        (number, digest), chunks = before[old]
        texts = [identity[1] for identity, _ in before.values()]
        if new in after and texts.count(digest) == 1:  # else a rule leaves out the new place
            (same_number, same_digest), same_chunks = after[new]
            assert (same_number, same_digest) == (number, digest)
            # A chunk's identity is its text with the title, and that may be the file's name.
            assert {i for i, h in chunks.items() if h in same_chunks.values()} <= set(same_chunks)

    def ids(self) -> dict[str, tuple[tuple[int, str], dict[int, bytes]]]:
        """Path → (id and content hash, chunk ids with their hashes)."""
        with self.kb._store.reading() as reader:
            return {
                path: (
                    (number, digest),
                    dict(
                        reader.connection.execute(
                            "SELECT id, hash FROM chunks WHERE document_id = ?", [number]
                        ).fetchall()
                    ),
                )
                for number, path, digest in reader.connection.execute(
                    "SELECT id, path, hash FROM documents"
                ).fetchall()
            }


TestFiles = Files.TestCase
TestFiles.settings = settings(
    deadline=None,
    max_examples=settings().max_examples // 2,
    stateful_step_count=14,
    suppress_health_check=list(HealthCheck),
)
