"""Every operation gives the same value on every face: Python, command, tool, endpoint, remote."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_snake
from support.live_app import LiveApp
from support.rest import rest_client

from qmd import KnowledgeBase, Settings
from qmd.errors import QmdError
from qmd.operations import Operation, every_joined, every_operation
from qmd.operations.error_meanings import MEANINGS
from qmd.operations.texts import MCP
from qmd.server import openapi
from qmd.system import running
from qmd.tools.operations import arguments_of, tools_of_operations
from qmd.values.facts import Shell
from qmd.values.wire import ListBudget, to_wire
from tests.support.cli import Result, Scratch
from tests.support.embedder import HashEmbedder

NOTES = {
    "hub.md": "# Hub\n\n[[plan]], [[plans]] and [[plan#Costs|money]]\n\n![[boat.png]] #work/maps\n",
    "parts.md": "# Parts\n\n" + "".join(f"## {number}\n\nx ^b{number}\n" for number in range(30)),
    "plan.md": "---\ntags: [work]\nstatus: draft\nrating: 4\n---\n"
    "# Plan\n\n[[hub]] <https://example.org> 船\n",
    "tasks.md": "# Tasks\n\n- [ ] Call the bank\n- [x] Write\n",
    "sub/alone.md": "# Alone\n\n#work #other\n\nNobody links here, [[gone]].\n",
    "sub/many.md": "# Many\n\n" + "".join(f"[[gone {number}]] [[plan]]\n" for number in range(60)),
}

#: Operation → calls of it.
CALLS: Mapping[str, list[dict[str, Any]]] = {
    "links": [{"file": "hub"}, {"file": "many", "limit": 3}, {"file": "many", "max_tokens": 300}],
    "backlinks": [{"file": "plan"}, {"file": "notes/plan.md", "limit": 2}],
    "broken": [{}, {"collection": "notes", "limit": 5}, {"limit": 50, "max_tokens": 400}],
    "orphans": [{}, {"collection": "notes", "limit": 1}],
    "tags": [{}, {"prefix": "work/"}, {"prefix": "wrok"}, {"collection": "notes", "limit": 1}],
    "recent": [{}, {"since": "2001", "limit": 2}, {"collection": "notes", "max_tokens": 300}],
    "similar": [{"file": "plan"}, {"file": "hub", "collection": "notes", "limit": 1}],
    "outline": [{"file": "plan"}, {"file": "parts", "max_tokens": 300}, {"file": "hub#Hub"}],
    "properties": [{}, {"limit": 1}, {"key": "status"}],
    "edit_note": [
        {"file": "hub", "action": "append", "text": "more", "preview": True},
        {"file": "plan", "action": "set_property", "property": "n", "value": 3, "preview": True},
    ],
    "set_property": [{"file": "plan", "property": "status", "value": "done", "preview": True}],
    "tick": [{"file": "tasks", "task": "Call", "preview": True}],
    "delete_note": [{"file": "alone", "preview": True}],
    "move_note": [{"file": "plan", "new_path": "sub/", "preview": True, "rewrite_links": False}],
}
#: Operation → a call that fails.
ERRORS: Mapping[str, dict[str, Any]] = {
    "links": {"file": "nowhere"},
    "backlinks": {"file": "nowhere"},
    "broken": {"collection": "nowhere"},
    "orphans": {"collection": "nowhere"},
    "tags": {"collection": "nowhere"},
    "recent": {"since": "nowhere"},
    "similar": {"file": "nowhere"},
    "outline": {"file": "plan#nowhere"},
    "properties": {"key": "nowhere"},
    "edit_note": {"file": "hub", "action": "replace", "old": "nowhere", "text": ""},
    "set_property": {"file": "nowhere", "property": "status", "value": "done"},
    "tick": {"file": "tasks", "task": "nowhere"},
    "delete_note": {"file": "nowhere"},
    "move_note": {"file": "plan", "new_path": "nowhere/../../x"},
}
#: Undo has no preview, so a second call finds another state; people name sessions in the shell.
OPERATIONS = {each.name: each for each in every_operation() if each.name != "undo"}
JOINED = {part: each for each in every_joined() for part in each.parts}
TOOLS = {
    tool.name: tool
    for toolset in ("graph", "edit")
    for tool in tools_of_operations(toolset, alone=False)
}


@dataclass
class Served:
    """A knowledge base, and the ways to it."""

    kb: KnowledgeBase
    database: Path
    scratch: Scratch

    def python(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        sent = dict(arguments)
        budget = ListBudget(sent.pop("max_tokens", None))
        return to_wire(operation.call(self.kb, sent, budget))

    def command(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        return self.run(operation, arguments, "--json").json()

    def tool(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        joined = JOINED.get(operation)
        reply = TOOLS[joined.name if joined else operation.name].call(self.kb, arguments, MCP)
        assert not reply.is_error and reply.structured is not None
        return in_snake_case(reply.structured[operation.name] if joined else reply.structured)

    def endpoint(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        response = self.ask(operation, arguments)
        assert response.status_code == 200, response.text
        reply = response.json()
        if operation.text is not None:
            assert reply.pop("content")
        return reply

    def ask(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        with rest_client(self.kb) as rest:
            if operation.writes:
                return rest.post(f"/{operation.name}", json=dict(arguments))
            return rest.get(f"/{operation.name}", params=dict(arguments))

    def remote(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        return self.run(operation, arguments, "--json", "--mode", "server").json()

    def run(self, operation: Operation, arguments: Mapping[str, Any], *options: str) -> Result:
        return self.scratch.ok(*self.line(operation, arguments, *options))

    def line(
        self, operation: Operation, arguments: Mapping[str, Any], *options: str
    ) -> tuple[str, ...]:
        """The arguments of ``qmd`` for a call."""
        assert operation.words is not None
        words = operation.words.split()
        facts = {each.name: each for each in operation.arguments}
        for name, value in arguments.items():
            field = facts.get(name)
            shell = None if field is None else field.get(Shell)
            option = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
                continue
            if field is None or not (field.is_required or (shell and shell.positional)):
                words.append(f"--{option}")
            words.append(str(value))
        return "--db", str(self.database), *words, *options


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("faces")
    for number, (name, text) in enumerate(NOTES.items()):
        path = folder / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(10**18 + number * 10**9,) * 2)
    database = folder / "index.sqlite"
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(database, settings, create=True) as kb:
        kb.add_collection(folder / "notes", name="notes")
        kb.index()
        kb.embed()
        with LiveApp(kb) as server:
            running.announce(database, running.RunningServer(server.url, os.getpid(), None, "0"))
            yield Served(kb, database, Scratch(folder))


def in_snake_case(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {to_snake(key): in_snake_case(each) for key, each in value.items()}
    return [in_snake_case(each) for each in value] if isinstance(value, list) else value


def test_every_operation_is_called() -> None:
    assert CALLS.keys() == ERRORS.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("face", ["command", "tool", "endpoint", "remote"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param(name, arguments, id=f"{name} {json.dumps(arguments)}")
        for name, calls in CALLS.items()
        for arguments in calls
    ],
)
def test_every_face_gives_the_value_that_python_gives(
    served: Served, name: str, arguments: Mapping[str, Any], face: str
) -> None:
    operation = OPERATIONS[name]
    if face not in faces_of(operation):
        pytest.skip("it is not on this face")
    if face == "tool" and operation in JOINED and "max_tokens" in arguments:
        pytest.skip("its budget is for two lists")
    value = json.loads(json.dumps(served.python(operation, arguments)))
    if operation.bare and face in ("command", "remote"):
        value = value["keys"] or value["values"]
    assert getattr(served, face)(operation, arguments) == value


def faces_of(operation: Operation) -> set[str]:
    if operation.in_shell_alone:
        return {"command"}
    return {"command", "tool", "endpoint"} | (set() if operation.writes else {"remote"})


@pytest.mark.parametrize("name", [name for name in CALLS if not OPERATIONS[name].writes])
def test_a_server_makes_the_same_text_in_the_shell(served: Served, name: str) -> None:
    for arguments in CALLS[name]:
        here = served.run(OPERATIONS[name], arguments)
        assert served.run(OPERATIONS[name], arguments, "--mode", "server") == here
        assert here.out or here.err


@pytest.mark.parametrize("name", ERRORS)
def test_every_face_gives_the_same_error(served: Served, name: str) -> None:
    operation = OPERATIONS[name]
    arguments = ERRORS[name]
    with pytest.raises(QmdError) as raised:
        served.python(operation, arguments)
    message = str(raised.value)
    here = served.scratch.call(*served.line(operation, arguments))
    assert here.code == 1 and message in here.err
    if "remote" in faces_of(operation):
        there = served.scratch.call(*served.line(operation, arguments, "--mode", "server"))
        assert there.code == 1 and message in there.err
    if operation.in_shell_alone:
        return
    joined = JOINED.get(operation)
    reply = TOOLS[joined.name if joined else name].call(served.kb, arguments, MCP)
    (block,) = reply.blocks
    assert reply.is_error and message in str(getattr(block, "text", ""))
    response = served.ask(operation, arguments)
    assert response.json().keys() == {"detail", "status_code"}
    assert message in response.json()["detail"]
    assert response.headers["Qmd-Error"] == raised.value.code
    assert response.status_code in {400, *(each.http_status for each in operation.errors)}


def test_the_description_says_which_errors_an_operation_gives() -> None:
    described = openapi.document()["paths"]
    for operation in OPERATIONS.values():
        if operation.in_shell_alone:
            continue
        method = "post" if operation.writes else "get"
        responses = described[f"/{operation.name}"][method]["responses"]
        for error in operation.errors:
            response = responses[str(error.http_status)]
            assert f"`{error.code}`: {' '.join(MEANINGS[error])}" in response["description"]
            assert error.code in response["headers"]["Qmd-Error"]["schema"]["examples"]


def test_every_operation_says_what_it_is_in_both_languages() -> None:
    for operation in OPERATIONS.values():
        summary = operation.paragraphs[0]
        assert summary.endswith(".") and len(summary) <= 67, summary
        assert operation.zh.endswith("。")
        assert arguments_of(operation).model_fields.keys() >= {
            each.name for each in operation.arguments
        }
        for tool in TOOLS.values():
            listed = set(tool.input_schema()["properties"])
            assert set(tool.wordings["zh"]) == {"does", *listed}
