"""Thoughts, pages and files from the page: with a key, by a phone, and without a connection."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import Served
from support.web_site import png


def inbox(served: Served) -> str:
    return (served.folder / "Inbox.md").read_text(encoding="utf-8")


def test_c_opens_a_box_in_every_view(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/note/notes/plan.md")
    page.keyboard.press("c")
    box = page.get_by_role("dialog", name="Capture")
    text = box.get_by_label("A thought", exact=True)
    expect(text).to_be_focused()
    text.fill("A thought from the box #idea")
    assert_accessible(page)
    page.keyboard.press("Control+Enter")
    expect(box.get_by_role("status")).to_contain_text("Added to notes/Inbox.md.")
    expect(text).to_have_value("")
    assert "A thought from the box #idea\n" in inbox(served)
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    assert page.url.endswith("/note/notes/plan.md")


def test_a_thought_stays_until_it_is_sent(served: Served, page: Page) -> None:
    text = page.get_by_label("A thought", exact=True)
    page.goto(f"{served.url}/note/notes/plan.md")
    page.keyboard.press("c")
    text.fill("Half a thou")
    page.goto(f"{served.url}/overview")
    page.keyboard.press("c")
    expect(text).to_have_value("Half a thou")
    page.goto(f"{served.url}/add?text=shared")
    expect(text).to_have_value("shared")
    text.fill("shared, with a remark")
    page.goto(f"{served.url}/add")
    expect(text).to_have_value("Half a thou")
    text.fill("Half a thought, and the rest")
    text.press("Control+Enter")
    expect(text).to_have_value("")
    page.reload()
    expect(text).to_have_value("")
    page.goto(f"{served.url}/add?text=shared")
    expect(text).to_have_value("shared, with a remark")
    text.fill("")
    page.reload()
    expect(text).to_have_value("shared")


@pytest.mark.parametrize("locale", ["en-GB", pytest.param("zh-CN", marks=pytest.mark.nightly)])
def test_a_phone_captures_without_a_connection(
    served: Served, new_page: Callable[..., Page], locale: str
) -> None:
    page = new_page(locale=locale, viewport={"width": 360, "height": 740})
    page.goto(f"{served.url}/add")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    page.wait_for_function("async () => (await caches.match('/add')) !== undefined")
    assert_accessible(page)
    assert_fits(page)
    page.context.set_offline(True)
    page.expected.append("ERR_INTERNET_DISCONNECTED")  # type: ignore[attr-defined]
    page.reload()
    text = page.locator("#capture-text")
    state = page.locator("#capture-state")
    for number in range(3):
        text.fill(f"offline {locale} {number}")
        text.press("Control+Enter")
        expect(text).to_have_value("")
    expect(state).to_contain_text("3")
    assert locale not in (inbox(served) if (served.folder / "Inbox.md").exists() else "")
    page.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(state).to_contain_text(re.compile("Sent what waited|已发送"))
    assert [line[-1] for line in inbox(served).splitlines() if locale in line] == ["0", "1", "2"]


def test_what_waits_is_sent_from_any_view(served: Served, page: Page) -> None:
    note = f"{served.url}/note/notes/plan.md"
    page.goto(note)
    page.keyboard.press("c")
    text = page.get_by_label("A thought", exact=True)
    expect(text).to_be_focused()
    page.context.set_offline(True)
    page.expected.append("ERR_INTERNET_DISCONNECTED")  # type: ignore[attr-defined]
    text.fill("It waits for any view")
    text.press("Control+Enter")
    expect(page.locator("#capture-state")).to_contain_text("One waits")
    page.goto("about:blank")
    page.context.set_offline(False)
    page.goto(note)
    page.wait_for_function("() => localStorage.getItem('qmd-waiting') === null")
    page.reload()
    assert inbox(served).count("It waits for any view") == 1
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_what_is_shared_fills_the_fields_and_writes_nothing(served: Served, page: Page) -> None:
    shared = {"title": "A [page]", "url": "https://example.org/a b", "text": "chosen\nlines"}
    page.goto(f"{served.url}/add?{urlencode(shared)}")
    expect(page.get_by_label("A thought", exact=True)).to_have_value(
        "[A \\[page\\]](<https://example.org/a b>)\n> chosen\n> lines"
    )
    expect(page.get_by_label("Address of the page")).to_have_value("https://example.org/a b")
    before = sorted(served.folder.rglob("*"))
    page.goto(f"{served.url}/add?{urlencode({'url': 'javascript:alert(1)', 'text': 'x'})}")
    expect(page.get_by_label("Address of the page", exact=True)).to_have_value("")
    assert sorted(served.folder.rglob("*")) == before


def test_a_page_that_is_refused_says_why(served: Served, page: Page) -> None:
    page.expected.append("409")  # type: ignore[attr-defined]
    page.goto(f"{served.url}/add?{urlencode({'url': served.url})}")
    page.get_by_role("button", name="Save the page").click()
    expect(page.locator("#capture-state")).to_contain_text("not public")


def test_without_scripts_the_form_is_sent(served: Served, new_page: Callable[..., Page]) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(f"{served.url}/add")
    page.get_by_label("A thought", exact=True).fill("Without a script")
    page.get_by_role("button", name="Add to the inbox").click()
    expect(page.get_by_text("Added to notes/Inbox.md.")).to_be_visible()
    assert "Without a script\n" in inbox(served)


DROP = """(area, [name, data]) => {
  const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: "image/png" }));
  const drop = { dataTransfer: transfer, bubbles: true, cancelable: true };
  area.dispatchEvent(new DragEvent("drop", drop));
}"""
PASTE = """(area, data) => {
  const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "image.png", { type: "image/png" }));
  const paste = { clipboardData: transfer, bubbles: true, cancelable: true };
  area.dispatchEvent(new ClipboardEvent("paste", paste));
}"""


def test_pictures_are_dropped_and_pasted_into_a_note(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/edit/notes/plan.md")
    text = page.get_by_label("Text of the note")
    text.press("Control+End")
    text.evaluate(DROP, ["my boat.png", base64.b64encode(png(3)).decode()])
    expect(text).to_have_value(re.compile(r"!\[my boat\.png\]\(<my boat\.png>\)"))
    text.evaluate(PASTE, base64.b64encode(png(4)).decode())
    expect(text).to_have_value(re.compile(r"!\[\d{8}-\d{6}\.png\]\(\d{8}-\d{6}\.png\)"))
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/note/notes/plan.md*")
    expect(page.locator("main img")).to_have_count(2)
    assert (served.folder / "my boat.png").read_bytes() == png(3)


def test_a_file_is_chosen(served: Served, page: Page, tmp_path: Path) -> None:
    (tmp_path / "letter.pdf").write_bytes(b"%PDF-1.4")
    page.goto(f"{served.url}/add")
    page.get_by_label("Add a picture or a file").set_input_files(tmp_path / "letter.pdf")
    text = page.get_by_label("A thought", exact=True)
    expect(text).to_have_value("[letter.pdf](letter.pdf)")
    page.get_by_role("button", name="Add to the inbox").click()
    expect(page.locator("#capture-state")).to_contain_text("Added")
    assert "[letter.pdf](letter.pdf)" in inbox(served)
