"""Half of a surrogate pair in a name or filter, as JSON can hold: no document has it, no crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import QmdError

HALF = "\ud800"
CALLS: dict[str, Callable[[KnowledgeBase], object]] = {
    "search": lambda kb: kb.search(HALF).hits,
    "two words": lambda kb: kb.search(f"absent {HALF}").hits,
    "get": lambda kb: kb.get(HALF),
    "heading": lambda kb: kb.get(f"plan#{HALF}"),
    "outline": lambda kb: kb.outline(HALF),
    "links": lambda kb: kb.links(HALF),
    "backlinks": lambda kb: kb.backlinks(f"notes/{HALF}"),
    "tags": lambda kb: kb.tags(HALF).tags,
    "collection": lambda kb: kb.tags(collection=HALF).tags,
    "broken": lambda kb: kb.broken_links(collection=HALF).links,
    "recent": lambda kb: kb.recent(since=HALF),
    "property": lambda kb: kb.property_values(HALF),
    "sort": lambda kb: kb.documents("notes", sort=HALF),
    "filter": lambda kb: kb.documents("notes", properties=[f"status:{HALF}"]),
    "move": lambda kb: kb.move_note("plan", HALF),
    "delete": lambda kb: kb.delete_note(HALF),
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder: Path = tmp_path_factory.mktemp("half")
    (folder / "notes").mkdir()
    (folder / "notes/plan.md").write_text("---\nstatus: draft\n---\n# Plan\n\n#work [[no]]\n")
    with KnowledgeBase.open(folder / "index.sqlite", create=True) as opened:
        opened.add_collection(folder / "notes", name="notes")
        opened.index()
        yield opened


@pytest.mark.parametrize("name", CALLS)
def test_half_a_character_is_in_no_document(kb: KnowledgeBase, name: str) -> None:
    try:
        result = CALLS[name](kb)
    except QmdError as error:
        assert error.with_hint
    else:
        assert not result
