"""Conversations that ChatGPT and Claude export, as notes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmd import KnowledgeBase
from qmd.errors import FileAccessError, InputError, InvalidPathError
from qmd.transfer import conversations
from qmd.values import Progress

PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file://x"}


def said(role: str, *parts: object, kind: str = "text", **metadata: object) -> dict[str, Any]:
    return {
        "author": {"role": role},
        "content": {"content_type": kind, "parts": list(parts)},
        "metadata": metadata,
    }


def chatgpt(number: str, title: str, *messages: dict[str, Any], updated: float) -> dict[str, Any]:
    nodes: dict[str, Any] = {"root": {"message": None, "parent": None}}
    last = "root"
    for place, message in enumerate(messages):
        nodes[str(place)] = {"message": message, "parent": last}
        last = str(place)
    nodes["other branch"] = {"message": said("user", "never seen"), "parent": "0"}
    return {
        "conversation_id": number, "title": title, "create_time": 1_764_000_000.5,
        "update_time": updated, "mapping": nodes, "current_node": last,
    }  # fmt: skip


BOATS = (
    said("system", "be kind"),
    said("user", "How do boats float?\nIn *short*: <b>why</b>?", PICTURE, kind="multimodal_text"),
    said("assistant", "thinking", kind="thoughts"),
    said("tool", "searched"),
    said(
        "assistant", "# Buoyancy\n\n![x](http://evil/x)\n\n```python\n# no heading\n```\nIt pushes."
    ),
)
CLAUDE = [
    {
        "uuid": "c-1",
        "name": "",
        "created_at": "2026-11-20T10:00:00.123456Z",
        "updated_at": "2026-11-20T11:00:00Z",
        "chat_messages": [
            {"sender": "human", "text": "旧",
             "content": [{"type": "text", "text": "船为什么会浮？"}],
             "attachments": [{"file_name": "notes.txt", "extracted_content": "x"}]},
            {"sender": "assistant", "text": "因为浮力。", "content": []},
        ],
    },
    {"uuid": "empty", "name": "Nothing", "chat_messages": []},
]  # fmt: skip


def archive(path: Path, items: object, name: str = "conversations.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("chat.html", "<html>")
        opened.writestr(name, json.dumps(items))
    return path


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "notes").mkdir()
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes")
        yield kb


def test_a_conversation_is_a_note_that_is_found(kb: KnowledgeBase, tmp_path: Path) -> None:
    export = archive(tmp_path / "a.zip", [chatgpt("11-aa", "Boats: why?", *BOATS, updated=1.8e9)])
    report = kb.import_conversations("chatgpt", export)
    assert (report.new, report.updated, report.folder) == (1, 0, "notes/conversations")
    [note] = (tmp_path / "notes/conversations/chatgpt").iterdir()
    assert note.name == "2025-11-24 Boats why 11-aa.md"
    assert note.read_text() == (
        '---\ntitle: "Boats: why?"\ndate: 2025-11-24T16:00:00Z\nupdated: 2027-01-15T08:00:00Z\n'
        'source: chatgpt\nconversation: "chatgpt:11-aa"\n---\n\n# Boats: why?\n\n'
        "## How do boats float?\n\n> How do boats float?\n> In *short*: \\<b>why\\</b>?\n\n"
        "- sent: a picture\n\n### Buoyancy\n\n\\![x](http://evil/x)\n\n"
        "```python\n# no heading\n```\nIt pushes.\n"
    )
    assert [hit.title for hit in kb.search("buoyancy").hits] == ["Boats: why?"]
    kb.undo.undo_last()
    assert not note.exists()


@pytest.mark.parametrize(
    ("title", "number", "name"),
    [
        ("AGENTS", "/", "AGENTS-1.md"),
        ("a", "x.prompt", "a x.prompt-1.md"),
        ("CLAUDE", "c-1", "CLAUDE-1 c-1.md"),
    ],
)
def test_no_conversation_is_called_as_files_that_steer_programs(
    title: str, number: str, name: str
) -> None:
    one = conversations.Conversation("claude", number, title, "", "", ())
    assert one.file_name == name


def test_a_later_export_updates_what_went_on_and_leaves_the_rest(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    old, boats = (
        chatgpt("1", "Old", *BOATS, updated=1.7e9),
        chatgpt("2", "B", *BOATS, updated=1.7e9),
    )
    kb.import_conversations("chatgpt", archive(tmp_path / "a.zip", [old, boats]))
    kb.move_note("B", "notes/kept/")
    kb.edit_note("Old", lambda text: text + "my own line\n")
    more = chatgpt("2", "B renamed", *BOATS, said("user", "And ice?"), updated=1.8e9)
    planned = kb.import_conversations(
        "chatgpt", archive(tmp_path / "b.zip", [old, more]), dry_run=True
    )
    report = kb.import_conversations("chatgpt", tmp_path / "b.zip")
    for each in (planned, report):
        assert (each.new, each.updated, each.unchanged) == (0, 1, 1)
    assert "my own line" in kb.get("Old").text
    [kept] = (tmp_path / "notes/kept").iterdir()
    assert "## And ice?" in kept.read_text()
    ticks: list[Progress] = []
    again = kb.import_conversations("chatgpt", tmp_path / "b.zip", progress=ticks.append)
    assert [(tick.stage, tick.done, tick.total) for tick in ticks] == [
        ("import", 1, None),
        ("import", 2, None),
    ]
    assert (again.unchanged, again.change) == (2, None)


MARKED = """- [preference] X (2026-01-01)
- [ ] a task
- TODO another
- part_of [[Old]]

key:: value, #tag, [a](Old.md) and <% tp.web %>

```dataviewjs
- [x] code
"""


def test_what_a_conversation_says_is_text(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "notes/Old.md").write_text("# Old\n")
    kb.index()
    files = [{"file_name": "[[Old]] #tag k:: v"}]
    messages = [
        {"sender": "human", "text": MARKED, "files": files},
        {"sender": "human", "text": "~~~ [[Old]] #tag"},
        {"sender": "assistant", "text": MARKED},
        {"sender": "assistant", "text": MARKED},
    ]
    for number, title in enumerate(("[[Old]]", "", "<% tp %> #tag k:: v")):
        item = {"uuid": f"c{number}", "name": title, "chat_messages": messages}
        kb.import_conversations("claude", archive(tmp_path / f"{number}.zip", [item]))
    assert kb.tags().tags == () and kb.tasks().tasks == ()
    assert kb.recall().facts == () and not kb.broken_links().links
    assert {each.key for each in kb.properties()} == {"title", "source", "conversation"}
    assert kb.backlinks("Old").total == 0
    texts = [each.read_text() for each in (tmp_path / "notes/conversations").rglob("*.md")]
    assert len(texts) == 3
    for text in texts:
        assert "<%" not in text and "```dataviewjs" not in text and "- [x] code" in text


def test_claude_and_files_in_parts(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps(CLAUDE), encoding="utf-8")
    report = kb.import_conversations("claude", tmp_path / "conversations.json", folder="notes/ai")
    assert report.new == 1
    [note] = (tmp_path / "notes/ai/claude").iterdir()
    assert note.name == "2026-11-20 船为什么会浮？ c-1.md"
    assert note.read_text(encoding="utf-8").endswith(
        "# 船为什么会浮？\n\n## 船为什么会浮？\n\n- sent: notes.txt\n\n因为浮力。\n"
    )
    path = archive(tmp_path / "p.zip", CLAUDE[:1], "data/conversations-000.json")
    assert len(list(conversations.conversations("claude", path))) == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1}', "nor a list"),
        (b'[{"a": 1}, {', "damaged behind conversation 1"),
        (b"[" * 100_000, "damaged"),
        (b"[1]", "no objects"),
        (b"PK\x03\x04", "nor a list"),
    ],
)
def test_what_is_no_export_is_refused(
    kb: KnowledgeBase, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match=reason):
        kb.import_conversations("claude", tmp_path / "x.json")
    with pytest.raises(InputError, match=r"no conversations\.json"):
        kb.import_conversations("claude", archive(tmp_path / "y.zip", [], "other.json"))
    with pytest.raises(FileAccessError):
        kb.import_conversations("claude", tmp_path / "gone.zip")
    with pytest.raises(InvalidPathError):
        kb.import_conversations("claude", tmp_path / "x.json", folder="../elsewhere")


def test_an_export_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "a.zip", [*CLAUDE, {}, *CLAUDE])
    whole = list(conversations.conversations("claude", path))
    monkeypatch.setattr(conversations, "_PIECE", 2)
    assert len(whole) == 2
    assert list(conversations.conversations("claude", path)) == whole
    monkeypatch.setattr(conversations, "MAX_ITEM", 100)
    with pytest.raises(InputError, match="a conversation has more than 100 characters"):
        list(conversations.conversations("claude", path))


def test_an_export_of_the_other_program_is_told(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", CLAUDE)
    with pytest.raises(InputError, match="of another program") as refused:
        list(conversations.conversations("chatgpt", path))
    assert refused.value.hint == f"qmd import claude {path}"


def test_strange_exports_are_read_as_far_as_they_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    circle = chatgpt("1", "C", said("user", "hi"), updated=-1e99)
    circle["mapping"]["0"]["parent"] = "0"
    strange = [
        circle,
        {"mapping": 3},
        {"uuid": 1},
        {"id": "x", "mapping": {"a": []}, "current_node": "a"},
    ]
    path = archive(tmp_path / "a.zip", strange)
    [only] = conversations.conversations("chatgpt", path)
    assert (only.updated, len(only.messages)) == ("", conversations.MAX_MESSAGES)
    monkeypatch.setattr(conversations, "MAX_BYTES", 100)
    with pytest.raises(InputError, match="more than 100 bytes"):
        list(conversations.conversations("chatgpt", path))


def test_a_session_of_claude_code_is_a_note_with_what_is_left_to_do(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    def line(role: str, content: object, **more: object) -> str:
        time = {"timestamp": "2026-11-20T10:00:00Z", "sessionId": "s-1", "type": role}
        return json.dumps({**time, "message": {"role": role, "content": content}, **more}) + "\n"

    def used(name: str, **sent: object) -> dict[str, Any]:
        return {"type": "tool_use", "name": name, "input": sent}

    todos = [
        {"content": "test it", "status": "pending"},
        {"content": "write it", "status": "completed"},
    ]
    transcript = tmp_path / "s-1.jsonl"
    transcript.write_text(
        line("user", "<command-name>/init</command-name>")
        + line("user", "Why does it fail?")
        + line("user", "not seen", isMeta=True)
        + line("assistant", [{"type": "text", "text": "I look."}, used("Read", file_path="/a")])
        + line("user", [{"type": "tool_result", "content": "x"}])
        + line("assistant", [used("Edit", file_path="/src/a.py"), used("TodoWrite", todos=todos)])
        + line("assistant", [{"type": "text", "text": "- [decision] Dates are UTC #time"}])
        + "{damaged"
    )
    assert kb.import_conversations("claude-code", transcript).new == 1
    [note] = (tmp_path / "notes/conversations/claude-code").iterdir()
    assert note.name == "2026-11-20 Why does it fail s-1.md"
    assert note.read_text().endswith(
        "# Why does it fail?\n\n## To do\n\n- [ ] test it\n\n## Changed\n\n- `/src/a.py`\n\n"
        "## Why does it fail?\n\n- \\[decision] Dates are UTC \\#time\n"
    )
    assert [task.text for task in kb.tasks().tasks] == ["test it"]
    assert kb.recall(category="decision").facts == ()
    assert kb.import_conversations("claude-code", transcript).unchanged == 1


def test_a_session_of_codex_is_a_note_with_what_is_left_to_do(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    def line(kind: str, **payload: object) -> str:
        time = "2026-11-20T10:00:00.123Z"
        return json.dumps({"timestamp": time, "type": kind, "payload": payload}) + "\n"

    def said(role: str, *texts: str) -> str:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text} for text in texts]
        return line("response_item", type="message", role=role, content=content)

    def called(name: str, **sent: object) -> str:
        arguments = json.dumps(sent)
        return line("response_item", type="function_call", name=name, arguments=arguments)

    patch = "*** Begin Patch\n*** Update File: src/a.py\n+x\n*** Add File: b.py\n*** End Patch"
    plan = [{"step": "test it", "status": "in_progress"}, {"step": "a", "status": "completed"}]
    rollout = tmp_path / "rollout-2026-11-20T10-00-00-s-1.jsonl"
    rollout.write_text(
        line("session_meta", id="s-1", cwd="/src")
        + line("session_meta", id="of the one before")
        + said("developer", "not seen")
        + said(
            "user",
            "# AGENTS.md instructions for /src",
            "<environment_context>x</environment_context>",
        )
        + said("user", "Why does it fail?")
        + line("event_msg", type="user_message", message="Why does it fail?")
        + said("assistant", "I look.")
        + called("shell", command=["apply_patch", patch])
        + called("update_plan", plan=plan)
        + called("shell_command", command="ls")
        + line("response_item", type="custom_tool_call", name="apply_patch", input=patch)
        + said("assistant", "- [decision] Dates are UTC #time")
        + "{damaged"
    )
    assert kb.import_conversations("codex", rollout).new == 1
    [note] = (tmp_path / "notes/conversations/codex").iterdir()
    assert note.name == "2026-11-20 Why does it fail s-1.md"
    assert note.read_text().endswith(
        "# Why does it fail?\n\n## To do\n\n- [ ] test it\n\n"
        "## Changed\n\n- `src/a.py`\n- `b.py`\n\n"
        "## Why does it fail?\n\n- \\[decision] Dates are UTC \\#time\n"
    )
    assert kb.import_conversations("codex", rollout).unchanged == 1
