"""Every operation gives the same value on every face: Python, command, tool, endpoint, remote."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_snake
from support.live_app import LiveApp
from support.rest import rest_client

from qmd import KnowledgeBase, Settings
from qmd.errors import QmdError
from qmd.operations import Operation, every_joined, every_operation, operations_of
from qmd.operations.definition import Replied
from qmd.operations.error_meanings import MEANINGS
from qmd.operations.texts import MCP
from qmd.server import openapi
from qmd.system import running
from qmd.tools.toolsets import arguments_of, tools_of
from qmd.values.chats import ChatInfo
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
    "facts.md": "# Facts\n\n- [fact] Boats float #sea (2026-01-02; Li)\n- [fact] Boats sink\n",
    "sub/alone.md": "# Alone\n\n#work #other\n\nNobody links here, [[gone]].\n",
    "sub/many.md": "# Many\n\n" + "".join(f"[[gone {number}]] [[plan]]\n" for number in range(60)),
}

CHAT = "3f9a0000000000000000000000000000"
#: Fields that differ from call to call.
VOLATILE = {"change", "token", "created", "updated", "expires", "last_updated", "last_indexed"}

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
    "tasks": [{}, {"due": "none", "limit": 1}, {"done": True, "open": True, "max_tokens": 300}],
    "view": [{"view": "TABLE rating, status FROM #work"}, {"view": "LIST FROM #work", "limit": 3}],
    "periodic_note": [{"when": "2026-11-20"}, {"when": "2026-W47", "collection": "notes"}],
    "recall": [
        {},
        {"query": "which boats float", "limit": 1},
        {"about": "facts", "category": "fact", "tags": ["sea"], "since": "2026"},
    ],
    "build_context": [{"file": "hub"}, {"file": "plan", "max_tokens": 300, "steps": 2}],
    "forget": [{"about": "facts", "fact": "Boats sink", "preview": True}],
    "edit_note": [
        {"file": "hub", "action": "append", "text": "more", "preview": True},
        {"file": "plan", "action": "set_property", "property": "n", "value": 3, "preview": True},
    ],
    "set_property": [{"file": "plan", "property": "status", "value": "done", "preview": True}],
    "tick": [{"file": "tasks", "task": "Call", "preview": True}],
    "delete_note": [{"file": "alone", "preview": True}],
    "move_note": [{"file": "plan", "new_path": "sub/", "preview": True, "rewrite_links": False}],
    "collections": [{}],
    "collection": [{"name": "notes"}],
    "contexts": [{}],
    "changes": [{}, {"session": "none", "limit": 1}],
    "why": [{"path": "notes/plan.md"}],
    "cleanup": [{"dry_run": True}],
    "tokens": [{}],
    "audit": [{"limit": 2}, {"token": "anna"}],
    "chats": [{}, {"query": "boats", "limit": 1, "offset": 1}],
}
#: Operation → a call that changes what the next call would find; each face gets its own database.
CHANGES: Mapping[str, dict[str, Any]] = {
    "create_periodic_note": {"when": "2026-11-20"},
    "index": {},
    "update": {"pull": True},
    "remember": {"about": "Facts", "fact": "Boats swim", "tags": ["sea"], "source": "Li"},
    "rename_collection": {"name": "notes", "new_name": "work"},
    "exclude": {"name": "notes"},
    "include": {"name": "notes"},
    "remove_collection": {"name": "notes"},
    "remove_context": {"path": "qmd://notes/sub"},
    "create_token": {"name": "bea", "read": ["notes"], "write": ["notes"], "expires": "2w"},
    "revoke_token": {"name": "anna"},
    "rename_chat": {"chat": CHAT, "name": "Other boats"},
    "export_chat": {"chat": CHAT, "path": "notes/boats.md"},
    "delete_chat": {"chat": CHAT},
}
#: What a hint names besides a command, which a client of a server cannot run.
WAYS_WITHOUT_A_SHELL = re.compile(r"(GET|POST|PUT|DELETE) /|\btools? [a-z_]+|\bStatus\b")
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
    "tasks": {"due": "nowhere"},
    "view": {"view": "nowhere"},
    "periodic_note": {"collection": "nowhere"},
    "create_periodic_note": {"collection": "nowhere"},
    "recall": {"about": "nowhere"},
    "build_context": {"file": "nowhere"},
    "remember": {"about": "Facts", "fact": " "},
    "forget": {"about": "facts", "fact": "nowhere"},
    "edit_note": {"file": "hub", "action": "replace", "old": "nowhere", "text": ""},
    "set_property": {"file": "nowhere", "property": "status", "value": "done"},
    "tick": {"file": "tasks", "task": "nowhere"},
    "delete_note": {"file": "nowhere"},
    "move_note": {"file": "plan", "new_path": "nowhere/../../x"},
    "collection": {"name": "nowhere"},
    "rename_collection": {"name": "nowhere", "new_name": "x"},
    "exclude": {"name": "nowhere"},
    "include": {"name": "nowhere"},
    "remove_collection": {"name": "nowhere"},
    "remove_context": {"path": "qmd://notes/nowhere"},
    "create_token": {"name": "x", "read": ["nowhere"]},
    "revoke_token": {"name": "nowhere"},
    "audit": {"since": "nowhere"},
    "rename_chat": {"chat": "nowhere", "name": "x"},
    "export_chat": {"chat": "nowhere", "path": "notes/x.md"},
    "delete_chat": {"chat": "nowhere"},
}
#: What a client sends whose variable for the docid is not set.
BLANK_DOCIDS: Mapping[str, dict[str, Any]] = {
    "edit_note": {"file": "hub", "action": "append", "text": "x", "if_docid": ""},
    "delete_note": {"file": "hub", "if_docid": " "},
    "move_note": {"file": "hub", "new_path": "elsewhere", "if_docid": ""},
}
#: Undo has no preview, so a second call finds another state; people name sessions in the shell.
#: Those whose replies a specification prescribes have tests of their own.
OPERATIONS = {
    each.name: each
    for each in every_operation()
    if each.name != "undo" and each.tool is None and not each.done_by
}
SEARCHES = {each.name: each for each in operations_of("searches")}
JOINED = {part: each for each in every_joined() for part in each.parts}
TOOLS = {
    tool.name: tool
    for toolset in ("qmd", "graph", "edit", "memory")
    for tool in tools_of(toolset, alone=False)
}


@dataclass
class Served:
    """A knowledge base, and the ways to it."""

    kb: KnowledgeBase
    database: Path
    scratch: Scratch

    def python(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        sent = dict(arguments)
        budget = ListBudget(sent.pop("max_tokens", None) if operation.has_budget else None)
        return operation.call(self.kb, sent, budget)

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
        if operation.text is not None and operation.sends is None:
            assert reply.pop("content")
        return reply

    def ask(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        path = operation.path.format_map(arguments)
        sent = {name: each for name, each in arguments.items() if name not in operation.in_path}
        as_body = operation.method in ("POST", "PUT")
        with rest_client(self.kb) as rest:
            return rest.request(
                operation.method, path, **({"json": sent} if as_body else {"params": sent})
            )

    def remote(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        return self.run(operation, arguments, "--json", "--mode", "server").json()

    def run(self, operation: Operation, arguments: Mapping[str, Any], *options: str) -> Result:
        return self.scratch.ok(*self.line(operation, arguments, *options))

    def line(
        self, operation: Operation, arguments: Mapping[str, Any], *options: str
    ) -> tuple[str, ...]:
        """The arguments of ``qmd`` for a call."""
        assert operation.command_name is not None
        words = operation.command_name.split()
        facts = {each.name: each for each in operation.arguments}
        for name, value in arguments.items():
            field = facts.get(name)
            shell = None if field is None else field.get(Shell)
            option = {"tags": "tag"}.get(name, name.replace("_", "-"))
            if value is True and name == "all":
                words.append("--all")
                continue
            if isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
                continue
            if field is None or not (field.is_required or (shell and shell.positional)):
                words.append(f"--{option}")
            words.append(",".join(value) if isinstance(value, list) else str(value))
        return "--db", str(self.database), *words, *options


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with opened(tmp_path_factory.mktemp("faces")) as served:
        yield served


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[str], AbstractContextManager[Served]]:
    return lambda name: opened(tmp_path / name)


@contextmanager
def opened(folder: Path) -> Iterator[Served]:
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
        kb.add_context("qmd://notes/sub", "What is below")
        kb.create_token("anna", read=["notes"])
        keep_chat(kb)
        with LiveApp(kb) as server:
            running.announce(database, running.RunningServer(server.url, os.getpid(), None, "0"))
            yield Served(kb, database, Scratch(folder))


def keep_chat(kb: KnowledgeBase) -> None:
    """A conversation without turns, which no face makes without a language model."""
    chat = ChatInfo(CHAT, "Boats", "read", "2025-01-01", "2025-01-01", 0)
    kb._store.write(lambda writer: writer.conversations.add(chat, ""))


def in_snake_case(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {to_snake(key): in_snake_case(each) for key, each in value.items()}
    return [in_snake_case(each) for each in value] if isinstance(value, list) else value


def test_every_operation_is_called() -> None:
    assert CALLS.keys() | CHANGES.keys() == OPERATIONS.keys()
    assert {name for name, each in OPERATIONS.items() if each.errors} <= ERRORS.keys()


def test_a_list_for_models_has_a_heading_and_a_sentence_without_items() -> None:
    operations = OPERATIONS.values()
    lists = [each for each in operations if "rows" in vars(each) and each.toolset is not None]
    assert lists
    assert [each.name for each in lists if not (each.heading and each.when_empty)] == []


@pytest.mark.parametrize("face", ["command", "tool", "endpoint", "remote"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param(name, arguments, id=f"{name} {json.dumps(arguments)}")
        for name, calls in CALLS.items()
        for arguments in calls
    ],
)
@pytest.mark.unmeasured
def test_every_face_gives_the_value_that_python_gives(
    served: Served, name: str, arguments: Mapping[str, Any], face: str
) -> None:
    operation = OPERATIONS[name]
    if face not in faces_of(operation):
        pytest.skip("it is not on this face")
    if face == "tool" and operation in JOINED and "max_tokens" in arguments:
        pytest.skip("its budget is for two lists")
    value = served.python(operation, arguments)
    assert getattr(served, face)(operation, arguments) == expected(
        operation, value, arguments, face
    )


def expected(operation: Operation, value: Any, arguments: Mapping[str, Any], face: str) -> Any:
    """What a face sends of a value in Python."""
    if face == "endpoint" and operation.sends is not None:
        value = operation.sends(Replied(value, arguments))
    wire = json.loads(json.dumps(to_wire(value)))
    if operation.json_is_list and face in ("command", "remote"):
        return next(filter(None, (wire[name] for name in operation.lists)), [])
    return wire


def faces_of(operation: Operation) -> set[str]:
    faces = set() if operation.command_name is None else {"command"}
    if operation.in_shell_alone:
        return faces
    faces |= {"endpoint"} if operation.toolset is None else {"endpoint", "tool"}
    return faces | ({"remote"} if served_to_the_shell(operation) else set())


def served_to_the_shell(operation: Operation) -> bool:
    """Whether the command asks a server with ``--mode server``."""
    return bool(operation.lists) and operation.command_name is not None and not operation.view


@pytest.mark.parametrize("face", ["command", "endpoint"])
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.unmeasured
def test_every_face_changes_the_same(
    fresh: Callable[[str], AbstractContextManager[Served]], name: str, face: str
) -> None:
    operation, arguments = OPERATIONS[name], CHANGES[name]
    if face not in faces_of(operation):
        pytest.skip("it is not on this face")
    with fresh("there") as served:
        value = expected(operation, served.python(operation, arguments), arguments, face)
        listed = [served.kb.collections(), served.kb.contexts(), served.kb.chats()]
    with fresh("here") as served:
        assert fixed(getattr(served, face)(operation, arguments)) == fixed(value)
        here = [served.kb.collections(), served.kb.contexts(), served.kb.chats()]
        assert fixed(to_wire(here)) == fixed(to_wire(listed))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", {"query": "plan -gone", "limit": 2}),
        ("search", {"query": "船", "collection": "notes", "tags": "work", "all": True}),
        ("vsearch", {"query": "船", "min_score": 0}),
        ("query", {"query": "status:draft plan", "candidate_limit": 3, "rerank": False}),
    ],
)
def test_a_search_has_the_same_hits_on_every_face(
    served: Served, name: str, arguments: dict[str, Any]
) -> None:
    operation, sent = SEARCHES[name], dict(arguments)
    if "tags" in sent:
        sent["tags"] = [sent["tags"]]
    value = operation.run(served.kb, **operation.gathered(sent))
    assert value.hits
    hits = [(hit.file, hit.line, hit.match) for hit in value.hits]
    assert of_hits(served.ask(operation, sent).json()["results"]) == hits
    assert (
        of_hits(in_snake_case(TOOLS[name].call(served.kb, sent, MCP).structured)["results"]) == hits
    )
    if name != "vsearch":  # only the server has the model
        assert of_hits(served.command(operation, arguments)) == hits
    assert of_hits(served.remote(operation, arguments)) == hits


def of_hits(sent: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(hit["file"], hit["line"], hit["match"]) for hit in sent]


def fixed(value: Any) -> Any:
    """A value without what differs from call to call."""
    if isinstance(value, Mapping):
        return {key: fixed(each) for key, each in value.items() if key not in VOLATILE}
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name
    return list(map(fixed, value)) if isinstance(value, (list, tuple)) else value


def test_a_server_lists_all_if_they_are_not_too_many(served: Served) -> None:
    here = served.scratch.ok("--db", str(served.database), "links", "many", "--all")
    there = served.scratch.ok(
        "--db", str(served.database), "links", "many", "--all", "--mode", "server"
    )
    assert there == here
    assert len(here.out.splitlines()) == 120


@pytest.mark.parametrize("name", [name for name in CALLS if served_to_the_shell(OPERATIONS[name])])
def test_a_server_makes_the_same_text_in_the_shell(served: Served, name: str) -> None:
    for arguments in CALLS[name]:
        here = served.run(OPERATIONS[name], arguments)
        assert served.run(OPERATIONS[name], arguments, "--mode", "server") == here
        assert here.out or here.err


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *(pytest.param(*each, id=each[0]) for each in ERRORS.items()),
        *(pytest.param(*each, id=f"{each[0]} with a blank docid") for each in BLANK_DOCIDS.items()),
    ],
)
def test_every_face_gives_the_same_error(
    served: Served, name: str, arguments: dict[str, Any]
) -> None:
    operation = OPERATIONS[name]
    with pytest.raises(QmdError) as raised:
        served.python(operation, arguments)
    message = str(raised.value)
    if "command" in faces_of(operation):
        here = served.scratch.call(*served.line(operation, arguments))
        assert here.code == 1 and message in here.err
    if "remote" in faces_of(operation):
        there = served.scratch.call(
            *served.line(operation, arguments, "--mode", "server", "--json")
        )
        assert there.code == 1
        told = json.loads(there.err)["error"]
        assert told["code"] == raised.value.code and message in told["message"]
    if operation.in_shell_alone:
        return
    if operation.toolset is not None:
        joined = JOINED.get(operation)
        reply = TOOLS[joined.name if joined else name].call(served.kb, arguments, MCP)
        (block,) = reply.blocks
        assert reply.is_error and message in str(getattr(block, "text", ""))
        assert reply.code == raised.value.code
    response = served.ask(operation, arguments)
    assert response.json().keys() == {"detail", "status_code"}
    detail = response.json()["detail"]
    assert message in detail
    assert "'qmd " not in detail or WAYS_WITHOUT_A_SHELL.search(detail), detail
    assert response.headers["Qmd-Error"] == raised.value.code
    assert response.status_code in {400, *(each.http_status for each in operation.errors)}


def test_the_description_says_which_errors_an_operation_gives() -> None:
    described = openapi.document()["paths"]
    for operation in OPERATIONS.values():
        if operation.in_shell_alone:
            continue
        responses = described[operation.path][operation.method.lower()]["responses"]
        for error in operation.errors:
            response = responses[str(error.http_status)]
            assert f"`{error.code}`: {' '.join(MEANINGS[error])}" in response["description"]
            assert error.code in response["headers"]["Qmd-Error"]["schema"]["examples"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_command_misses_an_argument_that_it_needs(served: Served, name: str) -> None:
    operation = OPERATIONS[name]
    if operation.command_name is None or not any(each.is_required for each in operation.arguments):
        pytest.skip("it needs none")
    result = served.scratch.call("--db", str(served.database), *operation.command_name.split())
    assert result.code == 2
    assert "Missing argument" in result.err


def test_every_operation_says_what_it_is_in_both_languages() -> None:
    for operation in OPERATIONS.values():
        summary = operation.paragraphs[0]
        assert summary.endswith(".") and len(summary) <= 67, (
            f"a summary is one sentence of at most 67 characters: {summary}"
        )
        assert operation.zh.endswith("。") == ("tool" in faces_of(operation))
        assert arguments_of(operation).model_fields.keys() >= {
            each.name for each in operation.arguments
        }
        for tool in (each for each in TOOLS.values() if each.name not in SEARCHES):
            listed = set(tool.input_schema()["properties"])
            assert set(tool.wordings["zh"]) == {"does", *listed}
