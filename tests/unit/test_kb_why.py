"""`why` on what is no file."""

import shlex
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.ingest import why
from qmd.ingest.rules import Rules
from qmd.ingest.why import judge_path
from qmd.values.text import DEFAULT_MASK
from tests.support import child


def test_why_of_a_folder_counts_its_documents(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.md").write_text("# A\n")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(root)
        kb.index()
        said = kb.why(root / "sub")
    assert said.indexed
    assert "with 1 document below it" in said.reason


def test_why_of_a_file_that_was_skipped_says_it_in_a_sentence(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "picture.md").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    (root / "away.md").symlink_to("/nowhere/x.md")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(root)
        kb.index()
        picture, link = kb.why(root / "picture.md"), kb.why(root / "away.md")
    assert picture.reason.endswith("no document: binary. The file is a JPEG image, not text.")
    assert link.reason == "Symlink out of the collection: leads to /nowhere/x.md."


UNREADABLE = """
import sys
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1], create=True) as kb:
    kb.add_collection(sys.argv[2])
    kb.index()
    print(kb.why(sys.argv[2] + "/closed.md").remedy)
"""


def test_a_file_that_may_not_be_read_needs_a_permission(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "closed.md").write_text("# Closed\n")
    (root / "closed.md").chmod(0)
    remedy = child.unprivileged(UNREADABLE, tmp_path / "q.sqlite", root)
    assert remedy == "Give yourself permission to read it, then run 'qmd index'."


NO_LONGER_READABLE = """
import os
import sys
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1], create=True) as kb:
    kb.add_collection(sys.argv[2], name="notes")
    kb.index()
    print([check.name for check in kb.doctor() if check.name.startswith("unreadable")])
    os.chmod(sys.argv[2] + "/was open.md", 0)
    assert kb.index().unchanged == 2
    explained = kb.why(sys.argv[2] + "/was open.md")
    print(explained.indexed, explained.reason)
    print(explained.remedy)
    (check,) = (check for check in kb.doctor() if check.name == "unreadable notes")
    print(check.status, check.message)
"""


def test_a_document_whose_file_cannot_be_read_any_more_is_named(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    for name in ("was open.md", "open.md"):
        (root / name).write_text("# Open\n")
    lines = child.unprivileged(NO_LONGER_READABLE, tmp_path / "q.sqlite", root).splitlines()
    assert lines[0] == "[]"
    assert lines[1].startswith("True It is a document (")
    assert lines[1].endswith(" The file cannot be read any more; searches show what it held.")
    assert lines[2] == "Give yourself permission to read it, then run 'qmd index'."
    assert lines[3].startswith("warning notes/was open.md cannot be read any more;")


NO_LONGER_LISTED = """
import os
import sys
from qmd import KnowledgeBase
with KnowledgeBase.open(sys.argv[1], create=True) as kb:
    kb.add_collection(sys.argv[2], name="notes")
    kb.index()
    os.chmod(sys.argv[2] + "/closed", 0)
    assert kb.index().unchanged == 2
    print(kb.why(sys.argv[2] + "/closed/a.md").reason)
    checks = {check.name: check for check in kb.doctor()}
    print(checks["drift notes"].status, checks["unreadable notes"].message)
    os.chmod(sys.argv[2] + "/closed", 0o700)
    os.chmod(sys.argv[2], 0)
    (check,) = (check for check in kb.doctor() if check.name == "collection notes")
    print(check.status, check.message.replace(sys.argv[2], "FOLDER"))
    print([each.missing for each in kb.status().collections])
    os.chmod(sys.argv[2], 0o700)
"""


def test_a_document_in_a_folder_that_cannot_be_listed_any_more_stays(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "closed").mkdir(parents=True)
    for name in ("closed/a.md", "open.md"):
        (root / name).write_text("# Text\n")
    explained, checks, *of_root = child.unprivileged(
        NO_LONGER_LISTED, tmp_path / "q.sqlite", root
    ).splitlines()
    assert explained.endswith(" The file cannot be read any more; searches show what it held.")
    assert checks.startswith("ok notes/closed/a.md cannot be read any more;")
    assert of_root == ["error Its directory FOLDER cannot be read.", "[True]"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.txt", "'**/*.{md,txt}'"),
        ("a.org", "'**/*.{md,org}'"),
        ("a.JPG", "'**/*.{md,jpg,jpeg,png,heic}'"),
        ("a.doc", "no doc files"),
        ("a.rtf", "'**/*.{md,rtf}'"),
        ("a.TIFF", "no tiff files. Save a copy as JPEG"),
        ("a.webp", "no webp files"),
        ("LICENSE", "'**/*.md,**/LICENSE'"),
        ("it's [1]", "'**/*.md,**/it?s ?1?'"),
    ],
)
def test_the_remedy_for_a_mask_fits_the_file(tmp_path: Path, name: str, remedy: str) -> None:
    (tmp_path / name).write_text("text\n", encoding="utf-8")
    verdict = judge_path(Rules(tmp_path, "**/*.md"), name)
    assert remedy in str(verdict.remedy)


@pytest.mark.parametrize("mask", ["**/*.md", DEFAULT_MASK, "**/*.org"])
@pytest.mark.parametrize("name", ["a.txt", "a.jpeg", "LICENSE", "it's [1]", "x.a-b", "a.md"])
def test_a_file_is_a_document_by_the_mask_that_is_proposed(
    tmp_path: Path, mask: str, name: str
) -> None:
    (tmp_path / name).write_text("text\n", encoding="utf-8")
    remedy = judge_path(Rules(tmp_path, mask), name).remedy
    if remedy is not None:
        proposed = shlex.split(remedy.rstrip("."))[-1]
        assert judge_path(Rules(tmp_path, proposed), name).indexed


def test_web_pages_are_documents_by_their_text(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for name in ("p.html", "Q.HTM", "b.txt"):
        (tmp_path / "notes" / name).write_text("<p>A <b>boat</b>.</p>\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes", mask="**/*")
        assert kb.index().skipped == ()
        assert "<b>" not in kb.get("p.html").text
        assert "<b>" in kb.get("b.txt").text


def test_a_name_is_looked_for_below_all_collections(tmp_path: Path) -> None:
    for path in ("vault/Private/Diary.md", "vault/.trash/old.md", "vault/scan.doc", "work/Plan.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("# Text\n", encoding="utf-8")
    (tmp_path / "vault" / ".qmdignore").write_text("Private/\n", encoding="utf-8")
    (tmp_path / "work" / "node_modules").mkdir()
    (tmp_path / "work" / "node_modules" / "diary.md").write_text("# Other\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        for name in ("vault", "work"):
            kb.add_collection(tmp_path / name)
        kb.index()
        for name in ("diary", "diary.md", "DIARY.MD", "Private/diary.md"):
            said = kb.why(name)
            assert (said.indexed, said.path) == (False, "vault/Private/Diary.md")
            assert "Line 1 of .qmdignore" in said.reason
        assert "Others of this name: work/node_modules/diary.md." in kb.why("diary").reason
        assert "Other files" not in kb.why("Private/diary").reason
        assert "is hidden" in kb.why("old").reason
        assert "mask" in kb.why("scan.doc").reason
        said = kb.why("nowhere.md")
        assert said.reason.startswith(
            "It lies in no collection. No file or folder of this name lies below"
        )
        assert kb.why("work/nowhere.md").reason.endswith("below the folders of the collections.")


def test_the_rules_do_not_explain_a_name_that_no_file_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    monkeypatch.chdir(root)
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(root)
        for name in ("nowhere", "sub/nowhere"):
            said = kb.why(name)
            assert (said.path, said.indexed) == (f"notes/{name}", False)
            assert said.reason == (
                "Nothing of this name is on the disk."
                " No file or folder of this name lies below the folders of the collections."
            )
        for name in ("notes/nowhere", str(root / "nowhere")):
            assert kb.why(name).path == "notes/nowhere"
            assert "The rules would exclude it, too: mask." in kb.why(name).reason


def test_the_search_for_a_name_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "MOST_LOOKED_AT", 3)
    for number in range(5):
        (tmp_path / "notes" / str(number)).mkdir(parents=True)
        (tmp_path / "notes" / str(number) / "deep.txt").write_text("x", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes")
        assert "not among the first 3 files" in kb.why("deep.txt").reason


def test_a_folder_is_looked_for_by_its_name(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    for folder in ("Closed", "Open"):
        (root / "in" / folder).mkdir(parents=True)
        (root / "in" / folder / "a.md").write_text("# A\n")
    (root / ".qmdignore").write_text("Closed/\n")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(root)
        kb.index()
        closed, opened = kb.why("closed"), kb.why("in/Open/")
    assert (closed.path, closed.indexed) == ("notes/in/Closed", False)
    assert "'Closed/'" in closed.reason
    assert (opened.path, opened.indexed) == ("notes/in/Open", True)
