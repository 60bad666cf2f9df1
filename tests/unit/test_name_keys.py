"""The keys of names: one for all spellings, and none shared by different files of one folder."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmd.values.text import fold, link_key, link_keys_to, link_path, name_key


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("Plan.md", "plan"),
        ("a/b/PLAN.MD", "plan"),
        ("plan.markdown", "plan"),
        ("Albums.base", "albums.base"),
        ("v1.2.md", "v1.2"),
        ("v1.2", "v1.2"),
        ("Note.md.md", "note.md"),
        ("photo.jpg.md", "photo.jpg"),
        (".md", ".md"),
        ("STRASSE.md", "strasse"),
        ("Straße.md", "strasse"),
        ("Cafe\u0301.md", "caf\u00e9"),
        ("笔记.md", "笔记"),
        ("İ.md", "i\u0307"),
        ("", ""),
    ],
)
def test_a_key_is_the_folded_file_name_without_md(path: str, key: str) -> None:
    assert name_key(path) == key


@pytest.mark.parametrize(
    ("kind", "target", "path", "key"),
    [
        ("wikilink", "a%20b", "a%20b", "a%20b"),
        ("link", "a%20b.md", "a b.md", "a b"),
        ("link", "a%23b.md", "a#b.md", "a#b"),
        ("image", "../img/A.PNG", "../img/A.PNG", "a.png"),
        ("embed", "Albums.base", "Albums.base", "albums.base"),
        ("wikilink", "folder/", "folder/", "folder"),
        ("wikilink", "", "", ""),
        ("link", "https://x.org/a.md", None, None),
        ("link", "mailto:a@x.org", None, None),
        ("link", "//x.org/a.md", None, None),
        ("wikilink", "https://x.org/a", None, None),
        ("wikilink", "Re: plan", "Re: plan", "re: plan"),
        ("link", "%ff.md", "\ufffd.md", "\ufffd"),
    ],
)
def test_a_link_has_the_key_of_its_file(
    kind: str, target: str, path: str | None, key: str | None
) -> None:
    assert link_path(kind, target) == path
    assert link_key(kind, target) == key


@given(st.text())
def test_all_spellings_have_one_key(name: str) -> None:
    key = fold(name)
    assert fold(key) == key
    assert unicodedata.is_normalized("NFC", key)
    for form in ("NFC", "NFD"):
        assert fold(unicodedata.normalize(form, name)) == key  # type: ignore[arg-type]


@example("\\")
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/:#%"), min_size=1))
def test_a_link_to_a_file_by_its_name_has_a_key_that_leads_to_it(name: str) -> None:
    keys = link_keys_to(f"folder/{name}.md")
    assert {link_key("wikilink", name), link_key("link", f"{name}.md")} <= set(keys)
