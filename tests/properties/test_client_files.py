"""qmd is added to the configuration of a client, and taken out again, without a trace."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmd.clients import install
from qmd.clients import texts as jsonc
from qmd.clients import texts as toml_text
from qmd.clients.install import CLIENTS
from qmd.errors import InputError
from qmd.system.settings_file import toml_values

keys = st.sampled_from(["mcpServers", "qmd", "a", "b", "名", "a.b", 'c"d'])
blanks = st.sampled_from(["", " ", "\n", "\r\n", "\t", " // note\n", "/* {} */", "\n  ", "\n    "])
scalars = st.sampled_from(["1", "-2.5e3", "true", "null", '"x"', '"{\\"}"', '"\\u4e2d // 中"'])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    pairs = draw(st.lists(st.tuples(keys, inner), max_size=3, unique_by=lambda pair: pair[0]))
    members = [
        f"{draw(blanks)}{json.dumps(key)}{draw(blanks)}:{draw(blanks)}{value}{draw(blanks)}"
        for key, value in pairs
    ]
    end = draw(st.sampled_from(["", ","])) if members else draw(blanks)
    return "{" + ",".join(members) + end + "}"


values = st.recursive(
    scalars,
    lambda inner: (
        objects(inner) | st.lists(inner, max_size=2).map(lambda each: f"[{','.join(each)}]")
    ),
    max_leaves=6,
)
texts = st.tuples(blanks, objects(values), blanks).map("".join)
ENTRY = {"command": "/qmd", "args": ["mcp"]}
PATH = ("mcpServers", "qmd")


@given(texts)
@example('{"a": 1} // c')
@example('{\n  "a": 1 // c\n}')
@example('{"mcpServers": {"a": {}}}')
@example('{"mcpServers": { // c\n"qmd": 1}}')
@example('{\n\t"mcpServers": {\n\t\t"a": {},\n\t},\n}\n')
def test_an_entry_is_added_and_all_else_stays(text: str) -> None:
    before = jsonc.decoded(text)
    try:
        changed = jsonc.with_member(text, PATH, ENTRY)
    except ValueError:
        assert not isinstance(before.get("mcpServers", {}), dict)
        return
    servers = before.get("mcpServers", {})
    assert jsonc.decoded(changed) == {**before, "mcpServers": {**servers, "qmd": ENTRY}}
    if "qmd" not in servers:  # then nothing of the text goes
        signs = iter(changed)
        assert all(sign in signs for sign in text if not sign.isspace())
    removed = jsonc.without_member(changed, PATH)
    kept = {key: value for key, value in servers.items() if key != "qmd"}
    assert jsonc.decoded(removed) == {**before, "mcpServers": kept}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("{}\n", '{\n  "mcpServers": {\n    "qmd": 1\n  }\n}\n'),
        (
            '{\n    "a": 1 // one\n}\n',
            '{\n    "a": 1, // one\n    "mcpServers": {\n        "qmd": 1\n    }\n}\n',
        ),
        ('{"mcpServers": {"a": {}}}', '{"mcpServers": {"a": {}, "qmd": 1}}'),
        (
            '{\n\t"mcpServers": {\n\t\t"a": {},\n\t},\n}\n',
            '{\n\t"mcpServers": {\n\t\t"a": {},\n\t\t"qmd": 1\n\t},\n}\n',
        ),
        ('{"mcpServers": {"qmd": {"a": 0}, "b": {}}}', '{"mcpServers": {"qmd": 1, "b": {}}}'),
        ('{\r\n  "mcpServers": {}\r\n}', '{\r\n  "mcpServers": {\r\n    "qmd": 1\r\n  }\r\n}'),
    ],
)
def test_the_layout_is_that_of_the_file(text: str, changed: str) -> None:
    assert jsonc.with_member(text, PATH, 1) == changed


@given(st.text(st.sampled_from('{}[]",:/*\\ \n1at'), max_size=30))
def test_what_is_no_json_is_an_error(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        return
    assert jsonc.decoded(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', '{"a": 1} x', "[" * 500, "{'a': 1}", "/*"])
def test_broken_text_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match="line 1: "):
        jsonc.with_member(text, PATH, ENTRY)


@given(
    client=st.sampled_from(CLIENTS),
    text=st.none() | st.just("") | texts,
    tables=st.lists(
        st.sampled_from(["a = 1", "[b]\nc = 2 # two", "[mcp_servers.x]\ncommand = 'y'", ""])
    ),
)
def test_undo_gives_back_the_same_bytes(client: Any, text: str | None, tables: list[str]) -> None:
    if client.format == "toml" and text is not None:
        text = "\n".join(dict.fromkeys(sorted(tables, key=lambda table: table.startswith("["))))
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        file = client.file(home)
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            file.write_bytes(text.encode())
        entry = client.program_entry("/opt/qmd", ["--db", 'C:\\a "b"', "mcp"])
        try:
            change = install.plan(client, home, "qmd", entry)
        except InputError:
            assert text is not None
            assert file.read_bytes() == text.encode()
            return
        had_entry = install._entry(client, file, (text or "").encode(), "qmd") is not None
        install.make(change)
        assert install._entry(client, file, file.read_bytes(), "qmd") == entry
        undo = install.plan_undo(client, home, "qmd")
        install.make(undo)
        if not had_entry:
            after = file.read_bytes().decode() if file.exists() else None
            assert after == text


def test_a_table_of_toml_is_replaced_and_removed() -> None:
    text = (
        "model = 'x'\n\n[mcp_servers.qmd]\ncommand = 'old' # c\n"
        "[mcp_servers.qmd.env]\nA = '1'\n\n[z]\n"
    )
    changed = toml_text.with_table(text, ("mcp_servers", "qmd"), ENTRY)
    assert changed == (
        'model = \'x\'\n\n[mcp_servers.qmd]\ncommand = "/qmd"\nargs = ["mcp"]\n\n[z]\n'
    )
    assert toml_text.without_table(changed, ("mcp_servers", "qmd")) == "model = 'x'\n\n[z]\n"
    with pytest.raises(ValueError, match="not changed here"):
        toml_text.with_table("mcp_servers = { qmd = { a = 1 } }\n", ("mcp_servers", "qmd"), ENTRY)


def test_comments_and_blank_lines_before_the_next_table_stay() -> None:
    before, after = "a = 1\n\n", "\n# about y\n[mcp_servers.y]\ncommand = 'y'\n"
    path = ("mcp_servers", "qmd")
    changed = toml_text.with_table(f"{before}[mcp_servers.qmd]\nb = 1\n{after}", path, ENTRY)
    assert changed == f'{before}[mcp_servers.qmd]\ncommand = "/qmd"\nargs = ["mcp"]\n{after}'
    assert toml_text.without_table(changed, path) == before + after.removeprefix("\n")


def test_a_byte_order_mark_and_odd_names_are_no_obstacle_in_toml() -> None:
    changed = toml_text.with_table("\ufeffa = 1\r\n", ("mcp_servers", 'my "notes"'), {"b": 2})
    assert changed == '\ufeffa = 1\r\n\r\n[mcp_servers."my \\"notes\\""]\r\nb = 2\r\n'
    assert toml_values(changed)["mcp_servers"]['my "notes"'] == {"b": 2}


@pytest.mark.parametrize(
    "text", ["a=" + "[" * 50_000, "a=" + "{a=" * 50_000, "a" + ".a" * 500_000 + "=1"]
)
def test_a_text_that_is_nested_too_deeply_is_an_error_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="too"):
        toml_text.with_table(text, PATH, ENTRY)


def patched(lines: list[str], diff: list[str]) -> list[str]:
    """The lines after the change that a unified diff describes."""
    result, at = list[str](), 0
    for line in diff[2:]:
        if line.startswith("@@"):
            start, _, count = line.split()[1].removeprefix("-").partition(",")
            begin = int(start) - (count != "0")
            result += lines[at:begin]
            at = begin
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert lines[at] == line[1:]
            result += lines[at : at + 1] * line.startswith(" ")
            at += 1
    return result + lines[at:]


@given(texts, texts, st.integers(0, 9), st.integers(0, 9))
def test_a_diff_leads_from_one_text_to_the_other(
    old: str, new: str, before: int, after: int
) -> None:
    old, new = ("a\n" * before + text + "\nb" * after for text in (old, new))
    change = install.SettingsChange(Path("f"), old.encode(), new.encode())
    assert patched(old.splitlines(), change.diff()) == new.splitlines()


def test_a_diff_of_a_long_file_with_equal_lines_is_quick() -> None:
    lines = [f'"k{n % 101}": 1' for n in range(200_000)]
    change = install.SettingsChange(
        Path("f"),
        "\n".join(lines).encode(),
        "\n".join([*lines[:100_000], "new", *lines[100_000:]]).encode(),
    )
    before = time.process_time()
    diff = change.diff()
    assert diff[2:] == ["@@ -99998,6 +99998,7 @@", *diff[3:6], "+new", *diff[7:]]
    assert time.process_time() - before < 5
