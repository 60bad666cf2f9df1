"""Photos in a browser: filtered, looked at, described; and attachments that cannot act."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support import photos
from support.axe import assert_accessible, assert_fits
from support.site import Served

from qmd.values import PhotoChange


@pytest.fixture
def with_photos(served: Served, tmp_path: Path) -> Served:
    for name in ("boat.jpg", "harbour.png", "raft.heic"):
        photos.make(served.folder / name)
    served.kb.index()
    served.kb.change_photo("notes/boat.jpg", PhotoChange(people=("Anna", "王芳"), tags=("sea",)))
    return served


def test_a_photo_is_looked_for_opened_and_described(with_photos: Served, page: Page) -> None:
    page.goto(f"{with_photos.url}/photos")
    page.get_by_label("Person").select_option("王芳")
    page.get_by_role("button", name="Filter").press("Enter")
    picture = page.get_by_role("link", name="boat")
    expect(picture).to_be_visible()
    expect(page.get_by_role("link", name="harbour")).to_be_hidden()
    assert picture.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)")
    picture.click()
    page.get_by_text("Edit", exact=True).click()
    page.get_by_label("Description").fill("At sea\nin July")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("The photo was changed")
    expect(page.locator("figcaption")).to_contain_text("in July")
    metadata = with_photos.kb.metadata_of_photo("notes/boat.jpg")
    assert (metadata.description, metadata.people) == ("At sea\nin July", ("Anna", "王芳"))


@pytest.mark.parametrize("theme", [pytest.param("light", marks=pytest.mark.nightly), "dark"])
def test_photos_are_accessible_and_fit_a_narrow_window(
    with_photos: Served, new_page: Callable[..., Page], theme: str
) -> None:
    page = new_page(viewport={"width": 360, "height": 740}, color_scheme=theme)
    for path in ("photos", "photos?person=Anna", "photo/notes/boat.jpg"):
        page.goto(f"{with_photos.url}/{path}")
        for edit in page.locator(".photo-beside > details > summary").all():
            edit.click()
        assert_accessible(page)
        assert_fits(page)


def test_a_script_in_an_attachment_does_not_run(served: Served, page: Page) -> None:
    script = "<script>document.documentElement.setAttribute('fill', 'red')</script>"
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{script}</svg>'
    (served.folder / "evil.svg").write_text(picture)
    served.kb.index()
    page.expected.append("sandboxed")  # type: ignore[attr-defined]
    page.goto(f"{served.url}/file/notes/evil.svg")
    assert page.evaluate("document.documentElement.getAttribute('fill')") is None
