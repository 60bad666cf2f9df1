"""The trees of folders and tags, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.site import Served, http_client, serve

from qmd.server.page.beside import MOST_LISTED, tree

NOTES = {
    "top.md": "# Top\n\n#work #work/boat\n",
    "a/Part 10.md": "# Ten\n",
    "a/part 2.md": "# Two\n",
    "a/b/deep & <i>.md": "# Deep\n\n#work/boat\n",
    **{f"many/{n:03}.md": f"# {n}\n" for n in range(MOST_LISTED + 20)},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory: Path = tmp_path_factory.mktemp("tree")
    with serve(directory, NOTES, embed=False) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        yield client


def test_the_folders_of_a_note_are_open(served: Served) -> None:
    (notes,) = tree(served.kb, "notes/a/part 2.md").entries
    assert notes.level is not None
    assert [each.name for each in notes.level.entries] == ["a", "many", "top"]
    inside = notes.level.entries[0].level
    assert inside is not None
    assert [(each.name, each.is_current) for each in inside.entries] == [
        ("b", False),
        ("part 2", True),
        ("Part 10", False),
    ]
    assert notes.level.entries[1].level is None


def test_a_long_folder_is_shown_from_the_note_on(served: Served, client: httpx.Client) -> None:
    name = f"{MOST_LISTED + 5:03}"
    (notes,) = tree(served.kb, f"notes/many/{name}.md").entries
    assert notes.level is not None
    many = next(each for each in notes.level.entries if each.name == "many").level
    assert many is not None
    assert many.entries[0].name == name
    assert (many.before, many.after) == ("/browse/notes/many", "")
    page = client.get(many.before).text
    behind = f"/browse/notes/many?from=notes/many/{MOST_LISTED:03}.md"
    assert f'href="{behind}"' in page
    assert f'href="/note/notes/many/{name}.md"' not in page
    assert f'href="/note/notes/many/{name}.md"' in client.get(behind).text


def test_a_note_shows_its_tree_unless_the_person_has_hidden_it(client: httpx.Client) -> None:
    page = client.get("/note/notes/a/b/deep & <i>.md").text
    assert 'data-tree="on"' in page
    assert '<a href="/note/notes/a/b/deep%20%26%20%3Ci%3E.md" aria-current="page">' in page
    assert "deep &amp; &lt;i&gt;</a>" in page
    hidden = client.get("/note/notes/top.md", headers={"cookie": "qmd_tree=off"}).text
    assert 'data-tree="off"' in hidden


def test_folders_and_tags_are_a_view_without_scripts(client: httpx.Client) -> None:
    page = client.get("/browse").text
    assert 'href="/browse/notes/a"' in page
    assert 'href="/note/notes/top.md"' in page  # the only collection is open
    assert 'href="/?q=tag%3Awork/boat"' in page
    page = client.get("/browse/notes/a/b/").text
    assert 'href="/browse/notes/a"' in page
    assert "deep &amp; &lt;i&gt;" in page
    assert client.get("/browse/notes/none").status_code == 404
    assert client.get("/browse/none").status_code == 404
    assert client.get("/part/tree/notes/none").status_code == 404
    part = client.get("/part/tree/notes/a/").text
    assert "part 2" in part
    assert "<html" not in part
    assert "tag%3Awork" in client.get("/part/tags").text
