"""The bar of all views that shows work in the background."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from support.axe import assert_accessible
from support.site import Served

from qmd.ingest.events import Event
from qmd.system import clock


def test_the_bar_comes_with_work_and_goes_with_its_end(served: Served, page: Page) -> None:
    with page.expect_response("**/part/live"):  # the page follows the events now
        page.goto(served.url)
    bar = page.get_by_role("complementary", name="Work in the background")
    expect(bar).to_be_hidden()
    served.kb.events.publish(Event("embedding", clock.now(), done=10, total=50))
    expect(bar.get_by_role("progressbar", name="Making vectors")).to_be_visible()
    expect(bar).to_contain_text("10 of 50")
    assert_accessible(page)
    served.kb.events.publish(Event("embedding", clock.now(), done=50, total=50))
    expect(bar).to_be_hidden()
