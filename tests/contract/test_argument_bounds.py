"""No argument of any tool or endpoint may be endlessly long: a refusal says how long it may be."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError
from support.embedder import HashEmbedder
from support.mcp_client import with_client
from support.rest import rest_client
from support.vault import make_index

from qmd import Filters, KnowledgeBase, Settings
from qmd.errors import InputError, ProtocolError
from qmd.ingest.new_collection import MAX_CONTEXT, MAX_GLOB, MAX_IGNORE
from qmd.operations import texts
from qmd.operations.bounds import MAX_ARGUMENTS, MAX_PATH, excesses
from qmd.operations.replies import TextBlock
from qmd.server.endpoints import ENDPOINTS
from qmd.server.endpoints.definition import RestEndpoint
from qmd.server.mcp import McpFace
from qmd.tools.arguments import input_schema
from qmd.tools.definition import Tool
from qmd.tools.toolsets import select
from qmd.values.search import MAX_QUERY, MAX_TAGS

#: As much as fits into one request, where the tool says no earlier.
CONTENT = {"content", "texts"}
FAR_TOO_LONG = "x" * 300_000
TOOLS = {tool.name: tool for tool in select().tools}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    database = make_index(tmp_path_factory.mktemp("bounds"))
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(kb: KnowledgeBase) -> Iterator[httpx.Client]:
    with rest_client(kb) as opened:
        yield opened


def least(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are right so far: each required one in its shortest form."""
    shortest = {"string": "x", "array": ["x"], "object": {}, "integer": 1, "number": 0}
    shortest["boolean"] = False
    return {
        name: shortest[schema["properties"][name]["type"]] for name in schema.get("required", ())
    }


def too_long(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each text and list of a schema, far too long."""
    for name, each in schema["properties"].items():
        if name in CONTENT:
            continue
        if each.get("type") == "string" and "enum" not in each:
            yield name, FAR_TOO_LONG
        elif each.get("type") == "array":
            yield name, ["x"] * 50_000
            yield name, [FAR_TOO_LONG]


TOOL_CASES = [
    pytest.param(tool, name, value, id=f"{tool.name}-{name}-{type(value).__name__}-{len(value)}")
    for tool in TOOLS.values()
    for name, value in too_long(tool.input_schema())
]
ENDPOINT_CASES = [
    pytest.param(endpoint, name, value, id=f"{endpoint.operation.name}-{name}-{len(value)}")
    for endpoint in ENDPOINTS
    if endpoint.body is not None
    for name, value in too_long(input_schema(endpoint.body, camel_case=False))
]


def refusal(kb: KnowledgeBase, tool: Tool[Any], arguments: Mapping[str, Any]) -> str:
    try:
        reply = tool.call(kb, arguments, texts.MCP)
    except ProtocolError as error:
        assert error.number == -32602
        return str(error)
    assert reply.is_error
    assert isinstance(reply.blocks[0], TextBlock)
    return reply.blocks[0].text


@pytest.mark.parametrize(("tool", "name", "value"), TOOL_CASES)
def test_every_text_and_list_of_a_tool_has_a_bound(
    kb: KnowledgeBase, tool: Tool[Any], name: str, value: Any
) -> None:
    said = refusal(kb, tool, {**least(tool.input_schema()), name: value})
    (bound,) = excesses({name: value})
    assert name in said
    assert f"{bound.most:,}" in said
    assert len(said) < 500


@pytest.mark.parametrize(("endpoint", "name", "value"), ENDPOINT_CASES)
@pytest.mark.unmeasured
def test_every_text_and_list_of_an_endpoint_has_a_bound(
    client: httpx.Client, endpoint: RestEndpoint, name: str, value: Any
) -> None:
    assert endpoint.body is not None
    body = {**least(input_schema(endpoint.body, camel_case=False)), name: value}
    response = client.request(
        endpoint.operation.method, endpoint.operation.path.replace("{name}", "notes"), json=body
    )
    assert response.status_code == 400
    (bound,) = excesses({name: value})
    assert f"{name} may have {bound.most:,} {bound.unit} at most" in response.json()["detail"]


def integers(schema: Mapping[str, Any]) -> list[str]:
    return [name for name, each in schema["properties"].items() if each.get("type") == "integer"]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_number_of_a_tool_has_few_digits(kb: KnowledgeBase, tool: Tool[Any]) -> None:
    for name in integers(tool.input_schema()):
        for number in (10**20, -(10**4000)):
            said = refusal(kb, tool, {**least(tool.input_schema()), name: number})
            assert (name in said, "9,007,199,254,740,991" in said) == (True, True)
            assert len(said) < 500


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.operation.name)
def test_a_number_of_an_endpoint_has_few_digits(
    client: httpx.Client, endpoint: RestEndpoint
) -> None:
    path = endpoint.operation.path.replace("{name}", "notes")
    if endpoint.body is not None:
        schema = input_schema(endpoint.body, camel_case=False)
        for name in integers(schema):
            for digits in (20, 4_000, 5_000):  # Python reads 4,300
                body = json.dumps({**least(schema), name: "number"})
                body = body.replace('"number"', "9" * digits)
                headers = {"content-type": "application/json"}
                response = client.request(
                    endpoint.operation.method, path, content=body, headers=headers
                )
                assert response.status_code == 400, (name, digits)
    for name in integers(input_schema(endpoint.query, camel_case=False)):
        response = client.request(endpoint.operation.method, path, params={name: "9" * 5_000})
        assert response.status_code == 400, name


def test_a_name_may_end_with_any_number(kb: KnowledgeBase, client: httpx.Client) -> None:
    for name in ("plan.md:" + "9" * 5_000, "plan.md:1:" + "9" * 5_000, "9" * 5_000):
        assert client.post("/get", json={"file": name}).status_code == 404
        assert refusal(kb, TOOLS["multi_get"], {"pattern": name}).startswith("No files matched")


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_call_has_a_hundred_arguments_at_most(kb: KnowledgeBase, tool: Tool[Any]) -> None:
    said = refusal(kb, tool, {f"argument{number}": 1 for number in range(10_000)})
    assert f"{MAX_ARGUMENTS}" in said
    assert len(said) < 300


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_the_name_of_an_argument_is_shown_in_part_if_it_is_long(
    kb: KnowledgeBase, tool: Tool[Any]
) -> None:
    assert len(refusal(kb, tool, {"q" * 10_000: 1})) < 500


def test_the_name_of_an_argument_may_have_any_length(kb: KnowledgeBase) -> None:
    began = time.process_time()
    refusal(kb, TOOLS["multi_get"], {"q" * 10_000_000: 1})
    assert time.process_time() - began < 0.5  # looking for one like it took twice as long


def test_the_name_of_a_tool_is_shown_in_part_if_it_is_long(kb: KnowledgeBase) -> None:
    async def use(client: Client) -> int:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("q" * 1_000_000, {})
        return len(str(caught.value))

    assert with_client(McpFace(kb).server, use) < 500


def test_a_photo_has_no_more_fields_than_there_are(kb: KnowledgeBase) -> None:
    metadata = {f"field{number}": "x" for number in range(200_000)}
    with pytest.raises(ProtocolError) as caught:
        TOOLS["writeImageMetadata"].call(
            kb, {"filePath": "/tmp/x.jpg", "metadata": metadata}, texts.MCP
        )
    assert caught.value.number == -32007
    assert len(json.dumps(caught.value.data)) < 500


@pytest.mark.unmeasured
def test_what_is_within_the_bounds_passes(client: httpx.Client) -> None:
    body = {"query": "x " * (MAX_QUERY // 2), "tags": [f"t{n}" for n in range(MAX_TAGS)]}
    assert client.post("/search", json=body).status_code == 200
    assert client.post("/get", json={"file": "x" * MAX_PATH}).status_code == 404
    assert client.post("/multi_get", json={"pattern": "x," * 100_000}).status_code == 400
    text = "x" * MAX_CONTEXT
    assert client.post("/contexts/add", json={"path": "notes/y", "text": text}).status_code == 200


@pytest.mark.parametrize(
    ("name", "most"),
    [
        pytest.param(name, each["maxItems"], id=f"{endpoint.operation.name}-{name}")
        for endpoint in ENDPOINTS
        if endpoint.body is not None
        for name, each in endpoint.body.model_json_schema(by_alias=False)["properties"].items()
        if "maxItems" in each
    ],
)
def test_a_list_may_have_as_many_items_as_its_model_says(name: str, most: int) -> None:
    assert excesses({name: ["x"] * most}) == []


def test_the_address_has_bounds_too(client: httpx.Client) -> None:
    for method, path in (
        ("GET", "/collections/"),
        ("DELETE", "/contexts/"),
        ("GET", "/documents?prefix="),
    ):
        response = client.request(method, path + "a" * 40_000)
        assert response.status_code in (400, 404)
        assert len(response.json()["detail"]) < 300


def test_the_engine_has_the_same_bounds_for_every_face(kb: KnowledgeBase, tmp_path: Path) -> None:
    for search in (kb.search, kb.vsearch, kb.query):
        with pytest.raises(InputError, match="120,001 characters"):
            search("x" * (MAX_QUERY + 1))
        with pytest.raises(InputError, match="50,000 tags"):
            search("x", filters=Filters(tags=("t",) * 50_000))
    with pytest.raises(InputError, match="10,001 characters"):
        kb.add_context("/", "x" * (MAX_CONTEXT + 1))
    for ignore in (["x"] * (MAX_IGNORE + 1), ["x" * (MAX_GLOB + 1)]):
        with pytest.raises(InputError, match="ignore options"):
            kb.add_collection(tmp_path, name="many", ignore=ignore)
    with pytest.raises(InputError, match="4,096 characters"):
        kb.add_collection(tmp_path, name="many", mask="x" * (MAX_GLOB + 1))


def test_an_explanation_does_not_repeat_a_pasted_text_with_each_hit(kb: KnowledgeBase) -> None:
    reply = kb.search("数据库" * 30_000, explain=True)
    assert reply.hits
    for hit in reply.hits:
        assert len(json.dumps(hit.explain)) < 20_000


# --- paths -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", " ", ".", "..", "./x", "notes", "docs/more", "\t", "\0"])
def test_a_collection_is_added_by_an_absolute_path_only(
    client: httpx.Client,
    kb: KnowledgeBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    (tmp_path / "docs" / "more").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    response = client.post("/collections/add", json={"name": "here", "path": path})
    assert response.status_code == 400
    assert "absolute path" in response.json()["detail"]
    assert [each.name for each in kb.collections()] == ["notes"]


def test_a_context_is_never_looked_for_in_the_servers_working_directory(
    client: httpx.Client, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Path(kb.collection("notes").path)
    (notes / "notes").mkdir(exist_ok=True)
    monkeypatch.chdir(notes)  # where "2025" and "notes" are folders
    for path in ("", " ", ".", "2025", "./2025", "2025/plan.md"):
        response = client.post("/contexts/add", json={"path": path, "text": "x"})
        assert response.status_code == 400
        assert "absolute path" in response.json()["detail"]
    reply = client.post("/contexts/add", json={"path": "notes/2025", "text": "x"}).json()
    assert reply["path"] == f"{notes}/2025"
    assert client.delete("/contexts/notes/2025").json()["path"] == f"{notes}/2025"
