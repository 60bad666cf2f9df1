"""``word*`` finds every word that begins so, whatever its stem in the index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corpus import Corpus

WORDS = """
    university universe universal general generalization generalise generate generation gene
    running runner runs hopping hoped hope filing file happy happiness happily city cities
    relational relative conditional rational valency hesitancy digitizer conformably radically
    differently vilely analogously vietnamization predication operator feudalism decisiveness
    hopefulness callousness formality sensitivity sensibility triplicate formative formalize
    electricity electrical hopeful goodness revival allowance inference airliner gyroscopic
    adjustable defensible irritant replacement adjustment dependent adoption communism activate
    angularity homologous effective bowdlerize controlling rolling flying dying tied agreed
    copy copyable any anything saving savings savingsbank query queryable scalability scalable
    plastered motoring sized falling hissing fizzed failing probate cease theology theory therm
""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("prefix"))
    made.fill({f"{word}.md": f"# T\n\n{word}\n" for word in WORDS})
    yield made
    made.kb.close()


@settings(deadline=None)
@given(st.data())
def test_a_beginning_finds_all_words_that_begin_so(corpus: Corpus, data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(WORDS))
    beginning = word[: data.draw(st.integers(1, len(word)))]
    wanted = {f"{other}.md" for other in WORDS if other.startswith(beginning)}
    assert wanted <= corpus.exact(f"{beginning}*")
    holding = {f"{other}.md" for other in WORDS if beginning in other}
    assert corpus.exact(f"{beginning}*") <= holding or len(beginning) < 3
