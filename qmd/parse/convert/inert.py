"""
Keeps text of other formats from meaning something in Markdown.

What only looks like a heading, a tag, a link or a property gets a backslash before it. Only what
qmd or a browser would take for more than text is marked, because each backslash stands between the
signs that a search for exactly these signs looks for: emphasis stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from qmd.parse.code_mask import mask_code
from qmd.parse.markdown import outline
from qmd.parse.tags import is_tag

_TAG_SIGN = "\\w/\\-\u2600-\u27bf\ufe0f\u200d\U0001f1e6-\U0001faff"
#: An escape is taken whole, so that no second backslash undoes the first.
_TAG_OR_FIELD = rf"\\.|(?<!\S)\#(?P<tag>[{_TAG_SIGN}]+)|::(?=[ \t])"
_ADDRESS = r"https?://|[A-Za-z0-9][^\s<>@]{0,63}@[^\s<>]{1,255}>"
#: Also what would be a link, HTML, an entity, a comment or a fence. Addresses in angle brackets
#: are links that stand in the text as such.
_IN_TEXT = re.compile(
    rf"{_TAG_OR_FIELD}|\[(?=\[)|\](?=\()|<(?=[A-Za-z/!?])(?!{_ADDRESS})"
    r"|&(?=\#?\w{1,31};)|%(?=%)|`{3,}|~{3,}",
    re.DOTALL,
)
_IN_MARKDOWN = re.compile(rf"{_TAG_OR_FIELD}|\[(?=\[)(?!\[[^\[\]\n]*\]\]\()", re.DOTALL)
#: What means something only where a line begins: headings, rules below text, definitions, and the
#: rules that would begin frontmatter.
_LINE_BEGINNING = re.compile(
    r"(?:\A|(?<=[\r\n]))([ \t]*)"
    r"(?=#{1,6}(?:[ \t\r\n]|\Z)|(?:-+|=+|\++)[ \t]*(?:[\r\n]|\Z)|\[[^\[\]\r\n]{1,999}\]:)"
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
    return _with_backslashes(text, _IN_TEXT.finditer(text))


def inert_lines(text: str) -> str:
    """Whole lines of plain text, as Markdown without headings, tags, links and properties."""
    return _LINE_BEGINNING.sub(r"\1\\", inert(text))


def inert_markdown(text: str) -> str:
    """
    Markdown of another program without what only qmd would take for a tag, link or property.

    Its headings, code and links stay.
    """
    if _IN_MARKDOWN.search(text) is None:
        return text
    masked = mask_code(text, 0, outline(text))
    return _with_backslashes(text, _IN_MARKDOWN.finditer(masked))


def _with_backslashes(text: str, signs: Iterable[re.Match[str]]) -> str:
    pieces: list[str] = []
    at = 0
    for match in signs:
        sign, start = match.group(), match.start()
        if sign[0] == "\\" or (match["tag"] and not is_tag(match["tag"])):
            continue
        if sign[0] in "]%":  # of these pairs, the second sign is the one to mark
            start += 1
        pieces += [text[at:start], "\\"]
        at = start
    return "".join([*pieces, text[at:]]) if pieces else text


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
