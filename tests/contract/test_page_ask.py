"""The Ask view over HTTP: without a script, without a model, and what may not be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from support.model_server import ModelServer, Step, hangs_after, says
from support.site import Served, http_client, serve

from qmd.settings import BackendSettings

TOKEN = re.compile(r'<meta name="csrf" content="([^"]+)">')
WRITES = json.dumps(
    {"tool": "create_note", "params": {"path": "notes/new", "content": "\n".join("abcdef" * 40)}}
)


class Person:
    """Sends the forms of the page as a browser without scripts does."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.http = http_client(served.url, follow_redirects=True)

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path, headers={"accept": "text/html"})

    def post(self, address: str, /, **fields: str) -> httpx.Response:
        token = TOKEN.search(self.get("/ask").text)
        assert token is not None
        headers = {"accept": "text/html", "origin": self.served.url}
        return self.http.post(address, data={"csrf": token[1], **fields}, headers=headers)

    def events(self, chat: str) -> list[tuple[str, dict[str, object]]]:
        """What a script is sent until the turn has ended."""
        blocks = self.http.get(f"/ask/{chat}/events", timeout=60).text.split("\n\n")
        lines = [block.split("\n") for block in blocks if block.startswith("event: ")]
        return [(first[7:], json.loads(second[6:])) for first, second in lines]


Begin = Callable[..., Person]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    with ExitStack() as stack:

        def start(*script: Step, **options: object) -> Person:
            backends = BackendSettings()
            if script:
                model = stack.enter_context(ModelServer(*script))
                backends = BackendSettings(llm_url=model.url, llm_model="scripted")
            settings = {"backends": backends, "read_only_files": bool(options.get("read_only"))}
            served = stack.enter_context(serve(tmp_path, embed=False, settings=settings, **options))
            person = Person(served)
            stack.enter_context(person.http)
            return person

        yield start


def chat_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.url.path.removeprefix("/ask/")


def test_without_a_model_the_view_says_how_to_set_one_up(begin: Begin) -> None:
    person = begin()
    text = person.get("/ask").text
    assert "http://localhost:11434/v1" in text
    assert "QMD_LLM_API_KEY" in text
    assert "<textarea" not in text
    refused = person.post("/ask/send", text="Where is the boat?", mode="read")
    assert refused.status_code == 409
    assert "No language model is set" in refused.text


def test_the_view_says_which_model_gets_the_words(begin: Begin) -> None:
    assert "scripted runs on this machine" in begin(says("x")).get("/ask").text


def test_a_question_without_a_script_is_answered_on_a_page_that_loads_itself_again(
    begin: Begin,
) -> None:
    person = begin(hangs_after("The boat"))
    answer = person.post("/ask/send", text="Where is <b>?", mode="read")
    chat = chat_of(answer)
    assert 'http-equiv="refresh"' in answer.text
    assert "Where is &lt;b&gt;?" in answer.text
    stopped = person.post(f"/ask/{chat}/stop")
    assert chat_of(stopped) == chat
    kinds = [kind for kind, _ in person.events(chat)]
    assert kinds[-1] in ("ended", "idle")
    after = person.get(f"/ask/{chat}").text
    assert 'http-equiv="refresh"' not in after
    assert "You stopped this answer." in after
    assert f'action="/ask/{chat}/retry"' in after


def test_a_card_tells_when_it_was_and_why_it_failed(begin: Begin) -> None:
    block = json.dumps({"tool": "read_note", "params": {"path": "notes/<none>"}})
    person = begin(says(f"```json:tool\n{block}\n```"), says("There is none."))
    chat = chat_of(person.post("/ask/send", text="What is there?", mode="read"))
    person.events(chat)
    page = person.get(f"/ask/{chat}").text
    assert '<p class="why">File not found: notes/&lt;none&gt;.md</p>' in page
    assert "<details" not in page[page.index('class="step tool bad"') : page.index("</ol>")]
    assert re.search(
        r'<time datetime="[\dT:.-]{23}Z" title="[\d: -]{16}">[\d:]{8}</time>\s+· ', page
    )


def test_a_script_that_comes_late_gets_all_of_a_turn(begin: Begin) -> None:
    block = json.dumps({"tool": "list_folder", "params": {"path": ""}})
    person = begin(says(f"I *look*.\n\n```json:tool\n{block}\n```"), hangs_after("One.\n\nTwo"))
    chat = chat_of(person.post("/ask/send", text="What is there?", mode="read"))
    with person.http.stream("GET", f"/ask/{chat}/events", timeout=60) as stream:
        seen = ""
        for text in stream.iter_text():
            seen += text
            if "Two" in seen:
                break
    assert seen.index("event: started") < seen.index("list_folder") < seen.index("One.")
    turn = person.get(f"/part/ask/{chat}/turn").text
    assert '<li class="step words content" data-round="1" data-shown="' in turn
    assert "<em>look</em>" in turn
    assert re.search(
        r'data-round="2" data-shown="6"><p[^>]*>One\.</p>\s*<div class="tail">Two</div></li>',
        turn,
    )
    person.post(f"/ask/{chat}/stop")
    assert [kind for kind, _ in person.events(chat)][-1] in ("ended", "idle")


def test_the_whole_change_is_shown_before_the_person_agrees(begin: Begin) -> None:
    person = begin(says(f"```json:tool\n{WRITES}\n```"), says("Done."))
    chat = chat_of(person.post("/ask/send", text="Write it.", mode="write"))
    with person.http.stream("GET", f"/ask/{chat}/events", timeout=60) as stream:
        seen = ""
        for text in stream.iter_text():
            seen += text
            if "event: question" in seen:
                break
    page = person.get(f"/ask/{chat}").text
    assert page.count('<div class="added">') < 200
    question = re.findall(r"/change\?question=(\w+)", page)[0]
    whole = person.get(f"/part/ask/{chat}/change?question={question}").text
    assert whole.count('<div class="added">') == 240
    assert not (person.served.folder / "new.md").exists()
    person.post(f"/ask/{chat}/answer", question=question, agree="yes")
    person.events(chat)
    assert "Done." in person.get(f"/ask/{chat}").text
    assert (person.served.folder / "new.md").exists()
    again = person.post(f"/ask/{chat}/answer", question=question, agree="yes")
    assert again.status_code == 404


def test_only_yes_is_an_agreement(begin: Begin) -> None:
    person = begin(hangs_after("x"))
    chat = chat_of(person.post("/ask/send", text="Write it.", mode="write"))
    assert person.post(f"/ask/{chat}/answer", question="q1", agree="maybe").status_code == 400


def test_a_server_that_only_reads_offers_no_writing(begin: Begin) -> None:
    person = begin(says("x"), read_only=True)
    page = person.get("/ask").text
    assert re.search(r'value="write"\s+disabled', page)
    assert "Nothing can be written here." in page
    assert person.post("/ask/send", text="Write.", mode="write").status_code == 403


def test_a_conversation_becomes_a_note(begin: Begin) -> None:
    person = begin(says("In the **harbour**."))
    chat = chat_of(person.post("/ask/send", text="Where is the boat?", mode="read"))
    person.events(chat)
    path = re.findall(r'name="path" value="([^"]+)"', person.get(f"/ask/{chat}").text)[0]
    assert path == "notes/Where is the boat.md"
    person.post(f"/ask/{chat}/export", path=path)
    note = person.served.folder / "Where is the boat.md"
    assert "In the **harbour**." in note.read_text()
    assert person.post(f"/ask/{chat}/export", path=path).status_code == 409


@pytest.mark.parametrize("path", ["/ask/nowhere", "/part/ask/nowhere/turns"])
def test_an_unknown_conversation_is_404(begin: Begin, path: str) -> None:
    assert begin().get(path).status_code == 404


def test_an_unknown_conversation_has_no_events(begin: Begin) -> None:
    assert begin().events("nowhere") == [("idle", {})]
