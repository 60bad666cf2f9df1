"""What replies say about properties: the line that gives one, and that no document has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmd import Filters, KnowledgeBase
from qmd.operations import texts
from qmd.tools.toolsets import select

NOTES = {
    "yaml.md": "---\ntags: [a]\ncast:\n  - Ford\nMy Rating: 7\nlast: 2023\n---\n\n# Film\n\nOk.\n",
    "only-frontmatter.md": "---\na: 1\nb: 2\nc: 3\nd: 4\nMy Rating: 6\n---",
    "inline.md": "# A\n\nMy rating: is no field.\n\n- seen with [my rating:: 9] friends\n",
    "nested.md": "---\ntitle: Nested\nx: 1\nbook:\n  author: Orwell\n---\n\nText.\n",
}


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    for name, text in NOTES.items():
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / name).write_text(text, encoding="utf-8")
    kb = KnowledgeBase.open(tmp_path / "kb.sqlite", create=True)
    kb.add_collection(tmp_path / "notes")
    kb.index()
    return kb


@pytest.mark.parametrize(
    ("query", "file", "line"),
    [
        ("my-rating:7", "notes/yaml.md", 5),
        ("cast:ford", "notes/yaml.md", 3),
        ("my-rating:6", "notes/only-frontmatter.md", 6),
        ("my-rating:>8", "notes/inline.md", 5),
        ("book.author:orwell", "notes/nested.md", 5),
        ("-a:1 my-rating:7", "notes/yaml.md", 5),
        # A word of the text explains more than a condition.
        ("ok my-rating:7", "notes/yaml.md", 11),
    ],
)
def test_the_line_of_the_property_is_shown(
    kb: KnowledgeBase, query: str, file: str, line: int
) -> None:
    with kb:
        [hit] = kb.search(query).hits
    assert (hit.file, hit.line) == (file, line)
    shown = NOTES[file.removeprefix("notes/")].split("\n")[line - 1].strip()
    assert f"{line}: {shown}" in [each.replace(":   ", ": ") for each in hit.snippet.split("\n")]


def test_a_filter_by_a_property_that_no_document_has_is_told(kb: KnowledgeBase) -> None:
    with kb:
        filters = Filters(properties=("a:*", "my ratng:7"))
        reply = kb.search("film", filters=filters)
        assert not reply.hits
        assert reply.notice == "No document has the property 'my-ratng'. Did you mean: my-rating"
        [tool] = [each for each in select(["qmd"]).tools if each.name == "search"]
        answer = tool.call(kb, {"query": "film", "properties": ["my ratng:7"]}, texts.MCP)
        assert any("Did you mean: my-rating" in str(block) for block in answer.blocks)
        # A filter that leaves nothing out is no mistake.
        assert kb.search("film", filters=Filters(properties=("-my-ratng:7",))).notice is None
        reply = kb.search("film", filters=Filters(properties=("a:7",)))
        assert reply.notice == "No document has such a value of 'a'."
