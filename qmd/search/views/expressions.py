"""
Reads expressions such as ``rating > 3 and contains(file.tags, "book")`` into trees.

The signs and words are those that Dataview and Bases have in common, and those of either: ``=`` and
``==``, ``and`` and ``&&``, ``contains(a, b)`` and ``a.contains(b)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from qmd.engine_text import engine_text
from qmd.errors import InputError

MAX_CHARACTERS = 5_000  # of all expressions of a view, about
_MAX_SIGNS = 200  # of one expression, which is therefore no deeper

_TOKENS = re.compile(
    r"(?P<space>\s+)|(?P<number>\d{1,15}(?:\.\d{1,15})?)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<link>!?\[\[[^\[\]\n]{1,300}\]\])|(?P<tag>#[^\s#()\[\]{},;\"'|&!=<>]+)"
    r"|(?P<word>[^\W\d]\w*(?:-[^\W\d]\w*)*)"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|[=<>+*/%!()\[\],.-])",
    re.DOTALL,
)
_SIGN_OF_WORD = {"and": "&&", "or": "||", "not": "!"}
_WORDS = {"true": True, "false": False, "null": None}
_STRENGTH = {
    **{"||": 1, "&&": 2, "=": 3, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3},
    **{"+": 4, "-": 4, "*": 5, "/": 5, "%": 5},
}


class Expression(NamedTuple):
    """
    A part of an expression.

    Attributes:
        value: Of a literal, its value; else a name or a sign.
        parts: What it is made of: of a member or a method the object comes first.
    """

    kind: str
    value: object = None
    parts: tuple[Expression, ...] = ()


class Token(NamedTuple):
    kind: str
    text: str


def tokens_of(text: str) -> list[Token]:
    """Raises InputError: it is too long, or has a sign that means nothing."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            engine_text("A view has at most {most} characters.", most=f"{MAX_CHARACTERS:,}")
        )
    tokens, at = [], 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise unreadable(text[at : at + 20])
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match[0]))
        at = match.end()
    return tokens


def unreadable(text: str) -> InputError:
    hint = "docs/views.md says what a view may hold."
    if not text:
        return InputError("The view ends too early.", hint=hint)
    return InputError(
        engine_text("This part of a view cannot be read: {text}.", text=f"'{text}'"), hint=hint
    )


def parse(text: str) -> Expression:
    """The tree of a whole text. Raises InputError."""
    reader = TokenReader(tokens_of(text))
    node = reader.expression()
    reader.require_end()
    return node


class TokenReader:
    """Reads expressions from tokens, one after the other."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._signs = 0

    @property
    def next(self) -> Token:
        """The next token; an empty one at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else Token("end", "")

    def take(self) -> Token:
        token = self.next
        self._at += 1
        return token

    def take_word(self, *words: str) -> str | None:
        """The next word in lower case, and go on, if it is one of these."""
        word = self.next.text.lower()
        if self.next.kind != "word" or word not in words:
            return None
        self._at += 1
        return word

    def take_sign(self, sign: str) -> bool:
        if self.next != ("sign", sign):
            return False
        self._at += 1
        return True

    def require_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            raise unreadable(self.next.text)

    def require_end(self) -> None:
        if self.next.kind != "end":
            raise unreadable(self.next.text)

    def listed(self, read: Callable[[], Expression], end: str) -> tuple[Expression, ...]:
        """What stands between commas up to a closing sign."""
        nodes: list[Expression] = []
        while not self.take_sign(end):
            if nodes:
                self.require_sign(",")
            nodes.append(read())
        return tuple(nodes)

    def expression(self, strength: int = 1) -> Expression:
        """An expression whose signs bind at least so strongly. Raises InputError."""
        self._signs = self._signs if self._depth else 0
        self._depth += 1
        self._count()
        left = self._operand()
        while (sign := self._infix()) is not None and _STRENGTH[sign] >= strength:
            self._at += 1
            self._count()
            left = Expression("binary", sign, (left, self.expression(_STRENGTH[sign] + 1)))
        self._depth -= 1
        return left

    def _count(self) -> None:
        self._signs += 1
        if self._signs > _MAX_SIGNS:
            raise InputError(
                engine_text("An expression has at most {most} signs.", most=str(_MAX_SIGNS))
            )

    def _infix(self) -> str | None:
        token = self.next
        sign = _SIGN_OF_WORD.get(token.text.lower()) if token.kind == "word" else None
        sign = token.text if token.kind == "sign" else sign
        return sign if sign in _STRENGTH else None

    def _operand(self) -> Expression:
        token = self.take()
        if token.kind == "word" and token.text.lower() == "not" and self.next.text != ".":
            return Expression("unary", "!", (self.expression(3),))
        if token in (("sign", "!"), ("sign", "-")):
            # So that "!a.b" is "!(a.b)", and "-2 * 3" is "(-2) * 3".
            return Expression("unary", token.text, (self.expression(6),))
        node = self._first(token)
        while True:
            self._count()
            if self.take_sign("."):
                name = self.take()
                if name.kind != "word":
                    raise unreadable(name.text)
                if self.take_sign("("):
                    arguments = self.listed(self.expression, ")")
                    node = Expression("method", name.text.lower(), (node, *arguments))
                else:
                    node = Expression("member", name.text, (node,))
            elif self.take_sign("["):
                node = Expression("index", None, (node, self.expression()))
                self.require_sign("]")
            else:
                return node

    def _first(self, token: Token) -> Expression:
        match token.kind:
            case "number":
                return Expression("literal", float(token.text))
            case "string":
                return Expression(
                    "literal", re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
                )
            case "link":
                return Expression("link", token.text.lstrip("!")[2:-2])
            case "tag":
                return Expression("tag", token.text[1:])
            case "word" if token.text.lower() in _WORDS:
                return Expression("literal", _WORDS[token.text.lower()])
            case "word" if self.take_sign("("):
                name = token.text.lower()
                if name in ("dur", "duration"):
                    return Expression("call", "dur", (self._text_to_end(" "),))
                if name == "date" and self.next.kind == "number":
                    return Expression("call", name, (self._text_to_end(""),))
                return Expression("call", name, self.listed(self.expression, ")"))
            case "word":
                return Expression("name", token.text)
        if token == ("sign", "("):
            node = self.expression()
            self.require_sign(")")
            return node
        if token == ("sign", "["):
            return Expression("list", None, self.listed(self.expression, "]"))
        raise unreadable(token.text)

    def _text_to_end(self, between: str) -> Expression:
        """The text of ``dur(7 days)`` or ``date(2026-11-20)``, which is no expression."""
        words = []
        while not self.take_sign(")"):
            token = self.take()
            if token.kind not in ("number", "word", "string") and token.text not in (",", "-"):
                raise unreadable(token.text)
            words.append(token.text.strip("\"'"))
        return Expression("literal", between.join(words))
