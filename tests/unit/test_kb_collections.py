"""Collections and contexts: names, places, renaming, removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    CollectionNotFoundError,
    ConflictError,
    ContextNotFoundError,
    InputError,
    NotFoundError,
    QmdError,
)
from qmd.values import Filters
from tests.support.embedder import HashEmbedder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for name in ("plan.md", "2025/plan.md", "2025/q1/plan.md", "2025b/plan.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# Plan {name}\n\nsourdough\n")
    return root


@pytest.fixture
def kb(tmp_path: Path, root: Path) -> Iterator[KnowledgeBase]:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root)
        kb.index()
        yield kb


# --- included collections ---------------------------------------------------------------


def test_searches_leave_out_an_excluded_collection_unless_they_name_it(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive/old.md").write_text("# Old\n\nsourdough\n")
    kb.add_collection(tmp_path / "archive")
    kb.index()
    kb.embed()

    def collections(**filters: Any) -> set[str]:
        searches = (kb.search, kb.vsearch, kb.query)
        replies = [ask("sourdough", limit=50, filters=Filters(**filters)) for ask in searches]
        sets = [{hit.file.partition("/")[0] for hit in reply.hits} for reply in replies]
        assert sets[0] == sets[1] == sets[2]
        return sets[0]

    assert collections() == {"notes", "archive"}
    assert not kb.include_collection("archive", included=False).included
    assert collections() == {"notes"}
    assert collections(collections=("archive",)) == {"archive"}
    assert collections(path="archive") == {"archive"}
    kb.include_collection("notes", included=False)
    with pytest.raises(InputError, match="left out"):
        collections()
    kb.include_collection("archive", included=True)
    assert collections() == {"archive"}
    with pytest.raises(CollectionNotFoundError):
        kb.include_collection("archiv", included=False)


# --- collections -----------------------------------------------------------------------


def test_a_collection_is_named_after_its_directory_and_knows_its_path(
    kb: KnowledgeBase, root: Path
) -> None:
    collection = kb.collection("notes")
    assert (collection.name, collection.path, collection.documents) == ("notes", str(root), 4)
    assert collection.last_indexed is not None


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("a/b", "b"), ("with space", "with space"), ("-dashes", "dashes"), ("~tilde", "tilde"),
        ("笔记", "笔记"), ("a#b,c*d[e]", "a-b-c-d-e-"), ("x" * 200, "x" * 100), ("---", "root"),
    ],
)  # fmt: skip
def test_any_directory_name_gives_a_usable_collection_name(
    tmp_path: Path, kb: KnowledgeBase, directory: str, name: str
) -> None:
    folder = tmp_path / "more" / directory
    folder.mkdir(parents=True)
    (folder / "x.md").write_text("# X\n")
    assert kb.add_collection(folder).name == name
    kb.index([name])
    assert kb.get(f"{name}/x.md").text == "# X\n"


@pytest.mark.parametrize(
    "name",
    ["", " ", " a", "a/b", "a\\b", "a,b", "#a", "a*", "a?", "[a]", "{a}", "..", ".", "-a", "~a",
     "a\nb", "a\0b", "\ud800", "x" * 101],
)  # fmt: skip
def test_a_name_that_could_not_be_written_in_a_path_is_refused(
    kb: KnowledgeBase, root: Path, name: str
) -> None:
    for use in (
        lambda: kb.add_collection(root, name=name),
        lambda: kb.rename_collection("notes", name),
    ):
        with pytest.raises(InputError) as caught:
            use()
        assert caught.value.hint
    assert [collection.name for collection in kb.collections()] == ["notes"]


def test_what_is_no_readable_directory_is_refused(tmp_path: Path, kb: KnowledgeBase) -> None:
    (tmp_path / "file.md").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    bad = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad \xff"))
    bad.mkdir()
    with pytest.raises(NotFoundError):
        kb.add_collection(tmp_path / "nowhere")
    for path in (tmp_path / "file.md", tmp_path / "loop", "a\0b", bad):
        with pytest.raises(QmdError) as caught:
            kb.add_collection(path, name="x")
        str(caught.value).encode()
    assert len(kb.collections()) == 1


def test_a_name_is_taken_once(tmp_path: Path, kb: KnowledgeBase, root: Path) -> None:
    with pytest.raises(ConflictError):
        kb.add_collection(root)
    kb.add_collection(root, name="again")
    with pytest.raises(ConflictError):
        kb.rename_collection("again", "notes")
    kb.index()
    assert {c.name: c.documents for c in kb.collections()} == {"notes": 4, "again": 4}


def test_a_renamed_collection_keeps_everything(kb: KnowledgeBase, root: Path) -> None:
    kb.embed()
    kb.add_context("qmd://notes/2025", "the year")
    before = [(d.id, d.path) for d in kb.documents()]
    kb.rename_collection("notes", "journal")
    assert [(d.id, d.path) for d in kb.documents("journal")] == before
    assert kb.get("journal/2025/plan.md").context == "the year"
    assert kb.status().needs_embedding == 0
    report = kb.index()
    assert (report.unchanged, report.added, report.removed) == (4, 0, 0)
    with pytest.raises(CollectionNotFoundError):
        kb.collection("notes")


def test_a_removed_collection_takes_its_own_along_and_nothing_else(
    tmp_path: Path, kb: KnowledgeBase, root: Path
) -> None:
    kb.add_collection(root, name="other")
    (root / "bad.md").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    kb.add_context("qmd://notes", "gone soon")
    kb.add_context("qmd://other", "stays")
    kb.add_context("/", "everywhere")
    kb.index()
    kb.embed()
    kb.remove_collection("notes")
    status = kb.status()
    assert (status.total_documents, status.chunks, status.chunks_embedded) == (4, 4, 4)
    assert {skip.collection for skip in status.skipped} == {"other"}
    assert [context.text for context in kb.contexts()] == ["everywhere", "stays"]
    assert {hit.collection for hit in kb.query("sourdough", limit=None).hits} == {"other"}
    assert (root / "plan.md").exists()
    with pytest.raises(CollectionNotFoundError) as caught:
        kb.remove_collection("othe")
    assert caught.value.suggestions == ("other",)


def test_mask_and_ignore_choose_the_documents(kb: KnowledgeBase, root: Path) -> None:
    (root / "list.txt").write_text("a list")
    kb.add_collection(root, name="some", mask="**/*.{md,txt}", ignore=["2025/"])
    kb.index()
    paths = [document.path for document in kb.documents("some")]
    assert paths == ["2025b/plan.md", "list.txt", "plan.md"]
    assert kb.collection("some").ignore == ("2025/",)
    for mask in ("", "{a", "../*.md"):
        with pytest.raises(InputError):
            kb.add_collection(root, name="x", mask=mask)


def test_indexing_names_that_are_no_collections_is_an_error(kb: KnowledgeBase) -> None:
    with pytest.raises(CollectionNotFoundError):
        kb.index(["notes", "nowhere"])


# --- contexts --------------------------------------------------------------------------


def test_contexts_apply_to_whole_components_from_the_global_to_the_specific(
    kb: KnowledgeBase,
) -> None:
    kb.add_context("qmd://notes/2025/q1", "first quarter")
    kb.add_context("qmd://notes/2025", "the year")
    kb.add_context("/", "everything")
    kb.add_context("qmd://notes/", "my notes")
    kb.add_context("qmd://notes/2025b/plan.md", "one file")
    assert {d.path: kb.get(d.file).context for d in kb.documents()} == {
        "plan.md": "everything\n\nmy notes",
        "2025/plan.md": "everything\n\nmy notes\n\nthe year",
        "2025/q1/plan.md": "everything\n\nmy notes\n\nthe year\n\nfirst quarter",
        "2025b/plan.md": "everything\n\nmy notes\n\none file",
    }
    (hit,) = [h for h in kb.search("sourdough").hits if h.path == "2025/plan.md"]
    assert hit.context == "everything\n\nmy notes\n\nthe year"


def test_one_place_has_many_spellings(
    kb: KnowledgeBase, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    (root / "中 文").mkdir()
    for number, spelling in enumerate(
        ["qmd://notes/%E4%B8%AD%20%E6%96%87", "qmd://notes/中 文/", "中 文", "./中 文/",
         str(root / "中 文"), str(root / "2025/../中 文"), "notes/中 文"]
    ):  # fmt: skip
        context = kb.add_context(spelling, f"text {number}")
        assert (context.collection, context.prefix) == ("notes", "中 文"), spelling
        assert context.path == str(root / "中 文")
    (context,) = kb.contexts()
    assert context.text == "text 6"
    assert context.uri == "qmd://notes/%E4%B8%AD%20%E6%96%87"
    for spelling in ("/", "qmd://"):
        assert kb.add_context(spelling, "all").collection is None


def test_contexts_follow_the_collection_and_go_one_by_one(kb: KnowledgeBase) -> None:
    kb.add_context("qmd://notes/2025", "the year")
    kb.add_context("/", "all")
    kb.rename_collection("notes", "journal")
    assert [context.uri for context in kb.contexts()] == ["/", "qmd://journal/2025"]
    with pytest.raises(CollectionNotFoundError):
        kb.remove_context("qmd://notes/2025")
    assert kb.remove_context("qmd://journal/2025").text == "the year"
    with pytest.raises(ContextNotFoundError) as caught:
        kb.remove_context("qmd://journal/2025")
    assert caught.value.hint
    assert [context.text for context in kb.contexts()] == ["all"]


@pytest.mark.parametrize("path", ["/etc", "qmd://nowhere/x", "nowhere", "a\0b"])
def test_a_context_needs_a_collection(kb: KnowledgeBase, path: str) -> None:
    with pytest.raises((InputError, NotFoundError)) as caught:
        kb.add_context(path, "x")
    assert caught.value.hint
    with pytest.raises(InputError):
        kb.add_context("/", " \n")
    assert kb.contexts() == []


def test_the_innermost_collection_owns_a_place(kb: KnowledgeBase, root: Path) -> None:
    kb.add_collection(root / "2025", name="year")
    assert kb.add_context(str(root / "2025/q1"), "x").uri == "qmd://year/q1"


# --- before a collection is added ------------------------------------------------------


def test_a_preview_counts_what_a_new_collection_would_hold(tmp_path: Path) -> None:
    folder = tmp_path / "new notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "node_modules").mkdir()
    for name in ("a.md", "sub/b.md", "node_modules/c.md", ".d.md", "drop.md", "e.txt"):
        (folder / name).write_text("# T\n")
    preview = KnowledgeBase.preview_collection(folder, ignore=["drop.md"])
    assert (preview.name, preview.path) == ("new notes", str(folder))
    assert preview.examples == ("a.md", "sub/b.md")
    assert (preview.files, preview.bytes, preview.skipped) == (2, 8, 0)
    assert preview.excluded == {"hidden": 1, "ignore option": 1, "mask": 1, "node_modules": 1}
    assert preview.is_complete


def test_a_preview_ends_when_its_time_is_up(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    preview = KnowledgeBase.preview_collection(tmp_path, name="n", budget_s=-1)
    assert not preview.is_complete
    assert preview.files == 0


def test_a_preview_refuses_what_no_collection_can_be(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        KnowledgeBase.preview_collection(tmp_path / "none")
    with pytest.raises(InputError):
        KnowledgeBase.preview_collection(tmp_path, name="a/b")
