"""Memory: facts in notes, remembered and recalled, and what stands around a note."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from qmd import errors
from qmd.operations import edit_texts
from qmd.operations.arguments import TIME_OR_SPAN, File, InCollection, Limit
from qmd.operations.definition import KnowledgeBase, Replied, Row, Styled, operation
from qmd.values.documents import NewFact, NoteContext, RecalledFact, RecalledFacts, RememberedFact
from qmd.values.facts import DAY, Describe, InSchema, Obvious, Range, Shell
from qmd.values.search import Tags
from qmd.values.text import MIN_TOKENS, one_line
from qmd.values.writing import EditedNote

FAMILY = {"toolset": "memory", "group": "read"}

_MOST_TOKENS = 100_000

About = Annotated[
    str,
    Describe(
        "A note's name or title; a new title makes a note", zh="笔记名或标题；新标题会新建笔记"
    ),
    Shell("NOTE", completes="documents"),
]
OfSubject = Annotated[
    str | None,
    Describe(
        "Only facts of this note: its title, alias or path", zh="只查这篇笔记：标题、别名或路径"
    ),
    Shell("NOTE", completes="documents"),
]


def _rows(listed: RecalledFacts) -> Iterator[Row]:
    for fact in listed.facts:
        facts: tuple[Styled | str, ...] = (Styled(f"{fact.day}  ", "dim"), f"[{fact.category}] ")
        yield Row((*facts, fact.text, Styled(_remarks(fact), "dim")), fact.file, fact.line)


def _lines(listed: RecalledFacts) -> Iterator[str]:
    for fact in listed.facts:
        yield (
            f"{fact.file}:{fact.line} {fact.subject}: [{fact.category}] {fact.text}"
            f" ({fact.day}){_remarks(fact)}"
        )


def _remarks(fact: RecalledFact) -> str:
    remarks = list(filter(None, [fact.context]))
    if fact.until is not None:
        remarks.append(f"expired {fact.until}" if fact.expired else f"until {fact.until}")
    if fact.newer is not None:
        remarks.append(f"newer: {fact.newer}")
    return f" ({'; '.join(remarks)})" if remarks else ""


@operation(
    rows=_rows,
    lines=_lines,
    heading="Facts: {total:,}",
    when_empty="No note states such a fact.",
    zh="回忆笔记中的事实（- [类别] 事实）：按词语与含义、主题、类别、标签和时间；新的在前，"
    "同一主题同一类别的排在一起，过期的不返回。",
    examples=(
        "qmd recall where does Alice live",
        "qmd recall --about Alice",
        "qmd recall --category decision --since 30d",
        "qmd recall --expired --json",
    ),
    errors=(errors.CollectionNotFoundError, errors.DocumentNotFoundError),
)
def recall(
    kb: KnowledgeBase,
    query: Annotated[
        str | None,
        Describe("Words or a question; none for all", zh="词语或问题；省略则为全部"),
        Shell(join=" ", positional=True),
    ] = None,
    about: OfSubject = None,
    category: Annotated[
        str | None, Obvious(), Describe("Such as decision", zh="例如 decision")
    ] = None,
    tags: Tags = (),
    since: Annotated[
        str | None,
        Describe("Noted since: 7d or a date", zh="自此以来记下的：7d 或日期"),
        TIME_OR_SPAN,
        Shell("WHEN"),
    ] = None,
    expired: Annotated[bool, Describe("Also those that hold no more", zh="也包括已过期的")] = False,
    collection: InCollection = None,
    limit: Limit = 20,
) -> RecalledFacts:
    """
    Recall facts that notes state, by meaning, subject or time.

    A fact is a list item "- [category] fact #tag (context)". Those of one subject and category
    stand together, the newest first; an older one names the newer, which may contradict it. What
    has expired is left out.
    """
    return kb.recall(
        query,
        about=about,
        category=category,
        tags=tags,
        since=since,
        expired=expired,
        collection=collection,
        limit=limit,
    )


def _remembered(replied: Replied) -> str:
    fact: RememberedFact = replied.value
    done = f"Remembered (change {fact.change})" if fact.written else "Known already"
    lines = [f"{done}: {one_line(fact.file)}:{fact.line} {one_line(fact.fact)}"]
    if fact.expired:
        lines.append("Its last day has passed: recall shows it only with those that hold no more.")
    if fact.others:
        lines.append("Other facts of this subject and category; forget those that hold no more:")
        lines += (
            one_line(f"- line {each.line}: {each.text} ({each.day}){_remarks(each)}")
            for each in fact.others
        )
    if fact.problem is not None:
        lines.append(f"Not searchable yet: {one_line(fact.problem)}")
    return "\n".join(lines)


@operation(
    text=_remembered,
    zh="把一个事实写入其主题的笔记（- [类别] 事实），并返回同主题同类别的其他事实。可撤销。",
    group="write",
    section="Write",
    examples=(
        "qmd remember 'Project X' 'We use SQLite' --category decision",
        "qmd remember Alice Away for the winter --until 2026-12-31 --source 'her mail'",
    ),
    bodies=(
        {"about": "Project X", "fact": "We use SQLite", "category": "decision"},
        {"about": "Alice", "fact": "Away", "until": "2026-12-31", "source": "her mail"},
    ),
    lane="write",
    errors=(
        errors.OutsideRootsError,
        errors.AmbiguousNameError,
        errors.InvalidPathError,
        errors.ConflictError,
        errors.EditError,
        errors.FileAccessError,
    ),
)
def remember(
    kb: KnowledgeBase,
    about: About,
    fact: Annotated[
        str,
        Describe("One sentence, with [[links]] if any", zh="一句话，可含 [[链接]]"),
        Shell(join=" "),
    ],
    category: Annotated[
        str, Describe("Such as decision, preference, fact", zh="例如 decision、preference、fact")
    ] = "fact",
    tags: Annotated[
        tuple[str, ...],
        Obvious(),
        Describe("Tags", zh="标签"),
        Shell("T", "--tag", completes="tags"),
    ] = (),
    source: Annotated[str, Describe("Who says so, or where", zh="谁说的，或出处")] = "",
    until: Annotated[
        str | None,
        Describe("The last day when it holds", zh="有效的最后一天"),
        InSchema(pattern=f"^(|{DAY})$"),
        Shell("DATE"),
    ] = None,
    collection: InCollection = None,
) -> RememberedFact:
    """
    Write a fact into the note of its subject.

    Returns the other facts of its category there, which may contradict it. A new subject becomes a
    note in the collection memory, or else in the folder memory. The same fact again updates its
    day, source and end. 'qmd undo' takes it back.
    """
    new = NewFact(fact, about, category, tags, source, until)
    return kb.remember(new, collection=collection)


@operation(
    text=lambda replied: edit_texts.edited(replied.value),
    zh="从笔记中删去一个事实。可撤销。",
    group="write",
    section="Write",
    destroys=True,
    examples=("qmd forget Alice 'Lives in Paris'", "qmd forget 'Project X' SQLite --preview"),
    bodies=({"about": "Alice", "fact": "Lives in Paris"},),
    lane="write",
    idempotent=False,
    errors=(
        errors.OutsideRootsError,
        errors.DocumentNotFoundError,
        errors.NotFoundError,
        errors.AmbiguousNameError,
        errors.EditError,
        errors.FileAccessError,
    ),
)
def forget(
    kb: KnowledgeBase,
    about: Annotated[
        str,
        Describe("The note: its title, name or path", zh="笔记：标题、名称或路径"),
        InSchema(pattern=r"\S"),
        Shell("NOTE", completes="documents"),
    ],
    fact: Annotated[
        str, Describe("Its text, or a part that only it has", zh="事实的文字，或仅它含有的一部分")
    ],
    preview: Annotated[bool, Describe("Only show the diff", zh="不写入，只显示差异")] = False,
) -> EditedNote:
    """
    Take a fact out of a note; undo brings it back.

    To end a fact at a day, remember it again with until.
    """
    return kb.forget(about, fact, preview=preview)


def _context(replied: Replied) -> str:
    context: NoteContext = replied.value
    parts = [
        f"{one_line(context.file)} ({context.docid}): {one_line(context.title)}\n{context.text}"
    ]
    if context.next_line is not None:
        parts.append(f"(It goes on at line {context.next_line}.)")
    for note in context.notes:
        how = ", ".join(note.relations)
        steps = "" if note.steps == 1 else f" {note.steps} links away"
        head = f"--- {one_line(note.file)}: {one_line(note.title)} ({one_line(how)}{steps})"
        parts.append(f"{head}\n{note.text}" if note.text else head)
    if context.left_out:
        parts.append(f"({context.left_out:,} more notes near it have no room.)")
    return "\n\n".join(parts)


@operation(
    text=_context,
    zh="一篇笔记及其周围的笔记（链接与关系），限定在 token 预算之内。",
    examples=("qmd build-context 'Project X'", "qmd build-context notes/MOC.md --steps 2"),
    errors=(errors.DocumentNotFoundError, errors.AmbiguousNameError),
)
def build_context(
    kb: KnowledgeBase,
    file: File,
    max_tokens: Annotated[
        int,
        Range(MIN_TOKENS, _MOST_TOKENS),
        Obvious(),
        Describe("Most tokens to return", zh="最多返回多少 token"),
    ] = 4000,
    steps: Annotated[int, Range(1, 3), Describe("How many links away", zh="相隔几个链接")] = 1,
) -> NoteContext:
    """
    Read a note and the beginnings of the notes around it.

    Those are the notes that it links or relates to, and those that do so to it. Facts that have
    expired are left out.
    """
    return kb.build_context(file, max_tokens=max_tokens, steps=steps)
