"""A field of a hit and an option of a search are one line each, and come out of every face."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from support.changed_copy import ChangedCopy
from support.cli import Scratch
from support.http_server import WITHOUT_MODEL, Serving
from support.mcp_client import with_client

pytestmark = [pytest.mark.unmeasured, pytest.mark.cold]  # what runs is a copy, which no fork has

#: The two lines, each with the line of qmd/values/search.py that it is put in front of.
FIELD = '    tongue: Annotated[str, Describe("The language of the text")] = "unknown"\n'
BEFORE_FIELD = "    explain: Annotated[\n        Mapping"
OPTION = '    tongue: Annotated[str | None, Describe("Only texts in this language")] = None\n'
BEFORE_OPTION = "    rerank: Annotated["

#: The step of a search that heeds the option and fills the field.
STEP = """

def _answer_in_tongue(self, command, request, _answer=KnowledgeBase.run_search):
    from dataclasses import replace

    reply = _answer(self, command, request)
    hits = [replace(hit, tongue=request.tongue or hit.tongue) for hit in reply.hits]
    return replace(reply, hits=tuple(hits))


KnowledgeBase.run_search = _answer_in_tongue
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChangedCopy]:
    """A copy with the field and the option, and a note."""
    scratch = Scratch(tmp_path_factory.mktemp("values"), WITHOUT_MODEL)
    scratch.write("notes/boat.md", "# A boat\n\nIt floats.\n")
    added = {"qmd/kb/knowledge_base.py": STEP}
    with ChangedCopy(tmp_path_factory.mktemp("copy"), scratch, added) as copy:
        values = copy.folder / "qmd/values/search.py"
        text = values.read_text(encoding="utf-8")
        for line, next_line in ((FIELD, BEFORE_FIELD), (OPTION, BEFORE_OPTION)):
            assert text.count(next_line) == 1
            text = text.replace(next_line, line + next_line)
        values.write_text(text, encoding="utf-8")
        copy.ok("collection", "add", "notes")
        yield copy


@pytest.fixture(scope="module")
def server(copy: ChangedCopy) -> Iterator[Serving]:
    with copy.serve("--toolset", "qmd") as serving:
        assert serving.url
        yield serving


def test_the_command_line_takes_the_option_and_prints_the_field(copy: ChangedCopy) -> None:
    (hit,) = copy.json("search", "boat")
    assert hit["tongue"] == "unknown"
    (hit,) = copy.json("search", "boat", "--tongue", "en")
    assert hit["tongue"] == "en"
    help_text = copy.ok("search", "--help")
    assert "--tongue" in help_text
    assert "Only texts in this language." in help_text


def test_mcp_describes_the_argument_and_answers_with_the_field(server: Serving) -> None:
    async def use(client: Client) -> tuple[Any, Any]:
        listed = await client.list_tools()
        return listed, await client.call_tool("search", {"query": "boat", "tongue": "en"})

    listed, result = with_client(f"{server.url}/mcp", use)
    tool = next(each for each in listed.tools if each.name == "search")
    assert tool.input_schema["properties"]["tongue"] == {
        "type": "string",
        "description": "Only texts in this language",
    }
    hit_schema = tool.output_schema["properties"]["results"]["items"]
    assert "tongue" in hit_schema["required"]
    (hit,) = result.structured_content["results"]
    assert hit["tongue"] == "en"


def test_rest_describes_the_option_and_answers_with_the_field(server: Serving) -> None:
    schemas = server.ask("GET", "/openapi.json").json()["components"]["schemas"]
    for request in ("SearchRequest", "VsearchRequest"):
        assert schemas[request]["properties"]["tongue"] == {
            "type": ["string", "null"],
            "description": "Only texts in this language",
        }
    assert schemas["Hit"]["properties"]["tongue"] == {
        "type": "string",
        "description": "The language of the text",
    }
    answer = server.ask("POST", "/search", {"query": "boat", "tongue": "en"})
    assert [hit["tongue"] for hit in answer.json()["results"]] == ["en"]


def test_the_client_of_a_running_server_sends_the_option_and_reads_the_field(
    copy: ChangedCopy, server: Serving
) -> None:
    assert server.url
    (hit,) = copy.json("search", "boat", "--mode", "server", "--tongue", "en")
    assert hit["tongue"] == "en"


def test_python_takes_the_option_and_shows_it_in_the_signature(copy: ChangedCopy) -> None:
    script = """
import inspect
from qmd import KnowledgeBase
print(inspect.signature(KnowledgeBase.vsearch).parameters["tongue"])
with KnowledgeBase.open(sys.argv[1]) as kb:
    print([hit.tongue for hit in kb.search("boat", tongue="en").hits])
"""
    done = subprocess.run(
        [*copy.python(script), str(copy.scratch.database)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == ["tongue: str | None = None", "['en']"]
