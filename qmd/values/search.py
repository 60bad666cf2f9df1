"""The values of a search: documents, filters, the request, hits and the reply."""

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal
from urllib.parse import quote

from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.records import KW_ONLY, dataclass
from qmd.values.facts import (
    DateOrSpan,
    DefaultFor,
    Describe,
    ForCommands,
    Inline,
    Name,
    NotSent,
    Obvious,
    OmitDefault,
    OnProperties,
    Range,
    Shell,
    Singular,
    Unlisted,
    ranges,
)
from qmd.values.text import MaxTokens

Match = Literal["exact", "relaxed", "semantic"]
Source = Literal["fts", "vec"]
SearchCommand = Literal["search", "vsearch", "query"]
#: The parts of the evidence that orders the hits of `query` (`qmd.search.evidence`).
EvidencePart = Literal["words", "nearest", "whole", "opening", "tokens", "english"]
#: How the notice of a reply begins whose hits are those of a suggestion.
SHOWING = "Showing results for:"
#: What `query` can be asked to go without: a part of the evidence, or the reranker's model.
Part = Literal[EvidencePart, "model"]

#: The greatest limit of a search (docs/cli.md); a greater one is an error.
MAX_LIMIT = 1000
#: The most characters of a query, a pasted chapter. A longer one is a mistake, and takes seconds.
MAX_QUERY = 120_000
#: The most tags, or properties, to filter by. Each is a condition; SQLite allows a thousand.
MAX_TAGS = 100
#: The most searches in place of a query, as tobi/qmd has it.
MAX_SEARCHES = 10
#: Relevance compares the best candidate with others, so at least this many are looked at.
LEAST_DEPTH = 5
#: With a minimum relevance, this many of the best hits are judged, or the limit if it is greater.
RELEVANCE_DEPTH = 100
#: The default minimum score of `vsearch`. It drops what is hopeless, and next to no right answer.
VSEARCH_MIN_SCORE = 0.02


def rounded(score: float) -> float:
    """Round to two decimals, halves up, like the Math.round of JavaScript in the specification."""
    return math.floor(score * 100 + 0.5) / 100


def shown_relevance(relevance: float) -> str:
    """
    The relevance of a hit as people and models read it: ``87%``, or ``<1%``.

    Never the score, which only orders the hits of a reply: a weak hit after a good one may have
    half of its score.
    """
    percent = math.floor(rounded(relevance) * 100 + 0.5)
    return f"{percent}%" if percent else "<1%"


def encode_uri(file: str) -> str:
    """``qmd://`` and each path segment percent-encoded as encodeURIComponent does, slashes kept."""
    return "qmd://" + "/".join(quote(part, safe="!'()*~-_.") for part in file.split("/"))


@dataclass(frozen=True, slots=True)
class Context:
    """A description of what lies below a path prefix; collection None means all collections."""

    SENT: ClassVar[tuple[str, ...]] = ("path", "uri", "collection", "prefix", "text")

    collection: str | None
    prefix: str  # below the collection, "" for all of it
    #: As listed.
    path: Annotated[str, Describe("A directory or file, or / for all")]
    text: str

    @property
    def uri(self) -> str:
        if self.collection is None:
            return "/"
        return encode_uri("/".join(filter(None, (self.collection, self.prefix))))


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document without its text: a row of `qmd ls`."""

    SENT: ClassVar[tuple[str, ...]] = (
        "file",
        "collection",
        "path",
        "title",
        "docid",
        "bytes",
        "modified",
        "group",
    )

    id: int
    collection: str
    path: str
    title: str
    docid: str  # "#" and six or more hex digits
    bytes: Annotated[int, Range(0)]
    modified: Annotated[str, Describe("ISO 8601")]  # UTC
    group: Annotated[str | None, OmitDefault(), Describe("The value that it is grouped by")] = None

    @property
    def file(self) -> Annotated[str, Describe("collection/path; /get takes it")]:
        """The display path: what every face prints and accepts."""
        return f"{self.collection}/{self.path}"

    @property
    def uri(self) -> str:
        return encode_uri(self.file)


class OfDocument:
    """What may be sent of the document of a value."""

    __slots__ = ()
    document: DocumentInfo

    @property
    def file(self) -> Annotated[str, Describe("collection/path; get takes it")]:
        return self.document.file

    @property
    def title(self) -> str:
        return self.document.title

    @property
    def docid(self) -> str:
        return self.document.docid


Collections = Annotated[
    tuple[str, ...],
    Singular("collection"),
    Describe("Only this one", zh="只查这一个集合"),
    Obvious(),
    Shell("NAME", "-c", "--collection", completes="collections", help="Only this collection"),
]
Tags = Annotated[
    tuple[str, ...],
    Describe("With all of these tags", zh="同时带有这些标签"),
    Obvious(),
    Shell("T", "--tag", completes="tags", help="Only documents with all of these tags"),
]
Properties = Annotated[
    tuple[str, ...],
    OnProperties(),
    Describe("Such as rating:>4", zh="例如 rating:>4"),
    Shell("KEY:VALUE", "-p", "--property", completes="conditions"),
]
Sort = Annotated[
    str | None,
    Describe("date, title or property; - descends", zh="date、title 或属性名；前加 - 为降序"),
    Shell(
        "BY",
        completes="sort_keys",
        help="By date, title or a property instead of by rank; -BY descends",
    ),
]
GroupBy = Annotated[
    str | None,
    Describe("A property", zh="按此属性分组"),
    Shell("KEY", completes="property_keys", help="Put hits with the same property together"),
]


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy, before the limit. Dates are ISO 8601: after ≤ date < before."""

    collections: Collections = ()
    #: With or without the collection in front.
    path: Annotated[
        str | None,
        Describe("Below this folder", zh="只查此文件夹之下"),
        Obvious(),
        Shell(
            "PREFIX",
            completes="documents",
            help="Only below this folder, with or without the collection in front",
        ),
    ] = None
    tags: Tags = ()
    properties: Properties = ()
    after: Annotated[
        str | None,
        DateOrSpan(),
        Describe("Date or 7d, inclusive", zh="ISO 日期，含当日"),
        Shell("DATE", help="Only of this date or later: the note's own, else the file's"),
    ] = None
    before: Annotated[
        str | None,
        DateOrSpan(),
        Describe("Date or 7d, exclusive", zh="ISO 日期，不含当日"),
        Shell("DATE", help="Only before this date"),
    ] = None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """
    One search with all its options, for `search`, `vsearch` and `query`.

    Attributes:
        limit: None for all hits.
        min_score: 0..1, compared with the reported score, which is calibrated and does not depend
            on the limit; for `vsearch` the default is `VSEARCH_MIN_SCORE`.
        filters: Which documents may be hits.
        sort: ``date``, ``title`` or a property, with ``-`` in front for descending order; None for
            the best first. `search` sorts all that match before the limit, the other searches the
            hits that the limit has left.
        group_by: A property. Hits with the same value stand together, and `Hit.group` has it.
        min_relevance: 0..1; a document with less is no hit, so another may become the best.
        rerank: By the reranker if the settings have one, else by the evidence of full text and
            vectors; if False, the fused order stays.
        expand: In other wordings too, if the settings have an expander.
        candidates: How many fused documents a reranker scores.
        intent: For the expander and the reranker.
        max_tokens: The reply shortens snippets, from the last hit upwards, and then leaves out the
            last hits, until it is estimated to have at most this many tokens. None for no bound.
        spelling: Suggest other spellings of words that no document holds, and search for them if
            nothing seems to answer otherwise; if False, search for what was typed.
        without: To measure what each part is worth. Without the model, the order is that of a
            knowledge base without a reranker.
    """

    query: Annotated[
        str, Describe("What to look for", zh="要查找的内容"), Obvious(), Shell(join=" ")
    ]
    _: KW_ONLY
    limit: Annotated[
        int | None,
        Range(1, MAX_LIMIT),
        Describe("Most hits", zh="最多返回多少条"),
        Obvious(),
    ] = 10
    min_score: Annotated[
        float,
        Range(0, 1),
        Describe("Drop hits that score less", zh="舍弃得分更低的结果"),
        Obvious(),
        Shell("S"),
        DefaultFor("vsearch", VSEARCH_MIN_SCORE),
    ] = 0
    filters: Annotated[Filters, Inline()] = Filters()
    sort: Sort = None
    group_by: GroupBy = None
    explain: Annotated[
        bool,
        Describe("Explain scores", zh="说明得分的由来"),
        Obvious(),
        Shell(help="Say how each score came about"),
    ] = False
    min_relevance: Annotated[
        float,
        Range(0, 1),
        Describe("Drop less likely hits", zh="舍弃相关性更低的结果"),
        Obvious(),
        Shell("S", help="Drop hits less likely to answer"),
    ] = 0
    max_tokens: Annotated[
        MaxTokens,
        Shell(
            help="Most tokens to print, estimated: shortens snippets, then leaves out the last hits"
        ),
    ] = None
    rerank: Annotated[
        bool,
        Unlisted(),
        OmitDefault(),
        ForCommands("query", ignored=True),
        Describe("Order by the evidence or a named model; if off, leave the fused order"),
    ] = True
    expand: Annotated[
        bool,
        Unlisted(),
        OmitDefault(),
        ForCommands("vsearch", "query", ignored=True),
        Describe("Search for variants of the query, too"),
    ] = True
    candidates: Annotated[
        int,
        Name("candidate_limit"),
        Range(1),
        Unlisted(),
        OmitDefault(),
        ForCommands("query", ignored=True),
        Describe("How many of the best a reranker scores"),
        Shell("N", "-C", "--candidates", "--candidate-limit"),
    ] = 30
    intent: Annotated[
        str | None,
        Unlisted(),
        OmitDefault(),
        ForCommands("vsearch", "query", ignored=True),
        Describe("What the question is about, to tell meanings apart"),
        Shell("TEXT"),
    ] = None
    spelling: Annotated[
        bool,
        Unlisted(),
        OmitDefault(),
        Describe("Suggest other spellings of words that no document has"),
    ] = True
    without: Annotated[
        tuple[Part, ...],
        Unlisted(),
        OmitDefault(),
        ForCommands("query"),
        Describe("Leave this part out of the ranking"),
    ] = ()

    @property
    def depth(self) -> int | None:
        """How many candidates to look at: some to compare, and more where some may be refused."""
        if self.limit is None:
            return None
        return max(self.limit, RELEVANCE_DEPTH if self.min_relevance else LEAST_DEPTH)

    def check(self) -> None:
        """Raises InputError: A number is out of its range, or a text too long."""
        for field, allowed in ranges(SearchRequest).items():
            value = getattr(self, field)
            if value is not None and value not in allowed:
                name = field.replace("_", " ").replace("min ", "minimum ")
                raise InputError(
                    f"The {name} must be {allowed}, not {value}.", hint=_RANGE_HINTS.get(field)
                )
        if len(self.query) > MAX_QUERY:
            raise InputError(
                engine_text(
                    "The query has {count} characters, more than {most}.",
                    count=f"{len(self.query):,}",
                    most=f"{MAX_QUERY:,}",
                ),
                hint="Ask with the words that matter most.",
            )
        for name in ("tags", "properties"):
            count = len(getattr(self.filters, name))
            if count > MAX_TAGS:
                raise InputError(
                    engine_text(
                        "There are {count} {name} to filter by, more than {most}.",
                        count=f"{count:,}",
                        name=name,
                        most=f"{MAX_TAGS:,}",
                    ),
                    hint="Name fewer.",
                )


_RANGE_HINTS = {
    "limit": "On the command line --all lifts the limit.",
    "min_score": "Scores are 0 to 1, 1 best.",
    "max_tokens": "A hit with a short snippet takes about 100 tokens.",
    "min_relevance": "Relevance is 0 to 1: the estimated chance that a hit answers the question.",
}


@dataclass(frozen=True, slots=True)
class Hit:
    """
    One document that answers a query.

    The best hit's ``score`` is its ``relevance``, the estimated chance that it answers the query;
    the scores of the other hits are in proportion to how well they did in the search.

    ``file`` is the display path, ``collection/path``: what every face prints and accepts.
    """

    docid: Annotated[str, Describe("# and six or more hex digits; /get takes it")]
    file: Annotated[str, Describe("collection/path; /get takes it")]
    title: str
    score: Annotated[
        float, Range(0, 1), Describe("Orders the hits; the best hit's equals its relevance")
    ]
    context: Annotated[str | None, Describe("What people said about the place it lies in")]
    snippet: Annotated[str, Describe("Lines 'N: text' with their numbers in the document")]
    line: Annotated[int, Range(1), Describe("The best line of the snippet")]
    relevance: Annotated[
        float, Range(0, 1), Describe("The estimated chance that it answers the query")
    ]
    match: Match
    anchor: Annotated[
        str | None, OmitDefault(), Describe("page=12 of a PDF and so on; /get takes FILE#page=12")
    ] = None
    place: Annotated[str | None, OmitDefault(), Describe("The same for people: p. 12")] = None
    group: Annotated[str | None, OmitDefault(), Describe("The value that it is grouped by")] = None
    explain: Annotated[
        Mapping[str, object] | None,
        OmitDefault(),
        Describe("With explain: how the score came about"),
    ] = None

    @property
    def file_and_place(self) -> str:
        """The file, and the page or other place in it: ``notes/report.pdf p. 12``."""
        return self.file if self.place is None else f"{self.file} {self.place}"

    @property
    def collection(self) -> str:
        return self.file.partition("/")[0]

    @property
    def path(self) -> str:
        """Below the collection."""
        return self.file.partition("/")[2]

    @property
    def uri(self) -> str:
        return encode_uri(self.file)


@dataclass(frozen=True, slots=True)
class SearchReply:
    """
    The hits of one query.

    Attributes:
        notice: Sentences to be shown above the hits, one a line: that no hit seems to answer, what
            may have been meant, which filter leaves nothing. None if there is nothing to say.
        suggestion: The query with words of the index in place of those that no document holds. If
            nothing held the query's own words, the hits are those of the suggestion.
        degraded: A sentence that says what a missing model or index took away; None for nothing.
    """

    query: Annotated[str, NotSent()]
    hits: Annotated[tuple[Hit, ...], Name("results"), Describe("Best first")]
    notice: Annotated[
        str | None, OmitDefault(), Describe("If no hit seems to answer: a sentence that says so")
    ] = None
    suggestion: Annotated[
        str | None, OmitDefault(), Describe("The query with its words spelled as documents do")
    ] = None
    degraded: Annotated[
        str | None, OmitDefault(), Describe("What a missing model or index took away")
    ] = None
    needs_embedding: Annotated[
        int, Range(0), OmitDefault(), Describe("Distinct contents without vectors")
    ] = 0
    left_out: Annotated[
        int, Range(0), OmitDefault(), Describe("More hits than max_tokens allows")
    ] = 0
