"""A field of a hit and an option of a search are one line each, and come out of every face."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.cli import Scratch
from support.http_server import Serving
from support.mcp_client import with_client

REPOSITORY = Path(__file__).parents[2]

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

#: ``python -m qmd`` would take the package of the current directory.
LAUNCH = "import sys; sys.path.insert(0, {!r}); from qmd.__main__ import run; run()"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the field and the option."""
    directory = tmp_path_factory.mktemp("copy")
    for name in ("qmd", "migrations"):
        shutil.copytree(REPOSITORY / name, directory / name)  # with what is compiled
    values = directory / "qmd/values/search.py"
    text = values.read_text(encoding="utf-8")
    for line, next_line in ((FIELD, BEFORE_FIELD), (OPTION, BEFORE_OPTION)):
        assert text.count(next_line) == 1
        text = text.replace(next_line, line + next_line)
    values.write_text(text, encoding="utf-8")
    with (directory / "qmd/kb/knowledge_base.py").open("a", encoding="utf-8") as engine:
        engine.write(STEP)
    return directory


@pytest.fixture(scope="module")
def command(copy: Path) -> list[str]:
    return [sys.executable, "-c", LAUNCH.format(str(copy))]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory, command: list[str]) -> Scratch:
    scratch = Scratch(tmp_path_factory.mktemp("values"))
    scratch.write("notes/boat.md", "# A boat\n\nIt floats.\n")
    run(scratch, command, "collection", "add", "notes")
    return scratch


@pytest.fixture(scope="module")
def server(scratch: Scratch, command: list[str]) -> Iterator[Serving]:
    arguments = ["--db", str(scratch.database), "server", "--transport", "http", "--port", "0"]
    with Serving([*command, *arguments], environment=scratch.environment) as serving:
        assert serving.url
        yield serving


def run(scratch: Scratch, command: list[str], *arguments: str) -> str:
    done = subprocess.run(
        [*command, *arguments],
        cwd=scratch.root,
        env=scratch.environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_command_line_takes_the_option_and_prints_the_field(
    scratch: Scratch, command: list[str]
) -> None:
    (hit,) = json.loads(run(scratch, command, "search", "boat", "--json"))
    assert hit["tongue"] == "unknown"
    (hit,) = json.loads(run(scratch, command, "search", "boat", "--tongue", "en", "--json"))
    assert hit["tongue"] == "en"
    help_text = run(scratch, command, "search", "--help")
    assert "--tongue" in help_text
    assert "Only texts in this language." in help_text


def test_mcp_describes_the_argument_and_answers_with_the_field(
    scratch: Scratch, command: list[str]
) -> None:
    server = ["--db", str(scratch.database), "mcp", "--toolset", "qmd"]
    program, *arguments = [*command, *server]
    parameters = StdioServerParameters(
        command=program, args=arguments, env=scratch.environment, cwd=scratch.root
    )

    async def use(client: Client) -> tuple[Any, Any]:
        listed = await client.list_tools()
        return listed, await client.call_tool("search", {"query": "boat", "tongue": "en"})

    listed, result = with_client(parameters, use)
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
    scratch: Scratch, command: list[str], server: Serving
) -> None:
    options = ("search", "boat", "--mode", "server", "--tongue", "en", "--json")
    (hit,) = json.loads(run(scratch, command, *options))
    assert hit["tongue"] == "en"


def test_python_takes_the_option_and_shows_it_in_the_signature(
    scratch: Scratch, copy: Path
) -> None:
    script = """
import inspect, sys
sys.path.insert(0, sys.argv[1])
from qmd import KnowledgeBase
print(inspect.signature(KnowledgeBase.vsearch).parameters["tongue"])
with KnowledgeBase.open(sys.argv[2]) as kb:
    print([hit.tongue for hit in kb.search("boat", tongue="en").hits])
"""
    printed = run(
        scratch, [sys.executable, "-c", script], str(copy), str(scratch.database)
    ).splitlines()
    assert printed == ["tongue: str | None = None", "['en']"]
