"""writeImageMetadata over MCP: its schema, its result and its errors of JSON-RPC, to the letter."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, TextContent
from support.golden import assert_golden
from support.mcp_client import RawClient, qmd_mcp, with_client
from support.photos import listed, make, tags

from qmd import KnowledgeBase, Settings
from qmd.server.mcp import McpFace
from qmd.tools.toolsets import select

TOOL = "writeImageMetadata"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "photos"
    directory.mkdir()
    return directory


@pytest.fixture
def face(tmp_path: Path, root: Path) -> Iterator[McpFace]:
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(write_roots=[root]), create=True
    ) as kb:
        kb.add_collection(root, mask="**/*.{md,jpg,jpeg,png,heic}")
        yield McpFace(kb, select(["images"]))


def call(face: McpFace, **arguments: Any) -> CallToolResult:
    async def use(client: Client) -> CallToolResult:
        await client.list_tools()  # so that the client checks results against the schema
        return await client.call_tool(TOOL, arguments)

    return with_client(face.server, use)


def refusal(face: McpFace, **arguments: Any) -> tuple[int, str, Any]:
    with pytest.raises(MCPError) as caught:
        call(face, **arguments)
    error = caught.value.error
    return error.code, error.message, error.data


def test_the_server_and_its_tool_are_those_of_the_source(face: McpFace) -> None:
    async def use(client: Client) -> tuple[str, Any]:
        return client.server_info.name, (await client.list_tools()).tools

    name, (tool,) = with_client(face.server, use)
    assert (name, tool.name, tool.title) == ("MetaTag Genie", TOOL, None)
    (defined,) = select(["images"]).tools
    assert_golden("images_arguments.json", defined.input_schema())
    assert tool.input_schema == defined.input_schema()
    assert tool.description == (
        "将结构化的元数据（标签、描述、人物名称、地点文本）写入指定的本地图片文件。"
        "该 Tool 支持 JPG, PNG, 和 HEIC 格式。它会尝试保留图片中未明确修改的现有元数据。"
    )
    hints = tool.annotations
    assert (hints.read_only_hint, hints.destructive_hint) == (False, True)


@pytest.mark.parametrize(("suffix", "kind"), [("jpg", "JPG"), ("png", "PNG"), ("heic", "HEIC")])
def test_a_success_is_the_sources_object_and_nothing_more(
    face: McpFace, root: Path, suffix: str, kind: str
) -> None:
    photo = make(root / f"a.{suffix}")
    result = call(face, filePath=str(photo), metadata={"tags": ["家庭"], "people": ["张三"]})
    expected = {
        "success": True,
        "filePath": str(photo),
        "message": f"元数据已成功写入{kind}图片。",
    }
    assert result.structured_content == expected
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert json.loads(block.text) == expected
    assert listed(tags(photo)["XMP-dc:Subject"]) == ["家庭", "张三"]


def test_null_counts_as_absent(face: McpFace, root: Path) -> None:
    photo = make(root / "a.jpg")
    empty = {"tags": None, "people": None, "description": None, "location": None}
    before = photo.read_bytes()
    for metadata in ({}, empty):
        result = call(face, filePath=str(photo), metadata=metadata, overwrite=None)
        assert result.structured_content is not None
        assert result.structured_content["message"] == "元数据已成功写入JPG图片。"
    assert photo.read_bytes() == before
    call(face, filePath=str(photo), metadata={**empty, "description": "新"})
    assert tags(photo)["XMP-dc:Description"] == "新"


def test_the_message_says_which_texts_stayed(face: McpFace, root: Path) -> None:
    photo = make(root / "a.jpg")
    metadata = {"description": "一", "location": "二"}
    call(face, filePath=str(photo), metadata=metadata)
    metadata = {"description": "三", "location": "四", "tags": ["x"]}
    result = call(face, filePath=str(photo), metadata=metadata, overwrite=False)
    assert result.structured_content is not None
    message = "元数据已成功写入JPG图片。已有的描述和地点未改动。"
    assert result.structured_content["message"] == message


# --- errors --------------------------------------------------------------------------


def test_each_problem_has_its_code_message_and_path(face: McpFace, root: Path) -> None:
    (root / "note.txt").write_text("x")
    (root / "text.png").write_text("x")
    (root / "folder.jpg").mkdir()
    locked = make(root / "locked.jpg")
    locked.chmod(0o444)
    cut = make(root / "cut.jpg")
    cut.write_bytes(cut.read_bytes()[:-100])
    for name, number, message in (
        ("none.jpg", -32001, "文件未找到: {}"),
        ("folder.jpg", -32002, "文件不可读: {}"),
        ("locked.jpg", -32003, "文件不可写: {}"),
        ("note.txt", -32004, "不支持的文件格式: {}。仅支持 JPG, PNG, HEIC。"),
        ("text.png", -32004, "不支持的文件格式: {}。仅支持 JPG, PNG, HEIC。"),
        ("cut.jpg", -32005, "元数据写入失败: {}。原因: 文件不完整，图像数据在中途截断。"),
    ):
        path = str(root / name)
        found = refusal(face, filePath=path, metadata={"tags": ["x"]})
        assert found == (number, message.format(path), {"filePath": path})


def test_outside_the_write_roots_the_data_says_what_would_allow_it(
    face: McpFace, tmp_path: Path
) -> None:
    path = str(make(tmp_path / "outside.jpg"))
    number, message, data = refusal(face, filePath=path, metadata={"tags": ["x"]})
    assert (number, message) == (-32003, f"文件不可写: {path}")
    assert data["filePath"] == path
    assert "--write-root" in data["reason"]


def test_without_exiftool_the_reason_says_how_to_get_it(tmp_path: Path, root: Path) -> None:
    path = str(make(root / "a.jpg"))
    with KnowledgeBase.open(
        tmp_path / "x.sqlite", Settings(write_roots=[root], exiftool="/nowhere"), create=True
    ) as kb:
        face = McpFace(kb, select(["images"]))
        number, message, data = refusal(face, filePath=path, metadata={"tags": ["x"]})
    assert number == -32005
    assert message.startswith(f"元数据写入失败: {path}。原因: ")
    for word in ("apt-get", "brew", "winget", "QMD_EXIFTOOL"):
        assert word in message
    assert data == {"filePath": path}


@pytest.mark.parametrize(
    "metadata",
    [
        {"tag": ["x"]},
        {"tags": "x"},
        {"tags": ["x", 1]},
        {"tags": [None]},
        {"tags": [" "]},
        {"people": [""]},
        {"description": ["x"]},
        {"location": 5},
        {"tags": ["x"] * 51},
        {"description": "d" * 10_001},
        {"description": "\x00"},
        {"description": "\ud800"},
    ],
)
def test_bad_metadata_has_its_own_code_before_the_file_is_looked_at(
    face: McpFace, metadata: dict[str, Any]
) -> None:
    number, message, data = refusal(face, filePath="/none.jpg", metadata=metadata)
    assert (number, message) == (-32007, "提供的元数据结构无效。")
    assert data["filePath"] == "/none.jpg"
    assert data["reason"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "filePath is required"),
        ({"filePath": "/a.jpg"}, "metadata is required"),
        ({"metadata": {}}, "filePath is required"),
        ({"filePath": 5, "metadata": {}}, "filePath must be a string"),
        ({"filePath": "/a.jpg", "metadata": []}, "metadata must be an object"),
        ({"filePath": "/a.jpg", "metadata": None}, "metadata is required"),
        ({"filePath": "/a.jpg", "metadata": {}, "overwrite": "yes"}, "overwrite must be"),
        ({"filePath": "a.jpg", "metadata": {}}, "absolute"),
        ({"filePath": "", "metadata": {}}, "absolute"),
        ({"filePath": "~/a.jpg", "metadata": {}}, "absolute"),
        ({"filePath": "/a.jpg", "metaData": {}, "metadata": {}}, "did you mean metadata"),
        ({"filePath": "a.jpg", "metadata": {"bad": 1}}, "absolute"),
    ],
)
def test_wrong_arguments_are_invalid_params(
    face: McpFace, arguments: dict[str, Any], words: str
) -> None:
    number, message, _ = refusal(face, **arguments)
    assert number == -32602
    assert words in message


@pytest.mark.skipif(sys.platform == "win32", reason="names of POSIX")
def test_names_and_values_that_look_like_options_are_none(face: McpFace, root: Path) -> None:
    photo = make(root / "-o new\nline %f.jpg")
    values = ["-o", "=x", "<y", "@z", "#q", "a\n-o\n/tmp/evil.jpg", "$1", "%d", "海\r\n滩"]
    call(face, filePath=str(photo), metadata={"tags": values, "description": "-execute\n-@\n-"})
    assert listed(tags_of(photo)) == values
    assert [each.name for each in root.iterdir()] == [photo.name]


def tags_of(photo: Path) -> Any:
    plain = photo.rename(photo.with_name("plain.jpg"))
    found = tags(plain)["XMP-dc:Subject"]
    plain.rename(photo)
    return found


def test_on_the_wire_it_is_an_error_object(tmp_path: Path) -> None:
    """One process over stdio: the error, and the server goes on."""
    database = tmp_path / "kb.sqlite"
    KnowledgeBase.open(database, create=True).close()
    photo = make(tmp_path / "a.jpg")
    command = [*qmd_mcp(database), "--toolset", "images", "--no-watch"]
    command += ["--write-root", str(tmp_path)]
    with RawClient(command, tmp_path / "log") as client:
        client.handshake()
        missing = str(tmp_path / "none.jpg")
        for path, expected in ((missing, -32001), (str(photo), None)):
            arguments = {"filePath": path, "metadata": {"tags": ["海"]}}
            reply = client.call("tools/call", {"name": TOOL, "arguments": arguments})
            if expected is None:
                assert reply["result"]["structuredContent"]["success"] is True
            else:
                assert reply["error"] == {
                    "code": expected,
                    "message": f"文件未找到: {path}",
                    "data": {"filePath": path},
                }
                assert "result" not in reply


def test_a_read_only_server_does_not_offer_it() -> None:
    assert select(["images"], read_only=True).tools == ()
