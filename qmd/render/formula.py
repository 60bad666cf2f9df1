"""Writes formulas of LaTeX as MathML, which browsers show without a library."""

from __future__ import annotations

from functools import lru_cache
from html import escape, unescape
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import convert_to_element

_MAX_DEPTH = 60  # braces in braces; the converter calls itself for each

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
"""What the converter raises for a formula that it cannot read; its errors have no common base."""


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
