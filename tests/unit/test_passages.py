"""A reranker reads the part of a document that is most likely to answer the question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd.search.question import SearchModels, parse_for_both
from qmd.search.rank import BEFORE, PASSAGE_CHARS, passages_of
from qmd.search.retrieve import Retrieved, retrieve
from qmd.values import SearchRequest
from tests.support.corpus import Corpus

FILLER = "\n\n".join(f"sheep{n} hay{n} weather{n} meadow{n} clouds{n} wool{n}" for n in range(400))
ANSWER = "The red boat lies in the harbour of Kiel."


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    made = Corpus(tmp_path)
    made.fill(
        {
            "short.md": f"---\ntags: [sea]\n---\n# Short\n\n{ANSWER}\n",
            "long.md": f"# Long\n\n{FILLER}\n\n{ANSWER}\n\n{FILLER}\n",
            "chinese.md": f"# 港口\n\n{'关于天气和羊群。' * 30}\n\n" * 20 + "红船停在基尔港。\n",
        }
    )
    yield made
    made.store.close()


def passages(corpus: Corpus, query: str, *, forget_hits: bool = False) -> dict[str, str]:
    """Title → passage."""
    models = SearchModels(embedder=lambda: corpus.embedder)
    with corpus.store.reading() as reader:
        retrieved: Retrieved = retrieve(
            reader, parse_for_both(reader, SearchRequest(query), models), models
        )
        if forget_hits:  # as if many other documents were nearer
            for candidate in retrieved.candidates.values():
                candidate.chunk_id = None
        ids = [document.id for document in reader.documents.below(None)]
        return {text.split("\n")[0]: text for text in passages_of(reader, retrieved, ids)}


def test_without_vectors_it_begins_shortly_before_the_line_with_the_words(corpus: Corpus) -> None:
    found = passages(corpus, "red boat harbour")
    assert found["Short"] == f"Short\n# Short\n\n{ANSWER}\n"  # without the frontmatter
    assert ANSWER in found["Long"][: BEFORE + 100]
    assert len(found["Long"]) == PASSAGE_CHARS
    assert found["港口"].startswith("港口\n# 港口")  # none of the words
    assert "红船停在基尔港" in passages(corpus, "红船 基尔港")["港口"][: BEFORE + 100]


@pytest.mark.parametrize("forget_hits", [False, True])
def test_with_vectors_it_is_the_nearest_chunk(corpus: Corpus, forget_hits: bool) -> None:
    corpus.kb.embed()
    found = passages(corpus, "red boat harbour Kiel", forget_hits=forget_hits)
    assert ANSWER in found["Long"]
    assert found["Short"].endswith(ANSWER)
