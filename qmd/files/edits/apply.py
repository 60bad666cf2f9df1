"""Applies one edit to the text of a note."""

from __future__ import annotations

from qmd.errors import EditError
from qmd.files.edits import operations, properties, tasks
from qmd.values.edits import NoteEdit

#: Action → the fields that it needs.
NEEDS = {
    "replace": ("old", "text"),
    "replace_section": ("heading", "text"),
    "insert_before": ("heading", "text"),
    "insert_after": ("heading", "text"),
    "append": ("text",),
    "prepend": ("text",),
    "set_property": ("property", "value"),
    "remove_property": ("property",),
    "tick": (),
    "untick": (),
}
#: Action → the fields that it may have in addition.
_MAY_HAVE = {"append": ("heading",), "tick": ("old", "line"), "untick": ("old", "line")}
_FIELDS = ("text", "old", "heading", "property", "value", "line")


def edited(text: str, edit: NoteEdit) -> str:
    """
    The text after an edit.

    Raises:
        EditError: The edit lacks a field or has one too many, or the text has no such place, or
            more than one.
    """
    _check(edit)
    new_text, old, heading = edit.text or "", edit.old or "", edit.heading or ""
    name = edit.property or ""
    if edit.action == "replace":
        return operations.replace_once(text, old, new_text)
    if edit.action == "replace_section":
        return operations.replace_section(text, heading, new_text)
    if edit.action == "insert_before":
        return operations.insert_before(text, heading, new_text)
    if edit.action == "insert_after":
        return operations.insert_after(text, heading, new_text)
    if edit.action == "append":
        return operations.append(text, new_text, edit.heading)
    if edit.action == "prepend":
        return operations.prepend(text, new_text)
    if edit.action == "set_property":
        return properties.set_property(text, name, edit.value)
    if edit.action == "remove_property":
        return properties.remove_property(text, name)
    return tasks.set_task(text, done=edit.action == "tick", task=edit.old, line=edit.line)


def _check(edit: NoteEdit) -> None:
    needs = NEEDS.get(edit.action)
    if needs is None:
        raise EditError(f"There is no action {edit.action!r}.", hint=f"One of {', '.join(NEEDS)}.")
    for name in needs:
        if getattr(edit, name) is None and name != "value":
            raise EditError(f"The action {edit.action} needs {name}.")
    if edit.action in ("tick", "untick") and edit.old is None and edit.line is None:
        raise EditError(f"The action {edit.action} needs old, the text of the task, or line.")
    for name in _FIELDS:
        allowed = (*needs, *_MAY_HAVE.get(edit.action, ()))
        if getattr(edit, name) is not None and name not in allowed:
            raise EditError(
                f"The action {edit.action} does not take {name}.",
                hint=f"It takes {', '.join(allowed)}.",
            )
