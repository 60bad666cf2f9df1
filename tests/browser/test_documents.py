"""PDFs, sheets and e-mail in a browser: what they look like, and the ways in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.pdf import Mark, lines, pdf
from support.site import Served, press, serve


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    pages = [
        lines(f"Page {number}", *["Words " * 12] * 40, f"The quagga of page {number}.", step=14)
        for number in range(1, 6)
    ]
    marks = [Mark(f"Page {number}", number - 1) for number in range(1, 6)]
    names = ",".join(f"name {n}" for n in range(30))
    mails = "".join(
        f"From a@b Tue Mar  5 10:00:00 2024\nSubject: {subject}\nFrom: Ann <a@b.org>\n"
        f"Message-ID: <{n}@x>\n\n{'Words. ' * 300}\n\n"
        for n, subject in enumerate(("Plan", "Re: Plan", "Lunch"), start=1)
    )
    files: dict[str, str | bytes] = {
        "a.pdf": pdf(pages, marks=marks),
        "b.csv": f"{names}\n" + f"{','.join(['words'] * 30)}\n" * 300,
        "narrow.csv": "name 0,name 1\n" + "words,words\n" * 210,
        "c.mbox": mails,
    }
    with serve(tmp_path, files, embed=False, mask="**/*.{pdf,csv,mbox}") as server:
        yield server


@pytest.mark.parametrize("has_scripts", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_hit_shows_the_mark_on_the_picture(
    served: Served, new_page: Callable[..., Page], has_scripts: bool
) -> None:
    page = new_page(java_script_enabled=has_scripts, viewport={"width": 900, "height": 600})
    page.goto(f"{served.url}/?q=quagga+%22page+4%22&mode=words")
    page.get_by_role("heading", name="a", exact=True).get_by_role("link").click()
    picture = page.get_by_role("img", name="Page 4 as a picture")
    expect(picture).to_be_visible()
    mark = page.locator(".pdf-page rect").first
    expect(mark).to_be_in_viewport()
    page.get_by_role("link", name="Next page").first.click()
    expect(page.locator(".pdf-page")).to_have_id("page=5")
    page.get_by_label("Page", exact=True).fill("2")
    page.keyboard.press("Enter")
    expect(page.locator(".pdf-page")).to_have_id("page=2")
    box = page.locator(".pdf-page").bounding_box()
    assert box is not None
    assert box["height"] / box["width"] == pytest.approx(792 / 612, abs=0.01)


def test_keys_and_fragments_lead_to_pages(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/note/notes/a.pdf#page=3")
    shown = page.locator(".pdf-page")
    expect(shown).to_have_id("page=3")
    press(page, "n")
    expect(shown).to_have_id("page=4")
    press(page, "p")
    expect(shown).to_have_id("page=3")
    expect(page.locator(".outline [aria-current]")).to_have_text("Page 3")
    decoded = page.get_by_role("img", name="Page 3 as a picture").evaluate(
        "image => image.decode().then(() => image.naturalWidth)"
    )
    assert decoded > 0


@pytest.mark.parametrize("width", [360, pytest.param(1280, marks=pytest.mark.nightly)])
def test_the_view_is_accessible_and_fits(
    served: Served, new_page: Callable[..., Page], width: int
) -> None:
    page = new_page(locale="zh-CN", viewport={"width": width, "height": 800})
    for address, text in (
        ("a.pdf?page=2&q=quagga", "本页文字"),
        ("narrow.csv?line=225#at", "前面的行"),  # axe looks at each cell, here at few
        ("c.mbox", "会话：2"),
        ("c.mbox?message=2", "发件人"),
    ):
        page.goto(f"{served.url}/note/notes/{address}")
        expect(page.get_by_text(text).first).to_be_visible()
        assert_fits(page)
        assert_accessible(page)
    page.goto(f"{served.url}/note/notes/b.csv?line=150#at")
    expect(page.locator("tr.at")).to_be_in_viewport()
    assert_fits(page)


def test_the_head_of_a_sheet_stays_in_sight(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/note/notes/b.csv?line=150#at")
    expect(page.locator("tr.at")).to_be_in_viewport()
    expect(page.get_by_role("columnheader", name="name 0", exact=True)).to_be_in_viewport()


def test_a_fragment_leads_to_a_message(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/note/notes/c.mbox#message=2")
    expect(page.locator("[id='message=2']")).to_be_in_viewport()
    press(page, "n")
    expect(page.get_by_role("heading", name="Lunch")).to_be_visible()
