"""
The operations read_note, create_note and list_folder, with the texts of their specification.

It defines the result ``{success, data?, error?}`` and the exact texts of errors. Over MCP the text
is ``data`` or ``error``, and the structured content is the whole object. ``qmd note`` prints the
texts too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from qmd.errors import InputError, NoteNotFoundError, QmdError
from qmd.operations.definition import ByHand, KnowledgeBase, operation
from qmd.operations.problems import InvalidArgumentsError, parameter_sentences
from qmd.operations.replies import Reply, TextBlock
from qmd.values.facts import AsSent, Describe, Obvious, OmitDefault, Shell
from qmd.values.text import one_line
from qmd.values.wire import to_wire
from qmd.values.writing import FolderEntry, Listing, Mode, Note, WrittenNote

# --- replies -------------------------------------------------------------------------

_ACTIONS = {
    "created": "File created",
    "overwritten": "File overwritten",
    "appended": "Content appended to",
}


@dataclass(frozen=True, slots=True)
class NoteResult:
    """
    The result, as the specification defines it: ``data`` if the call succeeded, else ``error``.

    Attributes:
        path: The note's path, if it differs from the requested one.
        problem: Why searches do not find the new text.
        suggestions: Notes with similar names.
    """

    success: bool
    data: Annotated[str | None, OmitDefault()] = None
    error: Annotated[str | None, OmitDefault()] = None
    path: Annotated[str | None, OmitDefault()] = None
    problem: Annotated[str | None, OmitDefault()] = None
    suggestions: Annotated[tuple[str, ...], OmitDefault()] = ()


def written(note: WrittenNote) -> str:
    return f"{_ACTIONS[note.action]}: {one_line(note.path)}"


def listing(folder: Listing) -> str:
    return "\n".join(map(_line, folder.entries)) or "(empty folder)"


def _line(entry: FolderEntry) -> str:
    return f"{'📁' if entry.is_folder else '📄'} {one_line(entry.name)}"


def _reply(result: NoteResult) -> Reply:
    return Reply((TextBlock(result.data or ""),), to_wire(result))


def failed(error: QmdError) -> Reply:
    """The reply for an error. For a missing note, a second block has the hint."""
    message, hint = one_line(str(error)), error.hint and one_line(error.hint)
    blocks: tuple[TextBlock, ...] = ()
    suggestions: tuple[str, ...] = ()
    if isinstance(error, NoteNotFoundError):
        if hint is not None:
            blocks = (TextBlock(hint),)
        suggestions = tuple(error.suggestions)
    elif hint is not None:
        message = f"{message.rstrip('.')}. {hint}"
    result = NoteResult(success=False, error=message, suggestions=suggestions)
    return Reply((TextBlock(message), *blocks), to_wire(result), is_error=True)


def invalid_parameters(tool: str, error: InvalidArgumentsError) -> InputError:
    """The error for the problems of a call, with the texts of the specification."""
    sentences = [*map(str, error.excesses), *parameter_sentences(error.problems)]
    return InputError("Invalid parameters: " + "; ".join(sentences))


def _by_hand(reply: Callable[[Any], Reply]) -> ByHand:
    return ByHand(
        lambda replied, dialect: reply(replied.value),
        NoteResult,
        failed=failed,
        refusal=invalid_parameters,
        arguments={"extra": "ignore"},
    )


# --- operations ----------------------------------------------------------------------


def _read(note: Note) -> Reply:
    other_path = None if note.path == note.requested else note.path
    reply = _reply(NoteResult(success=True, data=note.text, path=other_path))
    return replace(reply, whole=(note.path, len(note.text.splitlines())))


@operation(
    tool=_by_hand(_read),
    command="note read",
    done_by="notes:read",
    options=("vault",),
    examples=("qmd note read notes/2025/plan", "qmd note read plan --vault ~/vault > plan.md"),
    zh="按路径（结果的 file 即是）读取磁盘上整篇笔记的当前内容；名称唯一时给名称即可。",
)
def read_note(
    kb: KnowledgeBase,
    path: Annotated[
        str,
        AsSent(),
        Describe(
            "From the vault's root: Daily/2025-01-15.md",
            zh="从库的根目录起的路径，例如 Daily/2025-01-15.md",
        ),
        Shell(completes="documents"),
    ],
) -> Note:
    """
    Read a whole note as it is on the disk now.

    By its path (a hit's file is one) or name.

    On a terminal control characters are made harmless; in a file or a pipe every byte of a UTF-8
    note arrives.
    """
    return kb.notes.read(path)


def _created(created: WrittenNote) -> Reply:
    reply = _reply(NoteResult(success=True, data=written(created), problem=created.problem))
    if created.problem is None:
        return reply
    notice = TextBlock(f"Not searchable: {one_line(created.problem)}")
    return replace(reply, blocks=(*reply.blocks, notice))


@operation(
    command=None,
    tool=_by_hand(_created),
    zh="写笔记：新建，或取代已有的（mode 为 overwrite，默认），或紧接在已有内容之后（append）。"
    "路径缺 .md 时自动补上。",
    lane="write",
    idempotent=False,
)
def create_note(
    kb: KnowledgeBase,
    path: Annotated[
        str,
        AsSent(),
        Describe(
            "From the vault's root; adds .md and missing folders",
            zh="从库的根目录起的路径；缺少的文件夹会新建",
        ),
    ],
    content: Annotated[
        str,
        AsSent(),
        Obvious(),
        Describe(
            "The whole text, or what is put behind the present one", zh="全文，或要接在后面的内容"
        ),
    ],
    mode: Annotated[
        Mode,
        Obvious(),
        Describe("What becomes of a note that is there", zh="已有同名笔记时怎么办"),
    ] = "overwrite",
) -> WrittenNote:
    """Write a note: new, in place of another (overwrite), or right behind its text (append)."""
    return kb.notes.create(path, content, mode=mode)


@operation(
    command="note list",
    done_by="notes:list_",
    options=("vault",),
    examples=("qmd note list", "qmd note list notes/2025", "qmd note list --json"),
    tool=_by_hand(lambda folder: _reply(NoteResult(success=True, data=listing(folder)))),
    zh="列出库中一个文件夹直接包含的内容：先 📁 文件夹，后 📄 文件。",
)
def list_folder(
    kb: KnowledgeBase,
    path: Annotated[
        str,
        AsSent(),
        Describe(
            'From the vault\'s root, which is "" or /',
            zh="从库的根目录起的路径；空字符串或 / 为根目录",
        ),
        Shell(completes="documents", default=""),
    ],
) -> Listing:
    """
    List what lies directly in a folder of the vault.

    First 📁 folders, then 📄 files.
    """
    return kb.notes.list_folder(path)
