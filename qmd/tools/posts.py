"""
The toolset ``posts``: list_authors, list_posts, read_post, search.

Names, descriptions, schemas and texts are verbatim from its specification. The messages of errors
are Chinese. A reply that says that nothing was found is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ConfigDict, Field

from qmd.errors import InputError, QmdError
from qmd.kb import KnowledgeBase
from qmd.operations.problems import InvalidArgumentsError, shortened
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.tools import posts_texts as texts
from qmd.tools.arguments import Arguments, TextAsSent
from qmd.tools.definition import Tool
from qmd.values.printable import one_line

# --- arguments -----------------------------------------------------------------------


def _as_specified(schema: dict[str, Any]) -> None:
    """Always list the required arguments, and allow others, as the specification does."""
    schema.setdefault("required", [])
    del schema["additionalProperties"]


class PostArguments(Arguments):
    """Base of the arguments of these tools."""

    model_config = ConfigDict(json_schema_extra=_as_specified)


class ListAuthorsArguments(PostArguments):
    pass


class FindAuthorsArguments(PostArguments):
    name: TextAsSent | None = Field(None, description="只列出名称包含此文本的作者（可选）")


class ListPostsArguments(PostArguments):
    author: TextAsSent = Field(description="作者的 URL slug（即目录名）")


class ReadPostArguments(PostArguments):
    path: TextAsSent | None = Field(None, description="文章的相对路径（相对于数据目录）")
    author: TextAsSent | None = Field(None, description="作者名（与 title 配合使用）")
    title: TextAsSent | None = Field(None, description="文章标题关键词（模糊匹配）")


class SearchPostsArguments(PostArguments):
    query: TextAsSent = Field(description="搜索关键词")
    author: TextAsSent | None = Field(None, description="限定搜索范围的作者名（可选）")


_MISSING = {"author": texts.NO_AUTHOR, "query": texts.NO_QUERY}


def invalid_arguments(tool: str, error: InvalidArgumentsError) -> InputError:
    """
    The error for the problems of a call, in Chinese.

    It names missing arguments only if there are no other problems.
    """
    sentences = [f"参数 {excess.name} 过长：最多 {excess.most:,}" for excess in error.excesses]
    unknown = [problem.name for problem in error.problems if problem.kind == "unknown"]
    if unknown:
        sentences += [f"未知参数：{shortened(name)}" for name in unknown]
        sentences.append(f"可用参数：{'、'.join(error.names) or '无'}")
    not_texts = {problem.name for problem in error.problems if problem.kind == "type"}
    sentences += [f"参数 {name} 必须是字符串" for name in error.arguments if name in not_texts]
    if not sentences:
        sentences = [_MISSING[problem.name] for problem in error.problems]
    return InputError("；".join(sentences))


# --- the tools' work -----------------------------------------------------------------


def list_authors(kb: KnowledgeBase, arguments: ListAuthorsArguments, dialect: Dialect) -> Reply:
    return _reply(texts.authors(kb.posts.authors()))


def find_authors(kb: KnowledgeBase, arguments: FindAuthorsArguments, dialect: Dialect) -> Reply:
    part = arguments.name or ""
    names = kb.posts.authors()
    matching = [name for name in names if part.casefold() in name.casefold()]
    return _reply(texts.authors(matching) if matching or not names else texts.no_author(part))


def list_posts(kb: KnowledgeBase, arguments: ListPostsArguments, dialect: Dialect) -> Reply:
    listing = kb.posts.posts(arguments.author)
    return _reply(texts.posts(listing), texts.unread(listing))


def read_post(kb: KnowledgeBase, arguments: ReadPostArguments, dialect: Dialect) -> Reply:
    if arguments.path:
        return _reply(texts.post(kb.posts.read(arguments.path)))
    if not arguments.author or not arguments.title:
        raise InputError(texts.NO_POST)
    matches = kb.posts.matching(arguments.author, arguments.title)
    if len(matches.posts) == 1:
        text = texts.post(kb.posts.read(matches.posts[0].path))
    else:
        text = texts.matches(arguments.title, matches.posts)
    return _reply(text, texts.unread(matches))


def search(kb: KnowledgeBase, arguments: SearchPostsArguments, dialect: Dialect) -> Reply:
    hits = kb.posts.search(arguments.query, author=arguments.author or None)
    return _reply(texts.hits(hits), texts.unread(hits))


def _reply(*parts: str | None) -> Reply:
    return Reply(tuple(TextBlock(part) for part in parts if part is not None))


def failed(error: QmdError) -> Reply:
    """The reply for an error: its message without the hint, verbatim from the specification."""
    return Reply((TextBlock(one_line(str(texts.error_in_words(error)))),), is_error=True)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def _tool(
    name: str,
    description: str,
    arguments: type[ArgumentsT],
    run: Callable[[KnowledgeBase, ArgumentsT, Dialect], Reply],
) -> Tool[ArgumentsT]:
    return Tool(name, None, description, arguments, run, refusal=invalid_arguments, failed=failed)


TOOLS: tuple[Tool[Any], ...] = (
    _tool("list_authors", "列出数据目录下所有已下载的作者", ListAuthorsArguments, list_authors),
    _tool(
        "list_posts",
        "列出指定作者下的所有文章，按动态和作品集分组",
        ListPostsArguments,
        list_posts,
    ),
    _tool("read_post", "读取指定文章的完整 Markdown 内容", ReadPostArguments, read_post),
    _tool("search", "在已下载文档中全文搜索关键词", SearchPostsArguments, search),
)

_LIST_AUTHORS, _, _, _SEARCH = TOOLS

#: Tool → the one that a server with several toolsets has in its place. Names must differ there, and
#: the strict mode of OpenAI's SDK refuses a tool without arguments.
TOGETHER: Mapping[str, Tool[Any]] = {
    _LIST_AUTHORS.name: replace(_LIST_AUTHORS, arguments=FindAuthorsArguments, run=find_authors),
    _SEARCH.name: replace(_SEARCH, name="search_posts"),
}
