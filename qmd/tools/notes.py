"""
The toolset ``notes``: read_note, create_note, list_folder.

Its specification has a result ``{success, data?, error?}`` and words errors to the letter;
over MCP the text is ``data`` or ``error``, and the structured content the whole object.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from qmd.errors import InputError, NoteNotFoundError, QmdError
from qmd.files.notes.notes import Mode
from qmd.kb import KnowledgeBase
from qmd.tools import notes_texts
from qmd.tools.arguments import Arguments, TextAsSent
from qmd.tools.definition import Reply, TextBlock, Tool, object_schema
from qmd.tools.texts import Dialect
from qmd.tools.validation import InvalidArgumentsError, parameter_sentences

# --- arguments -----------------------------------------------------------------------


class NoteArguments(Arguments):
    """Base of the arguments of these tools, which ignore names they do not have."""

    model_config = ConfigDict(extra="ignore")


class ReadNoteArguments(NoteArguments):
    path: TextAsSent = Field(description="Path from the vault's root, such as Daily/2025-01-15.md")


class CreateNoteArguments(NoteArguments):
    path: TextAsSent = Field(
        description="Path from the vault's root; folders that are missing are made"
    )
    content: TextAsSent = Field(description="The whole text, or what is put behind the present one")
    mode: Mode = Field("overwrite", description="What becomes of a note that is there")


class ListFolderArguments(NoteArguments):
    path: TextAsSent = Field(
        description="Path from the vault's root; an empty string or / is the root"
    )


def invalid_parameters(tool: str, error: InvalidArgumentsError) -> InputError:
    """The problems of a call in the words of the specification."""
    sentences = [*map(str, error.excesses), *parameter_sentences(error.problems)]
    return InputError("Invalid parameters: " + "; ".join(sentences))


# --- the tools' work -----------------------------------------------------------------


def read_note(kb: KnowledgeBase, arguments: ReadNoteArguments, dialect: Dialect) -> Reply:
    note = kb.notes.read(arguments.path)
    return succeeded(note.text, **({} if note.path == note.requested else {"path": note.path}))


def create_note(kb: KnowledgeBase, arguments: CreateNoteArguments, dialect: Dialect) -> Reply:
    created = kb.notes.create(arguments.path, arguments.content, mode=arguments.mode)
    return succeeded(
        notes_texts.written(created),
        **({} if created.problem is None else {"problem": created.problem}),
    )


def list_folder(kb: KnowledgeBase, arguments: ListFolderArguments, dialect: Dialect) -> Reply:
    return succeeded(notes_texts.listing(kb.notes.list_folder(arguments.path)))


# --- replies -------------------------------------------------------------------------


def succeeded(data: str, **more: str) -> Reply:
    """``more``: the path where another note than the one named was meant; a problem."""
    return Reply((TextBlock(data),), {"success": True, "data": data, **more})


def failed(error: QmdError) -> Reply:
    """What went wrong; of a note that is not there, in a block of its own what may be meant."""
    message = str(error)
    blocks: tuple[TextBlock, ...] = ()
    more: dict[str, Any] = {}
    if isinstance(error, NoteNotFoundError):
        if error.hint is not None:
            blocks = (TextBlock(error.hint),)
        if error.suggestions:
            more["suggestions"] = list(error.suggestions)
    elif error.hint is not None:
        message = f"{message.rstrip('.')}. {error.hint}"
    structured = {"success": False, "error": message, **more}
    return Reply((TextBlock(message), *blocks), structured, is_error=True)


def _result_schema(dialect: Dialect) -> dict[str, Any]:
    properties = {
        "success": {"type": "boolean"},
        "data": {"type": "string"},
        "error": {"type": "string"},
        "path": {"type": "string"},
        "problem": {"type": "string"},
        "suggestions": {"type": "array", "items": {"type": "string"}},
    }
    return object_schema(properties, optional=tuple(properties)[1:])


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="read_note",
        title="Read note",
        description=(
            "Read a whole note as it is on the disk now. .md may be left out; a name alone is "
            "enough where only one note has it. In a vault of collections a search's file is "
            "such a path."
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
            "Write a note: a new one, one in the place of another (mode overwrite, the default), "
            "or text right behind what is there (mode append; nothing is put between). "
            ".md is added to a path that lacks it. Searches find the new text at once."
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
