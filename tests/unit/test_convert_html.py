"""A saved page is its article: text, code, tables and links, without what surrounds it."""

from __future__ import annotations

import pytest

from qmd.errors import DamagedFileError, DecodeError
from qmd.parse.convert.html import convert, convert_page
from qmd.parse.document import parse_literal

PROSE = "A sentence of the article that says something about bread and time. " * 8


def markdown(body: str) -> str:
    return convert("a.html", f"<html><body>{body}</body></html>".encode()).markdown


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>Part <a class='headerlink' href='#p'>¶</a></h2><p>a\n  b", "## Part\n\na b\n"),
        ("<p>a <b>bold</b> <i>and</i> 数据<em>库</em></p>", "a bold and 数据库\n"),
        ("<p>one<br>two<br/><br>three", "one\ntwo\nthree\n"),
        (
            "<a href='b.html#x'>b</a> <a href='#x'>here</a> <a href='/s'>site</a>",
            "[b](b.html) here site\n",
        ),
        (
            "<a href='javascript:x()'>x</a> <a href='https://a.org/b c'>y</a>",
            "x [y](<https://a.org/b c>)\n",
        ),
        (
            "Look!<a href='b.html'>here</a> [<a href='c.html'>1</a>]",
            "Look! [here](b.html) [[1](c.html)]\n",
        ),
        ("<a href='b.html'><div>card <h3>Title</h3></div></a>", "card\n\n### Title\n"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>after", "- a\n- b\n  - c\n\nafter\n"),
        ("<ol start=3><li><p>a</p><p>b</p></li><li>c</li></ol>", "3. a\n\n   b\n4. c\n"),
        (
            "<dl><dt>a</dt><dd>first</dd><dt>b</dt><dd>second</dd></dl>",
            "- a\n\n  first\n- b\n\n  second\n",
        ),
        ("<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n>\n> b\n\nc\n"),
        (
            "<pre class='language-py'><span>a</span> = [[1]]\n#tag</pre>",
            "```py\na = [[1]]\n#tag\n```\n",
        ),
        ("<div class='highlight-c'><div><pre>a<br>b</pre></div></div>", "```c\na\nb\n```\n"),
        ("<p>call <code>a `b`</code> or <tt>c</tt></p>", "call `` a `b` `` or `c`\n"),
        ("<p>10<sup>6</sup> 1<sup>st</sup> H<sub>2</sub>O</p>", "10^6 1st H2O\n"),
        ("<math alttext='x^2'><mi>x</mi></math>", "$x^2$\n"),
        ("<p><math display=block alttext='x^2'></math>", "$$x^2$$\n"),
        ("<p>a<script type='math/tex; mode=display'>x^2</script>", "a$$x^2$$\n"),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字", "漢字\n"),
        ("<p>a</p><hr><p>b</p>", "a\n\n* * *\n\nb\n"),
        (
            "<img src='i/a.png' alt='A [b]'><img src='data:x' alt='inline'>",
            "![A \\[b\\]](i/a.png) inline\n",
        ),
        (
            "<p># no heading</p><p>- no item</p><p>2024. A year</p>",
            "\\# no heading\n\n\\- no item\n\n2024\\. A year\n",
        ),
        (
            "<p>#tag [[link]] key:: value [a](b) &lt;b&gt;</p>",
            "#tag [[link]] key:: value [a]\\(b) \\<b>\n",
        ),
        ("<p><b>[</b>[link]] <i>#</i>tag", "[[link]] #tag\n"),
        ("<h1>The __init__ of C#</h1>", "# The \\_\\_init\\_\\_ of C\\#\n"),
        ("<p hidden>a<p style='display:none'>b<p aria-hidden=true>c<p>d", "d\n"),
        ("<script>a()</script><style>b</style><!-- c --><template>d</template>e", "e\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_elements(html: str, text: str) -> None:
    assert markdown(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<table><tr><th>a<th>b|c<tr><td colspan=2>d<tr><td>e<br>f<td><p>g<p>h</table>",
            "| a | b\\|c |\n|---|---|\n| d |  |\n| e f | g h |\n",
        ),
        (
            "<table><tr><th>City<th>Year<th>€<tr><td rowspan=2>Bonn<td>1<td>2<tr><td>3<td>4"
            "<tr><td>Ulm<td>5<td>6</table>",
            "| City | Year | € |\n|---|---|---|\n| Bonn | 1 | 2 |\n|  | 3 | 4 |\n| Ulm | 5 | 6 |\n",
        ),
        (
            "<table><thead><tr><th rowspan=9>a<th colspan=2>b<tbody><tr><td>c"
            "<td rowspan=2 colspan=2>d<tr><td>e<tr><td>f<td>g<td>h</table>",
            "| a | b |  |\n|---|---|---|\n| c | d |  |\n| e |  |  |\n| f | g | h |\n",
        ),
        (
            "<table><tr><th>a<th>b<tbody><tr><td rowspan=0>c<td>d<tr><td>e<tr><td>f"
            "<tbody><tr><td>g<td colspan=0>h</table>",
            "| a | b |\n|---|---|\n| c | d |\n|  | e |\n|  | f |\n| g | h |\n",
        ),
        (
            "<table><tr><td>a<td>b<tr><td>c<td>d</table>",
            "|  |  |\n|---|---|\n| a | b |\n| c | d |\n",
        ),
        ("<table><tr><td>left<td><table><tr><td>a<td>b<tr><td>c<td>d</table></table>",
         "left\n\n|  |  |\n|---|---|\n| a | b |\n| c | d |\n"),
        ("<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>", "a\n\nb\n\nc\n\nd\n"),
        ("<table><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>a\nb</pre></table>",
         "```\na\nb\n```\n"),
    ],
)  # fmt: skip
def test_tables_show_data_or_arrange_the_page(html: str, text: str) -> None:
    assert markdown(html) == text


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>b</mi></mfrac>", "(a+1)/b"),
        ("<msqrt><mi>x</mi><mo>+</mo><mi>y</mi></msqrt>", "√(x+y)"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", "root(3, x)"),
        ("<msup><mi>x</mi><mn>2</mn></msup>", "x^2"),
        ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>", "x_1^2"),
        (
            "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi>"
            "</munderover><mi>i</mi>",
            "∑_(i=1)^ni",
        ),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr></mtable>", "[1, 2]"),
        ("<msup>" * 300 + "<mi>x</mi>", "x"),
    ],
)
def test_formulas_without_a_source_keep_their_meaning(inside: str, shown: str) -> None:
    assert markdown(f"<p><math>{inside}</math>").replace("\\", "") == f"${shown}$\n"


def test_columns_that_are_left_out_are_counted_as_a_warning() -> None:
    page = f"<table><tr>{'<th>a' * 250}<tr>{'<td>b' * 250}</table>"
    assert convert("a.html", page.encode()).warnings == (
        "The table has over 200 columns; the others were left out.",
    )


PAGE = f"""<!DOCTYPE html><html><head><title>Bread and time - A site</title>
<meta property="og:title" content="Bread and time"><meta name="author" content="Ann Baker">
<meta name="description" content="How bread takes time."><link rel="canonical" href="https://a.org/x/bread">
<script type="application/ld+json">{{"@graph": [{{"@type": "NewsArticle", "datePublished":
"2024-03-05T10:00:00+01:00", "headline": "Bread and time"}}]}}</script></head><body>
<header class="site-header"><a href="/">Home</a> <a href="/news">News</a></header>
<nav><ul><li><a href="/a">Menu entry</a></ul></nav>
<main><article><h1>Bread and time</h1><p>{PROSE}</p><pre>knead()</pre>
<div class="share-buttons"><a href="https://x.org">Share this</a></div>
<table><tr><th>Flour<th>Hours<tr><td>Rye<td>12</table>
<p>{PROSE} <a href="dough">dough</a></p></article></main>
<aside class="related"><a href="/b">Related story</a></aside>
<footer>Copyright</footer></body></html>"""


def test_a_page_is_its_article_with_title_and_date() -> None:
    page = convert("a.html", PAGE.encode())
    assert page.markdown.startswith("# Bread and time\n\nA sentence")
    assert "```\nknead()\n```" in page.markdown
    assert "| Flour | Hours |\n|---|---|\n| Rye | 12 |" in page.markdown
    assert "[dough](https://a.org/x/dough)" in page.markdown
    for other in ("Home", "Menu entry", "Share this", "Related", "Copyright"):
        assert other not in page.markdown
    assert (page.title, page.date) == ("Bread and time", "2024-03-05T10:00:00+01:00")
    assert page.properties == {
        "author": "Ann Baker",
        "description": "How bread takes time.",
        "source": "https://a.org/x/bread",
    }


def test_no_name_loses_the_article_or_a_table() -> None:
    """What looks like navigation by its name may be the text itself."""
    text = markdown(f"<div class='content sidebar menu'><h1>T</h1><p>{PROSE}</p></div><p>short</p>")
    assert text.count("bread") == 8
    table = "<table><tr><th>a<th>b<tr><td>lost<td>or kept</table>" * 3
    text = markdown(f"<article><p>{PROSE * 3}</p></article><div class=toc>{table}</div>")
    assert text.count("or kept") == 3


def test_a_page_that_is_little_more_than_a_heading_has_no_links_to_its_neighbours() -> None:
    head = "<div class='header'><p>Next: <a href='c.html'>Crows, jays</a>, Back: <a href='a.html'>"
    foot = "<div class='navfooter'>Bats <a href='x.html'>Up</a></div>"
    page = f"{head}Ants</a></div><h2>Bees</h2>{foot}"
    assert markdown(page) == "## Bees\n"


def test_a_heading_that_leads_back_to_the_contents_stays() -> None:
    heading = "<h2><a class='toc-backref' href='#id1'>Why?</a></h2>"
    assert "## Why?\n" in markdown(f"<body><h1>FAQ</h1>{heading}<p>{PROSE}</p></body>")


def test_a_page_of_links_is_its_links() -> None:
    assert markdown("<nav><a href='a.html'>A</a></nav>") == "[A](a.html)\n"


@pytest.mark.parametrize(
    ("head", "date"),
    [
        ("<meta property='article:published_time' content='2023-01-02'>", "2023-01-02"),
        ("<meta name='citation_publication_date' content='2022/05/06'>", "2022-05-06"),
        ("<time datetime='2021-02-03' itemprop='datePublished'>", "2021-02-03"),
        ("<time datetime='2021-02-03'>", None),
        ("<meta name='date' content='soon'>", None),
        ("<script type='application/ld+json'>{broken</script>", None),
        (f"<script type='application/ld+json'>{'[' * 100_000}</script>", None),
    ],
)
def test_a_date_is_read_where_the_page_says_when_it_was_published(
    head: str, date: str | None
) -> None:
    assert convert("a.html", f"<html><head>{head}</head><body>x".encode()).date == date


def test_a_page_without_a_heading_begins_with_its_title() -> None:
    page = convert("a.html", b"<title>On  bread</title><body><p>Text")
    assert (page.title, page.markdown) == ("On bread", "# On bread\n\nText\n")


def test_the_main_heading_is_the_title_wherever_it_stands() -> None:
    page = f"""<title>Bread - A wiki</title><meta property="article:author" content="https://a.org/x">
<script type="application/ld+json">{{"@type": "Article", "headline": "Food", "author": [
{{"name": "Ann"}}]}}</script><header><h1>Bread</h1></header><main><p>{PROSE}</p></main>"""
    converted = convert("a.html", page.encode())
    assert converted.title == "Bread"
    assert converted.markdown.startswith("# Bread\n\nA sentence")
    assert converted.properties == {"author": "Ann"}


@pytest.mark.parametrize("charset", ["gb2312", "big5", "shift_jis", "utf-8", "utf-16"])
def test_encodings(charset: str) -> None:
    words = {"big5": "資料庫備份", "shift_jis": "データの保存"}.get(charset, "数据库备份")
    page = f"<meta charset={charset}><title>x</title><p>{words}</p>"
    assert words in convert("a.htm", page.encode(charset)).markdown


def test_a_page_names_where_it_was_saved_from() -> None:
    saved = b"<!-- saved from url=(0020)https://a.org/b/c --><p><a href='d'>d</a>"
    page = convert("a.html", saved)
    assert page.markdown == "[d](https://a.org/b/d)\n"
    assert page.properties == {"source": "https://a.org/b/c"}


MHTML = b"""From: <Saved by a browser>\r
MIME-Version: 1.0\r
Content-Type: multipart/related; type="text/html"; boundary="----B"\r
\r
------B\r
Content-Type: text/html; charset=utf-8\r
Content-Transfer-Encoding: quoted-printable\r
Content-Location: https://a.org/x\r
\r
<html><title>T</title><body><h1>T</h1><p>caf=C3=A9 <a href=3D"y">y</a></body></html>\r
------B\r
Content-Type: image/png\r
Content-Transfer-Encoding: base64\r
\r
aGVsbG8=\r
------B--\r
"""


def test_mhtml_holds_a_page() -> None:
    page = convert("a.mhtml", MHTML)
    assert page.markdown == "# T\n\ncafé [y](https://a.org/y)\n"
    assert page.properties == {"source": "https://a.org/x"}
    with pytest.raises(DamagedFileError, match="no HTML"):
        convert("a.mht", b"Subject: x\r\n\r\ntext")


def test_hidden_parts_are_no_article() -> None:
    hidden = f"<div hidden><main><p>{PROSE}</p></main></div>"
    assert markdown(f"{hidden}<p>shown</p>") == "shown\n"


def test_binary_data_is_no_page() -> None:
    with pytest.raises(DecodeError):
        convert("a.html", b"%PDF-1.7 \0\xff")


def test_pages_nested_without_end_are_read_in_part() -> None:
    page = convert("a.html", b"<div><ul><li>" * 50_000 + b"deep")
    assert page.warnings == ("The page is nested too deeply; a part of it was not read.",)
    page = convert("a.html", b"<blockquote>" * 500 + b"deep" + b"</blockquote>" * 500 + b"after")
    assert page.markdown == "> " * 12 + "deep\n\nafter\n"


def test_nothing_outside_is_loaded_and_no_entity_grows() -> None:
    page = b"""<!DOCTYPE html [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">
    ]><p>&b; &c;</p><iframe src="https://a.org"></iframe><link rel=stylesheet href="https://a.org/x">"""
    text = convert("a.html", page).markdown
    assert "root:" not in text
    assert "aaaa" not in text.replace("\\", "").split("&b;")[-1]


def test_what_is_converted_has_only_the_links_of_the_page() -> None:
    page = f"<main><p>{PROSE} [[x]] #tag a:: b [x](y)</p><a href='b.html'>b</a></main>"
    document = parse_literal("a.html", convert("a.html", page.encode()), has_links=True)
    assert [link.target for link in document.links] == ["b.html"]
    assert (document.tags, document.properties) == ((), {})


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        (
            "A <b>bold </b>and <em>soft</em> word, <s>5</s> 4.",
            "A **bold** and *soft* word, ~~5~~ 4.",
        ),
        ("<strong>All <i>of</i> it</strong>", "**All of it**"),
        ("这是<b>重点</b>。说<b>“好”</b>了", "这是**重点**。说“好”了"),
        ("<b><a href='http://a.b/'>to <i>x</i></a></b>", "**[to *x*](http://a.b/)**"),
        ("<i>2*3*4</i> <i>a</i><b>b</b> <b> </b>", r"*2\*3\*4* *a*b"),
        ("<code>a <b>b</b></code> <b><code>c</code></b> d", "`a b` **`c`** d"),
        ("<b>one<div>two</div></b>three", "**one**\n\n**two**\n\nthree"),
        # Nothing that is split by emphasis means something: a wikilink, a task, a field, a fact.
        ("x<b>[</b>[Note]]", r"x\[[Note]]"),
        ("[<a href='http://a.b/'>x</a>]]", r"[[x](http://a.b/)\]]"),
        ("<li>[ ]<b> do it</b>", r"- \[ ] **do it**"),
        ("due::<b> 2026-01-01 </b><i> </i>.", r"due:\: **2026-01-01** ."),
        (
            "<ul><li>[decision] We attack<li>[<b>idea</b>] x",
            "- \\[decision] We attack\n- \\[**idea**] x",
        ),
    ],
)
def test_emphasis_is_kept_in_notes_where_it_is_read_as_such(html: str, markdown: str) -> None:
    converted = convert_page(f"<body><div>{html}</div></body>", pictures={})
    assert converted.markdown.strip() == markdown
    assert "*" not in convert_page("<p>A <b>bold</b> word</p>").markdown
