"""An archive of posts: what is listed, what is read, and where texts come from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import InputError, NotFoundError, ReadOnlyError
from qmd.operations.posts import error_in_words
from tests.support import child

LONG_AGO = (1_700_000_000.5, 1_700_000_000.5)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "archive"
    found.mkdir()
    return found


@pytest.fixture
def kb(tmp_path: Path, root: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(posts_dir=root), create=True
    ) as opened:
        yield opened


def write(root: Path, path: str, content: str | bytes = "text\n") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(file, LONG_AGO)
    return file


def found(kb: KnowledgeBase, query: str, author: str | None = None) -> list[tuple[str, int]]:
    return [(hit.path, hit.line) for hit in kb.posts.search(query, author=author, limit=None).hits]


# --- what is there -------------------------------------------------------------------


def test_authors_are_the_folders_by_their_bytes(kb: KnowledgeBase, root: Path) -> None:
    for name in ("b", "B", "作者", "é", "a b", ".assets", ".hidden"):
        (root / name).mkdir()
    write(root, "README.md")
    (root / "link").symlink_to(root / "b")
    assert kb.posts.authors() == ["B", "a b", "b", "é", "作者"]


def test_posts_are_grouped_motions_first_and_empty_groups_left_out(
    kb: KnowledgeBase, root: Path
) -> None:
    for path in (
        "a/Zeichen/2024-03-07_标题.md",
        "a/motions/2020-12-16_18_04_49_b.md",
        "a/motions/2020-12-15_20_10_39_ a_b.md",
        "a/motions/no date.md",
        "a/motions/picture.png",
        "a/motions/2020-12-15_20_10_39_x.MD",
        "a/motions/.assets/2020-12-15_20_10_39_x.md",
        "a/motions/deeper/2020-12-15_20_10_39_x.md",
        "a/beside.md",
        "a/.assets/x.md",
        "a/untitled/2022-01-01_.md",
        "a/untitled/2022-01-01_12_30_45_.md",
        "a/untitled/2022-01-02.md",
    ):
        write(root, path)
    (root / "a" / "empty").mkdir()
    listed = kb.posts.posts("a")
    assert [(group.name, len(group.posts)) for group in listed.groups] == [
        ("motions", 3),
        ("Zeichen", 1),
        ("untitled", 3),
    ]
    assert [(post.date, post.title) for post in listed.groups[0].posts] == [
        ("2020-12-15", " a_b"),
        ("2020-12-16", "b"),
        (None, "no date"),
    ]
    assert listed.groups[1].posts[0].path == "a/Zeichen/2024-03-07_标题.md"
    assert [(post.date, post.title) for post in listed.groups[2].posts] == [
        ("2022-01-01", ""),
        ("2022-01-01", ""),
        (None, "2022-01-02"),
    ]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../archive/a", "a/", "/a", "a/motions", ".assets", "file", "a\0", "A"]
)
def test_only_a_folder_of_the_archive_is_an_author(
    kb: KnowledgeBase, root: Path, name: str
) -> None:
    write(root, "a/motions/x.md")
    write(root, "file")
    (root / ".assets").mkdir()
    for ask in (kb.posts.posts, lambda author: kb.posts.search("x", author=author)):
        with pytest.raises(NotFoundError) as raised:
            ask(name)
        assert str(error_in_words(raised.value)) == f"作者不存在：{name}"


def test_an_author_and_a_title_are_known_in_any_unicode_form(kb: KnowledgeBase, root: Path) -> None:
    decomposed = "Ame\u0301lie"
    write(root, f"{decomposed}/motions/2020-01-01_Cafe\u0301.md")
    assert kb.posts.posts("Am\u00e9lie").author == decomposed
    (post,) = kb.posts.matching("Am\u00e9lie", "CAF\u00c9").posts
    assert kb.posts.read(post.path).text == "text\n"


def test_a_title_is_matched_in_the_title_alone(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/2020/2020-12-15_20_10_39_Docker 入门.md")
    write(root, "a/motions/2020-12-16_docker.md")
    titles = [post.title for post in kb.posts.matching("a", "DOCKER").posts]
    assert titles == ["docker", "Docker 入门"]
    assert kb.posts.matching("a", "2020").groups == ()
    assert kb.posts.matching("a", "md").groups == ()


def test_no_directory_is_an_error_until_it_is_there(tmp_path: Path) -> None:
    place = tmp_path / "later"
    with KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(posts_dir=place), create=True) as kb:
        for ask in (
            kb.posts.authors,
            lambda: kb.posts.posts("a"),
            lambda: kb.posts.read("a/x.md"),
            lambda: kb.posts.search("x"),
        ):
            with pytest.raises(NotFoundError) as raised:
                ask()
            assert str(error_in_words(raised.value)) == f"数据目录不存在：{place}"
        assert kb.posts.adopt() is None
        write(place, "a/motions/x.md", "found")
        assert found(kb, "found") == [("a/motions/x.md", 1)]


# --- reading -------------------------------------------------------------------------


def test_a_post_is_read_whole_and_unchanged(kb: KnowledgeBase, root: Path) -> None:
    text = "## 标题\r\n\r\nline\rlast" + "很长" * 100_000
    write(root, "a/专辑 b/a..b.md", text)
    for path in ("a/专辑 b/a..b.md", "./a//专辑 b/./a..b.md"):
        post = kb.posts.read(path)
        assert (post.post.path, post.text) == ("a/专辑 b/a..b.md", text)


@pytest.mark.parametrize(
    "path",
    [
        *("a/motions/none.md", "a/motions", "a/motions/x.txt", "a/motions/folder.md", "none/x.md"),
        *("../secret.md", "a/../../secret.md", "a/../a/motions/x.md", "{root}/a/motions/x.md"),
        *("a/motions/out.md", "a/out/secret.md", "a/motions/loop.md", "a/motions/text.md"),
        *("~/secret.md", "a\\..\\..\\secret.md", "a/motions/x.md\0.md", "x" * 5000 + ".md", ".md"),
    ],
)
def test_what_is_no_post_is_answered_like_what_does_not_exist(
    kb: KnowledgeBase, root: Path, path: str
) -> None:
    write(root, "a/motions/x.md")
    write(root, "a/motions/x.txt")
    (root / "a/motions/folder.md").mkdir()
    write(root.parent, "secret.md")
    (root / "a/motions/out.md").symlink_to(root.parent / "secret.md")
    (root / "a/out").symlink_to(root.parent)
    (root / "a/motions/loop.md").symlink_to(root / "a/motions/loop.md")
    (root / "a/motions/text.md").symlink_to(root / "a/motions/x.txt")
    path = path.replace("{root}", str(root))
    with pytest.raises(NotFoundError) as raised:
        kb.posts.read(path)
    assert str(error_in_words(raised.value)) == f"文件不存在：{path}"


def test_a_fifo_is_no_post_and_stops_nothing(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/motions/x.md", "here")
    os.mkfifo(root / "a/motions/pipe.md")
    assert found(kb, "here") == [("a/motions/x.md", 1)]
    assert [post.title for post in kb.posts.posts("a").groups[0].posts] == ["x"]
    with pytest.raises(NotFoundError):
        kb.posts.read("a/motions/pipe.md")


# --- searching -----------------------------------------------------------------------


def test_hits_are_in_the_order_of_authors_paths_and_lines(kb: KnowledgeBase, root: Path) -> None:
    paths = ["a/m/2.md", "a/m/1.md", "a/m.md", "a b/x.md", "a/z/deep/er.md", "B/x.md", "a/é.md"]
    for path in paths:
        write(root, path, "no\nx\n\nX")
    order = ["B/x.md", "a/m.md", "a/m/1.md", "a/m/2.md", "a/z/deep/er.md", "a/é.md", "a b/x.md"]
    assert found(kb, "x") == [(path, line) for path in order for line in (2, 4)]
    reply = kb.posts.search("x", limit=3)
    assert ([hit.path for hit in reply.hits], reply.total) == ([*["B/x.md"] * 2, "a/m.md"], 14)


def test_every_literal_stands_for_itself(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/m/x.md", "正则 a.*b [x] (y) $z^ C++ 100% \\d 'q' \"Q\" a_b\n axxb c 的\n")
    for query in ("a.*b", "[x]", "(y)", "$z^", "c++", "C++ 100%", "\\D", "'q'", '"q"', "A_B", "."):
        assert found(kb, query) == [("a/m/x.md", 1)], query
    assert found(kb, "的") == [("a/m/x.md", 2)]
    assert found(kb, " axx") == [("a/m/x.md", 2)]
    assert found(kb, "%\n a") == found(kb, "a_x") == found(kb, "\ud800") == []


def test_letter_case_is_unicode_s_and_width_is_not_folded(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/m/x.md", "Straße\nΟΔΟΣ\nＡＢＣ\nABC\nИван\n")
    expected = {"STRASSE": [1], "οδος": [2], "ａｂｃ": [3], "abc": [4], "иВАН": [5], "ss": [1]}
    for query, lines in expected.items():
        assert [line for _, line in found(kb, query)] == lines, query
    (hit,) = kb.posts.search("SS").hits
    assert hit.spans == ((4, 5),)


def test_a_line_beyond_a_mebibyte_and_the_ones_behind_it_are_searched(
    kb: KnowledgeBase, root: Path
) -> None:
    write(root, "a/m/x.md", "针\n" + "x" * 1_500_000 + "针" + "y" * 10 + "\n针")
    hits = kb.posts.search("针").hits
    assert [hit.line for hit in hits] == [1, 2, 3]
    assert len(hits[0].lines[1]) == 1_500_011


@pytest.mark.parametrize("query", ["", " ", "\u3000\n\t"])
def test_a_blank_query_is_refused(kb: KnowledgeBase, query: str) -> None:
    with pytest.raises(InputError) as raised:
        kb.posts.search(query)
    assert str(error_in_words(raised.value)) == "请提供搜索关键词"


def test_posts_in_other_encodings_are_searched_as_the_index_reads_them(
    kb: KnowledgeBase, root: Path
) -> None:
    text = "第一行\n数据库的设计与实现，我们在这里讨论。\n"
    write(root, "a/m/bom.md", b"\xef\xbb\xbf" + text.encode())
    write(root, "a/m/gbk.md", text.encode("gbk"))
    write(root, "a/m/utf16.md", text.encode("utf-16"))
    write(root, "a/m/broken.md", text.encode()[:-4] + b"\xff\n")
    write(root, "a/m/zero.md", b"\0\n" + "数据库".encode())
    expected = [(f"a/m/{name}.md", 2) for name in ("bom", "broken", "gbk", "utf16", "zero")]
    assert found(kb, "数据库") == expected
    assert kb.posts.read("a/m/gbk.md").text == text
    assert kb.posts.read("a/m/bom.md").text == "\ufeff" + text
    kb.posts.adopt()
    kb.index()
    assert kb.count_documents() == 4  # what is no text is none
    assert found(kb, "数据库") == expected


def test_a_stored_text_answers_while_its_file_is_as_it_was(kb: KnowledgeBase, root: Path) -> None:
    file = write(root, "a/m/x.md", "stored")
    kb.posts.adopt()
    kb.index()
    file.write_text("notnow", encoding="utf-8")  # the same size, ...
    os.utime(file, LONG_AGO)  # ... and time
    assert (found(kb, "stored"), found(kb, "notnow")) == ([("a/m/x.md", 1)], [])
    os.utime(file)
    assert (found(kb, "stored"), found(kb, "notnow")) == ([], [("a/m/x.md", 1)])


def test_what_the_rules_of_the_collection_leave_out_is_found(kb: KnowledgeBase, root: Path) -> None:
    write(root, ".gitignore", "drafts/\n")
    paths = ["a/drafts/x.md", "a/m/y.md", "a/node_modules/z.md"]
    for path in paths:
        write(root, path, "needle")
    kb.posts.adopt()
    kb.index()
    assert [document.path for document in kb.documents()] == ["a/m/y.md"]
    assert found(kb, "needle") == [(path, 1) for path in paths]


CLOSED = """
import sys
from pathlib import Path
from qmd import KnowledgeBase, Settings
from qmd.errors import InputError
from qmd.operations.posts import error_in_words
with KnowledgeBase.open(sys.argv[1], Settings(posts_dir=Path(sys.argv[2]))) as kb:
    reply = kb.posts.search("needle")
    print(*(hit.path for hit in reply.hits), "|", *sorted(reply.unread))
    try:
        kb.posts.read("a/m/closed.md")
    except InputError as error:
        print(error_in_words(error))
"""


def test_what_cannot_be_read_is_named_and_the_rest_found(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/m/x.md", "needle")
    file = write(root, "a/m/closed.md", "needle")
    folder = write(root, "a/shut/y.md", "needle").parent
    file.chmod(0)
    folder.chmod(0)
    try:
        found, read = child.unprivileged(CLOSED, kb.path, root).splitlines()
    finally:
        folder.chmod(0o700)
    assert found == "a/m/x.md | a/m/closed.md a/shut"
    assert read.startswith("无法读取文件：a/m/closed.md（")


ASK = """
import sys
from pathlib import Path
from qmd import KnowledgeBase, Settings
from qmd.operations.texts import MCP
from qmd.tools.toolsets import select
tools = {tool.name: tool for tool in select(["posts"]).tools}
with KnowledgeBase.open(sys.argv[1], Settings(posts_dir=Path(sys.argv[2]))) as kb:
    for line in sys.argv[3:]:
        name, *given = line.split()
        arguments = dict(each.split("=") for each in given)
        reply = tools[name].call(kb, arguments, MCP)
        blocks = [repr(block.text) for block in reply.blocks]
        print("error:" if reply.is_error else "said:", *blocks)
"""


def test_a_folder_that_cannot_be_read_is_named_beside_the_posts_of_the_others(
    kb: KnowledgeBase, root: Path
) -> None:
    paths = ["a/m/x.md", "a/shut/y.md", "a/shut too/z.md", "b/shut/y.md", "c/empty/y.txt"]
    for path in paths:
        write(root, path)
    write(root, "d/y.md")
    closed = [root / name for name in ("a/shut", "a/shut too", "b/shut", "d")]
    for each in closed:
        each.chmod(0)
    asked = ["list_posts author=a", "read_post author=a title=x", "read_post author=a title=y"]
    asked += [f"list_posts author={author}" for author in "bcd"]
    try:
        told = child.unprivileged(ASK, kb.path, root, *asked).splitlines()
    finally:
        for each in closed:
            each.chmod(0o700)
    unread = "'有 2 处无法读取，未列出：a/shut、a/shut too'"
    refused = "error: '无法读取目录：{}（Permission denied）'"
    assert told == [
        f"said: '作者：a\\n\\n## 作品集：m（共 1 篇）\\n- x → a/m/x.md\\n' {unread}",
        f"said: '📄 文件：a/m/x.md\\n\\ntext\\n' {unread}",
        f"said: \"未找到标题包含 'y' 的文章\" {unread}",
        refused.format("b/shut"),
        "said: '作者 c 下没有任何文章。'",
        refused.format("d"),
    ]


def test_a_post_deleted_while_its_folder_is_read_hides_no_other(
    kb: KnowledgeBase, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        write(root, f"a/m/{name}.md", "needle")
    listing = os.scandir

    @contextmanager
    def scandir(folder: int | str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with listing(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
            if "a.md" in [entry.name for entry in inside]:
                (root / "a/m/a.md").unlink()
            yield iter(inside)

    monkeypatch.setattr(os, "scandir", scandir)
    reply = kb.posts.search("needle")
    assert [hit.path for hit in reply.hits] == ["a/m/b.md", "a/m/c.md"]
    assert reply.unread == ()


# --- the collection ------------------------------------------------------------------


def test_an_archive_becomes_a_collection_once(kb: KnowledgeBase, root: Path) -> None:
    added = kb.posts.adopt()
    assert added is not None
    assert (added.name, added.path, added.pattern) == ("archive", str(root.resolve()), "**/*.md")
    assert kb.posts.adopt() is None


def test_an_archive_inside_a_collection_is_part_of_it(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/m/x.md", "needle")
    kb.add_collection(root.parent, name="all", mask="archive/**/*.md")
    assert kb.posts.adopt() is None
    kb.index()
    file = root / "a/m/x.md"
    file.write_bytes(b"xxxxxx")
    os.utime(file, LONG_AGO)
    assert found(kb, "needle") == [("a/m/x.md", 1)]  # from the collection's document


def test_an_archive_that_the_collection_around_it_leaves_out_is_one_of_its_own(
    kb: KnowledgeBase, root: Path
) -> None:
    kb.add_collection(root.parent, name="archive", ignore=["archive/"])
    added = kb.posts.adopt()
    assert added is not None
    assert (added.name, added.path) == ("archive-2", str(root.resolve()))


def test_a_database_opened_read_only_serves_the_files(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/m/x.md", "needle")
    with KnowledgeBase.open(kb.path, Settings(posts_dir=root), read_only=True) as reading:
        with pytest.raises(ReadOnlyError):
            reading.posts.adopt()
        assert found(reading, "needle") == [("a/m/x.md", 1)]


def test_an_archive_behind_a_link_is_its_target(tmp_path: Path, root: Path) -> None:
    write(root, "a/m/x.md", "needle")
    link = tmp_path / "link"
    link.symlink_to(root)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(posts_dir=link), create=True) as kb:
        kb.add_collection(root)
        assert kb.posts.adopt() is None
        assert found(kb, "needle") == [("a/m/x.md", 1)]
        assert kb.posts.read("a/m/x.md").text == "needle"


def test_names_that_are_no_utf8_are_listed_and_searched(kb: KnowledgeBase, root: Path) -> None:
    write(root, "a/m/x.md")
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/a/m/\xff.md")).write_text(
            "needle", encoding="utf-8"
        )
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert [post.title for post in kb.posts.posts("a").groups[0].posts] == ["x", "\\xff"]
    author = Path(os.fsdecode(os.fsencode(root) + b"/\xfe"))
    write(author, "m/x.md", "needle")
    assert kb.posts.authors() == ["a", "\\xfe"]
    assert kb.posts.posts("\\xfe").groups[0].posts[0].path == "\\xfe/m/x.md"
    kb.posts.adopt()
    kb.index()
    assert found(kb, "needle") == [("a/m/\\xff.md", 1), ("\\xfe/m/x.md", 1)]
    assert found(kb, "needle", "\\xfe") == [("\\xfe/m/x.md", 1)]
    for path, _ in found(kb, "needle"):
        post = kb.posts.read(path)
        assert (post.post.path, post.text) == (path, "needle")


def test_a_path_may_be_typed_though_the_disk_has_it_decomposed(
    kb: KnowledgeBase, root: Path
) -> None:
    write(root, "e\u0301/cafe\u0301/ガ.md", "needle")
    assert kb.posts.read("\u00e9/caf\u00e9/ガ.md").text == "needle"
    for absent in ("\u00e9/caf\u00e9/no.md", "\u00e9/no/ガ.md", "no.md"):
        with pytest.raises(NotFoundError) as raised:
            kb.posts.read(absent)
        assert str(error_in_words(raised.value)) == f"文件不存在：{absent}"
