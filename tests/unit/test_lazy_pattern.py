"""A regular expression that is compiled when it is first used."""

from __future__ import annotations

import re

import pytest

from qmd import lazy


def test_it_is_used_like_a_compiled_one() -> None:
    word = lazy.pattern("([a-z])[a-z]*", re.IGNORECASE)
    assert word.sub(r"\1.", "Ada Lovelace") == "A. L."
    assert [match[0] for match in word.finditer("ab c")] == ["ab", "c"]
    assert word.pattern == "([a-z])[a-z]*"
    assert word.flags & re.IGNORECASE


def test_a_wrong_one_says_so_at_its_use() -> None:
    wrong = lazy.pattern("(")
    with pytest.raises(re.error, match="unterminated subpattern"):
        wrong.match("")


def test_it_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        _ = lazy.pattern("a").nothing  # type: ignore[attr-defined]
    assert not hasattr(lazy.pattern("a"), "__wrapped__")
