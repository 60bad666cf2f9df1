"""Makes the archives that books and office files are."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from html import escape
from io import BytesIO


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive of these parts, compressed."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in parts.items():
            written.writestr(name, content)
    return file.getvalue()


def epub(
    documents: Mapping[str, str], *, toc: Mapping[str, str] | None = None, metadata: str = ""
) -> dict[str, str | bytes]:
    """
    The parts of a book.

    Args:
        documents: The bodies of its XHTML documents by their names, in reading order.
        toc: The titles in its table of contents by the names of documents.
    """
    items = "".join(
        f'<item id="d{number}" href="{name}" media-type="application/xhtml+xml"/>'
        for number, name in enumerate(documents)
    )
    refs = "".join(f'<itemref idref="d{number}"/>' for number in range(len(documents)))
    links = "".join(f'<li><a href="{name}">{title}</a></li>' for name, title in (toc or {}).items())
    nav = '<item id="nav" href="nav.xhtml" properties="nav"/>' if toc else ""
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<container>"
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata><manifest>{items}{nav}</manifest>"
        f"<spine>{refs}</spine></package>",
        "OEBPS/nav.xhtml": f"<html><body><nav><ol>{links}</ol></nav></body></html>",
        **{
            f"OEBPS/{name}": '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">'
            f'<head><title/></head><body>{body}</body></html>'
            for name, body in documents.items()
        },
    }  # fmt: skip


#: The namespaces of Office's formats, as attributes of a root.
OFFICE = (
    'xmlns:w="http://w.example/main" xmlns:r="http://r.example/relationships" '
    'xmlns:a="http://a.example/main" xmlns:p="http://p.example/main" '
    'xmlns:mc="http://mc.example" xmlns:m="http://m.example" xmlns:c="http://c.example"'
)


def relations(targets: Mapping[str, tuple[str, str]], *, external: bool = False) -> str:
    """The part with the relations of another: the type and the target of each by its id."""
    mode = ' TargetMode="External"' if external else ""
    entries = "".join(
        f'<Relationship Id="{key}" Type="http://t.example/{kind}" Target="{target}"{mode}/>'
        for key, (kind, target) in targets.items()
    )
    return f"<Relationships>{entries}</Relationships>"


def office(main: str, parts: Mapping[str, str | bytes]) -> bytes:
    """A file of Office whose main part has this name, with the properties of a document."""
    about = (
        '<cp xmlns:dc="d" xmlns:dcterms="t"><dc:title>On bread</dc:title>'
        "<dc:creator>Ann</dc:creator><dcterms:created>2024-03-05T10:00:00Z</dcterms:created></cp>"
    )
    return archive(
        {
            "_rels/.rels": relations({"r1": ("officeDocument", main)}),
            "docProps/core.xml": about,
            **parts,
        }
    )


def xlsx(
    rows: str, *, strings: tuple[str, ...] = (), workbook: str = "", codes: tuple[str, ...] = ()
) -> bytes:
    """
    A workbook with the sheets ``Oven``, which has these rows of XML, and ``Empty``.

    Args:
        codes: The formats of styles from 5 on.
    """
    shared = "".join(f"<si><t>{each}</t><rPh><t>no</t></rPh></si>" for each in strings)
    formats = '<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    formats += '<numFmt numFmtId="165" formatCode="0.0%"/>'
    formats += "".join(
        f'<numFmt numFmtId="{number}" formatCode="{escape(code, quote=True)}"/>'
        for number, code in enumerate(codes, start=200)
    )
    numbers = (0, 164, 165, 22, 20, *range(200, 200 + len(codes)))
    styles = "".join(f'<xf numFmtId="{each}"/>' for each in numbers)
    return office(
        "xl/workbook.xml",
        {
            "xl/workbook.xml": f'<workbook {OFFICE}>{workbook}<sheets><sheet name="Oven" r:id="a"/>'
            '<sheet name="Empty" r:id="b"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(
                {
                    "a": ("worksheet", "worksheets/a.xml"),
                    "b": ("worksheet", "worksheets/b.xml"),
                    "c": ("sharedStrings", "strings.xml"),
                    "d": ("styles", "styles.xml"),
                }
            ),
            "xl/worksheets/a.xml": f"<worksheet><sheetData>{rows}</sheetData></worksheet>",
            "xl/worksheets/b.xml": "<worksheet><sheetData/></worksheet>",
            "xl/strings.xml": f"<sst>{shared}</sst>",
            "xl/styles.xml": f"<s><numFmts>{formats}</numFmts><cellXfs>{styles}</cellXfs></s>",
        },
    )  # fmt: skip


def value(place: str, text: str, kind: str = "n", style: int = 0) -> str:
    """A cell of a sheet, such as ``B3``."""
    return f'<c r="{place}" t="{kind}" s="{style}"><v>{text}</v></c>'


def shape(text: str, kind: str | None = None, level: int = 0) -> str:
    """A shape of a slide; ``/`` parts its paragraphs, ``kind`` is the placeholder that it fills."""
    placeholder = "" if kind is None else f'<p:ph type="{kind}"/>'
    paragraphs = "".join(
        f'<a:p><a:pPr lvl="{level}"/><a:r><a:t>{each}</a:t></a:r></a:p>' for each in text.split("/")
    )
    properties = f"<p:nvSpPr><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr>"
    return f"<p:sp>{properties}<p:txBody>{paragraphs}</p:txBody></p:sp>"


def pptx(bodies: list[str], notes: str = "") -> bytes:
    """A presentation: the shapes of each slide, the last one first, and the notes of the last."""
    numbers = range(1, len(bodies) + 1)
    parts: dict[str, str | bytes] = {
        f"ppt/slides/slide{n}.xml": f"<p:sld {OFFICE}><p:spTree>{body}</p:spTree></p:sld>"
        for n, body in zip(numbers, bodies, strict=True)
    }
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in reversed(numbers))
    parts["ppt/presentation.xml"] = (
        f"<p:presentation {OFFICE}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    )
    parts["ppt/_rels/presentation.xml.rels"] = relations(
        {f"s{n}": ("slide", f"slides/slide{n}.xml") for n in numbers}
    )
    parts["ppt/slides/_rels/slide1.xml.rels"] = relations(
        {"n": ("notesSlide", "../notes/n1.xml"), "c1": ("chart", "../charts/c1.xml")}
    )
    parts["ppt/notes/n1.xml"] = (
        f"<p:notes {OFFICE}><p:spTree>{shape(notes, 'body')}</p:spTree></p:notes>"
    )
    parts["ppt/charts/c1.xml"] = (
        f"<c:chart {OFFICE}><a:t>Sales</a:t><c:v>Rye</c:v><c:v>12.5</c:v></c:chart>"
    )
    return office("ppt/presentation.xml", parts)
