"""The calendar and the tasks, in both languages, on a phone and on a desk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import Served, serve

NOTES = {
    "2026-11-20.md": "A walk.\n",
    "plan.md": "# Plan\n\n- [ ] Launch the boat 📅 2026-11-20 #boat\n",
    "list.md": "```qmd\ntags: boat\ncolumns: title, file.mtime\n```\n",
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, NOTES, embed=False) as served:
        yield served


@pytest.mark.parametrize(
    ("width", "locale"),
    [
        (360, "zh-CN"),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [(1280, "en-GB"), (360, "en-GB"), (1280, "zh-CN")]
        ),
    ],
)
def test_the_calendar_fits_and_is_accessible(
    served: Served, new_page: Callable[..., Page], locale: str, width: int
) -> None:
    page = new_page(locale=locale, viewport={"width": width, "height": 740})
    for address in ("/days?month=2026-11", "/days/2026-11-21", "/note/notes/list.md"):
        page.goto(served.url + address)
        assert_fits(page)
        assert_accessible(page)
    page.goto(f"{served.url}/days?month=2026-11")
    page.keyboard.press("n")
    expect(page.locator("h2").first).to_contain_text("12月" if locale == "zh-CN" else "December")
    page.locator(".task-list .box").click()
    expect(page.locator(".task-list")).to_have_count(0)
    assert "- [x] Launch" in (served.folder / "plan.md").read_text(encoding="utf-8")
