"""Word, PowerPoint, Excel and LibreOffice files as Markdown."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import pytest
from support.archives import OFFICE, archive, office, pptx, relations, shape, value, xlsx

from qmd.errors import DamagedFileError, EncryptedFileError
from qmd.parse.chunk import MAXIMUM
from qmd.parse.convert import office as sheets
from qmd.parse.convert import office as slides
from qmd.parse.convert import opendocument, word
from qmd.parse.converted import Converted
from qmd.parse.document import parse_literal

ABOUT = ("On bread", "2024-03-05T10:00:00+00:00", {"author": "Ann"})


def about(converted: Converted) -> Any:
    return converted.title, converted.date, converted.properties


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def paragraph(inside: str, style: str = "", item: tuple[str, int] | None = None) -> str:
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if item:
        properties += f'<w:numPr><w:ilvl w:val="{item[1]}"/><w:numId w:val="{item[0]}"/></w:numPr>'
    inside = inside if inside.startswith("<") else run(inside)
    return f"<w:p><w:pPr>{properties}<w:tabs><w:tab/></w:tabs></w:pPr>{inside}</w:p>"


def table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{each}</w:tc>" for each in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{each}</w:tr>' for each in cells)}</w:tbl>"


DELETED = (
    "<w:tr><w:trPr><w:del/></w:trPr>"
    f"<w:tc>{paragraph('gone')}</w:tc><w:tc>{paragraph('too')}</w:tc></w:tr>"
)
STYLES = f"""<w:styles {OFFICE}>
<w:style w:type="paragraph" w:styleId="U1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="U2"/></w:style>
<w:style w:type="paragraph" w:styleId="U2"><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="LB"><w:name w:val="List Bullet"/><w:pPr><w:numPr>
<w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
</w:styles>"""
LISTS = f"""<w:numbering {OFFICE}>
<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:start w:val="5"/>
<w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="8"/><w:lvlOverride w:ilvl="0">
<w:startOverride w:val="120"/></w:lvlOverride></w:num>
<w:num w:numId="4"><w:abstractNumId w:val="8"/><w:lvlOverride w:ilvl="0"><w:lvl w:ilvl="0">
<w:numFmt w:val="bullet"/></w:lvl></w:lvlOverride></w:num></w:numbering>"""
NOTE = f'<w:footnote w:id="2">{paragraph("The note.")}</w:footnote>'
NOTES = f"<w:footnotes {OFFICE}>{NOTE}</w:footnotes>"
LINKS = relations({"l1": ("hyperlink", "https://a.org")}, external=True)
RELATIONS = relations(
    {
        "s": ("styles", "styles.xml"),
        "n": ("numbering", "/word/numbering.xml"),
        "f": ("footnotes", "footnotes.xml"),
    }
).replace("</Relationships>", LINKS.removeprefix("<Relationships>"))  # fmt: skip


def docx(body: str) -> bytes:
    parts = {
        "word/document.xml": f"<w:document {OFFICE}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": STYLES,
        "word/numbering.xml": LISTS,
        "word/footnotes.xml": NOTES,
        "word/_rels/document.xml.rels": RELATIONS,
    }
    return office("word/document.xml", parts)


MERGED = "<w:tcPr><w:vMerge/></w:tcPr>"
FRACTION = (
    "<m:f><m:num><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>-6</m:t></m:r></m:sup>"
    "</m:sSup><m:sub><m:ctrlPr/></m:sub></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
)
BOX = f"<w:drawing><w:txbxContent>{paragraph('In a box')}</w:txbxContent></w:drawing>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (paragraph("Part", "U1") + paragraph("Own", "Own"), "# Part\n\n## Own\n"),
        (
            paragraph("a", "LB")
            + paragraph("b", item=("1", 1))
            + paragraph("c", item=("1", 1))
            + paragraph("d", "LB")
            + paragraph("after"),
            "- a\n  1. b\n  2. c\n- d\n\nafter\n",
        ),
        (
            paragraph("a", item=("2", 0))
            + paragraph("b", item=("2", 0))
            + paragraph("c", item=("3", 0))
            + paragraph("after")
            + paragraph("d", item=("4", 0)),
            "5. a\n6. b\n120. c\n\nafter\n\n- d\n",
        ),
        (
            paragraph(run("data") + run("base ") + "<w:r><w:tab/><w:br/></w:r>" + run("#x [[y]]")),
            "database  \n#x [[y]]\n",
        ),
        (
            paragraph(f'<w:hyperlink r:id="l1">{run("a [link]")}</w:hyperlink>' + run(" end")),
            "[a \\[link\\]](https://a.org) end\n",
        ),
        (
            paragraph(f"<w:del>{run('gone')}</w:del><w:ins>{run('new')}</w:ins>")
            + paragraph("<w:r><w:instrText>PAGE</w:instrText></w:r>"),
            "new\n",
        ),
        (
            table((paragraph("Name"), paragraph("Age")), (paragraph("Ann"), paragraph("old")))
            .replace("<w:tr>", "<w:tr><w:trPr><w:ins/></w:trPr>", 1)
            .replace("</w:tbl>", f"{DELETED}</w:tbl>"),
            "| Name | Age |\n|---|---|\n| Ann | old |\n",
        ),
        (
            paragraph(run("Text") + '<w:r><w:footnoteReference w:id="2"/></w:r>'),
            "Text[^1]\n\n[^1]: The note.\n",
        ),
        (
            paragraph(
                f"<mc:AlternateContent><mc:Choice>{BOX}</mc:Choice>"
                f"<mc:Fallback>{BOX}</mc:Fallback></mc:AlternateContent>" + run("Beside")
            ),
            "Beside\n\nIn a box\n",
        ),
        (
            f"<w:sdt><w:sdtContent>{paragraph('In a control')}</w:sdtContent></w:sdt>",
            "In a control\n",
        ),
        (
            table(
                (paragraph("Flour"), paragraph("Hours")),
                (paragraph("Rye") + paragraph("dark"), MERGED + paragraph("x")),
            ),
            "| Flour | Hours |\n|---|---|\n| Rye dark |  |\n",
        ),
        (table((paragraph("Alone", "U1") + paragraph("text"),)), "# Alone\n\ntext\n"),
        (paragraph("a = 1", "Code") + paragraph("b = #2", "Code"), "```\na = 1\nb = #2\n```\n"),
        (paragraph(f"<m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath>{run(' ok')}"), "x=1 ok\n"),
        (
            paragraph(f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('hàn')}</w:rt>"
                      f"<w:rubyBase>{run('漢')}</w:rubyBase></w:ruby></w:r>"),
            "漢\n",
        ),
        (paragraph(f"<m:oMath>{FRACTION}</m:oMath>"), "10^-6/2\n"),
        (table((paragraph("a"), paragraph(f"<m:oMath>{FRACTION}</m:oMath>"))),
         "| a | 10^-6/2 |\n|---|---|\n"),
        (paragraph("# no heading [a](b)"), "\\# no heading [a]\\(b)\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_word(body: str, text: str) -> None:
    converted = word.convert("a.docx", docx(body))
    assert converted.markdown == text
    assert about(converted) == ABOUT


def symbols(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        (f"<m:f><m:num>{symbols('a+1')}</m:num><m:den>{symbols('b-2')}</m:den></m:f>",
         "(a+1)/(b-2)"),
        (f"<m:rad><m:deg/><m:e>{symbols('x+y')}</m:e></m:rad>", "√(x+y)"),
        (f"<m:rad><m:deg>{symbols('3')}</m:deg><m:e>{symbols('x')}</m:e></m:rad>", "root(3, x)"),
        (f"<m:sSup><m:e>{symbols('x+1')}</m:e><m:sup>{symbols('n+1')}</m:sup></m:sSup>"
         + symbols("y"), "(x+1)^(n+1)y"),
        (f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{symbols('i=1')}</m:sub>"
         f"<m:sup>{symbols('n')}</m:sup><m:e>{symbols('i')}</m:e></m:nary>", "∑_(i=1)^n i"),
        (f"<m:d><m:e>{symbols('a+b')}</m:e></m:d>{symbols('c')}", "(a+b)c"),
        (f"<m:d><m:dPr><m:begChr m:val='|'/><m:endChr m:val='|'/></m:dPr><m:e>{symbols('a')}</m:e>"
         "</m:d>", "|a|"),
        (f"<m:m><m:mr><m:e>{symbols('1')}</m:e><m:e>{symbols('2')}</m:e></m:mr><m:mr><m:e>"
         f"{symbols('3')}</m:e><m:e>{symbols('4')}</m:e></m:mr></m:m>", "[1, 2; 3, 4]"),
    ],
)  # fmt: skip
def test_formulas_of_word_keep_their_meaning(inside: str, shown: str) -> None:
    converted = word.convert("a.docx", docx(paragraph(f"<m:oMath>{inside}</m:oMath>")))
    assert converted.markdown.replace("\\", "") == f"{shown}\n"


def test_word_documents_nested_without_end() -> None:
    body = paragraph("deep")
    for _ in range(40):
        body = table((body,))
    assert word.convert("a.docx", docx(body)).markdown == ""
    body = f"<w:x>{'<w:x>' * 400}{'</w:x>' * 400}</w:x>"
    with pytest.raises(DamagedFileError, match="cannot be read"):
        word.convert("a.docx", docx(body))


def test_slides_are_places_and_have_their_notes() -> None:
    rows = "".join(
        f"<a:tr>{''.join(f'<a:tc><a:p><a:t>{each}</a:t></a:p></a:tc>' for each in row)}</a:tr>"
        for row in (("Flour", "Hours"), ("Rye", "12"))
    )
    grid = f'<a:tbl>{rows}</a:tbl><p:graphicFrame><c:chart r:id="c1"/></p:graphicFrame>'
    converted = slides.convert_slides(
        "a.pptx",
        pptx(
            [
                shape("Last", "title") + grid + shape("7", "sldNum"),
                shape("points/more", "body") + shape("deeper", "obj", 1),
                shape("First", "ctrTitle") + "<p:grpSp>" + shape("free #x") + "</p:grpSp>",
            ],
            notes="Say it/slowly",
        ),
    )
    assert converted.markdown == (
        "## First\n\nfree #x\n\n"
        "- points\n- more\n- deeper\n\n"
        "## Last\n\n| Flour | Hours |\n|---|---|\n| Rye | 12 |\n\n- Sales\n- Rye\n\n"
        "Notes: Say it\nslowly\n"
    )
    places = [
        (each.kind, each.label, converted.markdown[each.start_char :][:7])
        for each in converted.anchors
    ]
    assert places == [
        ("slide", "1", "## Firs"),
        ("slide", "2", "- point"),
        ("slide", "3", "## Last"),
    ]
    assert about(converted) == ABOUT


def test_cells_show_what_was_computed() -> None:
    rows = (
        f'<row r="3">{value("B3", "0", "s")}{value("D3", "1", "s")}</row>'
        f'<row r="4">{value("B4", "45356", style=1)}{value("C4", "0.125", style=2)}'
        f"{value('D4', '45356.5', style=3)}</row>"
        f'<row r="9">{value("B9", "3.10")}<c r="C9" t="inlineStr"><is><t>in|line</t></is></c>'
        f"{value('D9', '1', 'b')}{value('E9', '#DIV/0!', 'e')}{value('F9', '0.5', style=4)}</row>"
        f'<row r="10">{value("B10", "9", "s")}{value("ZZZ10", "1")}'
        f"{value('C10', 'x', style=99)}</row>"
    )
    converted = sheets.convert_sheets("a.xlsx", xlsx(rows, strings=("When", "What")))
    assert converted.markdown == (
        "## Oven\n\n| When |  | What |\n|---|---|---|\n"
        "| 2024-03-05 | 12.5% | 2024-03-05 12:00 |\n\n"
        "| When |  | What |  |  |\n|---|---|---|---|---|\n"
        "| 3.1 | in\\|line | TRUE | #DIV/0! | 12:00 |\n|  | x |  |  |  |\n"
    )
    assert [(each.kind, each.label) for each in converted.anchors] == [
        ("sheet", "Oven!B3:F4"),
        ("sheet", "Oven!B9:F10"),
    ]
    assert about(converted) == ABOUT
    later = xlsx(f"<row>{value('A1', '1', style=1)}</row>", workbook='<workbookPr date1904="1"/>')
    assert "1904-01-02" in sheets.convert_sheets("a.xlsx", later).markdown
    too_late = xlsx(
        f"<row>{value('A1', '2958465', style=1)}</row>", workbook='<workbookPr date1904="1"/>'
    )
    assert "2958465" in sheets.convert_sheets("a.xlsx", too_late).markdown


@pytest.mark.parametrize(
    "code, number, shown",
    [
        ("[h]:mm", "1.2534722222", "30:05"),
        ("[hh]:mm:ss", "0.25", "06:00:00"),
        ("[mm]:ss", "1.5", "2160:00"),
        ("[s]", "1", "86400"),
        ('[h]"h "mm"m"', "-0.5", "-12h 00m"),
        ("mm:ss.0", "0.0035", "00:05:02"),
        ("h:mm AM/PM", "46085.55", "13:12"),
        ('上午/下午h"时"mm"分"', "0.55", "下午1时12分"),
        ("d-mmm", "46085", "4-Mar"),
        ("m/d", "46085", "3/4"),
        ("dddd", "46085", "Wednesday"),
        ("mmm\\ yyyy", "46085", "2026-03"),
        ("yyyy", "46085.5", "2026"),
        ("dd/mm/yyyy", "46085.5", "2026-03-04"),
        ("m/d/yy h:mm", "46085.5", "2026-03-04 12:00"),
        ('yyyy"年"m"月"d"日"', "46085", "2026年3月4日"),
        ("[$-404]e年m月d日", "46085", "2026-03-04"),
        ("yyyy-mm-dd", "1", "1900-01-01"),
        ("00000", "1067", "01067"),
        ("00000", "-42", "-00042"),
        ('#,##0.00 "€"', "1234567.891", "1234567.891 €"),
        ('_-* #,##0.00\\ "€"_-;-* #,##0.00\\ "€"_-', "-1.5", "-1.5 €"),
        ("[$¥-804]#,##0", "8800", "¥8800"),
        ('"Invoice "0000', "7", "Invoice 0007"),
        ("0 \\d\\a\\y\\s", "3", "3 days"),
        ('#,##0,"K"', "1500000", "1500K"),
        ('"yes";"yes";"no"', "0", "no"),
        ('[=1]"one";0', "1", "one"),
        ('[=1]"one";0', "2", "2"),
        ('[>=1000000]0.0,,"M";[>=1000]0.0,"K";0', "1500000", "1.5M"),
        ('[>=1000000]0.0,,"M";[>=1000]0.0,"K";0', "2500", "2.5K"),
        ('[>=1000000]0.0,,"M";[>=1000]0.0,"K";0', "-7", "-7"),
        ('[Red][<-5]"low";[<>0]0 "C";"none"', "-6", "low"),
        ('[Red][<-5]"low";[<>0]0 "C";"none"', "3", "3 C"),
        ('[Red][<-5]"low";[<>0]0 "C";"none"', "0", "none"),
        ("[<1]h:mm;[h]:mm", "1.25", "30:00"),
        ("[>5]0", "3", "3"),
        ('[>x]"one";0', "3", "3"),
        ("#,##0;(#,##0)", "-5", "-5"),
        ("0.00%", "0.0567", "5.67%"),
        ('0"%"', "5", "5%"),
        ("0.00E+00", "1234567890123456", "1234567890123456"),
        ("General", "9007199254740993", "9007199254740993"),
        ("General", "1.23E+16", "12300000000000000"),
        ("# ?/?", "0.5", "0.5"),
        ("General;[Red]-General", "2.5", "2.5"),
        (";;;", "3", "3"),
    ],
)
def test_numbers_are_shown_as_their_format_says(code: str, number: str, shown: str) -> None:
    head = f'<row r="1">{value("A1", "x", "str")}</row>'
    rows = f'{head}<row r="2">{value("A2", number, style=5)}</row>'
    data = xlsx(rows, codes=(code,))
    assert sheets.convert_sheets("a.xlsx", data).markdown.split("\n")[-2] == f"| {shown} |"


def test_columns_that_are_left_out_are_counted_as_a_warning() -> None:
    far = f'<row r="1">{value("A1", "x", "str")}{value("KN1", "far", "str")}</row>'
    blank = f'<row r="1">{value("A1", "x", "str")}<c r="KN1" s="1"/></row>'
    shown = sheets.convert_sheets("a.xlsx", xlsx(far))
    assert shown.warnings == ("The table has over 200 columns; the others were left out.",)
    assert sheets.convert_sheets("a.xlsx", xlsx(blank)).warnings == ()
    gap = '<table:table-cell table:number-columns-repeated="250"/>'
    body = f"<table:table><table:table-row>{gap}{cells('far')}</table:table-row></table:table>"
    for kind in ("spreadsheet", "text"):
        converted = opendocument.convert("a.ods", odf(body, kind))
        assert converted.warnings == shown.warnings


def test_columns_without_a_name_have_none() -> None:
    rows = "".join(
        f'<row r="{number}">{value(f"A{number}", first, "str")}{value(f"C{number}", last, "str")}'
        "</row>"
        for number, first, last in ((1, "Sales", ""), (2, "x", "y"))
    )
    assert sheets.convert_sheets("a.xlsx", xlsx(rows)).markdown == (
        "## Oven\n\n| Sales |  |  |\n|---|---|---|\n| x |  | y |\n"
    )


def test_each_chunk_of_a_long_sheet_has_the_head() -> None:
    rows = '<row r="1"><c t="str"><v>Name</v></c><c t="str"><v>Age</v></c></row>' + "".join(
        f'<row r="{n}">{value(f"A{n}", f"person {n}", "str")}{value(f"B{n}", str(n))}</row>'
        for n in range(2, 700)
    )
    converted = sheets.convert_sheets("a.xlsx", xlsx(rows))
    document = parse_literal("a.xlsx", converted, has_links=False)
    assert len(document.chunks) > 10
    for chunk in document.chunks:
        text = document.text[chunk.start_char : chunk.end_char]
        assert "| Name | Age |\n|---|---|\n| person " in text
        assert 2 * len(text) < MAXIMUM
    first, second = (each.label.removeprefix("Oven!").split(":") for each in converted.anchors[:2])
    assert first[0] == "A1"
    assert second[0] == f"A{int(first[1].removeprefix('B')) + 1}"


ODF = (
    'xmlns:office="o" xmlns:text="t" xmlns:table="tb" xmlns:draw="d" xmlns:presentation="p" '
    'xmlns:xlink="x" xmlns:style="s"'
)


def odf(
    body: str, kind: str = "text", *, manifest: str = "", parts: Mapping[str, str] | None = None
) -> bytes:
    content = f"<office:document-content {ODF}><office:body><office:{kind}>{body}</office:{kind}>"
    meta = (
        '<m xmlns:dc="d" xmlns:meta="m"><dc:title>On bread</dc:title><meta:initial-creator>Ann'
        "</meta:initial-creator><meta:creation-date>2024-03-05T10:00:00Z</meta:creation-date></m>"
    )
    return archive(
        {
            "content.xml": f"{content}</office:body></office:document-content>",
            "meta.xml": meta,
            **({"META-INF/manifest.xml": manifest} if manifest else {}),
            **(parts or {}),
        }
    )


def cells(*texts: str) -> str:
    return "".join(
        f"<table:table-cell><text:p>{each}</text:p></table:table-cell>" for each in texts
    )


def test_opendocument_text() -> None:
    body = (
        '<text:h text:outline-level="2">Part</text:h>'
        "<text:p>data<text:span>base</text:span><text:s/>[[x]] "
        '<text:a xlink:href="https://a.org">link</text:a>'
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>The note."
        "</text:p></text:note-body></text:note><office:annotation><text:p>hidden</text:p>"
        "</office:annotation> end</text:p>"
        "<text:list><text:list-item><text:p>a</text:p><text:list><text:list-item><text:p>b</text:p>"
        "</text:list-item></text:list></text:list-item></text:list>"
        "<text:table-of-content><text:p>contents</text:p></text:table-of-content>"
        f"<table:table><table:table-row>{cells('Flour', 'Hours')}</table:table-row>"
        f"<table:table-row>{cells('Rye', '12')}</table:table-row></table:table>"
        "<text:p>Box<draw:frame><draw:text-box><text:p>inside</text:p></draw:text-box></draw:frame>"
        "</text:p>"
    )
    converted = opendocument.convert("a.odt", odf(body))
    assert converted.markdown == (
        "## Part\n\ndatabase [[x]] [link](https://a.org)[^1] end\n\n- a\n  - b\n\n"
        "| Flour | Hours |\n|---|---|\n| Rye | 12 |\n\nBox\n\ninside\n\n[^1]: The note.\n"
    )
    assert about(converted) == ABOUT


def test_lists_tables_and_formulas_inside_each_other_in_opendocument() -> None:
    style = (
        '<text:list-style style:name="L1"><text:list-level-style-number text:level="1"'
        ' style:num-format="1"/><text:list-level-style-bullet text:level="2"/></text:list-style>'
    )

    def item(inside: str) -> str:
        return f"<text:list-item>{inside}</text:list-item>"

    inner = f"<text:list>{item('<text:p>b</text:p>')}</text:list>"
    nested = f"<table:table><table:table-row>{cells('in', 'side')}</table:table-row></table:table>"
    body = (
        f'<text:list text:style-name="L1">{item("<text:p>a</text:p>" + inner)}'
        f"{item('<text:p>c</text:p>')}</text:list>"
        '<text:list text:style-name="L1" text:continue-numbering="true">'
        f"{item('<text:p>d</text:p>')}</text:list>"
        f"<table:table><table:table-row>{cells('x')}<table:table-cell>{nested}{inner}"
        "</table:table-cell></table:table-row></table:table>"
        '<text:p>Speed <draw:frame><draw:object xlink:href="./Formula-0"/></draw:frame></text:p>'
    )
    content = (
        f"<office:document-content {ODF}><office:automatic-styles>{style}"
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )
    formula = "<math><mfrac><mi>d</mi><mrow><mi>t</mi><mo>+</mo><mn>1</mn></mrow></mfrac></math>"
    data = archive({"content.xml": content, "Formula-0/content.xml": formula})
    assert opendocument.convert("a.odt", data).markdown == (
        "1. a\n   - b\n2. c\n3. d\n\n| x | in side b |\n|---|---|\n\nSpeed d/(t+1)\n"
    )


def test_numbers_of_opendocument_lists_begin_where_the_list_says() -> None:
    style = (
        '<text:list-style style:name="L1"><text:list-level-style-number text:level="1"'
        ' style:num-format="1" text:start-value="5"/></text:list-style>'
    )
    body = (
        '<text:list text:style-name="L1"><text:list-header><text:p>above</text:p>'
        "</text:list-header><text:list-item><text:p>a</text:p></text:list-item>"
        '<text:list-item text:start-value="120"><text:p>b</text:p></text:list-item>'
        "<text:list-item><text:p>c</text:p></text:list-item></text:list>"
        '<text:p>between</text:p><text:list text:style-name="L1" text:continue-numbering="true">'
        "<text:list-item><text:p>d</text:p></text:list-item></text:list><text:p>between</text:p>"
        '<text:list text:style-name="L1"><text:list-item><text:p>e</text:p></text:list-item>'
        "</text:list>"
    )
    assert opendocument.convert("a.odt", odf(style + body)).markdown == (
        "above\n\n5. a\n120. b\n121. c\n\nbetween\n\n122. d\n\nbetween\n\n5. e\n"
    )


def test_formulas_stand_wherever_text_does_in_opendocument() -> None:
    formula = '<draw:frame><draw:object xlink:href="./Formula-0"/></draw:frame>'
    body = (
        f"<text:h>Speed {formula} here</text:h>"
        f'<text:p><text:a xlink:href="https://a.org">of {formula}</text:a><text:note><text:p>'
        f"As {formula}.</text:p></text:note></text:p>"
        f"<table:table><table:table-row>{cells('x', f'is {formula}!')}</table:table-row>"
        f"</table:table>{formula}"
    )
    parts = {"Formula-0/content.xml": "<math><mfrac><mi>d</mi><mi>t</mi></mfrac></math>"}
    assert opendocument.convert("a.odt", odf(body, parts=parts)).markdown == (
        "# Speed d/t here\n\n[of d/t](https://a.org)[^1]\n\n| x | is d/t! |\n|---|---|\n\nd/t\n\n"
        "[^1]: As d/t.\n"
    )
    page = f'<draw:page><draw:frame presentation:class="title">{formula}</draw:frame>{formula}'
    data = odf(f"{page}</draw:page>", "presentation", parts=parts)
    assert opendocument.convert("a.odp", data).markdown == "## d/t\n\nd/t\n"
    inside = f"<text:p><draw:object>{parts['Formula-0/content.xml']}</draw:object></text:p>"
    assert opendocument.convert("a.odt", odf(inside)).markdown == "d/t\n"


def test_opendocument_sheets_and_slides() -> None:
    blank = "<table:table-cell/></table:table-row>"
    empty = f'<table:table-row table:number-rows-repeated="2">{blank}'
    endless = f'<table:table-row table:number-rows-repeated="1000000">{blank}'
    sheet = (
        f'<table:table table:name="Oven">{empty}'
        f"<table:table-row>{cells('Flour', 'Hours')}</table:table-row>"
        '<table:table-row table:number-rows-repeated="2"><table:table-cell '
        'table:number-columns-repeated="900000000"><text:p>x</text:p></table:table-cell>'
        f"</table:table-row>{endless}</table:table>"
    )  # fmt: skip
    converted = opendocument.convert("a.ods", odf(sheet, "spreadsheet"))
    assert converted.markdown.startswith("## Oven\n\n")
    assert converted.anchors[0].label.startswith("Oven!A3:")
    page = (
        '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Title</text:p>'
        "</draw:text-box></draw:frame><draw:frame><draw:text-box><text:p>Text</text:p>"
        "</draw:text-box></draw:frame><presentation:notes>"
        '<draw:frame presentation:class="notes"><draw:text-box>'
        "<text:p>Slowly</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
    )
    converted = opendocument.convert("a.odp", odf(page * 2, "presentation"))
    assert (
        converted.markdown
        == "## Title\n\nText\n\nNotes: Slowly\n\n## Title\n\nText\n\nNotes: Slowly\n"
    )
    assert [(each.kind, each.label) for each in converted.anchors] == [
        ("slide", "1"),
        ("slide", "2"),
    ]


CONVERTERS = [word.convert, slides.convert_slides, sheets.convert_sheets, opendocument.convert]


@pytest.mark.parametrize("convert", CONVERTERS)
def test_what_is_no_office_file(convert: Callable[[str, bytes], Converted]) -> None:
    for data in (b"", b"PK\x03\x04", b"text", archive({"a": "b"}), office("gone.xml", {})):
        with pytest.raises(DamagedFileError):
            convert("a", data)
    compound = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
    with pytest.raises(EncryptedFileError):
        convert("a", compound + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(DamagedFileError, match="97 to 2003"):
        convert("a", compound)
    bomb = "<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c '&b;&b;'>]><a>&c;</a>"
    with pytest.raises(DamagedFileError, match="entities"):
        convert("a", office("a.xml", {"a.xml": bomb, "content.xml": bomb}))


@pytest.mark.parametrize("part", ["xl/worksheets/a.xml", "xl/worksheets/b.xml", "xl/strings.xml"])
def test_parts_that_are_read_piece_by_piece_declare_no_entities(part: str) -> None:
    with zipfile.ZipFile(BytesIO(xlsx("<row><c/></row>", strings=("a",)))) as whole:
        parts: dict[str, bytes] = {name: whole.read(name) for name in whole.namelist()}
    sheets.convert_sheets("a.xlsx", archive(parts))
    parts[part] = b"<!DOCTYPE a [<!ENTITY b 'bb'>]>" + parts[part]
    with pytest.raises(DamagedFileError, match=f"'{part}' declares entities"):
        sheets.convert_sheets("a.xlsx", archive(parts))


def test_opendocument_files_may_be_encrypted() -> None:
    manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
    with pytest.raises(EncryptedFileError):
        opendocument.convert("a.odt", odf("", manifest=manifest))
