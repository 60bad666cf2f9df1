"""
Plans which words and beginnings of words the table ``z_common_words`` gets, and how they are read.

Beginnings form a tree: `gre*` holds what `green` and `great*` hold, and so on. Each term of full
text is read once, and added to all beginnings that it has. A beginning is in the table only if its
terms differ in the next character, or if it is a term itself: `gree*` is the same as `green`, if no
other term begins so.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple, TypeAlias


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


class _Node:
    """Terms that begin with the same ``length`` characters; a term has one character more."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.first = self.last = ""
        self.documents = 0
        self.steps: list[PlanStep] = []

    def add(self, node: _Node, least: int) -> None:
        """Add a node that is complete; the next one begins behind it."""
        self.first = self.first or node.first
        self.last = node.last
        self.documents += node.documents
        if node.documents >= least:
            self.steps += node.finished()
            return
        before = self.steps[-1] if self.steps else None
        if isinstance(before, ReadTerms) and before.word is None:
            self.steps[-1] = before._replace(last=node.last)
        else:
            self.steps.append(ReadTerms(node.first, node.last))

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
    path = [_Node(0)]
    last = ""
    for term, documents in terms:
        _close(path, _shared(last, term), least)
        leaf = _Node(len(term) + 1)
        leaf.first = leaf.last = last = term
        leaf.documents = documents
        path.append(leaf)
    _close(path, 0, least)
    return _of_words(path[0].steps)


def _close(path: list[_Node], shared: int, least: int) -> None:
    """Complete the nodes of which the next term is none; it shares this many characters."""
    while path[-1].length > shared:
        node = path.pop()
        if path[-1].length < shared:
            path.append(_Node(shared))
        path[-1].add(node, least)


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
