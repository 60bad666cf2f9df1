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
from qmd.cli.main import cli
from qmd.cli.operations import commands_below
from qmd.errors import ModelMissingError, PluginError
from qmd.ingest import parse_workers
from qmd.models import backends, embedders
from qmd.models import plugins as model_plugins
from qmd.operations.plugins import listed
from qmd.parse import formats
from qmd.server.app import build_app
from qmd.server.openapi import document
from qmd.server.security import Security
from qmd.settings import BackendSettings
from qmd.system import plugins
from qmd.tools.toolsets import select
from tests.support.rest import rest_client

PAGE = Path(__file__).parents[2] / "docs/write-a-plugin.md"
BROKEN = '''
from dataclasses import dataclass
from qmd.models.plugins import PluginModel
from qmd.operations.definition import operation

@dataclass(frozen=True)
class Reply:
    text: str

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

GONE = PluginModel("gone", "reranking", "qmd_broken:missing")
WRONG = PluginModel("wrong", "embedding", "qmd_broken:Reply")
ROLE = PluginModel("role", "guessing", "qmd_broken:Reply")
'''


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of the page, and a broken one, as a package manager installs them."""
    site, blocks = tmp_path / "site", dict(_blocks())
    (site / "qmd_tiny").mkdir(parents=True)
    (site / "qmd_tiny/__init__.py").write_text(blocks["qmd_tiny/__init__.py"])
    (site / "qmd_tiny/models.py").write_text(blocks["qmd_tiny/models.py"])
    (site / "qmd_broken.py").write_text(BROKEN)
    points = blocks["pyproject.toml"].replace("project.entry-points.", "").replace('"', "")
    names = ("search", "unread", "divide", "administer")
    broken = "[qmd.operations]\n" + "".join(f"{name} = qmd_broken:{name}\n" for name in names)
    broken += "[qmd.models]\n"
    broken += "".join(f"{name} = qmd_broken:{name.upper()}\n" for name in ("gone", "wrong", "role"))
    for package, text in (("qmd_tiny", points), ("qmd_broken", broken)):
        about = site / f"{package}-0.1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
        (about / "entry_points.txt").write_text(text)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    _forget()
    yield
    parse_workers.workers.close()  # which have other paths
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
    for name in [each for each in sys.modules if each.startswith(("qmd_tiny", "qmd_broken"))]:
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
    rows = listed(("tiny", "search", "unread", "role", "gone", "absent")).plugins
    on = {(each.kind, each.name): each.offers for each in rows if each.state == "on"}
    assert on[("operations", "tiny")] == ("count_words",)
    assert on[("models", "tiny")] == ("plugin:letters (embedding)", "plugin:overlap (reranking)")
    broken = {each.name: each.problem for each in rows if each.state == "broken"}
    assert broken["search"] == "qmd has a command, a tool or an endpoint like that of search."
    assert "NameError" in broken["unread"]
    assert broken["role"] == "The model role neither embeds, reranks nor expands."
    assert broken["absent"] == "It is not installed."


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
            embedders.open_embedder(name, cache_dir=tmp_path)
        assert caught.value.hint
    settings = BackendSettings(reranker="plugin:gone")
    with pytest.raises(ModelMissingError, match="AttributeError"):
        backends.open_reranker(settings, tmp_path)
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


def test_an_operation_has_the_rights_of_its_client(kb: KnowledgeBase) -> None:
    token = kb.create_token("anna", read=["notes"]).token
    app = build_app(kb, security=Security(token="admin"))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get("/count_words", params={"file": "jazz"}, headers=headers).is_success
        refused = client.get("/administer", headers=headers)
    assert refused.status_code == 403


def test_what_an_operation_raises_names_the_plugin(kb: KnowledgeBase) -> None:
    [divide] = [each for each in operations.of_plugins() if each.name == "divide"]
    with pytest.raises(PluginError, match="The plugin divide failed: ZeroDivisionError"):
        divide.run(kb)
