"""Reading documents, listing them, and what is indexed; with the texts of their specification."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from qmd import errors, values
from qmd.operations import texts
from qmd.operations.definition import ByHand, KnowledgeBase, Replied, operation
from qmd.operations.problems import closest
from qmd.operations.replies import DocumentBlock, Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.values.facts import Describe, Inline, NotSent, Obvious, Range, Shell, ShellOnly
from qmd.values.search import Collections, GroupBy, Properties, Sort, Tags
from qmd.values.text import MAX_TOTAL_BYTES, MaxTokens, one_line
from qmd.values.wire import to_wire

FAMILY = {"toolset": "qmd", "group": "read"}

LineNumbers = Annotated[
    bool,
    Obvious(),
    Describe("Number the lines", zh="给每行加行号"),
    Shell(default=True, help="Number the lines as an editor does"),
]
Budget = Annotated[MaxTokens, Shell(help="Most tokens to print, estimated; says what is left out")]

#: The most documents on one page of the listing that a server sends.
MAX_PAGE = 1000


# --- what endpoints send -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    block: Annotated[DocumentBlock, Inline()]


@dataclass(frozen=True, slots=True)
class Notice:
    """A file that was skipped, or names that were not found."""

    type: Literal["text"]
    text: str


@dataclass(frozen=True, slots=True)
class GetReply:
    document: Document
    content: None = field(default=None, init=False)


@dataclass(frozen=True, slots=True)
class DocumentBatch:
    results: tuple[Document | Notice, ...]
    content: None = field(default=None, init=False)


@dataclass(frozen=True, slots=True)
class ListedDocument:
    document: Annotated[
        values.DocumentInfo,
        Inline("file", "uri", "collection", "path", "title", "docid", "bytes", "modified", "group"),
    ]


@dataclass(frozen=True, slots=True)
class DocumentList:
    documents: tuple[ListedDocument, ...]
    total: Annotated[int, Range(0), Describe("How many there are below the prefix")]
    limit: Annotated[int, Range(1)]
    offset: Annotated[int, Range(0)]


# --- documents -----------------------------------------------------------------------


def _document_reply(replied: Replied, dialect: Dialect) -> Reply:
    # No notice of lines cut off by maxLines, as in multi_get: the caller chose the lines.
    document, numbered = replied.value, replied.arguments["line_numbers"]
    block = _document(document, document.text, dialect, numbered=numbered)
    has_budget = "max_tokens" in replied.arguments
    structured = to_wire(replace(document, text=block.text), dialect.field)
    return Reply((block, *_notices(document, dialect, has_budget=has_budget)), structured)


def _get_reply(replied: Replied) -> GetReply:
    block = _document_reply(replied, texts.REST).blocks[0]
    assert isinstance(block, DocumentBlock)
    return GetReply(Document(block))


@operation(
    tool=ByHand(_document_reply, values.DocumentSlice, outputs_more=True),
    sends=_get_reply,
    done_by="read:get",
    options=("full_hidden", "full_path", "format"),
    examples=(
        "qmd get notes/2025/plan.md",
        "qmd get plan:120:40               # 40 lines from line 120",
        "qmd get 'plan#Next steps'         # the section below that heading",
        "qmd get '#a1b2c3' --no-line-numbers > plan.md",
    ),
    title="Get document",
    zh="按结果的 file 或 docid 读取一篇文档的全部或若干行。路径不存在时给出相近的路径。",
    bodies=({"file": "notes/2025/plan.md:3", "max_lines": 20, "line_numbers": True},),
    errors=(errors.DocumentNotFoundError, errors.SectionNotFoundError, errors.AmbiguousNameError),
)
def get(
    kb: KnowledgeBase,
    file: Annotated[
        str,
        Describe(
            "Path, name, `[[link]]`, `#docid` or qmd:// URI; then `#Heading` or `:LINE`",
            zh="路径、名称、`[[链接]]`、`#docid` 或 qmd:// URI；其后可加 `#标题` 或 `:行号`",
        ),
        Shell("FILE[:LINE[:COUNT]]", completes="documents"),
    ],
    from_line: Annotated[
        int | None, Describe("First line, from 1", zh="起始行，从 1 数起"), Shell("L", "--from")
    ] = None,
    max_lines: Annotated[
        int | None,
        Range(1),
        Obvious(),
        Describe("Most lines to return", zh="最多返回多少行"),
        Shell("N", "-l", "--lines"),
    ] = None,
    max_tokens: Budget = None,
    line_numbers: LineNumbers = False,
    max_total_bytes: Annotated[int | None, NotSent()] = None,
) -> values.DocumentSlice:
    """
    Read one document, or some lines of it.

    By the file or docid of a hit.

    FILE may also be a path on the disk, the end of a path, an alias or a title; letter
    case does not matter, and .md may be left out. Behind it may be #Heading, #Heading#Subheading or
    ^block. Numbered lines are for reading: with --no-line-numbers, and in --json, --csv and --xml,
    the text is exactly the document's.
    """
    return kb.get(
        file,
        from_line=from_line,
        max_lines=max_lines,
        max_tokens=max_tokens,
        max_total_bytes=max_total_bytes,
        line_numbers=line_numbers,
    )


def _documents_reply(replied: Replied, dialect: Dialect) -> Reply:
    reply, numbered = replied.value, replied.arguments["line_numbers"]
    has_budget = "max_tokens" in replied.arguments
    blocks: list[TextBlock | DocumentBlock] = []
    items: list[values.DocumentSlice | values.SkippedDocument] = []
    if reply.errors:
        blocks.append(TextBlock(texts.errors_block(reply.errors)))
    for item in reply.items:
        if isinstance(item, values.SkippedDocument):
            notice = texts.skip_notice(item.document.file, item.document.bytes, dialect)
            blocks.append(TextBlock(notice))
            items.append(item)
        else:
            truncated = item.more_lines if item.left_out is None else 0
            text = texts.with_notice(item.text, truncated, dialect)
            blocks.append(_document(item, text, dialect, numbered=numbered))
            body = _numbered(item.text, item, numbered=numbered)
            items.append(replace(item, text=body))
            blocks += _notices(item, dialect, has_budget=has_budget)
    if reply.next_file is not None:
        blocks.append(TextBlock(texts.documents_left_out(reply.more, reply.next_file)))
    structured = to_wire(replace(reply, items=tuple(items)), dialect.field)
    return Reply(tuple(blocks), structured, is_error=not reply.items)


def _multi_get_reply(replied: Replied) -> DocumentBatch:
    reply = _documents_reply(replied, texts.REST)
    if reply.is_error:  # the pattern is a list of names, and none has a document
        raise errors.NoMatchError(texts.errors_block(replied.value.errors))
    return DocumentBatch(
        tuple(
            Notice("text", block.text) if isinstance(block, TextBlock) else Document(block)
            for block in reply.blocks
        )
    )


@operation(
    tool=ByHand(_documents_reply, values.MultiGetReply, outputs_more=True),
    sends=_multi_get_reply,
    done_by="read:multi_get",
    options=("full_path", "format"),
    examples=(
        "qmd multi-get 'notes/2025-*.md'",
        "qmd multi-get 'plan.md, notes/todo.md' -l 50",
        "qmd multi-get 'notes/**/*.md' --max-bytes 200000 --json",
    ),
    title="Get several documents",
    zh="用通配符或列表一次读取多篇文档。超过 maxBytes 的文件跳过并注明，请用 get 读取。",
    bodies=({"pattern": "journals/2025-05*.md"},),
    lane="bulk",
    errors=(errors.NoMatchError,),
)
def multi_get(
    kb: KnowledgeBase,
    pattern: Annotated[
        str,
        Describe(
            "Glob (`journals/2025-05*.md`) or comma-separated files",
            zh="通配符（`journals/2025-05*.md`）或逗号分隔的文件列表",
        ),
        Shell("PATTERN...", completes="documents", join=","),
    ],
    max_lines: Annotated[
        int | None,
        Range(1),
        Describe("Most lines of each file", zh="每个文件最多多少行"),
        Shell("N", "-l", "--lines"),
    ] = None,
    max_bytes: Annotated[
        int,
        Range(1),
        Obvious(),
        Describe("Skip files larger than this", zh="跳过比这更大的文件（字节）"),
    ] = 10240,
    max_tokens: Budget = None,
    line_numbers: LineNumbers = False,
    max_total_bytes: Annotated[
        int,
        ShellOnly(),
        Range(1000),
        Describe("Stop when all that is printed has about N bytes"),
    ] = MAX_TOTAL_BYTES,
) -> values.MultiGetReply:
    """
    Read several documents at once.

    Larger files are skipped: use get.

    Several PATTERNs are a list of names, so a glob without quotes, which the shell expands, works
    too. Names that match nothing are listed on stderr, and the exit code is then 1. Documents that
    do not fit into the bounds are counted on stderr, with the name of the first.
    """
    return kb.multi_get(
        pattern,
        max_lines=max_lines,
        max_bytes=max_bytes,
        max_tokens=max_tokens,
        max_total_bytes=max_total_bytes,
        line_numbers=line_numbers,
    )


def _document_list(replied: Replied) -> DocumentList:
    listed: DocumentPage = replied.value
    documents = tuple(map(ListedDocument, listed.documents))
    return DocumentList(documents, listed.total, listed.limit or MAX_PAGE, listed.offset)


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of the listing; ``limit`` None: all."""

    documents: tuple[values.DocumentInfo, ...]
    total: int
    limit: int | None
    offset: int


@operation(
    toolset=None,
    sends=_document_list,
    done_by="read:ls",
    options=("full_path",),
    command="ls",
    examples=(
        "qmd ls notes/2025",
        "qmd ls --tag work --sort -date -n 20",
        "qmd ls -p status:draft -p 'rating:>4' --sort -rating",
        "qmd ls notes --group-by status --json",
    ),
    errors=(errors.CollectionNotFoundError, errors.NotFoundError),
)
def documents(
    kb: KnowledgeBase,
    prefix: Annotated[
        str,
        Describe("Only what lies below: collection or collection/folder"),
        Shell("[COLLECTION[/PREFIX]]", completes="documents", positional=True),
    ] = "",
    limit: Annotated[
        int | None, Range(1, MAX_PAGE), Describe("Most documents to list"), Shell(default=None)
    ] = 100,
    offset: Annotated[int, Range(0, 999_999), Describe("How many to leave out at the start")] = 0,
    collections: Collections = (),
    tags: Tags = (),
    properties: Properties = (),
    sort: Sort = None,
    group_by: GroupBy = None,
) -> DocumentPage:
    """
    List documents: docid, size, time of change, file, title.

    By collection and path, and how many there are in all.
    """
    conditions = {"collections": collections, "tags": tags, "properties": properties}
    listed = kb.documents(
        prefix, **conditions, sort=sort, group_by=group_by, limit=limit, offset=offset
    )
    is_all = not offset and (limit is None or len(listed) < limit)
    total = len(listed) if is_all else kb.count_documents(prefix, **conditions)
    return DocumentPage(tuple(listed), total, limit, offset)


#: A resource is read by its URI, so its text need not name the file.
_RESOURCE = replace(texts.MCP, heads_with=frozenset({"context"}))


def _notices(
    document: values.DocumentSlice, dialect: Dialect, *, has_budget: bool
) -> list[TextBlock]:
    """
    The notices, if any, of the lines that a budget or the bound of replies left out, and of other
    sections of the name.
    """
    notices = []
    if document.same_name:
        sentence = texts.same_name(document.same_name)
        place = f"{one_line(document.document.file)}:{document.same_name[0]}"
        notices.append(f"{sentence}: get {place}")
    if document.left_out is not None:
        raise_what = dialect.field("max_tokens") if has_budget else None
        notices.append(
            texts.lines_left_out(document.left_out, document.document.file, raise_what=raise_what)
        )
    return [TextBlock(f"[{notice}]") for notice in notices]


def document_block(document: values.DocumentSlice) -> DocumentBlock:
    """A document as an MCP resource: with numbered lines, and its context before the text."""
    return _document(document, document.text, _RESOURCE, numbered=True)


def _document(
    document: values.DocumentSlice, text: str, dialect: Dialect, *, numbered: bool
) -> DocumentBlock:
    return DocumentBlock(
        document.document,
        _numbered(text, document, numbered=numbered),
        document.context,
        document.left_out,
        document.same_name,
        heading=texts.document_heading(document, dialect),
        first_line=document.from_line,
        last_line=document.last_line,
    )


def _numbered(text: str, document: values.DocumentSlice, *, numbered: bool) -> str:
    return texts.line_numbers(text, document.from_line, document.lines) if numbered else text


# --- status --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusReply:
    """What the index holds, and how far it is behind the disk; ``status`` has all of the former."""

    status: Annotated[values.Status, NotSent()]
    index: Annotated[values.IndexStatus, Inline()]
    freshness: values.Freshness


def _status_reply(replied: Replied, dialect: Dialect) -> Reply:
    reply: StatusReply = replied.value
    sentences = (
        texts.status_text(reply.status),
        texts.status_replica(reply.freshness),
        texts.status_excluded(reply.status),
        texts.status_missing(reply.status),
        "\n".join(reply.freshness.notices) or None,
        texts.status_advice(reply.status, reply.freshness),
    )
    blocks = tuple(TextBlock(text) for text in sentences if text is not None)
    return Reply(blocks, to_wire(reply, dialect.field))


@operation(
    tool=ByHand(_status_reply, StatusReply),
    done_by="read:status",
    section="Look after it",
    examples=("qmd status", "qmd status --json"),
    title="Index status",
    zh="有哪些集合、各有多少文档、向量是否就绪。参数 collection 的取值见此。",
    errors=(errors.CollectionNotFoundError,),
)
def status(
    kb: KnowledgeBase,
    collection: Annotated[
        str | None,
        Describe("List only this one", zh="只列出这一个集合"),
        Shell("NAME", "-c", "--collection", completes="collections"),
    ] = None,
) -> StatusReply:
    """
    Which collections exist, and whether vectors are ready.

    With the number of documents of each.
    """
    status = kb.status()
    if collection is not None:
        status = replace(status, collections=_named(collection, status.collections))
    index = values.IndexStatus(status, tuple(map(_collection_status, status.collections)))
    return StatusReply(status, index, kb.freshness())


def _named(name: str, collections: tuple[values.Collection, ...]) -> tuple[values.Collection, ...]:
    """The collection of this name, alone. Raises CollectionNotFoundError."""
    for collection in collections:
        if collection.name == name:
            return (collection,)
    similar_name = closest(name, [collection.name for collection in collections])
    raise errors.CollectionNotFoundError(name, [similar_name] if similar_name else ())


def _collection_status(collection: values.Collection) -> values.CollectionStatus:
    """The status of a collection; one that has never changed was updated at its last scan."""
    last_updated = collection.last_updated or collection.last_indexed
    return values.CollectionStatus(replace(collection, last_updated=last_updated))
