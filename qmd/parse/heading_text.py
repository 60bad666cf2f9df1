"""Removes the Markdown from a heading."""

from __future__ import annotations

import re
from html import unescape

_MARKUP = re.compile(r"[\\`*_\[<&~={]")
_COMMENT = re.compile(r"%%.*?%%")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_WIKILINK = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\](?!\()")
_FOOTNOTE = re.compile(r"\[\^[^\[\]]+\]")
_INLINE_LINK = re.compile(
    r"!?\[([^\[\]]*)\](?:\((?:<[^<>]*>|[^()<>]*(?:\([^()]*\)[^()]*)*)\)|\[[^\[\]]*\])"
)
_AUTOLINK = re.compile(r"<([a-zA-Z][a-zA-Z0-9+.-]*:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>")
_TAG = re.compile(r"<(?:/?[a-zA-Z][^<>]*|!--[^<>]*--)>")
_EMPHASIS = re.compile(
    r"(\*{1,3})(?=\S)([^*]+?)(?<=\S)\1"
    r"|~~(?=\S)([^~]+?)~~|==(?=\S)([^=]+?)=="
    r"|(?<!\w)(_{1,3})(?=\S)(.{1,200}?)(?<=\S)\5(?!\w)"
)
_ATTRIBUTES = re.compile(r"[ \t]*\{:?[ \t]*[#.][^{}]*\}[ \t]*$")

# Escaped characters and code must not be taken for markup, so characters of a private plane stand
# for them until the markup is removed.
_SHIELD = {code: chr(0xF0000 + code) for code in range(0x21, 0x7F) if not chr(code).isalnum()}
_UNSHIELD = {ord(value): chr(code) for code, value in _SHIELD.items()}


def heading_text(raw: str) -> str:
    """A heading's text without its Markdown: links as their text, no emphasis, no code marks."""
    if "%%" in raw:
        raw = _COMMENT.sub("", raw).strip()
    if not _MARKUP.search(raw):
        return " ".join(raw.split()) if "  " in raw or "\t" in raw else raw
    text = raw
    # To ask for the sign that a pattern needs takes a tenth of the time of the pattern.
    if "{" in text:
        text = _ATTRIBUTES.sub("", text)
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: match[1].translate(_SHIELD), text)
    if "`" in text:
        text = _CODE.sub(lambda match: match[2].strip().translate(_SHIELD), text)
    if "[" in text:
        text = _without_links(text)
    if "<" in text:
        text = _AUTOLINK.sub(r"\1", text)
        text = _TAG.sub("", text)
    text = _without_emphasis(text)
    if "&" in text:
        text = unescape(text)
    if not text.isascii():
        text = text.translate(_UNSHIELD)
    # The decoder never lets NUL through, so `unescape` must not bring it in.
    return " ".join(text.split()).replace("\0", "\ufffd")


def _without_links(text: str) -> str:
    """Replace links by their text, and remove footnotes."""
    if "[^" in text:
        text = _FOOTNOTE.sub("", text)
    if "[[" in text:
        text = _WIKILINK.sub(r"\1", text)
    for _ in range(2):  # an image inside a link
        if "](" in text or "][" in text:
            text = _INLINE_LINK.sub(r"\1", text)
    return text


def _without_emphasis(text: str) -> str:
    if not ("*" in text or "_" in text or "~~" in text or "==" in text):
        return text
    for _ in range(3):
        bare = _EMPHASIS.sub(lambda match: match[2] or match[3] or match[4] or match[6], text)
        if bare == text:
            break
        text = bare
    return text
