"""Claude Code, the bundler of MCP and linters accept what is in integrations/ and .github/."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packages.conftest import ROOT, TIMEOUT_S, Run, needs

import qmd
from integrations import build

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
HELLO = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "status", "arguments": {}}},
]
MESSAGES = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in HELLO)


@needs("claude")
def test_claude_code_installs_the_plugin_and_its_server_connects(run: Run, home: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(home / ".claude")}
    run("claude", "plugin", "validate", "--strict", ROOT / "integrations/claude-code", env=env)
    run("claude", "plugin", "validate", ROOT, env=env)
    run("claude", "plugin", "marketplace", "add", ROOT, env=env)
    run("claude", "plugin", "install", "qmd@qmd", env=env)
    assert f"Version: {qmd.__version__}" in run("claude", "plugin", "list", env=env)
    assert "qmd-notes" in run("claude", "plugin", "details", "qmd", env=env)
    servers = run("claude", "mcp", "list", env=env)
    assert "qmd mcp" in servers
    assert "Connected" in servers


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.build_bundle(tmp_path_factory.mktemp("bundle"))


@needs("mcpb")
def test_the_bundler_accepts_the_bundle(bundle: Path, run: Run, tmp_path: Path) -> None:
    run("mcpb", "unpack", bundle, tmp_path / "unpacked")
    run("mcpb", "validate", tmp_path / "unpacked/manifest.json")
    run("mcpb", "pack", tmp_path / "unpacked", tmp_path / "again.mcpb")


@needs("check-jsonschema")
def test_the_entry_of_the_registry_fits_its_schema(bundle: Path, tmp_path: Path) -> None:
    entry = tmp_path / "server.json"
    entry.write_text(json.dumps(build.server_json("ada/notes", bundle)))
    done = subprocess.run(
        ["check-jsonschema", "--schemafile", build.SCHEMA, entry],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if "download" in done.stdout + done.stderr or "Connection" in done.stdout + done.stderr:
        pytest.skip("the schema cannot be downloaded here")
    assert done.returncode == 0, done.stdout + done.stderr


@needs("uv")
def test_a_client_starts_the_bundle(bundle: Path, run: Run, tmp_path: Path) -> None:
    """By the command of the manifest, with the folder that a person chose."""
    unpacked, notes = tmp_path / "unpacked", tmp_path / "notes"
    shutil.unpack_archive(bundle, unpacked, "zip")
    notes.mkdir()
    (notes / "plan.md").write_text("# Plan\n")
    config = json.loads((unpacked / "manifest.json").read_text())["server"]["mcp_config"]
    values = {"${__dirname}": str(unpacked), "${user_config.folders}": str(notes)}
    command = [config["command"], *(values.get(word, word) for word in config["args"])]
    replies = run(*command, env={"UV_PYTHON": sys.executable}, stdin=MESSAGES).splitlines()
    first, second = (json.loads(line) for line in replies)
    assert first["result"]["serverInfo"]["version"] == qmd.__version__
    assert str(notes) in second["result"]["content"][0]["text"]


@needs("hadolint")
def test_hadolint_accepts_the_dockerfile(run: Run) -> None:
    run("hadolint", ROOT / "integrations/docker/Dockerfile")


@needs("actionlint")
def test_actionlint_accepts_the_workflows(run: Run) -> None:
    run("actionlint", *WORKFLOWS)


@needs("check-jsonschema")
def test_the_workflows_fit_their_schema(run: Run) -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    dependabot = ROOT / ".github/dependabot.yml"
    run("check-jsonschema", "--builtin-schema", "vendor.dependabot", dependabot)


@needs("zizmor")
def test_nothing_in_the_workflows_is_unsafe(run: Run) -> None:
    run("zizmor", "--offline", "--persona", "pedantic", ROOT / ".github")
