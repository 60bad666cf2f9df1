"""The graph of documents: their links, their tags, what changed and what is similar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from qmd import errors
from qmd.operations.arguments import TIME_OR_SPAN, File, InCollection, Limit
from qmd.operations.definition import Joined, KnowledgeBase, Replied, Row, Styled, operation
from qmd.system import clock
from qmd.values import graph
from qmd.values.facts import Describe, Shell
from qmd.values.search import shown_relevance
from qmd.values.text import one_line

_OF_A_FILE = (errors.DocumentNotFoundError, errors.AmbiguousNameError)


# --- links ---------------------------------------------------------------------------


def _links(listed: graph.NoteLinks) -> Iterator[Row]:
    for link in listed.links:
        place = Styled(f"{link.line:>5}", "line", listed.file, link.line)
        yield Row((place, "  ", link.target), more=tuple(_destination(link)))


def _destination(link: graph.NoteLink) -> Iterator[Styled | str]:
    if link.state == "nothing":
        yield Styled("→ nothing", "warning")
    elif link.state != "web":
        yield from ("→ ", Styled(file=link.file or ""))
    if link.state == "section missing":
        yield Styled(" (no such section)", "warning")


def _link_lines(listed: graph.NoteLinks) -> Iterator[str]:
    for link in listed.links:
        missing = " (no such section)" if link.state == "section missing" else ""
        leads = "" if link.state == "web" else f" → {link.file or 'nothing'}{missing}"
        yield f"{link.line}: {link.target}{leads}"


@operation(
    rows=_links,
    lines=_link_lines,
    heading="Links in {file}: {total:,}",
    when_empty="{file} has no links.",
    zh="一篇笔记中的链接，以及各自指向哪里。",
    command="links of",
    examples=("qmd links of notes/MOC.md", "qmd links of broken --json"),
    errors=_OF_A_FILE,
)
def links(kb: KnowledgeBase, file: File, limit: Limit = 50) -> graph.NoteLinks:
    """
    List the links in a note, and where each leads.

    To a document, an attachment, the web, or nothing. Embeds are links, too.

    The same as 'qmd links FILE', for a note that is named like one of the other commands.
    """
    return kb.links(file, limit=limit)


def _backlinks(listed: graph.Backlinks) -> Iterator[Row]:
    return (Row(file=link.file, line=link.line, text=link.text) for link in listed.links)


@operation(
    rows=_backlinks,
    heading="Links to {file}: {total:,}",
    when_empty="No other note links to {file}.",
    zh="其他笔记中指向一篇笔记的链接。",
    command="links backlinks",
    other_names=("backlinks",),
    section="links",
    examples=("qmd links backlinks notes/MOC.md", "qmd links backlinks MOC -n 20"),
    errors=_OF_A_FILE,
)
def backlinks(kb: KnowledgeBase, file: File, limit: Limit = 50) -> graph.Backlinks:
    """
    List the links in other notes that lead to a note.

    Each comes with its line.
    """
    return kb.backlinks(file, limit=limit)


def _broken(listed: graph.BrokenLinks) -> Iterator[Row]:
    for link in listed.links:
        nearest: tuple[Styled | str, ...] = ()
        if link.nearest is not None:
            words = "no such section in" if link.missing == "section" else "did you mean"
            nearest = ("  ", Styled(f"({words} {link.nearest})", "dim"))
        yield Row(file=link.file, line=link.line, more=(link.target, *nearest))


@operation(
    rows=_broken,
    heading="Links that lead nowhere: {total:,}",
    when_empty="Every link leads somewhere.",
    zh="无处可去的链接，附最接近的现有名称。",
    command="links broken",
    other_names=("broken",),
    section="links",
    examples=("qmd links broken", "qmd links broken -c notes --json"),
    errors=(errors.CollectionNotFoundError,),
    lane="bulk",
)
def broken(
    kb: KnowledgeBase, collection: InCollection = None, limit: Limit = 50
) -> graph.BrokenLinks:
    """
    List the links that lead nowhere, with the nearest existing name.

    A link to a heading or block that its note lacks is one of them; a web address is not.
    """
    return kb.broken_links(collection=collection, limit=limit)


def _orphans(listed: graph.Orphans) -> Iterator[Row]:
    return (Row(file=orphan.file, text=orphan.title) for orphan in listed.documents)


@operation(
    rows=_orphans,
    heading="Documents to which no other links: {total:,}",
    when_empty="Every document is linked from another.",
    zh="没有任何其他文档链接到的文档。",
    command="links orphans",
    other_names=("orphans",),
    section="links",
    examples=("qmd links orphans", "qmd links orphans -c notes --json"),
    errors=(errors.CollectionNotFoundError,),
    lane="bulk",
)
def orphans(kb: KnowledgeBase, collection: InCollection = None, limit: Limit = 50) -> graph.Orphans:
    """
    List the documents to which no other document links.

    Embeds count as links; links of a document to itself do not. Photos are left out.
    """
    return kb.orphans(collection=collection, limit=limit)


LINKS = Joined(
    "links",
    "Links of a note",
    "Where the links of one note lead, and which lines of other notes link to it.",
    "一篇笔记的链接指向哪里，其他笔记的哪些行链接到它。",
    (links, backlinks),
)
CHECK_LINKS = Joined(
    "check_links",
    "Check links",
    "Links that lead nowhere, with the nearest existing name, and documents to which no other"
    " document links.",
    "无处可去的链接（附最接近的现有名称），以及没有任何文档链接到的文档。",
    (broken, orphans),
)


# --- tags ----------------------------------------------------------------------------


def _tags(tree: graph.TagTree) -> Iterator[Row]:
    width = max((len(f"{tag.total:,}") for tag in tree.tags), default=0)
    for tag in tree.tags:
        name = tag.tag.rpartition("/")[2] if tag.depth else f"#{tag.tag}"
        count = Styled(f"{tag.total:>{width},}", "dim")
        yield Row((count, "  ", "  " * tag.depth, Styled(name, "file")))


def _tag_lines(tree: graph.TagTree) -> Iterator[str]:
    return (f"{'  ' * tag.depth}#{tag.tag} {tag.total}" for tag in tree.tags)


def _no_tags(replied: Replied) -> str:
    prefix, nearest = replied.arguments.get("prefix"), ", ".join(replied.value.nearest)
    if not prefix:
        return "No document has a tag."
    return one_line(f"No tag {prefix}." + (f" Did you mean: {nearest}" if nearest else ""))


@operation(
    rows=_tags,
    lines=_tag_lines,
    heading="Tags, with their documents: {total:,}",
    when_empty=_no_tags,
    zh="标签树，附带有该标签或其下级标签的文档数。",
    examples=("qmd tags", "qmd tags work/", "qmd tags -c notes -n 20"),
    errors=(errors.CollectionNotFoundError,),
)
def tags(
    kb: KnowledgeBase,
    prefix: Annotated[
        str,
        Describe(
            "Only this tag and those below it, such as work/", zh="只列此标签及其下级，如 work/"
        ),
        Shell("[PREFIX/]", completes="tags", positional=True),
    ] = "",
    collection: InCollection = None,
    limit: Limit = 50,
) -> graph.TagTree:
    """
    Show the tags as a tree, with their numbers of documents.

    The number counts the documents with the tag or a tag below it.
    """
    return kb.tags(prefix, collection=collection, limit=limit)


# --- what changed --------------------------------------------------------------------


def _recent(listed: graph.RecentChanges) -> Iterator[Row]:
    width = max((len(change.by) for change in listed.changes), default=0)
    for change in listed.changes:
        facts = Styled(f"{clock.minute(change.modified)}  {change.by:<{width}}", "dim")
        yield Row((facts,), change.file, text=change.title)


def _recent_lines(listed: graph.RecentChanges) -> Iterator[str]:
    return (
        f"{change.modified[:16]}Z {change.by} {change.file} - {change.title}"
        for change in listed.changes
    )


@operation(
    rows=_recent,
    lines=_recent_lines,
    heading="Changed last: {total:,}",
    when_empty=lambda replied: (
        "Nothing changed in this time."
        if replied.arguments.get("since")
        else "There are no documents."
    ),
    noun="document",
    title="Recent changes",
    zh='最近改动了什么、由谁写入：某个工具，其他程序则为 "disk"。',
    examples=("qmd recent", "qmd recent --since 7d", "qmd recent --since 2026-03-01"),
    errors=(errors.CollectionNotFoundError,),
)
def recent(
    kb: KnowledgeBase,
    since: Annotated[
        str | None,
        Describe(
            "Since 7d, yesterday, 2026-11 or another date",
            zh="自 7d、yesterday、2026-11 或其他日期起",
        ),
        TIME_OR_SPAN,
        Shell("WHEN"),
    ] = None,
    collection: InCollection = None,
    limit: Limit = 20,
) -> graph.RecentChanges:
    """
    List what changed last, and who wrote it: a tool or the disk.

    The time is that of the file. "disk" stands for every program but qmd's own tools.
    """
    return kb.recent(since=since, collection=collection, limit=limit)


# --- what is similar -----------------------------------------------------------------


def _similar(listed: graph.SimilarDocuments) -> Iterator[Row]:
    for each in listed.documents:
        score = Styled(f"{shown_relevance(each.similarity):>4}", "score")
        linked = Styled("linked" if each.linked else "      ", "dim")
        yield Row((score, "  ", linked), each.file, each.line, each.title)


def _similar_lines(listed: graph.SimilarDocuments) -> Iterator[str]:
    for each in listed.documents:
        linked = "" if each.linked else " (not linked)"
        score = shown_relevance(each.similarity)
        yield f"{score} {each.file}:{each.line} - {each.title}{linked}"


@operation(
    rows=_similar,
    lines=_similar_lines,
    heading="Similar to {file}: {total:,}",
    when_empty="No other document has vectors.",
    title="Similar documents",
    zh="与一篇文档最相似的文档，以及是否已互相链接。需要向量。",
    examples=("qmd similar notes/plan.md", "qmd similar plan -n 5 --json"),
    errors=(*_OF_A_FILE, errors.CollectionNotFoundError, errors.DocumentNotEmbeddedError),
)
def similar(
    kb: KnowledgeBase, file: File, collection: InCollection = None, limit: Limit = 10
) -> graph.SimilarDocuments:
    """
    List the documents most similar to one, by their vectors.

    It needs the vectors that 'qmd embed' makes. Each says whether one of both links to the other;
    those that are not linked may deserve a link.
    """
    return kb.similar(file, collection=collection, limit=limit)
