"""Writes the HTML of parsed Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from urllib.parse import quote, unquote, urlsplit

from markdown_it.token import Token

from qmd.render.clean import Marked, RawHtml
from qmd.render.code import Painter
from qmd.render.syntax import CALLOUTS, KINDS, parser
from qmd.render.values import VIEWS, Target, link_id, shown_target

_WIDTH = re.compile(r"(\d{1,4})(?:x(\d{1,4}))?")
_BARE_ADDRESS = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]（）【】，。；：！？、]{1,2000}")
_TRAILING = ".,;:!?*_~"
_ALIGNED = re.compile(r"text-align:(left|right|center)")
_LINE_BLOCKS_NAMES = """
paragraph_open heading_open list_item_open tr_open blockquote_open callout_open fence
code_block math_block math_block_label hr
"""
_LINE_BLOCKS = frozenset(_LINE_BLOCKS_NAMES.split())


class HtmlWriter:
    """
    Writes the tokens of one text.

    Args:
        targets: What its links lead to: id of the token → target.
        first_line: The number of the text's first line; None to leave out the lines.
        may_tick: Whether the boxes of its tasks can be changed.
        breaks_lines: Whether a line end inside a paragraph is shown as one.
        embed: The HTML of an embedded document; None to show a link.
        view: The HTML of the tables that a block of code describes, by its language and its text;
            None to show the code.
    """

    def __init__(
        self,
        marked: Marked,
        targets: Mapping[int, Target],
        *,
        first_line: int | None,
        may_tick: bool,
        breaks_lines: bool,
        embed: Callable[[str], str | None],
        view: Callable[[str, str], str | None],
    ) -> None:
        self._marked = marked
        self._targets = targets
        self._first_line = first_line
        self._may_tick = may_tick
        self._soft_break = "<br>\n" if breaks_lines else "\n"
        self._embed = embed
        self._view = view
        self._painter = Painter()
        self._raw = RawHtml()
        self._floors: list[int] = []  # of the open blocks, see `RawHtml.enter`
        self._task: tuple[str, int] | None = None  # of the item that has just begun, and its line
        self._anchors: list[str] = []  # the closing tags of the open links
        self._plain = parser().renderer
        self._blocks: dict[str, Callable[[Token], str]] = {
            "fence": self._fence,
            "code_block": self._fence,
            "math_block": self._math_block,
            "math_block_label": self._math_block,
            "table_open": lambda _: f'<div class="{self._marked("scroll")}"><table>',
            "table_close": lambda _: "</table></div>\n",
            "callout_open": self._callout_open,
            "callout_title_close": self._callout_title_close,
            "callout_close": self._callout_close,
        }
        self._texts: dict[str, Callable[[Token], str]] = {
            "text": self._text,
            "softbreak": lambda _: self._soft_break,
            "link_open": self._link_open,
            "link_close": self._link_close,
            "wikilink": self._wikilink,
            "embed": self._embed_token,
            "image": self._image,
            "tag": self._tag,
            "math_inline": self._math_inline,
            "math_inline_double": self._math_inline,
        }

    def html(self, tokens: Sequence[Token]) -> str:
        parts: list[str] = []
        at = 0
        while at < len(tokens):
            if embedded := self._whole_embed(tokens, at):
                parts.append(embedded)
                at += 3
                continue
            token = tokens[at]
            if token.type == "inline":
                parts.append(self._inline(token.children or ()))
            else:
                parts.append(self._balanced(token, self._block(tokens, at)))
            at += 1
        parts.append(self._raw.leave(0))
        return "".join(parts)

    def _balanced(self, token: Token, html: str) -> str:
        """A block's tag; tags of the note's own HTML that are open inside end in front of it."""
        if token.nesting > 0:
            self._floors.append(self._raw.enter())
        elif token.nesting < 0 and token.type != "callout_title_close":
            return self._raw.leave(self._floors.pop()) + html
        return html

    # -- blocks ------------------------------------------------------------------------

    def _block(self, tokens: Sequence[Token], at: int) -> str:
        token = tokens[at]
        self._set_attributes(token)
        if token.type == "list_item_open" and "task" in token.meta:
            self._task = (token.meta["task"], self._line(token))
        special = self._blocks.get(token.type)
        if special is not None:
            return special(token)
        if token.type == "html_block":
            return self._raw.write(token.content)
        if token.type.startswith("footnote_"):
            return self._footnote(token)
        if token.hidden and token.nesting:
            return ""
        return self._tag_of(token)

    def _tag_of(self, token: Token) -> str:
        if token.nesting < 0:
            return f"</{token.tag}>\n"
        attributes = "".join(
            f' {name}="{escape(str(value))}"' for name, value in token.attrs.items()
        )
        return f"<{token.tag}{attributes}>"

    def _set_attributes(self, token: Token) -> None:
        """Set the line, the id and the classes of a block, each with the mark."""
        marked, classes = self._marked, []
        align = _ALIGNED.search(str(token.attrs.pop("style", "")))
        if align:
            classes.append(f"to-{align[1]}")
        if token.map and token.type in _LINE_BLOCKS and self._first_line is not None:
            token.attrs["data-line"] = marked(self._line(token))
        if token.meta.get("task"):
            classes.append("task")
            token.attrs["data-task"] = marked(token.meta["task"])
        if name := token.meta.get("id") or (
            f"b-{token.meta['block']}" if "block" in token.meta else None
        ):
            token.attrs["id"] = marked(name)
        if place := token.meta.get("at"):
            classes.append("at")
            if place == "first":
                token.attrs.setdefault("id", marked("at"))
        if classes:
            token.attrs["class"] = marked(" ".join(classes))

    def _line(self, token: Token) -> int:
        return (self._first_line or 0) + (token.map[0] if token.map else 0)

    def _fence(self, token: Token) -> str:
        attributes = "".join(
            f' {name}="{escape(str(token.attrs[name]))}"'
            for name in ("data-line", "id", "class")
            if name in token.attrs
        )
        words = token.info.split()
        if words and words[0] in VIEWS:
            tables = self._view(words[0], token.content)
            if tables is not None:
                return f"<div{attributes}>{tables}</div>\n"
        code = self._painter.code(token.content, token.info)
        language = escape(words[0][:30]) if words else ""
        label = f' title="{language}"' if language else ""
        code = code.replace('class="', f'class="{self._marked("")}')
        return f"<pre{attributes}{label}><code>{code}</code></pre>\n"

    def _math_block(self, token: Token) -> str:
        math = self._painter.formula(token.content, is_block=True)
        attributes = f' class="{self._marked("formula")}"{_line_attribute(token)}'
        if math is None:
            return f"<pre{attributes}><code>{escape(token.content)}</code></pre>\n"
        return f"<div{attributes}>{math}</div>\n"

    def _callout_open(self, token: Token) -> str:
        kind = CALLOUTS.get(token.meta["kind"], token.meta["kind"])
        shown = kind if kind in KINDS else "note"
        classes = self._marked(f"callout callout-{shown}")
        line = _line_attribute(token)
        if fold := token.meta["fold"]:
            is_open = " open" if fold == "+" else ""
            return f'<details class="{classes}"{line}{is_open}><summary>'
        title = self._marked("callout-title")
        return f'<div class="{classes}"{line}><div class="{title}">'

    def _callout_title_close(self, token: Token) -> str:
        return "</summary>\n" if token.meta["fold"] else "</div>\n"

    def _callout_close(self, token: Token) -> str:
        return "</details>\n" if token.meta["fold"] else "</div>\n"

    def _footnote(self, token: Token) -> str:
        number = token.meta.get("id", 0) + 1
        again = token.meta.get("subId", 0)
        back = f"fnref-{number}" + (f"-{again}" if again else "")
        marked = self._marked
        if token.type == "footnote_ref":
            return (
                f'<sup class="{marked("footnote")}"><a href="#fn-{number}" id="{marked(back)}">'
                f"{number}</a></sup>"
            )
        if token.type == "footnote_block_open":
            return f'<section class="{marked("footnotes")}"><ol>\n'
        if token.type == "footnote_block_close":
            return "</ol></section>\n"
        if token.type == "footnote_open":
            return f'<li id="{marked(f"fn-{number}")}">'
        if token.type == "footnote_close":
            return "</li>\n"
        mark = self._marked("↑")
        return f' <a href="#{back}" aria-label="{mark}">↩</a>'  # footnote_anchor

    # -- text --------------------------------------------------------------------------

    def _inline(self, tokens: Sequence[Token]) -> str:
        parts = []
        if self._task is not None:
            parts.append(self._box(*self._task))
            self._task = None
        floor = self._raw.enter()
        for token in tokens:
            special = self._texts.get(token.type)
            if special is not None:
                parts.append(special(token))
            elif token.type == "html_inline":
                parts.append(self._raw.write(token.content))
            elif token.type in {"footnote_ref", "footnote_anchor"}:
                parts.append(self._footnote(token))
            else:
                parts.append(
                    self._plain.render(
                        [Token("inline", "", 0, children=[token])], parser().options, {}
                    )
                )
        parts.append(self._raw.leave(floor))
        return "".join(parts)

    def _text(self, token: Token) -> str:
        """Text, in which a bare web address is a link."""
        content = token.content
        if self._anchors or "://" not in content:
            return escape(content)
        parts, end = [], 0
        for match in _BARE_ADDRESS.finditer(content):
            address = _without_trailing(match[0])
            parts.append(escape(content[end : match.start()]))
            parts.append(f'<a class="{self._marked("to-web")}" href="{escape(address)}">')
            parts.append(f"{escape(address)}</a>")
            end = match.start() + len(address)
        return "".join((*parts, escape(content[end:])))

    def _box(self, status: str, line: int) -> str:
        marked = self._marked
        is_done = status not in " "
        state = "mixed" if status in "/-<>?" and is_done else str(is_done).lower()
        ticks = f' data-line="{marked(line)}"' if self._may_tick else ""
        return (
            f'<span class="{marked("box")}" role="{marked("checkbox")}"'
            f' aria-checked="{marked(state)}" aria-label="{marked(f"[{escape(status)}]")}"'
            f' data-task="{marked(escape(status))}"{ticks}></span> '
        )

    def _link_open(self, token: Token) -> str:
        written = str(token.attrs.get("href", ""))
        title = str(token.attrs.get("title", ""))
        if written.startswith("#"):
            anchor = link_id(unquote(written[1:]))
            self._anchors.append("</a>")
            return f'<a href="#{escape(quote(anchor))}">'
        return self._anchor_open(self._targets[id(token)], title)

    def _link_close(self, token: Token) -> str:
        return self._anchors.pop()

    def _anchor_open(self, target: Target, title: str = "") -> str:
        label = title or target.title
        hint = f' title="{escape(label)}"' if label else ""
        kind = self._marked(f"to-{target.kind}")
        if not target.address:
            self._anchors.append("</span>")
            return f'<span class="{kind}"{hint}>'
        self._anchors.append("</a>")
        return f'<a class="{kind}" href="{escape(target.address)}"{hint}>'

    def _wikilink(self, token: Token) -> str:
        if token.content.startswith("#"):
            shown = token.meta["shown"] or shown_target(token.content)
            return f'<a href="#{escape(quote(link_id(token.content[1:])))}">{escape(shown)}</a>'
        return self._embed_link(token)

    def _embed_link(self, token: Token) -> str:
        opened = self._anchor_open(self._targets[id(token)])
        shown = token.meta["shown"] or shown_target(token.content)
        return f"{opened}{escape(shown)}{self._anchors.pop()}"

    def _whole_embed(self, tokens: Sequence[Token], at: int) -> str | None:
        """The HTML of a paragraph that is nothing but an embedded note."""
        if tokens[at].type != "paragraph_open" or at + 2 >= len(tokens):
            return None
        children = [
            child
            for child in tokens[at + 1].children or ()
            if child.type != "text" or child.content.strip()
        ]
        if len(children) != 1 or children[0].type != "embed":
            return None
        token = children[0]
        target = self._targets[id(token)]
        is_base = target.kind == "file" and token.content.lower().endswith(".base")
        if target.kind != "note" and not is_base:
            return None
        self._set_attributes(tokens[at])
        inner = self._embed(token.content)
        if inner is None:
            return None
        marked = self._marked
        link = self._embed_link(token)
        return (
            f'<blockquote class="{marked("embed")}"{_line_attribute(tokens[at])}>'
            f'<div class="{marked("embed-name")}">{link}</div>{inner}</blockquote>\n'
        )

    def _image(self, token: Token) -> str:
        alternative = "".join(child.content for child in token.children or ())
        text, _, size = alternative.rpartition("|")
        if not _WIDTH.fullmatch(size):
            text, size = alternative, ""
        return self._picture(self._targets[id(token)], text, size)

    def _media(self, token: Token) -> str:
        target = self._targets[id(token)]
        shown = token.meta["shown"] or ""
        size = shown if _WIDTH.fullmatch(shown) else ""
        return self._picture(target, "" if size else shown, size, name=shown_target(token.content))

    def _picture(self, target: Target, text: str, size: str, name: str = "") -> str:
        marked = self._marked
        source = f' src="{marked(escape(target.address))}"'
        if target.kind == "image":
            match = _WIDTH.fullmatch(size)
            width = f' width="{match[1]}"' if match else ""
            height = f' height="{match[2]}"' if match and match[2] else ""
            alternative = escape(text or name)
            return f'<img{source} alt="{alternative}"{width}{height} loading="lazy">'
        if target.kind in ("audio", "video"):
            return f'<{target.kind}{source} controls preload="metadata"></{target.kind}>'
        if target.kind == "web":  # an image of another site is not loaded
            host = urlsplit(target.address).hostname or target.address
            opened = self._anchor_open(target)
            return f"{opened}{escape(text or 'image')} ({escape(host)}){self._anchors.pop()}"
        opened = self._anchor_open(target)
        return f"{opened}{escape(text or name or target.address)}{self._anchors.pop()}"

    def _embed_token(self, token: Token) -> str:
        if self._targets[id(token)].kind == "note":
            return self._embed_link(token)
        return self._media(token)

    def _tag(self, token: Token) -> str:
        address = f"/?q={quote('tag:' + token.content, safe='')}"
        kind = self._marked("tag")
        return f'<a class="{kind}" href="{address}">#{escape(token.content)}</a>'

    def _math_inline(self, token: Token) -> str:
        is_block = token.type == "math_inline_double"
        math = self._painter.formula(token.content, is_block=is_block)
        return math if math is not None else f"<code>{escape(token.content)}</code>"


def _line_attribute(token: Token) -> str:
    line = token.attrs.get("data-line")
    return f' data-line="{line}"' if line else ""


def _without_trailing(address: str) -> str:
    """A bare address without the signs of the sentence around it."""
    unmatched = address.count(")") - address.count("(")
    end = len(address)
    while end and (address[end - 1] in _TRAILING or (address[end - 1] == ")" and unmatched > 0)):
        end -= 1
        unmatched -= address[end] == ")"
    return address[:end]
