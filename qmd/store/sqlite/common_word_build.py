"""
Computes the table ``z_common_words`` from the full-text index, in steps, while others write.

First it plans which words and beginnings of words the table gets. Beginnings form a tree: `gre*`
holds what `green` and `great*` hold, and so on. Each term of full text is read once, and added to
all beginnings that it has. A beginning is in the table only if its terms differ in the next
character, or if it is a term itself: `gree*` is the same as `green`, if no other term begins so.

Each step then reads some words from a snapshot and stores them in a short transaction. A document
that changes while the build runs is noted by a trigger, and not read from the table. So the steps
need not see the same snapshot, and a build that was interrupted goes on where it ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from qmd import libraries
from qmd.records import NamedTuple
from qmd.store.full_text import FIELDS, WEIGHTS
from qmd.store.reader import Reader, Writer
from qmd.store.sqlite.fts5 import BEGINS, FIRST_CJK, OUTSIDE_PATHS, WEIGHT_SCALE, totals, varints
from qmd.system import cancellation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.sqlite.library import Connection
    from qmd.store.sqlite.store import SqliteStore


class ReadTerms(NamedTuple):
    """
    Read the documents of the terms from ``first`` to ``last``.

    Attributes:
        word: The word to store them as; None if they only count for the beginnings around them.
    """

    first: str
    last: str
    word: str | None = None


class Open(NamedTuple):
    """Terms that are read from now on begin so."""

    beginning: str


class Close(NamedTuple):
    """All terms that begin so have been read."""

    beginning: str


PlanStep: TypeAlias = "ReadTerms | Open | Close"


#: Terms that are no words are read together until they have this many documents in sum.
RARE_AT_ONCE = 1 << 18


class _Node:
    """Terms that begin with the same ``length`` characters; a term has one character more."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.first = self.last = ""
        self.documents = 0
        #: How many documents the terms of the last step have, if it is of terms that are no words.
        self.rare = 0
        self.steps: list[PlanStep] = []

    def add(self, node: _Node, least: int) -> None:
        """Add a node that is complete; the next one begins after it."""
        self.first = self.first or node.first
        self.last = node.last
        self.documents += node.documents
        if node.documents >= least:
            self.steps += node.finished()
            self.rare = 0
            return
        before = self.steps[-1] if self.steps else None
        if isinstance(before, ReadTerms) and 0 < self.rare < RARE_AT_ONCE:
            self.steps[-1] = before._replace(last=node.last)
            self.rare += node.documents
        else:
            self.steps.append(ReadTerms(node.first, node.last))
            self.rare = node.documents

    def finished(self) -> list[PlanStep]:
        if self.first == self.last:
            return [ReadTerms(self.first, self.last, self.first)]
        beginning = self.first[: self.length]
        return [Open(beginning), *self.steps, Close(beginning)]


def plan(terms: Iterable[tuple[str, int]], least: int) -> list[PlanStep]:
    """
    The steps that read each word that ``least`` documents hold, and each such beginning.

    Args:
        terms: Each term of full text, ascending, and how many documents hold it. A beginning
            counts as many as its terms have in sum; fewer documents may hold it.
    """
    branch = [_Node(0)]
    last = ""
    for term, documents in terms:
        _complete(branch, _shared(last, term), least)
        leaf = _Node(len(term) + 1)
        leaf.first = leaf.last = last = term
        leaf.documents = documents
        branch.append(leaf)
    _complete(branch, 0, least)
    return _of_words(branch[0].steps)


def _complete(branch: list[_Node], shared: int, least: int) -> None:
    """Complete the nodes of which the next term is none; it shares this many characters."""
    while branch[-1].length > shared:
        node = branch.pop()
        if branch[-1].length < shared:
            branch.append(_Node(shared))
        branch[-1].add(node, least)


def _shared(first: str, second: str) -> int:
    """How many characters both begin with."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _of_words(steps: list[PlanStep]) -> list[PlanStep]:
    """Leave out the terms that are read for no word and no beginning."""
    kept: list[PlanStep] = []
    depth = 0
    for step in steps:
        depth += isinstance(step, Open) - isinstance(step, Close)
        if depth or not isinstance(step, ReadTerms) or step.word is not None:
            kept.append(step)
    return kept


def going_on(steps: list[PlanStep], last_word: str | None) -> list[PlanStep]:
    """The steps that are left if the words up to one are stored; its first character is redone."""
    if last_word is None:
        return steps
    return [step for step in steps if step[0][:1] >= last_word[:1]]


#: With fewer documents, full text is fast enough.
LEAST_DOCUMENTS = 100_000
#: A word is common if this many documents hold it, and this share of all.
LEAST_HELD, LEAST_SHARE = 10_000, 0.005
#: The table is computed anew if more documents than this have changed since, and this share.
MOST_CHANGED, MOST_CHANGED_SHARE = 2_000, 0.01
#: A step ends when the words that it stores, or the occurrences that it reads, are this many.
STEP_BYTES, STEP_READ = 1 << 20, 1 << 20
#: So many occurrences are in memory at once, or a fifth of a word's, if that is more. Passing over
#: one that was read before takes a third of the time of reading it.
READ_AT_ONCE = 1 << 18

#: What an occurrence in a path adds besides its weight; greater than any frequency.
_IN_PATH = 1 << 32
#: What an occurrence in each field adds.
_SCALED = [
    round(weight * WEIGHT_SCALE) + (_IN_PATH if field == "path" else 0)
    for field, weight in zip(FIELDS, WEIGHTS, strict=True)
]
_PATH_WEIGHT = _SCALED[FIELDS.index("path")] - _IN_PATH
#: An occurrence is read as one number: the document, and in these bits the field.
_FIELD_BITS = 3
assert len(FIELDS) <= 1 << _FIELD_BITS


class WordLimits(NamedTuple):
    """
    From how many documents on the table is computed, which words it has, and how many occurrences
    of one are read at once.
    """

    documents: int = LEAST_DOCUMENTS
    held: int = LEAST_HELD
    at_once: int = READ_AT_ONCE


class CommonWord(NamedTuple):
    token: str
    documents: int
    distances: bytes
    frequencies: bytes


class CommonWordBuild:
    """
    Builds the table for one store, as often as that is due.

    Args:
        store: The store that is open for writing.
        limits: None for the usual ones.
    """

    def __init__(self, store: SqliteStore, limits: WordLimits | None = None) -> None:
        self._store = store
        self._limits = limits or WordLimits()
        self._build_id = 0
        self._words: WordReader | None = None

    def run(self, most_s: float | None = None) -> int:
        """As `Store.gather_common_words`."""
        end = None if most_s is None else monotonic() + most_s
        while self._step():
            cancellation.check()
            if end is not None and monotonic() > end:
                return max(1, 0 if self._words is None else len(self._words.steps))
        return 0

    def _step(self) -> bool:
        """Returns whether more is left."""
        words = self._words
        if words is None:
            with self._store.reading() as reader:
                if not is_due(reader.connection, self._limits):
                    return False
            self._build_id = self._store.write(begin)
            with self._store.reading() as reader:
                steps = remaining_steps(reader, self._build_id, self._limits)
                least = least_held(reader, self._limits)
            self._words = WordReader(steps, least, self._limits.at_once)
            return True
        build_id = self._build_id
        if words.steps:
            read = self._store.read(words.read)
            is_ours = self._store.write(lambda writer: put_words(writer, build_id, read))
            self._words = words if is_ours else None
            return is_ours
        self._words = None
        lengths = self._store.read(read_lengths)
        self._store.write(lambda writer: finish(writer, build_id, lengths))
        return False


def is_due(connection: Connection, limits: WordLimits) -> bool:
    """Whether a build should begin or go on."""
    documents = totals(connection).documents
    if documents < limits.documents:
        return False
    finished, unfinished = connection.execute(
        "SELECT max(CASE WHEN finished THEN id END), max(CASE WHEN NOT finished THEN id END)"
        " FROM z_common_word_builds"
    ).fetchone()
    if finished is None or unfinished is not None:
        return True
    most = max(MOST_CHANGED, int(documents * MOST_CHANGED_SHARE))
    (changed,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM z_changed_documents LIMIT ?)", [most + 1]
    ).fetchone()
    return bool(changed > most)


def begin(writer: Writer) -> int:
    """The id of the build that goes on, or of a new one. From now on changes are noted for it."""
    execute = writer.connection.execute
    row = execute("SELECT max(id) FROM z_common_word_builds WHERE NOT finished").fetchone()
    if row[0] is not None:
        return int(row[0])
    execute("INSERT INTO z_common_word_builds DEFAULT VALUES")
    return int(execute("SELECT max(id) FROM z_common_word_builds").fetchone()[0])


def least_held(reader: Reader, limits: WordLimits) -> int:
    """How many documents hold a common word at least."""
    return max(limits.held, int(totals(reader.connection).documents * LEAST_SHARE))


def remaining_steps(reader: Reader, build_id: int, limits: WordLimits) -> list[PlanStep]:
    """What the build has to read yet. It reads the whole vocabulary: 10 s of a million."""
    connection = reader.connection
    _use_vocabulary(connection)
    terms = connection.execute("SELECT term, doc FROM temp.qmd_vocabulary ORDER BY term")
    steps = plan(terms, least_held(reader, limits))
    (last_word,) = connection.execute(
        "SELECT max(token) FROM z_common_words WHERE build_id = ?", [build_id]
    ).fetchone()
    return going_on(steps, last_word)


class Occurrences(NamedTuple):
    """
    Where terms are.

    Attributes:
        ids: int64[n], ids of documents, ascending.
        frequencies: int64[n], sums of weights, and `_IN_PATH` for each occurrence in a path.
    """

    ids: NDArray[np.int64]
    frequencies: NDArray[np.int64]


class _Sum:
    """Adds up the occurrences of all terms with one beginning."""

    def __init__(self) -> None:
        self._frequencies = libraries.np.zeros(0, libraries.np.int64)
        #: Whether a word that begins so was stored.
        self.has_words = False

    def add(self, occurrences: Occurrences) -> None:
        ids, frequencies = occurrences
        if not len(ids):
            return
        highest = int(ids[-1])
        if highest >= len(self._frequencies):
            grown = libraries.np.zeros(highest + 1, libraries.np.int64)
            grown[: len(self._frequencies)] = self._frequencies
            self._frequencies = grown
        self._frequencies[ids] += frequencies

    def occurrences(self) -> Occurrences:
        ids = libraries.np.flatnonzero(self._frequencies)
        return Occurrences(ids, self._frequencies[ids])


class WordReader:
    """
    Follows a plan, over several snapshots.

    Args:
        steps: They are taken from its front.
        least: A beginning is stored if this many documents hold it, or a word that begins so is.
        at_once: How many occurrences are read at once.
    """

    def __init__(self, steps: list[PlanStep], least: int, at_once: int) -> None:
        self.steps = deque(steps)
        self._least = least
        self._at_once = at_once
        self._sums: list[_Sum] = []

    def read(self, reader: Reader) -> list[CommonWord]:
        """The words of the next steps, until they fill a transaction."""
        _use_vocabulary(reader.connection)
        words: list[CommonWord] = []
        size = occurrences_read = 0
        while self.steps and size < STEP_BYTES and occurrences_read < STEP_READ:
            step = self.steps.popleft()
            if isinstance(step, Open):
                self._sums.append(_Sum())
                continue
            if isinstance(step, ReadTerms):
                occurrences = _read_terms(reader.connection, step, self._at_once)
                name = step.word
                is_stored = name is not None and len(occurrences.ids) > 0
                occurrences_read += len(occurrences.ids)
            else:
                finished = self._sums.pop()
                occurrences, name = finished.occurrences(), step.beginning + BEGINS
                is_stored = finished.has_words or len(occurrences.ids) >= self._least
            if self._sums:
                self._sums[-1].add(occurrences)
                self._sums[-1].has_words |= is_stored
            if is_stored and name is not None:
                stored = list(_stored_as(name, occurrences))
                words += stored
                size += sum(len(word.distances) + len(word.frequencies) for word in stored)
        return words


def _read_terms(connection: Connection, step: ReadTerms, at_once: int) -> Occurrences:
    parts = _Sum()
    start = 0
    while True:
        # To reach a part, SQLite passes over those before it. Each has a quarter of them at least,
        # so that all this passing grows only as the occurrences do.
        most = max(at_once, start // 4)
        part = _read_part(connection, step, start, most)
        is_last = len(part) < most
        if is_last and start == 0:
            return _by_document(part)
        start += len(part)
        parts.add(_by_document(part))
        if is_last:
            return parts.occurrences()


def _read_part(connection: Connection, step: ReadTerms, start: int, most: int) -> NDArray[np.int64]:
    """Occurrences of the terms from the number ``start`` on, as one number each."""
    numbers = " ".join(f"WHEN '{field}' THEN {number}" for number, field in enumerate(FIELDS))
    is_one = step.first == step.last
    # One text instead of a million rows: a third of the time, a tenth of the memory.
    (text,) = connection.execute(
        "SELECT group_concat(occurrence, ' ') FROM ("
        f"SELECT doc << {_FIELD_BITS} | CASE col {numbers} END AS occurrence"
        f" FROM temp.qmd_occurrences WHERE {'term = ?' if is_one else 'term BETWEEN ? AND ?'}"
        " LIMIT ? OFFSET ?)",
        [*([step.first] if is_one else [step.first, step.last]), most, start],
    ).fetchone()
    return libraries.np.fromstring(text or "", libraries.np.int64, sep=" ")


def _by_document(read: NDArray[np.int64]) -> Occurrences:
    """What `_read_part` has read, which it may change."""
    read.sort()  # of one term they are sorted, but for the fields
    frequencies = libraries.np.array(_SCALED)[read & (1 << _FIELD_BITS) - 1]
    read >>= _FIELD_BITS
    starts = libraries.np.flatnonzero(libraries.np.diff(read, prepend=-1))
    if not len(starts):
        return Occurrences(read, frequencies)
    return Occurrences(read[starts], libraries.np.add.reduceat(frequencies, starts))


def _stored_as(name: str, occurrences: Occurrences) -> Iterator[CommonWord]:
    """The word in any field; for a Chinese one that is in paths, too, also the one outside them."""
    ids = occurrences.ids
    in_paths, frequencies = divmod(occurrences.frequencies, _IN_PATH)
    yield _common_word(name, ids, frequencies)
    if name >= FIRST_CJK and in_paths.any():
        outside = frequencies - in_paths * _PATH_WEIGHT
        held = outside > 0
        if held.any():
            yield _common_word(name + OUTSIDE_PATHS, ids[held], outside[held])


def _common_word(token: str, ids: NDArray[np.int64], frequencies: NDArray[np.int64]) -> CommonWord:
    return CommonWord(
        token, len(ids), _packed(libraries.np.diff(ids, prepend=0)), _packed(frequencies)
    )


def _packed(numbers: NDArray[np.int64]) -> bytes:
    """The numbers in as few bytes as the greatest needs."""
    return numbers.astype(libraries.np.min_scalar_type(int(numbers.max()))).tobytes()


def put_words(writer: Writer, build_id: int, words: list[CommonWord]) -> bool:
    """Store words. Returns False if the build is gone: another process has taken its place."""
    row = writer.connection.execute(
        "SELECT 1 FROM z_common_word_builds WHERE id = ? AND NOT finished", [build_id]
    ).fetchone()
    if row is None:
        return False
    writer.connection.executemany(
        "INSERT OR REPLACE INTO z_common_words (build_id, token, documents, distances, frequencies)"
        " VALUES (?, ?, ?, ?, ?)",
        [(build_id, *word) for word in words],
    )
    return True


def read_lengths(reader: Reader) -> bytes:
    """uint32[highest document id + 1]: how many tokens each document has."""
    connection = reader.connection
    (highest,) = connection.execute("SELECT max(id) FROM z_documents_fts_docsize").fetchone()
    lengths = libraries.np.zeros((highest or 0) + 1, libraries.np.uint32)
    for document_id, sizes in connection.execute("SELECT id, sz FROM z_documents_fts_docsize"):
        lengths[document_id] = sum(varints(sizes))
    return lengths.tobytes()


def finish(writer: Writer, build_id: int, lengths: bytes) -> None:
    """Make a build the one that searches use, and remove the earlier one."""
    execute = writer.connection.execute
    execute(
        "UPDATE z_common_word_builds SET finished = 1, lengths = ? WHERE id = ?",
        [lengths, build_id],
    )
    execute("DELETE FROM z_common_words WHERE build_id < ?", [build_id])
    execute("DELETE FROM z_common_word_builds WHERE id < ?", [build_id])
    execute("DELETE FROM z_changed_documents WHERE build_id < ?", [build_id])


def _use_vocabulary(connection: Connection) -> None:
    for name, kind in (("qmd_vocabulary", "row"), ("qmd_occurrences", "instance")):
        connection.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name}"
            f" USING fts5vocab (main, z_documents_fts, {kind})"
        )
