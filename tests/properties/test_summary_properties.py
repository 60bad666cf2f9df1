"""Whatever the text, the file holds its bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from qmd import KnowledgeBase, Settings
from qmd.errors import QmdError, SummaryError
from qmd.files.notes import Summary
from qmd.files.writing.policy import WritePolicy
from qmd.files.writing.writer import FileWriter
from tests.support import writes

TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=("Cs",)),
        st.sampled_from("\r\n\t\ufeff\0🙂数据\u3000e\u0301"),
    ),
    max_size=60,
)


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    root = tmp_path_factory.mktemp("summaries")
    with KnowledgeBase.open(root / "kb.sqlite", Settings(write_roots=[root]), create=True) as kb:
        yield kb


def fresh(kb: KnowledgeBase) -> Path:
    """A directory that is empty and may be written in."""
    return Path(tempfile.mkdtemp(dir=kb.path.parent)).resolve()


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, st.sampled_from(["append", "overwrite"])), max_size=6))
@example([("\ufeffBOM\r\n", "append"), ("a\0b", "append"), ("\n", "overwrite")])
def test_the_file_holds_what_was_written_byte_for_byte(
    kb: KnowledgeBase, steps: list[tuple[str, str]]
) -> None:
    root = fresh(kb)
    path = root / "x.md"
    expected: bytes | None = None
    for text, mode in steps:
        before = expected
        if not text.strip():
            try:
                kb.summary.update(text, str(path), mode)
            except SummaryError:
                continue
            raise AssertionError("a blank text was taken")
        kb.summary.update(text, str(path), mode)
        found = path.read_bytes()
        if mode == "overwrite" or before is None:
            assert found == text.encode()
        else:
            assert found.startswith(before)
            rest = found[len(before) :].decode()
            heading, separator, tail = rest[: len(rest) - len(text)].partition("总结更新 [")
            assert heading == "\n\n---\n\n## "
            assert separator
            assert tail[19:] == "]\n\n"
            assert rest.endswith(text)
        expected = found
    if expected is not None:
        assert [each.name for each in root.iterdir() if each.name.startswith(".")] == []


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.characters(categories=("Cs",)), TEXTS)
def test_half_a_surrogate_pair_is_an_error_and_nothing_is_written(
    kb: KnowledgeBase, before: str, half: str, after: str
) -> None:
    root = fresh(kb)
    try:
        kb.summary.update(before + half + after, str(root / "x.md"))
    except SummaryError as error:
        assert str(error).startswith("Invalid content:")
    else:
        raise AssertionError("it was taken")
    assert not (root / "x.md").exists()


NAMES = st.text(
    st.one_of(st.characters(), st.sampled_from('./\\~ \0\n数:*?"<>|$`;&%-#')),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=4))
@example(["..", "x"])
@example(["a", "..", "..", "x"])
@example(["~root", "x"])
@example(["", "etc", "x"])
@example(["proc", "self", "root", "tmp", "x"])
@example(["a\\..\\..\\x"])
def test_whatever_the_path_nothing_is_written_outside_of_the_root(
    kb: KnowledgeBase, parts: list[str]
) -> None:
    base = fresh(kb)
    root = base / "deep/root"
    root.mkdir(parents=True)
    (root / "out").symlink_to(base)
    files = FileWriter(kb._store, WritePolicy.explicit([root]), lambda path: None)
    outside = sorted(base.iterdir()), sorted((base / "deep").iterdir())
    try:
        done = Summary(files).update("x", f"{root}/" + "/".join(parts) + ".md")
    except QmdError:
        pass
    else:
        assert done.path.is_relative_to(root)
        assert done.path.read_bytes() == b"x"
    assert outside == (sorted(base.iterdir()), sorted((base / "deep").iterdir()))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=30))
def test_every_content_that_was_replaced_can_be_had_back(
    kb: KnowledgeBase, contents: list[bytes]
) -> None:
    root = fresh(kb)
    path = root / "x.md"
    replaced: list[bytes] = []
    for content in contents:
        before = path.read_bytes() if path.exists() else None
        writes.write(kb.files, path, content, tool="test")
        if before is not None and before != content:
            replaced.append(before)
    history = [each for each in kb.revisions.history(path) if each.kind != "none"]
    found = [kb.revisions.content(path, revision.number) for revision in history]
    assert found[::-1] == replaced[-20:]
    assume(history)
    for revision, content in zip(history[:3], found[:3], strict=True):
        kb.revisions.restore(path, revision.number)
        assert path.read_bytes() == content
