"""
``word*`` over an index of stems: porter has made ``univers`` of ``university``, so the
beginning ``universi`` is nowhere in the index. The stems that words beginning with it may
have are asked for as well, and the text is then looked at.

The beginning itself is stemmed too when it is asked for (``copy`` → ``copi``, which
``copyable`` does not begin with). Porter drops a last ``e`` before anything else counts as
an ending, so ``copye`` asks for what begins with ``copy`` to the letter.
"""

from __future__ import annotations

from functools import lru_cache

#: What porter takes off or changes at the end of a word.
_ENDINGS = tuple(
    """
    able al alism aliti ality ally ance anci ancy ant ate ation ational ative ator bility bli e ed
    eli ely ement ence enci ency ent entli er es ful fulness ible ic ical icate iciti icity ies
    ing ion ism iti ity ive iveness iviti ivity ization ize izer li logi logy ly ment ness ous
    ously ousness s tional y
    """.split()  # noqa: SIM905  a list of seventy quoted endings is no easier to read
)
#: Porter leaves shorter stems alone.
SHORTEST = 2
LONGEST = 40


@lru_cache(maxsize=1000)
def stems(beginning: str) -> tuple[str, ...]:
    """
    Words whose stems are those of words beginning so, beside the stem of ``beginning``.

    ``universi`` → ``universe``, ``univers``, …; empty where stemming cannot cut into the
    beginning (``wor``) and for all but ASCII words.
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
    """Whether endings, the last one perhaps begun only, make up ``rest``."""
    return not rest or any(
        ending.startswith(rest) or (rest.startswith(ending) and _may_end(rest[len(ending) :]))
        for ending in _ENDINGS
    )
