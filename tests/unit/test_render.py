"""Markdown as HTML: what it looks like, what it leads to, and what it never holds."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.render import (
    Embedded,
    NoLinks,
    Options,
    Rendered,
    RenderedHeading,
    Target,
    WrittenTarget,
    render_note,
)


class Vault:
    """Notes by name; each links to the others."""

    def __init__(self, **notes: str) -> None:
        self.notes = notes
        self.calls = 0

    def resolve(self, written: Sequence[WrittenTarget]) -> list[Target]:
        self.calls += 1
        return [self._target(link.target) for link in written]

    def _target(self, target: str) -> Target:
        name = target.partition("#")[0]
        if "://" in target:
            return Target("web", target)
        if name.endswith(".png"):
            return Target("image", f"/file/v/{name}")
        kind = "note" if name in self.notes else "missing"
        return Target(kind, f"/note/v/{name}")  # type: ignore[arg-type]

    def embedded(self, target: str) -> Embedded | None:
        text = self.notes.get(target)
        return None if text is None else Embedded(text, self, target)


PLAIN = Options()


def html(text: str, options: Options = PLAIN, **notes: str) -> str:
    return render_note(text, Vault(**notes), options).html


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[a]]", '<a class="to-note" href="/note/v/a"'),
        ("[[a#b|shown]]", ">shown</a>"),
        ("[[a/R-intro.pdf#page=32&zoom=1]]", ">a/R-intro, p. 32</a>"),
        ("[[b.xlsx#sheet=Costs!B7]]", ">b, sheet Costs!B7</a>"),
        ("[[none]]", 'class="to-missing"'),
        ("![[p.png|300x200]]", '<img src="/file/v/p.png" alt="p.png" width="300" height="200"'),
        ("![x|40](p.png)", 'alt="x" width="40"'),
        ("![x](https://evil.example/p.png)", ">x (evil.example)</a>"),
        ("==seen==", "<mark>seen</mark>"),
        ("(see https://a.example/x_(y).)", 'href="https://a.example/x_(y)"'),
        ("(at https://a.example/x).", ">https://a.example/x</a>)."),
        ("看https://a.example/x。好", ">https://a.example/x</a>。好"),
        ("[at https://a.example](b.md)", ">at https://a.example</a>"),
        ("a %%hidden%% b", '<p data-line="1">a  b</p>'),
        ("x\n\n%%\nhidden\n%%\ny", '<p data-line="6">y</p>'),
        ("see #work/now.", 'href="/?q=tag%3Awork%2Fnow"'),
        ("no#tag and #12", '<p data-line="1">no#tag and #12</p>'),
        ("text ^name", '<p data-line="1" id="b-name">text</p>'),
        ("$a^2$", "<msup>"),
        ("$\\frac$", "<code>\\frac</code>"),
        ("| a |\n|--:|\n| 1 |", '<td class="to-right">1</td>'),
        ("- [x] done", 'class="task"><span class="box" role="checkbox" aria-checked="true"'),
        ("> [!tip]- Open *me*\n> inside", "<summary>Open <em>me</em></summary>"),
        ("> [!faq]\n> why", 'class="callout callout-question"'),
        ("```python\nx = 1\n```", '<span class="c-mi">1</span>'),
        ("a[^1]\n\n[^1]: why", '<li id="fn-1">'),
        ("# A b\n\n[go](#A%20b)", '<a href="#h-a-b"'),
        ("---\nx: 1\n---\ntext", '<p data-line="4">text</p>'),
    ],
)
def test_what_obsidian_shows(text: str, expected: str) -> None:
    assert expected in html(text, a="A")


def test_an_embedded_note_stands_inside_and_a_circle_ends() -> None:
    text = html("![[a]]", a="# A\n\n![[b]]", b="B says ![[a]]\n\n![[a]]")
    assert text.count('class="embed"') == 2
    assert "B says" in text


def test_embeds_end_at_their_budgets() -> None:
    assert html("![[a]]\n\n" * 100, a="A").count('class="embed"') == 30
    assert "yyy" not in html("![[a]]", a="y" * 300_000)


def test_the_links_of_a_text_are_asked_for_at_once() -> None:
    vault = Vault(a="A")
    render_note("[[a]] [x](b.md) ![[p.png]] " * 500, vault)
    assert vault.calls == 1


def test_the_blocks_of_a_line_are_marked() -> None:
    text = html("one\n\n- two\n- three\n\nfour", Options(lines=(4, 6)))
    assert '<li data-line="4" class="at" id="at">three' in text.replace(
        'id="at" class="at"', 'class="at" id="at"'
    )
    assert text.count('id="at"') == 1
    assert '<p data-line="6" class="at">four' in text


def test_headings_are_listed_with_ids_that_differ() -> None:
    rendered = render_note("# Über uns\n\n## 回顾 2025\n\n## 回顾 2025", NoLinks())
    assert rendered.headings == (
        RenderedHeading(1, "Über uns", "h-über-uns", 1),
        RenderedHeading(2, "回顾 2025", "h-回顾-2025", 3),
        RenderedHeading(2, "回顾 2025", "h-回顾-2025-1", 5),
    )


def test_a_text_that_is_too_long_is_cut_and_that_is_said() -> None:
    rendered = render_note("word " * 80_000, NoLinks())
    assert rendered.left_out == 100_000
    assert isinstance(rendered, Rendered)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<kbd>A</kbd> <b>bold\n\nnext", '</kbd> <b>bold</b></p>\n<p data-line="3">next</p>'),
        ("<div>\n\n- a </div> b\n\n</div>\n\nc", "a  b</li>"),
        ("<details><summary>S</summary>\n\n*in*\n\n</details>", "<details><summary>S</summary>"),
        ("<textarea>\n\nafter", "&lt;textarea&gt;"),
        ("<div>x <!-- gone --> y\n\nafter", '<p data-line="3">after</p>'),
        ("<div>x <!-- open\n\nafter", '<p data-line="3">after</p>'),
        ("$$\na\n$$\n\nb", 'data-line="1"><math display="block">'),
        ("$x$ costs $5 or $6", "costs $5 or $6"),
        ("$\\text{<b>x}$", "<mtext>&lt;b&gt;x</mtext>"),
        ("a ^[in *line*] b", '<li id="fn-1"><p>in <em>line</em>'),
        ("```unknown\n<x>\n```", "<code>&lt;x&gt;\n</code>"),
    ],
)
def test_the_html_and_formulas_of_a_note_do_not_reach_beyond_their_block(
    text: str, expected: str
) -> None:
    assert expected in html(text)


@pytest.mark.unmeasured
def test_all_of_a_long_paragraph_is_rendered() -> None:
    text = html("*a* [[a]]\n" * 5_000, a="A")
    assert text.count("<em>a</em>") == text.count('class="to-note"') == 5_000


# --- safety ---------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "<a href='&#106;avascript:alert(1)'>x</a>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<form action=/delete><input type=submit><button formaction=x>go</button></form>",
    "<iframe src=//evil.example></iframe><object data=x></object><embed src=x>",
    "<meta http-equiv=refresh content='0;url=//evil.example'><base href=//evil.example>",
    "<div id=main class='notice bad' style='position:fixed' data-key=x>You were hacked</div>",
    "<link rel=stylesheet href=//evil.example/x.css><style>*{display:none}</style>",
    '[[a"onmouseover=alert(1) x="]]',
    '!["onload="alert(1)](p.png)',
    '```"><script>alert(1)</script>\nx\n```',
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$\\href{javascript:alert(1)}{x}$",
    '> [!"onload=x]\n> y',
    "<details open ontoggle=alert(1)>x</details>",
    "<video src=//evil.example/v onloadstart=alert(1)></video>",
    "# x {onclick=alert(1)}",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
]

_ATTRIBUTES_NAMES = """
class id title lang dir data-line data-task role aria-label aria-checked href rel src alt
width height loading start type open controls preload xmlns display colspan rowspan
mathvariant stretchy fence separator form datetime value reversed span scope lspace rspace
minsize maxsize linethickness columnalign accent accentunder hreflang data-host
"""
_ATTRIBUTES = frozenset(_ATTRIBUTES_NAMES.split())
_FORBIDDEN_NAMES = """
base button embed form frame iframe input link meta noscript object script select style svg
template textarea title
"""
_FORBIDDEN = frozenset(_FORBIDDEN_NAMES.split())


class Judge(HTMLParser):
    """Collects what must not be in the HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _FORBIDDEN:
            self.problems.append(tag)
        for name, value in attrs:
            if name not in _ATTRIBUTES:
                self.problems.append(f"{tag} {name}")
            if (
                name == "href"
                and not (value or "").startswith(
                    ("/", "#", "http://", "https://", "mailto:", "obsidian:")
                )
                and ":" in (value or "").partition("/")[0]
            ):
                self.problems.append(f"{name} {value}")
            if name == "src" and not (value or "").startswith("/file/v/"):
                self.problems.append(f"{name} {value}")
            if name == "class" and "notice" in (value or ""):
                self.problems.append(f"{name} {value}")
            if name == "id" and not (value or "").startswith(("h-", "b-", "fn", "at")):
                self.problems.append(f"{name} {value}")


def problems(text: str) -> list[str]:
    judge = Judge()
    judge.feed(html(text, a="A"))
    judge.close()
    return judge.problems


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_note_runs_or_passes_for_the_page(text: str) -> None:
    assert problems(text) == []
    assert problems(f"> - {text}\n\n| a |\n|---|\n| {text} |") == []


# fmt: off
_PIECES = st.lists(
    st.sampled_from(
        [*HOSTILE, "\n", "\n\n", "> ", "- ", "[[", "]]", "![[", "`", "```", "$", "==", "%%", "|",
         "<", ">", '"', "'", "&", "=", "[^1]", "[!note]", "# ", "    ", "a", "文", "\\", "*"]
    ),
    max_size=30,
).map("".join)
# fmt: on


@given(_PIECES)
def test_no_mixture_of_markup_is_dangerous(text: str) -> None:
    assert problems(text) == []


@given(st.text(max_size=200))
def test_any_text_can_be_rendered(text: str) -> None:
    assert problems(text) == []


def test_line_ends_inside_a_paragraph_are_shown_if_asked() -> None:
    text = "one\ntwo\n\n- a\n  b\n\n![[other]]\n"
    plain = html(text, other="three\nfour")
    assert "<br" not in plain
    broken = html(text, Options(breaks_lines=True), other="three\nfour")
    assert [part.rsplit(">", 1)[-1] for part in broken.split("<br>\n")[:-1]] == [
        "one",
        "a",
        "three",
    ]
    code = html("```\na\nb\n```\n", Options(breaks_lines=True))
    assert "<br" not in code


def test_in_converted_texts_only_blocks_code_and_links_count() -> None:
    text = "---\n# A head\n\n- *a* [[b]] #c $d$ ==e== %%f%% `g` [h](https://h.example)\n"
    shown = html(text, Options(is_note=False))
    assert "*a* [[b]] #c $d$ ==e== %%f%% <code>g</code> <a " in shown
    assert "<h1" in shown and "<li" in shown and "<hr" in shown
