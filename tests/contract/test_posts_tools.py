"""The toolset ``posts`` as a client sees it: schemas and texts of its specification, verbatim."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import TextContent, Tool
from support.mcp_client import with_client

from qmd import KnowledgeBase, Settings, __version__
from qmd.server.mcp import McpFace
from qmd.tools.toolsets import select

POEM = "\n".join(
    [
        "## 论温柔",
        "",
        "### 正文",
        "",
        "温柔是一种能力。",
        "ABC abc AbC 大小写测试",
        "正则特殊字符 a.*b **C++** 100%",
        "末尾行",
        "",
    ]
)
FILES = {
    "q9adg/motions/2020-12-15_20_10_39_一个小打算.md": "## 一个小打算\n\n打算。\n",
    "q9adg/motions/2020-12-16_18_04_49_论温柔.md": POEM,
    "q9adg/motions/没有时间戳.md": "没有\n",
    "q9adg/个人成长/2024-03-07_论温柔（续）.md": "续\n" * 25,
    "q9adg/根目录文章.md": "根目录\n",
    "q9adg/.assets/x.md": "温柔",
    "README.md": "温柔",
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("posts") / "data"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "空" / "motions").mkdir(parents=True)
    return root


def face_of(directory: Path, database: Path) -> Iterator[McpFace]:
    with KnowledgeBase.open(database, Settings(posts_dir=directory), create=True) as kb:
        yield McpFace(kb, select(["posts"]))


@pytest.fixture(scope="module")
def face(archive: Path) -> Iterator[McpFace]:
    yield from face_of(archive, archive.parent / "kb.sqlite")


def call(face: McpFace, tool: str, **arguments: Any) -> tuple[str, bool]:
    """The text of a reply, and whether it is an error."""

    async def use(client: Client) -> tuple[str, bool]:
        result = await client.call_tool(tool, arguments)
        (block,) = result.content
        assert isinstance(block, TextContent)
        assert result.structured_content is None
        return block.text, bool(result.is_error)

    return with_client(face.server, use)


# --- what is offered -----------------------------------------------------------------


def test_name_version_and_capabilities_are_the_specification_s(face: McpFace) -> None:
    async def use(client: Client) -> tuple[Any, Any]:
        return client.server_info, client.server_capabilities

    info, capabilities = with_client(face.server, use)
    assert (info.name, info.version) == ("AfdianToMarkdown", __version__)
    assert capabilities.tools is not None and not capabilities.tools.list_changed
    assert (capabilities.resources, capabilities.prompts) == (None, None)


def test_the_tools_are_the_specification_s(face: McpFace) -> None:
    async def use(client: Client) -> list[Tool]:
        return (await client.list_tools()).tools

    def string(description: str) -> dict[str, str]:
        return {"type": "string", "description": description}

    tools = with_client(face.server, use)
    assert [(tool.name, tool.title, tool.description, tool.input_schema) for tool in tools] == [
        (
            "list_authors",
            None,
            "列出数据目录下所有已下载的作者",
            {"type": "object", "properties": {}, "required": []},
        ),
        (
            "list_posts",
            None,
            "列出指定作者下的所有文章，按动态和作品集分组",
            {
                "type": "object",
                "properties": {"author": string("作者的 URL slug（即目录名）")},
                "required": ["author"],
            },
        ),
        (
            "read_post",
            None,
            "读取指定文章的完整 Markdown 内容",
            {
                "type": "object",
                "properties": {
                    "path": string("文章的相对路径（相对于数据目录）"),
                    "author": string("作者名（与 title 配合使用）"),
                    "title": string("文章标题关键词（模糊匹配）"),
                },
                "required": [],
            },
        ),
        (
            "search",
            None,
            "在已下载文档中全文搜索关键词",
            {
                "type": "object",
                "properties": {
                    "query": string("搜索关键词"),
                    "author": string("限定搜索范围的作者名（可选）"),
                },
                "required": ["query"],
            },
        ),
    ]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True


def test_beside_other_toolsets_the_search_has_a_name_of_its_own(archive: Path) -> None:
    names = [tool.name for tool in select(["qmd", "posts"]).tools]
    assert {"search", "search_posts", "list_authors", "list_posts", "read_post"} <= set(names)
    assert len(names) == len(set(names))


def test_beside_others_list_authors_finds_authors_by_a_part_of_their_names(
    archive: Path, tmp_path: Path
) -> None:
    settings = Settings(posts_dir=archive)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as kb:
        face = McpFace(kb, select(["qmd", "posts"]))
        one = call(face, "list_authors", name="Q9")
        none = call(face, "list_authors", name="乙")
        assert call(face, "list_authors", name="") == call(face, "list_authors")
    assert one == ("已下载的作者（共 1 位）：\n- q9adg\n", False)
    assert none == ("未找到名称包含 '乙' 的作者。", False)


# --- what is answered ----------------------------------------------------------------


def test_authors_are_listed_by_name(face: McpFace) -> None:
    assert call(face, "list_authors") == ("已下载的作者（共 2 位）：\n- q9adg\n- 空\n", False)


def test_posts_are_listed_in_their_groups(face: McpFace) -> None:
    expected = """作者：q9adg

## 动态（共 3 篇）
- [2020-12-15] 一个小打算 → q9adg/motions/2020-12-15_20_10_39_一个小打算.md
- [2020-12-16] 论温柔 → q9adg/motions/2020-12-16_18_04_49_论温柔.md
- 没有时间戳 → q9adg/motions/没有时间戳.md

## 作品集：个人成长（共 1 篇）
- [2024-03-07] 论温柔（续） → q9adg/个人成长/2024-03-07_论温柔（续）.md
"""
    assert call(face, "list_posts", author="q9adg") == (expected, False)


def test_a_post_is_read_by_its_path_or_by_a_title_that_no_other_has(face: McpFace) -> None:
    path = "q9adg/motions/2020-12-16_18_04_49_论温柔.md"
    expected = (f"📄 文件：{path}\n\n{POEM}", False)
    assert call(face, "read_post", path=path) == expected
    assert call(face, "read_post", path=path, author="nobody", title="x") == expected
    several = """标题包含 '温柔' 的文章有 2 篇，请指定具体路径：

- [2020-12-16] 论温柔 → q9adg/motions/2020-12-16_18_04_49_论温柔.md
- [2024-03-07] 论温柔（续） → q9adg/个人成长/2024-03-07_论温柔（续）.md
"""
    assert call(face, "read_post", author="q9adg", title="温柔") == (several, False)
    text, _ = call(face, "read_post", author="q9adg", title="时间戳", path="")
    assert text == "📄 文件：q9adg/motions/没有时间戳.md\n\n没有\n"


def test_a_search_shows_the_lines_around_a_hit_and_marks_what_was_found(face: McpFace) -> None:
    path = "q9adg/motions/2020-12-16_18_04_49_论温柔.md"
    expected = f"""搜索 "aBc" 的结果（显示 1/1 条）：

---
📄 {path}（第 6 行）

  3 | ### 正文
  4 | 
  5 | 温柔是一种能力。
> 6 | **ABC** **abc** **AbC** 大小写测试
  7 | 正则特殊字符 a.*b **C++** 100%
  8 | 末尾行
"""  # noqa: W291 - a blank line of the post
    assert call(face, "search", query="aBc") == (expected, False)
    assert call(face, "search", query="aBc", author="q9adg") == (expected, False)
    assert call(face, "search", query="aBc", author="") == (expected, False)
    text, _ = call(face, "search", query="c++")
    assert "> 7 | 正则特殊字符 a.*b ****C++**** 100%\n" in text


def test_search_counts_all_hits_and_shows_twenty(face: McpFace) -> None:
    text, is_error = call(face, "search", query="续")
    assert not is_error
    assert text.startswith(
        '搜索 "续" 的结果（显示 20/25 条）：\n\n---\n📄 q9adg/个人成长/2024-03-07_'
    )
    assert text.endswith("\n  23 | 续\n\n还有 5 条结果未显示。\n")
    assert text.count("\n---\n") == 20
    block = "".join(
        f"{'> ' if n == 9 else '  '}{n:>2} | {'**续**' if n == 9 else '续'}\n" for n in range(6, 13)
    )
    assert f"（第 9 行）\n\n{block}\n---\n" in text


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("list_posts", {"author": "空"}, "作者 空 下没有任何文章。"),
        ("read_post", {"author": "q9adg", "title": "无"}, "未找到标题包含 '无' 的文章"),
        ("search", {"query": "不存在"}, "未找到包含 '不存在' 的内容。"),
        ("search", {"query": "温柔", "author": "空"}, "未找到包含 '温柔' 的内容。"),
    ],
)
def test_nothing_there_is_no_error(
    face: McpFace, tool: str, arguments: dict[str, Any], text: str
) -> None:
    assert call(face, tool, **arguments) == (text, False)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("list_posts", {}, "请提供 author 参数"),
        ("list_posts", {"author": None}, "请提供 author 参数"),
        ("list_posts", {"author": ""}, "作者不存在："),
        ("list_posts", {"author": ".."}, "作者不存在：.."),
        ("list_posts", {"author": "README.md"}, "作者不存在：README.md"),
        ("list_posts", {"author": 5}, "参数 author 必须是字符串"),
        ("list_authors", {"x": 1}, "未知参数：x；可用参数：无"),
        ("read_post", {}, "请提供 path 或 author+title 参数"),
        ("read_post", {"title": "x"}, "请提供 path 或 author+title 参数"),
        ("read_post", {"author": "q9adg", "title": ""}, "请提供 path 或 author+title 参数"),
        ("read_post", {"author": "nobody", "title": "x"}, "作者不存在：nobody"),
        ("read_post", {"path": "../kb.sqlite"}, "文件不存在：../kb.sqlite"),
        ("read_post", {"path": "q9adg/none.md"}, "文件不存在：q9adg/none.md"),
        (
            "read_post",
            {"file": "x", "n": 1},
            "未知参数：file；未知参数：n；可用参数：path、author、title",
        ),
        ("search", {}, "请提供搜索关键词"),
        ("search", {"query": " \n"}, "请提供搜索关键词"),
        ("search", {"query": "x", "author": "../data"}, "作者不存在：../data"),
    ],
)
def test_errors_are_results_in_chinese(
    face: McpFace, tool: str, arguments: dict[str, Any], text: str
) -> None:
    assert call(face, tool, **arguments) == (text, True)


def test_a_name_with_a_line_end_is_one_line_and_can_be_read_as_shown(tmp_path: Path) -> None:
    data = tmp_path / "data"
    author, album = "q\nr", "album\n- [2020-01-01] fake"
    name = "2020-01-02_one\n- [2020-01-01] two\r\u2028three.md"
    path = data / author / album / name
    path.parent.mkdir(parents=True)
    path.write_text("text needle", encoding="utf-8")
    title = r"one\n- [2020-01-01] two\r\u2028three"
    shown = rf"q\nr/album\n- [2020-01-01] fake/2020-01-02_{title}.md"
    for face in face_of(data, tmp_path / "kb.sqlite"):
        assert call(face, "list_authors") == ("已下载的作者（共 1 位）：\n- q\\nr\n", False)
        for given in (author, r"q\nr"):
            listed, _ = call(face, "list_posts", author=given)
            assert listed == (
                "作者：q\\nr\n\n## 作品集：album\\n- [2020-01-01] fake（共 1 篇）\n"
                f"- [2020-01-02] {title} → {shown}\n"
            )
        for given in (shown, f"{author}/{album}/{name}"):
            read = call(face, "read_post", path=given)
            assert read == (f"📄 文件：{shown}\n\ntext needle", False)
        found, _ = call(face, "search", query="needle")
        assert f"\n---\n📄 {shown}（第 1 行）\n" in found


def test_every_tool_names_a_missing_directory_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls: list[tuple[str, dict[str, str]]] = [
        ("list_authors", {}),
        ("list_posts", {"author": "a"}),
        ("read_post", {"path": "a/x.md"}),
        ("read_post", {"author": "a", "title": "x"}),
        ("search", {"query": "x"}),
    ]
    for face in face_of(Path("no/data"), tmp_path / "kb.sqlite"):
        for tool, arguments in calls:
            assert call(face, tool, **arguments) == ("数据目录不存在：no/data", True)
        (tmp_path / "no" / "data").mkdir(parents=True)
        assert call(face, "list_authors") == ("当前没有已下载的作者。", False)
