"""Date filters compare moments, not spellings."""

from pathlib import Path

import pytest

from qmd import Filters, KnowledgeBase
from qmd.errors import InputError


@pytest.fixture
def kb(tmp_path: Path):
    root = tmp_path / "notes"
    root.mkdir()
    for name, date in (("a", "2025-03-01T06:00:00+08:00"), ("b", "2025-03-01"), ("c", "2025-03")):
        (root / f"{name}.md").write_text(f"---\ndate: {date}\n---\nword\n")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(root)
        kb.index()
        yield kb


def found(kb: KnowledgeBase, **filters: str) -> list[str]:
    return sorted(hit.path for hit in kb.search("word", filters=Filters(**filters)).hits)


def test_a_day_is_the_one_written_in_the_note(kb: KnowledgeBase) -> None:
    assert {"a.md", "b.md"} <= set(found(kb, after="2025-03-01"))
    assert not {"a.md", "b.md"} & set(found(kb, before="2025-03-01"))


def test_a_time_of_day_is_a_moment_whatever_its_offset(kb: KnowledgeBase) -> None:
    assert "a.md" in found(kb, before="2025-02-28T23:00:00Z")
    assert "a.md" not in found(kb, after="2025-02-28T23:00:00Z")
    assert "a.md" in found(kb, after="2025-03-01T06:00:00+08:00")


def test_a_month_stands_for_its_first_day(kb: KnowledgeBase) -> None:
    assert "b.md" in found(kb, after="2025-03")
    assert "b.md" not in found(kb, before="2025-03")


def test_what_is_no_date_is_an_error_that_says_how_to_write_one(kb: KnowledgeBase) -> None:
    with pytest.raises(InputError) as error:
        kb.search("word", filters=Filters(after="soon"))
    assert "2026-11-20" in str(error.value.hint)
