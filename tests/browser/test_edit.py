"""Writing in a browser: nothing typed is lost, by mouse, keys alone, and without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.site import NOTES, Served

PLAN = NOTES["plan.md"]


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """One that saves when it is told to."""
    page = new_page()
    page.add_init_script(
        "localStorage.getItem('qmd-autosave') ?? localStorage.setItem('qmd-autosave', '0')"
    )
    return page


def _text(served: Served, name: str = "plan.md") -> str:
    return (served.folder / name).read_text(encoding="utf-8")


def test_a_note_is_edited_with_a_preview_and_saved_by_a_key(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/edit/notes/plan.md")
    text = page.get_by_label("Text of the note")
    expect(text).to_be_focused()
    text.fill("# Plan\n\nSell the **boat**, see [[Harbour]].\n")
    preview = page.get_by_role("region", name="Preview")
    expect(preview.get_by_role("link", name="Harbour")).to_have_attribute(
        "href", "/note/notes/Harbour.md"
    )
    page.keyboard.press("Control+s")
    expect(page.get_by_text(re.compile("^Saved"))).to_be_visible()
    assert "Sell" in _text(served)
    text.press_sequentially("!")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/note/notes/plan.md*")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone:")).to_be_visible()
    assert not _text(served).endswith("!")
    page.goto(f"{served.url}/edit/notes/plan.md")  # what was saved is no draft any more
    expect(text).to_be_focused()
    expect(page.get_by_role("button", name="Restore it")).to_be_hidden()


def test_a_link_is_completed_and_the_colours_are_of_the_text(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/edit/notes/plan.md")
    text = page.get_by_label("Text of the note")
    text.fill("---\ntags: [a]\n---\n# Plan\n\nSee [[har]] and `x`.\n\n```\n# code\n```\n")
    behind = page.locator(".coloured > pre")

    def texts(kind: str) -> list[str]:
        return behind.locator(f".{kind}").all_text_contents()

    assert texts("heading") == ["# Plan"]
    assert texts("key") == ["tags:"]
    assert texts("code") == ["`x`", "```", "# code", "```"]
    text.evaluate(
        "area => area.setSelectionRange(area.value.indexOf(']]'), area.value.indexOf(']]'))"
    )
    page.keyboard.type("b")
    choices = page.get_by_role("listbox", name="What may follow")
    expect(choices.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")  # takes the first choice, and begins no line
    expect(text).to_have_value(re.compile(r"See \[\[Harbour\]\] and `x`\."))
    expect(choices).to_be_hidden()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Delete")  # what were properties is text now
    assert texts("key") == [] and "[[Harbour]]" in texts("link")
    assert behind.evaluate("each => each.textContent") == text.input_value() + "\n"


def test_tags_and_properties_are_completed(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/edit/notes/Harbour.md")
    text = page.get_by_label("Text of the note")
    choices = page.get_by_role("listbox", name="What may follow").get_by_role("option")
    text.fill("")
    for typed, chosen in [
        ("---\nsta", "---\nstatus: "),
        ("dra", "---\nstatus: draft"),
        ("\ntags: [wo", "---\nstatus: draft\ntags: [work"),
        (", wo", "---\nstatus: draft\ntags: [work, work"),
        ("]\ntags:\n  - wo", "---\nstatus: draft\ntags: [work, work]\ntags:\n  - work"),
        ("\n---\nIn #wo", "---\nIn #work"),
    ]:
        page.keyboard.insert_text(typed)
        expect(choices.first).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(text).to_have_value(re.compile(re.escape(chosen) + "$"))
        expect(choices.first).to_be_hidden()
    page.keyboard.insert_text("\n#wo")
    expect(choices.first).to_be_visible()
    page.keyboard.press("Enter")  # nothing is chosen, so the line ends
    expect(text).to_have_value(re.compile("\n#wo\n$"))


@pytest.mark.parametrize(
    "width", [360, *(pytest.param(each, marks=pytest.mark.nightly) for each in (768, 1280))]
)
def test_what_is_typed_is_seen_with_its_colours_and_choices(
    served: Served, new_page: Callable[..., Page], width: int
) -> None:
    page = new_page(viewport={"width": width, "height": 700})
    page.goto(f"{served.url}/edit/notes/plan.md")
    text = page.get_by_label("Text of the note")
    text.fill("Words of a line that has to be broken in the field, and **more** of them.\n" * 60)
    page.keyboard.press("Control+End")
    page.keyboard.type("See [[har")
    choices = page.get_by_role("listbox", name="What may follow")
    expect(choices).to_be_in_viewport(ratio=1)
    # The lines of the colours break where those of the field do.
    size = "each => [each.clientWidth, each.scrollHeight, each.scrollTop]"
    behind = page.locator(".coloured > pre")
    assert text.evaluate(size) == behind.evaluate(size)
    line = behind.locator("> div").last.bounding_box()
    bar = page.locator(".edit-bar").bounding_box()
    assert line is not None and bar is not None
    assert line["y"] + line["height"] <= bar["y"]


def test_a_conflict_is_settled_and_loses_nothing(served: Served, page: Page) -> None:
    page.expected.append("409")  # type: ignore[attr-defined]
    page.goto(f"{served.url}/edit/notes/plan.md")
    page.get_by_label("Text of the note").fill(
        PLAN.replace("draft", "done").replace("Buy a boat", "Buy a canoe")
    )
    (served.folder / "plan.md").write_text(
        PLAN.replace("Buy a boat", "Buy a ship") + "\nMore.\n", encoding="utf-8"
    )
    page.keyboard.press("Control+s")  # the page says what is wrong
    expect(page.get_by_role("heading", name="changed meanwhile")).to_be_visible()
    assert_accessible(page)
    page.get_by_label("In the file").check()
    page.get_by_role("button", name="Save with these choices").click()
    page.wait_for_url("**/note/notes/plan.md*")
    assert _text(served) == PLAN.replace("draft", "done").replace("a boat", "a ship") + "\nMore.\n"


def test_what_was_not_saved_is_offered_again(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/edit/notes/plan.md")
    text = page.get_by_label("Text of the note")
    text.press("End")
    text.press_sequentially("typed")
    expect(page.get_by_text("Not saved")).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())  # leave, though it is not saved
    page.goto(f"{served.url}/overview")
    (served.folder / "Harbour.md").write_text("# Harbour\n", encoding="utf-8")
    page.goto(f"{served.url}/edit/notes/plan.md")
    expect(text).not_to_have_value("typed")
    page.get_by_role("button", name="Restore it").click()
    assert "typed" in text.input_value()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/note/notes/plan.md*")
    assert "typed" in _text(served)
    page.goto(f"{served.url}/edit/notes/plan.md")
    expect(page.get_by_role("button", name="Restore it")).to_be_hidden()


def test_a_new_note_with_keys_alone(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/new")
    page.keyboard.type("# Packing list\n\n- [ ] rope\nanchor\n\nEnd")
    expect(page.get_by_label("Name")).to_have_value("Packing list")
    page.keyboard.press("Tab")  # no list: on to the next control
    expect(page.get_by_label("Text of the note")).not_to_be_focused()
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/note/notes/Packing%20list.md")
    assert _text(served, "Packing list.md") == ("# Packing list\n\n- [ ] rope\n- [ ] anchor\nEnd")


def test_tab_indents_a_list_and_is_no_trap(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/new")
    text = page.get_by_label("Text of the note")
    page.keyboard.type("- one\ntwo")
    page.keyboard.press("Tab")
    expect(text).to_have_value("- one\n  - two")
    page.keyboard.press("Shift+Tab")
    expect(text).to_have_value("- one\n- two")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(text).not_to_be_focused()


def test_a_task_is_ticked_in_the_note(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/note/notes/Harbour.md")
    box = page.get_by_role("checkbox", name="paint the boat")
    box.click()
    expect(box).to_be_checked()
    expect(box).not_to_have_attribute("aria-busy", "true")
    assert "- [x] paint" in _text(served, "Harbour.md")
    # Other lines came above it meanwhile; the box still means its task.
    text = _text(served, "Harbour.md").replace("# Harbour", "# Harbour\n\nNew.\n\n- [ ] other")
    (served.folder / "Harbour.md").write_text(text, encoding="utf-8")
    box.press("Space")
    expect(box).not_to_be_checked()
    expect(box).not_to_have_attribute("aria-busy", "true")
    assert _text(served, "Harbour.md") == text.replace("- [x] paint", "- [ ] paint")


def test_a_task_that_is_gone_is_not_shown_as_ticked(served: Served, page: Page) -> None:
    page.expected.append("409")  # type: ignore[attr-defined]
    page.goto(f"{served.url}/note/notes/Harbour.md")
    box = page.get_by_role("checkbox", name="paint the boat")
    (served.folder / "Harbour.md").write_text("# Harbour\n\nSold.\n", encoding="utf-8")
    box.click()
    expect(page.get_by_text("The task was not changed.")).to_be_visible()
    expect(box).not_to_be_checked()
    assert _text(served, "Harbour.md") == "# Harbour\n\nSold.\n"


def test_a_note_is_deleted_and_comes_back(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/delete/notes/Harbour.md")
    assert_accessible(page)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("was deleted")).to_be_visible()
    assert not (served.folder / "Harbour.md").exists()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone:")).to_be_visible()
    assert _text(served, "Harbour.md") == NOTES["Harbour.md"]


def test_an_open_editor_saves_after_a_restart_of_the_server(served: Served, page: Page) -> None:
    """The key of the tokens is that of the process; here the cookie goes, which is the same."""
    page.expected.append("403")  # type: ignore[attr-defined]
    page.goto(f"{served.url}/edit/notes/plan.md")
    page.get_by_label("Text of the note").fill("typed\n")
    page.context.clear_cookies()
    page.keyboard.press("Control+s")
    expect(page.get_by_text(re.compile("^Saved"))).to_be_visible()
    assert _text(served) == "typed\n"


def test_without_scripts_the_forms_do_the_same(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(f"{served.url}/edit/notes/Harbour.md")
    page.get_by_label("Text of the note").fill("# Harbour\n\n**Deep**\n\n- [ ] paint\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview").get_by_text("Deep")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    assert "Deep" in _text(served, "Harbour.md")
    page.goto(f"{served.url}/tick/notes/Harbour.md")
    page.get_by_role("button", name="Tick paint").click()
    assert "- [x] paint" in _text(served, "Harbour.md")


@pytest.mark.parametrize(
    ("width", "language"),
    [(360, "zh-CN"), pytest.param(1280, "en-GB", marks=pytest.mark.nightly)],
)
def test_the_views_that_write_are_accessible_and_narrow(
    served: Served, new_page: Callable[..., Page], width: int, language: str
) -> None:
    page = new_page(viewport={"width": width, "height": 740}, locale=language)
    for path in ("edit/notes/plan.md", "new", "tick/notes/Harbour.md", "move/notes/plan.md"):
        page.goto(f"{served.url}/{path}")
        assert_accessible(page)
        assert_fits(page)


def test_the_editor_saves_by_itself_until_there_is_a_conflict(
    served: Served, new_page: Callable[..., Page]
) -> None:
    page = new_page()
    page.expected.append("409")  # type: ignore[attr-defined]
    page.goto(f"{served.url}/edit/notes/plan.md")
    text = page.get_by_label("Text of the note")
    saved = page.locator("#edit-state").get_by_text(re.compile("^Saved"))
    words = ""
    for words in ("# Plan\n\nOne.\n", "# Plan\n\nOne and two.\n"):
        with page.expect_response(
            lambda response: response.request.method == "POST" and "/edit/" in response.url
        ):
            text.fill(words)
        expect(saved).to_be_visible()
    assert _text(served) == words
    assert len(served.kb.revisions.history("notes/plan.md")) == 1  # undo takes back both
    text.fill("# Plan\n\nThree.\n")
    page.get_by_role("link", name="To the note").click()  # saves before the pause has passed
    expect(page.locator(".content")).to_contain_text("Three.")
    page.goto(f"{served.url}/edit/notes/plan.md")
    (served.folder / "plan.md").write_text("# Plan\n\nTheirs.\n", encoding="utf-8")
    served.kb.index()
    text.fill("# Plan\n\nMine.\n")
    page.get_by_role("button", name="See why").click()
    expect(page.get_by_role("heading", name="The note was changed meanwhile")).to_be_visible()
    assert _text(served) == "# Plan\n\nTheirs.\n"


TABLE = "# T\n\n| a | 大小 |\n|--|:-:|\n| x \\| y | 1 |\n"


def test_a_table_is_edited_as_a_table(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/edit/notes/plan.md")
    text = page.get_by_label("Text of the note")
    text.fill(TABLE)  # the caret is behind it
    text.evaluate("area => area.setSelectionRange(area.value.length - 3, area.value.length - 3)")
    page.get_by_role("button", name="Table").click()
    dialog = page.get_by_role("dialog", name="Table")
    first = dialog.get_by_role("textbox", name="Row 1, a")
    expect(first).to_be_focused()
    expect(first).to_have_value("x | y")
    assert_accessible(page)
    page.keyboard.press("Enter")  # a new row
    page.keyboard.type("z")
    dialog.get_by_role("button", name="Add column").click()
    dialog.get_by_role("textbox", name="Head of column 2").fill("n")
    dialog.get_by_label("Align").select_option("right")
    dialog.get_by_role("button", name="Apply").click()
    expect(text).to_have_value(
        "# T\n\n| a      |   n | 大小 |\n| ------ | --: | :--: |\n"
        "| x \\| y |     | 1    |\n| z      |     |      |\n"
    )
    page.keyboard.press("Control+z")
    expect(text).to_have_value(TABLE)
    text.fill("")
    page.get_by_role("button", name="Table").click()
    page.keyboard.type("new")
    dialog.get_by_role("button", name="Cancel").click()
    expect(text).to_have_value("")
    page.get_by_role("button", name="Table").click()
    page.keyboard.type("new")
    dialog.get_by_role("button", name="Apply").click()
    expect(text).to_have_value("| new |     |\n| --- | --- |\n|     |     |\n\n")
