"""
What full text is asked for: an expression of phrases, whatever language the engine speaks.

A word is a phrase of one token. Texts are given as full text stores them (`qmd.parse.segment`).

These are named tuples because a process that searches once pays for their import: four frozen
dataclasses took three milliseconds of sixty.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

#: The columns of full text: ``extra`` holds what stands in neither title, headings, body nor path.
TextField: TypeAlias = Literal["title", "headings", "body", "path", "extra"]
#: What a file says, not where it lies.
CONTENT_FIELDS: tuple[TextField, ...] = ("title", "headings", "body", "extra")


class Phrase(NamedTuple):
    """
    Tokens that follow each other in one field.

    ``prefix``: the last token may go on. ``fields``: one of these; empty for any.
    """

    text: str
    prefix: bool = False
    fields: tuple[TextField, ...] = ()


class Combined(NamedTuple):
    """Two or more expressions: all of them, any of them, or the first but none of the others."""

    operator: Literal["all", "any", "but not"]
    parts: tuple[Expression, ...]


Expression: TypeAlias = "Phrase | Combined"


def all_of(*parts: Expression) -> Expression:
    """Documents that match every one of these expressions, at least one."""
    return parts[0] if len(parts) == 1 else Combined("all", parts)


def any_of(*parts: Expression) -> Expression:
    """Documents that match one of these expressions, of which there is at least one."""
    return parts[0] if len(parts) == 1 else Combined("any", parts)


def but_not(match: Expression, *excluded: Expression) -> Expression:
    """Documents that match the one expression and none of the others."""
    return Combined("but not", (match, *excluded)) if excluded else match
