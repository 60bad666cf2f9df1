"""The text of a PDF as a reader would have it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from qmd.errors import DamagedFileError, EncryptedFileError
from qmd.parse import document as by_format
from qmd.parse.convert.pdf import MAX_PAGES, _placed, convert
from qmd.parse.converted import Anchor
from qmd.parse.formats import PDF
from qmd.values.pictures import PictureLine, PictureText
from tests.support.pdf import PICTURE, Mark, Page, Placed, lines, pdf


def markdown(*pages: Page, **parts: Any) -> str:
    return convert("a.pdf", pdf(pages, **parts)).markdown


def test_lines_stay_and_a_gap_begins_a_paragraph() -> None:
    page = [*lines("One line", "and another.", "A third."), *lines("Apart.", top=660)]
    assert markdown(page) == "One line\nand another.\nA third.\n\nApart.\n\n"


def test_each_page_is_an_anchor_with_its_label() -> None:
    texts = ("first page", "second page", "", "fourth page")
    data = pdf([lines(text) for text in texts], labels="[0 << /S /r >> 1 << /S /D /St 2 >>]")
    converted = convert("a.pdf", data)
    assert converted.markdown == "first page\n\nsecond page\n\nfourth page\n\n"
    assert converted.anchors == (
        Anchor("page", "1", 0, "i"),
        Anchor("page", "2", 12),
        Anchor("page", "4", 25),
    )


def test_bookmarks_are_headings_where_their_line_or_place_is() -> None:
    page = lines("2 The  Plan", "We begin.", "Second Step", "We go on.")
    marks = [Mark("The Plan", 0), Mark("Elsewhere", 0, top=738), Mark("Second step", 0)]
    assert markdown(page, marks=marks) == (
        "# The Plan\n\n# Elsewhere\n\nWe begin.\n\n# Second step\n\nWe go on.\n\n"
    )


def test_entries_of_the_table_of_contents_are_left_out() -> None:
    contents = lines("Contents", "1 Boat ....... 2", "2 Sea ....... 2", "3 Sun ....... 2")
    text = lines("2 Sea", "The sea ...... 5 fathoms", "Sea ........... 1")
    marks = [Mark(title, 1) for title in ("Boat", "2 Sea", "Sun")]
    result = markdown(contents, text, marks=marks)
    assert "Contents\n\n" in result
    assert "Boat …" not in result
    assert "The sea … 5 fathoms" in result
    assert "Sea … 1" in result  # one such line is no table


def test_entries_of_lists_of_tables_and_of_two_lines_are_left_out() -> None:
    tables = lines("1.1 Small boats ....... 2", "1.2 Large boats ....... 2", "1.3 Nets ....... 2")
    contents = lines("1 Boats and what they", "are for ...... 2", "2 Sea ...... 2")
    text = lines("Boats and what they are for", "Table 1.1: Small boats", "Table 1.2: Large boats")
    marks = [Mark(title, 2) for title in ("Boats and what they are for", "Sea")]
    result = markdown(tables, contents, [*text, *lines("Table 1.3: Nets", top=600)], marks=marks)
    assert " … " not in result and "what they\n" not in result
    assert "Table 1.2: Large boats" in result and "Table 1.3: Nets" in result


def test_repeated_heads_and_feet_are_left_out_and_others_stay() -> None:
    pages = [
        [
            Placed(72, 770, f"The Book {number}"),
            *lines(f"Text {'abcdef'[number]} of this page.", "It ends."),
            Placed(72, 20, "Confidential"),
        ]
        for number in range(6)
    ]
    pages[2].append(Placed(72, 30, "A footnote."))
    text = markdown(*pages)
    assert text.startswith("The Book 0\n")  # once, so that a search finds it
    assert text.count("The Book") == text.count("Confidential") == 1
    assert "Text c of this page.\nIt ends.\n\nA footnote." in text
    two = markdown(*pages[:2])
    assert two.count("The Book") == two.count("Confidential") == 2


def test_a_page_of_heads_alone_keeps_those_with_words() -> None:
    heads = [Placed(72, 770, f"Perovskite stability page {number}") for number in range(1, 5)]
    text = [
        *heads[:1],
        *lines(
            "The cells age.",
        ),
        Placed(300, 20, "1"),
    ]
    alone = [[head, Placed(300, 20, str(number))] for number, head in enumerate(heads[1:], 2)]
    first, *others = markdown(text, *alone).split("\n\n")
    assert first == "Perovskite stability page 1\nThe cells age."
    assert others == [*(f"Perovskite stability page {number}" for number in range(2, 5)), ""]
    assert markdown(*([Placed(300, 20, str(number))] for number in range(1, 5))) == ""
    stamp = (
        b"\nBT /F 10 Tf 72 770 Td <%s> Tj ET" % "By the library".encode("utf-16-be").hex().encode()
    )
    assert markdown(*[PICTURE + stamp] * 4) == "By the library\n\n"  # once, as before it is read


def test_rows_that_differ_by_their_numbers_are_no_heads() -> None:
    rows = [f"{number * 7} of {number * 3}" for number in range(60)]
    pages = [lines(*rows[first : first + 20]) for first in (0, 20, 40)]
    assert markdown(*pages).split("\n")[:1] == ["0 of 0"]
    assert [row for row in rows if row not in markdown(*pages)] == []
    assert markdown(pages[0]).count(" of ") == 20


def test_numbers_of_pages_are_left_out_however_they_count() -> None:
    texts = ["some words", "more of them", "other things", "still others", "the end"]
    pages = [
        [*lines(text), Placed(300, 20, shown)]
        for text, shown in zip(texts, ("iii", "iv", "1 of 9", "2 of 9", "3 of 9"), strict=True)
    ]
    labels = "[0 << /S /r /St 3 >> 2 << /S /D >>]"
    assert markdown(*pages, labels=labels).split("\n\n") == [*texts, ""]
    assert "iv" in markdown(*pages)  # nothing says that it is a number


def test_words_that_a_line_parted_are_joined() -> None:
    page = lines("This manip-", "ulation of MS-", "DOS is odd, fonts-cro-", "ssextra too.")
    text = " ".join(markdown(page).split())
    assert text == "This manipulation of MS-DOS is odd, fonts-cro-ssextra too."


def test_a_line_of_signs_that_are_left_out_is_no_line() -> None:
    # Pdfium gives such signs for letters of odd fonts, which are too long to be made here.
    page: Any = SimpleNamespace(count_chars=lambda: 0)
    assert [line.text for line in _placed(page, "before\r\n\x13\r\nafter")] == ["before", "after"]


def test_lines_of_chinese_are_joined_and_short_ones_end_a_paragraph() -> None:
    page = lines("我们每天夜里两点备份数据", "库，保留三十天。", "恢复之前先停止写入。")
    assert markdown(page) == "我们每天夜里两点备份数据库，保留三十天。\n恢复之前先停止写入。\n\n"


def test_lines_of_korean_end_where_words_do() -> None:
    page = lines("데이터베이스를 매일 백업합니다", "그리고 삼십 일 동안 보관합니다.")
    assert "백업합니다\n그리고" in markdown(page)


WORDS = "some words that fill a whole line of it"


def columns(left: list[str], right: list[str]) -> list[Placed]:
    """Two columns, drawn line by line across both."""
    drawn = []
    for number, (one, other) in enumerate(zip(left, right, strict=True)):
        drawn += [Placed(60, 700 - 12 * number, one), Placed(320, 700 - 12 * number, other)]
    return drawn


def test_columns_that_were_drawn_line_by_line_are_read_one_after_the_other() -> None:
    left = [f"left {number:02} {WORDS}" for number in range(12)]
    right = [f"right {number:02} {WORDS}" for number in range(12)]
    page = [Placed(60, 740, f"Across both: {WORDS} {WORDS}"), *columns(left, right)]
    text = markdown(page)
    assert text.split() == " ".join([page[0].text, *left, *right]).split()


def test_more_rows_than_a_page_has_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    page = columns([f"left {n:02} {WORDS}" for n in range(12)], [f"right {WORDS}"] * 12)
    assert (
        "left 00" in markdown(page).split("right")[0]
        and "left 11" in markdown(page).split("right")[0]
    )
    monkeypatch.setattr("qmd.parse.convert.pdf._MOST_ROWS", 20)
    assert "left 01" not in markdown(page).split("right")[0]


def test_a_table_of_two_columns_keeps_its_rows() -> None:
    left = [f"key {number}" + " long" * (number % 4) for number in range(12)]
    page = columns(left, [f"value {number}" for number in range(12)])
    assert "key 3 long long long value 3" in markdown(page)


def test_what_looks_like_markdown_stays_text() -> None:
    page = lines("#include <stdio.h>", "```", "key:: value", "[[page]] #tag", "plain")
    document = by_format.parse(PDF, "a.pdf", pdf([page]))
    assert (document.tags, document.links, document.headings) == ((), (), ())
    assert dict(document.properties) == {"pages": 1}
    assert "stdio.h" in document.text


def test_title_date_and_author_are_those_of_the_file() -> None:
    about = {"Title": " Über\nPläne ", "Author": "Ada", "CreationDate": "D:20230204115901-00'00'"}
    converted = convert("a.pdf", pdf([lines("x")], about=about))
    assert (converted.title, converted.date) == ("Über Pläne", "2023-02-04")
    assert converted.properties == {"author": "Ada", "pages": 1}


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - a.doc", "report.docx", "--"])
def test_a_title_that_a_program_made_up_is_none(title: str) -> None:
    about = {"Title": title, "CreationDate": "D:20231399"}
    converted = convert("a.pdf", pdf([lines("x")], about=about))
    assert (converted.title, converted.date) == (None, None)
    assert by_format.parse(PDF, "b/My plan.pdf", pdf([lines("x")], about=about)).title == "My plan"


def test_pages_without_a_text_layer_are_told_and_blank_ones_are_not() -> None:
    told, reads = "without a text layer", "'qmd ocr' reads"
    for pages, sentence in (
        ([PICTURE], f"The page is a picture {told}: {reads} it."),
        ([PICTURE, PICTURE], f"All pages are pictures {told}: {reads} them."),
        ([lines("x"), PICTURE, b""], f"Page 2 is a picture {told}: {reads} it."),
        (
            [lines("x"), PICTURE, PICTURE],
            f"2 of 3 pages are pictures {told} (the first: page 2): {reads} them.",
        ),
    ):
        assert convert("a.pdf", pdf(pages)).warnings == (sentence,)
    assert convert("a.pdf", pdf([lines("x"), b""])).warnings == ()


def test_scans_with_a_stamp_and_characters_drawn_as_outlines_are_pictures() -> None:
    stamp, other, third = (b"BT /F 8 Tf 1 0 0 1 72 20 Tm <00%x> Tj ET " % n for n in b"SOT")
    outlines = b" ".join(b"%d 700 m 5 5 l f" % x for x in range(200))
    small = b"q 60 0 0 60 0 0 cm /I Do Q "
    pages = [stamp + PICTURE, outlines, other + small, outlines[:300], third + outlines]
    converted = convert("a.pdf", pdf(pages))
    assert converted.pictures == (1, 2)
    assert converted.warnings == ("Page 2 is a picture without a text layer: 'qmd ocr' reads it.",)
    assert converted.markdown == "S\n\nO\n\nT\n\n"
    read = PictureText((PictureLine("Read", 72, 700, 90, 710),))
    converted = convert("a.pdf", pdf(pages), {1: read, 2: read})
    assert (converted.warnings, converted.markdown) == ((), "Read\n\nRead\n\nO\n\nT\n\n")


def test_what_is_no_pdf_or_locked_is_told() -> None:
    whole = pdf([lines("x")])
    for data in (b"", b"text", b"<html>", whole[:40], bytes(2000)):
        with pytest.raises(DamagedFileError, match="damaged, or is no PDF"):
            convert("a.pdf", data)
    with pytest.raises(EncryptedFileError, match="The PDF is encrypted"):
        convert("a.pdf", pdf([lines("x")], encrypted=True))


def test_the_rest_of_very_many_pages_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_PAGES == 5_000
    monkeypatch.setattr("qmd.parse.convert.pdf.MAX_PAGES", 2)
    monkeypatch.setattr("qmd.parse.convert.pdf.MAX_BOOKMARKS", 1)
    monkeypatch.setattr("qmd.parse.convert.pdf.MAX_PAGE", 5)
    marks = [Mark("one", 0), Mark("two", 1)]
    converted = convert("a.pdf", pdf([lines("one two")] * 3, marks=marks))
    assert converted.markdown == "# one\n\none t\n\none t\n\n"
    assert converted.warnings == (
        "Only the first 2 of its 3 pages were read.",
        "Only the first 1 bookmarks are headings.",
        "Page 1 has too much text and was cut.",
        "Page 2 has too much text and was cut.",
    )
