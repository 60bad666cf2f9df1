"""An operation that a stranger adds to a copy of qmd, as in CONTRIBUTING.md, on every face."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from support.changed_copy import COMMAND, ChangedCopy
from support.cli import Scratch
from support.http_server import WITHOUT_MODEL, Serving
from support.mcp_client import with_client

#: What runs is a copy, which no fork has.
pytestmark = [pytest.mark.unmeasured, pytest.mark.cold]

#: File → what is added to it, as steps 1 to 4 have it; `Orphan` is any listed document.
ADDED = {
    "qmd/operations/graph.py": '''

from qmd.values.facts import Range
from qmd.values.graph import Hubs


def _hubs(listed: Hubs) -> Iterator[Row]:
    return (Row(file=hub.file, text=hub.title) for hub in listed.documents)


@operation(
    rows=_hubs,
    heading="Hubs: {total:,}",
    when_empty="No document has so many backlinks.",
    zh="链接最多的文档。",
)
def hubs(
    kb: KnowledgeBase,
    backlinks: Annotated[int, Range(1, 100), Describe("Least backlinks", zh="最少的反向链接")] = 2,
    limit: Limit = 50,
) -> Hubs:
    """
    List the documents with many backlinks.

    They may be maps of content.
    """
    return kb.hubs(backlinks, limit=limit)
''',
    "qmd/kb/graph.py": """

def _hubs(self, backlinks, *, limit=50):
    with self._store.reading() as reader:
        return graph.hubs.hubs(reader, backlinks, limit=most_listed(limit))


GraphMethods.hubs = open_to_scopes(_hubs)
""",
    "qmd/search/graph/hubs.py": """
from qmd.search.graph.links import backlinks_to
from qmd.values.graph import Hubs, Orphan


def hubs(reader, backlinks, *, limit):
    documents = reader.documents.below(None)
    counts = {each: backlinks_to(reader, each, limit=1).total for each in documents}
    hubs = [Orphan(each) for each, count in counts.items() if count >= backlinks]
    return Hubs(tuple(hubs[:limit]), len(hubs))
""",
    "qmd/values/graph.py": '''

@dataclass(frozen=True, slots=True)
class Hubs:
    """The documents with many backlinks."""

    documents: tuple[Orphan, ...]
    total: Annotated[int, Range(0), _TOTAL]
''',
}
NOTES = {
    "hub.md": "# Hub\n\n[[a]]\n",
    "a.md": "# A\n\n[[hub]]\n",
    "b.md": "# B\n\n[[hub]]\n",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChangedCopy]:
    """A copy with the operation, and its notes."""
    scratch = Scratch(tmp_path_factory.mktemp("hubs"), WITHOUT_MODEL)
    for name, text in NOTES.items():
        scratch.write(f"notes/{name}", text)
    with ChangedCopy(tmp_path_factory.mktemp("copy"), scratch, ADDED) as copy:
        copy.ok("collection", "add", "notes")
        yield copy


@pytest.fixture(scope="module")
def server(copy: ChangedCopy) -> Iterator[Serving]:
    with copy.serve("--toolset", "graph", "--lang", "zh") as serving:
        assert serving.url
        yield serving


def test_the_shell_has_the_command(copy: ChangedCopy) -> None:
    assert copy.ok("hubs") == "notes/hub.md  Hub\n"
    both = copy.json("hubs", "--backlinks", "1")
    assert [each["file"] for each in both["documents"]] == ["notes/a.md", "notes/hub.md"]
    path = copy.ok("hubs", "--full-path").split()[0]
    assert path == str(copy.scratch.root / "notes/hub.md")
    help_text = copy.ok("hubs", "--help")
    assert "Least backlinks." in help_text and "They may be maps of content." in help_text
    assert "hubs" in copy.ok("help", "--all")


def test_the_tab_key_completes_it(copy: ChangedCopy) -> None:
    typed = {"_QMD_COMPLETE": "bash_complete", "COMP_LINE": "qmd hu", "COMP_WORD": "hu"}
    environment = {**copy.scratch.environment, **typed}
    assert b"hubs" in subprocess.check_output(copy.python(COMMAND), env=environment, timeout=60)


def test_models_have_the_tool(server: Serving) -> None:
    async def use(client: Client) -> tuple[Any, Any]:
        return await client.list_tools(), await client.call_tool("hubs", {"limit": 1})

    listed, result = with_client(f"{server.url}/mcp", use)
    tool = next(each for each in listed.tools if each.name == "hubs")
    assert tool.description == "链接最多的文档。"
    assert tool.input_schema["properties"]["backlinks"]["description"] == "最少的反向链接"
    assert tool.annotations.read_only_hint
    assert result.content[0].text == "Hubs: 1\nnotes/hub.md - Hub"
    assert result.structured_content["total"] == 1


def test_programs_have_the_endpoint(copy: ChangedCopy, server: Serving) -> None:
    reply = server.ask("GET", "/hubs?backlinks=1").json()
    assert reply["total"] == 2
    assert server.ask("GET", "/hubs?backlinks=0").status == 400
    described = server.ask("GET", "/openapi.json").json()
    assert described["paths"]["/hubs"]["get"]["summary"] == "List the documents with many backlinks"
    assert "Hubs" in described["components"]["schemas"]
    assert copy.json("hubs", "--backlinks", "1", "--mode", "server") == reply


def test_a_token_for_some_collections_opens_it(copy: ChangedCopy, server: Serving) -> None:
    token = copy.json("server", "token", "create", "reader", "--read", "notes")["token"]
    answer = server.ask("GET", "/hubs", Authorization=f"Bearer {token}")
    assert answer.json()["total"] == 1
