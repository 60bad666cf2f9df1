"""Colours code with Pygments, and sets formulas as MathML."""

from __future__ import annotations

import re
from html import escape

from latex2mathml import exceptions
from latex2mathml.converter import convert
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

_MAX_CODE = 10_000  # characters of one block that are coloured
_MAX_ALL_CODE = 100_000  # of one document
_MAX_FORMULA = 2_000  # characters
_MAX_FORMULAS = 500  # of one document
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


_UNREADABLE: tuple[type[Exception], ...] = (
    *(
        kind
        for kind in vars(exceptions).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ),
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What `convert` raises for a formula that it cannot read: its errors have no base of their own."""


class Painter:
    """Colours the code and sets the formulas of one document, up to a limit."""

    def __init__(self) -> None:
        self._code_left = _MAX_ALL_CODE
        self._formulas_left = _MAX_FORMULAS

    def code(self, text: str, info: str) -> str:
        """
        The HTML of code, with spans that have classes, or without if it is too long.

        Args:
            info: What stands behind the opening fence.
        """
        language = _LANGUAGE.match(info.strip().lstrip("{."))
        if language is None or len(text) > min(_MAX_CODE, self._code_left):
            return escape(text)
        try:
            lexer = get_lexer_by_name(language[0].lower(), stripnl=False)
        except ClassNotFound:
            return escape(text)
        self._code_left -= len(text)
        coloured: str = highlight(text, lexer, HtmlFormatter(nowrap=True, classprefix="c-"))
        return coloured

    def formula(self, source: str, *, is_block: bool) -> str | None:
        """MathML; None if the formula cannot be read, or is too long."""
        if len(source) > _MAX_FORMULA or not self._formulas_left:
            return None
        self._formulas_left -= 1
        try:
            return str(convert(source, display="block" if is_block else "inline"))
        except _UNREADABLE:
            return None
