"""Colours code with Pygments, and sets formulas as MathML."""

from __future__ import annotations

import re
from html import escape
from time import thread_time

from pygments import format as format_tokens
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from qmd.render.formula import mathml

_MAX_CODE = 10_000  # characters of one block that are coloured
_MAX_LINE = 500
_MAX_ALL_CODE = 100_000  # of one document
_MAX_COLOURING_S = 1.0  # of CPU time, for one document: some lexers look at each line often
_MAX_FORMULA = 2_000  # characters
_MAX_FORMULAS = 500  # of one document
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


LANGUAGE_NAMES = """
bash c clojure cmake cpp css dart diff docker elixir erlang fish go graphql groovy haskell
html http ini java javascript json jsx julia kotlin latex lua make matlab nginx nix objective-c
ocaml perl php powershell properties protobuf python r ruby rust scala scss sh sql swift toml tsx
typescript vim xml yaml zig zsh
"""
LANGUAGES = frozenset(LANGUAGE_NAMES.split())
"""Those that are coloured. Pygments has 500 more, some with expressions that never end."""

_OTHER_NAMES = {
    "c++": "cpp", "console": "bash", "dockerfile": "docker",
    "golang": "go", "hs": "haskell", "js": "javascript", "jsonc": "json", "kt": "kotlin",
    "makefile": "make", "node": "javascript", "objc": "objective-c", "ps1": "powershell",
    "py": "python", "python3": "python", "rb": "ruby", "rs": "rust", "shell": "bash",
    "tex": "latex", "ts": "typescript", "yml": "yaml",
}  # fmt: skip


class Painter:
    """Colours the code and sets the formulas of one document, up to a limit."""

    def __init__(self) -> None:
        self._code_left = _MAX_ALL_CODE
        self._seconds_left = _MAX_COLOURING_S
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
        name = _OTHER_NAMES.get(language[0].lower(), language[0].lower())
        if name not in LANGUAGES or max(map(len, text.split("\n"))) > _MAX_LINE:
            return escape(text)
        lexer = get_lexer_by_name(name, stripnl=False)
        self._code_left -= len(text)
        begin = thread_time()
        tokens = []
        for token in lexer.get_tokens(text):
            tokens.append(token)
            if thread_time() - begin > self._seconds_left:
                self._code_left = 0
                return escape(text)
        self._seconds_left -= thread_time() - begin
        coloured: str = format_tokens(tokens, HtmlFormatter(nowrap=True, classprefix="c-"))
        return coloured

    def formula(self, source: str, *, is_block: bool) -> str | None:
        """MathML; None if the formula cannot be read, or is too long."""
        if len(source) > _MAX_FORMULA or not self._formulas_left:
            return None
        self._formulas_left -= 1
        return mathml(source, is_block=is_block) or None
