"""
The operations list_authors, list_posts, read_post and search on an archive of posts.

Names, descriptions, schemas and texts are verbatim from their specification; ``qmd posts`` prints
the texts too. The messages of errors are Chinese. A reply that says that nothing was found is no
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from qmd import errors
from qmd.operations.definition import ByHand, KnowledgeBase, Replied, operation
from qmd.operations.problems import InvalidArgumentsError, shortened
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.values import AuthorPosts, Post, PostHit, PostHits, PostText
from qmd.values.facts import AsSent, Describe, Range, Shell, ShellOnly
from qmd.values.text import one_line

FAMILY = {"title": None, "done_by": "notes:run_posts", "options": ("posts_dir",)}

# --- texts ---------------------------------------------------------------------------

NO_AUTHORS = "当前没有已下载的作者。"
NO_AUTHOR = "请提供 author 参数"
NO_POST = "请提供 path 或 author+title 参数"
NO_QUERY = "请提供搜索关键词"
_MOTIONS = "motions"


def authors(names: Sequence[str]) -> str:
    if not names:
        return NO_AUTHORS
    return f"已下载的作者（共 {len(names)} 位）：\n" + "".join(f"- {name}\n" for name in names)


def no_author(name: str) -> str:
    return f"未找到名称包含 '{name}' 的作者。"


def posts(listing: AuthorPosts) -> str:
    if not listing.groups:
        return f"作者 {listing.author} 下没有任何文章。"
    parts = [f"作者：{listing.author}\n"]
    for group in listing.groups:
        name = "动态" if group.name == _MOTIONS else f"作品集：{group.name}"
        parts.append(f"\n## {name}（共 {len(group.posts)} 篇）\n{_listed(group.posts)}")
    return "".join(parts)


def post(result: PostText) -> str:
    return f"📄 文件：{result.post.path}\n\n{result.text}"


def matches(title: str, posts: Sequence[Post]) -> str:
    """The text for a title that no post or several posts have."""
    if not posts:
        return f"未找到标题包含 '{title}' 的文章"
    head = f"标题包含 '{title}' 的文章有 {len(posts)} 篇，请指定具体路径："
    return f"{head}\n\n{_listed(posts)}"


def hits(result: PostHits) -> str:
    if not result.total:
        return f"未找到包含 '{result.query}' 的内容。"
    shown = len(result.hits)
    parts = [f'搜索 "{result.query}" 的结果（显示 {shown}/{result.total} 条）：\n']
    parts += map(_block, result.hits)
    if shown < result.total:
        parts.append(f"\n还有 {result.total - shown} 条结果未显示。\n")
    return "".join(parts)


def unread(result: PostHits | AuthorPosts) -> str | None:
    """A sentence about the files and folders that could not be read; None if there are none."""
    if not result.unread:
        return None
    undone = "未搜索" if isinstance(result, PostHits) else "未列出"
    return f"有 {len(result.unread)} 处无法读取，{undone}：{'、'.join(result.unread)}"


def error_in_words(error: errors.QmdError) -> errors.QmdError:
    """An error of `kb.posts` with its message and hint in Chinese; other errors unchanged."""
    match error:
        case errors.ArchiveNotFoundError():
            return errors.NotFoundError(
                f"数据目录不存在：{error.directory}",
                hint="请用 --posts-dir 或环境变量 QMD_POSTS_DIR 指定数据目录。",
            )
        case errors.AuthorNotFoundError():
            return errors.NotFoundError(
                f"作者不存在：{error.author}",
                hint="工具 list_authors 会列出所有作者；在命令行用 qmd posts authors。",
            )
        case errors.PostNotFoundError():
            return errors.NotFoundError(
                f"文件不存在：{error.path}",
                hint="路径以作者名开头；工具 list_posts 会列出每篇文章的路径，"
                "在命令行用 qmd posts list。",
            )
        case errors.BlankQueryError():
            return errors.InputError(NO_QUERY)
        case errors.UnreadablePostsError(kind="archive"):
            return errors.InputError(
                f"数据目录无法读取：{error.path}（{error.reason}）", hint="请检查该目录的权限。"
            )
        case errors.UnreadablePostsError(kind="folder"):
            return errors.InputError(
                f"无法读取目录：{error.path}（{error.reason}）", hint="请检查该目录的权限。"
            )
        case errors.UnreadablePostsError():
            return errors.InputError(
                f"无法读取文件：{error.path}（{error.reason}）", hint=error.hint
            )
    return error


def _listed(posts: Iterable[Post]) -> str:
    return "".join(
        f"- [{post.date}] {post.title} → {post.path}\n"
        if post.date is not None
        else f"- {post.title} → {post.path}\n"
        for post in posts
    )


def _block(hit: PostHit) -> str:
    """A hit with the lines around it; the line numbers are padded to one width."""
    width = len(str(hit.first + len(hit.lines) - 1))
    lines = []
    for number, line in enumerate(hit.lines, hit.first):
        if number == hit.line:
            lines.append(f"> {number:>{width}} | {_bold(line, hit.spans)}\n")
        else:
            lines.append(f"  {number:>{width}} | {line}\n")
    return f"\n---\n📄 {hit.path}（第 {hit.line} 行）\n\n{''.join(lines)}"


def _bold(line: str, spans: Sequence[tuple[int, int]]) -> str:
    parts = []
    previous_end = 0
    for start, end in spans:
        parts += [line[previous_end:start], "**", line[start:end], "**"]
        previous_end = end
    return "".join([*parts, line[previous_end:]])


# --- errors --------------------------------------------------------------------------

_MISSING = {"author": NO_AUTHOR, "query": NO_QUERY}


def invalid_arguments(tool: str, error: InvalidArgumentsError) -> errors.InputError:
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
    return errors.InputError("；".join(sentences))


def failed(error: errors.QmdError) -> Reply:
    """The reply for an error: its message without the hint, verbatim from the specification."""
    return Reply((TextBlock(one_line(str(error_in_words(error)))),), is_error=True)


# --- operations ----------------------------------------------------------------------

_Author = Shell(completes="authors")


def _as_specified(schema: dict[str, Any]) -> None:
    """Always list the required arguments, and allow others, as the specification does."""
    schema.setdefault("required", [])
    del schema["additionalProperties"]


def _by_hand(words: Callable[[Replied], Iterable[str | None]]) -> ByHand:
    def reply(replied: Replied, dialect: Dialect) -> Reply:
        return Reply(tuple(TextBlock(part) for part in words(replied) if part is not None))

    return ByHand(
        reply,
        failed=failed,
        refusal=invalid_arguments,
        arguments={"json_schema_extra": _as_specified},
        language="zh",
    )


@operation(
    tool=_by_hand(lambda replied: [authors(replied.value)]),
    command="posts authors",
    zh="列出数据目录下所有已下载的作者",
    for_one_toolset=True,
)
def list_authors(kb: KnowledgeBase) -> list[str]:
    """List the authors: the folders of the archive."""
    return kb.posts.authors()


def _authors(replied: Replied) -> list[str]:
    names, part = replied.value, replied.arguments.get("name", "")
    matching = [name for name in names if part.casefold() in name.casefold()]
    return [authors(matching) if matching or not names else no_author(part)]


@operation(
    command=None,
    tool=_by_hand(_authors),
    tool_name="list_authors",
    zh="列出数据目录下所有已下载的作者",
    for_one_toolset=False,  # the strict mode of OpenAI's SDK refuses a tool without arguments
)
def find_authors(
    kb: KnowledgeBase,
    name: Annotated[
        str | None,
        AsSent(),
        Describe("Only authors whose name contains this", zh="只列出名称包含此文本的作者（可选）"),
    ] = None,
) -> list[str]:
    """The authors whose posts are saved."""
    return kb.posts.authors()  # the text says which of them are meant, or that none is


@operation(
    tool=_by_hand(lambda replied: [posts(replied.value), unread(replied.value)]),
    command="posts list",
    examples=("qmd posts list q9adg", "qmd posts list q9adg --json"),
    zh="列出指定作者下的所有文章，按动态和作品集分组",
)
def list_posts(
    kb: KnowledgeBase,
    author: Annotated[
        str,
        AsSent(),
        Describe("The author's folder, as list_authors has it", zh="作者的 URL slug（即目录名）"),
        _Author,
    ],
) -> AuthorPosts:
    """
    All posts of an author: motions, then each album.
    """
    return kb.posts.posts(author)


class PostAnswer(NamedTuple):
    """A post, or none if several titles fit; ``matching``: where it was looked for by its title."""

    post: PostText | None
    matching: AuthorPosts | None = None


def _post(replied: Replied) -> list[str | None]:
    answer: PostAnswer = replied.value
    text = None if answer.post is None else post(answer.post)
    if answer.matching is None:
        return [text]
    several = matches(replied.arguments.get("title", ""), answer.matching.posts)
    return [text or several, unread(answer.matching)]


@operation(
    tool=_by_hand(_post),
    command="posts read",
    examples=(
        "qmd posts read q9adg/motions/2020-12-16_18_04_49_论温柔.md",
        "qmd posts read --author q9adg --title 温柔",
    ),
    zh="读取指定文章的完整 Markdown 内容",
)
def read_post(
    kb: KnowledgeBase,
    path: Annotated[
        str | None,
        AsSent(),
        Describe("Path from the root of the archive", zh="文章的相对路径（相对于数据目录）"),
        Shell(positional=True),
    ] = None,
    author: Annotated[
        str | None,
        AsSent(),
        Describe("The author, beside title", zh="作者名（与 title 配合使用）"),
        _Author,
    ] = None,
    title: Annotated[
        str | None,
        AsSent(),
        Describe("A part of the title", zh="文章标题关键词（模糊匹配）"),
    ] = None,
) -> PostAnswer:
    """
    Read a whole post, by its path or by its author and title.

    The path is as 'qmd posts list' shows it. Where several titles fit, they are listed.
    """
    if path:
        return PostAnswer(kb.posts.read(path))
    if not author or not title:
        raise errors.InputError(
            NO_POST,
            hint="Give path, or author and title; in the shell PATH, or --author and --title.",
        )
    matching = kb.posts.matching(author, title)
    is_one = len(matching.posts) == 1
    return PostAnswer(kb.posts.read(matching.posts[0].path) if is_one else None, matching)


@operation(
    command="posts search",
    examples=(
        "qmd posts search 温柔",
        "qmd posts search 'C++' --author q9adg -n 100",
        "qmd posts search 温柔 --posts-dir ~/afdian --json",
    ),
    tool=_by_hand(lambda replied: [hits(replied.value), unread(replied.value)]),
    zh="在已下载文档中全文搜索关键词",
    for_one_toolset=True,
)
def search(
    kb: KnowledgeBase,
    query: Annotated[str, AsSent(), Describe("The text to find", zh="搜索关键词"), Shell(join=" ")],
    author: Annotated[
        str | None,
        AsSent(),
        Describe("Only posts of this author", zh="限定搜索范围的作者名（可选）"),
        _Author,
    ] = None,
    limit: Annotated[int, ShellOnly(), Range(1), Describe("Show at most N hits")] = 20,
) -> PostHits:
    """
    Find the lines of saved posts that contain a text.

    A hit is a line; hits are ordered by author, path and line. To search the archive by words and
    by meaning, use 'qmd search' and 'qmd query'.
    """
    return kb.posts.search(query, author=author or None, limit=limit)


search_posts = search.but(command=None, tool_name="search_posts", for_one_toolset=False)
