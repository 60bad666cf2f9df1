"""
Search for ``word*`` in an index of stems.

Porter stems ``university`` to ``univers``, so no token of the index begins with ``universi``. A
search for ``universi*`` therefore also asks for the stems that such words may have, and then
checks the texts themselves.

Full text stems the beginning too: ``copy`` becomes ``copi``, and ``copyable`` does not begin with
that. Porter removes a final ``e`` before it looks for endings, so a search for ``copye`` matches
exactly the tokens that begin with ``copy``.
"""

from __future__ import annotations

from functools import lru_cache

#: The endings that porter removes or changes.
_ENDINGS = tuple(
    """
    able al alism aliti ality ally ance anci ancy ant ate ation ational ative ator bility bli e ed
    eli ely ement ence enci ency ent entli er es ful fulness ible ic ical icate iciti icity ies
    ing ion ism iti ity ive iveness iviti ivity ization ize izer li logi logy ly ment ness ous
    ously ousness s tional y
    """.split()  # noqa: SIM905  a list of seventy quoted endings is no easier to read
)
#: Porter makes no stem with fewer characters than this.
SHORTEST = 2
#: Longer words, in characters, are searched for by their own stem only.
LONGEST = 40


@lru_cache(maxsize=1000)
def stems(beginning: str) -> tuple[str, ...]:
    """
    List words that have the same stems as the words with this beginning.

    ``universi`` gives ``universe``, ``univers``, …. The result lacks the stem of ``beginning``
    itself. It is empty if stemming cannot shorten the beginning (``wor``), and for words with
    characters other than ASCII letters.
    """
    word = beginning.lower()
    if not (word.isascii() and word.isalpha()) or not SHORTEST < len(word) <= LONGEST:
        return ()
    candidates: dict[str, None] = {}
    for end in range(SHORTEST, len(word)):
        rest = word[end:]
        doubled = rest[0] == word[end - 1] and _may_end(rest[1:])  # "runn" of "running"
        if doubled or _may_end(rest):
            candidates[word[:end]] = None
            candidates[word[:end] + "e"] = None
            if rest[0] == "b":
                candidates[word[:end] + "ble"] = None  # "scalabi" of "scalability": "scalabl"
    return tuple(candidates)


@lru_cache(maxsize=10_000)
def _may_end(rest: str) -> bool:
    """Whether ``rest`` consists of endings, of which the last may be incomplete."""
    return not rest or any(
        ending.startswith(rest) or (rest.startswith(ending) and _may_end(rest[len(ending) :]))
        for ending in _ENDINGS
    )
