"""`outline` lists the headings and named blocks of a document, with the lines that `get` takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import DocumentNotFoundError, SectionNotFoundError
from qmd.operations.texts import MCP
from qmd.tools.toolsets import tools_of
from qmd.values.reading import MAX_OUTLINED, OutlinedBlock, OutlinedHeading
from qmd.values.wire import to_wire
from tests.support.corpus import Corpus

(OUTLINE,) = (tool for tool in tools_of("graph", alone=False) if tool.name == "outline")
NOTE = """---
title: Plan
---
# Plan

intro ^intro

## First

```
# no heading
```

### Deep *down*

Setext
------

end ^the-end
"""


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    corpus = Corpus(tmp_path)
    corpus.fill({
        "plan.md": NOTE,
        "empty.md": "",
        "many.md": "# A\n" + "## Same\n" * (MAX_OUTLINED + 5),
    })  # fmt: skip
    yield corpus.kb
    corpus.kb.close()


def test_headings_and_blocks_come_with_their_lines(kb: KnowledgeBase) -> None:
    outline = kb.outline("plan")
    assert outline.lines == len(NOTE.splitlines())
    assert outline.headings == (
        OutlinedHeading(1, "Plan", 4, 19),
        OutlinedHeading(2, "First", 8, 15),
        OutlinedHeading(3, "Deep down", 14, 15),
        OutlinedHeading(2, "Setext", 16, 19),
    )
    assert outline.blocks == (OutlinedBlock("intro", 6), OutlinedBlock("the-end", 19))
    assert outline.total == 4
    for heading in outline.headings:
        excerpt = kb.get(f"plan#{heading.text}")
        assert excerpt.from_line == heading.line
        assert excerpt.from_line + len(excerpt.text.split("\n")) - 1 == heading.last_line


def test_a_section_has_an_outline(kb: KnowledgeBase) -> None:
    assert [heading.line for heading in kb.outline("[[plan#first]]").headings] == [8, 14]
    assert kb.outline("plan#Setext").blocks == (OutlinedBlock("the-end", 19),)
    with pytest.raises(SectionNotFoundError):
        kb.outline("plan#nothing")
    with pytest.raises(DocumentNotFoundError):
        kb.outline("nothing")


def test_a_document_without_headings_has_an_empty_outline(kb: KnowledgeBase) -> None:
    outline = kb.outline("empty")
    assert (outline.lines, outline.headings, outline.blocks, outline.total) == (0, (), (), 0)


def test_very_many_headings_are_counted_and_cut(kb: KnowledgeBase) -> None:
    outline = kb.outline("many")
    assert len(outline.headings) == MAX_OUTLINED
    assert outline.total == MAX_OUTLINED + 6
    [block] = OUTLINE.call(kb, {"file": "many"}, MCP).blocks
    assert block.text.endswith("… 6 more headings: name a section, as in FILE#Heading")


def test_the_tool_writes_one_line_for_each(kb: KnowledgeBase) -> None:
    reply = OUTLINE.call(kb, {"file": "plan#First"}, MCP)
    [block] = reply.blocks
    assert block.text == "notes/plan.md (19 lines)\n8: ## First\n14: ### Deep down"
    assert reply.structured == to_wire(kb.outline("plan#First"), MCP.field)
    assert reply.structured["headings"][0] == {
        "level": 2, "text": "First", "line": 8, "lastLine": 15
    }  # fmt: skip
