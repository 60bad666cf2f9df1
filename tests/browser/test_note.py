"""The note view and its history in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import Served, serve

from qmd.ingest.events import Event
from qmd.system import clock

HOSTILE = """# Hostile

<script>window.ran = 1</script>
<img src=x onerror="window.ran = 1"><img src="/file/notes/none.png" onload="window.ran = 1">
<svg onload="window.ran = 1"><script>window.ran = 1</script></svg>
<svg><a xlink:href="javascript:window.ran = 1"><text y="20">svg</text></a></svg>
<a href="javascript:window.ran = 1">plain</a> [md](javascript:window.ran=1)
<javascript:window.ran=1>
[data](data:text/html,<script>window.ran=1</script>) [case](JaVaScRiPt:window.ran=1)
<a href="&#106;avascript:window.ran=1">entity</a> <a href="java\tscript:window.ran=1">tab</a>
<form action="https://evil.example/" id="main"><input name="csrf"><button>send</button></form>
<style>body { display: none }</style><link rel="stylesheet" href="https://evil.example/x.css">
<p style="position: fixed; inset: 0; background: red">cover</p>
<div class="top" id="announce">pretends to be the page</div>
<a name="forms" id="similar">clobber</a><img name="getElementById" id="body">
<meta http-equiv="refresh" content="0;url=https://evil.example/"><base href="https://evil.example/">
<iframe src="https://evil.example/" srcdoc="<script>parent.ran=1</script>"></iframe>
<object data="https://evil.example/"></object><embed src="https://evil.example/">
<math><mtext><table><mglyph><style><img src=x onerror="window.ran=1"></style></table></mtext></math>
<details open ontoggle="window.ran=1"><summary>fold</summary></details>
<input autofocus onfocus="window.ran=1"><video src=x onerror="window.ran=1"></video>

![remote](https://evil.example/pixel.png) ![[x.svg|<img src=x onerror=window.ran=1>]]

</article></main></body><script>window.ran = 1</script>

`</code><script>window.ran=1</script>` $\\href{javascript:window.ran=1}{x}$

The end is shown.
"""

NOTES = {
    "plan.md": (
        "---\ntags: [work]\nstatus: draft\n---\n# Plan\n\nBuy a boat, see [[Harbour#Depth]].\n\n"
        + "".join(f"## Part {n}\n\n{'Some words. ' * 60}\n\n" for n in range(1, 9))
        + "![[Harbour#Depth]]\n\n- [ ] paint the boat\n- [x] buy rope\n\n"
        + f"| {'| '.join('Aheadingoftwenty' for _ in range(12))} |\n{'|--' * 12}|\n\n"
        + f"```python\nx = '{'long' * 80}'\n```\n"
    ),
    "Harbour.md": (
        "# Harbour\n\n" + "The boat lies here.\n\n" * 40 + "## Depth\n\nFive metres.\n\n"
        "Back to the [[plan]].\n"
    ),
    "2025/年度回顾与明年的计划：数据库迁移到新服务器之后的得失.md": (
        "# 年度回顾\n\n这一年我们完成了 [[plan]]，把数据库迁移到了新的服务器。\n"
    ),
    "hostile.md": HOSTILE,
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, NOTES) as server:
        yield server


def test_a_wikilink_leads_to_the_heading_and_an_embed_shows_it(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/note/notes/plan.md")
    expect(page.locator(".content .embed")).to_contain_text("Five metres.")
    page.locator(".content p").get_by_role("link", name="Harbour > Depth").click()
    expect(page).to_have_url(f"{served.url}/note/notes/Harbour.md#h-depth")
    expect(page.get_by_role("heading", name="Depth")).to_be_in_viewport()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_note_opens_at_the_line(
    served: Served, new_page: Callable[..., Page], has_scripts: bool
) -> None:
    page = new_page(java_script_enabled=has_scripts, viewport={"width": 900, "height": 600})
    page.goto(f"{served.url}/note/notes/Harbour.md?line=85")
    expect(page.locator(".content .at")).to_have_text("Five metres.")
    expect(page.locator(".content .at")).to_be_in_viewport()


def test_what_is_beside_a_note_leads_on(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/note/notes/plan.md")
    beside = page.get_by_role("complementary", name="About this note")
    outline = beside.locator(".outline")
    outline.get_by_role("link", name="Part 6").click()
    expect(outline.get_by_role("link", name="Part 6")).to_have_attribute("aria-current", "true")
    beside.locator("#similar").scroll_into_view_if_needed()
    expect(beside.locator("#similar li").first).to_be_visible()
    beside.locator(".graph").get_by_role("link", name="Harbour, linked both ways").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{served.url}/note/notes/Harbour.md")
    page.get_by_role("link", name="Buy a boat").click()
    expect(page).to_have_url(f"{served.url}/note/notes/plan.md?line=7")
    expect(page.locator(".content .at")).to_contain_text("Buy a boat")


def test_similar_notes_come_when_their_vectors_are_made(tmp_path: Path, page: Page) -> None:
    with serve(tmp_path, NOTES, embed=False) as served:
        with page.expect_response("**/part/live"):  # the page follows the events now
            page.goto(f"{served.url}/note/notes/plan.md")
        similar = page.locator("#similar .similar")
        similar.scroll_into_view_if_needed()
        expect(similar).to_contain_text("has no vectors yet")
        served.kb.events.publish(Event("embedding", clock.now(), done=1, total=50))
        expect(similar).to_contain_text("are being made")
        served.kb.embed()
        served.kb.events.publish(Event("embedding", clock.now(), done=50, total=50))
        expect(similar.locator("li").first).to_be_visible()


def test_an_earlier_text_is_compared_and_restored(served: Served, page: Page) -> None:
    served.kb.replace_note("notes/Harbour.md", "# Harbour\n\nIt is gone.\n")
    page.goto(f"{served.url}/note/notes/Harbour.md")
    page.get_by_role("link", name="History").click()
    expect(page.locator(".diff .removed").last).to_contain_text("Back to the")
    assert_accessible(page)
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("status").filter(has_text="was restored")).to_be_visible()
    expect(page.locator(".content")).to_contain_text("Five metres.")
    assert (served.folder / "Harbour.md").read_text() == NOTES["Harbour.md"]


def test_a_hostile_note_runs_nothing(served: Served, page: Page) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.expected.append("404")  # type: ignore[attr-defined]  # of an image that is not there
    page.goto(f"{served.url}/note/notes/hostile.md")
    expect(page.locator(".content")).to_contain_text("The end is shown.")
    content = page.locator(".content")
    for forbidden in (
        "script",
        "style",
        "form",
        "iframe",
        "object",
        "embed",
        "meta",
        "link",
        "svg",
    ):
        assert content.locator(forbidden).count() == 0, forbidden
    assert page.locator("#main").count() == page.locator("#announce").count() == 1
    links = content.locator("a").evaluate_all("all => all.map(each => each.protocol)")
    assert not {"javascript:", "data:"} & set(links)
    for link in content.locator("a").all():
        link.dispatch_event("mouseover")
    assert page.evaluate("window.ran") is None
    assert page.evaluate("typeof document.getElementById") == "function"
    assert all(each.startswith(served.url) for each in requested)
    assert page.url == f"{served.url}/note/notes/hostile.md"
    assert content.evaluate("each => getComputedStyle(each).position") == "static"


@pytest.mark.parametrize("width", [360, pytest.param(1280, marks=pytest.mark.nightly)])
def test_the_view_is_accessible_and_fits(
    served: Served, new_page: Callable[..., Page], width: int
) -> None:
    page = new_page(locale="zh-CN", viewport={"width": width, "height": 800})
    page.goto(f"{served.url}/note/notes/plan.md?line=7")
    similar = page.locator("#similar")  # not yet in sight: it is loaded when it is
    similar.evaluate("all => { all.open = false; all.open = true; }")
    similar.scroll_into_view_if_needed()
    expect(page.locator("#similar li").first).to_be_visible()
    assert_fits(page)
    assert_accessible(page)
    if width == 360:
        height = "all => Math.min(...all.map(each => each.getBoundingClientRect().height))"
        small = ".crumbs a, .note-beside :is(summary, li > a), .foot :is(a, button)"
        assert page.locator(small).locator("visible=true").evaluate_all(height) >= 24
        boxes = page.locator(".top > *").evaluate_all(
            "all => all.map(each => [each.getBoundingClientRect().y, each.className])"
        )
        assert max(boxes)[1] == "", "the menu is the last row"
    page.get_by_text("更多", exact=True).click()
    expect(page.get_by_role("button", name="复制链接")).to_be_visible()
    assert_fits(page)
    page.goto(f"{served.url}/graph/notes/plan.md")
    expect(page.locator("canvas")).to_be_visible()
    assert_fits(page)
    formula = "$" + "a+" * 80 + "b$"
    (served.folder / "sums.md").write_text(f"{formula}\n\n- {formula}\n", "utf-8")
    served.kb.index()
    page.goto(f"{served.url}/note/notes/sums.md")
    expect(page.locator(".content :is(p, ul)[tabindex='0']")).to_have_count(2)
    assert_fits(page)
    assert_accessible(page)


def test_the_neighbourhood_is_drawn_and_leads_to_notes(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/graph/notes/Harbour.md")
    canvas = page.get_by_role("img", name="Notes up to two links from Harbour: 2 notes, 2 links")
    expect(canvas).to_be_visible()
    expect(page.locator("svg.graph")).to_be_hidden()
    painted = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(Boolean)"
    assert canvas.evaluate(painted)
    link = page.locator(".neighbours").last.get_by_role("link")
    before = canvas.evaluate("c => c.toDataURL()")
    link.focus()  # marks the note of the link
    assert canvas.evaluate("c => c.toDataURL()") != before
    assert_accessible(page)
    assert_fits(page)
    page.get_by_role("button", name="Larger").click()
    page.get_by_role("button", name="Show all").click()
    canvas.click()
    page.get_by_label("Only notes with").select_option("work")
    expect(page).to_have_url(re.compile("tag=work"))
    expect(page.locator(".neighbours").first.get_by_role("link")).to_have_count(1)


def test_the_tree_beside_a_note_opens_folders_and_can_be_hidden(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{served.url}/note/notes/Harbour.md")
    folders = page.get_by_role("navigation", name="Folders")
    expect(folders.get_by_role("link", name="Harbour")).to_have_attribute("aria-current", "page")
    folders.get_by_text("2025", exact=True).click()
    expect(folders.get_by_role("link", name="年度回顾")).to_be_visible()
    folders.get_by_text("Tags", exact=True).click()
    expect(folders.get_by_role("link", name="work 1 note")).to_be_visible()
    assert_accessible(page)
    assert_fits(page)
    page.keyboard.press("b")
    expect(folders).to_be_hidden()
    page.reload()
    expect(page.locator("#tree")).to_be_hidden()
    page.get_by_role("button", name="Folders").click()
    expect(folders).to_be_visible()
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{served.url}/browse/notes/2025")
        assert_accessible(page)
        assert_fits(page)


@pytest.mark.parametrize("width", [360, pytest.param(1280, marks=pytest.mark.nightly)])
def test_another_note_is_read_beside_this_one(
    served: Served, new_page: Callable[..., Page], width: int
) -> None:
    page = new_page(viewport={"width": width, "height": 800})
    page.goto(f"{served.url}/note/notes/plan.md")
    link = page.locator(".content p").get_by_role("link", name="Harbour > Depth")
    link.focus()
    page.keyboard.press("Alt+Enter")
    other = page.get_by_role("region", name="Harbour")
    expect(other).to_be_focused()
    expect(other.get_by_text("Five metres.")).to_be_in_viewport()
    assert_accessible(page)
    assert_fits(page)
    page.keyboard.press("Escape")
    expect(other).to_have_count(0)
    expect(link).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("harb")
    expect(page.get_by_role("option", name="Harbour")).to_be_visible()
    page.keyboard.press("Shift+Enter")
    expect(other).to_be_focused()
    other.get_by_role("link", name="plan").click()
    expect(page).to_have_url(f"{served.url}/note/notes/plan.md")
