"""The toolset ``edit``: small edits of notes that can be previewed and undone."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from pydantic import Field

from qmd.errors import ConflictError, EditError, FileChangedError, QmdError
from qmd.kb import KnowledgeBase
from qmd.system.session import current_session
from qmd.tools import edit_texts
from qmd.tools.arguments import Arguments, Count, OptionalText, TextAsSent
from qmd.tools.definition import Reply, TextBlock, Tool
from qmd.tools.schemas import output_schema
from qmd.tools.texts import Dialect, error_text
from qmd.values.edits import EditAction, EditedNote, NoteEdit, UndoReply
from qmd.values.facts import Obvious
from qmd.values.moves import MovedNote
from qmd.values.wire import to_wire

# --- arguments -----------------------------------------------------------------------


_SCALARS = ["string", "number", "boolean"]
_VALUE_SCHEMA: dict[str, Any] = {"type": [*_SCALARS, "array"], "items": {"type": _SCALARS}}


class OneNoteArguments(Arguments):
    """What the tools that change one note have in common."""

    file: str = Field(description="The note: its name, path or docid")
    if_docid: OptionalText = Field(
        None,
        description="Refuse if the docid is another by now",
        json_schema_extra={"pattern": "^#?[0-9a-fA-F]{6,64}$"},
    )
    preview: bool = Field(False, description="Only show the diff")


class EditNoteArguments(OneNoteArguments):
    action: EditAction = Field(
        description="replace (old, once in the note; text). replace_section, insert_before,"
        " insert_after (heading, text). append (text; in the section of heading). prepend (text)."
        " set_property (property, value). remove_property (property). tick, untick (old or line)"
    )
    text: Annotated[TextAsSent | None, Obvious()] = Field(None, description="The new text")
    old: Annotated[TextAsSent | None, Obvious()] = Field(
        None, description="The text to replace, or that of a task"
    )
    heading: OptionalText = Field(None, description="Heading or Heading#Sub")
    property: Annotated[OptionalText, Obvious()] = Field(
        None, description="A key of the frontmatter"
    )
    value: Annotated[
        str | bool | int | float | list[str | bool | int | float] | None, Obvious()
    ] = Field(
        None, description="Text, number, truth, date or list", json_schema_extra=_VALUE_SCHEMA
    )
    line: Annotated[Count | None, Obvious()] = Field(None, description="The line of a task")


class DeleteNoteArguments(OneNoteArguments):
    pass


class MoveNoteArguments(OneNoteArguments):
    new_path: str = Field(description="A name, collection/path, or folder/; makes missing folders")
    rewrite_links: bool = Field(True, description="false: only list the links that would break")


class UndoArguments(Arguments):
    change: Count | None = Field(None, description="Default: your last")
    session: bool = Field(False, description="All your changes of this session")
    redo: bool = Field(False, description="Undo the undo")


# --- handlers ------------------------------------------------------------------------


def edit_note(kb: KnowledgeBase, arguments: EditNoteArguments, dialect: Dialect) -> Reply:
    value = arguments.value
    if value is None and arguments.action == "set_property":
        # Over these faces an absent value and null are the same; Python may set None.
        raise EditError(
            "The action set_property needs value.",
            hint='"" makes the property empty; remove_property removes it.',
        )
    edit = NoteEdit(
        action=arguments.action,
        text=arguments.text,
        old=arguments.old,
        heading=arguments.heading,
        property=arguments.property,
        value=tuple(value) if isinstance(value, list) else value,
        line=arguments.line,
    )
    note = kb.edit_note(
        arguments.file, edit, if_docid=arguments.if_docid, preview=arguments.preview
    )
    return _edited(note, edit_texts.edited(note, preview=arguments.preview), dialect)


def delete_note(kb: KnowledgeBase, arguments: DeleteNoteArguments, dialect: Dialect) -> Reply:
    note = kb.delete_note(arguments.file, if_docid=arguments.if_docid, preview=arguments.preview)
    return _edited(note, edit_texts.deleted(note), dialect)


def move_note(kb: KnowledgeBase, arguments: MoveNoteArguments, dialect: Dialect) -> Reply:
    moved = kb.move_note(
        arguments.file,
        arguments.new_path,
        rewrite_links=arguments.rewrite_links,
        preview=arguments.preview,
        if_docid=arguments.if_docid,
    )
    return Reply((TextBlock(edit_texts.moved(moved)),), to_wire(moved, dialect.field))


def undo(kb: KnowledgeBase, arguments: UndoArguments, dialect: Dialect) -> Reply:
    if arguments.redo and arguments.change is not None:
        raise ConflictError(
            "redo and change exclude each other.",
            hint="To redo one of several undos, give its number as change.",
        )
    if arguments.redo:  # what was undone for a session is redone as a whole
        reply = kb.undo.redo_last(current_session())
    elif arguments.change is not None:
        reply = kb.undo.undo_change(arguments.change)
    elif arguments.session:
        reply = kb.undo.undo_session(current_session())
    else:
        reply = kb.undo.undo_last(current_session())
    blocks = (TextBlock(edit_texts.undone(reply, redo="call undo with redo")),)
    structured = to_wire(reply, dialect.field)
    return Reply(blocks, structured, is_error=not reply.undone)


def _edited(note: EditedNote, text: str, dialect: Dialect) -> Reply:
    return Reply((TextBlock(text),), to_wire(note, dialect.field))


def failed(error: QmdError) -> Reply:
    """The reply for an error; of a note that has changed, with the diff."""
    text = error_text(error)
    if isinstance(error, FileChangedError) and error.diff:
        text = f"{text}\n\nWhat has changed since:\n{error.diff}"
    return Reply((TextBlock(text),), is_error=True)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="edit_note",
        title="Edit note",
        description="Change one place of a note.",
        arguments=EditNoteArguments,
        run=edit_note,
        output_schema=functools.partial(output_schema, EditedNote),
        read_only=False,
        destructive=True,
        idempotent=False,
        failed=failed,
    ),
    Tool(
        name="delete_note",
        title="Delete note",
        description="Delete a note; undo brings it back.",
        arguments=DeleteNoteArguments,
        run=delete_note,
        output_schema=functools.partial(output_schema, EditedNote),
        read_only=False,
        destructive=True,
        idempotent=True,
        failed=failed,
    ),
    Tool(
        name="move_note",
        title="Move note",
        description="Move or rename a note, and rewrite the links to it.",
        arguments=MoveNoteArguments,
        run=move_note,
        output_schema=functools.partial(output_schema, MovedNote),
        read_only=False,
        destructive=True,
        idempotent=False,
        failed=failed,
    ),
    Tool(
        name="undo",
        title="Undo",
        description=(
            "Take back the last change; again for the one before. Refused if its files changed"
            " since."
        ),
        arguments=UndoArguments,
        run=undo,
        output_schema=functools.partial(output_schema, UndoReply),
        read_only=False,
        destructive=True,
        idempotent=False,
        failed=failed,
    ),
)
