"""
Finds the links of a text, and no links in its code.

They are Markdown links and images, reference links, wikilinks and embeds. One pass over the
brackets with a stack, as in CommonMark, visits each bracket once.

`mask_code` copies a text and overwrites its code, character by character, with NUL. Links, tags and
fields are searched in the copy, so that their parsers need not know what code is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Literal, NamedTuple

from qmd.parse import frontmatter, markdown
from qmd.parse.markdown import Outline
from qmd.records import dataclass, of_tuples
from qmd.values import Link, LinkKind

_MAX_TEXT = 300  # characters of a link's text that are kept
_MAX_DEPTH = 8  # nested parentheses in a target
_MAX_OPEN = 1000  # brackets open at the same time; more is no prose
#: The most characters that links may copy, or the length of the text if that is more: 15,000
#: short references to one long target would fill gigabytes. (cmark has the same limit.)
_MAX_COPIED = 100_000

_PLAIN = r"([^\[\]\\]*)\]\(([^\s()<>\\\0]+)\)"
# As in Obsidian a single bracket does not end a wikilink; code in it (NUL) is part of its name.
_IN_WIKILINK = r"[^\[\]\r\n]+(?:\](?!\])[^\[\]\r\n]+)*"
# A plain link, a wikilink, a bracket that opens.
_OPENING = re.compile(rf"\[(?:{_PLAIN}|\[({_IN_WIKILINK})\]\]|)", re.DOTALL)
_DESTINATION = re.compile(
    r"\([ \t]*(?:(?:\r\n|\r|\n)[ \t]*)?"
    r"(?:<([^<>\r\n]*)>|([^\s()<\\\0][^\s()\\\0]*(?:\([^\s()\\\0]*\)[^\s()\\\0]*)*))"
    r"(?=[\s)])(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
)
_SLOW_DESTINATION = re.compile(r"\\.|[()]|[\s\0]", re.DOTALL)
_TITLE_END = re.compile(r"\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\))\s*\)|\s*\)")
_LABEL = re.compile(r"\[([^\[\]\0]{0,999})\]")
_DEFINITION = re.compile(
    r"\[([^\[\]]{1,999})\]:[ \t]*(?:(?:\r\n|\r|\n)[ \t]*)?(?:<([^<>\r\n]*)>|([^\s<]\S*))"
)
# Groups 1 to 3 are those of a double-quoted value, 4 to 6 of a single-quoted one.
_PROPERTY_LINK = re.compile(
    "|".join(
        f"{q}[ \\t]*(?:!?\\[\\[((?:[^\\[\\]\\r\\n\\\\{q}]|\\](?![\\]{q}]))+)\\]\\]"
        f"|\\[([^\\[\\]\\r\\n\\\\{q}]*)\\]\\(([^\\s()<>\\\\{q}]+)\\))[ \\t]*{q}"
        for q in "\"'"
    )
)
_link = of_tuples(Link)
_TOO_MANY_REFERENCES = (
    "The text refers to long link targets too often; the rest of these links was left out."
)
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:|//")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


#: A link as it stands in the text: its start and end (without the ``!`` of an image or an embed),
#: its kind, its target with ``#heading`` and ``|text``, its label, and the start and end of the
#: target, for a reference link in its definition. The offsets count characters. (To make a named
#: tuple takes five times as long.)
WrittenLink = tuple[int, int, LinkKind, str, "str | None", int, int]


class DocumentLinks(NamedTuple):
    """
    The links of a text, in order.

    Attributes:
        written: `links`, as they stand in the text.
    """

    links: tuple[Link, ...] = ()
    written: Sequence[WrittenLink] = ()
    warnings: tuple[str, ...] = ()


#: A target, and the characters ``[start, end)`` at which it stands.
_Target = tuple[str, int, int]


class _Copies:
    """
    Counts characters that several links copy, such as the target of a definition that many
    links refer to, or nested link texts.
    """

    def __init__(self, text: str) -> None:
        self.left = max(_MAX_COPIED, len(text))

    def fit(self, copied: str) -> bool:
        """Count one more copy; whether it is still within the limit."""
        self.left -= len(copied)
        return self.left >= 0


def may_have_links(text: str, outline: Outline) -> bool:
    """Whether a text may have links; cheap, so that most texts without links are not searched."""
    return "](" in text or "[[" in text or bool(outline.definitions)


def find_links(text: str, masked: str, outline: Outline, body_start: int = 0) -> DocumentLinks:
    """
    Every link outside code, those of the frontmatter's properties first.

    Args:
        masked: The text without code and comments (`mask_code`, `mask_comments`).
        body_start: Where the text after the frontmatter begins.
    """
    properties = _property_links(text, body_start)
    scan = _BracketScan(text, masked, outline)
    scan.run()
    return _document_links(properties + scan.links, outline, scan.warnings)


def _property_links(text: str, body_start: int) -> list[WrittenLink]:
    """
    The values of properties that are a link and nothing else, as in Obsidian.

    YAML needs quotes around a wikilink: ``[[Note]]`` without them is a list in a list.
    """
    if not body_start or text.find("](", 0, body_start) == text.find("[[", 0, body_start) == -1:
        return []
    links: list[WrittenLink] = []
    for match in _PROPERTY_LINK.finditer(text, 0, body_start):
        group = match.lastindex or 0
        target, begin, end = match[group], *match.span(group)
        if group % 3 == 1:
            kind: LinkKind = "embed" if text[begin - 3] == "!" else "wikilink"
            links.append((begin - 2, end + 2, kind, target, None, begin, end))
        else:
            inner, stop = match.span(group - 1)
            label = _label(text, inner, stop)
            links.append((inner - 1, end + 1, "link", target, label, begin, end))
    return links


class _BracketScan:
    """The state of one pass over the brackets of a text."""

    def __init__(self, text: str, masked: str, outline: Outline) -> None:
        self.text = text
        self.masked = masked
        self.definitions, self.defined_at = _definitions(masked, outline)
        self.links: list[WrittenLink] = []
        self.warnings: tuple[str, ...] = ()
        self.open: list[tuple[int, int, bool]] = []  # start, start of the text, is an image
        self.skip_to = 0  # brackets before this are part of a link
        self.targets, self.labels = _Copies(masked), _Copies(masked)

    def run(self) -> None:
        masked = self.masked
        end = 0
        begin = masked.find("[")  # plain searches take a fifth of the time of a pattern for both
        close = masked.find("]")
        while begin >= 0 or (self.open and close >= 0):
            if self.open and close >= 0 and (close < begin or begin < 0):
                end = close + 1
                if close >= self.skip_to and not _is_escaped(masked, close):
                    self.close_bracket(close, end)
            else:
                end = self.read_bracket(begin)
            if 0 <= begin < end:
                begin = masked.find("[", end)
            if self.open and 0 <= close < end:
                close = masked.find("]", end)
        self.links.sort(key=itemgetter(0))
        if self.targets.left < 0:
            self.warnings = (_TOO_MANY_REFERENCES,)

    def read_bracket(self, begin: int) -> int:
        """Open the bracket at ``begin``, or read the link that it begins; where that ends."""
        if _is_escaped(self.masked, begin):
            return begin + 1
        match = _OPENING.match(self.masked, begin)
        assert match is not None
        if begin >= self.skip_to:
            self.open_bracket(match, begin, match.end())
        return match.end()

    def open_bracket(self, match: re.Match[str], begin: int, end: int) -> None:
        """A plain link or a wikilink is complete; any other bracket waits for its end."""
        if match[2] is not None:
            self.links.append(_plain_link(self.text, self.masked, match))
            return
        marked = begin > 0 and self.masked[begin - 1] == "!"
        if match[3] is not None and self.double_bracket(begin, end, match.span(3), marked):
            return
        if len(self.open) >= _MAX_OPEN:
            del self.open[: _MAX_OPEN // 2]
        self.open.append((begin, end, marked))

    def double_bracket(self, begin: int, end: int, inner: tuple[int, int], is_marked: bool) -> bool:
        """
        A wikilink, or a link whose text is in brackets: ``[[1]](url)`` or ``[[1]][label]``.

        False if it is neither: a paragraph's code span may hide line ends.
        """
        start, stop = inner
        if self.masked.startswith(("(", "["), end):
            self.open.append((begin, begin + 1, is_marked))
            links = len(self.links)
            self.close_bracket(end - 1, end)
            if len(self.links) > links:
                return True
        target = self.text[start:stop]
        if not target.strip() or "\n" in target or "\r" in target:
            return False
        kind: LinkKind = "embed" if is_marked else "wikilink"
        self.links.append((begin, end, kind, target, None, start, stop))
        return True

    def close_bracket(self, begin: int, end: int) -> None:
        """The innermost open bracket ends here: a link, if a target follows or is defined."""
        start, inner, is_image = self.open.pop()
        target: _Target | None = None
        stop = end
        if self.masked.startswith("(", end):
            target, stop = _destination(self.masked, end)
        if target is None:
            if not self.definitions or start in self.defined_at:
                return
            target, stop = _reference(self.masked, inner, begin, end, self.definitions)
            if target is None or not self.targets.fit(target[0]):
                return
        if target[0]:
            label = _label(self.text, inner, begin)
            if label is not None and not self.labels.fit(label):
                label = None
            kind: LinkKind = "image" if is_image else "link"
            self.links.append((start, stop, kind, target[0], label, *target[1:]))
        self.skip_to = stop


def _is_escaped(text: str, at: int) -> bool:
    """Whether an odd number of backslashes stands before a character."""
    before = at
    while before and text[before - 1] == "\\":
        before -= 1
    return (at - before) % 2 == 1


def _plain_link(text: str, masked: str, match: re.Match[str]) -> WrittenLink:
    begin, end = match.span()
    inner, stop = match.span(1)
    kind: LinkKind = "image" if begin and masked[begin - 1] == "!" else "link"
    # The target begins after "](" and ends before ")".
    return (begin, end, kind, match[2], _label(text, inner, stop), stop + 2, end - 1)


def _label(text: str, begin: int, end: int) -> str | None:
    return " ".join(text[begin : min(end, begin + _MAX_TEXT)].split()) or None


def _document_links(
    written: list[WrittenLink], outline: Outline, warnings: tuple[str, ...] = ()
) -> DocumentLinks:
    starts = outline.starts
    return DocumentLinks(
        tuple(
            make_link(kind, target, label, bisect_right(starts, start))
            for start, _, kind, target, label, _, _ in written
        ),
        written,
        warnings,
    )


def _destination(masked: str, at: int) -> tuple[_Target | None, int]:
    """The target in the parentheses at ``at``, None if there is none, and where they end."""
    match = _DESTINATION.match(masked, at)
    if match is not None:
        group = 1 if match[1] is not None else 2
        return (match[group], *match.span(group)), match.end()
    if masked.startswith("()", at):
        return ("", at + 1, at + 1), at + 2
    return _nested_destination(masked, at)


def _nested_destination(masked: str, at: int) -> tuple[_Target | None, int]:
    """As `_destination`, for a target with backslashes or nested parentheses."""
    depth = 0
    begin = at + 1
    if masked.startswith("<", begin):
        return None, at  # it has no end
    for token in _SLOW_DESTINATION.finditer(masked, begin, begin + 2000):
        character = token.group()
        if character == "(":
            depth += 1
            if depth > _MAX_DEPTH:
                break
        elif character == ")":
            if depth == 0:
                return _escaped_target(masked, begin, token.start()), token.end()
            depth -= 1
        elif character[0] != "\\":  # white space: only a title may follow
            end = _TITLE_END.match(masked, token.start()) if depth == 0 else None
            if end is None or token.start() == begin:
                break
            return _escaped_target(masked, begin, token.start()), end.end()
    return None, at


def _escaped_target(masked: str, begin: int, end: int) -> _Target:
    return _ESCAPED.sub(r"\1", masked[begin:end]), begin, end


def _reference(
    masked: str, inner: int, begin: int, end: int, definitions: dict[str, _Target]
) -> tuple[_Target | None, int]:
    """``[text][label]``, ``[label][]`` or ``[label]``."""
    label = _LABEL.match(masked, end)
    if label is not None and label[1].strip():
        return definitions.get(_normal_label(label[1])), label.end()
    stop = end if label is None else label.end()
    if begin - inner > 999:
        return None, end
    return definitions.get(_normal_label(masked[inner:begin])), stop


def _definitions(masked: str, outline: Outline) -> tuple[dict[str, _Target], set[int]]:
    """Normalised label → target (the first definition counts), and the definitions' offsets."""
    targets: dict[str, _Target] = {}
    offsets: set[int] = set()
    for line in outline.definitions:
        at = outline.starts[line]
        while masked[at] in " \t":
            at += 1
        match = _DEFINITION.match(masked, at)
        if match is None or match[1].startswith("^"):
            continue
        offsets.add(at)
        group = 2 if match[2] is not None else 3
        targets.setdefault(_normal_label(match[1]), (match[group], *match.span(group)))
    return targets, offsets


def _normal_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def make_link(kind: LinkKind, target: str, label: str | None, line: int) -> Link:
    """The parts of a target as it is written: its path, heading, block and what it shows."""
    heading: str | None = None
    block: str | None = None
    if kind in ("wikilink", "embed"):
        target, bar, alias = target.partition("|")
        if bar:
            target = target.removesuffix("\\")  # in a table the bar is escaped
            label = alias.strip() or None
        target, heading, block = _anchor(target.strip())
    elif "#" in target and not SCHEME.match(target):
        # In a URL the part after "#" may be what names the page: it stays.
        target, heading, block = _anchor(target)
    return _link((kind, target, label, heading, block, line, None))


def _anchor(target: str) -> tuple[str, str | None, str | None]:
    """Path, heading and block of ``path#heading`` or ``path#^block``."""
    path, mark, anchor = target.partition("#")
    anchor = anchor.strip()
    if not mark or not anchor:
        return path.strip(), None, None
    if anchor.startswith("^"):
        return path.strip(), None, anchor[1:] or None
    heading, mark, block = anchor.partition("#^")
    return path.strip(), heading or None, block or None


# --- where their paths stand, for what rewrites links ---------------------------------------

#: Where a link's path stands: in ``[[…]]``, in ``(…)``, in ``(<…>)``, or in the definition
#: ``[label]: …`` or ``[label]: <…>`` that the link refers to.
PathForm = Literal["wikilink", "inline", "angle", "definition", "angle definition"]


@dataclass(frozen=True, slots=True)
class LinkSpan:
    """
    A link and where it stands; offsets count characters of the text.

    Several links have the same path span if they refer to one definition.

    Attributes:
        start, end: The whole link, without the ``!`` of an image or an embed.
        path_start, path_end: The path: ``link.target`` as written, with percent signs and
            backslashes, without ``#heading`` and ``|text``. Empty for a link into its own note.
    """

    link: Link
    start: int
    end: int
    path_start: int
    path_end: int
    form: PathForm


def link_spans(text: str) -> tuple[LinkSpan, ...]:
    """The links of a Markdown text in order, those of its properties first; time is linear."""
    body_start = frontmatter.split(text).body_start
    structure = markdown.outline(text, body_start)
    if not may_have_links(text, structure):
        return ()
    masked = mask_comments(mask_code(text, body_start, structure))
    links = find_links(text, masked, structure, body_start)
    return tuple(
        _span(text, link, written) for link, written in zip(links.links, links.written, strict=True)
    )


def _span(text: str, link: Link, written: WrittenLink) -> LinkSpan:
    start, end, _, _, _, begin, stop = written
    return LinkSpan(
        link,
        start,
        end,
        *_path_span(text, link, begin, stop),
        _form(text, link, is_inline=start <= begin < end, begin=begin),
    )


def _path_span(text: str, link: Link, begin: int, end: int) -> tuple[int, int]:
    """The characters of a target without heading, block and text, and without blanks around."""
    if link.kind in ("wikilink", "embed"):
        bar = text.find("|", begin, end)
        if bar >= 0:
            end = bar - 1 if bar > begin and text[bar - 1] == "\\" else bar
        mark = text.find("#", begin, end)
    else:
        mark = -1 if SCHEME.match(text, begin, end) else text.find("#", begin, end)
    if mark >= 0:
        end = mark - 1 if mark > begin and text[mark - 1] == "\\" else mark
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    return begin, end


def _form(text: str, link: Link, *, is_inline: bool, begin: int) -> PathForm:
    if link.kind in ("wikilink", "embed"):
        return "wikilink"
    if text[begin - 1] == "<":
        return "angle" if is_inline else "angle definition"
    return "inline" if is_inline else "definition"


HIDDEN = "\0"  # never occurs in decoded text

_TICKS = re.compile(r"`+")
_ESCAPED_PAIR = re.compile(r"\\`|`(?:[^`\r\n\0]*`)?")
_NO_LINE_END = re.compile(r"[^\r\n]")
#: A formula inside a line; longer ones and those of several lines are `Outline.formulas`.
_FORMULA = re.compile(r"(?<![\\$])\$\$[^$\r\n\0]{1,2000}\$\$")
_COMMENT_MARK = re.compile("%%")
_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)")
_BLOCK_EDGE = re.compile(r"\0|[\r\n][ \t]*(?:[\r\n]|[-*+#|>]|\d{1,9}[.)][ \t])")


def mask_code(text: str, body_start: int, outline: Outline) -> str:
    """
    ``text`` with frontmatter, code, lines of comments and formulas overwritten.

    Formulas between single dollar signs stay: prices look like them.
    """
    starts = outline.starts
    size = len(text)
    pieces: list[str] = []
    at = 0
    if body_start:
        pieces.append(_hidden_lines(body_start))
        at = body_start
    for first, last in outline.hidden:
        begin = starts[first]
        end = starts[last] if last < len(starts) else size
        pieces.append(text[at:begin])
        pieces.append(_hidden_lines(end - begin))
        at = end
    if pieces:
        pieces.append(text[at:])
        text = "".join(pieces)
    if "`" in text:
        text = _mask_spans(text)
    if "$$" in text:
        text = _FORMULA.sub(lambda match: HIDDEN * len(match[0]), text)
    return text


def mask_comments(text: str) -> str:
    """The result of `mask_code` with Obsidian's comments ``%% … %%`` in paragraphs overwritten."""
    if "%" not in text or "%%" not in text:  # the first test is a hundred times as fast
        return text
    pieces: list[str] = []
    at = 0
    begin = -1
    for match in _COMMENT_MARK.finditer(text):
        if begin < 0 or _BLANK_LINE.search(text, begin, match.start()):
            begin = match.start()
            continue
        pieces.append(text[at:begin])
        at = match.end()
        # Line ends stay, so that the next line still begins a line.
        pieces.append(_NO_LINE_END.sub(HIDDEN, text[begin:at]))
        begin = -1
    pieces.append(text[at:])
    return "".join(pieces)


def _hidden_lines(size: int) -> str:
    """The mask of whole lines. It ends with a line end, so that the next text begins a line."""
    return HIDDEN * (size - 1) + "\n"


def _mask_spans(text: str) -> str:
    """Overwrite code spans; fast if all are on one line, between single backticks."""
    if "\\" in text and "\\`" in text:
        return _mask_unescaped_spans(text)
    parts = text.split("`")  # every other one is in a span
    inside = "".join(parts[1::2])
    is_plain = len(parts) % 2 and "" not in parts[1:-1]
    if not is_plain or "\n" in inside or "\r" in inside or HIDDEN in inside:
        return _mask_any_spans(text)
    parts[1::2] = [HIDDEN * (len(part) + 2) for part in parts[1::2]]
    return "".join(parts)


def _mask_unescaped_spans(text: str) -> str:
    """As `_mask_spans`, where a backslash stands before a backtick."""
    if "``" in text:
        return _mask_any_spans(text)
    pieces: list[str] = []
    at = 0
    for match in _ESCAPED_PAIR.finditer(text):
        begin, end = match.span()
        if end - begin == 1:
            return _mask_any_spans(text)
        if text[begin] == "`":
            pieces.append(text[at:begin])
            pieces.append(HIDDEN * (end - begin))
            at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _mask_any_spans(text: str) -> str:
    """As `_mask_spans`, for runs of backticks of any length and spans over several lines."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    by_length: dict[int, list[int]] = {}
    for index, (begin, end) in enumerate(runs):
        by_length.setdefault(end - begin, []).append(index)
    pieces: list[str] = []
    at = 0
    index = 0
    edge = -1  # the next place after the current run where a paragraph may end
    while index < len(runs):
        begin, end = runs[index]
        if begin and text[begin - 1] == "\\" and end - begin == 1:
            index += 1
            continue
        same = by_length[end - begin]
        position = bisect_right(same, index)
        if position == len(same):
            index += 1
            continue
        closer = same[position]
        stop = runs[closer][1]
        # A code span ends with its paragraph: a stray backtick must not swallow the page.
        if edge < end:
            match = _BLOCK_EDGE.search(text, end)
            edge = match.start() if match else len(text)
        if stop > edge:
            index += 1
            continue
        pieces.append(text[at:begin])
        pieces.append(HIDDEN * (stop - begin))
        at = stop
        index = closer + 1
    if not pieces:
        return text
    pieces.append(text[at:])
    return "".join(pieces)
