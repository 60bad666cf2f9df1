"""
The toolset ``posts``: list_authors, list_posts, read_post, search.

Names, descriptions, schemas and texts are those of its specification, to the letter. Errors
are texts in Chinese; "nothing there" is an answer and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from qmd.errors import InputError, QmdError
from qmd.kb import KnowledgeBase
from qmd.tools import posts_texts as texts
from qmd.tools.arguments import Arguments
from qmd.tools.bounds import excesses
from qmd.tools.definition import Reply, TextBlock, Tool
from qmd.tools.spelling import shortened
from qmd.tools.texts import Dialect

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


class ListAuthorsArguments(Arguments):
    pass


class ListPostsArguments(Arguments):
    author: str | None = None


class ReadPostArguments(Arguments):
    path: str | None = None
    author: str | None = None
    title: str | None = None


class SearchPostsArguments(Arguments):
    query: str | None = None
    author: str | None = None


# --- the tools' work -----------------------------------------------------------------


def list_authors(kb: KnowledgeBase, arguments: ListAuthorsArguments, dialect: Dialect) -> Reply:
    return _said(texts.authors(kb.posts.authors()))


def list_posts(kb: KnowledgeBase, arguments: ListPostsArguments, dialect: Dialect) -> Reply:
    if arguments.author is None:
        raise InputError("请提供 author 参数")
    found = kb.posts.posts(arguments.author)
    return _said(texts.posts(found), texts.unread(found))


def read_post(kb: KnowledgeBase, arguments: ReadPostArguments, dialect: Dialect) -> Reply:
    if arguments.path:
        return _said(texts.post(kb.posts.read(arguments.path)))
    if not arguments.author or not arguments.title:
        raise InputError("请提供 path 或 author+title 参数")
    found = kb.posts.matching(arguments.author, arguments.title)
    if len(found.posts) == 1:
        said = texts.post(kb.posts.read(found.posts[0].path))
    else:
        said = texts.matches(arguments.title, found.posts)
    return _said(said, texts.unread(found))


def search(kb: KnowledgeBase, arguments: SearchPostsArguments, dialect: Dialect) -> Reply:
    found = kb.posts.search(arguments.query or "", author=arguments.author or None)
    return _said(texts.hits(found), texts.unread(found))


def _said(*parts: str | None) -> Reply:
    return Reply(tuple(TextBlock(part) for part in parts if part is not None))


# --- arguments and errors ------------------------------------------------------------


def _check(model: type[ArgumentsT]) -> Callable[[Mapping[str, Any]], ArgumentsT]:
    def check(raw: Mapping[str, Any]) -> ArgumentsT:
        """Raises InputError: All that is wrong, in Chinese."""
        too_long = excesses(raw)
        if too_long:
            raise InputError(
                "；".join(f"参数 {each.name} 过长：最多 {each.most:,}" for each in too_long)
            )
        known = model.model_fields
        given = {name: value for name, value in raw.items() if value is not None}
        problems = [f"未知参数：{shortened(name)}" for name in raw if name not in known]
        if problems:
            problems.append(f"可用参数：{'、'.join(known) or '无'}")
        problems += [
            f"参数 {name} 必须是字符串"
            for name, value in given.items()
            if name in known and not isinstance(value, str)
        ]
        if problems:
            raise InputError("；".join(problems))
        return model.model_construct(**given)  # whose values have just been checked

    return check


def failed(error: QmdError) -> Reply:
    """The message alone: it is the specification's to the letter."""
    return Reply((TextBlock(str(error)),), is_error=True)


def _schema(required: tuple[str, ...] = (), **properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": description}
            for name, description in properties.items()
        },
        "required": list(required),
    }


def _tool(
    name: str,
    description: str,
    arguments: type[ArgumentsT],
    run: Callable[[KnowledgeBase, ArgumentsT, Dialect], Reply],
    schema: dict[str, Any],
) -> Tool[ArgumentsT]:
    return Tool(
        name,
        None,
        description,
        arguments,
        run,
        schema=schema,
        check=_check(arguments),
        failed=failed,
    )


TOOLS: tuple[Tool[Any], ...] = (
    _tool(
        "list_authors",
        "列出数据目录下所有已下载的作者",
        ListAuthorsArguments,
        list_authors,
        _schema(),
    ),
    _tool(
        "list_posts",
        "列出指定作者下的所有文章，按动态和作品集分组",
        ListPostsArguments,
        list_posts,
        _schema(("author",), author="作者的 URL slug（即目录名）"),
    ),
    _tool(
        "read_post",
        "读取指定文章的完整 Markdown 内容",
        ReadPostArguments,
        read_post,
        _schema(
            path="文章的相对路径（相对于数据目录）",
            author="作者名（与 title 配合使用）",
            title="文章标题关键词（模糊匹配）",
        ),
    ),
    _tool(
        "search",
        "在已下载文档中全文搜索关键词",
        SearchPostsArguments,
        search,
        _schema(("query",), query="搜索关键词", author="限定搜索范围的作者名（可选）"),
    ),
)
