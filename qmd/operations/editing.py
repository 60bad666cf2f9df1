"""Small changes of notes, which can be previewed and undone."""

from __future__ import annotations

from typing import Annotated

from qmd import errors
from qmd.operations import edit_texts
from qmd.operations.definition import KnowledgeBase, Replied, operation
from qmd.system.session import current_session
from qmd.values.facts import AsSent, Describe, InSchema, Obvious, Range, Shell
from qmd.values.writing import EditAction, EditedNote, MovedNote, NoteEdit, UndoReply

FAMILY = {"toolset": "edit", "group": "write"}

_ERRORS = (
    errors.OutsideRootsError,
    errors.DocumentNotFoundError,
    errors.NotFoundError,
    errors.AmbiguousNameError,
    errors.ConflictError,
    errors.EditError,
    errors.FileChangedError,
    errors.FileAccessError,
)
_SCALARS = ["string", "number", "boolean"]
_Value = str | bool | int | float | list[str | bool | int | float]

NoteName = Annotated[
    str,
    Describe("The note: its name, path or docid", zh="笔记的名称、路径或 docid"),
    Shell("NAME", completes="documents"),
]
IfDocid = Annotated[
    str | None,
    AsSent(),  # a blank one is refused: a variable that is not set must not lift the guard
    Describe("Refuse if the docid is another by now", zh="若笔记的 docid 已不是它则拒绝"),
    InSchema(pattern="^#?[0-9a-fA-F]{6,64}$"),
    Shell("DOCID"),
]
Preview = Annotated[bool, Describe("Only show the diff", zh="不写入，只显示差异")]


# --- edits ---------------------------------------------------------------------------


@operation(
    text=lambda replied: edit_texts.edited(replied.value),
    zh="修改笔记的一处；编码和换行符不变。可撤销。",
    tool_says_summary=True,
    command="note edit",
    examples=(
        "qmd note edit plan append --heading Log --text '- done'",
        "qmd note edit notes/plan.md replace --old draft --text final --preview",
        "qmd note edit plan set_property --property status --value done",
        "pbpaste | qmd note edit plan replace_section --heading Costs --text -",
    ),
    bodies=(
        {"file": "notes/plan.md", "action": "replace", "old": "draft", "text": "final"},
        {"file": "plan", "action": "append", "heading": "Log", "text": "- done"},
    ),
    lane="write",
    idempotent=False,
    errors=_ERRORS,
)
def edit_note(
    kb: KnowledgeBase,
    file: NoteName,
    action: Annotated[
        EditAction,
        Describe(
            "replace (old, once in the note; text). replace_section, insert_before, insert_after"
            " (heading, text). append (text; in the section of heading). prepend (text)."
            " set_property (property, value). remove_property (property). tick, untick (old or"
            " line)",
            zh="replace（old、text）：old 须恰好出现一次。replace_section、insert_before、"
            "insert_after（heading、text）。append（text；给出 heading 则加在该节末尾）。"
            "prepend（text）：加在 frontmatter 之后。set_property（property、value）。"
            "remove_property（property）。tick、untick（old 或 line）：任务",
        ),
        Shell("ACTION"),
    ],
    text: Annotated[
        str | None,
        Obvious(),
        AsSent(),
        Describe("The new text", zh="新的文字"),
        Shell("TEXT|-", stdin=True),
    ] = None,
    old: Annotated[
        str | None,
        Obvious(),
        AsSent(),
        Describe("The text to replace, or that of a task", zh="要替换的文字，或任务的文字"),
    ] = None,
    heading: Annotated[
        str | None, Describe("Heading or Heading#Sub", zh="标题，或 标题#下级标题")
    ] = None,
    property: Annotated[  # noqa: A002 - the name on the wire
        str | None,
        Obvious(),
        Describe("A key of the frontmatter", zh="frontmatter 的键"),
        Shell("KEY", completes="property_keys"),
    ] = None,
    value: Annotated[
        _Value | None,
        Obvious(),
        Describe("Text, number, truth, date or list", zh="文字、数字、真假、日期或列表"),
        InSchema(type=[*_SCALARS, "array"], items={"type": _SCALARS}),
        Shell("VALUE"),
    ] = None,
    line: Annotated[
        int | None, Obvious(), Range(1), Describe("The line of a task", zh="任务所在的行")
    ] = None,
    if_docid: IfDocid = None,
    preview: Preview = False,
) -> EditedNote:
    """
    Change one place of a note.

    'qmd undo' takes it back.
    """
    if value is None and action == "set_property":
        # Over these faces an absent value and null are the same; Python may set None.
        raise errors.InputError(
            "The action set_property needs value.",
            hint='"" makes the property empty; remove_property removes it.',
        )
    edit = NoteEdit(
        action=action,
        text=text,
        old=old,
        heading=heading,
        property=property,
        value=tuple(value) if isinstance(value, list) else value,
        line=line,
    )
    return kb.edit_note(file, edit, if_docid=if_docid, preview=preview)


@operation(
    text=lambda replied: edit_texts.edited(replied.value),
    command="note set",
    in_shell_alone=True,
    examples=("qmd note set plan status done", 'qmd note set plan tags \'["work", "2026"]\''),
    lane="write",
    errors=_ERRORS,
)
def set_property(
    kb: KnowledgeBase,
    file: NoteName,
    property: Annotated[  # noqa: A002 - the name on the wire
        str,
        Describe("A key of the frontmatter", zh="frontmatter 的键"),
        Shell("KEY", completes="property_keys"),
    ],
    value: Annotated[
        _Value, Describe("Text, number, truth, date or list", zh="文字、数字、真假、日期或列表")
    ],
    preview: Preview = False,
) -> EditedNote:
    """
    Set a property in the frontmatter of a note.

    'qmd undo' takes it back. 'qmd note edit NAME remove_property --property KEY' removes one.
    """
    exact = tuple(value) if isinstance(value, list) else value
    edit = NoteEdit("set_property", property=property, value=exact)
    return kb.edit_note(file, edit, preview=preview)


@operation(
    text=lambda replied: edit_texts.edited(replied.value),
    command="note tick",
    in_shell_alone=True,
    examples=(
        "qmd note tick plan 'Call the bank'",
        "qmd note tick plan.md:12",
        "qmd note tick plan 12 --undo",
    ),
    lane="write",
    errors=_ERRORS,
)
def tick(
    kb: KnowledgeBase,
    file: NoteName,
    task: Annotated[
        str | None,
        Describe(
            "The text of the task, or its line; NAME:LINE needs neither",
            zh="任务的文字，或所在的行",
        ),
        Shell("[TASK]", positional=True),
    ] = None,
    undo: Annotated[bool, Describe("Take the tick away", zh="取消勾选")] = False,
    preview: Preview = False,
) -> EditedNote:
    """Tick a task of a note."""
    action: EditAction = "untick" if undo else "tick"
    if task is not None and task.isdecimal():
        return kb.edit_note(file, NoteEdit(action, line=int(task)), preview=preview)
    return kb.edit_note(file, NoteEdit(action, old=task), preview=preview)


@operation(
    text=lambda replied: edit_texts.deleted(replied.value),
    zh="删除笔记，内容留在历史中。可撤销。",
    tool_says_summary=True,
    command="rm",
    section="Write",
    destroys=True,
    examples=("qmd rm notes/old.md", "qmd rm 'Old plan' && qmd undo"),
    bodies=({"file": "notes/plan.md", "preview": True},),
    lane="write",
    errors=_ERRORS,
)
def delete_note(
    kb: KnowledgeBase, file: NoteName, if_docid: IfDocid = None, preview: Preview = False
) -> EditedNote:
    """
    Delete a note; undo brings it back.

    Its content stays in the history.
    """
    return kb.delete_note(file, if_docid=if_docid, preview=preview)


@operation(
    text=lambda replied: edit_texts.moved(replied.value),
    zh="移动或重命名笔记；其他笔记中会失效的链接一并改写，与 Obsidian 相同。可撤销。",
    tool_says_summary=True,
    command="mv",
    section="Write",
    examples=("qmd mv notes/plan.md 'Plan 2026'", "qmd mv 'Old plan' archive/ --preview"),
    bodies=(
        {"file": "notes/plan.md", "new_path": "Plan 2026"},
        {"file": "plan", "new_path": "notes/archive/", "preview": True},
    ),
    lane="write",
    idempotent=False,
    errors=(*_ERRORS, errors.InvalidPathError),
)
def move_note(
    kb: KnowledgeBase,
    file: NoteName,
    new_path: Annotated[
        str,
        Describe(
            "A name, collection/path, or folder/; makes missing folders",
            zh="新名称、集合/路径，或以 / 结尾的文件夹；.md 可省略，缺少的文件夹会新建",
        ),
        Shell(completes="documents"),
    ],
    rewrite_links: Annotated[
        bool,
        Describe("false: only list the links that would break", zh="为 false 时只列出会失效的链接"),
    ] = True,
    if_docid: IfDocid = None,
    preview: Preview = False,
) -> MovedNote:
    """
    Move or rename a note, and rewrite the links to it.

    A new path without / renames the note in its folder; another begins with a collection, or at the
    root of the note's collection. A folder keeps the name of the note.

    'qmd undo' takes the move back, with all rewritten links.
    """
    return kb.move_note(
        file, new_path, rewrite_links=rewrite_links, preview=preview, if_docid=if_docid
    )


# --- undo ----------------------------------------------------------------------------


def _undone(replied: Replied) -> str:
    return edit_texts.undone(
        replied.value, redo="call undo with redo", by_number="call undo with change {number}"
    )


@operation(
    text=_undone,
    fails=lambda reply: not reply.undone,
    zh="撤销任一写入工具的一次改动；再调用即撤销更早一次。文件此后又有改动则拒绝。",
    tool_says_summary=True,
    command=None,  # people name sessions: `qmd.cli.history`
    bodies=({"change": 12}, {"session": True}),
    lane="write",
    idempotent=False,
    errors=(
        errors.OutsideRootsError,
        errors.NotFoundError,
        errors.ConflictError,
        errors.FileChangedError,
        errors.FileAccessError,
    ),
)
def undo(
    kb: KnowledgeBase,
    change: Annotated[
        int | None,
        Range(1),
        Describe("Default: your last", zh="撤销这次改动；默认是你最近的一次"),
    ] = None,
    session: Annotated[
        bool, Describe("All your changes of this session", zh="撤销你在本次会话中的全部改动")
    ] = False,
    redo: Annotated[bool, Describe("Undo the undo", zh="重做你最近一次撤销的改动")] = False,
) -> UndoReply:
    """
    Take back the last change; again for the one before. Refused if its files changed since.

    The header X-QMD-Session names the session of a request.
    """
    if change is not None and (session or redo):
        raise errors.InputError(
            f"{'redo' if redo else 'session'} and change exclude each other.",
            hint="A change has its number; to redo one of several undos, give that of the undo.",
        )
    if redo:  # what was undone for a session is redone as a whole
        return kb.undo.redo_last(current_session())
    if change is not None:
        return kb.undo.undo_change(change, session=current_session())
    if session:
        return kb.undo.undo_session(current_session())
    return kb.undo.undo_last(current_session())
