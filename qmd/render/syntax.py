"""What Obsidian's Markdown has beside CommonMark, as rules of markdown-it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from types import ModuleType

from markdown_it import MarkdownIt, helpers
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.footnote.index import footnote_ref

from qmd.parse.markdown import MAX_FORMULA_LINES

#: Pushes the tokens of a match.
_Push = Callable[[StateInline, re.Match[str]], None]
_InlineRule = Callable[[StateInline, bool], bool]

_WIKILINK = re.compile(r"!?\[\[([^\[\]\n]{1,1000})\]\]")
_TAG = re.compile(r"#(?=[^\s#]*[^\W\d])([\w/-]{1,200})")
_BEFORE_TAG = re.compile(r"[\s(（「“,，。;；:：]")
_BLOCK_ID = re.compile(r"(?:^|\s)\^([A-Za-z0-9-]{1,100})\s*$")
_CALLOUT = re.compile(r"\[!([A-Za-z-]{1,40})(?:\|[^\]\n]{0,100})?\]([+-]?)[ \t]*(.*)")
_TASK = re.compile(r"\[(.)\][ \t\n]")
_FOOTNOTE = re.compile(r"\[\^[^\s\[\]]{1,100}\]")
_INLINE_FOOTNOTE = re.compile(r"\^\[[^\[\]\r\n]{1,1000}\]")
_MATH = re.compile(r"\$\$([^$]{1,2000})\$\$|\$(?![\s$])([^$\n]{1,2000})(?<!\s)\$(?!\d)")
_COMMENT = re.compile(r"%%[^%]{0,2000}%%")
_MAX_HIGHLIGHT = 2_000  # characters
_MAX_NESTING = 20  # blocks in blocks, and links and brackets in each other
#: Characters of a paragraph that are parsed at once: the parser takes more for each of many.
_MAX_INLINE = 4_000

#: Obsidian's other names of a kind of callout.
CALLOUTS = {
    "summary": "abstract", "tldr": "abstract", "hint": "tip", "important": "tip",
    "check": "success", "done": "success", "help": "question", "faq": "question",
    "caution": "warning", "attention": "warning", "fail": "failure", "missing": "failure",
    "error": "danger", "cite": "quote",
}  # fmt: skip

KINDS_NAMES = """
note abstract info todo tip success question warning failure danger bug example quote
"""
KINDS = frozenset(KINDS_NAMES.split())


@cache
def parser() -> MarkdownIt:
    """The parser of notes; it keeps no state between texts."""
    markdown = _common()
    markdown.enable(["strikethrough"])
    markdown.use(footnote_plugin, inline=False)
    markdown.inline.ruler.at("footnote_ref", _bounded_footnote)
    markdown.inline.ruler.before("escape", "math", _math)
    markdown.inline.ruler.before("emphasis", "inline_footnote", _inline_footnote)
    markdown.inline.ruler.before("link", "wikilink", _wikilink)
    markdown.inline.ruler.before("emphasis", "highlight", _highlight)
    markdown.inline.ruler.before("emphasis", "comment", _comment)
    markdown.inline.ruler.before("emphasis", "tag", _tag)
    markdown.block.ruler.before(
        "fence", "comment", _comment_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    markdown.block.ruler.before(
        "fence", "math_block", _math_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    markdown.core.ruler.before("inline", "callouts", _callouts)
    markdown.core.ruler.before("inline", "tasks", _tasks)
    markdown.core.ruler.push("block_ids", _block_ids)
    return markdown


@cache
def parser_of_blocks() -> MarkdownIt:
    """The parser of texts in which a line is text but for its links and its code."""
    markdown = _common()
    markdown.disable(["emphasis"])
    return markdown


def _common() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": True, "maxNesting": _MAX_NESTING})
    markdown.enable(["table"])
    markdown.core.ruler.at("inline", _inline)
    markdown.helpers = ModuleType(helpers.__name__)
    markdown.helpers.__dict__.update(vars(helpers), parseLinkLabel=_label_end)
    return markdown


def _inline(state: StateCore) -> None:
    """Parse the text of each block, a long one piece by piece."""
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            for piece in _pieces(token.content):
                state.md.inline.parse(piece, state.md, state.env, token.children)


def _pieces(content: str) -> list[str]:
    pieces = []
    at = 0
    while len(content) - at > _MAX_INLINE:
        middle, limit = at + _MAX_INLINE // 2, at + _MAX_INLINE
        cuts = (content.rfind(mark, middle, limit) for mark in ("\n", " ", "。"))
        cut = next((cut + 1 for cut in cuts if cut > 0), limit)
        pieces.append(content[at:cut])
        at = cut
    pieces.append(content[at:])
    return pieces


def _label_end(state: StateInline, start: int, disableNested: bool = False) -> int:
    """
    Where the label of a link or an image ends; -1 without an end, as in markdown-it.

    That one looks at twenty tokens after every bracket of a long row of them. This one gives up
    where more brackets are open than the text has closing ones.
    """
    source, cache, before = state.src, state.cache, state.pos
    closing = source.count("]", start, state.posMax)
    depth, at = 1, start + 1
    while depth <= closing and at < state.posMax:
        sign = source[at]
        if sign == "]":
            depth, closing = depth - 1, closing - 1
            if not depth:
                return at
        after = cache.get(at)
        if after is None:
            state.pos = at
            state.md.inline.skipToken(state)
            after, state.pos = state.pos, before
        if sign == "[":
            if after == at + 1:
                depth += 1
            elif disableNested:
                break
        at = after
    return -1


def _bounded_footnote(state: StateInline, silent: bool) -> bool:
    """``[^name]``; the plugin itself would look for its end up to that of the text."""
    if not state.src.startswith("[^", state.pos) or not _FOOTNOTE.match(state.src, state.pos):
        return False
    return footnote_ref(state, silent)


def _matching(begins: str, pattern: re.Pattern[str]) -> Callable[[_Push], _InlineRule]:
    """
    Make a rule for what a pattern matches of a function that pushes its tokens.

    Args:
        begins: The characters with which it may begin.
    """

    def rule_of(push: _Push) -> _InlineRule:
        def rule(state: StateInline, silent: bool) -> bool:
            at = state.pos
            match = pattern.match(state.src, at, state.posMax) if state.src[at] in begins else None
            if match is None:
                return False
            if not silent:
                push(state, match)
            state.pos = match.end()
            return True

        return rule

    return rule_of


@_matching("^", _INLINE_FOOTNOTE)
def _inline_footnote(state: StateInline, match: re.Match[str]) -> None:
    """``^[text]``; its text has no brackets, and so no footnote inside."""
    notes = state.env.setdefault("footnotes", {}).setdefault("list", {})
    state.env["footnotes"].setdefault("refs", {})
    number = len(notes)
    tokens: list[Token] = []
    content = match.group()[2:-1]
    notes[number] = {"content": content, "tokens": tokens}
    state.md.inline.parse(content, state.md, state.env, tokens)
    state.push("footnote_ref", "", 0).meta = {"id": number}


@_matching("$", _MATH)
def _math(state: StateInline, match: re.Match[str]) -> None:
    token = state.push("math_inline_double" if match[1] else "math_inline", "math", 0)
    token.content = match[1] or match[2]


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Lines from one that begins with ``$$`` to one that ends with it."""
    first = _line(state, start).strip()
    if not first.startswith("$$") or state.is_code_block(start):
        return False
    if len(first) > 3 and first.endswith("$$"):
        last, latex = start, first[2:-2]
    else:
        if "$$" in first[2:]:
            return False
        last = _closing_line(state, start, end)
        if last < 0:
            return False
        inner = [first[2:], *(_line(state, number) for number in range(start + 1, last + 1))]
        latex = "\n".join(inner).rstrip()[:-2]
    if not silent:
        state.line = last + 1
        token = state.push("math_block", "math", 0)
        token.content = latex
        token.map = [start, state.line]
    return True


def _closing_line(state: StateBlock, start: int, end: int) -> int:
    ends = state.env.get("formula_ends")
    if ends is None:  # all at once: a text may have thousands of `$$` that nothing closes
        lines = enumerate(zip(state.bMarks, state.eMarks, strict=True))
        ends = [at for at, marks in lines if state.src[slice(*marks)].rstrip().endswith("$$")]
        state.env["formula_ends"] = ends
    place = bisect_right(ends, start)
    if place == len(ends) or ends[place] >= min(end, start + MAX_FORMULA_LINES):
        return -1
    inside = state.sCount[start + 1 : ends[place] + 1]
    return ends[place] if min(inside) >= state.blkIndent else -1


@_matching("[!", _WIKILINK)
def _wikilink(state: StateInline, match: re.Match[str]) -> None:
    target, bar, shown = match[1].partition("|")
    token = state.push("embed" if match[0][0] == "!" else "wikilink", "", 0)
    token.content = target.removesuffix("\\").strip()
    token.meta = {"shown": shown.strip() if bar else None}


def _highlight(state: StateInline, silent: bool) -> bool:
    """``==marked==``"""
    begin, end = state.pos, state.posMax
    if not state.src.startswith("==", begin) or begin + 4 >= end:
        return False
    if state.src[begin + 2].isspace() or state.src[begin + 2] == "=":
        return False
    close = state.src.find("==", begin + 3, min(end, begin + _MAX_HIGHLIGHT))
    if close < 0 or state.src[close - 1].isspace():
        return False
    if not silent:
        state.push("mark_open", "mark", 1)
        state.pos, state.posMax = begin + 2, close
        state.md.inline.tokenize(state)
        state.push("mark_close", "mark", -1)
    state.pos, state.posMax = close + 2, end
    return True


@_matching("%", _COMMENT)
def _comment(state: StateInline, match: re.Match[str]) -> None:
    """``%%hidden%%``"""


def _tag(state: StateInline, silent: bool) -> bool:
    at = state.pos
    if state.src[at] != "#" or (at and not _BEFORE_TAG.match(state.src[at - 1])):
        return False
    match = _TAG.match(state.src, at, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("tag", "", 0)
        token.content = match[1].rstrip("/")
    state.pos = at + 1 + len(match[1].rstrip("/"))
    return True


def _comment_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Lines from one that begins with ``%%`` to one that ends with it."""
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    if not first.startswith("%%") or "%%" in first[2:]:
        return False
    if state.env.get("no_comment_ends_after", end) <= start:
        return False
    for line in range(start + 1, end):
        if "%%" in _line(state, line):
            break
    else:
        state.env["no_comment_ends_after"] = start  # the next one need not look as far
        return False
    if not silent:
        state.line = line + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _callouts(state: StateCore) -> None:
    """Turn quotes that begin with ``[!kind]`` into callouts."""
    result: list[Token] = []
    opened: list[Token] = []  # the quotes and callouts that are not closed yet
    tokens = state.tokens
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.type == "blockquote_open":
            match = None
            if at + 2 < len(tokens) and tokens[at + 1].type == "paragraph_open":
                match = _CALLOUT.match(tokens[at + 2].content)
            opened.append(token)
            if match:
                token.type = "callout_open"
                token.meta = {"kind": match[1].lower(), "fold": match[2]}
                title = Token("inline", "", 0, content=match[3] or match[1].capitalize())
                title.children, title.map = [], token.map
                result += [token, title, Token("callout_title_close", "", -1, meta=token.meta)]
                paragraph, body = tokens[at + 1], tokens[at + 2]
                body.content = body.content[match.end() :].lstrip("\n")
                if body.content:
                    if paragraph.map:  # its first line is the title
                        paragraph.map = [paragraph.map[0] + 1, paragraph.map[1]]
                    result += tokens[at + 1 : at + 4]
                at += 4
                continue
        elif token.type == "blockquote_close":
            begin = opened.pop()
            if begin.type == "callout_open":
                token.type, token.meta = "callout_close", begin.meta
        result.append(token)
        at += 1
    state.tokens = result


def _tasks(state: StateCore) -> None:
    """Take ``[ ]`` off the items of a list; the item's meta has the character inside."""
    for at, token in enumerate(state.tokens[:-2]):
        if token.type != "list_item_open" or state.tokens[at + 1].type != "paragraph_open":
            continue
        body = state.tokens[at + 2]
        match = _TASK.match(body.content + "\n")
        if match:
            token.meta = {"task": match[1]}
            body.content = body.content[match.end() :]
            body.meta = {"task": match[1]}


def _block_ids(state: StateCore) -> None:
    """Take ``^name`` off the end of a block; the block's meta has the name."""
    for at, token in enumerate(state.tokens):
        if token.type != "inline" or not token.children or "^" not in token.content:
            continue
        last = token.children[-1]
        if last.type != "text":
            continue
        match = _BLOCK_ID.search(last.content, max(0, len(last.content) - 110))
        if match:
            last.content = last.content[: match.start()]
            opened = state.tokens[at - 1]
            opened.meta = {**opened.meta, "block": match[1]}
