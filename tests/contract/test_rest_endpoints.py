"""The 18 endpoints of the interface: shapes and texts to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.embedder import DIMENSION, HashEmbedder
from support.rest import rest_client
from support.vault import make_vault

from qmd import KnowledgeBase, Settings
from qmd.errors import ModelMissingError
from qmd.operations import texts
from qmd.tools.arguments import parse_arguments
from qmd.tools.toolsets import tools_of
from qmd.values.search import VSEARCH_MIN_SCORE
from qmd.values.text import DEFAULT_MASK

TOOLS = tools_of("qmd", alone=True)

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class NoModel(HashEmbedder):
    """Is not on this machine."""

    def embed_passages(self, texts: Any) -> Any:
        raise ModelMissingError("The model x is not here.", hint="qmd models pull x")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return make_vault(tmp_path)


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[KnowledgeBase]:
    database = tmp_path / "index.sqlite"
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder()), create=True) as opened:
        opened.add_collection(notes, name="notes")
        opened.index()
        opened.add_context("qmd://notes/2025", "the year 2025")
        yield opened


@pytest.fixture
def client(kb: KnowledgeBase) -> Iterator[httpx.Client]:
    with rest_client(kb) as asked:
        yield asked


def post(client: httpx.Client, address: str, /, **body: Any) -> Any:
    response = client.post(address, json=body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def refused(response: Any, status: int) -> str:
    """The detail of an error, which has the one shape and nothing else."""
    body = response.json()
    assert list(body) == ["detail", "status_code"]
    assert response.status_code == body["status_code"] == status, body
    return str(body["detail"])


# --- search --------------------------------------------------------------------------


def test_a_search_answers_with_hits_and_a_summary(client: httpx.Client) -> None:
    reply = post(client, "/search", query="islands", limit=5, min_score=0.5)
    (hit,) = reply["results"]
    score = hit["score"]
    assert hit | {"score": 0, "relevance": 0} == {
        "docid": hit["docid"],
        "file": "notes/2025/plan.md",
        "title": "Plan",
        "score": 0,
        "context": "the year 2025",
        "snippet": "3: Buy a boat.\n4: Sail to the islands.\n5: Come back.",
        "line": 4,
        "relevance": 0,
        "match": "exact",
    }
    assert re.fullmatch("#[0-9a-f]{6}", hit["docid"])
    percent = round(score * 100)
    assert reply["content"] == (
        f'Found 1 result for "islands":\n\n{hit["docid"]} {percent}% notes/2025/plan.md - Plan'
    )
    assert ISO.fullmatch(reply["freshness"].pop("last_sync"))
    assert reply["freshness"] == {"files_pending": 0, "embeddings_pending": 9, "indexing": False}
    assert set(reply) == {"results", "content", "freshness"}


def test_a_notice_says_that_nothing_seems_to_answer(client: httpx.Client) -> None:
    query = "islands zeppelin quasar marmalade trombone glacier orchid sonata walnut monsoon"
    for path in ("/search", "/query"):
        reply = post(client, path, query=query)
        assert reply["notice"] == "Nothing here seems to answer this; the nearest are:"
        assert reply["results"][0]["score"] == reply["results"][0]["relevance"] < 0.2
        assert reply["content"].startswith("Found 1 result for")


def test_nothing_found_is_no_error(client: httpx.Client) -> None:
    reply = post(client, "/search", query="zeppelin")
    assert reply["results"] == []
    assert reply["content"] == 'No results found for "zeppelin"'


@pytest.mark.parametrize("path", ["/search", "/vsearch", "/query"])
@pytest.mark.parametrize("query", ["", " \t\n　"])
def test_a_blank_query_finds_nothing_and_is_no_error(
    client: httpx.Client, kb: KnowledgeBase, path: str, query: str
) -> None:
    kb.embed()
    assert post(client, path, query=query)["results"] == []


def test_vsearch_without_vectors_says_how_to_make_them(client: httpx.Client) -> None:
    assert (
        refused(client.post("/vsearch", json={"query": "islands"}), 503)
        == "Vector index not found. Run 'qmd embed' first to create embeddings."
    )


def test_vsearch_and_its_lowest_score(client: httpx.Client, kb: KnowledgeBase) -> None:
    kb.embed()
    few = post(client, "/vsearch", query="sail to the islands")["results"]
    all_ = post(client, "/vsearch", query="sail to the islands", min_score=0)["results"]
    assert few
    assert len(few) < len(all_)
    assert all(hit["score"] >= VSEARCH_MIN_SCORE for hit in few)
    assert post(client, "/vsearch", query=" ")["results"] == []


def test_similar_to_an_edited_document_is_a_conflict_until_it_is_embedded(
    client: httpx.Client, kb: KnowledgeBase, notes: Path
) -> None:
    kb.embed()
    (notes / "new.md").write_text("# New\n\nA boat to the islands.\n")
    kb.index()
    asked = "/similar?file=notes/new.md"
    assert refused(client.get(asked), 409) == (
        "notes/new.md has no vectors yet.\n\nRun 'qmd embed' to make them."
    )
    kb.embed()
    assert client.get(asked).json()["documents"]


def test_query_without_vectors_says_what_is_missing(client: httpx.Client) -> None:
    reply = post(client, "/query", query="islands")
    assert [hit["file"] for hit in reply["results"]] == ["notes/2025/plan.md"]
    assert reply["degraded"].startswith("Answered from full text alone")
    assert reply["needs_embedding"] == 9


def test_query_with_vectors_is_not_degraded(client: httpx.Client, kb: KnowledgeBase) -> None:
    kb.embed()
    reply = post(client, "/query", query="islands")
    assert reply["results"][0]["file"] == "notes/2025/plan.md"
    assert not {"degraded", "needs_embedding"} & set(reply)


def test_filters_mean_what_they_mean_everywhere(client: httpx.Client) -> None:
    def files(**filters: Any) -> set[str]:
        reply = post(client, "/search", query="the OR a OR we", limit=50, **filters)
        return {hit["file"] for hit in reply["results"]}

    everything = files()
    below = files(path="2025")
    assert below
    assert below < everything
    assert files(path="notes/2025") == below
    assert all(file.startswith("notes/2025/") for file in below)
    assert files(collection="notes") == everything
    assert files(tags=["nothing"]) == files(before="1990") == set()
    assert files(after="1990-01-01") == everything
    explained = post(client, "/search", query="islands", explain=True)["results"][0]
    assert explained["explain"]


@pytest.mark.parametrize("path", ["/search", "/vsearch", "/query"])
def test_an_unknown_collection_is_not_found(
    client: httpx.Client, kb: KnowledgeBase, path: str
) -> None:
    kb.embed()
    detail = refused(client.post(path, json={"query": "x", "collection": "note"}), 404)
    assert detail == "Collection not found: note\n\nDid you mean: notes"


# --- get and multi_get ---------------------------------------------------------------


def test_a_document_comes_with_its_name_title_and_context(client: httpx.Client) -> None:
    assert post(client, "/get", file="notes/2025/plan.md") == {
        "document": {
            "uri": "qmd://notes/2025/plan.md",
            "name": "notes/2025/plan.md",
            "title": "Plan",
            "mimeType": "text/markdown",
            "text": "# Plan\n\nBuy a boat.\nSail to the islands.\nCome back.\n",
            "context": "the year 2025",
        },
        "content": None,
    }


def test_lines_can_be_chosen_and_numbered(client: httpx.Client) -> None:
    def text(**arguments: Any) -> str:
        return str(post(client, "/get", **arguments)["document"]["text"])

    assert text(file="notes/2025/plan.md:3", max_lines=1) == "Buy a boat."
    assert text(file="notes/2025/plan.md:4", from_line=1, max_lines=1, line_numbers=True) == (
        "4: Sail to the islands."
    )
    assert text(file="2025/plan.md", max_lines=2, line_numbers=True) == "1: # Plan\n2: "
    assert text(file="2025/plan.md:2:1", line_numbers=True) == "2: "
    assert text(file="2025/plan.md", max_lines=2) == "# Plan\n"
    assert text(file="2025/plan.md", from_line=-5, max_lines=1) == "# Plan"
    assert text(file="2025/plan.md", from_line=10**15) == ""
    assert text(file="2025/plan.md", max_lines=10**15).startswith("# Plan")


def test_get_takes_every_name_a_document_has(client: httpx.Client, notes: Path) -> None:
    def name(file: str) -> str:
        return str(post(client, "/get", file=file)["document"]["name"])

    docid = post(client, "/search", query="islands")["results"][0]["docid"]
    for file in (docid, docid[1:], "qmd://notes/2025/plan.md", str(notes / "2025/plan.md")):
        assert name(file) == "notes/2025/plan.md"
    assert name("qmd://notes%2F2025%2F%20meeting.md") == "notes/2025/ meeting.md"
    assert name("notes/100%.md") == "notes/100%.md"


def test_a_missing_document_has_suggestions(client: httpx.Client) -> None:
    detail = refused(client.post("/get", json={"file": "notes/2025/plam.md"}), 404)
    assert detail.startswith(
        "Document not found: notes/2025/plam.md\n\nDid you mean one of these?\n"
        "  - notes/2025/plan.md"
    )
    detail = refused(client.post("/get", json={"file": "qqqqqqqqqq"}), 404)
    assert detail == "Document not found: qqqqqqqqqq"


def test_several_documents_come_in_order_with_notices_between_them(client: httpx.Client) -> None:
    reply = post(client, "/multi_get", pattern="notes/{2025/plan,big}.md", max_lines=1)
    assert reply == {
        "results": [
            {
                "uri": "qmd://notes/2025/plan.md",
                "name": "notes/2025/plan.md",
                "title": "Plan",
                "mimeType": "text/markdown",
                "text": "# Plan\n\n[...truncated 4 more lines]",
                "context": "the year 2025",
            },
            {
                "type": "text",
                "text": "[SKIPPED: notes/big.md - File too large (15KB). "
                "Use 'qmd get' with file=\"notes/big.md\" to retrieve.]",
            },
        ],
        "content": None,
    }


def test_multi_get_by_a_list_says_first_what_is_missing(client: httpx.Client) -> None:
    results = post(client, "/multi_get", pattern="notes/2025/plan.md, plam.md")["results"]
    assert results[0] == {
        "type": "text",
        "text": "Errors:\nFile not found: plam.md (did you mean: notes/2025/plan.md?)",
    }
    assert results[1]["name"] == "notes/2025/plan.md"


def test_multi_get_without_a_match(client: httpx.Client) -> None:
    response = client.post("/multi_get", json={"pattern": "*.txt"})
    assert refused(response, 404) == "No files matched pattern: *.txt"
    response = client.post("/multi_get", json={"pattern": "qqqq, wwww"})
    assert refused(response, 404) == "Errors:\nFile not found: qqqq\nFile not found: wwww"


def test_the_listing_goes_page_by_page(client: httpx.Client, kb: KnowledgeBase) -> None:
    expected = [each.file for each in kb.documents()]
    found: list[str] = []
    while True:
        page = client.get("/documents", params={"limit": 4, "offset": len(found)}).json()
        assert (page["total"], page["limit"], page["offset"]) == (9, 4, len(found))
        if not page["documents"]:
            break
        found += [each["file"] for each in page["documents"]]
    assert found == expected
    (plan,) = (
        each
        for each in client.get("/documents?prefix=notes/2025").json()["documents"]
        if each["title"] == "Plan"
    )
    assert ISO.fullmatch(plan.pop("modified"))
    assert re.fullmatch("#[0-9a-f]{6}", plan.pop("docid"))
    assert plan == {
        "file": "notes/2025/plan.md",
        "uri": "qmd://notes/2025/plan.md",
        "collection": "notes",
        "path": "2025/plan.md",
        "title": "Plan",
        "bytes": 52,
    }
    refused(client.get("/documents?prefix=elsewhere"), 404)


# --- status and models ---------------------------------------------------------------


def test_status_tells_that_a_folder_is_gone(client: httpx.Client, notes: Path) -> None:
    (before,) = client.get("/status").json()["collections"]
    moved = notes.rename(notes.with_name("moved"))
    try:
        reply = client.get("/status").json()
    finally:
        moved.rename(notes)
    assert reply["collections"] == [{**before, "missing": True}]


def test_status_tells_what_is_indexed_and_how_fresh(
    client: httpx.Client, kb: KnowledgeBase, notes: Path
) -> None:
    reply = client.get("/status").json()
    assert ISO.fullmatch(reply["collections"][0].pop("last_updated"))
    freshness = reply.pop("freshness")
    assert ISO.fullmatch(freshness.pop("last_sync"))
    assert freshness == {"files_pending": 0, "embeddings_pending": 9, "indexing": False}
    assert reply == {
        "total_documents": 9,
        "needs_embedding": 9,
        "has_vector_index": False,
        "collections": [
            {"name": "notes", "path": str(notes), "pattern": DEFAULT_MASK, "documents": 9}
        ],
        "content": (
            "QMD Index Status:\n  Total documents: 9\n  Needs embedding: 9\n"
            f"  Vector index: no\n  Collections: 1\n    - {notes} (9 docs)"
        ),
    }


@pytest.mark.parametrize("kind", [{}, {"kind": "query"}, {"kind": "passage"}])
def test_texts_become_unit_vectors_in_their_order(
    client: httpx.Client, kind: dict[str, str]
) -> None:
    vectors = post(client, "/embed", texts=["one", "", "three"] * 20, **kind)["embeddings"]
    assert [len(vector) for vector in vectors] == [DIMENSION] * 60
    assert vectors[0] == vectors[3] != vectors[1]
    assert sum(value * value for value in vectors[0]) == pytest.approx(1)


def test_a_list_of_texts_has_its_limits(client: httpx.Client) -> None:
    assert refused(client.post("/embed", json={"texts": []}), 400) == "Empty texts list"
    many = client.post("/embed", json={"texts": ["a"] * 1001})
    assert refused(many, 413) == "Too many texts (1001 > 1000)"
    detail = refused(client.post("/embed", json={"texts": ["a"], "kind": "vector"}), 400)
    assert detail.endswith('kind must be "query" or "passage", got "vector"')


def test_without_a_model_no_text_is_embedded(tmp_path: Path) -> None:
    database = tmp_path / "empty.sqlite"
    with (
        KnowledgeBase.open(database, Settings(embedder=NoModel()), create=True) as kb,
        rest_client(kb) as client,
    ):
        assert refused(client.post("/embed", json={"texts": ["a"]}), 503) == "Model not loaded"


def test_health_tells_nothing_more(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "healthy", "model_loaded": True}


def test_health_is_true_to_the_engine(client: httpx.Client, kb: KnowledgeBase) -> None:
    kb.close()
    response = client.get("/health")
    assert response.status_code == 503
    assert response.json() == {"status": "unhealthy", "model_loaded": True}


# --- collections ---------------------------------------------------------------------


def test_a_collection_from_its_first_day_to_its_last(client: httpx.Client, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "one.md").write_text("# One\n", encoding="utf-8")
    (docs / "two.txt").write_text("Two\n", encoding="utf-8")
    assert post(client, "/collections/add", name="my-docs", path=str(docs)) == {
        "status": "added",
        "name": "my-docs",
        "path": str(docs),
        "documents": 1,
        "content": "Added collection 'my-docs' with 1 document",
    }
    listed = client.get("/collections").json()
    assert listed["content"] in (
        "Collections: 2\n- my-docs (1 docs)\n- notes (9 docs)",
        "Collections: 2\n- notes (9 docs)\n- my-docs (1 docs)",
    )
    mine = {"name": "my-docs", "path": str(docs), "pattern": "**/*.md", "documents": 1}
    assert mine in listed["collections"]
    details = client.get("/collections/my-docs").json()
    assert ISO.fullmatch(details.pop("last_indexed"))
    assert details == mine
    renamed = client.put("/collections/my-docs", json={"new_name": "my-docs-v2"})
    assert renamed.json() == {
        "status": "renamed",
        "old_name": "my-docs",
        "new_name": "my-docs-v2",
        "content": "Renamed 'my-docs' to 'my-docs-v2'",
    }
    assert client.delete("/collections/my-docs-v2").json() == {
        "status": "removed",
        "name": "my-docs-v2",
        "content": "Removed collection 'my-docs-v2'",
    }
    for response in (
        client.get("/collections/my-docs"),
        client.delete("/collections/my-docs"),
        client.put("/collections/my-docs", json={"new_name": "x"}),
    ):
        assert refused(response, 404).startswith("Collection not found: my-docs")


def test_a_collection_may_be_called_add(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    post(client, "/collections/add", name="add", path=str(tmp_path / "x"))
    assert client.get("/collections/add").json()["name"] == "add"
    post(client, "/contexts/add", path="qmd://add", text="all of it")
    assert client.delete("/contexts/add").json()["path"] == str(tmp_path / "x")
    renamed = client.put("/collections/add", json={"new_name": "b"}).json()
    assert renamed["content"] == "Renamed 'add' to 'b'"
    refused(client.delete("/collections/add"), 404)


def test_several_documents_are_counted_in_the_plural(client: httpx.Client, tmp_path: Path) -> None:
    for name in ("1.md", "2.txt"):
        (tmp_path / "more").mkdir(exist_ok=True)
        (tmp_path / "more" / name).write_text("x", encoding="utf-8")
    reply = post(
        client,
        "/collections/add",
        name="more",
        path=str(tmp_path / "more"),
        glob_pattern="**/*.{md,txt}",
    )
    assert reply["content"] == "Added collection 'more' with 2 documents"
    assert post(client, "/index")["content"] == "Indexed 2 collections: 11 documents"
    assert post(client, "/update")["content"] == "Updated 2 collections"


def test_what_cannot_be_added(client: httpx.Client, tmp_path: Path, notes: Path) -> None:
    def add(name: str, path: Path, **more: str) -> Any:
        return client.post("/collections/add", json={"name": name, "path": str(path), **more})

    assert "is the collection 'notes' already" in refused(add("notes", notes), 409)
    assert refused(add("x", tmp_path / "no"), 400).startswith("There is no directory")
    assert "is a file" in refused(add("x", notes / "2025/plan.md"), 400)
    assert "Not a usable collection name" in refused(add("a/b", notes), 400)
    refused(add("x", notes, glob_pattern="{" * 5000), 400)
    other = tmp_path / "other"
    other.mkdir()
    assert client.get("/collections").json()["content"] == "Collections: 1\n- notes (9 docs)"
    add("other", other)
    assert refused(client.put("/collections/other", json={"new_name": "notes"}), 409).startswith(
        "There is already a collection named 'notes'."
    )


def test_only_below_a_write_root(client: httpx.Client, kb: KnowledgeBase, tmp_path: Path) -> None:
    hidden = tmp_path / ".secret" / "docs"
    hidden.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to("/etc")
    for path in (
        "/",
        "/etc",
        "/usr/share/doc",
        str(hidden),
        str(link),
        f"{tmp_path}/" + "../" * 20 + "etc",
    ):
        response = client.post("/collections/add", json={"name": "x", "path": path})
        assert re.search("qmd collection add|--write-root", refused(response, 403)), path
    assert [each.name for each in kb.collections()] == ["notes"]


def test_explicit_write_roots_replace_the_defaults(kb: KnowledgeBase, tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    roots = [tmp_path / "in"]
    with KnowledgeBase.open(kb.path, Settings(write_roots=roots)) as kb, rest_client(kb) as client:
        outside = client.post("/collections/add", json={"name": "o", "path": str(tmp_path / "out")})
        assert f"--write-root {tmp_path}/out" in refused(outside, 403)
        post(client, "/collections/add", name="i", path=str(tmp_path / "in"))


# --- index ---------------------------------------------------------------------------


def test_index_follows_the_disk(client: httpx.Client, notes: Path) -> None:
    (notes / "new.md").write_text("# New\n\nA dromedary.\n", encoding="utf-8")
    (notes / "100%.md").unlink()
    reply = post(client, "/index")
    assert reply == {
        "status": "indexed",
        "collections": 1,
        "total_documents": 9,
        "content": "Indexed 1 collection: 9 documents",
        "changes": {
            "added": 1,
            "updated": 0,
            "moved": 0,
            "removed": 1,
            "unchanged": 8,
            "skipped": 0,
        },
    }
    assert post(client, "/search", query="dromedary")["results"]


@pytest.mark.parametrize("body", [{}, {"pull": False}, {"pull": True}])
def test_an_update_pulls_or_not_and_says_how_much_it_went_through(
    client: httpx.Client, body: dict[str, bool]
) -> None:
    reply = post(client, "/update", **body)
    assert reply["status"] == "updated"
    assert reply["collections"] == 1
    assert reply["content"] == "Updated 1 collection"


def test_a_vanished_directory_is_told_and_keeps_its_documents(
    client: httpx.Client, notes: Path
) -> None:
    notes.rename(notes.with_name("moved"))
    reply = post(client, "/index")
    assert len(reply["errors"]) == 1
    assert str(notes) in reply["errors"][0]
    assert reply["total_documents"] == 9


# --- contexts ------------------------------------------------------------------------


def test_contexts_are_added_listed_and_shown_with_hits(client: httpx.Client, notes: Path) -> None:
    path = f"{notes}/External Podcast"
    assert post(client, "/contexts/add", path=path, text="talks") == {
        "status": "added",
        "path": path,
        "content": f"Added context for {path}",
    }
    assert post(client, "/contexts/add", path="/", text="mine")["path"] == "/"
    assert client.get("/contexts").json() == {
        "contexts": [
            {"path": "/", "text": "mine"},
            {"path": f"{notes}/2025", "text": "the year 2025"},
            {"path": path, "text": "talks"},
        ]
    }
    hit = post(client, "/search", query="sourdough")["results"][0]
    assert hit["context"] == "mine\n\ntalks"


@pytest.mark.parametrize(
    "written",
    [
        "{encoded}",  # as JavaScript's encodeURIComponent writes it
        "{path}",  # /contexts//path/to/docs
        "{relative}",  # /contexts/path/to/docs
        "qmd%3A%2F%2Fnotes%2F2025",
        "qmd://notes/2025",
        "notes/2025",
    ],
)
def test_a_context_goes_by_every_spelling_of_its_path(
    client: httpx.Client, notes: Path, written: str
) -> None:
    path = f"{notes}/2025"
    address = written.format(
        encoded=path.replace("/", "%2F"), path=path, relative=path.removeprefix("/")
    )
    assert client.delete(f"/contexts/{address}").json() == {"status": "removed", "path": path}
    assert client.get("/contexts").json() == {"contexts": []}
    assert "There is no context for" in refused(client.delete(f"/contexts/{address}"), 404)


def test_the_global_context_is_removed_by_its_name_only(client: httpx.Client) -> None:
    post(client, "/contexts/add", path="/", text="mine")
    refused(client.delete("/contexts/"), 404)
    assert client.delete("/contexts/%2F").json() == {"status": "removed", "path": "/"}


def test_a_context_needs_a_place_and_a_text(client: httpx.Client, tmp_path: Path) -> None:
    for body in ({"path": str(tmp_path), "text": "x"}, {"path": "/", "text": " "}):
        refused(client.post("/contexts/add", json=body), 400)
    refused(client.post("/contexts/add", json={"path": "qmd://nix", "text": "x"}), 400)


# --- one engine, two faces -----------------------------------------------------------


@pytest.mark.parametrize("name", ["search", "query"])
def test_an_endpoint_answers_what_its_tool_answers(
    client: httpx.Client, kb: KnowledgeBase, name: str
) -> None:
    (tool,) = (each for each in TOOLS if each.name == name)
    arguments = parse_arguments(name, tool.arguments, {"query": "the year", "minScore": 0.1})
    told = tool.run(kb, arguments, texts.MCP).structured
    reply = post(client, f"/{name}", query="the year", min_score=0.1)
    assert told is not None
    assert reply["results"] == told["results"]
    assert reply.get("degraded") == told.get("degraded")


def test_the_description_is_compressed_for_those_who_take_it(client: httpx.Client) -> None:
    plain = client.get("/openapi.json", headers={"accept-encoding": "identity"})
    packed = client.get("/openapi.json", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    for refused in ("gzip;q=0", "br, GZIP ; q=0.000"):
        plain = client.get("/openapi.json", headers={"accept-encoding": refused})
        assert "content-encoding" not in plain.headers
    for taken in ("gzip;q=0.5", "identity;q=0, gzip;q=1.0"):
        packed = client.get("/openapi.json", headers={"accept-encoding": taken})
        assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) * 5 < int(plain.headers["content-length"])
    assert packed.json() == plain.json()
