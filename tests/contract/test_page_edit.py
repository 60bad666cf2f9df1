"""The views that write, over HTTP: nothing typed is lost, and nothing is overwritten unseen."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.site import Served, http_client, serve

NOTE = "# Plan\n\nOne.\n\nTwo.\n\n- [ ] paint\n"
NOTES = {
    "plan.md": NOTE,
    "windows.md": "# W\r\n\r\nText\r\n",
    "Harbour.md": "# Harbour\n\nSee [[plan]].\n",
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, NOTES, embed=False) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        yield client


def fields(answer: httpx.Response) -> dict[str, str]:
    """The fields of the last form of a page, as a browser would send them."""
    form = answer.text[answer.text.rindex('<form id="') :]
    inputs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    areas = re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL)
    areas += re.findall(r'<textarea name="([^"]+)" hidden>\n(.*?)</textarea>', form, re.DOTALL)
    return {name: html.unescape(value) for name, value in [*inputs, *areas]}


def post(client: httpx.Client, address: str, **data: str) -> httpx.Response:
    if "csrf" not in data:
        match = re.search(r'name="csrf" content="([^"]+)"', client.get("/").text)
        assert match is not None
        data["csrf"] = match[1]
    return client.post(address, data=data)


def text_of(served: Served, name: str = "plan.md") -> str:
    return (served.folder / name).read_bytes().decode()


# --- the editor --------------------------------------------------------------------------


def test_a_note_is_edited_and_the_change_undone(served: Served, client: httpx.Client) -> None:
    sent = fields(client.get("/edit/notes/plan.md"))
    assert sent["text"] == NOTE
    answer = post(client, "/edit/notes/plan.md", **{**sent, "text": NOTE + "More.\n"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/note/notes/plan.md"
    assert text_of(served) == NOTE + "More.\n"
    undo = re.search(r'action="(/undo/\d+)"', client.get("/").text)
    assert undo is not None
    assert post(client, undo[1]).headers["location"] == "/note/notes/plan.md"
    assert text_of(served) == NOTE


def test_the_change_belongs_to_the_session_of_the_browser(
    served: Served, client: httpx.Client
) -> None:
    sent = fields(client.get("/edit/notes/plan.md"))
    post(client, "/edit/notes/plan.md", **{**sent, "text": "x\n"})
    [change] = served.kb.undo.changes(limit=1)
    assert re.fullmatch(r"page-[0-9a-f]{8}", change.session)


def test_an_unchanged_text_changes_nothing(served: Served, client: httpx.Client) -> None:
    """Browsers send CR LF at the end of each line, whatever the note has."""
    for name in ("plan.md", "windows.md"):
        sent = fields(client.get(f"/edit/notes/{name}"))
        text = sent["text"].replace("\n", "\r\n")
        assert post(client, f"/edit/notes/{name}", **{**sent, "text": text}).status_code == 303
        assert text_of(served, name) == NOTES[name]
    assert served.kb.undo.changes() == []


def test_a_script_saves_and_gets_the_docid_for_the_next_time(
    served: Served, client: httpx.Client
) -> None:
    sent = fields(client.get("/edit/notes/plan.md"))
    docid = sent["docid"]
    for number in range(3):
        answer = client.post(
            "/edit/notes/plan.md",
            data={"text": f"{number}\n", "docid": docid, "csrf": sent["csrf"]},
            headers={"accept": "application/json"},
        )
        docid = answer.json()["docid"]
    assert text_of(served) == "2\n"


@pytest.mark.parametrize("lacking", ["text", "docid"])
def test_a_form_that_is_not_whole_changes_nothing(
    served: Served, client: httpx.Client, lacking: str
) -> None:
    sent = {**fields(client.get("/edit/notes/plan.md")), "text": "x"}
    del sent[lacking]
    assert post(client, "/edit/notes/plan.md", **sent).status_code == 400
    assert text_of(served) == NOTE


def test_a_text_begins_with_the_blank_lines_that_it_has(
    served: Served, client: httpx.Client
) -> None:
    """HTML drops one line break at the beginning of a text field."""
    (served.folder / "plan.md").write_text("\n\n# Plan\n", encoding="utf-8")
    assert fields(client.get("/edit/notes/plan.md"))["text"] == "\n\n# Plan\n"


def test_the_text_of_a_note_is_no_html_of_the_page(served: Served, client: httpx.Client) -> None:
    hostile = "</textarea><script>alert(1)</script>\n"
    (served.folder / "plan.md").write_text(hostile, encoding="utf-8")
    answer = client.get("/edit/notes/plan.md")
    assert "<script>alert" not in answer.text
    assert fields(answer)["text"] == hostile


def test_what_was_typed_is_shown_again_where_the_token_is_stale(
    served: Served, client: httpx.Client
) -> None:
    sent = fields(client.get("/edit/notes/plan.md"))
    client.cookies.clear()
    refused = post(client, "/edit/notes/plan.md", **{**sent, "text": "typed\n"})
    assert refused.status_code == 403
    again = fields(refused)
    assert again["text"] == "typed\n"
    assert text_of(served) == NOTE
    assert post(client, "/edit/notes/plan.md", **again).status_code == 303
    assert text_of(served) == "typed\n"


def test_a_new_note_is_kept_where_the_token_is_stale(served: Served, client: httpx.Client) -> None:
    sent = {**fields(client.get("/new")), "name": "x", "text": "typed\n"}
    client.cookies.clear()
    refused = post(client, "/new", **sent)
    assert refused.status_code == 403
    assert "no longer valid" in refused.text
    again = fields(refused)
    assert again["text"] == "typed\n"
    assert not (served.folder / "x.md").exists()
    assert post(client, "/new", **{**again, "name": "x", "collection": "notes"}).status_code == 303
    assert text_of(served, "x.md") == "typed\n"


def test_a_note_that_is_gone_can_be_created_again(served: Served, client: httpx.Client) -> None:
    sent = fields(client.get("/edit/notes/plan.md"))
    (served.folder / "plan.md").unlink()
    served.kb.index()
    answer = post(client, "/edit/notes/plan.md", **{**sent, "text": "typed\n"})
    assert answer.status_code == 404
    assert 'name="name" value="plan.md"' in answer.text
    created = post(client, "/new", collection="notes", folder="", name="plan.md", text="typed\n")
    assert created.status_code == 303
    assert text_of(served) == "typed\n"


# --- a conflict --------------------------------------------------------------------------


def conflict(served: Served, client: httpx.Client, mine: str, theirs: str) -> httpx.Response:
    sent = fields(client.get("/edit/notes/plan.md"))
    (served.folder / "plan.md").write_text(theirs, encoding="utf-8")
    answer = post(client, "/edit/notes/plan.md", **{**sent, "text": mine})
    assert answer.status_code == 409
    assert text_of(served) == theirs
    return answer


def test_changes_at_different_places_are_merged(served: Served, client: httpx.Client) -> None:
    mine, theirs = NOTE.replace("One", "Mine"), NOTE.replace("Two", "Theirs")
    sent = fields(conflict(served, client, mine, theirs))
    answer = post(client, "/edit/notes/plan.md", **sent, action="choices")
    assert answer.status_code == 303
    assert text_of(served) == mine.replace("Two", "Theirs")


@pytest.mark.parametrize(
    ("choice", "line"),
    [("mine", "Mine.\n"), ("theirs", "Theirs.\n"), ("both", "Mine.\nTheirs.\n"), ("x", "Mine.\n")],
)
def test_a_person_chooses_where_both_changed_a_line(
    served: Served, client: httpx.Client, choice: str, line: str
) -> None:
    mine, theirs = NOTE.replace("One", "Mine"), NOTE.replace("One", "Theirs")
    answer = conflict(served, client, mine, theirs)
    assert "Mine." in answer.text
    assert "Theirs." in answer.text
    data = {**fields(answer), "action": "choices", "choice-0": choice}
    assert post(client, "/edit/notes/plan.md", **data).status_code == 303
    assert text_of(served) == NOTE.replace("One.\n", line)


def test_a_person_may_merge_by_hand(served: Served, client: httpx.Client) -> None:
    mine, theirs = NOTE.replace("One", "Mine"), NOTE.replace("Two", "Theirs")
    answer = conflict(served, client, mine, theirs)
    editor = post(client, "/edit/notes/plan.md", **fields(answer), action="by_hand")
    assert editor.status_code == 200
    assert text_of(served) == theirs
    sent = fields(editor)
    assert sent["text"] == mine.replace("Two", "Theirs")
    post(client, "/edit/notes/plan.md", **{**sent, "text": sent["text"] + "By hand.\n"})
    assert text_of(served).endswith("By hand.\n")


def test_mine_over_the_file_keeps_the_other_text_in_the_history(
    served: Served, client: httpx.Client
) -> None:
    answer = conflict(served, client, "mine\n", "theirs\n")
    post(client, "/edit/notes/plan.md", **fields(answer), action="save")
    assert text_of(served) == "mine\n"
    kept = served.kb.revisions.history("notes/plan.md")
    assert served.kb.revisions.content("notes/plan.md", kept[0].number) == b"theirs\n"


def test_a_file_that_changes_during_the_choice_is_a_conflict_again(
    served: Served, client: httpx.Client
) -> None:
    answer = conflict(served, client, NOTE.replace("One", "Mine"), NOTE.replace("Two", "Theirs"))
    (served.folder / "plan.md").write_text("third\n", encoding="utf-8")
    for action in ("choices", "save", "by_hand"):
        again = post(client, "/edit/notes/plan.md", **fields(answer), action=action)
        assert again.status_code == 409
        assert fields(again)["text"] == NOTE.replace("One", "Mine")
    assert text_of(served) == "third\n"


def test_without_the_text_before_each_difference_is_a_choice(
    served: Served, client: httpx.Client
) -> None:
    sent = fields(client.get("/edit/notes/plan.md"))
    del sent["base"]
    (served.folder / "plan.md").write_text(NOTE.replace("Two", "Theirs"), encoding="utf-8")
    answer = post(client, "/edit/notes/plan.md", **{**sent, "text": NOTE.replace("One", "Mine")})
    data = {**fields(answer), "action": "choices", "choice-0": "mine", "choice-1": "theirs"}
    post(client, "/edit/notes/plan.md", **data)
    assert text_of(served) == NOTE.replace("One", "Mine").replace("Two", "Theirs")


# --- a new note --------------------------------------------------------------------------


def test_a_new_note_gets_its_name_from_its_heading(served: Served, client: httpx.Client) -> None:
    answer = post(client, "/new", collection="notes", folder="trips", name="", text="# To: sea\n")
    assert answer.headers["location"] == "/note/notes/trips/To%20sea.md"
    assert text_of(served, "trips/To sea.md") == "# To: sea\n"


def test_a_new_note_is_offered_the_folders_that_hold_documents(
    served: Served, client: httpx.Client
) -> None:
    for path in ("trips/sea/a.md", "trips/sea/b.md", "work/c.md"):
        (served.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (served.folder / path).write_text("x\n", encoding="utf-8")
    served.kb.index()
    offered = re.search(r'<datalist id="folders">(.*?)</datalist>', client.get("/new").text)
    assert offered is not None
    assert re.findall(r'value="(.*?)"', offered[1]) == ["trips/sea", "work"]


@pytest.mark.parametrize(
    ("name", "folder", "status"),
    [("plan", "", 409), ("a?b", "", 400), ("x", "../..", 400), ("x", ".git", 409), ("", "", 409)],
)
def test_a_refused_new_note_keeps_what_was_typed(
    served: Served, client: httpx.Client, name: str, folder: str, status: int
) -> None:
    text = "typed\n" if name else "\n"
    answer = post(client, "/new", collection="notes", folder=folder, name=name, text=text)
    assert answer.status_code == status
    assert fields(answer)["text"] == text
    assert text_of(served) == NOTE
    assert [change.tool for change in served.kb.undo.changes()] == []


def test_a_link_without_a_note_leads_to_one_with_its_name(client: httpx.Client) -> None:
    answer = client.get("/new", params={"name": "trips/Sea#Coast|x", "from": "notes/plan.md"})
    assert 'value="trips"' in answer.text
    assert 'value="Sea"' in answer.text
    assert fields(answer)["text"] == "# Sea\n\n"


@pytest.mark.parametrize(
    "written", ["[y](<sub/with space.md>)", "[y](sub/with%20space.md)", "[y](./sub/with%20space)"]
)
def test_a_note_made_from_a_link_is_where_the_link_leads(tmp_path: Path, written: str) -> None:
    notes = {"trip.md": f"# Trip\n\nSee {written}.\n"}
    with serve(tmp_path, notes, embed=False) as served, http_client(served.url) as client:
        page = client.get("/note/notes/trip.md").text
        offered = re.search(r'href="(/new\?[^"]+)"', page)
        assert offered is not None
        form = client.get(html.unescape(offered[1])).text
        sent = {
            name: html.unescape(re.findall(rf'name="{name}"[^>]* value="([^"]*)"', form)[0])
            for name in ("folder", "name")
        }
        post(client, "/new", collection="notes", **sent, text="# There\n")
        assert text_of(served, "sub/with space.md") == "# There\n"
        page = client.get("/note/notes/trip.md").text
        assert 'href="/note/notes/sub/with%20space.md"' in page and "/new?" not in page


def test_no_note_is_offered_in_place_of_a_file_of_another_kind(tmp_path: Path) -> None:
    files = ["a.txt", "b.canvas", "c.py", "d.json", "e.base", "f.xyz"]
    links = "".join(f"[x]({name}) " for name in files) + "[[g.canvas]] [[h.base]]"
    notes = {"trip.md": f"# Trip\n\n{links} [[St. Ives]] [y](v1.5) [[node]]\n"}
    with serve(tmp_path, notes, embed=False) as served, http_client(served.url) as client:
        page = client.get("/note/notes/trip.md").text
        names = re.findall(r'href="/new\?name=([^&"]+)', page)
        assert names == ["St.%20Ives", "v1.5", "node"]
        for name in files:
            answer = client.get(f"/note/notes/{name}")
            assert answer.status_code == 404
            assert "/new?" not in answer.text


@pytest.mark.parametrize("options", [{"read_only": True}, {"settings": {"read_only_files": True}}])
def test_where_nothing_may_be_written_the_views_say_so(
    tmp_path: Path, options: dict[str, object]
) -> None:
    with (
        serve(tmp_path, NOTES, embed=False, **options) as served,  # type: ignore[arg-type]
        http_client(served.url) as client,
    ):
        for address in ("/new", "/edit/notes/plan.md"):
            assert "Nothing can be written here" in client.get(address).text
        for address in (
            "/new",
            "/edit/notes/plan.md",
            "/tick/notes/plan.md",
            "/undo/1",
            "/delete/notes/plan.md",
            "/move/notes/plan.md",
        ):
            answer = post(
                client,
                address,
                text="x",
                docid="",
                collection="notes",
                name="x",
                line="7",
                to="y",
                action="move" if "move" in address else "save",
            )
            assert 400 <= answer.status_code < 500, address
        assert {path.name for path in served.folder.iterdir()} == set(NOTES)
        assert text_of(served) == NOTE


# --- tasks, moving, deleting, undoing ----------------------------------------------------


def test_a_task_is_ticked_with_a_form_and_by_a_script(served: Served, client: httpx.Client) -> None:
    docid = served.kb.get("notes/plan.md").document.docid
    answer = post(client, "/tick/notes/plan.md", line="7", docid=docid, done="1")
    assert answer.headers["location"] == "/note/notes/plan.md?line=7"
    assert "- [x] paint" in text_of(served)
    listed = client.get("/tick/notes/plan.md")
    assert "paint" in listed.text
    token = re.search(r'name="csrf" content="([^"]+)"', listed.text)
    assert token is not None
    answer = client.post(
        "/tick/notes/plan.md",
        data={"line": "7", "docid": docid, "done": "0"},
        headers={"accept": "application/json", "x-csrf-token": token[1]},
    )
    assert answer.json()["done"] is False
    assert text_of(served) == NOTE


@pytest.mark.parametrize("line", ["", "0", "x", "99999999", "1", "²"])
def test_a_line_without_a_task_is_refused(served: Served, client: httpx.Client, line: str) -> None:
    docid = served.kb.get("notes/plan.md").document.docid
    answer = post(client, "/tick/notes/plan.md", line=line, docid=docid, done="1")
    assert answer.status_code in (400, 409)
    assert text_of(served) == NOTE


def test_a_note_is_deleted_after_a_question_and_comes_back(
    served: Served, client: httpx.Client
) -> None:
    question = client.get("/delete/notes/plan.md")
    assert "Harbour.md" in question.text  # which has a link to it
    docid = re.search(r'name="docid" value="([^"]+)"', question.text)
    assert docid is not None
    assert post(client, "/delete/notes/plan.md", docid=docid[1]).headers["location"] == "/"
    assert not (served.folder / "plan.md").exists()
    undo = re.search(r'action="(/undo/\d+)"', client.get("/").text)
    assert undo is not None
    assert post(client, undo[1]).headers["location"] == "/note/notes/plan.md"
    assert ">Redo</button>" in client.get("/").text
    assert text_of(served) == NOTE


def test_a_note_whose_file_is_no_text_any_more_is_deleted_too(
    served: Served, client: httpx.Client
) -> None:
    (served.folder / "plan.md").write_bytes(bytes(range(256)))
    assert 'name="docid" value=""' in client.get("/delete/notes/plan.md").text
    assert post(client, "/delete/notes/plan.md", docid="").status_code == 303
    assert not (served.folder / "plan.md").exists()


def test_a_note_that_changed_since_the_question_is_not_deleted(
    served: Served, client: httpx.Client
) -> None:
    docid = re.search(r'name="docid" value="([^"]+)"', client.get("/delete/notes/plan.md").text)
    assert docid is not None
    (served.folder / "plan.md").write_text("new\n", encoding="utf-8")
    assert post(client, "/delete/notes/plan.md", docid=docid[1]).status_code == 409
    assert post(client, "/delete/notes/plan.md").status_code == 400
    assert text_of(served) == "new\n"


def test_a_move_shows_first_which_links_it_rewrites(served: Served, client: httpx.Client) -> None:
    plan = post(client, "/move/notes/plan.md", to="trips/Voyage", action="preview")
    assert "notes/trips/Voyage.md" in plan.text
    assert "[[Voyage]]" in plan.text
    assert text_of(served) == NOTE
    moved = post(client, "/move/notes/plan.md", to="trips/Voyage", action="move")
    assert moved.headers["location"] == "/note/notes/trips/Voyage.md"
    assert "[[Voyage]]" in text_of(served, "Harbour.md")
    undo = re.search(r'action="(/undo/\d+)"', client.get("/").text)
    assert undo is not None
    assert post(client, undo[1]).headers["location"] == "/note/notes/plan.md"
    assert text_of(served) == NOTE


@pytest.mark.parametrize("to", ["Harbour", "../x", "", "a?b", "//evil.example/x"])
def test_a_move_that_is_refused_says_why(served: Served, client: httpx.Client, to: str) -> None:
    answer = post(client, "/move/notes/plan.md", to=to, action="move")
    if answer.status_code == 303:
        assert answer.headers["location"].startswith("/note/notes/")
    else:
        assert 'role="alert"' in answer.text
        assert text_of(served) == NOTE


def test_a_change_that_others_built_on_is_not_undone(served: Served, client: httpx.Client) -> None:
    sent = fields(client.get("/edit/notes/plan.md"))
    post(client, "/edit/notes/plan.md", **{**sent, "text": "x\n"})
    [change] = served.kb.undo.changes(limit=1)
    (served.folder / "plan.md").write_text("by hand\n", encoding="utf-8")
    answer = post(client, f"/undo/{change.number}")
    assert answer.status_code == 409
    assert "by hand" in answer.text
    assert text_of(served) == "by hand\n"
    assert '<form method="post" action="/undo/' not in answer.text


def test_if_a_change_is_not_undone_an_earlier_one_is_offered(
    served: Served, client: httpx.Client
) -> None:
    post(client, "/new", collection="notes", folder="", name="other", text="# Other\n")
    post(client, "/new", collection="notes", folder="", name="new", text="# New\n")
    (served.folder / "new.md").write_text("by hand\n", encoding="utf-8")
    newest, other = served.kb.undo.changes()
    answer = post(client, f"/undo/{newest.number}")
    assert re.findall(r'<form method="post" action="(/undo/\d+)"', answer.text) == [
        f"/undo/{other.number}"
    ]
    assert post(client, f"/undo/{other.number}").status_code == 303
    assert not (served.folder / "other.md").exists()


@pytest.mark.parametrize(
    ("settings", "is_broken"), [(None, False), ("{}", True), ('{"strictLineBreaks": true}', False)]
)
def test_line_ends_in_a_vault_are_shown_as_in_obsidian(
    served: Served, client: httpx.Client, settings: str | None, is_broken: bool
) -> None:
    if settings is not None:
        (served.folder / ".obsidian").mkdir()
        (served.folder / ".obsidian/app.json").write_text(settings, "utf-8")
    (served.folder / "poem.md").write_text("One\ntwo\n", "utf-8")
    served.kb.index()
    preview = post(client, "/part/preview", file="notes/new.md", text="One\ntwo\n").text
    for shown in (client.get("/note/notes/poem.md").text, preview):
        assert ("One<br>\ntwo" in shown) is is_broken
        assert ("One\ntwo" in shown) is not is_broken


def test_a_note_that_is_edited_does_not_stand_under_new_notes(client: httpx.Client) -> None:
    for address, view in (("/edit/notes/plan.md", "/browse"), ("/new", "/new")):
        current = re.findall(r'<a href="([^"]+)"[^>]*aria-current="page"', client.get(address).text)
        assert current == [view]


def test_a_preview_is_rendered_as_the_note_would_be(client: httpx.Client) -> None:
    answer = post(client, "/part/preview", file="notes/x.md", text="# A\n\n[[plan]] <script>")
    assert "/note/notes/plan.md" in answer.text
    assert "<script>" not in answer.text
    elsewhere = post(client, "/part/preview", file="", text="[[plan]]")
    assert elsewhere.status_code == 200


def test_what_the_rules_leave_out_cannot_be_opened(tmp_path: Path) -> None:
    files = {"a.md": "# A\n", ".git/config": "[secret]", "b.txt": "secret", "x.svg": "<svg/>"}
    with (
        serve(tmp_path, {**files, ".gitignore": "own.md\n", "own.md": "secret"}) as served,
        http_client(served.url) as client,
    ):
        for name in (".git/config", "b.txt", "x.svg", "own.md", ".gitignore"):
            for view in ("edit", "move", "delete"):
                answer = client.get(f"/{view}/notes/{name}")
                assert (answer.status_code, "secret" in answer.text) == (404, False), (view, name)
