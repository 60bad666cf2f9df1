"""
The toolset ``notes``: read_note, create_note, list_folder.

Its specification defines the result ``{success, data?, error?}`` and the exact texts of errors.
Over MCP the text is ``data`` or ``error``, and the structured content is the whole object.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from qmd.errors import InputError, NoteNotFoundError, QmdError
from qmd.files.notes.notes import Mode
from qmd.kb import KnowledgeBase
from qmd.operations.problems import InvalidArgumentsError, parameter_sentences
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.tools import notes_texts
from qmd.tools.arguments import Arguments, TextAsSent
from qmd.tools.definition import Tool
from qmd.tools.notes_texts import NoteResult
from qmd.tools.schemas import output_schema
from qmd.values.facts import Obvious
from qmd.values.printable import one_line
from qmd.values.wire import to_wire

# --- arguments -----------------------------------------------------------------------


class NoteArguments(Arguments):
    """Base of the argument models of this toolset, which ignores unknown names."""

    model_config = ConfigDict(extra="ignore")


class ReadNoteArguments(NoteArguments):
    path: TextAsSent = Field(description="From the vault's root: Daily/2025-01-15.md")


class CreateNoteArguments(NoteArguments):
    path: TextAsSent = Field(description="From the vault's root; adds .md and missing folders")
    content: Annotated[TextAsSent, Obvious()] = Field(
        description="The whole text, or what is put behind the present one"
    )
    mode: Annotated[Mode, Obvious()] = Field(
        "overwrite", description="What becomes of a note that is there"
    )


class ListFolderArguments(NoteArguments):
    path: TextAsSent = Field(description='From the vault\'s root, which is "" or /')


def invalid_parameters(tool: str, error: InvalidArgumentsError) -> InputError:
    """The error for the problems of a call, with the texts of the specification."""
    sentences = [*map(str, error.excesses), *parameter_sentences(error.problems)]
    return InputError("Invalid parameters: " + "; ".join(sentences))


# --- handlers ------------------------------------------------------------------------


def read_note(kb: KnowledgeBase, arguments: ReadNoteArguments, dialect: Dialect) -> Reply:
    note = kb.notes.read(arguments.path)
    other_path = None if note.path == note.requested else note.path
    reply = _reply(NoteResult(success=True, data=note.text, path=other_path))
    return replace(reply, whole=(note.path, len(note.text.splitlines())))


def create_note(kb: KnowledgeBase, arguments: CreateNoteArguments, dialect: Dialect) -> Reply:
    created = kb.notes.create(arguments.path, arguments.content, mode=arguments.mode)
    message = notes_texts.written(created)
    return _reply(NoteResult(success=True, data=message, problem=created.problem))


def list_folder(kb: KnowledgeBase, arguments: ListFolderArguments, dialect: Dialect) -> Reply:
    listing = kb.notes.list_folder(arguments.path)
    return _reply(NoteResult(success=True, data=notes_texts.listing(listing)))


# --- replies -------------------------------------------------------------------------


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


def _result_schema(dialect: Dialect) -> dict[str, Any]:
    return output_schema(NoteResult, dialect)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="read_note",
        title="Read note",
        description=(
            "Read a whole note as it is on the disk now, by its path (a hit's file is one) or name."
        ),
        arguments=ReadNoteArguments,
        run=read_note,
        output_schema=_result_schema,
        refusal=invalid_parameters,
        failed=failed,
    ),
    Tool(
        name="create_note",
        title="Create note",
        description=(
            "Write a note: new, in place of another (overwrite), or right behind its text (append)."
        ),
        arguments=CreateNoteArguments,
        run=create_note,
        output_schema=_result_schema,
        read_only=False,
        destructive=True,
        idempotent=False,
        refusal=invalid_parameters,
        failed=failed,
    ),
    Tool(
        name="list_folder",
        title="List folder",
        description="List what lies directly in a folder of the vault: 📁 folders, then 📄 files.",
        arguments=ListFolderArguments,
        run=list_folder,
        output_schema=_result_schema,
        refusal=invalid_parameters,
        failed=failed,
    ),
)
