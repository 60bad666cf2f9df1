"""The page by keyboard alone: the keys, lists, and the help that explains them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import Served, press


def test_a_search_is_done_by_keyboard_alone(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/overview")
    page.keyboard.press("/")
    field = page.locator("#q")
    expect(field).to_be_focused()
    page.keyboard.type("boat /")  # in a field a key is what it always is
    expect(field).to_have_value("boat /")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_be_visible()
    expect(page).to_have_url(f"{served.url}/?q=boat+")
    press(page, "/")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")  # the suggestions, if any
    with page.expect_response(lambda response: response.url.endswith("/part/hits?q=boat")):
        field.fill("boat")  # first come hits by words, then all of them
    expect(page.locator("#hits")).to_have_attribute("aria-busy", "false")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit h2 a").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(".hit h2 a").nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()


def test_two_keys_lead_to_a_view(served: Served, page: Page) -> None:
    page.clock.install()
    page.goto(f"{served.url}/overview")
    page.clock.pause_at(time.time() + 600)  # between the two keys, too
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page).to_have_url(f"{served.url}/")


def test_keys_without_ctrl_can_be_switched_off(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/overview")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Help")
    expect(dialog).to_be_visible()
    dialog.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Help").click()
    expect(dialog).to_be_visible()


@pytest.mark.parametrize(
    ("locale", "heading"),
    [pytest.param("en-GB", "Help", marks=pytest.mark.nightly), ("zh-CN", "帮助")],
)
def test_the_help_is_accessible_and_fits(
    served: Served, new_page: Callable[..., Page], locale: str, heading: str
) -> None:
    page = new_page(viewport={"width": 360, "height": 640}, locale=locale)
    page.goto(f"{served.url}/help")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name=heading)).to_be_visible()
    assert_accessible(page)
    assert_fits(page)


def test_the_palette_leads_to_notes_and_commands(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(viewport={"width": 360, "height": 640})
    page.goto(f"{served.url}/note/notes/Harbour.md")
    page.goto(f"{served.url}/overview")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to a note")
    expect(palette.get_by_role("option").first).to_contain_text("Harbour")  # seen before
    page.keyboard.type("pla")
    expect(palette.get_by_role("option").first).to_contain_text("plan")
    assert_accessible(page)
    assert_fits(page)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{served.url}/note/notes/plan.md")
    press(page, "Control+k")
    page.keyboard.type(">del")
    expect(palette.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")  # a link of the closed menu
    expect(page).to_have_url(f"{served.url}/delete/notes/plan.md")
    press(page, "[")
    expect(page).to_have_url(f"{served.url}/note/notes/plan.md")
    press(page, "]")
    expect(page).to_have_url(f"{served.url}/delete/notes/plan.md")
    press(page, "Control+k")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
