"""Every operation gives the same value on every face: Python, command, tool, endpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic.alias_generators import to_snake
from starlette.testclient import TestClient

from qmd import KnowledgeBase, Settings
from qmd.tools.graph import TOOLS
from qmd.tools.texts import MCP
from qmd.values.list_budget import ListBudget
from qmd.values.wire import to_wire
from tests.support.cli import Scratch
from tests.support.embedder import HashEmbedder
from tests.support.rest import rest_client

NOTES = {
    "hub.md": "# Hub\n\n[[plan]], [[plans]] and [[plan#Costs|money]]\n\n![[boat.png]] #work/maps\n",
    "plan.md": "---\ntags: [work]\n---\n# Plan\n\n[[hub]] <https://example.org> 船\n",
    "sub/alone.md": "# Alone\n\n#work #other\n\nNobody links here, [[gone]].\n",
    "sub/many.md": "# Many\n\n" + "".join(f"[[gone {number}]] [[plan]]\n" for number in range(60)),
}


class Face(NamedTuple):
    """How one operation is called: each face has its spelling."""

    method: str
    command: str
    tool: str
    part: str  # of the reply of a joined tool
    items: str


FACES = {
    "links": Face("links", "links of", "links", "links", "links"),
    "backlinks": Face("backlinks", "links backlinks", "links", "backlinks", "links"),
    "broken": Face("broken_links", "links broken", "check_links", "broken", "links"),
    "orphans": Face("orphans", "links orphans", "check_links", "orphans", "documents"),
    "tags": Face("tags", "tags", "tags", "", "tags"),
    "recent": Face("recent", "recent", "recent", "", "changes"),
    "similar": Face("similar", "similar", "similar", "", "documents"),
}
POSITIONAL = ("file", "prefix")

#: Operation → calls of it.
CALLS: Mapping[str, list[dict[str, Any]]] = {
    "links": [{"file": "hub"}, {"file": "many", "limit": 3}, {"file": "many", "max_tokens": 300}],
    "backlinks": [{"file": "plan"}, {"file": "notes/plan.md", "limit": 2}],
    "broken": [{}, {"collection": "notes", "limit": 5}, {"limit": 50, "max_tokens": 400}],
    "orphans": [{}, {"collection": "notes", "limit": 1}],
    "tags": [{}, {"prefix": "work/"}, {"prefix": "wrok"}, {"collection": "notes", "limit": 1}],
    "recent": [{}, {"since": "2001", "limit": 2}, {"collection": "notes", "max_tokens": 300}],
    "similar": [{"file": "plan"}, {"file": "hub", "collection": "notes", "limit": 1}],
}
#: The limits where a call names none. The command line has others than the servers.
LIMITS: Mapping[Any, int] = {
    "similar": 10,
    ("recent", "command"): 20,
    **{(name, "command"): 100 for name in ("links", "backlinks", "broken", "orphans", "tags")},
}
#: Budgets that a joined tool divides otherwise than its parts.
DIVIDED = {name for name, face in FACES.items() if face.part}


@dataclass
class Served:
    """A knowledge base, and the ways to it."""

    kb: KnowledgeBase
    database: Path
    scratch: Scratch
    rest: TestClient

    def python(self, name: str, arguments: Mapping[str, Any], limit: int) -> Any:
        face, sent = FACES[name], {"limit": limit, **arguments}
        budget = ListBudget(sent.pop("max_tokens", None))
        return to_wire(budget.fit(getattr(self.kb, face.method)(**sent), face.items))

    def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        words = [*FACES[name].command.split(), "--json"]
        for key, value in arguments.items():
            option = [] if key in POSITIONAL else [f"--{key.replace('_', '-')}"]
            words += [*option, str(value)]
        return self.scratch.ok("--db", str(self.database), *words).json()

    def tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        face = FACES[name]
        (tool,) = (each for each in TOOLS if each.name == face.tool)
        reply = tool.call(self.kb, arguments, MCP)
        assert not reply.is_error and reply.structured is not None
        return in_snake_case(reply.structured[face.part] if face.part else reply.structured)

    def endpoint(self, name: str, arguments: Mapping[str, Any]) -> Any:
        response = self.rest.get(f"/{name}", params=dict(arguments))
        assert response.status_code == 200, response.text
        return response.json()


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
        with rest_client(kb) as rest:
            yield Served(kb, database, Scratch(folder), rest)


def in_snake_case(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {to_snake(key): in_snake_case(each) for key, each in value.items()}
    return [in_snake_case(each) for each in value] if isinstance(value, list) else value


def test_every_operation_is_called() -> None:
    assert CALLS.keys() == FACES.keys()


@pytest.mark.parametrize("face", ["command", "tool", "endpoint"])
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
    if face == "tool" and name in DIVIDED and "max_tokens" in arguments:
        pytest.skip("its budget is for two lists")
    value = served.python(name, arguments, LIMITS.get((name, face), LIMITS.get(name, 50)))
    assert json.loads(json.dumps(value)) == getattr(served, face)(name, arguments)
