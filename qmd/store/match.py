"""
What full text is asked for: an expression of phrases, whatever language the engine speaks.

A word is a phrase of one token. Texts are given as full text stores them (`qmd.parse.segment`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: The columns of full text: ``extra`` holds what stands in neither title, headings, body nor path.
TextField: TypeAlias = Literal["title", "headings", "body", "path", "extra"]
#: What a file says, not where it lies.
CONTENT_FIELDS: tuple[TextField, ...] = ("title", "headings", "body", "extra")


@dataclass(frozen=True, slots=True)
class Phrase:
    """
    Tokens that follow each other in one field.

    ``prefix``: the last token may go on. ``fields``: one of these; empty for any.
    """

    text: str
    prefix: bool = False
    fields: tuple[TextField, ...] = ()


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of these expressions, at least one."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of these expressions, of which there is at least one."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ButNot:
    """The one expression without the other."""

    match: Expression
    excluded: Expression


Expression: TypeAlias = "Phrase | AllOf | AnyOf | ButNot"
