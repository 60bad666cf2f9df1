"""The view of the state over HTTP: figures, what is left out, jobs, clients, collections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from html import unescape
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedder import BesideEnglish, HashTokenEmbedder
from support.live import needs_events, until
from support.pdf import PICTURE, pdf
from support.site import Served, http_client, serve

from qmd import KnowledgeBase, Settings
from qmd.operations.bounds import MAX_PATH
from qmd.server.page.health import DAYS, documents_per_day
from qmd.server.page.templating import rendered_template
from qmd.values.writing import NoteEdit


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path, embed=False) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        client.headers["origin"] = served.url
        yield client


def text_of(client: httpx.Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return words(answer)


def words(answer: httpx.Response) -> str:
    main = answer.text.partition("<main")[2] or answer.text
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", main)))


def post(client: httpx.Client, address: str, **fields: str) -> httpx.Response:
    token = re.findall(r'name="csrf" content="([^"]*)"', client.get("/overview").text)[0]
    return client.post(address, data={"csrf": token, **fields}, follow_redirects=True)


def wait_for_jobs(client: httpx.Client) -> None:
    def states() -> set[str]:
        return set(re.findall(r'class="state (\w+)', client.get("/part/overview/live").text))

    until(lambda: not {"running", "waiting"} & states())


# --- figures ---------------------------------------------------------------------------


def test_the_view_shows_figures_and_where_programs_connect(
    served: Served, client: httpx.Client
) -> None:
    text = text_of(client, "/overview")
    status = served.kb.status()
    assert f"Documents {status.total_documents} " in text
    assert f"Chunks {status.chunks} " in text
    assert f"Vectors waiting {status.chunks} " in text
    assert status.database in text
    assert "UTC" in text
    assert str(served.folder) in text
    assert f"claude mcp add -s user --transport http qmd {served.url}/mcp" in text
    assert "/openapi.json" in text


def test_the_model_of_english_is_named_with_what_it_has_to_look_at(tmp_path: Path) -> None:
    beside = BesideEnglish()
    notes = {f"{number}.md": f"# Note {number}\n\nword{number}\n" for number in range(20)}
    with (
        serve(tmp_path, notes, embed=False, settings={"embedder": beside}) as served,
        http_client(served.url, headers={"accept-language": "en"}) as client,
    ):
        assert "English also by" not in text_of(client, "/overview")
        served.kb.embed()
        name = beside.english.spec.name
        assert f"English also by {name} Kept" in text_of(client, "/overview")
        (served.folder / "new.md").write_text("# Entirely new\n")
        without = Settings(embedder=HashTokenEmbedder())
        with KnowledgeBase.open(tmp_path / "index.sqlite", without) as other:
            other.index()
            other.embed()
        assert f"English also by {name}; chunks to look at: 1 Kept" in text_of(client, "/overview")


def test_a_folder_that_is_gone_is_named(served: Served, client: httpx.Client) -> None:
    gone = "This folder is not there, or cannot be read."
    assert gone not in text_of(client, "/overview")
    served.folder.rename(served.folder.with_name("elsewhere"))
    text = text_of(client, "/overview")
    assert gone in text and "All is well" not in text


def test_scans_and_photos_that_wait_are_counted_if_there_are_any(
    served: Served, client: httpx.Client
) -> None:
    assert "Scans and photos" not in text_of(client, "/overview")
    (served.folder / "scan.pdf").write_bytes(pdf([PICTURE, PICTURE]))
    served.kb.index()
    assert "Scans and photos to read 2 of 2; ‘qmd status’ says more" in text_of(client, "/overview")


def test_an_empty_knowledge_base_says_what_to_do_next(served: Served, client: httpx.Client) -> None:
    served.kb.remove_collection("notes")
    text = text_of(client, "/overview")
    assert "Add a folder" in text
    assert "No folder has been added yet" in text
    assert "None: all files are here." in text


@pytest.mark.parametrize(
    "address",
    [
        "/overview",
        "/overview/charts",
        "/overview/warnings",
        "/overview/why",
        "/overview/skipped?reason=binary",
        "/overview/collections/new",
        "/overview/collection?name=notes",
        "/overview/context",
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_page_stands_in_both_languages(
    client: httpx.Client, address: str, language: str
) -> None:
    answer = client.get(address, headers={"accept-language": language})
    assert answer.status_code == 200
    assert answer.headers["content-language"] == language
    assert not re.search(r"<[^>]+ (style|on\w+)=", answer.text)
    text = re.sub(r"<(code|pre|span class=\"path)[^>]*>.*?</", "", answer.text)
    if language == "en":
        main = words(httpx.Response(200, text=text))
        assert not re.search("[\u4e00-\u9fff]", main.partition("中文")[0])


# --- what is left out --------------------------------------------------------------------


def test_skipped_files_are_listed_by_page_with_what_to_do(
    served: Served, client: httpx.Client
) -> None:
    for number in range(60):
        (served.folder / f"nul {number:02}.md").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    (served.folder / ".hidden.md").write_text("# Hidden\n")
    served.kb.index()
    text = text_of(client, "/overview")
    assert "not text 60 The file holds no text" in text
    assert "hidden 1 Names that begin with a dot" in text
    first = text_of(client, "/overview/skipped?reason=binary")
    assert "notes/nul 00.md" in first
    assert "notes/nul 59.md" not in first
    assert "notes/nul 59.md" in text_of(client, "/overview/skipped?reason=binary&page=2")
    assert "None" in text_of(client, "/overview/skipped?reason=binary&page=99999999999999")
    assert "None" in text_of(client, "/overview/skipped?reason=<script>&page=x")


def test_a_typed_path_is_explained(served: Served, client: httpx.Client) -> None:
    (served.folder / ".gitignore").write_text("drafts/\n")
    (served.folder / "drafts").mkdir()
    (served.folder / "drafts" / "x.md").write_text("# X\n")
    assert "It is here." in text_of(client, "/overview/why?path=notes/plan.md")
    ignored = text_of(client, "/overview/why?path=notes/drafts/x.md")
    assert "It is not here." in ignored
    assert "Line 1 of .gitignore: drafts/" in ignored
    outside = text_of(client, "/overview/why?path=/etc/passwd")
    assert "It lies in no collection." in outside
    assert client.get("/overview/why", params={"path": "x" * (MAX_PATH + 1)}).status_code == 400


def test_documents_with_warnings_are_listed(served: Served, client: httpx.Client) -> None:
    (served.folder / "bad.md").write_text("---\nunclosed: [\n---\n# Bad\n")
    served.kb.index()
    assert "notes/bad.md" in text_of(client, "/overview/warnings")


@needs_events
def test_all_is_not_well_beside_documents_with_warnings(tmp_path: Path) -> None:
    notes = {"good.md": "# Good\n"}
    with (
        serve(tmp_path, notes, embed=False) as served,
        http_client(served.url, headers={"accept-language": "en"}) as client,
    ):
        served.kb.keep()
        until(lambda: "All is well" in text_of(client, "/overview"))
        (served.folder / "bad.md").write_text("---\nunclosed: [\n---\n# Bad\n")
        until(lambda: "1 document was read with warnings" in text_of(client, "/overview"))
        assert "All is well" not in text_of(client, "/overview")


# --- jobs --------------------------------------------------------------------------------


def test_jobs_start_from_the_view_and_end_in_the_background(
    served: Served, client: httpx.Client
) -> None:
    (served.folder / "new.md").write_text("# New\n\nA raft.\n")
    assert "Jobs" in words(post(client, "/overview/index"))
    wait_for_jobs(client)
    assert "1 added" in text_of(client, "/overview")
    post(client, "/overview/embed")
    wait_for_jobs(client)
    assert served.kb.status().chunks_embedded == served.kb.status().chunks
    assert "all chunks have one" in text_of(client, "/overview")


def test_the_checks_of_doctor_run_when_asked_for(served: Served, client: httpx.Client) -> None:
    text = words(post(client, "/overview/check"))
    assert "Checks" in text
    assert "documents wait for vectors" in text
    assert client.get("/overview/check").status_code == 405


def test_nothing_changes_without_the_token(served: Served, client: httpx.Client) -> None:
    for address in (
        "/overview/index",
        "/overview/embed",
        "/overview/check",
        "/undo/1",
        "/overview/collections/look",
        "/overview/collections/add",
        "/overview/collection/rename",
        "/overview/collection/remove",
        "/overview/context/save",
        "/overview/context/remove",
    ):
        assert client.get(address).status_code == 405, address
        assert client.post(address, data={"name": "notes"}).status_code == 403, address
    assert [each.name for each in served.kb.collections()] == ["notes"]


def test_a_read_only_server_explains_and_refuses(tmp_path: Path) -> None:
    with serve(tmp_path, embed=False, read_only=True) as served:
        with http_client(served.url, headers={"origin": served.url}) as client:
            text = text_of(client, "/overview")
            assert "read-only" in text
            assert "Index now" not in text
            assert "Add a folder" not in text
            assert "read-only" in text_of(client, "/overview/collection?name=notes")
            for address in ("index", "collections/add", "collection/remove", "context/save"):
                answer = post(client, f"/overview/{address}", name="notes", path="/", text="x")
                assert answer.status_code == 403, address
        assert [each.name for each in served.kb.collections()] == ["notes"]
        assert served.kb.contexts() == []


# --- clients and changes -------------------------------------------------------------------


def test_the_calls_of_clients_are_shown_without_what_they_asked(
    served: Served, client: httpx.Client
) -> None:
    headers = {"user-agent": "<b>curl</b>/8.5.0"}
    client.post("/search", json={"query": "zebrafish"}, headers=headers)
    client.post("/search", json={}, headers=headers)
    answer = client.get("/overview")
    assert "<b>curl" not in answer.text
    text = words(answer)
    assert "REST · 2 calls" in text
    assert "1 failed" in text
    assert "0 hits" in text
    assert "zebrafish" not in text
    charts = text_of(client, "/part/overview/charts")
    assert "By words" in charts
    assert "zebrafish" not in charts


def test_a_change_of_a_tool_is_undone_from_the_view(served: Served, client: httpx.Client) -> None:
    before = (served.folder / "plan.md").read_text()
    served.kb.edit_note("notes/plan.md", NoteEdit("append", text="More."))
    page = client.get("/overview").text
    [undo] = re.findall(r'action="(/undo/\d+)"', page)
    assert 'href="/note/notes/plan.md"' in page
    undone = post(client, undo, **{"from": "overview"})
    assert undone.url.path == "/overview"
    assert "Undone:" in words(undone)
    assert (served.folder / "plan.md").read_text() == before
    assert post(client, undo).status_code == 409
    assert post(client, "/undo/x").status_code == 400


def test_a_change_that_was_changed_since_is_not_undone(
    served: Served, client: httpx.Client
) -> None:
    served.kb.edit_note("notes/plan.md", NoteEdit("append", text="More."))
    (served.folder / "plan.md").write_text("# Mine\n")
    [change] = served.kb.undo.changes()
    answer = post(client, f"/undo/{change.number}")
    assert answer.status_code == 409
    assert (served.folder / "plan.md").read_text() == "# Mine\n"


# --- collections and contexts ----------------------------------------------------------------


def test_a_folder_is_added_after_a_look_at_what_it_holds(
    served: Served, client: httpx.Client, tmp_path: Path
) -> None:
    folder = tmp_path / "新的 <笔记>"
    folder.mkdir()
    for name in ("a.md", "b.md", "drop.md", "c.txt"):
        (folder / name).write_text(f"# {name}\n")
    fields = {"path": str(folder), "name": "", "mask": "**/*.md", "ignore": "drop.md\n\n"}
    answer = post(client, "/overview/collections/look", **fields)
    assert answer.status_code == 200
    assert "2 files match" in words(answer)
    assert len(served.kb.collections()) == 1
    assert "<笔记>" not in answer.text
    answer = post(client, "/overview/collections/add", **fields)
    assert "The collection was added" in words(answer)
    wait_for_jobs(client)
    assert served.kb.collection("新的 <笔记>").documents == 2
    answer = post(client, "/overview/collections/add", **fields)
    assert answer.status_code == 409
    assert "is the collection '新的 <笔记>' already" in words(answer)
    assert unescape(answer.text).count(str(folder)) >= 1


@pytest.mark.parametrize(
    ("path", "status"), [("relative", 400), ("/etc", 403), ("/", 403), ("~/.ssh", 403), ("", 400)]
)
def test_only_folders_that_the_policy_opens_are_added(
    served: Served, client: httpx.Client, path: str, status: int
) -> None:
    for step in ("look", "add"):
        answer = post(client, f"/overview/collections/{step}", path=path)
        assert answer.status_code == status, answer.text
        assert 'role="alert"' in answer.text
        assert "root:" not in answer.text
    assert [each.name for each in served.kb.collections()] == ["notes"]


def test_a_missing_folder_and_a_bad_name_are_shown_in_place(
    served: Served, client: httpx.Client, tmp_path: Path
) -> None:
    answer = post(client, "/overview/collections/look", path=str(tmp_path / "none"))
    assert "There is no directory" in words(answer)
    assert str(tmp_path / "none") in answer.text
    answer = post(client, "/overview/collections/look", path=str(served.folder), name="a/b")
    assert "Not a usable collection name" in words(answer)
    changed = post(client, "/overview/collections/change", path="/x", name="kept")
    assert 'value="kept"' in changed.text


def test_a_collection_is_renamed_and_removed_and_its_files_stay(
    served: Served, client: httpx.Client
) -> None:
    answer = post(client, "/overview/collection/rename", name="notes", new_name="a/b")
    assert answer.status_code == 400
    assert 'value="a/b"' in answer.text
    post(client, "/overview/collection/rename", name="notes", new_name="papers")
    assert "The files stay on the disk" in text_of(client, "/overview/collection?name=papers")
    answer = post(client, "/overview/collection/remove", name="papers")
    assert "removed from the index" in words(answer)
    assert served.kb.collections() == []
    assert (served.folder / "plan.md").exists()
    assert post(client, "/overview/collection/remove", name="papers").status_code == 404
    assert client.get("/overview/collection?name=papers").status_code == 404


def test_contexts_are_added_edited_and_removed(served: Served, client: httpx.Client) -> None:
    post(client, "/overview/context/save", path="notes/2025", text="Die Reise <b>2025</b>")
    assert "Die Reise <b>2025</b>" in text_of(client, "/overview")
    [context] = served.kb.contexts()
    assert "Die Reise" in unescape(client.get("/overview/context?path=" + context.uri).text)
    post(client, "/overview/context/save", path=context.uri, text="一年")
    assert [each.text for each in served.kb.contexts()] == ["一年"]
    answer = post(client, "/overview/context/save", path=context.uri, text="  ")
    assert answer.status_code == 400
    assert "blank" in words(answer)
    answer = post(client, "/overview/context/save", path="nowhere/x", text="t", is_new="yes")
    assert answer.status_code == 400
    post(client, "/overview/context/remove", path=context.uri)
    assert served.kb.contexts() == []
    assert post(client, "/overview/context/remove", path=context.uri).status_code == 404


# --- charts ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40))
def test_bars_stay_in_the_drawing_and_the_table_has_what_they_show(values: list[int]) -> None:
    chart = [(f"day {number}", value, value) for number, value in enumerate(values)]
    shown = {"per_day": chart, "per_hour": [("12:00", 0, 0)], "searches": []}
    text = rendered_template("health_charts.html", "en", shown)
    bars = re.findall(
        r'<rect class="lower" x="(\d+)" y="([\d.]+)" width="8" height="([\d.]+)"', text
    )
    assert len(bars) == sum(value > 0 for value in values)
    for x, y, height in bars:
        assert int(x) + 8 <= len(values) * 10
        assert float(y) >= 0 and float(height) >= 1.5
        assert float(y) + float(height) == pytest.approx(100)
    rows = re.findall(r'<th scope="row">(day \d+)</th><td class="right">([\d,]+)</td>', text)
    shown_values = [(label, f"{value:,}") for label, value, _ in reversed(chart) if value]
    assert rows == shown_values


@given(st.lists(st.integers(0, (DAYS - 1) * 24), unique=True), st.integers(-12, 12))
def test_each_document_is_counted_on_one_day(hours_ago: list[int], offset: int) -> None:
    now = datetime(2026, 11, 23, 12, 30, tzinfo=timezone(timedelta(hours=offset)))
    latest = now.astimezone(timezone.utc).replace(minute=0)
    hours = {latest - timedelta(hours=back): back + 1 for back in hours_ago}
    chart = documents_per_day(hours, now)
    assert sum(count for _, _, count in chart) == sum(hours.values())
