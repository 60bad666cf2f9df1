"""Keeping what a person comes across."""

from __future__ import annotations

from typing import Annotated

from qmd import errors
from qmd.operations.definition import KnowledgeBase, Replied, operation
from qmd.values.facts import DAY, TIME_OF_DAY, Describe, InSchema, Shell
from qmd.values.text import counted, one_line
from qmd.values.writing import Captured, SavedPage

FAMILY = {"toolset": "capture", "group": "write"}

_ERRORS = (
    errors.OutsideRootsError,
    errors.InvalidPathError,
    errors.NotFoundError,
    errors.CollectionNotFoundError,
    errors.FileAccessError,
)


def captured(replied: Replied) -> str:
    """Where a thought stands now."""
    kept: Captured = replied.value
    lines = [f"Added to {one_line(kept.file)}:{kept.line} (change {kept.change})"]
    lines += [f"Kept {one_line(each)}" for each in kept.attachments]
    if kept.problem:
        lines.append(one_line(kept.problem))
    return "\n".join(lines)


@operation(
    text=captured,
    zh="把一个想法记到收件箱（设置 inbox 所指的笔记）末尾。可撤销。",
    tool_says_summary=True,
    command="add",
    section="Write",
    done_by="capture:add",
    options=("files",),
    examples=(
        "qmd add 'a thought #idea'",
        "qmd add '[ ] call the bank' --file letter.pdf",
        "pbpaste | qmd add",
    ),
    bodies=({"text": "a thought #idea"},),
    lane="write",
    idempotent=False,
    errors=(*_ERRORS, errors.EditError),
)
def capture(
    kb: KnowledgeBase,
    text: Annotated[
        str,
        Describe(
            "The thought, in Markdown; '[ ] …' is a task", zh="想法（Markdown）；'[ ] …' 为任务"
        ),
        InSchema(pattern=r"^[^\x00]*[^\s\x00][^\x00]*$"),
        Shell("[TEXT]...", join=" ", default=()),
    ],
    at: Annotated[
        str | None,
        Describe("When it was thought, in ISO 8601; default: now", zh="时间（ISO 8601），默认现在"),
        InSchema(pattern=f"^(|{DAY}({TIME_OF_DAY})?)$"),
        Shell("TIME"),
    ] = None,
) -> Captured:
    """
    Keep a thought in the inbox.

    It goes to the end of the note that the setting inbox names, which is made if it is not there.

    The setting is the path of a note, such as 'notes/Inbox.md', 'notes/days/{{date}}.md' or
    'notes/inbox/{{title}}.md'. Without text it is read from a pipe.
    """
    return kb.capture(text, at=at)


_SAVED = {"saved": "Saved", "updated": "Updated", "unchanged": "Nothing differs;"}


def saved(replied: Replied) -> str:
    """What was saved, in one or two sentences."""
    page: SavedPage = replied.value
    name = one_line(page.file)
    stays = " stays as it is" if page.saved_as == "unchanged" else ""
    pictures = "" if stays else f", with {counted(page.pictures, 'picture')}"
    pictures = pictures if page.pictures else ""
    if page.document and not stays:
        pictures = f", with {one_line(page.document)}"
    change = "" if page.change is None else f" (change {page.change})"
    lines = [f"{_SAVED[page.saved_as]} {name}{stays}{pictures}{change}"]
    if page.left_out:
        lines.append(f"{counted(page.left_out, 'picture')} could not be kept and stay on the web.")
    if page.problem:
        lines.append(one_line(page.problem))
    return "\n".join(lines)


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
    lane="web",
    idempotent=False,
    errors=(*_ERRORS, errors.ConflictError, errors.WebPageError),
)
def save_page(
    kb: KnowledgeBase,
    url: Annotated[
        str,
        Describe("The address of the page", zh="网页的网址"),
        InSchema(
            pattern=r"^https?://[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?(:[0-9]{1,4})?"
            r"([/?#][^\s\\\x00-\x1f\x7f]*)?$",
        ),
        Shell("[URL|FILE]...", join="\n", completes="files", default=()),
    ],
    folder: Annotated[
        str | None,
        Describe("collection/folder for a new note", zh="新笔记所在的 集合/文件夹"),
        InSchema(pattern=r"^[^\s/]+(/[^\s/]+)*$"),
        Shell("FOLDER"),
    ] = None,
    pictures: Annotated[
        bool, Describe("Keep its pictures beside the note", zh="把图片存在笔记旁")
    ] = True,
) -> SavedPage:
    """
    Save a web page as a note; again: update it.

    The article becomes Markdown, with title, author, date and address as properties; its pictures
    are kept beside the note. A PDF, EPUB or Office file is kept as it is, with a note beside it.

    Without an argument, the addresses are read from a pipe, one in each line. Of several, those
    that are saved already are left out, so that an interrupted list goes on where it stopped;
    --again updates them. The file of a page that a browser has saved (.html, .mhtml) is taken, too.
    """
    return kb.save_page(url, folder=folder, pictures=pictures)
