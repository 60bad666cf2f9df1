"""
The correctness properties of the notes tools, as their specification numbers and names them.

Each is asked of the tools themselves, as a client calls them; 12 to 14 and 16 are the
agent's.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from support.mcp_client import with_client

from qmd import KnowledgeBase, Settings
from qmd.files.vault import ILLEGAL, note_path
from qmd.operations.texts import MCP
from qmd.server.mcp import McpFace
from qmd.tools.definition import Tool
from qmd.tools.toolsets import ToolSelection, tools_of

TOOLS = tools_of("notes", alone=True)

TOOL: dict[str, Tool[Any]] = {tool.name: tool for tool in TOOLS}

for_all = settings(deadline=None, max_examples=40)

contents = st.text(max_size=300)
# No control characters, marks of direction and separators of lines: tools show them escaped.
UNSAFE = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
names = (
    st.text(
        st.characters(exclude_characters=f"/{ILLEGAL}{UNSAFE}", exclude_categories=["Cs", "Cc"]),
        min_size=1,
        max_size=20,
    )
    .map(str.strip)
    .filter(lambda name: name not in ("", ".", ".."))
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
folders = st.dictionaries(names, st.booleans(), max_size=8)  # name → whether it is a folder
json_values = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats()
    | st.text()
    | st.lists(st.text())
)


class Axon:
    """The tools on one vault, which `emptied` empties."""

    def __init__(self, directory: Path) -> None:
        self.vault = directory / "vault"
        self.kb = KnowledgeBase.open(
            directory / "index.sqlite", Settings(vault=self.vault), create=True
        )

    def emptied(self) -> Axon:
        if self.vault.exists():
            shutil.rmtree(self.vault)
        self.vault.mkdir()
        return self

    def put(self, path: str, content: str) -> None:
        """A file that someone else wrote."""
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())

    def call(self, tool: str, **params: object) -> dict[str, Any]:
        """The structured result; the text beside it must say the same."""
        reply = TOOL[tool].call(self.kb, params, MCP)
        result = dict(reply.structured or {})
        assert getattr(reply.blocks[0], "text", None) == result.get("data", result.get("error"))
        assert reply.is_error is not result["success"]
        return result

    def everything(self) -> dict[str, bytes | None]:
        """What is on the disk; a folder holds None."""
        return {
            str(path.relative_to(self.vault)): path.read_bytes() if path.is_file() else None
            for path in self.vault.rglob("*")
        }


@pytest.fixture(scope="module")
def axon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Axon]:
    made = Axon(tmp_path_factory.mktemp("axon"))
    yield made
    made.kb.close()


def with_suffix(path: str) -> str:
    return path if path.lower().endswith(".md") else f"{path}.md"


@for_all
@given(path=paths, content=contents)
@example(path="Daily/2025-01-15.md", content="\ufeff# BOM\r\n\r\nlone \r and NUL \0, no newline 🙂")
def test_property_1_read_note_round_trip(axon: Axon, path: str, content: str) -> None:
    """
    **Feature: axon-mcp, Property 1: Read note round-trip**
    **Validates: Requirements 1.1**
    """
    axon.emptied().put(with_suffix(path), content)
    assert axon.call("read_note", path=path) == {"success": True, "data": content}


@for_all
@given(path=paths.filter(lambda path: not path.lower().endswith(".md")), content=contents)
@example(path="a.txt", content="")
@example(path="note.", content="")
@example(path=".", content="")
def test_property_2_path_normalization_adds_md_extension(
    axon: Axon, path: str, content: str
) -> None:
    """
    **Feature: axon-mcp, Property 2: Path normalization adds .md extension**
    **Validates: Requirements 1.2**
    """
    assert note_path(path) == note_path(f"  /{path} ") == f"{path}.md"
    created = axon.emptied().call("create_note", path=path, content=content)
    is_hidden = any(part.startswith(".") for part in f"{path}.md".split("/"))
    assert bool(created.pop("problem", "")) is is_hidden
    assert created == {"success": True, "data": f"File created: {path}.md"}
    assert (axon.vault / f"{path}.md").read_bytes() == content.encode()
    assert axon.call("read_note", path=f"{path}.md") == axon.call("read_note", path=path)


@for_all
@given(there=st.lists(paths, max_size=4, unique_by=with_suffix), path=paths)
@example(there=["note1", "deep/note2"], path="note")
def test_property_3_non_existent_file_returns_error(
    axon: Axon, there: list[str], path: str
) -> None:
    """
    **Feature: axon-mcp, Property 3: Non-existent file returns error**
    **Validates: Requirements 1.4**
    """
    axon.emptied()
    wanted = with_suffix(path).casefold()
    for each in there:
        # Another note of the same name would be the one that is meant, and a suggestion here.
        assume(not f"/{with_suffix(each).casefold()}".endswith(f"/{wanted}"))
        assume(
            not any(other.startswith(f"{with_suffix(each)}/") for other in map(with_suffix, there))
        )
        axon.put(with_suffix(each), "")
    result = axon.call("read_note", path=path)
    assert result["success"] is False
    assert result["error"] == f"File not found: {with_suffix(path)}"
    assert "not found" in result["error"]


@for_all
@given(path=paths, content=contents)
@example(path="empty", content="")
def test_property_4_create_note_round_trip(axon: Axon, path: str, content: str) -> None:
    """
    **Feature: axon-mcp, Property 4: Create note round-trip**
    **Validates: Requirements 2.1**
    """
    assert axon.emptied().call("create_note", path=path, content=content)["success"] is True
    assert axon.call("read_note", path=path) == {"success": True, "data": content}


@for_all
@given(path=paths, initial=contents, new=contents)
def test_property_5_write_mode_behavior(axon: Axon, path: str, initial: str, new: str) -> None:
    """
    **Feature: axon-mcp, Property 5: Write mode behavior**
    **Validates: Requirements 2.2, 2.3**
    """
    axon.emptied().put(with_suffix(path), initial)
    appended = axon.call("create_note", path=path, content=new, mode="append")
    assert appended["data"] == f"Content appended to: {with_suffix(path)}"
    assert axon.call("read_note", path=path)["data"] == initial + new
    overwritten = axon.call("create_note", path=path, content=new, mode="overwrite")
    assert overwritten["data"] == f"File overwritten: {with_suffix(path)}"
    assert axon.call("read_note", path=path)["data"] == new


@for_all
@given(parents=st.lists(names, min_size=1, max_size=8), name=names)
def test_property_6_nested_folder_auto_creation(axon: Axon, parents: list[str], name: str) -> None:
    """
    **Feature: axon-mcp, Property 6: Nested folder auto-creation**
    **Validates: Requirements 2.4**
    """
    path = "/".join([*parents, name])
    assert axon.emptied().call("create_note", path=path, content="x")["success"] is True
    for depth in range(1, len(parents) + 1):
        assert axon.vault.joinpath(*parents[:depth]).is_dir()


@for_all
@given(path=paths, illegal=st.sampled_from(ILLEGAL), data=st.data())
def test_property_7_invalid_path_returns_error(
    axon: Axon, path: str, illegal: str, data: st.DataObject
) -> None:
    """
    **Feature: axon-mcp, Property 7: Invalid path returns error**
    **Validates: Requirements 2.5**
    """
    axon.emptied()
    place = data.draw(st.integers(0, len(path)))
    mode = data.draw(st.sampled_from(["overwrite", "append"]))
    bad = path[:place] + illegal + path[place:]
    result = axon.call("create_note", path=bad, content="x", mode=mode)
    message = 'Invalid path: contains illegal characters (<>:"|?*)'
    assert result == {"success": False, "error": message}
    assert axon.everything() == {}


@for_all
@given(folder=st.none() | paths, items=folders)
@example(folder=None, items={".hidden": False, ".obsidian": True, "image.png": False})
def test_property_8_list_folder_returns_all_contents(
    axon: Axon, folder: str | None, items: dict[str, bool]
) -> None:
    """
    **Feature: axon-mcp, Property 8: List folder returns all contents**
    **Validates: Requirements 3.1**
    """
    fill(axon.emptied().vault / (folder or ""), items)
    text = axon.call("list_folder", path=folder or "")["data"]
    assert text == axon.call("list_folder", path=f"/{folder or ''}/")["data"]
    assert sorted(line[2:] for line in lines(text)) == sorted(map(shown, items))


@for_all
@given(there=folders, path=paths)
@example(there={"a": True}, path="A")
def test_property_9_non_existent_folder_returns_error(
    axon: Axon, there: dict[str, bool], path: str
) -> None:
    """
    **Feature: axon-mcp, Property 9: Non-existent folder returns error**
    **Validates: Requirements 3.3**
    """
    fill(axon.emptied().vault, there)
    assume(path not in there)
    result = axon.call("list_folder", path=path)
    assert result == {"success": False, "error": f"Folder not found: {path}"}


@for_all
@given(items=folders)
def test_property_10_list_folder_includes_type_indicators(
    axon: Axon, items: dict[str, bool]
) -> None:
    """
    **Feature: axon-mcp, Property 10: List folder includes type indicators**
    **Validates: Requirements 3.4**
    """
    fill(axon.emptied().vault, items)
    found = lines(axon.call("list_folder", path="")["data"])
    expected = [f"📁 {shown(name)}" for name in sorted(items) if items[name]]
    expected += [f"📄 {shown(name)}" for name in sorted(items) if not items[name]]
    assert found == expected


@for_all
@given(tool=st.sampled_from(sorted(TOOL)), data=st.data())
def test_property_11_parameter_validation_rejects_invalid_params(
    axon: Axon, tool: str, data: st.DataObject
) -> None:
    """
    **Feature: axon-mcp, Property 11: Parameter validation rejects invalid params**
    **Validates: Requirements 4.5**
    """
    axon.emptied()
    schema = TOOL[tool].input_schema()
    good = {"path": "a", "content": "x", "mode": "append"}
    params: dict[str, Any] = {name: good[name] for name in schema["properties"]}
    wrong = data.draw(st.lists(st.sampled_from(sorted(params)), min_size=1, unique=True))
    expected = []
    for name in params:
        if name in wrong:
            params[name] = data.draw(json_values, label=name)
            assume(not (isinstance(params[name], str) and name != "mode"))
            assume(not (name == "mode" and params[name] in (None, "append", "overwrite")))
            if params[name] is None:
                expected.append(f"Missing required parameter: {name}")
            elif not isinstance(params[name], str):
                expected.append(f"Parameter '{name}' must be a string")
            else:
                expected.append("Parameter 'mode' must be one of: overwrite, append")
    if data.draw(st.booleans(), label="absent rather than null"):
        params = {name: value for name, value in params.items() if value is not None}
    result = axon.call(tool, **params, unknown=data.draw(json_values))
    assert result["success"] is False
    prefix, _, details = result["error"].partition("Invalid parameters: ")
    assert prefix == ""
    assert sorted(details.split("; ")) == sorted(expected)
    assert axon.everything() == {}


def test_property_11_every_definition_is_complete() -> None:
    """
    **Feature: axon-mcp, Property 11: Parameter validation rejects invalid params**
    What is validated is what the definition says: name, description, JSON Schema.
    """
    for tool in TOOLS:
        schema = tool.input_schema()
        assert tool.name and tool.description and schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(each["type"] == "string" for each in schema["properties"].values())
    assert [(tool.name, *tool.input_schema()["required"]) for tool in TOOLS] == [
        ("read_note", "path"),
        ("create_note", "path", "content"),
        ("list_folder", "path"),
    ]


@settings(deadline=None, max_examples=15)
@given(name=st.text(max_size=20).filter(lambda name: name not in TOOL))
@example(name="delete_note")
def test_property_15_undefined_tool_returns_error(axon: Axon, name: str) -> None:
    """
    **Feature: axon-mcp, Property 15: Undefined tool returns error**
    **Validates: Requirements 7.2**
    """

    async def use(client: Client) -> Any:
        return await client.call_tool(name, {})

    face = McpFace(axon.kb, ToolSelection("Axon", ("notes",), TOOLS))
    with pytest.raises(MCPError) as caught:
        with_client(face.server, use)
    assert caught.value.error.code == -32602
    assert caught.value.error.message.startswith(f"Unknown tool: {name}")


def fill(folder: Path, items: dict[str, bool]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, is_folder in items.items():
        if is_folder:
            (folder / name).mkdir()
        else:
            (folder / name).touch()


def lines(text: str) -> list[str]:
    return [] if text == "(empty folder)" else text.split("\n")


def shown(name: str) -> str:
    """A name that holds a line end must not look like two entries."""
    return name.replace("\r", "\\r").replace("\n", "\\n")
