"""Pages of the web become notes: what is kept of them, and what a second time changes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.cli import Scratch
from support.pdf import lines, pdf
from support.web_site import Reply, Site, page, png, redirect

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    CollectionNotFoundError,
    DocumentNotFoundError,
    InvalidPathError,
    OutsideRootsError,
    WebPageError,
)
from qmd.parse import frontmatter

HEAD = (
    '<meta name="author" content="Anna: the &quot;A&quot;"><script type="application/ld+json">'
    '{"@type":"Article","headline":"On boats","datePublished":"2026-01-02T23:00:00Z"}</script>'
)
BODY = """<p>A #tag, [[a wikilink]], key:: value, 2*3*4 and __init__.</p>
<pre><code class="language-c">#include &lt;boat.h&gt;
[[x]]</code></pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<ul><li>[ ] no task</li></ul>
<p><a href="/large.png"><img src="/boat.png" alt="A [boat]"></a>
<img src="data:image/gif;base64,R0lGOD" data-src="later.png"> <img src="gone.png">
<img src="/text.png"><img width="1" height="1" src="/count.png"></p>"""
PICTURES = {
    "/boat.png": Reply(png(1), "image/png"),
    "/later.png": Reply(png(2), "application/octet-stream"),
    "/text.png": Reply(b"<script>alert(1)</script>", "image/png"),
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


@pytest.fixture
def kb(notes: Path) -> Iterator[KnowledgeBase]:
    settings = Settings(allow_private_addresses=True)
    with KnowledgeBase.open(notes.parent / "index.sqlite", settings, create=True) as opened:
        opened.add_collection(notes)
        yield opened


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/boats": page("On boats", BODY, head=HEAD), **PICTURES}) as opened:
        yield opened


def test_a_page_becomes_a_note_with_its_pictures(
    kb: KnowledgeBase, site: Site, notes: Path
) -> None:
    saved = kb.save_page(f"{site.url}/boats#part")
    assert (saved.file, saved.saved_as) == ("notes/saved/On boats.md", "saved")
    assert (saved.pictures, saved.left_out) == (2, 2)
    text = (notes / "saved/On boats.md").read_text()
    found = frontmatter.split(text).properties
    assert (found["title"], found["author"]) == ("On boats", 'Anna: the "A"')
    assert (str(found["date"]), found["source"]) == ("2026-01-02", f"{site.url}/boats")
    assert "Imprint" not in text and "count.png" not in text
    assert "```c\n#include <boat.h>\n[[x]]\n```" in text and "| 1 | 2 |" in text
    held = {each.name: each.read_bytes() for each in (notes / "saved/.assets").iterdir()}
    assert sorted(held.values()) == sorted((png(1), png(2)))
    assert all(f"](.assets/{name})" in text for name in held)
    assert f"]({site.url}/gone.png)" in text
    assert kb.get("On boats").document.title == "On boats"
    assert not kb.tags().tags
    assert not kb.broken_links().links and not kb.tasks().tasks
    assert "key" not in {each.key for each in kb.properties()}
    assert [each.state for each in kb.links("On boats").links] == [
        *("attachment", "attachment", "web", "web")
    ]


ACTIVE = """<p>See <code>= this.file</code>, <code>$= dv.pages()</code>, <code>x = 1</code> #🎉
and &lt;% tp.web %&gt;</p><ul><li>TODO nothing</li><li>[]] nor this</li></ul>
<pre><code class="language-dataviewjs">app.vault</code></pre>
<pre><code class="language-run-python">&lt;%* x %&gt;</code></pre>
<pre><code class="language-mermaid">a --&gt; b</code></pre>"""
#: Plain text that a note would have as code, a macro or the end of a formula.
ACTIVE_TEXT = """<h2>`$= a` {{query a}}</h2><p>x <b>`= b`</b> {{embed b}} `<br>= c` #+BEGIN</p>
<ul><li>`$= d`</li></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>`= e`</td><td>1</td></tr></table>
<p><a href="https://e.org/`= f`">`= f`</a> <a href="https://e.org">`= g`</a> <code>BUTTON[h]</code>
<img src="https://e.org/i.png" alt="`= i` {{query i}}"></p>
<p><math alttext="j$ `= j` [[j]] {{query j}} #j $j"></math>
<math alttext="\\frac{{k}}{l_1}"></math></p>"""


def test_nothing_of_a_page_acts(kb: KnowledgeBase, site: Site, notes: Path) -> None:
    site.pages["/x"] = page("<% tp.system %>", ACTIVE, head='<meta name="author" content="[[X]]">')
    text = (notes.parent / kb.save_page(f"{site.url}/x").file).read_text()
    assert "<%" not in text and "[[X]]" not in text
    assert "\\`= this.file\\`" in text and "\\`$= dv.pages()\\`" in text and "`x = 1`" in text
    assert "```text\napp.vault\n```" in text and "```text\n< %* x %>\n```" in text
    assert "```mermaid\n" in text
    assert not kb.tags().tags and not kb.tasks().tasks


#: The same, where a script makes formulas of the text.
MATHJAX = '<script src="https://cdn.example.org/mathjax@3/tex-mml-chtml.js"></script>'
FORMULAS = r"""<p>See \(e^{i\pi}+1=0\) and
\[ \begin{matrix} a \\[2pt] &lt; b \end{matrix} \] for $5.</p>
<p>Also \begin{align*} a &amp;= b \\ c &amp;= d \\
\end{align*} and \begin{align} without <b>\end{align}</b>, \begin{itemize}.</p>
<p>An open \( and \(x, <code>\(c\)</code>.</p><pre>\(d\)</pre>"""
ACTIVE_FORMULAS = (
    ACTIVE_TEXT
    + r"""<p>\(k$ `= k` [[k]] {{query k}} #k $k\) #+BEGIN</p>
<p>\[l$$ `= l` [[l]] $$ {{query l}}\] `= m`</p><ul><li>\(n\\) `$= n` \[ {{o}}</li></ul>
<p>\(p\</p><p>) `= p` $\(q\)$ {{r}}</p>"""
)


def test_formulas_of_a_page_are_formulas_of_the_note(
    kb: KnowledgeBase, site: Site, notes: Path
) -> None:
    site.pages |= {
        "/math": page("On math", FORMULAS, head=MATHJAX),
        "/plain": page("On escapes", r"<p>find . \( -name a \) and \[x\].</p>"),
    }
    text = (notes.parent / kb.save_page(f"{site.url}/math").file).read_text()
    assert r"See $e^{i\pi}+1=0$ and $$\begin{matrix} a \\[2pt] < b \end{matrix}$$ for" in text
    assert r"Also $$\begin{align*} a &= b \\ c &= d \\ \end{align*}$$ and \begin" in text
    assert r"without **\end{align}**, \begin{itemize}." in text
    assert r"An open \( and \(x, `\(c\)`." in text and "```\n\\(d\\)\n```" in text
    text = (notes.parent / kb.save_page(f"{site.url}/plain").file).read_text()
    assert r"find . \( -name a \) and" in text and "$" not in text


@pytest.mark.parametrize(
    ("head", "active"), [("", ACTIVE_TEXT), (MATHJAX, ACTIVE_FORMULAS)], ids=["text", "formulas"]
)
def test_nothing_of_plain_text_acts(
    kb: KnowledgeBase, site: Site, notes: Path, head: str, active: str
) -> None:
    head += '<meta name="author" content="{{query x}}">'
    site.pages["/x"] = page("A `= a` {{query a}}", active, head=head)
    text = (notes.parent / kb.save_page(f"{site.url}/x").file).read_text()
    assert not re.search(r"(?<!\\)`|(?<!\\)#\+|\[\[|\{\{", text.partition("\n---\n")[2])
    assert "{ {query x}}" in text
    assert "\n- \\`$= d\\`" in text and r"$\frac{ {k}}{l_1}$" in text
    assert not kb.tags().tags


def test_again_updates_the_note_and_keeps_what_a_person_added(
    kb: KnowledgeBase, site: Site, notes: Path
) -> None:
    first = kb.save_page(f"{site.url}/boats")
    kb.edit_note(first.file, lambda text: text.replace("title:", "rating: 5\ntitle:"))
    kb.move_note(first.file, "notes/read/Boats")
    assert kb.save_page(f"{site.url}/boats").saved_as == "unchanged"
    site.pages["/boats"] = page("On ships", "<p>All of it is new.</p>", head=HEAD)
    again = kb.save_page(f"{site.url}/boats")
    assert (again.file, again.saved_as) == ("notes/read/Boats.md", "updated")
    text = (notes / "read/Boats.md").read_text()
    assert "rating: 5" in text and "All of it is new." in text and "wikilink" not in text
    kb.undo.undo_change(again.change or 0)
    assert "wikilink" in (notes / "read/Boats.md").read_text()


def test_an_undone_page_leaves_no_picture(kb: KnowledgeBase, site: Site, notes: Path) -> None:
    saved = kb.save_page(f"{site.url}/boats")
    kb.undo.undo_change(saved.change or 0)
    assert [each for each in notes.rglob("*") if each.is_file()] == []


def test_pages_of_one_title_that_are_saved_at_once_are_all_kept(
    kb: KnowledgeBase, site: Site, notes: Path
) -> None:
    site.pages |= {f"/{number}": page("Same", f"<p>Number {number}.</p>") for number in range(8)}
    with ThreadPoolExecutor(8) as threads:
        saved = list(threads.map(kb.save_page, [f"{site.url}/{number}" for number in range(8)]))
    assert len({each.file for each in saved}) == 8
    for number, each in enumerate(saved):
        assert f"Number {number}." in (notes.parent / each.file).read_text()
    with ThreadPoolExecutor(8) as threads:
        same = threads.map(kb.save_page, [f"{site.url}/boats"] * 8)
    assert {each.file for each in same} == {"notes/saved/On boats.md"}


def test_two_pages_of_one_title_are_two_notes(kb: KnowledgeBase, site: Site) -> None:
    site.pages["/other"] = page("On boats", "<p>Others.</p>")
    site.pages["/short"] = redirect("/other")
    assert kb.save_page(f"{site.url}/boats").file == "notes/saved/On boats.md"
    assert kb.save_page(f"{site.url}/short").file == "notes/saved/On boats 2.md"
    assert kb.saved_note(f"{site.url}/other") == "notes/saved/On boats 2.md"
    assert kb.saved_note(f"{site.url}/short") == "notes/saved/On boats 2.md"
    assert kb.saved_note(f"{site.url}/none") is None


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("../../etc/passwd", "etc passwd"),
        ("a/b: c? [d] #e", "a b c d e"),
        ("\u202egnp.exe", "gnp.exe"),
        ("数据库备份" * 30, "数据库备份" * 16),
        ("...", "page"),
        ("CLAUDE", "CLAUDE-1"),
        ("copilot-instructions", "copilot-instructions-1"),
    ],
)
def test_a_title_gives_a_name_that_leads_nowhere_else(
    kb: KnowledgeBase, site: Site, title: str, name: str
) -> None:
    site.pages["/x"] = page(title, "<p>Text.</p>")
    assert kb.save_page(f"{site.url}/x").file == f"notes/saved/{name}.md"


def test_only_where_notes_may_be_written(kb: KnowledgeBase, site: Site, tmp_path: Path) -> None:
    for folder in ("notes/../..", "nowhere/x", "notes/a:b"):
        with pytest.raises((InvalidPathError, CollectionNotFoundError)):
            kb.save_page(f"{site.url}/boats", folder=folder)
    closed = Settings(read_only_files=True, allow_private_addresses=True)
    with (
        KnowledgeBase.open(tmp_path / "index.sqlite", closed) as other,
        pytest.raises(OutsideRootsError),
    ):
        other.save_page(f"{site.url}/boats", folder="notes/x")
    assert site.asked == []


def test_what_is_no_page_is_told(kb: KnowledgeBase, site: Site) -> None:
    site.pages["/a.zip"] = Reply(b"PK", "application/zip")
    site.pages["/empty"] = Reply(b"<html><body><script>x()</script></body></html>")
    with pytest.raises(WebPageError, match="application/zip"):
        kb.save_page(f"{site.url}/a.zip")
    with pytest.raises(WebPageError, match="has no text"):
        kb.save_page(f"{site.url}/empty")
    site.pages["/nul"] = Reply(b"<title>A\0B</title><p>Text.</p>")
    with pytest.raises(WebPageError, match="cannot be read") as caught:
        kb.save_page(f"{site.url}/nul")
    assert str(caught.value.hint).startswith("The file holds bytes that no text has")
    assert ".py" not in str(caught.value.hint)


def test_a_page_that_sends_browsers_elsewhere_is_followed(kb: KnowledgeBase, site: Site) -> None:
    def sends(content: str) -> Reply:
        tag = f"<META HTTP-EQUIV='Refresh' CONTENT={content}>"
        return Reply(f"<title>Moved</title>{tag}Go".encode())

    site.pages["/old"] = sends('"0; URL=&apos;/boats&apos;"')
    site.pages["/later"] = sends('"60; url=/boats"')
    site.pages |= {"/round": sends("0;url=/about"), "/about": sends("0;url=/round")}
    site.pages |= {"/self": sends('"5"'), "/out": sends('"0; url=file:///etc/passwd"')}
    saved = kb.save_page(f"{site.url}/old")
    assert (saved.title, saved.address) == ("On boats", f"{site.url}/boats")
    assert kb.saved_note(f"{site.url}/old") == saved.file
    assert {kb.save_page(site.url + each).title for each in ("/later", "/self", "/out")} == {
        "Moved"
    }
    with pytest.raises(WebPageError, match="redirect to redirect"):
        kb.save_page(f"{site.url}/round")


def test_a_document_is_kept_beside_a_note_that_links_to_it(
    kb: KnowledgeBase, site: Site, notes: Path
) -> None:
    path = "/get/Annual%20report.PDF"
    site.pages[path] = Reply(pdf([lines("Boats float on water")]), "application/octet-stream")
    (notes / "saved").mkdir()
    (notes / "saved/Annual report.pdf").write_bytes(b"of mine")
    saved = kb.save_page(f"{site.url}{path}")
    assert saved.file == "notes/saved/Annual report.md"
    assert saved.document == "notes/saved/Annual report 2.pdf"
    assert kb.search("float").hits[0].file == saved.document
    assert [each.file for each in kb.links(saved.file).links] == [saved.document]
    assert (notes / "saved/Annual report.pdf").read_bytes() == b"of mine"
    assert kb.save_page(f"{site.url}{path}").saved_as == "unchanged"
    # It stays where it is, with what was written about it, wherever the note was moved.
    mine = "# Annual report\n\nSee [mine](<Annual report.pdf>)."
    kb.edit_note(saved.file, lambda text: text.replace("# Annual report", mine, 1) + "\nRead it.\n")
    kb.move_note(saved.file, "notes/read/Report.md")
    site.pages[path] = Reply(pdf([lines("Ships sink")]), "application/pdf")
    again = kb.save_page(f"{site.url}{path}")
    assert (again.saved_as, again.file) == ("updated", "notes/read/Report.md")
    assert again.document == saved.document
    assert kb.search("sink").hits[0].file == saved.document
    assert "Read it." in kb.get(again.file).text
    assert (notes / "saved/Annual report.pdf").read_bytes() == b"of mine"
    site.pages["/fake.pdf"] = Reply(b"<html>", "application/pdf")
    with pytest.raises(WebPageError, match="no page, but application/pdf"):
        kb.save_page(f"{site.url}/fake.pdf")


def test_a_saved_file_with_its_folder(kb: KnowledgeBase, site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "downloads/Boats_files"
    folder.mkdir(parents=True)
    (folder / "a b.png").write_bytes(png(7))
    (tmp_path / "secret.png").write_bytes(png(8))
    inline = base64.b64encode(png(9)).decode()
    body = (
        '<p><img src="./Boats_files/a%20b.png"><img src="../secret.png">'
        f'<img src="data:image/png;base64,{inline}" alt="x"></p>' + "<p>Text. </p>" * 3
    )
    file = tmp_path / "downloads/Boats.html"
    data = page("Boats", body).body
    assert isinstance(data, bytes)
    file.write_bytes(data)
    saved = kb.save_page(file)
    held = {each.read_bytes() for each in (tmp_path / "notes/saved/.assets").iterdir()}
    assert png(7) in held and png(8) not in held
    assert kb.save_page(file).saved_as == "unchanged"
    assert saved.address == "Boats.html"


MHTML = """From: <Saved by Blink>
Snapshot-Content-Location: https://example.org/boats
MIME-Version: 1.0
Content-Type: multipart/related; type="text/html"; boundary="b"

--b
Content-Type: text/html
Content-Transfer-Encoding: 8bit
Content-Location: https://example.org/boats

<html><head><title>Boats</title></head><body><article><h1>Boats</h1>
<p>{words}</p><p><img src="boat.png" alt="boat"><img src="cid:two@x"></p></article></body></html>
--b
Content-Type: image/png
Content-Transfer-Encoding: base64
Content-Location: https://example.org/boat.png

{one}
--b
Content-Type: image/png
Content-Transfer-Encoding: base64
Content-ID: <two@x>

{two}
--b--
"""


def test_an_mhtml_file_brings_its_pictures(kb: KnowledgeBase, tmp_path: Path) -> None:
    one, two = (base64.b64encode(png(colour)).decode() for colour in (1, 2))
    file = tmp_path / "boats.mhtml"
    file.write_text(MHTML.format(words="Some words. " * 50, one=one, two=two))
    saved = kb.save_page(file)
    assert (saved.pictures, saved.address) == (2, "https://example.org/boats")


def test_a_list_goes_on_where_it_stopped(tmp_path: Path, site: Site) -> None:
    scratch = Scratch(tmp_path, {"QMD_ALLOW_PRIVATE_ADDRESSES": "true"})
    (tmp_path / "notes").mkdir()
    scratch.ok("collection", "add", str(tmp_path / "notes"))
    site.pages |= {f"/{number}": page(f"Page {number}", "<p>x</p>") for number in range(3)}
    links = "".join(f"- {site.url}/{name}\n" for name in (0, 1, "gone", 2))
    assert scratch.ok("save", f"{site.url}/1").out.startswith("Saved notes/saved/Page 1.md")
    site.asked.clear()
    done = scratch.run_raw("save", stdin=links.encode())
    assert done.returncode == 1
    assert b"answered 404" in done.stderr and b"1 of 4 are saved" in done.stderr
    assert done.stdout.count(b"Saved ") == 2
    assert site.asked == ["/robots.txt", "/0", "/gone", "/2"]
    assert b"no line" in scratch.run_raw("save", stdin=b"a\n").stderr.lower()
    assert "Failed to read gone.html" in scratch.call("save", "gone.html").err
    assert "stays as it is" in scratch.ok("save", f"{site.url}/0", f"{site.url}/1", "--again").out


def test_what_lies_in_a_folder_of_pictures_is_shown_but_no_document(
    kb: KnowledgeBase, site: Site, notes: Path
) -> None:
    saved = kb.save_page(f"{site.url}/boats")
    folder = notes / "saved/.assets"
    (folder / "note.md").write_text("# Hidden\n")
    [first, *_] = (each.name for each in folder.iterdir() if each.suffix == ".png")
    with kb.open_file(f"notes/saved/.assets/{first}") as file:
        assert file.read(4) == b"\x89PNG"
    kb.index()  # which walks everything
    assert [each.file for each in kb.documents()] == [saved.file]
    assert not kb.broken_links().links
    (notes / ".gitignore").write_text(".assets/\n")
    kb.index()
    with pytest.raises(DocumentNotFoundError):
        kb.open_file(f"notes/saved/.assets/{first}")
