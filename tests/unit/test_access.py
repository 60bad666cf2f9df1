"""Tokens of clients: what they open, where they write, when they end; and the audit log."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from starlette.testclient import TestClient

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    CollectionNotFoundError,
    ConflictError,
    InputError,
    NotFoundError,
    OutsideRootsError,
    QmdError,
)
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.server.app import build_app
from qmd.system.session import in_session
from qmd.values.wire import to_wire
from qmd.values.writing import NoteEdit
from tests.support.cli import Scratch
from tests.support.live import put

NOTES = {
    "work/plan.md": "# Plan\n\nThe rocket.\n",
    "inbox/in.md": "# In\n\nA letter.\n",
    "inbox/closed/own.md": "# Own\n\nclosedword\n",
    "inbox/.qmdignore": "closed/\n",
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    for name, text in NOTES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "index.sqlite", Settings(), create=True) as kb:
        kb.add_collection(tmp_path / "work")
        kb.add_collection(tmp_path / "inbox")
        kb.add_collection(tmp_path / "inbox" / "closed")
        kb.index()
        yield kb


@pytest.fixture
def token(kb: KnowledgeBase) -> str:
    return kb.create_token("anna", read=["work"], write=["inbox"]).token


@pytest.fixture
def part(kb: KnowledgeBase, token: str) -> ScopedKnowledgeBase:
    scope = kb.scope_of_token(token)
    assert scope is not None
    return ScopedKnowledgeBase(kb, scope)


def test_the_secret_has_a_prefix_and_256_bits_and_is_stored_nowhere(
    kb: KnowledgeBase, token: str
) -> None:
    assert token.startswith("qmd_")
    assert len(token) == len("qmd_") + 43  # 32 bytes in Base64
    kb.backup(kb.path.with_name("copy.sqlite"))
    data = kb.path.with_name("copy.sqlite").read_bytes()
    assert token.encode() not in data
    assert hashlib.sha256(token.encode()).hexdigest().encode() in data


def test_a_token_needs_a_name_a_collection_and_a_time_to_come(kb: KnowledgeBase) -> None:
    kb.create_token("anna", read=["work"])
    with pytest.raises(ConflictError):
        kb.create_token("anna", read=["work"])
    with pytest.raises(CollectionNotFoundError):
        kb.create_token("bob", read=["play"])
    for name, read, expires in [
        ("", ["work"], None),
        ("a b", ["work"], None),
        ("bob", [], None),
        ("bob", ["work"], "soon"),
        ("bob", ["work"], "2001-01-01"),
        ("bob", ["work"], "99999y"),
    ]:
        with pytest.raises(InputError):
            kb.create_token(name, read=read, expires=expires)
    assert [each.name for each in kb.tokens()] == ["anna"]


def test_a_use_is_recorded_by_its_day(kb: KnowledgeBase, token: str) -> None:
    assert kb.tokens()[0].last_used is None
    assert kb.scope_of_token(token) is not None
    kb.create_token("bob", read=["work"])  # waits for the writes before it
    day = kb.tokens()[0].last_used
    assert day is not None
    assert len(day) == len("2025-12-31")


def test_a_token_is_refused_at_once_when_it_is_revoked(kb: KnowledgeBase, token: str) -> None:
    with TestClient(build_app(kb), base_url="http://localhost") as client:
        client.headers["authorization"] = f"Bearer {token}"
        assert client.get("/collections").status_code == 200
        kb.revoke_token("anna")
        assert client.get("/collections").status_code == 401
    with pytest.raises(NotFoundError):
        kb.revoke_token("anna")


def test_an_expired_token_is_refused(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    token = kb.create_token("bob", read=["work"], expires="2h").token
    assert kb.scope_of_token(token) is not None
    monkeypatch.setattr("qmd.system.clock.now", lambda: "9999-01-01T00:00:00.000Z")
    assert kb.scope_of_token(token) is None


@pytest.mark.parametrize(
    "path", ["work/new.md", "closed/new.md", "inbox/closed/new.md", "inbox/../work/new.md"]
)
def test_a_client_writes_in_its_collections_alone(
    part: ScopedKnowledgeBase, tmp_path: Path, path: str
) -> None:
    before = sorted(tmp_path.rglob("*.md"))
    with pytest.raises(QmdError):
        part.create_note(path, "text")
    assert sorted(tmp_path.rglob("*.md")) == before


def test_a_client_edits_moves_and_undoes_in_its_collections(
    kb: KnowledgeBase, part: ScopedKnowledgeBase, tmp_path: Path
) -> None:
    part.create_note("inbox/new.md", "# New\n\nword\n")
    part.edit_note("inbox/new", NoteEdit("append", text="more"))
    part.move_note("inbox/new", "inbox/newer")
    assert [hit.file for hit in kb.search("more").hits] == ["inbox/newer.md"]
    part.undo.undo_last()
    assert (tmp_path / "inbox" / "new.md").exists()
    with pytest.raises(OutsideRootsError, match=r"does not open .*plan\.md for writing") as caught:
        part.edit_note("work/plan", NoteEdit("append", text="more"))
    assert "qmd server token create NAME --write" in str(caught.value.hint)
    with pytest.raises(OutsideRootsError, match="is hidden; a token opens no hidden files"):
        part.policy.resolve(tmp_path / "inbox" / ".hidden.md")
    with pytest.raises(OutsideRootsError):
        part.delete_note("work/plan")
    with pytest.raises(OutsideRootsError):
        part.move_note("work/plan", "inbox/plan")
    with pytest.raises(OutsideRootsError):
        part.move_note("inbox/in", "work/in")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_right_to_push_opens_no_folder_of_the_server(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = tmp_path / "a.sqlite"
    if engine == "postgres":
        location = request.getfixturevalue("postgres_database")
    for name in ("work", "later"):
        put(tmp_path / name / "a.md", "# A\n")
    with KnowledgeBase.open(location, Settings(), create=True) as kb:
        kb.add_collection(tmp_path / "work")
        with pytest.raises(ConflictError, match="'work' is a folder of the server") as caught:
            kb.create_token("bea", push=["work"])
        assert "--write work" in str(caught.value.hint)
        token = kb.create_token("bea", push=["later", "other", "pushed"]).token
        kb.add_collection(tmp_path / "later")
        kb.rename_collection("work", "other")
        scope = kb.scope_of_token(token)
        assert scope is not None
        assert (scope.read, scope.write) == ({"pushed"}, {"pushed"})
        kb.rename_collection("later", "pushed")
        scope = kb.scope_of_token(token)
        assert scope is not None
        assert not scope.read


def test_a_client_that_only_reads_is_told_what_a_token_needs(kb: KnowledgeBase) -> None:
    scope = kb.scope_of_token(kb.create_token("reader", read=["work"]).token)
    assert scope is not None
    with ScopedKnowledgeBase(kb, scope) as reader:
        assert not reader.policy.writable
        with pytest.raises(OutsideRootsError, match="This token opens nothing for writing"):
            reader.create_note("work/new.md", "text")


@pytest.mark.parametrize("name", ["mine", "hidden"])
def test_who_may_write_one_of_two_collections_of_a_folder_learns_of_the_other(
    kb: KnowledgeBase, tmp_path: Path, name: str
) -> None:
    """A folder is closed if one of its collections is; the name of another's stays hidden."""
    kb.add_collection(tmp_path / "inbox", name=name)
    token = kb.create_token("bea", read=["mine"] if name == "mine" else [], write=["inbox"]).token
    scope = kb.scope_of_token(token)
    assert scope is not None
    with (
        ScopedKnowledgeBase(kb, scope) as part,
        pytest.raises(OutsideRootsError, match="does not open") as caught,
    ):
        part.create_note("inbox/new.md", "text")
    hint = str(caught.value.hint)
    assert "holds it, too" in hint and "--write" not in hint
    assert ("'mine'" in hint) == (name == "mine") and "hidden" not in hint


def test_a_link_out_of_a_collection_leads_nowhere(
    part: ScopedKnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "inbox" / "out").symlink_to(tmp_path / "work")
    with pytest.raises(QmdError):
        part.create_note("inbox/out/new.md", "text")
    assert not (tmp_path / "work" / "new.md").exists()


def test_changes_of_other_collections_are_not_listed_or_undone(
    kb: KnowledgeBase, part: ScopedKnowledgeBase
) -> None:
    kb.edit_note("closed/own", NoteEdit("append", text="hidden"))
    assert part.undo.changes() == []
    with pytest.raises(NotFoundError):
        part.undo.undo_last()
    with pytest.raises(NotFoundError):
        part.undo.undo_change(kb.undo.changes()[0].number)
    assert part.revisions.history(str(kb.path.parent / "inbox/closed/own.md")) == []


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_numbers_tell_a_client_nothing_of_what_others_change(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = tmp_path / "a.sqlite"
    if engine == "postgres":
        location = request.getfixturevalue("postgres_database")
    parts = {}
    with KnowledgeBase.open(location, Settings(), create=True) as kb:
        for name in ("work", "inbox"):
            put(tmp_path / name / "a.md", "# A\n")
            kb.add_collection(tmp_path / name)
            scope = kb.scope_of_token(kb.create_token(name, write=[name]).token)
            assert scope is not None
            parts[name] = ScopedKnowledgeBase(kb, scope)
        kb.index()
        edited = []
        for number in range(10):
            with in_session("shared"):  # any client may give this name to its session
                for name, part in parts.items():
                    note = part.edit_note(f"{name}/a", NoteEdit("append", text=f"{number}"))
                    edited.append((name, note.change))
        own = [number for name, number in edited if name == "work"]
        assert own != sorted(own)
        listed = parts["work"].undo.changes()
        assert [change.number for change in listed] == own[::-1]
        assert {each.number for each in parts["work"].revisions.history("work/a.md")} == {*own}
        shown = json.dumps(to_wire(listed))
        assert not re.search(r'"(id|position|number_in_session)"', shown)
        undone = parts["work"].undo.undo_session("shared")
        assert [change.change for change in undone.undone] == own[::-1]
        assert undone.not_kept == 0
        with pytest.raises(NotFoundError):
            parts["work"].undo.undo_change(edited[1][1] or 0)
        assert kb.undo.undo_change(edited[-1][1] or 0).refused == ()


def test_the_audit_log_says_who_wrote_what(
    kb: KnowledgeBase, part: ScopedKnowledgeBase, tmp_path: Path
) -> None:
    part.create_note("inbox/new.md", "# New\n")
    kb.edit_note("work/plan", NoteEdit("append", text="more"))
    kb.rename_collection("work", "office")
    [renamed, edited, created, *_] = kb.audit()
    assert (renamed.actor, renamed.action, renamed.target) == (
        "",
        "collection rename",
        "work to office",
    )
    assert (edited.actor, edited.action) == ("", "edit_note")
    assert (created.actor, created.target) == ("anna", f"create {tmp_path}/inbox/new.md")
    assert [entry.target for entry in kb.audit(token="anna")] == [created.target]
    assert kb.audit(since="1h", limit=1) == [renamed]


def test_the_face_is_in_the_audit_log(kb: KnowledgeBase, token: str) -> None:
    with TestClient(build_app(kb), base_url="http://localhost") as client:
        answer = client.post(
            "/edit_note",
            json={"file": "inbox/in", "action": "append", "text": "more"},
            headers={"authorization": f"Bearer {token}", "x-qmd-session": "mine"},
        )
    assert answer.status_code == 200
    entry = kb.audit()[0]
    assert (entry.actor, entry.face, entry.session) == ("anna", "rest", "mine")


def test_a_conversation_is_of_the_client_that_began_it(
    kb: KnowledgeBase, part: ScopedKnowledgeBase, token: str
) -> None:
    from qmd.values.chats import StoredTurn

    turn = StoredTurn(1, "question", "answer", "done", "2025-01-01", 1.0, "1.1", "[]", "[]")
    kb.begin_chat_turn("c-admin", "admin's", "read", turn)
    part.begin_chat_turn("c-anna", "anna's", "read", turn)
    assert [each.id for each in part.chats().chats] == ["c-anna"]
    assert {each.id for each in kb.chats().chats} == {"c-anna", "c-admin"}
    for refused in (
        lambda: part.chat("c-admin"),
        lambda: part.delete_chat("c-admin"),
        lambda: part.rename_chat("c-admin", "x"),
    ):
        with pytest.raises(NotFoundError):
            refused()
    part.keep_chat_turn("c-admin", replace(turn, answer="overwritten"))
    assert kb.chat("c-admin").turns[0].answer == "answer"
    for chat in ("c-admin", "c-anna"):
        kb.keep_chat_turn(chat, replace(turn, status="running", process="999999999.1"))
    assert part.end_abandoned_turns() == 1
    assert [kb.chat(chat).turns[0].status for chat in ("c-admin", "c-anna")] == [
        "running",
        "interrupted",
    ]


def test_the_command_line_makes_lists_and_revokes_tokens(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (tmp_path / "work").mkdir()
    scratch.call("collection", "add", "work")
    created = scratch.call("token", "create", "anna", "--read", "work", "--expires", "90d")
    assert created.out.startswith("qmd_")
    assert "is not shown again" in created.err
    [listed] = scratch.call("token", "list", "--json").json()
    assert (listed["name"], listed["read"], listed["write"]) == ("anna", ["work"], [])
    assert created.out.strip() not in scratch.call("token", "list", "--json").out
    assert scratch.call("token", "revoke", "anna").code == 0
    assert scratch.call("token", "list", "--json").json() == []
    actions = [entry["action"] for entry in scratch.call("audit", "--json").json()]
    assert actions == ["token revoke", "token create", "collection add"]
    assert {entry["face"] for entry in scratch.call("audit", "--json").json()} == {"cli"}


def test_an_import_is_in_the_audit_log(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    put(tmp_path / "obsidian.json", json.dumps({"vaults": {"1": {"path": str(tmp_path / "v")}}}))
    put(tmp_path / "v/a.md", "# A\n")
    with ZipFile(tmp_path / "n.zip", "w") as archive:
        archive.writestr("b.md", "# B\n")
    assert scratch.call("import", "obsidian", "obsidian.json", "--dry-run").code == 0
    assert scratch.call("import", "obsidian", "obsidian.json").code == 0
    assert scratch.call("export", "kept.zip").code == 0
    assert scratch.call("import", "qmd", "kept.zip").code == 0
    assert scratch.call("import", "markdown-zip", "n.zip", "zipped").code == 0
    entries = scratch.call("audit", "--json").json()
    assert [(each["action"], each["target"]) for each in entries] == [
        ("collection add", f"zipped: {tmp_path / 'zipped'}"),
        ("import", f"{tmp_path / 'n.zip'}: {tmp_path / 'zipped'}"),
        ("import", str(tmp_path / "kept.zip")),
        ("import", str(tmp_path / "obsidian.json")),
    ]
