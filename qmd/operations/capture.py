"""Keeping what a person comes across."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from qmd.errors import (
    FileAccessError,
    InvalidPathError,
    NotFoundError,
    OutsideRootsError,
    WebPageError,
)
from qmd.operations.definition import Replied, operation
from qmd.values.captures import SavedPage
from qmd.values.facts import Describe, Shell
from qmd.values.printable import one_line

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

FAMILY = {"toolset": "capture", "group": "write"}

_SAVED = {"saved": "Saved", "updated": "Updated", "unchanged": "Nothing differs;"}


def saved(replied: Replied) -> str:
    """What was saved, in one or two sentences."""
    page: SavedPage = replied.value
    name = one_line(page.file)
    stays = " stays as it is" if page.saved_as == "unchanged" else ""
    pictures = "" if stays else f", with {_count(page.pictures, 'picture')}"
    pictures = pictures if page.pictures else ""
    change = "" if page.change is None else f" (change {page.change})"
    lines = [f"{_SAVED[page.saved_as]} {name}{stays}{pictures}{change}"]
    if page.left_out:
        lines.append(f"{_count(page.left_out, 'picture')} could not be kept and stay on the web.")
    if page.problem:
        lines.append(one_line(page.problem))
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@operation(
    text=saved,
    zh="把网页存为笔记（正文、图片、标题、作者、日期、网址）；再次保存即更新，历史保留旧内容。可撤销。",
    tool_says_summary=True,
    command="save",
    section="Write",
    done_by="capture:save",
    options=("again", "allow_private_addresses"),
    examples=(
        "qmd save https://example.org/article",
        "qmd save page.mhtml --folder notes/articles",
        "qmd save < links.txt",
    ),
    bodies=({"url": "https://example.org/article"},),
    lane="write",
    idempotent=False,
    errors=(WebPageError, OutsideRootsError, InvalidPathError, NotFoundError, FileAccessError),
)
def save_page(
    kb: KnowledgeBase,
    url: Annotated[
        str,
        Describe("The address of the page", zh="网页的网址"),
        Shell("[URL|FILE]...", join="\n", completes="files", default=()),
    ],
    folder: Annotated[
        str | None,
        Describe("collection/folder for a new note", zh="新笔记所在的 集合/文件夹"),
        Shell("FOLDER"),
    ] = None,
    pictures: Annotated[
        bool, Describe("Keep its pictures beside the note", zh="把图片存在笔记旁")
    ] = True,
) -> SavedPage:
    """
    Save a web page as a note; again: update it.

    The article becomes Markdown, with title, author, date and address as properties; its pictures
    are kept beside the note.

    Without an argument, the addresses are read from a pipe, one in each line. Of several, those
    that are saved already are left out, so that an interrupted list goes on where it stopped;
    --again updates them. The file of a page that a browser has saved (.html, .mhtml) is taken, too.
    """
    return kb.save_page(url, folder=folder, pictures=pictures)
