"""PDFs in a collection: found, and hostile ones are skips that cost only themselves."""

from __future__ import annotations

import hashlib
import random
import sys
import zlib
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import ConflictError, DocumentNotFoundError, SectionNotFoundError
from qmd.files.edits.note_editor import MAX_BYTES
from qmd.ingest import parse_workers
from qmd.system.worker.jobs import MB, JobBudget
from qmd.values.text import DEFAULT_MASK
from tests.support.archives import value, xlsx
from tests.support.pdf import Mark, lines, pdf

PAGES = [lines("About bread"), lines("Sourdough needs time."), lines("Rye is dark.")]


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "notes").mkdir()
    kb = KnowledgeBase.open(tmp_path / "kb.sqlite", create=True)
    kb.add_collection(tmp_path / "notes", mask="**/*.{md,pdf}")
    return kb


def test_a_pdf_is_a_document_with_chunks_by_page(kb: KnowledgeBase, tmp_path: Path) -> None:
    data = pdf(PAGES, marks=[Mark("About bread", 0)], about={"Title": "Bread"})
    (tmp_path / "notes/a.pdf").write_bytes(data)
    with kb:
        assert kb.index().added == 1
        [hit] = kb.search("sourdough").hits
        assert (hit.file, hit.title, hit.line) == ("notes/a.pdf", "Bread", 3)
        assert (hit.anchor, hit.place, hit.file_and_place) == ("page=2", "p. 2", "notes/a.pdf p. 2")
        assert kb.get("notes/a.pdf#page=2").text == "Sourdough needs time.\n"
        assert kb.get("[[a.pdf#page=3]]").text == "Rye is dark.\n"
        with pytest.raises(SectionNotFoundError, match="#page=4") as caught:
            kb.get("a.pdf#page=4")
        assert "#page=3" in caught.value.suggestions
        assert kb.get("notes/a.pdf").text == (
            "# About bread\n\nSourdough needs time.\n\nRye is dark.\n\n"
        )
        assert kb.status().chunks == 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory")
@pytest.mark.unmeasured
def test_hostile_pdfs_are_skips_with_their_reasons(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_workers, "budget_of", lambda path, size: JobBudget(20.0, 200 * MB))
    folder = tmp_path / "notes"
    good = pdf(PAGES)
    (folder / "a.pdf").write_bytes(good)
    (folder / "bomb.pdf").write_bytes(pdf([bytes(400_000_000)]))
    (folder / "cut.pdf").write_bytes(good[: len(good) // 3])
    (folder / "locked.pdf").write_bytes(pdf(PAGES, encrypted=True))
    (folder / "page.pdf").write_bytes(b"<html>")
    (folder / "z.pdf").write_bytes(good.replace(b"Rye", b"Oat"))
    started = []
    run = parse_workers.workers.borrow
    monkeypatch.setattr(
        parse_workers.workers, "borrow", lambda: started.append(run()) or started[-1]
    )
    with kb:
        report = kb.index()
        assert (report.added, report.errors) == (2, ())
        reasons = {skip.path: skip.reason for skip in report.skipped}
        assert reasons == {
            "bomb.pdf": "over budget",
            "cut.pdf": "damaged",
            "locked.pdf": "encrypted",
            "page.pdf": "damaged",
        }
        assert "more than 200 MB of memory" in str(kb.why(folder / "bomb.pdf").reason)
        assert "without a password" in str(kb.why(folder / "locked.pdf").remedy)
    assert len(started) == 2, "the bomb was tried once, and ended one process"


def test_flate_of_a_page_within_the_limits_is_read(kb: KnowledgeBase, tmp_path: Path) -> None:
    text = zlib.decompress(zlib.compress(b" " * 1_000_000))
    (tmp_path / "notes/a.pdf").write_bytes(pdf([text, lines("Rye is dark.")]))
    with kb:
        assert kb.index().added == 1


def test_new_collections_take_pdfs_and_a_wider_mask_is_proposed_for_others(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.pdf").write_bytes(pdf(PAGES))
    (tmp_path / "notes/b.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        assert kb.add_collection(tmp_path / "notes").pattern == DEFAULT_MASK
        assert kb.index().added == 1
        remedy = kb.why(tmp_path / "notes/b.csv").remedy
        assert f"--mask '{DEFAULT_MASK[:-1]},csv}}'" in str(remedy)
        kb.change_collection("notes", mask=f"{DEFAULT_MASK[:-1]},csv}}")
        assert kb.index().added == 1


def test_a_link_to_a_page_is_not_broken_and_pdfs_are_no_orphans(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "notes/a.pdf").write_bytes(pdf(PAGES))
    (tmp_path / "notes/b.pdf").write_bytes(pdf(PAGES, about={"Title": "Other"}))
    (tmp_path / "notes/n.md").write_text("[[a.pdf#page=3]] [p](a.pdf#page=2)\n", encoding="utf-8")
    with kb:
        assert kb.index().added == 3
        assert kb.broken_links().links == ()
        assert [orphan.document.path for orphan in kb.orphans().documents] == ["n.md"]
        assert [link.file for link in kb.backlinks("a.pdf").links] == ["notes/n.md"] * 2


def test_a_large_pdf_moves_and_one_that_the_history_cannot_keep_is_not_deleted(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    data = pdf(PAGES) + b"\n%" + random.Random(0).randbytes(MAX_BYTES)
    (tmp_path / "notes/a.pdf").write_bytes(data)
    with kb:
        assert kb.index().added == 1
        moved = kb.move_note("notes/a.pdf", "notes/b.pdf")
        assert (tmp_path / "notes/b.pdf").read_bytes() == data
        with pytest.raises(ConflictError, match="more than the history") as caught:
            kb.delete_note(moved.file)
        assert caught.value.hint == "Delete it with another program; that cannot be undone."
        assert (tmp_path / "notes/b.pdf").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory")
@pytest.mark.unmeasured
def test_a_hostile_pdf_that_is_named_to_a_tool_ends_no_process_of_ours(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_workers, "budget_of", lambda path, size: JobBudget(20.0, 200 * MB))
    (tmp_path / "notes/a.pdf").write_bytes(pdf(PAGES))
    with kb:
        kb.index()
        [document] = kb.documents()
        docid = parse_workers.document_text("a.pdf", (tmp_path / "notes/a.pdf").read_bytes())
        assert docid is not None
        assert hashlib.sha256(docid.encode()).hexdigest().startswith(document.docid[1:])
    assert parse_workers.document_text("a.pdf", pdf([bytes(400_000_000)])) is None
    assert parse_workers.document_text("a.pdf", b"no PDF") is None
    assert parse_workers.document_text("a.md", b"\x00\xff\x00") is None


def test_a_sheet_is_named_without_its_cells(kb: KnowledgeBase, tmp_path: Path) -> None:
    rows = "".join(
        f'<row r="{n}">{value(f"A{n}", f"person {n}", "str")}{value(f"B{n}", str(n))}</row>'
        for n in range(1, 400)
    )
    (tmp_path / "notes/a.xlsx").write_bytes(xlsx(rows))
    with kb:
        kb.change_collection("notes", mask="**/*.xlsx")
        kb.index()
        whole = kb.get("a.xlsx#sheet=oven").text
        assert "person 1 " in whole and "person 399 " in whole
        part = kb.get("a.xlsx#sheet=Oven!$B$390").text
        assert "person 390 " in part and "person 1 " not in part
        for missing in ("sheet=Door", "sheet=Oven!A1000", "sheet=Oven!"):
            with pytest.raises(SectionNotFoundError):
                kb.get(f"a.xlsx#{missing}")


def test_a_name_without_its_suffix_is_proposed(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "notes/ab.pdf").write_bytes(pdf(PAGES, about={"Title": "Other"}))
    with kb:
        kb.index()
        with pytest.raises(DocumentNotFoundError) as caught:
            kb.get("ab")
        assert caught.value.suggestions == ("notes/ab.pdf",)


def test_a_page_is_named_by_its_own_number_and_the_nearest_are_proposed(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    data = pdf(PAGES, labels="[0 << /S /r >> 2 << /S /D /St 9 >>]")
    (tmp_path / "notes/a.pdf").write_bytes(data)
    with kb:
        kb.index()
        assert kb.get("a.pdf#page=II").text == kb.get("a.pdf#page=2").text
        for missing, nearest in (
            ("-1", ["#page=1", "#page=2", "#page=3"]),
            ("9", ["#page=3", "#page=2", "#page=1"]),  # as the last one is called
            ("9e99", ["#page=3", "#page=2", "#page=1"]),
        ):
            with pytest.raises(SectionNotFoundError) as caught:
                kb.get(f"a.pdf#page={missing}")
            assert list(caught.value.suggestions) == nearest


def test_a_page_without_text_is_not_called_missing(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "notes/a.pdf").write_bytes(pdf([PAGES[0], [], PAGES[2]]))
    (tmp_path / "notes/drawn.pdf").write_bytes(pdf([[], []]))
    with kb:
        kb.index()
        for name, hint in (
            ("a.pdf", "The nearest with text: notes/a.pdf#page=1, notes/a.pdf#page=3"),
            ("drawn.pdf", "No page of it has text."),
        ):
            with pytest.raises(SectionNotFoundError) as caught:
                kb.get(f"{name}#page=2")
            assert str(caught.value) == f"Page 2 of notes/{name} has no text."
            assert caught.value.hint == hint
            with pytest.raises(SectionNotFoundError, match="There is no section #page=4 in"):
                kb.get(f"{name}#page=4")


def test_a_line_of_a_table_leads_to_the_piece_with_it(kb: KnowledgeBase, tmp_path: Path) -> None:
    rows = "".join(f"person {number},{number}\n" for number in range(2, 500))
    (tmp_path / "notes/a.csv").write_text(f"name,age\n{rows}", encoding="utf-8")
    with kb:
        kb.change_collection("notes", mask="**/*.csv")
        kb.index()
        part = kb.get("a.csv#line=300").text
        assert "person 300 " in part and "person 2 " not in part
        with pytest.raises(SectionNotFoundError):
            kb.get("a.csv#line=0")
