"""A person logs in with a token that opens some collections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.live import put
from support.site import Served, serve


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, embed=False, token="admin") as served:
        put(tmp_path / "closedroom/secret.md", "# A secret boat\n")
        served.kb.add_collection(tmp_path / "closedroom")
        served.kb.index()
        yield served


def test_a_person_logs_in_searches_and_logs_out(guarded: Served, page: Page) -> None:
    token = guarded.kb.create_token("anna", read=["notes"]).token
    page.expected.append("401")  # type: ignore[attr-defined]
    page.goto(f"{guarded.url}/overview")
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    assert_accessible(page)
    assert_fits(page)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    assert "closedroom" not in page.content()
    assert token not in page.url + page.content()
    page.get_by_role("link", name="Search", exact=True).click()
    page.get_by_role("combobox", name="Search", exact=True).fill("boat")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Harbour").click()
    expect(page.get_by_role("heading", name="Harbour", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    assert page.evaluate("document.cookie") == ""
    assert_accessible(page)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.goto(guarded.url)
    expect(page.get_by_label("Token")).to_be_visible()
