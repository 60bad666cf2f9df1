"""What documents hold: their headings, and the properties of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from qmd.errors import (
    AmbiguousNameError,
    DocumentNotFoundError,
    NotFoundError,
    SectionNotFoundError,
)
from qmd.operations.arguments import Limit
from qmd.operations.definition import Replied, Row, Styled, operation
from qmd.values.facts import Describe, Shell
from qmd.values.properties import PropertyList
from qmd.values.reading import DocumentOutline

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

FAMILY = {"toolset": "graph", "group": "read"}


# --- outline -------------------------------------------------------------------------


def _outline(outlined: DocumentOutline) -> Iterator[Row]:
    """One row for each heading and block, in the order of their lines."""
    parts: list[tuple[int, tuple[Styled | str, ...]]] = [
        (heading.line, ("  " * (heading.level - 1), heading.text)) for heading in outlined.headings
    ]
    parts += [(block.line, (Styled(f"^{block.block}", "dim"),)) for block in outlined.blocks]
    for line, text in sorted(parts, key=lambda part: part[0]):
        yield Row((Styled(f"{line:>5}", "line", outlined.file, line), "  ", *text))


def _outline_lines(outlined: DocumentOutline) -> Iterator[str]:
    lines = [
        (heading.line, f"{heading.line}: {'#' * heading.level} {heading.text}")
        for heading in outlined.headings
    ]
    lines += [(block.line, f"{block.line}: ^{block.block}") for block in outlined.blocks]
    return (text for _, text in sorted(lines, key=lambda line: line[0]))


def _outline_rest(outlined: DocumentOutline, budget: str) -> str:
    headings = outlined.total - len(outlined.headings)
    count = max(headings, outlined.left_out)
    if not count:
        return ""
    more = f"{count:,} more {'heading' if headings else 'block'}{'' if count == 1 else 's'}"
    or_raise = f", or raise {budget}" if outlined.left_out else ""
    return f"… {more}: name a section, as in FILE#Heading{or_raise}"


@operation(
    rows=_outline,
    lines=_outline_lines,
    heading="{file} ({lines:,} lines)",
    when_empty="{file} has no headings.",
    left_out_text=_outline_rest,
    title="Outline of a document",
    zh="一篇文档的标题和命名块，附行号。",
    examples=("qmd outline plan", "qmd outline 'plan#Next steps'", "qmd outline MOC --json"),
    errors=(DocumentNotFoundError, SectionNotFoundError, AmbiguousNameError),
)
def outline(
    kb: KnowledgeBase,
    file: Annotated[
        str,
        Describe(
            "A name as get takes it, perhaps with #Heading", zh="get 所接受的名称，可加 #标题"
        ),
        Shell("FILE[#HEADING]", completes="documents"),
    ],
) -> DocumentOutline:
    """
    List the headings and named blocks of a document, with lines.

    With #Heading, those of that section.
    """
    return kb.outline(file)


# --- properties ----------------------------------------------------------------------


def _properties(listed: PropertyList) -> Iterator[Row]:
    rows = [(each.documents, each.key, _counts(each.kinds)) for each in listed.keys]
    rows += [(each.documents, each.value or "(none)", each.kind) for each in listed.values]
    width = max((len(f"{documents:,}") for documents, _, _ in rows), default=0)
    for documents, name, kinds in rows:
        count = Styled(f"{documents:>{width},}", "dim")
        yield Row((count, "  ", Styled(name, "file"), "  ", Styled(kinds, "dim")))


def _counts(kinds: Mapping[str, int]) -> str:
    """``number``, or ``12 number, 3 text`` if the values are of several kinds."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())


def _property_lines(listed: PropertyList) -> Iterator[str]:
    for key in listed.keys:
        yield f"{key.key} {key.documents} ({', '.join(key.kinds)})"
    for value in listed.values:
        yield f"{value.value or '(empty)'} {value.documents}"


def _property_heading(replied: Replied) -> str:
    key = replied.arguments.get("key")
    title = f"Values of {key}" if key else "Properties"
    return f"{title}, with their documents: {replied.value.total:,}"


@operation(
    rows=_properties,
    lines=_property_lines,
    heading=_property_heading,
    when_empty="No document has properties.",
    json_is_list=True,
    zh="所有笔记的属性（frontmatter 与行内字段）或某一属性的取值，附数量。搜索时写成 key:value。",
    examples=("qmd properties", "qmd properties status", "qmd properties --json"),
    errors=(NotFoundError,),
)
def properties(
    kb: KnowledgeBase,
    key: Annotated[
        str,
        Describe("List the values of this property instead", zh="改为列出此属性的取值"),
        Shell("[KEY]", completes="property_keys", positional=True),
    ] = "",
    limit: Limit = 50,
) -> PropertyList:
    """
    List the properties of all notes, or the values of one.

    Each with the number of documents. Properties are the values of frontmatter and of inline fields
    (key:: value). Searches take conditions on them, such as status:draft.
    """
    if not key:
        keys = kb.properties()
        return PropertyList(keys=tuple(keys[:limit]), total=len(keys))
    try:
        values = kb.property_values(key)
    except NotFoundError as error:
        begin = f"{error.hint.removesuffix('.')}. " if error.hint else ""
        hint = f"{begin}To see the properties of one note, get the note."
        raise NotFoundError(str(error), hint=hint) from error
    return PropertyList(values=tuple(values[:limit]), total=len(values))
