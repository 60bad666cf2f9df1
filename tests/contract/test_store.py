"""What every implementation of `qmd.store` promises, capability by capability."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from qmd.errors import (
    CollectionNotFoundError,
    ConflictError,
    ContextNotFoundError,
    DatabaseMissingError,
    ModelMismatchError,
    ReadOnlyError,
)
from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.parse.segment import phrase_tokens
from qmd.store import Reader, Store, Writer, open_store
from qmd.store.full_text import CONTENT_FIELDS, Expression, Phrase, all_of, any_of, but_not
from qmd.store.sql.access import StoredAccessToken
from qmd.store.sql.files import DocumentPlace, StoredFile
from qmd.store.sql.models import ChunkText, StoredModel, StoredProjection
from qmd.store.sql.revisions import (
    MAX_REVISIONS,
    NO_FILE,
    FileStep,
    RevisionContent,
    pack_revision,
)
from qmd.store.sql.shared import MAX_ANSWER_BYTES
from qmd.store.sql.vectors import pack_vectors
from qmd.values import (
    DocumentAnchor,
    FileState,
    Filters,
    ModelSpec,
    NewDocument,
    SkippedFile,
)
from qmd.values.access import AccessToken, AuditEntry
from qmd.values.chats import ChatInfo
from qmd.values.location import DatabaseLocation, ServerDatabase
from qmd.values.pictures import Picture, PictureCounts, PictureJob, ReadPicture
from qmd.values.reports import SkipCount
from tests.support.live import until

ENGINES = ("sqlite", "postgres")
#: What only a database file can do.
ONLY_FILES = {"test_a_copy_is_a_database"}


@pytest.fixture(params=ENGINES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseLocation:
    """A database of each engine; that of PostgreSQL has its tables already."""
    if request.param == "sqlite":
        return tmp_path / "index.sqlite"
    name = getattr(request.node, "originalname", "")
    if name in ONLY_FILES:
        pytest.skip("a database on a server is no file")
    database: ServerDatabase = request.getfixturevalue("postgres_database")
    return database


@pytest.fixture
def store(location: DatabaseLocation) -> Iterator[Store]:
    with closing(open_store(location, create=True)) as opened:
        yield opened


NOTES = {
    "a.md": "# Apples\n\nRed apples are sweet.\n",
    "b.md": "---\ntags: [fruit/citrus]\ndate: 2025-03-01\n---\n# Lemons\n\nYellow and sour.\n",
    "deep/b.md": "# Bananas\n\nYellow and sweet. See [[a]].\n",
    "zh/笔记.md": "# 笔记\n\n使用Docker部署。\n",
}


def document(path: str, text: str, *, mtime_ns: int = 1_700_000_000_000_000_000) -> NewDocument:
    data = text.encode()
    return new_document(
        path,
        parse_document(path, data),
        hashlib.sha256(data).hexdigest(),
        FileState(len(data), mtime_ns, 1, 1),
    )


def fill(writer: Writer) -> int:
    """Add a collection, ``notes``, with `NOTES`; returns its id."""
    notes = add(writer, "notes")
    for path, text in NOTES.items():
        writer.files.put(notes, document(path, text))
    return notes


@pytest.fixture
def notes(store: Store) -> int:
    """The id of the collection with `NOTES`."""
    return store.write(fill)


@pytest.fixture(scope="module", params=ENGINES)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """A store with `NOTES`, for all tests that only read it."""
    location: DatabaseLocation = tmp_path_factory.mktemp("filled") / "index.sqlite"
    if request.param == "postgres":
        location = request.getfixturevalue("postgres_server").migrated()
    with closing(open_store(location, create=True)) as opened:
        opened.write(fill)
        yield opened


def add(writer: Writer, name: str, path: str = "/home/notes") -> int:
    return writer.collections.add(name=name, path=path, pattern="**/*.md", ignore=["x"]).id


def ids(reader: Reader) -> dict[str, int]:
    return {path: number for number, _, path, _ in reader.documents.identities()}


# --- the store -----------------------------------------------------------------------


def test_a_missing_database_is_not_made_unasked(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissingError):
        open_store(tmp_path / "none.sqlite")


def _scans(writer: Writer) -> list[int]:
    """Two documents of the same file, which has three pictures, and an older one with one."""
    papers = add(writer, "papers", "/papers")
    documents = (("new.pdf", b"new", 3, 2), ("old.pdf", b"old", 1, 1), ("same.pdf", b"new", 3, 2))
    return [
        writer.files.put(
            papers,
            replace(
                document(path, f"Text of {path}\n", mtime_ns=mtime_s * 1_000_000_000),
                pictures=[Picture(page, source, None) for page in range(1, pages + 1)],
            ),
        )
        for path, source, pages, mtime_s in documents
    ]


def test_pictures_are_handed_out_once_those_of_new_files_first(store: Store) -> None:
    new, _, same = store.write(_scans)

    def claim(now: int, read_by: str = "one", but_not: Sequence[int] = ()) -> PictureJob | None:
        return store.write(
            lambda writer: writer.pictures.claim(read_by, now=now, until=now + 100, but_not=but_not)
        )

    first = claim(1000)
    assert first == PictureJob(new, "papers", "/papers", "new.pdf", 1, b"new")
    second, third, fourth = claim(1000), claim(1000), claim(1000)
    assert [each and (each.path, each.page) for each in (second, third, fourth)] == [
        ("new.pdf", 2),
        ("new.pdf", 3),
        ("old.pdf", 1),
    ]
    assert claim(1000) is None
    assert claim(1100, but_not=[new, same]) == fourth  # its process has ended
    assert second is not None and third is not None and fourth is not None

    def put(writer: Writer) -> None:
        writer.pictures.put(first, "one", text="A")
        writer.pictures.put(second, "one", problem="It is damaged.")
        writer.pictures.release(third)

    store.write(put)
    with store.reading() as reader:
        assert reader.pictures.counts() == PictureCounts(7, 3, 2)
        assert reader.pictures.count_waiting("one") == 3
        assert reader.pictures.count_waiting("another") == 7
        assert reader.pictures.are_waiting("one", new)
        assert reader.pictures.texts(b"new") == {1: ReadPicture("one", "A")}
        assert reader.pictures.problems(same) == {2: "It is damaged."}
        assert reader.pictures.to_join() == [("papers", "new.pdf"), ("papers", "same.pdf")]
    assert claim(1000) == third
    better = claim(2000, "better")  # all are read anew; until then, what was read before stays
    assert better == first
    store.write(lambda writer: writer.pictures.put(better, "better", problem="It cannot."))
    with store.reading() as reader:
        assert reader.pictures.texts(b"new") == {1: ReadPicture("better", "A")}


def test_texts_of_pictures_stay_when_their_documents_go(store: Store) -> None:
    new, old, _ = store.write(_scans)

    def read(writer: Writer) -> None:
        for number in range(4):
            job = writer.pictures.claim("one", now=1000, until=1100)
            assert job is not None
            writer.pictures.put(job, "one", text=f"Text {number}")
        collection = writer.collections.by_name("papers").id
        joined = [Picture(page, b"new", "one") for page in (1, 2, 3)]
        again = replace(document("new.pdf", "Text of new.pdf\n"), pictures=joined)
        writer.files.put(collection, again)
        stored = writer.files.in_collection(collection)
        writer.files.delete(collection, [("old.pdf", stored["old.pdf"])])

    store.write(read)
    with store.reading() as reader:
        assert [each.read_by for each in reader.pictures.of_document(new)] == ["one"] * 3
        assert reader.pictures.to_join() == [("papers", "same.pdf")]
        assert reader.pictures.of_document(old) == []
        assert reader.pictures.texts(b"old") == {1: ReadPicture("one", "Text 3")}
    removed = store.write(lambda writer: writer.upkeep.remove_leftovers())
    assert removed["texts of pictures that are gone"] == 1
    store.write(lambda writer: writer.pictures.forget())
    with store.reading() as reader:
        assert not reader.pictures.have_texts()
        assert reader.pictures.count_waiting("one") == 6


def test_places_of_files_are_kept_with_their_document(store: Store) -> None:
    pages = [DocumentAnchor("page", str(n), "ii" if n == 2 else None, 2 * n - 1) for n in (1, 2, 3)]

    def put(writer: Writer, anchors: Sequence[DocumentAnchor]) -> tuple[int, int]:
        number = add(writer, "papers", "/papers") if anchors else collection
        paper = document("a.md", "One\n\nTwo\n\nThree\n")
        paper = replace(paper, parsed=replace(paper.parsed, anchors=tuple(anchors)))
        return number, writer.files.put(number, paper)

    collection, paper = store.write(lambda writer: put(writer, pages))
    other = store.write(lambda writer: writer.files.put(collection, document("b.md", "Text\n")))
    with store.reading() as reader:
        assert reader.documents.anchors(paper) == pages
        assert reader.documents.anchors(other) == []
        for line, page in ((1, pages[0]), (4, pages[1]), (9, pages[2])):
            assert reader.documents.anchors_at({paper: line, other: 1}) == {paper: page}
        assert reader.documents.anchors_at({}) == reader.documents.anchors_at({paper: 0}) == {}
    store.write(lambda writer: put(writer, ()))
    with store.reading() as reader:
        assert reader.documents.anchors(paper) == []


def test_a_failed_write_leaves_nothing(store: Store) -> None:
    def fail(writer: Writer) -> None:
        add(writer, "notes")
        raise KeyError

    with pytest.raises(KeyError):
        store.write(fail)
    with store.reading() as reader:
        assert reader.collections.all() == []


def test_a_reader_sees_one_moment(store: Store) -> None:
    with store.reading() as reader:
        assert reader.collections.all() == []
        store.write(lambda writer: add(writer, "notes"))
        assert reader.collections.all() == []
    with store.reading() as reader:
        assert [collection.name for collection in reader.collections.all()] == ["notes"]


def test_a_writer_reads_what_it_has_written(store: Store) -> None:
    assert store.write(lambda writer: (add(writer, "n"), writer.collections.ids(["n"]))) == (1, [1])


def test_a_store_opened_to_read_refuses_to_write(store: Store, location: DatabaseLocation) -> None:
    with closing(open_store(location, read_only=True)) as reading, pytest.raises(ReadOnlyError):
        reading.write(lambda writer: writer.meta.put("a", "1"))


# --- collections and contexts --------------------------------------------------------


def test_collections_by_name(store: Store) -> None:
    def run(writer: Writer) -> None:
        add(writer, "notes")
        with pytest.raises(ConflictError):
            add(writer, "notes")
        renamed = writer.collections.rename("notes", "pages")
        assert (renamed.name, renamed.path, renamed.ignore) == ("pages", "/home/notes", ("x",))
        with pytest.raises(CollectionNotFoundError) as caught:
            writer.collections.by_name("page")
        assert "pages" in (caught.value.hint or "")
        assert writer.collections.included_names() is None
        assert not writer.collections.set_included("pages", included=False).included
        assert writer.collections.included_names() == []
        assert writer.collections.set_included("pages", included=True) == renamed
        assert writer.collections.remove("pages") == renamed
        with pytest.raises(CollectionNotFoundError):
            writer.collections.require_unchanged(renamed)

    store.write(run)


def test_a_complete_scan_leaves_its_time_and_counts(store: Store, notes: int) -> None:
    with store.reading() as reader:
        before = reader.collections.last_changes()
        assert reader.collections.last_indexed_at() is None
        assert reader.collections.is_vault("notes")
    store.write(
        lambda writer: writer.collections.mark_indexed(
            notes, excluded={"hidden": 2}, changed=True, is_vault=False
        )
    )
    with store.reading() as reader:
        assert reader.collections.last_indexed_at() is not None
        assert reader.collections.excluded_counts() == {"hidden": 2}
        assert not reader.collections.is_vault("notes")
        assert reader.collections.last_changes() != before


def test_a_context_is_replaced_and_goes_with_its_collection(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        writer.contexts.put(None, "", "All of it")
        writer.contexts.put(notes, "deep", "Old")
        context = writer.contexts.put(notes, "deep", "New")
        assert (context.path, context.text) == ("/home/notes/deep", "New")
        assert [each.text for each in writer.contexts.all()] == ["All of it", "New"]
        with pytest.raises(ContextNotFoundError):
            writer.contexts.remove(notes, "other")
        writer.collections.remove("notes")
        assert [each.text for each in writer.contexts.all()] == ["All of it"]

    store.write(run)


# --- documents and files -------------------------------------------------------------


def test_documents_are_found_by_path_name_and_docid(filled: Store) -> None:
    with filled.reading() as reader:
        apples = reader.documents.by_path("notes", "a.md")
        assert apples is not None
        assert (apples.file, apples.title) == ("notes/a.md", "Apples")
        assert reader.documents.by_path("notes", "A.md") is None
        named = reader.documents.with_file_names(["b", "笔记", "none"])
        assert [(each.kind, each.path) for each in sorted(named)] == [
            ("file name", "b.md"), ("file name", "deep/b.md"), ("file name", "zh/笔记.md")
        ]  # fmt: skip
        assert reader.documents.with_file_names(["b.md", ""]) == []
        titled = reader.documents.with_other_names(["apples", "b"])
        assert [(each.kind, each.name, each.path) for each in titled] == [
            ("title", "Apples", "a.md")
        ]
        assert reader.documents.by_docid(apples.docid.lstrip("#")) == [apples]
        assert reader.documents.by_id(apples.id) == apples


def test_documents_below_a_folder_come_in_order_and_in_pages(filled: Store) -> None:
    with filled.reading() as reader:
        paths = [each.path for each in reader.documents.below("notes")]
        assert paths == ["a.md", "b.md", "deep/b.md", "zh/笔记.md"]
        assert [each.path for each in reader.documents.below(None, limit=2, offset=1)] == paths[1:3]
        assert reader.documents.count_below("notes", "deep") == 1
        assert reader.documents.count_below("notes", "dee") == 0
        assert reader.documents.count() == 4
        assert [path for *_, path in reader.documents.places()] == paths


def test_a_document_keeps_its_text_to_the_letter(store: Store, notes: int) -> None:
    with store.reading() as reader:
        for path, number in ids(reader).items():
            assert reader.documents.text(number) == NOTES[path]
            assert reader.documents.text_bytes(number) == len(NOTES[path].encode())
        paths = ["zh/笔记.md", "b.md"]
        chinese, full = reader.documents.full([ids(reader)[path] for path in paths])
        assert [chinese.info.path, full.info.path] == paths
        assert full.text[full.body_start :].lstrip() == "# Lemons\n\nYellow and sour.\n"
        assert reader.documents.full([]) == []


def test_replacing_a_document_keeps_its_id(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        before = ids(writer)
        assert writer.files.put(notes, document("a.md", "# New\n")) == before["a.md"]
        place = DocumentPlace(before["b.md"], "b.md")
        assert writer.files.put(notes, document("c.md", NOTES["b.md"]), place) == before["b.md"]
        assert set(ids(writer)) == {"a.md", "c.md", "deep/b.md", "zh/笔记.md"}
        assert writer.documents.text(before["a.md"]) == "# New\n"

    store.write(run)


def test_documents_of_a_batch_are_put_in_their_order(store: Store, notes: int) -> None:
    with store.reading() as reader:
        moved = DocumentPlace(ids(reader)["a.md"], "a.md")

    def put(writer: Writer) -> list[int]:
        return writer.files.put_all(
            notes,
            [
                (document("new.md", "# New\n"), None),
                (document("moved.md", NOTES["a.md"]), moved),
                (document("a.md", "# In the old place\n"), None),
                (document("b.md", "# Changed\n"), None),
                (document("new.md", "# Newer\n"), None),
            ],
        )

    new, moved_id, old_place, changed, newer = store.write(put)
    assert (new, moved_id) == (newer, moved.id)
    with store.reading() as reader:
        by_path = ids(reader)
        assert by_path["a.md"] == old_place != moved.id
        assert (by_path["moved.md"], by_path["b.md"]) == (moved.id, changed)
        assert sorted(by_path) == ["a.md", "b.md", "deep/b.md", "moved.md", "new.md", "zh/笔记.md"]
        titles = {each.path: each.title for each in reader.documents.below("notes")}
        assert (titles["new.md"], titles["a.md"]) == ("Newer", "In the old place")
        all_documents = reader.all_documents
        for word, path in {"newer": "new.md", "sweet": "moved.md", "changed": "b.md"}.items():
            hits = reader.full_text.search(Phrase(word), all_documents, None)
            assert by_path[path] in [hit for hit, _ in hits]


def test_only_a_document_as_it_was_read_is_deleted(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        stored: dict[str, StoredFile] = writer.files.in_collection(notes)
        writer.files.put(notes, document("a.md", "# Later\n", mtime_ns=5))
        writer.files.delete(notes, [("a.md", stored["a.md"]), ("b.md", stored["b.md"])])
        assert set(ids(writer)) == {"a.md", "deep/b.md", "zh/笔记.md"}
        assert search(writer, Phrase("Lemons")) == []

    store.write(run)


def test_stored_files_by_place_and_hash(store: Store, notes: int) -> None:
    with store.reading() as reader:
        everywhere = reader.files.in_collection(notes)
        assert set(everywhere) == set(NOTES)
        assert reader.files.at_or_below(notes, [""]) == everywhere
        assert set(reader.files.at_or_below(notes, ["deep", "a.md", "de"])) == {"deep/b.md", "a.md"}
        digest = everywhere["a.md"].hash
        assert reader.files.with_hash(notes, digest) == {"a.md": everywhere["a.md"]}
        states = reader.files.states_at(notes, ["a.md", "none.md"])
        assert states == {"a.md": everywhere["a.md"].state}


def test_skips_are_replaced_and_remembered_by_the_parsers_version(store: Store, notes: int) -> None:
    skip = SkippedFile("notes", "big.md", "too_large", "9 GB")
    state = FileState(1, 2, 3, 4)
    store.write(lambda writer: writer.files.replace_skips(notes, [(skip, state)], lambda path: 7))
    with store.reading() as reader:
        assert reader.files.all_skips() == [skip]
        assert reader.files.skips_in_collection(notes, lambda path: 7) == {"big.md": (skip, state)}
        assert reader.files.skips_in_collection(notes, lambda path: 8) == {"big.md": (skip, None)}
        assert reader.files.skip_counts() == [SkipCount("notes", "too_large", 1)]
        assert reader.files.skips("too_large", offset=0, limit=5) == [skip]
        assert reader.files.skips("too_large", offset=1, limit=5) == []
        assert reader.files.skips("binary", offset=0, limit=5) == []
    store.write(lambda writer: writer.files.replace_skips(notes, [], lambda path: 7))
    with store.reading() as reader:
        assert reader.files.all_skips() == []
        assert reader.files.skip_counts() == []


# --- links ---------------------------------------------------------------------------

LINKED = {
    "deep/b.md": "# B\n\n[[A|shown]] and [x](../a.md#top)\n![[Pic.PNG]]\n",
    "c.md": "[web](https://example.com/a.md), [[#top]], [[a#^block]] and [[nowhere]]\n",
    "A.MD": "",
    "é.md": "[[É]]",
}


@pytest.fixture
def linked(store: Store) -> int:
    """The id of a collection, ``linked``, with `LINKED` and two attachments."""

    def fill(writer: Writer) -> int:
        linked = add(writer, "linked")
        for path, text in LINKED.items():
            writer.files.put(linked, document(path, text))
        writer.files.change_attachments(linked, ["img/pic.png", "z.pdf"], [])
        other = add(writer, "other")
        writer.files.put(other, document("a.md", "[[a]]"))
        writer.files.change_attachments(other, ["pic.png"], [])
        return linked

    return store.write(fill)


def test_links_of_a_document_come_as_they_are_written(store: Store, linked: int) -> None:
    with store.reading() as reader:
        number = ids(reader)["deep/b.md"]
        links = reader.links.of_documents([number])
        assert [link[3:] for link in links] == [
            (0, "wikilink", "A", "a", "shown", None, None, 3, None),
            (1, "link", "../a.md", "a", None, "top", None, 3, None),
            (2, "embed", "Pic.PNG", "pic.png", None, None, None, 4, None),
        ]
        assert {link[:3] for link in links} == {(number, "linked", "deep/b.md")}
        web, *_ = reader.links.of_documents([ids(reader)["c.md"]])
        assert (web.target, web.target_key) == ("https://example.com/a.md", None)


def test_links_are_looked_up_by_the_key_of_their_target(store: Store, linked: int) -> None:
    with store.reading() as reader:
        links = reader.links.to_keys("linked", ["a"])
        assert [(link.path, link.seq) for link in links] == [
            ("c.md", 2), ("deep/b.md", 0), ("deep/b.md", 1)
        ]  # fmt: skip
        assert [link.path for link in reader.links.to_keys("linked", ["\u00e9"])] == ["é.md"]
        every = [(link.path, link.target_key) for link in reader.links.in_collection("linked")]
        assert sorted(every) == [
            ("c.md", ""), ("c.md", "a"), ("c.md", "nowhere"), ("deep/b.md", "a"),
            ("deep/b.md", "a"), ("deep/b.md", "pic.png"), ("é.md", "é"),
        ]  # fmt: skip


def test_files_are_looked_up_by_the_key_of_their_name(store: Store, linked: int) -> None:
    with store.reading() as reader:
        files = reader.links.files_with_keys("linked", ["a", "pic.png", "é", "none"])
        number = ids(reader)
        assert sorted(files) == [
            ("A.MD", number["A.MD"]), ("img/pic.png", None), ("é.md", number["é.md"])
        ]  # fmt: skip
        assert reader.links.attachments("linked") == ["img/pic.png", "z.pdf"]
        folders = [reader.links.has_folder("linked", path) for path in ("deep", "img", "dee", ".")]
        assert folders == [True, True, False, False]
        assert reader.links.attachments("linked", limit=1) == ["img/pic.png"]


def test_attachments_change_by_place_and_go_with_their_collection(
    store: Store, linked: int
) -> None:
    def change(writer: Writer) -> None:
        writer.files.change_attachments(linked, ["img/new.png", "img/pic.png"], ["z.pdf", "none"])

    store.write(change)
    with store.reading() as reader:
        at = reader.files.attachments_at_or_below
        assert at(linked, [""]) == at(linked, ["img"]) == {"img/pic.png", "img/new.png"}
        assert at(linked, ["img/pic.png", "im", "bad\udc80"]) == {"img/pic.png"}
    store.write(lambda writer: writer.collections.remove("linked"))
    with store.reading() as reader:
        assert reader.files.attachments_at_or_below(linked, [""]) == set()


# --- full text -----------------------------------------------------------------------


def search(reader: Reader, expression: Expression, filters: Filters | None = None) -> list[str]:
    selection = reader.select(filters) if filters else reader.all_documents
    paths = {number: path for path, number in ids(reader).items()}
    hits = reader.full_text.search(expression, selection, None)
    assert all(score > 0 for _, score in hits)
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
    assert sorted(number for number, _ in hits) == reader.full_text.matching_ids(expression) or (
        filters is not None
    )
    return sorted(paths[number] for number, _ in hits)


YELLOW, SWEET, SOUR = Phrase("yellow"), Phrase("sweet"), Phrase("sour")


@pytest.mark.parametrize(
    ("expression", "paths"),
    [
        (YELLOW, ["b.md", "deep/b.md"]),
        (all_of(YELLOW, SWEET), ["deep/b.md"]),
        (any_of(SOUR, Phrase("red")), ["a.md", "b.md"]),
        (but_not(YELLOW, SOUR), ["deep/b.md"]),
        (but_not(any_of(YELLOW, SWEET), SOUR, Phrase("red")), ["deep/b.md"]),
        (any_of(all_of(YELLOW, SOUR), all_of(Phrase("red"), SWEET)), ["a.md", "b.md"]),
        (any_of(SOUR, SOUR), ["b.md"]),
        (all_of(SOUR), ["b.md"]),
        (but_not(SOUR), ["b.md"]),
        (Phrase("yellow and sweet"), ["deep/b.md"]),
        (Phrase("sweet and yellow"), []),
        (Phrase("yel"), []),
        (Phrase("yel", prefix=True), ["b.md", "deep/b.md"]),
        (Phrase("lemons", fields=("title",)), ["b.md"]),
        (Phrase("yellow", fields=("title",)), []),
        (Phrase("yellow", fields=("title", "body")), ["b.md", "deep/b.md"]),
        (Phrase("deep"), ["deep/b.md"]),
        (Phrase("deep", fields=CONTENT_FIELDS), []),
        (all_of(Phrase("deep", fields=("path",)), YELLOW), ["deep/b.md"]),
        (Phrase('" OR "yellow'), []),
        (Phrase("NOT yellow AND {title} : *"), []),
    ],
)
@pytest.mark.unmeasured
def test_expressions_mean_the_whole_document(
    filled: Store, expression: Expression, paths: list[str]
) -> None:
    with filled.reading() as reader:
        assert search(reader, expression) == paths
        assert reader.full_text.count(expression, 10) == len(paths)
        assert reader.full_text.count(expression, 1) == min(1, len(paths))


@pytest.mark.parametrize("literal", ["使用", "署", "Docker部署", "使用Docker部署", "笔记"])
@pytest.mark.unmeasured
def test_chinese_is_found_by_any_part(filled: Store, literal: str) -> None:
    tokens = phrase_tokens(literal)
    assert tokens is not None
    with filled.reading() as reader:
        assert search(reader, Phrase(*tokens)) == ["zh/笔记.md"]


def test_a_count_follows_what_is_written(store: Store) -> None:
    notes = store.write(lambda writer: add(writer, "notes"))
    for number in (1, 2):
        with store.reading() as reader:
            assert reader.full_text.count(YELLOW, 10) == number - 1
            assert reader.full_text.count(YELLOW, 1) == number - 1
        new = document(f"{number}.md", "yellow")
        store.write(lambda writer, new=new: writer.files.put(notes, new))
    with store.reading() as reader:
        assert reader.full_text.count(YELLOW, 10) == reader.full_text.count(YELLOW, 10) == 2


def test_a_search_for_a_word_does_not_change_its_frequencies(filled: Store) -> None:
    with filled.reading() as reader:
        ids = reader.full_text.matching_ids(YELLOW)
        total = reader.full_text.document_count()
        frequencies = reader.full_text.frequencies(YELLOW, ids, len(ids), total)
    with filled.reading() as reader:
        reader.full_text.search(YELLOW, reader.all_documents, 10)
        assert reader.full_text.frequencies(YELLOW, ids, len(ids), total) == frequencies
        assert reader.full_text.frequencies(YELLOW, [*ids, 99], len(ids), total) == frequencies
        reader.full_text.search(YELLOW, reader.all_documents, 1)
        assert reader.full_text.frequencies(YELLOW, ids, len(ids), total) == frequencies


def test_a_limit_takes_the_best(filled: Store) -> None:
    with filled.reading() as reader:
        all_hits = reader.full_text.search(YELLOW, reader.all_documents, None)
        assert reader.full_text.search(YELLOW, reader.all_documents, 1) == all_hits[:1]


def test_tokens_are_listed_with_the_number_of_their_documents(filled: Store) -> None:
    with filled.reading() as reader:
        listed = reader.full_text.terms("y", 100)
        assert listed["yellow"] == reader.full_text.count(YELLOW, 100)
        assert list(listed) == sorted(listed)
        assert reader.full_text.terms("笔", 100)["笔记"] == 1
        assert len(reader.full_text.terms("", 3)) == 3
        assert reader.full_text.terms("no such token", 100) == {}


def test_merged_full_text_gives_the_same(store: Store) -> None:
    notes = store.write(lambda writer: add(writer, "notes"))
    for number in range(30):
        new = document(f"{number}.md", "yellow")
        store.write(lambda writer, new=new: writer.files.put(notes, new))
    with store.reading() as reader:
        before = reader.full_text.search(YELLOW, reader.all_documents, None)
    assert len(before) == 30
    store.merge_full_text()
    with store.reading() as reader:
        assert reader.full_text.search(YELLOW, reader.all_documents, None) == before


def test_a_document_that_says_it_more_often_has_a_higher_frequency(store: Store) -> None:
    def run(writer: Writer) -> dict[int, float]:
        notes = add(writer, "notes")
        for number, count in enumerate((1, 3, 0, 0, 0)):
            text = " ".join(["apple"] * count + ["pear"] * (8 - count))
            writer.files.put(notes, document(f"{number}.md", text))
        return writer.full_text.frequencies(Phrase("apple"), [1, 2, 3, 99], held=2, total=5)

    frequencies = store.write(run)
    assert set(frequencies) == {1, 2}
    assert 0 < frequencies[1] < frequencies[2]


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        (Filters(), list(NOTES)),
        (Filters(collections=("notes",)), list(NOTES)),
        (Filters(path="deep"), ["deep/b.md"]),
        (Filters(path="notes/deep"), ["deep/b.md"]),
        (Filters(tags=("fruit",)), ["b.md"]),
        (Filters(tags=("fruit/citrus",)), ["b.md"]),
        (Filters(tags=("fru",)), []),
        (Filters(after="2025-03-01"), ["b.md"]),
        (Filters(before="2025-03-01"), ["a.md", "deep/b.md", "zh/笔记.md"]),
    ],
)
@pytest.mark.unmeasured
def test_filters_select_documents(filled: Store, filters: Filters, paths: list[str]) -> None:
    with filled.reading() as reader:
        numbers = ids(reader)
        selection = reader.select(filters)
        assert set(reader.documents.latest_ids(selection)) == {numbers[path] for path in paths}
        texts = dict(reader.documents.names_and_texts(selection))
        assert set(texts) == {numbers[path] for path in paths}
        found = search(reader, any_of(YELLOW, SWEET), filters)
        assert found == [path for path in ("a.md", "b.md", "deep/b.md") if path in paths]


@pytest.mark.parametrize("tag", ["fruit", "FRUIT/Citrus", "fru", "fruit/citrus/lime"])
def test_many_tags_select_as_few_do(filled: Store, tag: str) -> None:
    many = [*(f"un'known/{number}" for number in range(2_000)), tag]
    with filled.reading() as reader:
        select = partial(reader.select, Filters())
        for few, selection in (
            (select(either=[[tag]]), select(either=[many])),
            (select(none_of=[tag]), select(none_of=many)),
        ):
            expected = set(reader.documents.latest_ids(few))
            assert set(reader.documents.latest_ids(selection)) == expected
            hits = reader.full_text.search(any_of(YELLOW, SWEET), few, None)
            assert reader.full_text.search(any_of(YELLOW, SWEET), selection, None) == hits


def test_a_filter_by_an_unknown_collection_is_an_error(filled: Store) -> None:
    with filled.reading() as reader, pytest.raises(CollectionNotFoundError):
        reader.select(Filters(collections=("note",)))


def test_the_latest_documents_come_first(filled: Store) -> None:
    with filled.reading() as reader:
        first = next(iter(reader.documents.latest_ids(reader.all_documents)))
        assert first == ids(reader)["b.md"]


# --- models and vectors --------------------------------------------------------------


SPEC = ModelSpec("m", "fingerprint", 8, 512)


def unit(seed: int) -> np.ndarray:
    vector = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
    return vector / np.linalg.norm(vector)


def embed(writer: Writer, model: StoredModel) -> list[ChunkText]:
    of_model = partial(writer.embeddings.waiting, model, 100)
    chunks = of_model() or of_model(outdated=True)
    packed = pack_vectors(np.stack([unit(chunk.id) for chunk in chunks]))
    vectors = dict(zip((chunk.hash for chunk in chunks), packed, strict=True))
    stored = writer.embeddings.put(model, [(chunk.id, chunk.hash) for chunk in chunks], vectors)
    assert stored == len(chunks)
    return chunks


def test_chunks_wait_until_they_have_their_vectors(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        model = writer.models.begin(SPEC)
        assert writer.models.active() == model
        assert not writer.models.has_vectors()
        waiting = writer.embeddings.count_waiting(model)
        assert waiting == writer.vectors.count_chunks() > 0
        assert writer.upkeep.count_contents_waiting() == 4
        before = writer.vectors.version()
        chunks = embed(writer, model)
        assert writer.vectors.version() > before
        assert "Apples" in chunks[0].title + chunks[0].text
        assert writer.embeddings.count_waiting(model) == 0
        assert writer.models.has_vectors()
        assert writer.embeddings.put(model, [(999, b"x")], {}) == 0  # a chunk that has gone
        # The text stayed the same, so does its vector.
        writer.files.put(notes, document("moved.md", NOTES["a.md"]))
        writer.embeddings.put(
            model, [], writer.embeddings.cached(model, [each.hash for each in chunks])
        )

    store.write(run)


def test_the_nearest_chunks_are_found(store: Store, notes: int) -> None:
    model = store.write(lambda writer: writer.models.begin(SPEC))
    chunks = store.write(lambda writer: embed(writer, model))
    with store.reading() as reader:
        every = list(reader.vectors.all(model, reader.all_documents))
        assert sorted(chunk for chunk, _, _ in every) == [chunk.id for chunk in chunks]
        for chunk in chunks:
            ((nearest, _, vector),) = reader.vectors.nearest(
                model, unit(chunk.id), 1, reader.all_documents
            )
            assert nearest == chunk.id
            assert np.allclose(np.frombuffer(vector, np.float16), unit(chunk.id), atol=1e-3)
        deep = ids(reader)["deep/b.md"]
        selection = reader.select(Filters(path="deep"))
        rows = reader.vectors.nearest(model, unit(1), 10, selection)
        assert {document for _, document, _ in rows} == {deep}
        assert set(reader.vectors.for_documents(model, [deep], 10)) == set(rows)
        assert set(reader.vectors.exact(model, [c.id for c in chunks], selection)) == set(rows)
        rounded = reader.vectors.rounded(model, 0, 100)
        assert [row[0] for row in rounded] == [chunk.id for chunk in chunks]
        assert len(reader.vectors.sample(model, 2)) == 2
        start, end, line = reader.vectors.chunk_spans([rows[0][0]])[rows[0][0]]
        assert (start, line) == (0, 1)
        assert NOTES["deep/b.md"][start:end].startswith("# Bananas")


def test_another_model_takes_over_when_no_vector_is_missing(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        old = writer.models.begin(SPEC)
        embed(writer, old)
        new = writer.models.begin(ModelSpec("n", "other", 8, 512))
        assert (writer.models.active(), writer.models.coming()) == (old, new)
        assert not writer.models.make_active(new)
        embed(writer, new)
        assert writer.models.make_active(new)
        assert (writer.models.active(), writer.models.coming()) == (new, None)
        with pytest.raises(ModelMismatchError):
            writer.embeddings.count_waiting(old)
        assert writer.upkeep.count_leftovers()["models that are not in use"] == 1
        assert writer.upkeep.remove_leftovers()["models that are not in use"] == 1
        assert not any(writer.upkeep.count_leftovers().values())

    store.write(run)


def stale(path: str, title: str, text: str = NOTES["a.md"]) -> NewDocument:
    """The document of a text whose title is read otherwise: its chunks have other hashes."""
    new = document(path, text)
    hashes = [hashlib.sha256(title.encode() + each).digest()[:16] for each in new.chunk_hashes]
    return replace(new, parsed=replace(new.parsed, title=title), chunk_hashes=hashes)


def test_a_chunk_keeps_its_vector_until_that_of_another_title_is_made(
    store: Store, notes: int
) -> None:
    def run(writer: Writer) -> None:
        model = writer.models.begin(SPEC)
        embed(writer, model)
        number = ids(writer)["a.md"]

        def of_document() -> list[tuple[int, int, bytes]]:
            rows = writer.vectors.all(model, writer.all_documents)
            return sorted(row for row in rows if row[1] == number)

        before = of_document()
        writer.files.put(notes, stale("a.md", "Another"))
        assert of_document() == before
        assert writer.upkeep.counts().chunks_outdated == len(before)
        assert writer.upkeep.count_contents_waiting() == 0
        writer.files.put(notes, document("a.md", NOTES["a.md"]))  # the title is what it was
        assert (of_document(), writer.embeddings.count_waiting(model)) == (before, 0)

        writer.files.put(notes, stale("a.md", "Another"))
        writer.files.put(notes, document("new.md", "# New\n\nWithout any vector.\n"))
        (new,) = writer.embeddings.waiting(model, 100)
        assert new.title == "New"
        embed(writer, model)
        assert not any(writer.upkeep.count_leftovers().values())
        outdated = writer.embeddings.waiting(model, 100, outdated=True)
        assert {chunk.title for chunk in outdated} == {"Another"}
        embed(writer, model)
        assert writer.upkeep.counts().chunks_outdated == 0
        after = of_document()
        assert len(after) == len(before)
        # Processes hold vectors by the ids of chunks.
        assert {row[0] for row in after}.isdisjoint(row[0] for row in before)
        present = stale("a.md", "Another").chunk_hashes
        assert {row[2] for row in after} == set(writer.embeddings.cached(model, present).values())
        leftovers = writer.upkeep.count_leftovers()
        assert leftovers["cached vectors of texts that are gone"] == len(before)

    store.write(run)


def test_a_run_hands_out_outdated_chunks_however_low_their_ids_are(
    store: Store, notes: int
) -> None:
    def run(writer: Writer) -> StoredModel:
        model = writer.models.begin(SPEC)
        writer.files.put(notes, document("a.md", NOTES["a.md"]))
        embed(writer, model)
        writer.files.put(notes, stale("a.md", "Another"))
        writer.files.put(notes, document("new.md", "# New\n\nWithout any vector.\n"))
        return model

    model = store.write(run)
    with closing(store.embedding_claims(model)) as claims:
        titles = []
        while chunks := claims.take(1):
            titles.append(chunks[0].title)
            packed = pack_vectors(np.stack([unit(chunks[0].id)]))
            put = [(chunks[0].id, chunks[0].hash)]
            vectors = {chunks[0].hash: packed[0]}
            store.write(lambda writer: writer.embeddings.put(model, put, vectors))  # noqa: B023
        assert titles[0] == "New" and set(titles[1:]) == {"Another"}
    assert store.write(lambda writer: writer.upkeep.counts().chunks_outdated) == 0


def test_the_notes_that_were_changed_last_are_handed_out_first(store: Store, notes: int) -> None:
    day_ns = 86_400_000_000_000
    now_ns = 1_800_000_000_000_000_000

    def run(writer: Writer) -> StoredModel:
        for number, age in enumerate((3, 1, 2)):
            text = f"# {age} days\n\n" + f"## Part\n\n{'word ' * 400}\n\n" * 3
            writer.files.put(notes, document(f"{number}.md", text, mtime_ns=now_ns - age * day_ns))
        return writer.models.begin(SPEC)

    model = store.write(run)
    with closing(store.embedding_claims(model)) as claims:
        titles = []
        while chunks := claims.take(2):
            titles += [chunk.title for chunk in chunks]
            put = [(chunk.id, chunk.hash) for chunk in chunks]
            packed = pack_vectors(np.stack([unit(chunk.id) for chunk in chunks]))
            vectors = {chunk.hash: packed[i] for i, chunk in enumerate(chunks)}
            store.write(lambda writer: writer.embeddings.put(model, put, vectors))  # noqa: B023
    changed_last = titles[: titles.index("3 days")]
    assert changed_last == sorted(changed_last)
    assert set(changed_last) == {"1 days", "2 days"}


def test_a_model_that_takes_over_has_the_vectors_of_the_present_titles(
    store: Store, notes: int
) -> None:
    def run(writer: Writer) -> None:
        old = writer.models.begin(SPEC)
        embed(writer, old)
        new = writer.models.begin(ModelSpec("n", "other", 8, 512))
        embed(writer, new)
        writer.files.put(notes, stale("a.md", "Another"))
        waiting = writer.embeddings.waiting(new, 100)
        assert {chunk.title for chunk in waiting} == {"Another"}
        assert not writer.models.make_active(new)
        embed(writer, new)
        assert len(embed(writer, old)) == len(waiting)  # under new ids
        assert writer.embeddings.count_waiting(new) == 0
        writer.files.put(notes, stale("a.md", "A third"))
        embed(writer, new)
        writer.upkeep.remove_leftovers()  # nothing that is still needed
        assert writer.models.make_active(new)
        assert writer.embeddings.count_waiting(new) == 0
        rows = list(writer.vectors.all(new, writer.all_documents))
        assert len(rows) == writer.vectors.count_chunks()

    store.write(run)


def test_forgotten_vectors_are_made_again(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        model = writer.models.begin(SPEC)
        chunks = embed(writer, model)
        writer.embeddings.forget(model)
        assert writer.embeddings.count_waiting(model) == len(chunks)
        assert writer.embeddings.cached(model, [chunk.hash for chunk in chunks]) == {}

    store.write(run)


def test_the_chosen_model_is_a_note_for_all(store: Store) -> None:
    store.write(lambda writer: writer.models.choose("m"))
    with store.reading() as reader:
        assert reader.models.chosen_name() == "m"
        assert reader.models.active() is None


# --- token states --------------------------------------------------------------------

PROJECTION = StoredProjection("1:abc", 24, b"axes")


def embed_with_tokens(writer: Writer) -> StoredModel:
    """Make the vectors of all chunks, and the token states of all but the first."""
    model = writer.models.begin(SPEC)
    chunks = embed(writer, model)
    writer.tokens.begin(model, PROJECTION)
    writer.tokens.put(model, {chunk.hash: bytes(24) for chunk in chunks[1:]})
    return model


def test_token_states_belong_to_texts_with_a_vector(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        model = writer.models.begin(SPEC)
        assert writer.tokens.projection(model) is None
        chunks = writer.embeddings.waiting(model, 100)
        first, second = chunks[:2]
        assert writer.tokens.count() == 0
        writer.tokens.begin(model, PROJECTION)
        assert writer.tokens.projection(model) == PROJECTION
        assert writer.tokens.put(model, {first.hash: bytes(24)}) == 0
        (vector,) = pack_vectors(unit(1)[None])
        vectors = {first.hash: vector, second.hash: vector}
        places = [(first.id, first.hash), (second.id, second.hash)]
        writer.embeddings.put(model, places, vectors)
        assert writer.tokens.put(model, {first.hash: bytes(48)}) == 1
        assert writer.tokens.count() == 1
        assert writer.tokens.waiting(model, 10, [notes]) == [second]
        assert writer.tokens.waiting(model, 10, [notes + 1]) == []
        assert writer.tokens.count_waiting(model, [notes + 1]) == 0
        assert len(writer.tokens.sample(2)) == 2
        assert [chunk.id for chunk in writer.tokens.sample(100)] == [each.id for each in chunks]
        assert writer.tokens.waiting(model, 10) == [second]
        assert writer.tokens.waiting(model, 10, after=second.id) == []
        assert writer.tokens.count_waiting(model) == 1
        chunk_ids = [chunk.id for chunk in chunks]
        assert writer.tokens.of_chunks(model, chunk_ids, "1:abc") == {first.id: bytes(48)}
        assert writer.tokens.of_chunks(model, chunk_ids, "2:abc") == {}

    store.write(run)


def test_codes_of_an_impossible_length_are_missing(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        model = embed_with_tokens(writer)
        chunks = [chunk_id for chunk_id, _, _ in writer.vectors.all(model, writer.all_documents)]
        (first,) = writer.tokens.waiting(model, 10)
        writer.tokens.put(model, {first.hash: bytes(25)})
        states = writer.tokens.of_chunks(model, chunks, PROJECTION.recipe)
        assert set(states) == set(chunks) - {first.id}

    store.write(run)


def test_another_projection_makes_all_token_states_anew(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        model = embed_with_tokens(writer)
        complete, waiting = writer.tokens.count(), writer.tokens.count_waiting(model)
        assert complete and waiting == 1
        writer.tokens.begin(model, PROJECTION)  # the same again drops nothing
        assert writer.tokens.count() == complete
        writer.tokens.begin(model, PROJECTION._replace(recipe="1:other"))
        assert writer.tokens.count() == 0
        assert writer.tokens.count_waiting(model) == complete + waiting

    store.write(run)


def test_token_states_go_with_their_vectors(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        model = embed_with_tokens(writer)
        chunks = [chunk_id for chunk_id, _, _ in writer.vectors.all(model, writer.all_documents)]
        assert writer.tokens.of_chunks(model, chunks, PROJECTION.recipe)
        writer.embeddings.forget(model)
        assert writer.tokens.of_chunks(model, chunks, PROJECTION.recipe) == {}
        assert not any(writer.upkeep.count_leftovers().values())

    store.write(run)


def test_a_text_embedded_before_has_its_token_states(store: Store, notes: int) -> None:
    def run(writer: Writer) -> None:
        model = embed_with_tokens(writer)
        before = writer.tokens.count()
        writer.files.put(notes, document("moved.md", NOTES["deep/b.md"]))
        chunks = writer.embeddings.waiting(model, 100)
        cached = writer.embeddings.cached(model, [chunk.hash for chunk in chunks])
        writer.embeddings.put(model, [(chunk.id, chunk.hash) for chunk in chunks], cached)
        assert writer.tokens.count() == before + len(chunks)

    store.write(run)


# --- what tools and processes leave --------------------------------------------------


def content(text: str) -> RevisionContent:
    packed = pack_revision(text.encode())
    assert packed is not None
    return packed


def keep(writer: Writer, step: FileStep, session: str = "s") -> tuple[int, int]:
    change = writer.revisions.begin_change(tool="create_note", session=session)
    return change, writer.revisions.keep(change, step)


def test_a_change_that_goes_on_becomes_a_part_of_the_earlier_one(store: Store) -> None:
    def run(writer: Writer) -> None:
        def step(before: str, after: str, path: str = "/n/joined.md") -> FileStep:
            return FileStep(path, "write", content(before), content(after).hash)

        first, _ = keep(writer, step("1", "2"))
        second, _ = keep(writer, step("2", "3"))
        assert not writer.revisions.join(second, first)
        assert writer.revisions.join(first, second)
        assert writer.revisions.change(second) is None
        (kept,) = writer.revisions.history("/n/joined.md")
        assert (kept.number, kept.hash, kept.hash_after) == (
            first,
            content("1").hash,
            content("3").hash,
        )
        for other in (
            keep(writer, step("other", "4")),  # somebody else wrote in between
            keep(writer, step("3", "4"), session="another"),
            keep(writer, step("3", "4")),  # it is not the next one any more
            keep(writer, step("3", "4", "/n/another.md")),
        ):
            assert not writer.revisions.join(first, other[0])
            assert writer.revisions.change(other[0]) is not None

    store.write(run)


def test_the_oldest_revisions_of_a_file_go(store: Store) -> None:
    def run(writer: Writer) -> None:
        for number in range(MAX_REVISIONS + 3):
            keep(writer, FileStep("/n/a.md", "write", content(str(number)), "after"))
        history = writer.revisions.history("/n/a.md")
        texts = [writer.revisions.content(each.id) for each in history]
        assert texts == [str(number).encode() for number in range(MAX_REVISIONS + 2, 2, -1)]
        assert writer.revisions.history("/n/b.md") == []
        assert writer.revisions.content(999) is None
        changes = writer.revisions.changes("s", limit=100)
        assert [change.number_in_session for change in changes] == list(range(23, 3, -1))
        assert writer.revisions.changes("other", limit=100) == []

    store.write(run)


def test_changes_are_in_order_though_their_numbers_are_random(store: Store) -> None:
    def run(writer: Writer) -> None:
        steps = [FileStep(f"/n/{number}.md", "create", NO_FILE, "after") for number in range(12)]
        numbers = [keep(writer, step)[0] for step in steps]
        assert all(100_000 <= number < 1_000_000 for number in numbers)
        assert numbers != sorted(numbers)
        listed = writer.revisions.changes(limit=100)
        assert [change.number for change in listed] == numbers[::-1]
        assert [change.files[0].path for change in listed] == [step.path for step in steps[::-1]]
        assert [change.number for change in writer.revisions.kept_changes()] == numbers
        assert {each.number for change in listed for each in change.files} == set(numbers)
        before = writer.revisions.latest_change(["create_note"])
        keep(writer, steps[0])
        assert writer.revisions.latest_change(["create_note"]) > before

    store.write(run)


def test_a_change_of_several_files_knows_when_one_is_not_kept_any_more(store: Store) -> None:
    def run(writer: Writer) -> None:
        change = writer.revisions.begin_change(tool="move_note", session="s")
        for path in ("/n/a.md", "/n/b.md"):
            writer.revisions.keep(change, FileStep(path, "write", content("old"), "new"))
        stored = writer.revisions.change(change)
        assert stored is not None
        assert [(each.path, each.hash_after) for each in stored.files] == [
            ("/n/a.md", "new"),
            ("/n/b.md", "new"),
        ]
        assert stored.is_kept
        for number in range(MAX_REVISIONS):
            keep(writer, FileStep("/n/a.md", "write", content(str(number)), "after"))
        stored = writer.revisions.change(change)
        assert stored is not None
        assert [each.path for each in stored.files] == ["/n/b.md"]
        assert not stored.is_kept

    store.write(run)


def test_a_revision_that_is_forgotten_takes_its_empty_change_along(store: Store) -> None:
    def run(writer: Writer) -> None:
        change, revision = keep(writer, FileStep("/n/a.md", "create", NO_FILE, "after"))
        writer.revisions.forget(revision)
        assert writer.revisions.change(change) is None
        change, revision = keep(writer, FileStep("/n/a.md", "create", NO_FILE, "after"))
        second = writer.revisions.keep(change, FileStep("/n/b.md", "create", NO_FILE, "after"))
        writer.revisions.forget(second)
        stored = writer.revisions.change(change)
        assert stored is not None
        assert [each.id for each in stored.files] == [revision]
        assert stored.is_kept
        writer.revisions.set_undone(change, 99)
        stored = writer.revisions.change(change)
        assert stored is not None
        assert stored.undone_by == 99

    store.write(run)


def test_the_history_of_a_file_follows_it_when_it_moves(store: Store) -> None:
    def run(writer: Writer) -> None:
        moved = content("b")._replace(stored=b"", kind="none")
        _, first = keep(writer, FileStep("/n/a.md", "write", content("a"), "b"))
        _, second = keep(writer, FileStep("/n/b.md", "move", moved, "b", "/n/a.md"))
        _, third = keep(writer, FileStep("/n/a.md", "create", NO_FILE, "c"))  # another file
        _, fourth = keep(writer, FileStep("/n/c.md", "move", moved, "b", "/n/b.md"))
        numbers = {
            path: [each.id for each in writer.revisions.history(path)]
            for path in ("/n/a.md", "/n/b.md", "/n/c.md")
        }
        assert numbers == {
            "/n/a.md": [third, second, first],
            "/n/b.md": [fourth, second, first],
            "/n/c.md": [fourth, second, first],
        }
        assert writer.revisions.content(second) is None

    store.write(run)


def test_answers_of_models_are_remembered_by_kind_and_model(store: Store) -> None:
    def run(writer: Writer) -> None:
        writer.model_cache.put("score", "m", {b"k": b"1", b"long": b"x" * (MAX_ANSWER_BYTES + 1)})
        writer.model_cache.put("score", "m", {b"k": b"2"})
        assert writer.model_cache.get("score", "m", [b"k", b"long"]) == {b"k": b"2"}
        assert writer.model_cache.get("score", "n", [b"k"]) == {}
        assert writer.model_cache.get("vector", "m", [b"k"]) == {}
        assert writer.model_cache.count() == 1

    store.write(run)


def test_a_process_is_there_until_its_end(store: Store, location: DatabaseLocation) -> None:
    with closing(open_store(location)) as other:
        name = store.process_name()
        assert store.process_name() == name
        assert store.has_process(name)
        assert other.has_process(name)
        assert not other.has_process("999999999.1")
    if isinstance(location, ServerDatabase):
        with closing(open_store(location)) as ended:
            ended_name = ended.process_name()
            assert store.has_process(ended_name)
        until(lambda: not store.has_process(ended_name), "the server sees the end")


def test_pending_writes_stay_until_they_end(store: Store) -> None:
    def run(writer: Writer) -> None:
        for path in ("/n/.a.tmp", "/n/deep/.b.tmp"):
            writer.pending.begin(path)
        assert writer.pending.in_directory("/n") == ["/n/.a.tmp"]
        writer.pending.end(["/n/.a.tmp"])
        assert writer.pending.all() == ["/n/deep/.b.tmp"]

    store.write(run)


def test_facts_are_replaced(store: Store) -> None:
    def run(writer: Writer) -> None:
        assert writer.meta.get("a") is None
        writer.meta.put("a", "1")
        writer.meta.put("a", "2")
        assert writer.meta.get("a") == "2"

    store.write(run)


def test_posts_below_a_folder(store: Store, notes: int) -> None:
    with store.reading() as reader:
        (post,) = reader.documents.contents_below(notes, "deep")
        assert (post.path, post.text.decode()) == ("deep/b.md", NOTES["deep/b.md"])
        assert {post.path for post in reader.documents.contents_below(notes, "")} == set(NOTES)


# --- upkeep --------------------------------------------------------------------------


def test_a_sound_database_has_no_problems(store: Store, notes: int) -> None:
    with store.reading() as reader:
        assert reader.upkeep.problems() == []
        assert reader.upkeep.counts().documents == 4
        assert reader.upkeep.count_contents_waiting() == 4
        assert reader.upkeep.size_bytes() > 0
        assert reader.upkeep.migrations()
    store.compact()


def test_a_copy_is_a_database(store: Store, notes: int, tmp_path: Path) -> None:
    target = tmp_path / "copy.sqlite"
    with store.reading() as reader:
        assert reader.upkeep.copy_to(target, replace=False) > 0
        with pytest.raises(ConflictError):
            reader.upkeep.copy_to(target, replace=False)
    with closing(open_store(target)) as copied, copied.reading() as reader:
        assert set(ids(reader)) == set(NOTES)


# --- tokens of clients, and the audit log ----------------------------------------------


def stored_token(name: str, *, expires: str | None = None) -> StoredAccessToken:
    token = AccessToken(name, ("inbox", "notes"), ("inbox",), "2025-01-01", expires, None)
    return StoredAccessToken(f"id-{name}", f"hash-{name}", token)


def test_a_token_is_stored_by_its_hash(store: Store) -> None:
    store.write(lambda writer: writer.access.add_token(stored_token("anna")))
    store.write(lambda writer: writer.access.mark_used("id-anna", "2025-02-03"))
    with store.reading() as reader:
        stored = reader.access.token_with_hash("hash-anna")
        assert reader.access.token_with_hash("hash") is None
        assert reader.access.tokens() == [stored]
    assert stored is not None
    assert stored.id == "id-anna"
    assert stored.token == replace(stored_token("anna").token, last_used="2025-02-03")
    with pytest.raises(ConflictError, match="already a token named 'anna'"):
        store.write(lambda writer: writer.access.add_token(stored_token("anna")))
    assert store.write(lambda writer: writer.access.remove_token("anna")) == stored.token
    assert store.write(lambda writer: writer.access.remove_token("anna")) is None


@pytest.mark.parametrize(("expires", "expired"), [("2025-01-02", True), ("9999-01-01", False)])
def test_a_token_expires(store: Store, expires: str, expired: bool) -> None:
    store.write(lambda writer: writer.access.add_token(stored_token("a", expires=expires)))
    with store.reading() as reader:
        assert [each.token.expired for each in reader.access.tokens()] == [expired]


def test_a_token_follows_the_name_of_a_collection_and_ends_with_it(
    store: Store, notes: int
) -> None:
    store.write(lambda writer: writer.access.add_token(stored_token("anna")))
    store.write(lambda writer: writer.collections.rename("notes", "papers"))
    with store.reading() as reader:
        assert [each.token.read for each in reader.access.tokens()] == [("inbox", "papers")]
    store.write(lambda writer: writer.collections.remove("papers"))
    store.write(lambda writer: add(writer, "papers"))
    with store.reading() as reader:
        assert [each.token.read for each in reader.access.tokens()] == [("inbox",)]


def test_the_audit_log_is_read_newest_first(store: Store) -> None:
    entries = [
        AuditEntry(f"2025-01-0{day}", actor, "mcp", "s", "edit_note", f"write {day}.md")
        for day, actor in ((1, "anna"), (2, ""), (3, "anna"))
    ]

    def record(writer: Writer) -> None:
        for entry in entries:
            writer.access.record(entry)

    store.write(record)
    with store.reading() as reader:
        assert reader.access.audit(limit=9) == entries[::-1]
        assert reader.access.audit(limit=1) == entries[2:]
        assert reader.access.audit(since="2025-01-02", actor="anna", limit=9) == entries[2:]
        assert reader.access.audit(actor="", limit=9) == entries[1:2]


def test_a_conversation_belongs_to_its_owner(store: Store) -> None:
    chat = ChatInfo("c1", "name", "read", "2025-01-01", "2025-01-01", 0)
    store.write(lambda writer: writer.conversations.add(chat, "token:1"))
    with store.reading() as reader:
        conversations = reader.conversations
        assert (conversations.owner("c1"), conversations.owner("c2")) == ("token:1", None)
        assert (conversations.count_of("token:1"), conversations.count_of("")) == (1, 0)
