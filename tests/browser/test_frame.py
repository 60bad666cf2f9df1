"""The frame that all views have: navigation, languages, errors."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import Served


def test_the_language_is_that_of_the_browser_until_the_person_chooses(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(locale="zh-CN")
    page.goto(served.url)
    expect(page.get_by_role("navigation").get_by_text("搜索")).to_be_visible()
    page.get_by_role("link", name="English").click()
    page.goto(f"{served.url}/overview")
    expect(page.get_by_role("heading", name="Health")).to_be_visible()


def test_the_frame_is_accessible_and_fits_a_narrow_window(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(viewport={"width": 360, "height": 640})
    page.goto(f"{served.url}/overview")
    assert_accessible(page)
    assert_fits(page)


def test_what_is_printed_of_the_dark_theme_is_dark_on_white(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(color_scheme="dark")
    page.emulate_media(media="print")
    for view in ("/overview", "/note/notes/plan.md", "/?q=boat"):
        page.goto(served.url + view)
        assert_accessible(page)
        color = "body => getComputedStyle(body).backgroundColor"
        assert page.locator("body").evaluate(color) == "rgb(255, 255, 255)"
