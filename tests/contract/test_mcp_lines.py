"""The stdio transport's lines: any bytes are either a message or a refusal, never a crash."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from qmd.server.stdio import RefusedLineError, decode, encode, read_lines


def lines_of(data: bytes, tmp_path: Path, limit: int = 1 << 20) -> list[bytes | None]:
    file = tmp_path / "wire"
    file.write_bytes(data)
    fd = os.open(file, os.O_RDONLY)
    try:
        return list(read_lines(fd, limit=limit))
    finally:
        os.close(fd)


def refused(line: bytes) -> tuple[int, str | int | None]:
    with pytest.raises(RefusedLineError) as caught:
        decode(line)
    answer = caught.value.answer
    return answer.error.code, answer.id


def test_blank_lines_are_skipped_and_the_last_needs_no_newline(tmp_path: Path) -> None:
    assert lines_of(b"a\n\n \r\nb\r\nc", tmp_path) == [b"a", b"b\r", b"c"]


def test_a_line_longer_than_one_read_arrives_whole(tmp_path: Path) -> None:
    long = b"x" * 300_000
    assert lines_of(long + b"\ny\n", tmp_path) == [long, b"y"]


@pytest.mark.parametrize("size", [101, 70_000, 200_000])
def test_a_line_over_the_limit_is_reported_and_the_next_one_is_read(
    size: int, tmp_path: Path
) -> None:
    assert lines_of(b"x" * size + b"\nnext\n", tmp_path, limit=100) == [None, b"next"]


@pytest.mark.parametrize("size", [101, 70_000, 200_000])
def test_a_line_over_the_limit_is_reported_also_if_the_input_ends_in_it(
    size: int, tmp_path: Path
) -> None:
    assert lines_of(b"first\n" + b"x" * size, tmp_path, limit=100) == [b"first", None]


def test_lines_arrive_before_the_input_ends() -> None:
    read_fd, write_fd = os.pipe()
    lines = read_lines(read_fd)
    os.write(write_fd, b"first\nsec")
    assert next(lines) == b"first"
    writer = threading.Thread(target=lambda: (os.write(write_fd, b"ond\n"), os.close(write_fd)))
    writer.start()
    assert list(lines) == [b"second"]
    writer.join()
    os.close(read_fd)


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"nonsense", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x"', -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b"5", -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"x"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":"a","method":5}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":{"q":"\\ud800"}}', -32600, 3),
    ],
)
def test_what_is_no_message_is_refused_with_the_right_code(
    line: bytes, code: int, request_id: str | int | None
) -> None:
    assert refused(line) == (code, request_id)


def call(name: str, argument: str) -> bytes:
    return (
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "%s",'
        b' "arguments": {"query": "%s"}}}' % (name.encode(), argument.encode())
    )


@pytest.mark.parametrize("name", ["search", "vsearch", "query", "search_posts"])
def test_half_of_a_surrogate_pair_is_a_question(name: str) -> None:
    message = decode(call(name, r"\ud83d boat \udc00 \ud83d\ude42 \\ud800"))
    assert isinstance(message, JSONRPCRequest)
    assert message.params is not None
    assert message.params["arguments"] == {"query": "\ufffd boat \ufffd 🙂 \\ud800"}


@pytest.mark.parametrize("line", [call("create_note", r"\ud83d"), call("search", r"\ud83d") + b"}"])
def test_half_of_a_surrogate_pair_is_nothing_to_store(line: bytes) -> None:
    assert refused(line)[0] in (-32600, -32700)


def test_a_request_is_decoded() -> None:
    message = decode('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"q":"中文"}}'.encode())
    assert isinstance(message, JSONRPCRequest)
    assert message.params == {"q": "中文"}


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_refusal(line: bytes) -> None:
    try:
        message: JSONRPCMessage = decode(line)
    except RefusedLineError as error:
        message = error.answer
    assert encode(message).endswith(b"\n")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_is_sent_on_one_line(text: str) -> None:
    message = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": text})
    encoded = encode(message)
    assert encoded.count(b"\n") == 1
    assert encoded.endswith(b"\n")


def test_chinese_is_sent_as_it_is() -> None:
    message = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "中"})
    assert "中".encode() in encode(message)
