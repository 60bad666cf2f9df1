"""The plugin of llm: tools and fragments, with a model that answers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packages.conftest import ROOT, Run, needs

pytestmark = needs("llm")

Llm = Callable[..., str]


@pytest.fixture
def llm(run: Run, tmp_path: Path) -> Llm:
    """The command, with an index of docs/example."""
    env = {"LLM_USER_PATH": str(tmp_path / "llm"), "QMD_DB": str(tmp_path / "index.sqlite")}
    run("qmd", "collection", "add", ROOT / "docs/example", env=env)

    def command(*arguments: str) -> str:
        return run("llm", *arguments, env=env)

    return command


def asked(reply: str) -> dict[str, Any]:
    """What the model was sent last: it answers with one JSON object for each prompt."""
    content: dict[str, Any] = {}
    while reply.strip():
        content, end = json.JSONDecoder().raw_decode(reply.lstrip())
        reply = reply.lstrip()[end:]
    return content


def test_llm_lists_the_tools_and_the_loader(llm: Llm) -> None:
    (plugin,) = (each for each in json.loads(llm("plugins")) if each["name"] == "qmd-python")
    assert plugin["hooks"] == ["register_fragment_loaders", "register_tools"]
    tools = llm("tools", "list")
    for name in ("QMD(", "qmd_search", "qmd_query", "qmd_get"):
        assert name in tools
    assert "qmd_edit_note" not in tools
    assert llm("fragments", "loaders").startswith("qmd:\n")


def test_a_model_calls_the_tools(llm: Llm) -> None:
    calls = [
        {"name": "qmd_search", "arguments": {"query": "parser"}},
        {"name": "qmd_get", "arguments": {"file": "example/release.md", "maxLines": 3}},
        {"name": "qmd_get", "arguments": {"file": "missing.md"}},
        {"name": "qmd_get", "arguments": {"no": "file"}},
    ]
    prompt = json.dumps({"tool_calls": calls, "prompt": "x"})
    reply = asked(llm("-m", "echo", "--no-stream", "-T", "QMD", prompt))
    outputs = [result["output"] for result in reply["tool_results"]]
    assert "example/release.md:7" in outputs[0]
    assert outputs[1].startswith("[example/release.md]\n---\n")
    assert outputs[2].startswith("Document not found: missing.md")
    assert "file" in outputs[3]


def test_other_toolsets_never_write(llm: Llm) -> None:
    calls = [{"name": "qmd_links", "arguments": {"file": "example/bread.md"}}]
    prompt = json.dumps({"tool_calls": calls, "prompt": "x"})
    box = 'QMD(toolsets="qmd,graph,edit")'
    reply = asked(llm("-m", "echo", "--no-stream", "-T", box, prompt))
    assert "release" in reply["tool_results"][0]["output"]
    prompt = json.dumps({"tool_calls": [{"name": "qmd_undo", "arguments": {}}], "prompt": "x"})
    reply = asked(llm("-m", "echo", "--no-stream", "-T", box, prompt))
    assert "does not exist" in reply["tool_results"][0]["output"]


@pytest.mark.parametrize(
    "argument", ["example/release.md", "release", "example/rel*", "when do we deploy the parser"]
)
def test_fragments_stand_before_the_prompt(llm: Llm, argument: str) -> None:
    prompt = asked(llm("-m", "echo", "--no-stream", "-f", f"qmd:{argument}", "hello"))["prompt"]
    assert prompt.startswith("[example/release.md]\n")
    assert prompt.endswith("hello")


def test_a_wrong_name_is_an_error(llm: Llm) -> None:
    with pytest.raises(AssertionError, match="Document not found"):
        llm("-m", "echo", "-f", "qmd:missing.md", "hello")
