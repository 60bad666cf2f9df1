"""Models and operations of packages: those of the page "Write a plugin", and broken ones."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from qmd import KnowledgeBase, Settings, operations
from qmd.cli import commands
from qmd.cli.main import cli
from qmd.cli.operations import commands_below
from qmd.errors import ModelMissingError, PluginError, WritesForbiddenError
from qmd.ingest import parse_workers
from qmd.models import catalogue, choice
from qmd.models import catalogue as model_plugins
from qmd.operations import plugins as operation_plugins
from qmd.operations.definition import Replied
from qmd.operations.plugins import listed
from qmd.parse import formats
from qmd.server.app import build_app
from qmd.server.endpoints import ENDPOINTS
from qmd.server.openapi import document
from qmd.server.security import Security
from qmd.settings import BackendSettings
from qmd.system import plugins
from qmd.tools import toolsets
from qmd.tools.toolsets import select
from tests.support.rest import rest_client

PAGE = Path(__file__).parents[2] / "docs/write-a-plugin.md"
BROKEN = '''
from dataclasses import dataclass
from typing import Annotated

from qmd.models.catalogue import PluginModel
from qmd.operations.definition import operation
from qmd.values.facts import Describe

@dataclass(frozen=True)
class Reply:
    text: str

@dataclass(frozen=True)
class Wrong:
    texts: set

@operation(text=lambda replied: replied.value.text)
def search(kb) -> Reply:
    """Take the place of a command of qmd."""

@operation(text=lambda replied: replied.value.text)
def unread(kb, word: "Missing") -> Reply:
    """Have an annotation that means nothing."""

@operation(text=lambda replied: replied.value.text)
def divide(kb) -> Reply:
    """Fail."""
    return Reply(str(1 / 0))

@operation(text=lambda replied: replied.value.text)
def administer(kb) -> Reply:
    """Do what only an administrator may."""
    return Reply(str(kb.tokens()))

@operation(text=lambda replied: replied.value.text)
def up(kb) -> Reply:
    """Take the place of a command that is no operation."""

@operation(text=lambda replied: replied.value.text, route="GET /")
def root(kb) -> Reply:
    """Take a path."""

@operation(text=lambda replied: replied.value.text)
def own_type(kb, word: Annotated[Reply, Describe("A word")]) -> Reply:
    """Have an argument that no face can send."""

@operation(text=lambda replied: replied.value.text)
def own_reply(kb) -> Wrong:
    """Have a reply that no face can send."""

@operation(text=lambda replied: replied.value.text)
def own_error(kb) -> Reply:
    """Say that it raises what qmd does not know."""
own_error = own_error.but(errors=(ValueError,))

@operation(text=lambda replied: str(1 / 0), lane="write")
def reword(kb) -> Reply:
    """Write, and fail where the reply is worded."""
    return Reply("")

@operation(text=lambda replied: replied.value.text)
def leave(kb) -> Reply:
    """End the process."""
    raise SystemExit(3)

@operation(text=lambda replied: replied.value.text)
def divide_again(kb) -> Reply:
    """Have a name that another plugin has."""
    return Reply("")
divide_again.run.__name__ = "divide"

GONE = PluginModel("gone", "reranking", "qmd_broken:missing")
WRONG = PluginModel("wrong", "embedding", "qmd_broken:Reply")
ROLE = PluginModel("role", "guessing", "qmd_broken:Reply")
'''


#: Those that are broken → what is said of them.
PROBLEMS = {
    "absent": "It is not installed.",
    "divide_again": "The plugin divide has an operation divide, too.",
    "ending": "SystemExit: no luck",
    "own_error": "The errors of own_error are not all in qmd.errors.",
    "own_reply": "The reply of own_reply is no dataclass of texts",
    "own_type": "The argument word of own_type has no Describe, or no type it may have.",
    "role": "The model role neither embeds, reranks nor expands.",
    "root": "The operation root has attributes of qmd's own: route.",
    "search": "qmd has a command, a tool or an endpoint search.",
    "unread": "NameError",
    "up": "qmd has a command, a tool or an endpoint up.",
}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of the page, and a broken one, as a package manager installs them."""
    site, blocks = tmp_path / "site", dict(_blocks())
    (site / "qmd_tiny").mkdir(parents=True)
    (site / "qmd_tiny/__init__.py").write_text(blocks["qmd_tiny/__init__.py"])
    (site / "qmd_tiny/models.py").write_text(blocks["qmd_tiny/models.py"])
    (site / "qmd_broken.py").write_text(BROKEN)
    points = blocks["pyproject.toml"].replace("project.entry-points.", "").replace('"', "")
    (site / "qmd_ending.py").write_text("raise SystemExit('no luck')")
    names = re.findall(r"^def (\w+)", BROKEN, re.M)
    broken = "[qmd.operations]\n" + "".join(f"{name} = qmd_broken:{name}\n" for name in names)
    broken += "ending = qmd_ending:nothing\n[qmd.models]\n"
    broken += "".join(f"{name} = qmd_broken:{name.upper()}\n" for name in ("gone", "wrong", "role"))
    for package, text in (("qmd_tiny", points), ("qmd_broken", broken)):
        about = site / f"{package}-0.1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
        (about / "entry_points.txt").write_text(text)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    _forget()
    parse_workers.workers.close()  # a worker that another test has left looks in other folders
    yield
    parse_workers.workers.close()
    plugins.turn_on(())
    formats.turn_on((), ())
    _forget()


def _blocks() -> Iterator[tuple[str, str]]:
    """The blocks of code of the page, by the files that their first lines name."""
    for text in re.findall(r"^```\w+\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M):
        yield re.split(r"[:\s]", text.removeprefix("# "))[0], text


def _forget() -> None:
    commands_below.cache_clear()
    plugins.loaded.cache_clear()
    model_plugins.opened_once.cache_clear()
    for name in [
        each for each in sys.modules if each.startswith(("qmd_tiny", "qmd_broken", "qmd_ending"))
    ]:
        del sys.modules[name]


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "jazz.md").write_text("# Jazz\n\nThe quizzical jazz quartet.\n")
    (notes / "bread.md").write_text("# Bread\n\nFlour, water and a jazz record.\n")
    (notes / "sea.md").write_text("# Sea\n\nWaves and foam.\n")
    settings = Settings(
        plugins=("tiny", "divide", "administer"),
        model="plugin:letters",
        cache_dir=tmp_path / "cache",
        backends=BackendSettings(reranker="plugin:overlap"),
    )
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as opened:
        opened.add_collection(notes)
        opened.index()
        yield opened


def test_nothing_is_imported_before_a_plugin_is_named() -> None:
    rows = [(each.kind, each.name, each.state) for each in listed(()).plugins]
    assert ("models", "tiny", "off") in rows
    assert ("operations", "tiny", "off") in rows
    assert "qmd_tiny" not in sys.modules
    assert operations.of_plugins() == []


def test_the_listing_says_what_is_on_and_why_one_is_broken() -> None:
    names = ("tiny", "divide", *PROBLEMS)
    rows = listed(names).plugins
    on = {(each.kind, each.name): each.offers for each in rows if each.state == "on"}
    assert on[("operations", "tiny")] == ("count_words",)
    assert on[("models", "tiny")] == ("plugin:letters (embedding)", "plugin:overlap (reranking)")
    broken = {each.name: each.problem for each in rows if each.state == "broken"}
    assert broken.keys() == PROBLEMS.keys()
    for name, problem in PROBLEMS.items():
        assert problem in broken[name], name


def test_no_name_of_a_face_is_free_for_a_plugin() -> None:
    names = {each.name.split()[0] for each in commands.TABLE} | {*commands.ALIASES, "help"}
    for toolset in toolsets.TOOLSETS:
        names |= {each.name for each in toolsets.tools_of(toolset, alone=False)}
    names |= {each.operation.path.split("/")[1] for each in ENDPOINTS}
    free = {each.replace("-", "_").split()[0] for each in names} - operation_plugins.taken()
    assert free == {"writeImageMetadata"}  # no operation of a plugin has capital letters


def test_the_shell_lists_them_without_a_database(tmp_path: Path) -> None:
    asked = ["--db", str(tmp_path / "none.sqlite"), "plugins"]
    done = CliRunner().invoke(cli, asked, env={"QMD_PLUGINS": "tiny"})
    assert re.search(r"^on +operations +tiny +count_words$", done.output, re.M), done.output
    listing = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).output)
    assert {each["state"] for each in listing["plugins"]} == {"off"}


def test_a_model_embeds_and_reranks(kb: KnowledgeBase) -> None:
    assert kb.embed().embedded == 3
    assert kb.vsearch("quizzical jazz").hits[0].file == "notes/jazz.md"
    reply = kb.query("quizzical record of jazz", explain=True)
    assert reply.hits[0].file == "notes/jazz.md"
    assert not reply.degraded
    names = {each.name: (each.source, each.ready) for each in kb.models.list()}
    assert names["plugin:letters"] == names["plugin:overlap"] == ("plugin", True)


def test_a_model_that_is_off_or_broken_is_told(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.embed()
    plugins.turn_on(("gone", "wrong"))
    for name in ("plugin:letters", "plugin:wrong"):
        with pytest.raises(ModelMissingError) as caught:
            catalogue.open_embedder(name, cache_dir=tmp_path)
        assert caught.value.hint
    settings = BackendSettings(reranker="plugin:gone")
    with pytest.raises(ModelMissingError, match="AttributeError"):
        choice.open_reranker(settings, tmp_path)
    assert kb.query("jazz").hits  # by words alone
    assert kb.query("jazz").degraded


def test_an_operation_is_a_command_a_tool_and_an_endpoint(kb: KnowledgeBase) -> None:
    asked = ["--db", str(kb.path), "count-words", "jazz"]
    done = CliRunner().invoke(cli, asked, env={"QMD_PLUGINS": "tiny divide"})
    assert done.output == "notes/jazz.md has 6 words.\n"
    [tool] = [each for each in select(("qmd",)).tools if each.name == "count_words"]
    assert tool.read_only
    with rest_client(kb) as client:
        reply = client.get("/count_words", params={"file": "jazz"})
        assert (reply.json()["words"], reply.json()["content"]) == (6, "notes/jazz.md has 6 words.")
        assert client.get("/count_words").status_code == 400
        assert client.get("/divide").headers["Qmd-Error"] == "plugin_failed"
    assert "/count_words" in document()["paths"]


def test_a_client_with_a_scope_calls_what_is_open_to_scopes(kb: KnowledgeBase) -> None:
    token = kb.create_token("anna", read=["notes"]).token
    app = build_app(kb, security=Security(token="admin"))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        headers = {"Authorization": f"Bearer {token}"}
        counted = client.get("/count_words", params={"file": "jazz"}, headers=headers)
        refused = [client.get(path, headers=headers) for path in ("/administer", "/divide")]
    assert counted.is_success
    assert [each.status_code for each in refused] == [403, 403]


def test_what_an_operation_raises_names_the_plugin(kb: KnowledgeBase) -> None:
    plugins.turn_on(("divide", "leave", "reword"))
    found = {each.name: each for each in operations.of_plugins()}
    with pytest.raises(PluginError, match="The plugin divide failed: ZeroDivisionError"):
        found["divide"].run(kb)
    with pytest.raises(PluginError, match="The plugin leave failed: SystemExit"):
        found["leave"].run(kb)
    wording = found["reword"].text
    assert wording is not None
    with pytest.raises(PluginError, match="The plugin reword failed: ZeroDivisionError"):
        wording(Replied(found["reword"].run(kb), {}))


def test_a_language_model_cannot_write_what_nobody_is_asked_about(tmp_path: Path) -> None:
    settings = Settings(plugins=("reword",), confirm_writes=lambda change: True)
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as kb:
        [reword] = operations.of_plugins()
        with pytest.raises(WritesForbiddenError):
            reword.run(kb)
