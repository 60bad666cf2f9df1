"""What other programs install: the plugin, the bundle, the registry's entry and the image."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from support.cli import Scratch, installed_command
from support.http_server import WAIT_S, WITHOUT_MODEL

import qmd
from integrations import build
from qmd.tools.toolsets import select
from tests.support.warm import warm

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations/claude-code"
SKILL = PLUGIN / "skills/qmd-notes/SKILL.md"
DOCKER = ROOT / "integrations/docker"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


# -- the plugin of Claude Code


def test_the_marketplace_lists_the_plugin_by_its_name() -> None:
    (entry,) = load(ROOT / ".claude-plugin/marketplace.json")["plugins"]
    source = ROOT / entry["source"]
    assert source == PLUGIN
    assert load(source / ".claude-plugin/plugin.json")["name"] == entry["name"]
    assert "version" not in entry  # it would be a second place for it


def test_the_plugin_starts_a_command_that_exists() -> None:
    (server,) = load(PLUGIN / ".mcp.json")["mcpServers"].values()
    assert server["command"] == Path(installed_command()[0]).stem
    done = subprocess.run(
        [*installed_command(), *server["args"], "--help"], capture_output=True, check=False
    )
    assert done.returncode == 0


def skill() -> tuple[dict[str, Any], str]:
    """The frontmatter of the skill and its text."""
    _, front, text = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), text


def test_the_skill_has_the_name_of_its_folder_and_says_when_to_use_it() -> None:
    front, text = skill()
    assert front["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", front["name"])
    assert "Use it whenever" in front["description"]
    assert len(front["description"]) <= 1024
    assert len(text.splitlines()) < 500


def test_what_the_skill_names_exists() -> None:
    """Tools, arguments and actions in backquotes are those of the server."""
    tools = {tool.name: tool for tool in select().tools}
    schemas = [tool.input_schema()["properties"] for tool in tools.values()]
    arguments = {name for properties in schemas for name in properties}
    description = tools["edit_note"].input_schema()["properties"]["action"]["description"]
    actions = set(re.findall(r"\w+", description))
    fields = {"docid", "relevance", "score"}  # of a hit
    _, text = skill()
    names = set(re.findall(r"`([a-z]+(?:_[a-z]+|[A-Z][a-z]+)*)`", text)) - {"qmd"}
    assert {"search", "query", "vsearch", "get", "edit_note", "undo"} <= names
    assert names - set(tools) - arguments - actions - fields - {"PATH"} == set()


# -- the bundle and the entry of the MCP registry


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.build_bundle(tmp_path_factory.mktemp("bundle"))


def test_the_bundle_has_all_that_its_manifest_names(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("manifest.json"))
        project = tomllib.loads(archive.read("pyproject.toml").decode())
    assert bundle.name == f"qmd-{qmd.__version__}.mcpb"
    assert manifest["version"] == project["project"]["version"] == qmd.__version__
    assert manifest["server"]["entry_point"] in names
    assert project["tool"]["uv"]["sources"]["qmd-python"]["path"] in names
    assert {"search", "query", "get"} <= {tool["name"] for tool in manifest["tools"]}
    placeholders = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(manifest["server"])))
    assert placeholders == set(manifest["user_config"])
    for line in project["tool"]["uv"]["constraint-dependencies"]:
        Requirement(line)


def test_the_same_files_make_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    assert build.build_bundle(tmp_path).read_bytes() == bundle.read_bytes()


@pytest.mark.unmeasured
def test_the_bundle_makes_collections_of_the_folders(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, WITHOUT_MODEL)
    scratch.write("notes/plan.md", "# Plan\n")
    scratch.write("notes/sub/more.md", "# More\n")
    folders = [str(tmp_path / name) for name in ("notes", "notes/sub", "missing", "notes")]
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    done = subprocess.run(
        [sys.executable, ROOT / "integrations/mcpb/server.py", *folders],
        cwd=tmp_path,
        env=scratch.environment,
        input=json.dumps(message) + "\n",
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "qmd"
    assert "missing" in done.stderr
    assert "Traceback" not in done.stderr
    listed = json.loads(scratch.ok("status", "--json").out)["collections"]
    assert [Path(each["path"]).name for each in listed] == ["notes"]


def test_the_entry_of_the_registry_keeps_the_rules_of_its_schema(bundle: Path) -> None:
    """Those of the schema 2025-12-11, and of the registry for bundles."""
    entry = build.server_json("ada/notes", bundle)
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 1 <= len(entry["description"]) <= 100
    assert entry["version"] == qmd.__version__
    (package,) = entry["packages"]
    assert package["fileSha256"] == hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert package["identifier"] == (
        f"https://github.com/ada/notes/releases/download/v{qmd.__version__}/{bundle.name}"
    )
    assert "mcp" in package["identifier"]


@pytest.mark.parametrize("repository", ["ada", "ada/", "/notes", "a/b/c"])
def test_the_entry_needs_a_repository(repository: str, bundle: Path) -> None:
    with pytest.raises(SystemExit, match="OWNER/NAME"):
        build.server_json(repository, bundle)


# -- the image


def instructions() -> list[tuple[str, str]]:
    """(Name, rest) of each instruction of the Dockerfile."""
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = [line.partition(" ") for line in joined.splitlines() if line]
    return [(name, rest.strip()) for name, _, rest in pairs]


def last_stage() -> dict[str, str]:
    listed = instructions()
    start = max(index for index, (name, _) in enumerate(listed) if name == "FROM")
    return dict(listed[start:])


def test_the_image_runs_as_a_user_without_rights_and_keeps_its_data_in_data() -> None:
    stage = last_stage()
    user = stage["USER"].partition(":")[0]
    assert user.isdigit()
    assert user != "0"
    assert stage["VOLUME"] == "/data"
    assert "http://127.0.0.1:18765/health" in stage["HEALTHCHECK"]
    assert stage["EXPOSE"] == "18765"


def test_what_the_image_copies_is_not_ignored() -> None:
    lines = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert [name for name in kept if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = {*wheel["force-include"], "hatch_build.py"}
    needed = {"pyproject.toml", "qmd", *files, project["project"]["readme"], "LICENSE"}
    assert needed | {"constraints.txt"} == kept


def test_the_base_image_has_a_python_that_the_project_names() -> None:
    bases = {rest.partition(" ")[0] for name, rest in instructions() if name == "FROM"}
    (base,) = bases
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    python = base.removeprefix("python:").removesuffix("-slim")
    assert f'"Programming Language :: Python :: {python}"' in project


@pytest.mark.skipif(sys.platform == "win32", reason="the image is for Linux")
@pytest.mark.unmeasured
def test_the_command_of_the_image_serves_and_its_health_check_passes(
    tmp_path: Path, model_cache: Path
) -> None:
    """Both commands of the Dockerfile, run here with its variables below another folder."""
    scratch = Scratch(tmp_path)
    scratch.write("notes/plan.md", "# Plan\n\nBuy a boat.\n")

    def moved(text: str) -> str:
        return re.sub(r"(?<![\w/])/(data|notes)\b", rf"{tmp_path}/\1", text)

    stage = last_stage()
    variables = dict(pair.split("=", 1) for pair in shlex.split(moved(stage["ENV"])))
    environment = scratch.environment | variables
    environment |= {"QMD_TOKEN": "secret", "QMD_CACHE_DIR": str(model_cache)}
    command = [*installed_command(), *json.loads(moved(stage["CMD"])), "--port", "0"]
    assert json.loads(stage["ENTRYPOINT"]) == ["qmd"]
    with (tmp_path / "stderr").open("wb") as stderr:
        server = warm.popen(
            command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    try:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        port = next(
            match[1] for line in lines if (match := re.search(r"http://[\w.]+:(\d+)", line))
        )
        health = json.loads(stage["HEALTHCHECK"].partition("CMD ")[2])
        check = [sys.executable, *health[1:-1], health[-1].replace("18765", port)]
        subprocess.run(check, timeout=WAIT_S, check=True)
        assert any(line.startswith("Everything is searchable by words") for line in lines)
        assert (tmp_path / "data/qmd/index.sqlite").exists()
        listed = subprocess.run(
            [*installed_command(), "search", "boat", "--json"],
            env=environment,
            capture_output=True,
            timeout=WAIT_S,
            check=True,
        )
        assert json.loads(listed.stdout)[0]["file"] == "notes/plan.md"
    finally:
        server.terminate()
        server.communicate(timeout=WAIT_S)
    assert server.returncode == 0
    refused = subprocess.run(check, capture_output=True, timeout=WAIT_S, check=False)
    assert refused.returncode != 0
