"""The view of the state in a browser: a folder is added, indexed before one's eyes, and removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import Served


def test_a_folder_is_added_indexed_described_and_removed(
    served: Served, page: Page, tmp_path: Path
) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.md").write_text(f"# Paper {number}\n\nA raft.\n")
    page.goto(f"{served.url}/overview")
    page.get_by_role("link", name="Add a folder").click()
    page.get_by_label("Folder on the server’s machine").fill("/etc")
    page.get_by_role("button", name="See what it holds").click()
    page.expected.append("403")  # type: ignore[attr-defined]
    expect(page.get_by_role("alert")).to_contain_text("/etc")
    page.get_by_label("Folder on the server’s machine").fill(str(folder))
    page.get_by_role("button", name="See what it holds").click()
    expect(page.get_by_role("status").first).to_contain_text("3 files match")
    page.get_by_role("button", name="Add and index it").click()
    row = page.get_by_role("row").filter(has_text=str(folder))
    expect(row).to_be_visible()
    expect(row.get_by_role("cell").first).to_have_text("3")

    page.get_by_role("link", name="Add a context").click()
    page.get_by_label("Path").fill("papers")
    page.get_by_label("What lies below it").fill("Read on the train")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Edit qmd://papers").click()
    page.get_by_label("What lies below it").fill("Read at sea")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Read at sea")).to_be_visible()

    page.get_by_role("link", name="Edit papers", exact=True).click()
    page.get_by_role("button", name="Remove “papers”").click()
    expect(page.get_by_text("The collection was removed")).to_be_visible()
    expect(page.get_by_text("Read at sea")).to_be_hidden()
    assert (folder / "0.md").exists()


def test_the_figures_follow_the_index_without_a_reload(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/overview")
    expect(page.get_by_role("figure").first).to_contain_text("Documents indexed per day")
    figure = page.locator(".figures > div").filter(has_text="Documents").locator("dd").first
    expect(figure).to_have_text("3")
    page.get_by_role("button", name="Index now").focus()
    (served.folder / "new.md").write_text("# New\n")
    served.kb.index()
    expect(figure).to_have_text("4")
    expect(page.get_by_role("button", name="Index now")).to_be_focused()


@pytest.mark.parametrize("address", ["/overview", "/overview/collections/new", "/overview/why"])
def test_the_view_is_accessible_and_fits(
    served: Served, new_page: Callable[..., Page], address: str
) -> None:
    (served.folder / ("一个非常长的文件名" * 9 + ".md")).write_bytes(b"\x00\x01" * 20)
    served.kb.index()
    served.kb.add_context("/", "我的全部笔记" * 30)
    page = new_page(viewport={"width": 360, "height": 640}, locale="zh-CN")
    page.goto(served.url + address)
    if address == "/overview":
        expect(page.get_by_role("figure").first).to_be_visible()
    assert_accessible(page)
    assert_fits(page)


def test_without_a_script_the_charts_are_a_page(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(f"{served.url}/overview")
    page.get_by_role("link", name="Show the charts").click()
    expect(page.get_by_role("img", name="Documents indexed per day")).to_be_visible()
    page.goto(f"{served.url}/overview")
    page.get_by_role("button", name="Index now").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
