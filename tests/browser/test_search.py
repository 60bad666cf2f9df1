"""The search view in a browser: typing, filters, modes, and without a script."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import Served


def test_hits_come_while_typing_and_their_words_are_marked(served: Served, page: Page) -> None:
    page.goto(served.url)
    expect(page.get_by_role("heading", name="Changed last")).to_be_visible()
    page.get_by_role("combobox", name="Search", exact=True).press_sequentially("harbour")
    expect(page.get_by_role("link", name="Harbour", exact=True)).to_be_visible()
    expect(page.locator("mark").first).to_have_text("harbour", ignore_case=True)
    expect(page.get_by_role("heading", name="Changed last")).to_be_hidden()
    expect(page).to_have_url(f"{served.url}/?q=harbour")


def test_a_cleared_query_leads_back_to_the_start(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/?q=boat")
    field = page.get_by_role("combobox", name="Search", exact=True)
    field.fill("")
    expect(page.get_by_role("heading", name="Changed last")).to_be_visible()
    expect(page).to_have_url(f"{served.url}/")
    field.fill("harbour")
    expect(page.get_by_role("link", name="Harbour", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Changed last")).to_be_hidden()


def test_what_was_meant_is_shown_after_a_pause(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/?mode=words")
    page.get_by_role("combobox", name="Search", exact=True).press_sequentially("harbuor")
    expect(page.get_by_role("link", name="harbour", exact=True)).to_be_visible()
    expect(page.locator(".hit").first).to_be_visible()


def test_a_filter_narrows_the_hits_and_its_chip_removes_it(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/?q=boat&tag=work")
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_role("link", name="Remove the filter Tag: work").click()
    expect(page.get_by_role("link", name="Harbour", exact=True)).to_be_visible()


def test_the_mode_stays_in_the_address(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/?q=boat")
    page.get_by_text("Words", exact=True).click()
    expect(page).to_have_url(f"{served.url}/?q=boat&mode=words")
    page.reload()
    expect(page.get_by_label("Words")).to_be_checked()


def test_a_suggestion_is_chosen_by_keyboard(served: Served, page: Page) -> None:
    page.goto(served.url)
    field = page.get_by_role("combobox", name="Search", exact=True)
    field.fill("#wo")  # at once: choices for the first letter would come in between
    option = page.get_by_role("option", name="#work")
    expect(option).to_be_visible()
    expect(field).to_have_attribute("aria-expanded", "true")
    field.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    assert_accessible(page)
    field.press("Enter")
    expect(field).to_have_value("tag:work ")
    expect(page.get_by_role("link", name="Plan", exact=True)).to_be_visible()
    field.fill("pla")
    expect(page.get_by_role("option", name="plan")).to_be_visible()
    field.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field).to_have_value("pla")


def test_the_filters_suggest_tags_and_properties(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/?q=boat")
    page.get_by_text("Filters").click()
    expect(page.locator("datalist#tags option")).to_have_count(1)
    page.get_by_label("Tag").fill("work")
    page.get_by_label("Tag").press("Enter")
    expect(page.get_by_role("link", name="Remove the filter Tag: work")).to_be_visible()
    expect(page.locator(".hit")).to_have_count(1)


def test_searching_needs_no_script(served: Served, new_page: Callable[..., Page]) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(served.url)
    page.get_by_role("searchbox").fill("boat")
    button = page.get_by_role("button", name="Search")
    assert button.evaluate("each => each.scrollHeight <= 48 && each.clientWidth > 60"), "one line"
    button.click()
    expect(page.get_by_role("link", name="Harbour", exact=True)).to_be_visible()


def test_the_view_is_accessible_and_fits(served: Served, new_page: Callable[..., Page]) -> None:
    page = new_page(viewport={"width": 360, "height": 640}, locale="zh-CN")
    page.goto(f"{served.url}/?q=数据库&collection=notes")
    expect(page.locator(".hit")).not_to_have_count(0)
    assert_accessible(page)
    assert_fits(page)
