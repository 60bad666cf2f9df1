"""
Keeps text of other formats from looking like the blocks and links of Markdown.

Tags, wikilinks and fields are text in such files (`qmd.parse.document.parse_literal`), and so stay
as they are. Only what would be taken for a heading, a link or HTML gets a backslash before it,
because each backslash stands between the signs that a search for exactly these signs looks for;
emphasis stays for the same reason.
"""

from __future__ import annotations

import re

_ADDRESS = r"https?://|[A-Za-z0-9][^\s<>@]{0,63}@[^\s<>]{1,255}>"
#: Links, HTML, entities, comments and fences. An escape is taken whole, so that no second backslash
#: undoes the first. Addresses in angle brackets are links that stand in the text as such.
_SIGNS = re.compile(
    rf"\\.|\](?=\()|<(?=[A-Za-z/!?])(?!{_ADDRESS})"
    r"|&(?=\#?\w{1,31};)|%(?=%)|`{3,}|~{3,}",
    re.DOTALL,
)
#: What means something only where a line begins: headings, rules below text, definitions, and the
#: rules that would begin frontmatter.
_LINE_BEGINNING = re.compile(
    r"(?:\A|(?<=[\r\n]))([ \t]*)"
    r"(?=#{1,6}(?:[ \t\r\n]|\Z)|(?:-+|=+|\++)[ \t]*(?:[\r\n]|\Z)|\[[^\[\]\r\n]{1,999}\]:)"
)


#: Tags, wikilinks, fields, boxes of tasks, formulas, and emphasis that the page did not mean.
_OF_NOTES = re.compile(
    r"\\.|(?<!\S)#(?=[\w/-]*[^\W\d_])|\[(?=\[)|\A\](?=\])|::(?=\s)|\[(?=[ xX/\-]\]\s)"
    r"|\$(?=[^\s$][^$\n]*\$)|\*(?=\*|[^\s*][^*\n]*\*)|(?<!\w)_(?=\w)|~(?=~)|=(?==\w)",
    re.DOTALL,
)
_IN_LABEL = re.compile(r"\\.|[\[\]]|\\\Z", re.DOTALL)
_UNLINKABLE = re.compile(r"[<>`\x00-\x1f\x7f]|%%")
_IN_ANGLES = re.compile(r"[\s()\\]")
#: Characters of the target of a link; such a long one is data.
MAX_TARGET = 2000


def inert(text: str) -> str:
    """
    Text inside a paragraph, as Markdown that says the same and means nothing else.

    `inert_lines` also takes care of what begins a line.
    """
    return _SIGNS.sub(_marked, text)


def inert_in_note(text: str) -> str:
    """
    Text inside a paragraph of a note: also without tags, wikilinks, fields, tasks and formulas.

    Other than the text of a file, which is read as text, a note would have them.
    """
    return in_note(inert(text))


def in_note(markdown: str) -> str:
    """Markdown of text without what only a note would have."""
    return _OF_NOTES.sub(_marked_in_note, markdown)


def _marked_in_note(match: re.Match[str]) -> str:
    sign = match.group()
    if sign[0] == "\\":
        return sign
    if sign == "::":  # a field is a key, two colons and a blank
        return ":\\:"
    return f"\\{sign}"


def inert_lines(text: str) -> str:
    """Whole lines of plain text, as Markdown without headings, links, HTML and fences."""
    return inert_beginnings(inert(text))


def inert_beginnings(markdown: str) -> str:
    """Markdown whose lines do not begin as headings, rules and definitions do."""
    return _LINE_BEGINNING.sub(r"\1\\", markdown)


def _marked(match: re.Match[str]) -> str:
    sign = match.group()
    if sign[0] == "\\":
        return sign
    if sign[0] in "]%":  # of these pairs, the second sign is the one to mark
        return f"{sign}\\"
    return f"\\{sign}"


def code_span(text: str) -> str:
    """Code inside a line, between backticks; of a text without visible signs, the text."""
    line = " ".join(text.split("\n"))
    if not line.strip():
        return line
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    if not longest:
        return f"`{line}`"
    marks = "`" * (longest + 1)
    return f"{marks} {line} {marks}"


def fenced(text: str, language: str = "") -> str:
    """
    Lines of code between fences that nothing in them closes.

    Args:
        language: Kept if it is one word of letters, digits and ``+#-_.``.
    """
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    marks = "`" * (longest + 1)
    if not re.fullmatch(r"[\w+#.-]{1,40}", language):
        language = ""
    end = "" if text.endswith("\n") else "\n"
    return f"{marks}{language}\n{text}{end}{marks}"


def link(text: str, target: str) -> str:
    """
    A link of Markdown; the text alone if the target cannot be written.

    Args:
        text: Markdown without links.
    """
    if not target or not text.strip() or _UNLINKABLE.search(target) or len(target) > MAX_TARGET:
        return text
    if _IN_ANGLES.search(target):
        target = f"<{target}>"
    label = _IN_LABEL.sub(_bracket, " ".join(text.split()))
    return f"[{label}]({target})"


def _bracket(match: re.Match[str]) -> str:
    sign = match.group()
    return sign if len(sign) == 2 else f"\\{sign}"
