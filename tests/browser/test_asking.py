"""The Ask view: a conversation with a scripted model, as a person has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.axe import assert_accessible, assert_fits
from support.model_server import Call, ModelServer, Step, fails, hangs_after, says
from support.site import Served, serve

from qmd.settings import BackendSettings

Ask = Callable[..., Served]


def calls(tool: str, text: str = "", **params: object) -> Step:
    """An answer that calls one tool."""
    block = json.dumps({"tool": tool, "params": params}, ensure_ascii=False)
    return says(f"{text}\n\n```json:tool\n{block}\n```\n")


@pytest.fixture
def with_model(tmp_path: Path) -> Iterator[Ask]:
    """Serves notes beside a model that follows a script."""
    with ExitStack() as stack:

        def start(*script: Step, **options: object) -> Served:
            model = stack.enter_context(ModelServer(*script))
            backends = BackendSettings(llm_url=model.url, llm_model="scripted")
            return stack.enter_context(
                serve(tmp_path, embed=False, settings={"backends": backends}, **options)
            )

        yield start


def ask(page: Page, question: str) -> None:
    page.wait_for_load_state()  # without the script, Enter begins a new line
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")


def test_an_answer_with_a_card_for_each_tool_call(with_model: Ask, page: Page) -> None:
    served = with_model(
        calls("read_note", "I look.", path="notes/Harbour"),
        calls("read_note", path="notes/nowhere"),
        says("The **boat** lies in the harbour."),
    )
    page.goto(f"{served.url}/ask")
    ask(page, "Where is the boat?")
    log = page.get_by_role("log")
    cards = log.locator(".tool")
    expect(cards).to_have_count(2)
    expect(cards.nth(0)).to_contain_text("succeeded")
    expect(cards.nth(1)).to_contain_text("failed")
    cards.nth(0).get_by_text("Result").click()
    expect(cards.nth(0).locator("pre")).to_contain_text("The boat lies in the harbour.")
    expect(log.locator(".answer strong")).to_have_text("boat")


def test_a_citation_opens_the_note_at_the_line_and_a_false_one_is_marked(
    with_model: Ask, page: Page
) -> None:
    served = with_model(
        calls("read_note", path="notes/Harbour"),
        says(
            "The boat lies in the harbour [notes/Harbour.md:3]. "
            "The engine was repaired by a mechanic in March [notes/Harbour.md:3]. "
            "Its sails are `blue` since the summer."
        ),
    )
    page.goto(f"{served.url}/ask")
    ask(page, "Where is the boat?")
    answer = page.locator(".answer")
    expect(answer).to_contain_text("not found in the source")
    expect(page.get_by_role("region", name="Sources")).to_contain_text("not found in the source")
    expect(answer.get_by_text("no source", exact=True)).to_be_hidden()
    page.get_by_label("Mark sentences without a source").check()
    expect(answer.get_by_text("no source", exact=True)).to_be_visible()
    assert_accessible(page)
    citation = answer.get_by_role("link", name="Source 1", exact=True)
    citation.focus()
    expect(page.locator(".quote-popup")).to_contain_text("The boat lies in the harbour.")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{served.url}/note/notes/Harbour.md?line=3")


def test_a_stopped_answer_is_tried_again(with_model: Ask, page: Page) -> None:
    served = with_model(hangs_after("It is"), says("It is blue."))
    page.goto(f"{served.url}/ask")
    ask(page, "Which colour has the boat?")
    expect(page.get_by_role("log")).to_contain_text("It is")
    page.keyboard.press("Escape")
    expect(page.get_by_role("log")).to_contain_text("You stopped this answer.")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("log")).to_contain_text("It is blue.")
    expect(page.locator(".turn")).to_have_count(1)


def test_an_error_of_the_server_says_what_to_do(with_model: Ask, page: Page) -> None:
    served = with_model(calls("list_folder", path=""), fails(401, "bad key"), says("Three notes."))
    page.goto(f"{served.url}/ask")
    ask(page, "How many notes are there?")
    expect(page.locator(".notice.bad")).to_contain_text("QMD_LLM_API_KEY")
    expect(page.locator(".tool")).to_have_count(1)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("log")).to_contain_text("Three notes.")
    expect(page.locator(".tool")).to_have_count(1)


def test_a_write_asks_first(with_model: Ask, page: Page) -> None:
    change = {"path": "notes/plan", "content": "\nThe price is 4,000.\n", "mode": "append"}
    served = with_model(
        calls("create_note", **change),
        says("You declined."),
        calls("create_note", **change),
        says("It is written."),
    )
    plan = served.folder / "plan.md"
    before = plan.read_text()
    page.goto(f"{served.url}/ask")
    page.get_by_label("May write").check(force=True)
    ask(page, "Add the price to the plan.")
    question = page.get_by_role("group", name="The model wants to change a file")
    expect(question).to_contain_text("+The price is 4,000.")
    expect(question.get_by_role("heading")).to_be_focused()
    assert plan.read_text() == before
    question.get_by_role("button", name="Decline").click()
    expect(page.get_by_role("log")).to_contain_text("You declined.")
    assert plan.read_text() == before
    ask(page, "Do it all the same.")
    question.get_by_role("button", name="Agree: write it").click()
    expect(page.get_by_role("log")).to_contain_text("It is written.")
    assert plan.read_text() == before + change["content"]


def test_a_hostile_answer_runs_nothing(with_model: Ask, page: Page) -> None:
    hostile = (
        "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\n\n"
        "[a link](javascript:document.title='owned') <svg onload=alert(1)>\n\n"
        '<a class="cite" href="/note/notes/plan.md?line=1" data-source="turn-1-source-1">1</a>'
        ' [notes/"><img src=x onerror=alert(1)>.md:1]'
    )
    served = with_model(
        calls("read_note", "<img src=x onerror=alert(1)>", path="<img src=x onerror=alert(2)>"),
        says(hostile),
    )
    page.goto(f"{served.url}/ask")
    ask(page, "<script>document.title='owned'</script>")
    expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
    log = page.get_by_role("log")
    expect(log.locator("script, svg, [onerror], [onload], .answer img[src='x']")).to_have_count(0)
    expect(log.locator("a[href^='javascript']")).to_have_count(0)
    expect(log.locator(".answer a.cite:not(.missing)")).to_have_count(0)
    assert "owned" not in page.title().replace("<script>document.title='owned'</script>", "")


def test_a_conversation_in_chinese_on_a_small_screen(
    with_model: Ask, new_page: Callable[..., Page]
) -> None:
    served = with_model(says("船在**港口**。" + "很长的一段话，" * 60))
    page = new_page(locale="zh-CN", viewport={"width": 360, "height": 740})
    page.goto(f"{served.url}/ask")
    question = page.get_by_label("你的问题")
    question.fill("船在哪里？")
    # Enter that ends the composition of a word sends nothing.
    question.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    expect(page.get_by_role("log")).to_be_empty()
    question.press("Enter")
    expect(page.get_by_text("复制回答")).to_be_visible()
    assert_fits(page)
    assert_accessible(page)
    page.locator(".menu > summary").click()
    expect(page.locator(".menu > .panel")).to_be_in_viewport(ratio=1)
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="对话", exact=True).click()
    expect(page.get_by_role("link", name="船在哪里")).to_be_visible()


def test_a_page_loaded_again_goes_on_with_the_answer(with_model: Ask, page: Page) -> None:
    import threading

    go_on = threading.Event()

    def pauses(call: Call) -> None:
        call.begin_stream()
        call.delta(content="First part. ")
        go_on.wait(60)
        call.delta(content="Second part.")
        call.delta("stop")
        call.end_stream()

    served = with_model(pauses)
    page.goto(f"{served.url}/ask")
    ask(page, "Tell me.")
    expect(page.get_by_role("log")).to_contain_text("First part.")
    page.reload()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("First part.")
    go_on.set()
    expect(page.locator(".answer")).to_have_text("First part. Second part.", use_inner_text=True)


def test_a_lost_connection_is_told_and_taken_up_again(with_model: Ask, page: Page) -> None:
    page.expected.append("ERR_FAILED")  # type: ignore[attr-defined]
    served = with_model(says("It is blue."))
    page.route("**/events", lambda route: route.abort())
    page.goto(f"{served.url}/ask")
    ask(page, "Which colour has the boat?")
    expect(page.get_by_role("alert")).to_contain_text("The connection to the server was lost.")
    page.unroute("**/events")
    page.get_by_role("button", name="Connect again").click()
    expect(page.locator(".answer")).to_contain_text("It is blue.")


def test_conversations_are_renamed_found_and_deleted(with_model: Ask, page: Page) -> None:
    served = with_model(says("Yes."))
    page.goto(f"{served.url}/ask")
    for question in ("Is there a boat?", "Is there a car?"):
        page.get_by_role("link", name="New conversation").click()
        ask(page, question)
        expect(page.get_by_text("Copy the answer")).to_be_visible()
    conversations = page.get_by_role("navigation", name="Conversations")
    expect(conversations.get_by_role("link")).to_have_count(2)
    page.get_by_label("Find a conversation").fill("boat")
    expect(conversations.get_by_role("link")).to_have_count(1)
    conversations.get_by_role("link").click()
    page.get_by_text("More").click()
    page.get_by_label("Name").fill("All about boats")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="All about boats")).to_be_visible()
    page.get_by_text("More").click()
    page.get_by_text("Delete this conversation").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(conversations.get_by_role("link")).to_have_count(1)
    expect(conversations).to_contain_text("car")
