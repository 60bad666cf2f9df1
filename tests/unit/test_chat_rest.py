"""Conversations over real HTTP, with a real server that plays the model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.embedder import HashEmbedder
from support.live_app import LiveApp
from support.model_server import Call, ModelServer, Step, fails, says
from support.vault import make_vault

from qmd import KnowledgeBase, Settings
from qmd.settings import BackendSettings

KEY = "sk-0123456789abcdef"


def block(tool: str, **params: object) -> str:
    return f"```json:tool\n{json.dumps({'tool': tool, 'params': params})}\n```"


@contextmanager
def serving(tmp_path: Path, *steps: Step, **options: Any) -> Iterator[httpx.Client]:
    notes = make_vault(tmp_path)
    with ModelServer(*steps) as model:
        backends = BackendSettings(llm_url=model.url, key=lambda _: KEY)
        settings = Settings(embedder=HashEmbedder(), backends=backends)
        with KnowledgeBase.open(tmp_path / "i.sqlite", settings, create=True) as kb:
            kb.add_collection(notes, name="notes")
            kb.index()
            with (
                LiveApp(kb, **options) as app,
                httpx.Client(base_url=app.url, timeout=60, trust_env=False) as client,
            ):
                yield client


def events(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def test_ask_list_read_rename_export_delete(tmp_path: Path) -> None:
    with serving(tmp_path, says(block("search", query="plan")), says("**March**.")) as client:
        reply = client.post("/chat", json={"question": "When do we deploy?"}).json()
        assert (reply["status"], reply["answer"], reply["kept"]) == ("done", "**March**.", True)
        assert [tool["kind"] for tool in reply["tools"]] == ["tool_started", "tool_finished"]
        chat = reply["chat"]
        assert [each["id"] for each in client.get("/chats?query=march").json()["chats"]] == [chat]
        assert client.get("/chats?query=june").json() == {"chats": [], "total": 0}
        read = client.get(f"/chats/{chat}").json()
        assert read["turns"][0]["events"][-1]["kind"] == "ended"
        renamed = client.put(f"/chats/{chat}", json={"name": "Deployment"}).json()
        assert renamed["name"] == "Deployment"
        exported = client.post(f"/chats/{chat}/export", json={"path": "notes/deployment.md"})
        assert exported.status_code == 200, exported.text
        note = client.post("/get", json={"file": "notes/deployment.md"}).text
        assert "# Deployment" in note
        again = client.post(f"/chats/{chat}/export", json={"path": "notes/deployment.md"})
        assert again.status_code == 409
        assert KEY not in str(client.get(f"/chats/{chat}").content)
        assert client.delete(f"/chats/{chat}").json()["status"] == "deleted"
        assert client.get(f"/chats/{chat}").status_code == 404


def test_two_clients_see_a_stream_and_a_third_stops_it(tmp_path: Path) -> None:
    leave = threading.Event()

    def slow(call: Call) -> None:
        call.begin_stream()
        call.delta(content="In ")
        leave.wait(60)

    def read_all(url: str, chat: str, seen: list[str]) -> None:
        with httpx.stream("GET", f"{url}/chats/{chat}/events", timeout=60) as response:
            seen += [kind for kind, _ in events(response)]

    with serving(tmp_path, slow, says("In March.")) as client:
        with client.stream("POST", "/chat/stream", json={"question": "When?"}) as response:
            stream = events(response)
            kind, started = next(stream)
            assert kind == "started"
            assert next(stream)[0] == "asking"
            assert next(stream) == ("text", {"text": "In "})
            seen: list[str] = []
            other = threading.Thread(
                target=read_all, args=(str(client.base_url), started["chat"], seen)
            )
            other.start()
            busy = client.post("/chat", json={"question": "And?", "chat": started["chat"]})
            assert busy.status_code == 409
            assert client.post(f"/chats/{started['chat']}/stop").json()["status"] == "stopping"
            rest = list(stream)
            other.join(60)
        leave.set()
        assert rest[-1][1]["status"] == "stopped"
        assert seen == ["started", "asking", "text", "ended"]
        reply = client.post(f"/chats/{started['chat']}/retry").json()
        assert (reply["status"], reply["answer"], reply["number"]) == ("done", "In March.", 1)
        assert client.post(f"/chats/{started['chat']}/retry").status_code == 409


def test_a_write_is_answered_by_a_second_request(tmp_path: Path) -> None:
    write = block("create_note", path="notes/answer", content="# New")
    with serving(tmp_path, says(write), says("Written.")) as client:
        body = {"question": "Write it", "mode": "write"}
        with client.stream("POST", "/chat/stream", json=body) as response:
            stream = events(response)
            _, started = next(stream)
            question = next(data for kind, data in stream if kind == "question")
            address = f"/chats/{started['chat']}/answer"
            wrong = client.post(address, json={"question": "q7", "agreed": True})
            assert wrong.status_code == 404
            body = {"question": question["question"], "agreed": True}
            other = client.post(address, json=body, headers={"X-QMD-Session": "other"})
            assert (other.status_code, "began this turn" in other.text) == (403, True)
            agreed = client.post(address, json={"question": question["question"], "agreed": True})
            assert agreed.status_code == 200
            assert list(stream)[-1][1]["status"] == "done"
        assert (tmp_path / "notes/answer.md").read_text() == "# New"


def test_a_client_that_leaves_does_not_end_the_turn(tmp_path: Path) -> None:
    leave = threading.Event()

    def slow(call: Call) -> None:
        leave.wait(60)
        says("In March.")(call)

    with serving(tmp_path, slow) as client:
        with client.stream("POST", "/chat/stream", json={"question": "When?"}) as response:
            _, started = next(events(response))
        leave.set()
        with client.stream("GET", f"/chats/{started['chat']}/events") as response:
            seen = dict(events(response))
        assert seen["answer"]["text"] == "In March."


def test_errors(tmp_path: Path) -> None:
    with serving(tmp_path, fails(400, f"bad key {KEY}"), says("March.")) as client:
        reply = client.post("/chat", json={"question": "When?"})
        assert reply.json()["status"] == "failed"
        assert KEY not in reply.text
        assert client.post(f"/chats/{reply.json()['chat']}/retry").json()["answer"] == "March."
        assert client.post("/chats/0123/stop").status_code == 404
        assert client.post("/chat", json={"question": " "}).status_code == 400


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_without_a_language_model(tmp_path: Path, path: str) -> None:
    with (
        KnowledgeBase.open(tmp_path / "i.sqlite", create=True) as kb,
        LiveApp(kb) as app,
    ):
        question = {"question": "When?"}
        response = httpx.post(f"{app.url}{path}", json=question, timeout=60, trust_env=False)
    assert response.status_code == 409
    assert "QMD_LLM_URL" in response.json()["detail"]


def test_a_read_only_server_keeps_nothing_and_writes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, says("March."), read_only=True) as client:
        body = {"question": "Write", "mode": "write"}
        assert client.post("/chat", json=body).status_code == 403
        assert client.post("/chat", json={"question": "When?"}).json()["answer"] == "March."
