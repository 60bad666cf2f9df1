"""Chunks follow the headings, stay whole where they can, and never outgrow the model."""

from __future__ import annotations

import pytest

from qmd.parse.chunk import MAXIMUM, TARGET
from qmd.parse.document import parse_document
from qmd.values import Chunk

SENTENCE = "This sentence is here to fill the section with some words. "  # about 15 tokens


def chunks(text: str) -> tuple[Chunk, ...]:
    return parse_document("note.md", text.encode()).chunks


def texts(text: str) -> list[str]:
    return [text[chunk.start_char : chunk.end_char] for chunk in chunks(text)]


def tokens(text: str) -> float:
    return (3 * len(text.encode()) - len(text)) / 8


def test_a_short_note_is_one_chunk_under_its_heading() -> None:
    (chunk,) = chunks("---\na: b\n---\n\n# Title\n\ntext\n\n## Sub\n\nmore\n\n")
    assert (chunk.start_line, chunk.end_line) == (5, 12)
    assert chunk.heading_path == ("Title",)
    assert texts("\n# T\n\ntext\n\n\n") == ["# T\n\ntext"]


@pytest.mark.parametrize(
    "text", ["", "\n", " \t\n\r\n", "---\na: b\n---\n", "---\na: b\n---\n\n \n"]
)
def test_no_text_no_chunks(text: str) -> None:
    assert chunks(text) == ()


def test_big_sections_are_chunks_of_their_own_with_their_heading_path() -> None:
    text = "# Book\n\n" + "".join(f"## Part {n}\n\n{SENTENCE * 15}\n\n" for n in range(3))
    found = chunks(text)
    assert [chunk.heading_path for chunk in found] == [("Book", f"Part {n}") for n in range(3)]
    assert texts(text)[0].startswith("# Book\n\n## Part 0")


def test_tiny_sections_join_under_the_heading_they_share() -> None:
    text = "# Book\n\n" + "".join(f"## Part {n}\n\n{SENTENCE}\n\n" for n in range(100))
    found = chunks(text)
    assert {chunk.heading_path for chunk in found} == {("Book",)}
    pieces = texts(text)
    assert len(pieces) > 1
    assert all(tokens(piece) > 200 for piece in pieces[:-1])


def test_a_heading_is_never_left_alone_above_its_text() -> None:
    text = "".join(f"# H{n}\n\n## S{n}\n\n{SENTENCE * 60}\n\n" for n in range(4))
    for piece in texts(text):
        assert not piece.rstrip().splitlines()[-1].startswith("#")


def test_a_long_section_is_cut_between_paragraphs_into_even_parts() -> None:
    text = "# T\n\n" + f"{SENTENCE * 5}\n\n" * 12
    pieces = texts(text)
    assert all(piece.rstrip().endswith("words.") for piece in pieces)
    sizes = [tokens(piece) for piece in pieces]
    assert max(sizes) <= MAXIMUM / 8
    assert min(sizes) > 150


def test_a_fence_and_a_table_stay_whole_up_to_the_maximum() -> None:
    fence = "```\n" + "x = call(1, 2)\n\n" * 90 + "```"
    table = "| a | b |\n|---|---|\n" + "| one | two |\n" * 110
    text = f"{SENTENCE * 10}\n\n{fence}\n\n{SENTENCE * 10}\n\n{table}\n{SENTENCE * 10}\n"
    pieces = texts(text)
    assert sum(fence in piece for piece in pieces) == 1
    assert sum(table.rstrip() in piece for piece in pieces) == 1


def test_a_fence_far_over_the_size_is_cut_between_lines() -> None:
    text = "```\n" + "x = call(1, 2)\n" * 500 + "```\n"
    pieces = texts(text)
    assert len(pieces) > 1
    assert all(piece.endswith((")", "```")) for piece in pieces)


@pytest.mark.parametrize("ends", ["。", "！", ". ", "? "])
def test_an_endless_line_is_cut_at_ends_of_sentences(ends: str) -> None:
    text = ("中文句子没有换行" * 4 + ends) * 400
    pieces = texts(text)
    assert len(pieces) > 1
    assert all(piece.rstrip().endswith(ends.strip()) for piece in pieces)
    assert max(map(tokens, pieces)) <= TARGET / 8
    assert "".join(pieces) == text


@pytest.mark.parametrize("unit", ["e\u0301", "👩\u200d💻", "👍\U0001f3fd", "כִּ"])
def test_a_line_without_any_break_is_cut_between_characters_as_people_see_them(unit: str) -> None:
    pieces = texts(unit * 3000)
    assert len(pieces) > 1
    assert all(piece.startswith(unit[0]) for piece in pieces)


def test_five_megabytes_in_one_line_make_bounded_chunks() -> None:
    text = "word " * 1_000_000
    found = chunks(text)
    assert len(found) > 3000
    assert max(chunk.end_char - chunk.start_char for chunk in found) <= MAXIMUM / 2


def test_byte_spans_are_of_the_text_as_utf8() -> None:
    text = "# 标题\r\n\r\n正文😀\rnaïve\n" + "中文。" * 400
    data = text.encode()
    for chunk in chunks(text):
        piece = text[chunk.start_char : chunk.end_char]
        assert data[chunk.start_byte : chunk.end_byte].decode() == piece
