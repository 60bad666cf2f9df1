"""Marks of the page in the Markdown of a model."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nh3
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markupsafe import Markup

from qmd.server.page.ask import Mark, render_with_marks

LINK = Markup('<a class="cite" href="/note/notes/a.md?line=1">1</a>')


def to_html(text: str) -> str:
    return nh3.clean(MarkdownIt("commonmark").render(text))


def marked(text: str, what: str) -> str:
    start = text.index(what)
    return render_with_marks(text, [Mark(start, start + len(what), LINK)], to_html)


def test_a_mark_replaces_its_text() -> None:
    html = marked("The *boat* is blue [notes/a_b_c.md:1].", "[notes/a_b_c.md:1]")
    assert html == f"<p>The <em>boat</em> is blue {LINK}.</p>\n"


def test_a_mark_may_stand_at_a_place_without_text() -> None:
    html = render_with_marks("One. Two.", [Mark(4, 4, LINK)], to_html)
    assert html == f"<p>One.{LINK} Two.</p>\n"


def test_a_mark_in_code_is_a_link_too() -> None:
    assert str(LINK) in marked("`[notes/a.md:1]`", "[notes/a.md:1]")


def test_no_mark_stands_in_an_attribute() -> None:
    html = marked('![x [notes/a.md:1]](/y "[notes/a.md:1] \'>")', "[notes/a.md:1]")
    assert "<a" not in html
    assert 'alt="x [notes/a.md:1]"' in html


def test_no_mark_stands_in_a_link() -> None:
    html = marked("[see <b> 1](https://example.org) 2", "<b>")
    assert html.count("<a ") == 1
    assert "&lt;b&gt;" in html


def test_of_marks_that_overlap_the_first_counts() -> None:
    html = render_with_marks("abcdef", [Mark(1, 4, LINK), Mark(2, 3, LINK)], to_html)
    assert html == f"<p>a{LINK}ef</p>\n"


class _Links(HTMLParser):
    """Counts links, and finds any that stand within another one."""

    def __init__(self) -> None:
        super().__init__()
        self.open = self.cites = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.open += 1
            self.cites += dict(attrs).get("class") == "cite"
        assert self.open < 2

    def handle_endtag(self, tag: str) -> None:
        self.open -= tag == "a"


@given(
    st.lists(
        st.sampled_from([*"ab<>\"'`*_[]()!\n ", "<a href='x'>", "</a>", "[x](y", "![", "&lt;"])
    ).map("".join),
    st.integers(0, 40),
    st.integers(0, 6),
)
def test_marks_leave_the_html_well_formed(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    html = render_with_marks(text, [Mark(start, end, LINK)], to_html, nonce="mmm")
    assert not re.search(r"mmmx\d+x", html)
    links = _Links()
    links.feed(html)
    assert links.cites in (0, 1)
