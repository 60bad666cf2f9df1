"""Translates match expressions into the language of FTS5: https://sqlite.org/fts5.html#full_text_query_syntax"""

from __future__ import annotations

from qmd.store.match import Expression, Phrase

_OPERATORS = {"all": " AND ", "any": " OR ", "but not": " NOT "}


def render(expression: Expression) -> str:
    """An expression as FTS5 reads it; every text is quoted, so that no text is syntax."""
    if isinstance(expression, Phrase):
        return _phrase(expression)
    return _OPERATORS[expression.operator].join(map(_operand, expression.parts))


def _phrase(phrase: Phrase) -> str:
    quoted = '"' + phrase.text.replace('"', '""') + '"' + (" *" if phrase.prefix else "")
    return f"{{{' '.join(phrase.fields)}}} : {quoted}" if phrase.fields else quoted


def _operand(expression: Expression) -> str:
    """In brackets, but for a phrase in any field, which needs none."""
    text = render(expression)
    return text if isinstance(expression, Phrase) and not expression.fields else f"({text})"
