"""A search of posts equals a scan of the files, for any tree, any literal and any index."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import date, time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qmd import KnowledgeBase
from qmd.files.posts import FOLDED_TO_ASCII, Literal, PostArchive, caseless, post_at, printable
from qmd.operations import posts as posts_texts

# Letters whose case folding is longer, or that several letters fold to.
SIGNS = "ab+*.| #数据库Ａａ-ßẞsSſİiI\u0307Kkﬁﬀf\u01f0j\u030cΣςσK\u0345ιΐ\U00010400\U00010428"
texts = st.text(st.sampled_from(SIGNS + "\n\r\t"), max_size=60)
literals = st.text(st.sampled_from(SIGNS), min_size=1, max_size=4).filter(str.strip)
names = st.text(st.sampled_from("ab 数é!-~"), min_size=1, max_size=3).map(lambda name: name + "x")
files = st.tuples(
    names,
    st.lists(names | st.sampled_from([".assets", "node_modules", ".x"]), max_size=3),
    names,
    st.sampled_from([".md", ".md", ".md", ".MD", ".txt", ".md.bak"]),
    texts,
)


def scanned(root: Path, query: str, author: str | None = None) -> list[tuple[str, int]]:
    """The hits, from the files alone, line by line."""
    found = []
    for folder in sorted(
        (each for each in root.iterdir()), key=lambda path: os.fsencode(path.name)
    ):
        if not folder.is_dir() or folder.name.startswith("."):
            continue
        paths = [
            path.relative_to(root).as_posix()
            for path in folder.rglob("*")
            if path.is_file() and path.name.endswith(".md")
        ]
        for path in sorted(paths, key=os.fsencode):
            if any(part.startswith(".") for part in path.split("/")):
                continue
            if author is not None and path.split("/")[0] != author:
                continue
            text = (root / path).read_bytes().decode()
            for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
                if query.casefold() in line.casefold():
                    found.append((path, number))
    return found


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path_factory.mktemp("posts") / "kb.sqlite", create=True) as opened:
        yield opened


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    tree=st.lists(files, max_size=8),
    later=st.lists(files, max_size=3),
    removed=st.integers(0, 3),
    ignored=st.sampled_from(["", "*.md", "a*/"]),
    query=literals,
)
def test_a_search_equals_a_scan_of_the_files_whatever_is_stored(
    kb: KnowledgeBase,
    tree: list[tuple[str, list[str], str, str, str]],
    later: list[tuple[str, list[str], str, str, str]],
    removed: int,
    ignored: str,
    query: str,
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        (root / ".gitignore").write_text(ignored, encoding="utf-8")
        posts = PostArchive(kb._store, root)
        written = [write(root, *file) for file in tree]
        for path in written:
            os.utime(path, (0, 1_700_000_000.5))  # long ago: the index trusts what it stored
        added = posts.adopt()
        assert added is not None
        kb.index([added.name])
        for path in written[:removed]:
            path.unlink(missing_ok=True)
        for file in later:
            write(root, *file)

        found = posts.search(query, limit=None)
        expected = scanned(root, query)
        assert [(hit.path, hit.line) for hit in found.hits] == expected
        assert (found.total, found.unread) == (len(expected), ())
        for author in posts.authors():
            own = posts.search(query, author=author, limit=1)
            expected = scanned(root, query, author)
            assert own.total == len(expected)
            assert [(hit.path, hit.line) for hit in own.hits] == expected[:1]
        kb.remove_collection(added.name)


def write(root: Path, author: str, folders: list[str], name: str, suffix: str, text: str) -> Path:
    path = root.joinpath(author, *folders, name + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@settings(deadline=None)
@given(text=texts, query=literals)
@example(text="Straße\nSTRASSE", query="aSS")
@example(text="ﬁnﬁ", query="i")
@example(text="İİ", query="i\u0307")
@example(text="ΑΣ ας", query="ΑΣ")
def test_the_lines_of_a_literal_are_those_that_hold_it(text: str, query: str) -> None:
    expected = [
        number
        for number, line in enumerate(re.split("\r\n|\r|\n", text), 1)
        if query.casefold() in line.casefold()
    ]
    assert Literal(query).lines(text.encode()) == expected


@settings(deadline=None)
@given(line=texts.map(lambda text: text.replace("\n", "").replace("\r", "")), query=literals)
@example(line="ﬁnﬁﬁ", query="fi")
@example(line="ßßß", query="ss")
@example(line="ßßß", query="s")
@example(line="aaa", query="aa")
@example(line="Sß", query="ß")
def test_every_occurrence_is_marked_and_taking_the_marks_away_gives_the_line(
    line: str, query: str
) -> None:
    spans = Literal(query).spans(line)
    folded = query.casefold()
    assert bool(spans) == (folded in line.casefold())
    done = 0
    for start, end in spans:
        assert folded in line[start:end].casefold()  # an occurrence, ...
        assert folded not in line[start + 1 : end].casefold()  # ... no sign too long, ...
        assert folded not in line[start : end - 1].casefold()
        between = line[done:start].casefold()
        assert folded not in between  # ... and none is passed over
        done = end
    assert folded not in line[done:].casefold()


def test_no_sign_that_another_text_folds_to_counts_as_caseless() -> None:
    signs = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    wrong = {
        sign: part
        for sign in signs
        if sign.casefold() != sign
        for part in sign.casefold()
        if caseless(part)
    }
    assert wrong == {}
    assert all(map(caseless, "数据库 ，。+*.100%()[]仮名カナ한국"))
    # What makes the way through bytes right: ASCII folds to its lower case, and what else
    # folds to ASCII is known.
    assert all(chr(code).casefold() == chr(code).lower() for code in range(128))
    others = [sign for sign in signs[128:] if any(part.isascii() for part in sign.casefold())]
    assert sorted(FOLDED_TO_ASCII) == others


titles = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20
)


@settings(deadline=None)
@given(
    day=st.dates(),
    moment=st.none() | st.times(),
    title=titles,
    folder=st.sampled_from(["motions", "专辑"]),
)
@example(day=date(2020, 12, 15), moment=None, title="12_30_45", folder="a")
def test_a_name_gives_back_date_and_title(
    day: date, moment: time | None, title: str, folder: str
) -> None:
    stamp = f"{day}" if moment is None else f"{day}_{moment:%H_%M_%S}"
    if moment is None and re.match(r"\d\d_\d\d_\d\d_", title):
        return  # such a title looks like a time
    post = post_at(f"author/{folder}/{stamp}_{title}.md")
    assert (post.date, post.title) == (str(day), printable(title))
    assert post.path.endswith(f"{stamp}_{printable(title)}.md")
    assert len(post.path.splitlines()) == 1
    if title.isprintable():
        assert post.title == title


@settings(deadline=None)
@given(text=texts, query=literals, limit=st.integers(1, 3))
@example(text="Sß", query="ß", limit=1)
def test_the_text_of_a_reply_holds_each_hit_with_three_lines_on_each_side(
    kb: KnowledgeBase, text: str, query: str, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "a" / "motions" / "p.md"
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
        found = PostArchive(kb._store, Path(scratch)).search(query, limit=limit)
    lines = re.split("\r\n|\r|\n", text)
    hits = [n for n, line in enumerate(lines, 1) if query.casefold() in line.casefold()]
    if not lines[-1]:
        lines.pop()
    if not hits:
        assert posts_texts.hits(found) == f"未找到包含 '{query}' 的内容。"
        return
    shown = hits[:limit]
    expected = f'搜索 "{query}" 的结果（显示 {len(shown)}/{len(hits)} 条）：\n'
    for hit in shown:
        first, last = max(hit - 3, 1), min(hit + 3, len(lines))
        expected += f"\n---\n📄 a/motions/p.md（第 {hit} 行）\n\n"
        for number in range(first, last + 1):
            mark = "> " if number == hit else "  "
            line = lines[number - 1]
            if number == hit:
                line = bold(line, query)
            expected += f"{mark}{str(number).rjust(len(str(last)))} | {line}\n"
    if len(hits) > len(shown):
        expected += f"\n还有 {len(hits) - len(shown)} 条结果未显示。\n"
    assert posts_texts.hits(found) == expected


def bold(line: str, query: str) -> str:
    """From the left, each shortest piece whose folding holds the literal."""
    start = 0
    while start < len(line):
        end = start + 1
        while end <= len(line) and query.casefold() not in line[start:end].casefold():
            end += 1
        if end > len(line):
            break
        while query.casefold() in line[start + 1 : end].casefold():
            start += 1
        line = f"{line[:start]}**{line[start:end]}**{line[end:]}"
        start = end + 4
    return line
