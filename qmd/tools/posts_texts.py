"""The texts of the posts tools, verbatim from their specification, for ``qmd posts`` too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qmd.errors import (
    ArchiveNotFoundError,
    AuthorNotFoundError,
    BlankQueryError,
    InputError,
    NotFoundError,
    PostNotFoundError,
    QmdError,
    UnreadablePostsError,
)
from qmd.values import AuthorPosts, Post, PostHit, PostHits, PostText

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


def error_in_words(error: QmdError) -> QmdError:
    """An error of `kb.posts` with its message and hint in Chinese; other errors unchanged."""
    match error:
        case ArchiveNotFoundError():
            return NotFoundError(
                f"数据目录不存在：{error.directory}",
                hint="请用 --posts-dir 或环境变量 QMD_POSTS_DIR 指定数据目录。",
            )
        case AuthorNotFoundError():
            return NotFoundError(
                f"作者不存在：{error.author}", hint="qmd posts authors 会列出所有作者。"
            )
        case PostNotFoundError():
            return NotFoundError(
                f"文件不存在：{error.path}",
                hint="路径以作者名开头；qmd posts list 会列出每篇文章的路径。",
            )
        case BlankQueryError():
            return InputError(NO_QUERY)
        case UnreadablePostsError(kind="archive"):
            return InputError(
                f"数据目录无法读取：{error.path}（{error.reason}）", hint="请检查该目录的权限。"
            )
        case UnreadablePostsError(kind="folder"):
            return InputError(
                f"无法读取目录：{error.path}（{error.reason}）", hint="请检查该目录的权限。"
            )
        case UnreadablePostsError():
            return InputError(f"无法读取文件：{error.path}（{error.reason}）", hint=error.hint)
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
