"""
Match expressions: queries to full text, independent of the query language of the engine.

A word is a phrase of one token. Texts are segmented as full text stores them
(`qmd.parse.segment`).

The classes are named tuples, because a process that searches once pays for their import: frozen
dataclasses took three milliseconds of sixty.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

#: The fields of full text. ``extra`` holds the frontmatter, with the description, and the parts of
#: CamelCase names.
TextField: TypeAlias = Literal["title", "headings", "body", "path", "extra", "description"]
#: All fields but the path.
CONTENT_FIELDS: tuple[TextField, ...] = ("title", "headings", "body", "extra", "description")


class Phrase(NamedTuple):
    """
    Tokens that follow each other in one field.

    Attributes:
        text: The tokens, separated by spaces.
        prefix: The last token may be the beginning of a longer one.
        fields: The phrase must be in one of these fields; empty for any field.
    """

    text: str
    prefix: bool = False
    fields: tuple[TextField, ...] = ()


class Combined(NamedTuple):
    """Two or more expressions of which all, any, or the first but no other must match."""

    operator: Literal["all", "any", "but not"]
    parts: tuple[Expression, ...]


Expression: TypeAlias = "Phrase | Combined"


def all_of(*parts: Expression) -> Expression:
    """Match documents that match all of these expressions, of which there is at least one."""
    return parts[0] if len(parts) == 1 else Combined("all", parts)


def any_of(*parts: Expression) -> Expression:
    """Match documents that match any of these expressions, of which there is at least one."""
    return parts[0] if len(parts) == 1 else Combined("any", parts)


def but_not(match: Expression, *excluded: Expression) -> Expression:
    """Match documents that match ``match`` and none of the excluded expressions."""
    return Combined("but not", (match, *excluded)) if excluded else match
