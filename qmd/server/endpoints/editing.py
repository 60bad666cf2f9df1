"""The endpoints that edit and delete notes, and undo and list changes."""

from __future__ import annotations

from qmd.server import rest_models as models
from qmd.server.endpoints import tool
from qmd.server.endpoints.definition import Answer, Call, RestEndpoint
from qmd.tools import edit, texts
from qmd.tools.schemas import ReplyModel, reply_model
from qmd.values.edits import EditedNote, UndoReply
from qmd.values.moves import MovedNote

_TOOLS = {each.name: each for each in edit.TOOLS}
_EDITED = reply_model(EditedNote, content=str)
_MOVED = reply_model(MovedNote, content=str)
_UNDONE = reply_model(UndoReply, content=str)


def _run(name: str, model: type[ReplyModel], call: Call) -> Answer:
    return tool.answer(model, _TOOLS[name].run(call.kb, call.arguments, texts.REST))


def _changes(call: Call) -> models.ChangeList:
    arguments: models.ChangesArguments = call.arguments
    changes = call.kb.undo.changes(arguments.session, limit=arguments.limit)
    return models.ChangeList(tuple(changes))


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="POST",
        path="/edit_note",
        name="edit_note",
        group="write",
        summary="Edit a note",
        description=_TOOLS["edit_note"].description,
        body=edit.EditNoteArguments,
        reply=_EDITED,
        run=lambda call: _run("edit_note", _EDITED, call),
        errors=(403, 404, 409),
        lane="write",
        examples=(
            {"file": "notes/plan.md", "action": "replace", "old": "draft", "text": "final"},
            {"file": "plan", "action": "append", "heading": "Log", "text": "- done"},
        ),
    ),
    RestEndpoint(
        method="POST",
        path="/delete_note",
        name="delete_note",
        group="write",
        summary="Delete a note into the history",
        description=_TOOLS["delete_note"].description,
        body=edit.DeleteNoteArguments,
        reply=_EDITED,
        run=lambda call: _run("delete_note", _EDITED, call),
        errors=(403, 404, 409),
        lane="write",
        examples=({"file": "notes/plan.md", "preview": True},),
    ),
    RestEndpoint(
        method="POST",
        path="/move_note",
        name="move_note",
        group="write",
        summary="Move or rename a note, with the links to it",
        description=_TOOLS["move_note"].description,
        body=edit.MoveNoteArguments,
        reply=_MOVED,
        run=lambda call: _run("move_note", _MOVED, call),
        errors=(403, 404, 409),
        lane="write",
        examples=(
            {"file": "notes/plan.md", "new_path": "Plan 2026"},
            {"file": "plan", "new_path": "notes/archive/", "preview": True},
        ),
    ),
    RestEndpoint(
        method="POST",
        path="/undo",
        name="undo",
        group="write",
        summary="Undo a change, or all of a session",
        description=_TOOLS["undo"].description
        + " The header X-QMD-Session names the session of a request.",
        body=edit.UndoArguments,
        reply=_UNDONE,
        run=lambda call: _run("undo", _UNDONE, call),
        errors=(403, 404, 409),
        lane="write",
        examples=({"change": 12}, {"session": True}),
    ),
    RestEndpoint(
        method="GET",
        path="/changes",
        name="changes",
        group="write",
        summary="What tools have changed, the latest first",
        description="Each change with its tool, its session and its files.",
        query=models.ChangesArguments,
        reply=models.ChangeList,
        run=_changes,
    ),
)
