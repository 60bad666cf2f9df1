"""An operation that a stranger adds to a copy of qmd, as in CONTRIBUTING.md, on every face."""

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
#: ``python -m qmd`` would take the package of the current directory.
LAUNCH = "import sys; sys.path.insert(0, {!r}); from qmd.__main__ import run; run()"


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command line of a copy with the operation."""
    directory = tmp_path_factory.mktemp("copy")
    for name in ("qmd", "migrations"):
        shutil.copytree(REPOSITORY / name, directory / name)  # with what is compiled
    for name, text in ADDED.items():
        with (directory / name).open("a", encoding="utf-8") as file:
            file.write(text)
    return [sys.executable, "-c", LAUNCH.format(str(directory))]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory, command: list[str]) -> Scratch:
    scratch = Scratch(tmp_path_factory.mktemp("hubs"))
    for name, text in NOTES.items():
        scratch.write(f"notes/{name}", text)
    run(scratch, command, "collection", "add", "notes")
    return scratch


@pytest.fixture(scope="module")
def server(scratch: Scratch, command: list[str]) -> Iterator[Serving]:
    arguments = ["--db", str(scratch.database), "server", "--transport", "http", "--port", "0"]
    with Serving([*command, *arguments], environment=scratch.environment) as serving:
        assert serving.url
        yield serving


def run(scratch: Scratch, command: list[str], *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [*command, *arguments],
        cwd=scratch.root,
        env={**scratch.environment, **variables},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_shell_has_the_command(scratch: Scratch, command: list[str]) -> None:
    assert run(scratch, command, "hubs") == "notes/hub.md  Hub\n"
    both = json.loads(run(scratch, command, "hubs", "--backlinks", "1", "--json"))
    assert [each["file"] for each in both["documents"]] == ["notes/a.md", "notes/hub.md"]
    path = run(scratch, command, "hubs", "--full-path").split()[0]
    assert path == str(scratch.root / "notes/hub.md")
    help_text = run(scratch, command, "hubs", "--help")
    assert "Least backlinks." in help_text and "They may be maps of content." in help_text
    assert "hubs" in run(scratch, command, "help", "--all")


def test_the_tab_key_completes_it(scratch: Scratch, command: list[str]) -> None:
    typed = {"_QMD_COMPLETE": "bash_complete", "COMP_LINE": "qmd hu", "COMP_WORD": "hu"}
    assert "hubs" in run(scratch, command, **typed)


def test_models_have_the_tool(scratch: Scratch, command: list[str]) -> None:
    server = ["--db", str(scratch.database), "mcp", "--toolset", "graph", "--lang", "zh"]
    program, *arguments = [*command, *server]
    parameters = StdioServerParameters(
        command=program, args=arguments, env=scratch.environment, cwd=scratch.root
    )

    async def use(client: Client) -> tuple[Any, Any]:
        return await client.list_tools(), await client.call_tool("hubs", {"limit": 1})

    listed, result = with_client(parameters, use)
    tool = next(each for each in listed.tools if each.name == "hubs")
    assert tool.description == "链接最多的文档。"
    assert tool.input_schema["properties"]["backlinks"]["description"] == "最少的反向链接"
    assert tool.annotations.read_only_hint
    assert result.content[0].text == "Hubs: 1\nnotes/hub.md - Hub"
    assert result.structured_content["total"] == 1


def test_programs_have_the_endpoint(scratch: Scratch, command: list[str], server: Serving) -> None:
    reply = server.ask("GET", "/hubs?backlinks=1").json()
    assert reply["total"] == 2
    assert server.ask("GET", "/hubs?backlinks=0").status == 400
    described = server.ask("GET", "/openapi.json").json()
    assert described["paths"]["/hubs"]["get"]["summary"] == "List the documents with many backlinks"
    assert "Hubs" in described["components"]["schemas"]
    line = ["hubs", "--backlinks", "1", "--json", "--mode", "server"]
    assert json.loads(run(scratch, command, *line)) == reply


def test_a_token_for_some_collections_opens_it(
    scratch: Scratch, command: list[str], server: Serving
) -> None:
    line = ["server", "token", "create", "reader", "--read", "notes", "--json"]
    token = json.loads(run(scratch, command, *line))["token"]
    answer = server.ask("GET", "/hubs", Authorization=f"Bearer {token}")
    assert answer.json()["total"] == 1
