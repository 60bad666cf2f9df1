"""A vault full of traps: each is a document or a reported skip, explained, and the rest goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from qmd import KnowledgeBase, Settings
from qmd.values import IndexReport
from tests.support.dump import assert_sound
from tests.support.embedder import HashEmbedder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="names Windows cannot have")

BOMB = "---\n" + "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
) + "---\n# Bomb\n\ndefused\n"  # fmt: skip

NAMES = [
    'quo"te \'s.md', "new\nline.md", "-rf.md", "--help.md", "😀 emoji.md", "100%.md", "a%2Fb.md",
    "under_score*?.md", "hash#tag.md", "line:120.md", " lead.md", "trail .md", "[x](y).md",
    "back\\slash.md", "tab\t.md", "a..b.md", "x.md:3.md", "\u202ertl.md", "e\u0301.md", "é.md",
    "'; DROP TABLE documents; --.md", "n" * 252 + ".md", "文" * 84 + ".md",
]  # fmt: skip

DOCUMENTS: dict[str, bytes] = {
    **{f"names/{name}": b"# Named\n\nsourdough\n" for name in NAMES},
    "deep/" + "d/" * 300 + "end.md": b"# Deep\n",
    "empty.md": b"",
    "blank.md": b"\n\n \t\n",
    "only frontmatter.md": b"---\ntitle: Only\n---\n",
    "open frontmatter.md": b"---\ntitle: never closed\n",
    "broken yaml.md": b"---\ntitle: [1, {\n---\n# Survived\n\nsourdough\n",
    "yaml bomb.md": BOMB.encode(),
    "surrogate.md": b'---\ntitle: "a\\ud800b"\ntags: ["\\ud800"]\naliases: ["x\\udfffy"]\n---\nx\n',
    "nul in yaml.md": b'---\ntitle: "a\\0b"\ntags: ["c\\0d"]\n---\nx\n',
    "deep yaml.md": b"---\nx: " + b"[" * 5000 + b"]" * 5000 + b"\n---\n# Deep brackets\n",
    "wild yaml.md": b"---\n? [a, b]\n: .inf\nn: .nan\nd: 9999-99-99\n1: 2\n---\n# Wild\n",
    "big number.md": b"---\nn: " + b"9" * 10_000 + b"\ndate: 99999999999999999999\n---\n# Number\n",
    "utf16.md": "\ufeff# 数据库\n\nwide\n".encode("utf-16-le"),
    "utf8 bom.md": b"\xef\xbb\xbf# Marked\n",
    "gbk.md": ("# 数据库备份\n\n" + "每天备份数据库，恢复时先停止写入。\n" * 20).encode("gbk"),
    "broken utf8.md": b"# Broken\n\ncaf\xc3 and \xff\xfe here " + b"plain words " * 50,
    "one line.md": b"# Line\n\n" + b"word and " * 600_000,
    "headings.md": b"".join(b"# h%d\n" % n for n in range(100_000)),
    "links.md": b"[[" * 20_000 + b"[a](" * 20_000,
    "fences.md": b"```\n~~~\n" * 5000,
    "quotes.md": b">" * 20_000 + b" x\n",
    "list.md": b"".join(b" " * n + b"- x\n" for n in range(300)),
    "cr only.md": b"# Old Mac\rline two\rline three",
    "separators.md": "# Sep\u2028arated\x0c\x1c\x85\n".encode(),
    "far future.md": b"# Future\n",
    "before time.md": b"# Past\n",
    "x.md/inside.md": b"# In a folder named like a file\n",
}

#: path → the reason under which it is reported
SKIPPED = {
    "nul.md": "binary",
    "picture.md": "binary",
    "huge.md": "too large",
    "fifo.md": "special file",
    "out folder": "symlink out of the collection",
    "out.md": "symlink out of the collection",
    "inside link.md": "symlink inside the collection",
    "loop.md": "symlink loop",
    "dangling.md": "dangling symlink",
    "bad \\xff name.md": "bad file name",
}


class QuickEmbedder(HashEmbedder):
    """Only the length of a text counts: there are megabytes of it here."""

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.spec.dimension), np.float32)
        vectors[np.arange(len(texts)), [len(text.encode()) % 384 for text in texts]] = 1
        return vectors


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("hostile")
    root = base / "vault"
    for name, data in DOCUMENTS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    os.utime(root / "far future.md", ns=(2**63 + 10**18, 2**63 + 10**18))
    os.utime(root / "before time.md", ns=(-(10**18), -(10**18)))
    (root / "nul.md").write_bytes(b"# Nul\x00\x00\x01 bytes\x00")
    (root / "picture.md").write_bytes(
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 9
    )
    with (root / "huge.md").open("wb") as file:
        file.truncate(30 << 20)
    os.mkfifo(root / "fifo.md")
    (base / "secret.md").write_bytes(b"# Secret\n")
    (root / "out.md").symlink_to("../secret.md")
    (root / "out folder").symlink_to("..")
    (root / "inside link.md").symlink_to("empty.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "dangling.md").symlink_to("nowhere.md")
    Path(os.fsdecode(os.fsencode(root) + b"/bad \xff name.md")).write_bytes(b"# Bytes\n")
    yield root


@pytest.fixture(scope="module")
def indexed(root: Path) -> Iterator[tuple[KnowledgeBase, IndexReport]]:
    path = root.parent / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=QuickEmbedder()), create=True) as kb:
        kb.add_collection(root, name="vault")
        yield kb, kb.index()
    assert_sound(path)


Indexed = tuple[KnowledgeBase, IndexReport]


def test_everything_is_a_document_or_a_reported_skip(indexed: Indexed) -> None:
    kb, report = indexed
    assert {document.path for document in kb.documents()} == set(DOCUMENTS)
    assert {skip.path: skip.reason for skip in report.skipped} == SKIPPED
    assert kb.status().skipped == tuple(sorted(report.skipped, key=lambda skip: skip.path))
    assert report.errors == ()
    assert all(skip.detail for skip in report.skipped)


def test_what_is_odd_is_a_warning_that_names_the_file(indexed: Indexed) -> None:
    _, report = indexed
    for name in ("broken yaml.md", "yaml bomb.md"):
        assert any(warning.startswith(f"vault/{name}: ") for warning in report.warnings), name


@pytest.mark.parametrize("name", sorted({*DOCUMENTS, *SKIPPED, "no such.md"}))
@pytest.mark.unmeasured
def test_why_agrees_with_the_run_and_every_document_is_read_back(
    indexed: Indexed, root: Path, name: str
) -> None:
    kb, _ = indexed
    on_disk = root / name
    if "\\xff" in name:
        on_disk = Path(os.fsdecode(os.fsencode(root) + b"/bad \xff name.md"))
    why = kb.why(on_disk)
    assert why.indexed == (name in DOCUMENTS)
    assert why.reason
    why.reason.encode()
    if name in SKIPPED:
        assert SKIPPED[name] in {why.detail.get("skipped"), why.detail["rule"]}
    if name in DOCUMENTS:
        document = kb.why(f"vault/{name}")
        assert document.indexed, "by its display path"
        assert document.detail["docid"] == why.detail["docid"]


@pytest.mark.unmeasured
def test_documents_are_found_read_and_embedded(indexed: Indexed) -> None:
    kb, _ = indexed
    found = {hit.path for hit in kb.search("sourdough", limit=None).hits}
    assert found == {f"names/{name}" for name in NAMES} | {"broken yaml.md"}
    assert [hit.path for hit in kb.search('"备份数据库"').hits] == ["gbk.md"]
    assert {hit.path for hit in kb.search('"数据库"').hits} == {"gbk.md", "utf16.md"}
    assert kb.get("vault/cr only.md", from_line=2).text.startswith("line two")
    assert kb.embed().remaining == 0
    assert "deep/" + "d/" * 300 + "end.md" in {d.path for d in kb.documents("vault/deep")}


def test_a_second_run_changes_nothing(indexed: Indexed) -> None:
    kb, report = indexed
    again = kb.index()
    assert (again.added, again.updated, again.moved, again.removed) == (0, 0, 0, 0)
    assert again.unchanged == len(DOCUMENTS)
    assert again.skipped == report.skipped
