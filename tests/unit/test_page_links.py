"""Where the links of a rendered note lead on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.render import WrittenTarget, render_note
from qmd.server.page.links import PageLinks

NOTES = {
    "a.md": "# A\n\n![[b#Part]] and [[b]]\n",
    "deep/b.md": "# B\n\nfirst\n\n## Part\n\nThe part, see [[c]].\n\n## Other\n\nlast ^end\n",
    "deep/c.md": "# C\n\n![[a]] ![[b#^end]]\n",
    "photo.jpg": "not a photo",
    "paper.pdf": "%PDF",
    "a b?.md": "# Odd name\n",
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    root = tmp_path / "notes"
    for name, text in NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        yield kb


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        ("wikilink", "b", ("note", "/note/notes/deep/b.md")),
        ("wikilink", "b#Part", ("note", "/note/notes/deep/b.md#h-part")),
        ("wikilink", "B#Part#Other", ("no-section", "/note/notes/deep/b.md#h-other")),
        ("wikilink", "b#^end", ("note", "/note/notes/deep/b.md#b-end")),
        ("wikilink", "b#Gone", ("no-section", "/note/notes/deep/b.md#h-gone")),
        ("wikilink", "b#^gone", ("no-section", "/note/notes/deep/b.md#b-gone")),
        ("link", "deep/b.md#gone", ("no-section", "/note/notes/deep/b.md#h-gone")),
        ("link", "deep/b.md#Part", ("note", "/note/notes/deep/b.md#h-part")),
        ("wikilink", "a b?", ("note", "/note/notes/a%20b%3F.md")),
        ("embed", "photo.jpg", ("image", "/shown/notes/photo.jpg")),
        ("image", "photo.jpg", ("image", "/shown/notes/photo.jpg")),
        ("link", "photo.jpg", ("image", "/file/notes/photo.jpg")),
        ("wikilink", "paper.pdf#page=3", ("file", "/file/notes/paper.pdf#page=3")),
        ("link", "https://example.com/x", ("web", "https://example.com/x")),
        ("wikilink", "gone & lost", ("missing", "/new?name=gone%20%26%20lost&from=notes/a.md")),
        ("image", "gone.png", ("missing", "")),
        ("embed", "gone.png", ("missing", "")),
        ("link", "gone.pdf", ("missing", "")),
        ("link", "x%20y.md", ("missing", "/new?name=x%20y.md&from=notes/a.md")),
        ("link", "not percent.md", ("missing", "/new?name=not%20percent.md&from=notes/a.md")),
        ("wikilink", "x%20y", ("missing", "/new?name=x%2520y&from=notes/a.md")),
        ("link", "./x.md", ("missing", "/new?name=x.md&from=notes/a.md")),
        ("link", "../x.md", ("missing", "")),
        ("link", "a%23b.md", ("missing", "")),
        ("wikilink", "v1.2", ("missing", "/new?name=v1.2&from=notes/a.md")),
        ("link", "deep", ("note", "/?path=notes%2Fdeep")),
    ],
)
def test_each_link_leads_where_the_index_says(
    kb: KnowledgeBase, kind: str, target: str, expected: tuple[str, str]
) -> None:
    links = PageLinks(kb, "notes/a.md", create_title="Create it")
    (resolved,) = links.resolve([WrittenTarget(kind, target)])  # type: ignore[arg-type]
    assert (resolved.kind, resolved.address) == expected


def test_a_server_that_only_reads_offers_no_new_note(kb: KnowledgeBase) -> None:
    (resolved,) = PageLinks(kb, "notes/a.md").resolve([WrittenTarget("wikilink", "gone")])
    assert (resolved.kind, resolved.address, resolved.title) == ("missing", "", "gone")


def test_a_section_is_embedded_with_its_own_links(kb: KnowledgeBase) -> None:
    html = render_note("![[b#Part]]", PageLinks(kb, "notes/a.md")).html
    assert "The part, see" in html and 'href="/note/notes/deep/c.md"' in html
    assert "first" not in html and "last" not in html
    block = render_note("![[b#^end]]", PageLinks(kb, "notes/a.md")).html
    assert "last" in block and "The part" not in block


def test_embeds_in_a_circle_end(kb: KnowledgeBase) -> None:
    text = kb.get("notes/a.md").text
    html = render_note(text, PageLinks(kb, "notes/a.md")).html
    assert html.count("<blockquote") <= 4


def test_what_cannot_be_embedded_is_a_link(kb: KnowledgeBase) -> None:
    html = render_note("![[b#Nothing]]\n\n![[gone]]", PageLinks(kb, "notes/a.md")).html
    assert "<blockquote" not in html and 'href="/note/notes/deep/b.md#h-nothing"' in html
