"""Colours code with Pygments, and sets formulas as MathML."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape, unescape
from time import thread_time
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import convert_to_element
from pygments import format as format_tokens
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

_MAX_DEPTH = 60  # braces in braces; the converter calls itself for each

#: What the converter raises for a formula that it cannot read; its errors have no common base.
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


def mathml(latex: str, *, is_block: bool) -> str:
    """A formula as MathML; "" if it cannot be read."""
    return _converted(latex.strip(), is_block) if _depth(latex) <= _MAX_DEPTH else ""


def _depth(latex: str) -> int:
    """How deep its parts nest, at most."""
    depth = deepest = 0
    for character in latex:
        if character == "{":
            depth += 1
            deepest = max(deepest, depth)
        elif character == "}":
            depth -= 1
    return max(deepest, *(latex.count(name) for name in ("\\left", "\\begin", "\\sqrt", "^^")))


@lru_cache(maxsize=512)
def _converted(latex: str, is_block: bool) -> str:
    try:
        element = convert_to_element(latex, display="block" if is_block else "inline")
    except _UNREADABLE:
        return ""
    parts: list[str] = []
    _write(element, parts)
    return "".join(parts)


def _write(element: Element, parts: list[str]) -> None:
    """The converter writes signs as references such as ``&#x0002B;``, which are resolved here."""
    attributes = "".join(
        f' {name}="{escape(unescape(value))}"'
        for name, value in element.attrib.items()
        if name != "xmlns"
    )
    parts.append(f"<{element.tag}{attributes}>{escape(unescape(element.text or ''), quote=False)}")
    for child in element:
        _write(child, parts)
        parts.append(escape(unescape(child.tail or ""), quote=False))
    parts.append(f"</{element.tag}>")


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
#: Those that are coloured. Pygments has 500 more, some with expressions that never end.
LANGUAGES = frozenset(LANGUAGE_NAMES.split())

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
            info: What stands after the opening fence.
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
