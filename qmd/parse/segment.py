"""
Rewrites texts for the full-text index, and literals as queries of that index.

The tokenizer unicode61 treats a run of Chinese as one token. So every run ``ABC`` of Chinese,
Japanese or Korean characters is stored as ``AB BC C``: its pairs, and its last character alone. A
literal is then the phrase of its pairs, which is exact for any length: a single character becomes
a prefix query, and the last character alone is part of the phrase only where the run ends inside
the literal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from operator import add

from qmd import lazy
from qmd.records import NamedTuple
from qmd.values.text import CJK, CJK_RUN, in_pairs

#: Raise this number when the result of `segment` changes; the store then indexes anew.
SEGMENTER_VERSION = 4

#: The characters that form pairs and that NFKC leaves as they are.
_CJK_ALIKE = (
    CJK.replace("\u3038-\u303c", "\u303b\u303c")
    .replace("\u309d-\u309f", "\u309d\u309e")
    .replace("\u30fc-\u30ff", "\u30fc-\u30fe")
    .replace("\uf900-\ufaff", "")
)


@cache
def read_otherwise_among_pairs() -> re.Pattern[str]:
    """As `_READ_OTHERWISE`, in a text of which pairs are made: without their characters."""
    punctuation = "\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30fb"
    punctuation += "\uff01-\uff02\uff04-\uff0a\uff0c-\uff0f\uff1a-\uff20\uff3b-\uff3d\uff3f"
    punctuation += "\uff5b-\uff65"
    return re.compile(f"[^{_READ_ALIKE}{_CJK_ALIKE}{punctuation}]+")


# "C++" and "C#" would both be "c". The word itself stays, so that "Visual C" is found too.
# (A pattern is fast if it begins with the rarest character. A pattern that begins with a
# look-behind or with any letter is tried at every character; that took half the time of parsing.)
_PLUSPLUS = lazy.pattern(r"\+\+(?<=[A-Za-z0-9]\+\+)")
# ("foo#" is an anchor: only one letter alone is a language.)
_SHARP = lazy.pattern(r"#(?<=[A-Za-z]#)(?<![A-Za-z0-9][A-Za-z]#)")
# SQLite's Unicode tables are of 2012: it treats later signs and emoji as letters, so "hello🙂"
# would be one word. (These are code points, so that the result is the same in all Python versions.)
SIGNS = lazy.pattern(
    "[\u0605\u061c\u20ba-\u20cf\u218a\u218b\u23f4-\u23ff\u2427-\u243f\u244b-\u245f"
    "\u2700-\u27bf\u2b4d-\u2bff\u2e32-\u2e7f\u2066-\u2069\u31e4-\u31ef\ua700-\ua716"
    "\ufbc2-\ufbd2\U00010190-\U000101cf\U0001d800-\U0001daff"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001f10f\U0001f16c-\U0001faff\U0001fb00-\U0001fbef]+"
)
#: The characters that SQLite reads as their NFKC without letter case; no soft hyphen.
_READ_ALIKE = (
    "\\x00-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4-\u00b8\u00bb\u00bf-\u00de\u00e0-\u0131"  # no ª ² ß
    "\u0134-\u013e\u0141-\u0148\u014a-\u017e\u1e00-\u1e99\u1ea0-\u1ef9"
    "\u0391-\u03a1\u03a3-\u03af\u03b1-\u03ce\u0400-\u0482\u048a-\u0527"  # Greek, Cyrillic
    "\u05d0-\u05ea\u0621-\u064a\u0660-\u0669"  # Hebrew, Arabic
    "\u2002-\u200a\u200c-\u205f\u20a0-\u20a7\u20a9-\u20b9"  # punctuation, currencies
    "\u2190-\u2328\u232b-\u23f3"  # arrows
    "\u2500-\u26ff\u2701-\u2775\u2794-\u2adb"  # boxes, dingbats, mathematics
)
_READ_OTHERWISE = lazy.pattern(f"[^{_READ_ALIKE}]+")
#: Replacements in a text, each of which takes time in proportion to its length.
MOST_REPLACED = 24
#: Characters of which SQLite makes pairs; it takes some microseconds for each.
MOST_PAIRED = 100_000
#: The characters that NFKC changes most often. Replacing them first gives the same result and is
#: 15 times faster on Chinese texts.
_WIDE = [
    (c, unicodedata.normalize("NFKC", c)) for c in "，：；！？（）．～％－＆＃＂／＠｜\u3000\xa0…‑"
]
#: Thai, Lao, Burmese and Khmer have it between words, and no other space.
_ZERO_WIDTH_SPACE = lazy.pattern("\u200b(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]\u200b)")
_CAMEL_PART = lazy.pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ASCII = bytes(range(128))
#: Byte → "a" for a small letter of ASCII, "A" for a capital, "0" for a digit, else a blank.
_SHAPE = b" " * 48 + b"0" * 10 + b" " * 7 + b"A" * 26 + b" " * 6 + b"a" * 26 + b" " * 133


class Derivation(NamedTuple):
    """
    How the segmented forms of texts are made of them, by SQL.

    Attributes:
        replacements: Strings, each before its replacement; they are applied one after the other.
        has_pairs: Whether runs of Chinese, Japanese or Korean characters are then written as pairs.
    """

    replacements: Sequence[str]
    has_pairs: bool


def without_breaks(text: str) -> str:
    """A text without the signs that only say where a word may be parted."""
    for sign in "\xad\u2060\ufeff":
        text = text.replace(sign, "")
    return _ZERO_WIDTH_SPACE.sub("", text) if "\u200b" in text else text


def normalize(text: str) -> str:
    """
    NFKC: full-width letters, ligatures and compatibility characters as their plain forms.

    It is `without_breaks`, too.
    """
    if text.isascii():
        return text
    text = without_breaks(text)
    for wide, plain in _WIDE:
        text = text.replace(wide, plain)
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def fold(text: str) -> str:
    """The form in which literals are compared: NFKC, without letter case."""
    return normalize(text).casefold()


def is_cjk(text: str) -> bool:
    """Whether all characters are Chinese, Japanese or Korean ones, and there are any."""
    return not text.isascii() and CJK_RUN.fullmatch(text) is not None


def is_joined(before: str, after: str) -> bool:
    """
    Whether two lines are one text without a space between them.

    So it is in Chinese and Japanese. Korean has spaces between words, where most of its lines end.
    """
    return all(is_cjk(each) and not "\uac00" <= each <= "\ud7a3" for each in (before, after))


def cjk_runs(text: str) -> Iterator[re.Match[str]]:
    """The runs of Chinese, Japanese and Korean characters."""
    return iter(()) if text.isascii() else CJK_RUN.finditer(text)


def segment(text: str) -> str:
    """
    The form in which full text stores ``text``.

    Its tokens are those of the text in NFKC and without letter case, as queries have them. What
    SQLite reads so by itself stays as it is, because a text that differs takes room in the file.
    """
    signs = _beyond_ascii(text)
    has_pairs = bool(signs) and CJK_RUN.search(signs) is not None
    if not has_pairs and (not signs or not _READ_OTHERWISE.search(signs)):
        return _spell_out_signs(text)
    if not has_pairs and unicodedata.is_normalized("NFC", text):
        stored = _READ_OTHERWISE.sub(lambda match: _indexed(match[0]), text)
        if not CJK_RUN.search(_beyond_ascii(stored)):  # as is in a sign such as ㋿
            return _spell_out_signs(stored)
    return in_pairs(_indexed(text))


def _beyond_ascii(text: str) -> str:
    """
    The characters of a text that are not ASCII.

    To look for a character there takes a tenth of the time, for nearly all of most texts is ASCII.
    """
    if text.isascii():
        return ""
    data = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return data.decode("utf-8", "surrogatepass")


def derivation(texts: Sequence[str], segmented: Sequence[str]) -> Derivation | None:
    """
    How a database makes the segmented forms of ``texts`` by itself, so that it need not keep them.

    None if it cannot, or if that would take too long.
    """
    has_pairs = any(CJK_RUN.search(signs) for signs in map(_beyond_ascii, segmented) if signs)
    if has_pairs and sum(map(len, texts)) > MOST_PAIRED:
        return None
    unlike = read_otherwise_among_pairs() if has_pairs else _READ_OTHERWISE
    pairs = _replacements(texts, unlike)
    if len(pairs) > MOST_REPLACED:
        return None
    for text, form in zip(texts, segmented, strict=True):
        replaced = _replaced(text, pairs)
        if not has_pairs:
            is_form = replaced == form
        elif not unicodedata.is_normalized("NFC", replaced):
            is_form = False
        else:  # a text in which nothing was replaced is segmented by pairs alone
            is_form = replaced == text or _is_paired(replaced, form, unlike)
        if not is_form:
            return None
    return Derivation([part for pair in pairs for part in pair], has_pairs)


def _replacements(texts: Sequence[str], unlike: re.Pattern[str]) -> list[tuple[str, str]]:
    """The words to replace with what replaces them, the longest first."""
    words = {word for text in texts for word in _replaced_words(text, unlike)}
    pairs = ((word, _indexed(word)) for word in sorted(words, key=lambda word: (-len(word), word)))
    return [(word, form) for word, form in pairs if word != form]


def _is_paired(replaced: str, form: str, unlike: re.Pattern[str]) -> bool:
    """Whether SQLite makes the segmented form of a text in which words were replaced by pairs."""
    # It reads what is left as `segment` does: nothing more is to be replaced.
    return not _replacements([replaced], unlike) and segment(replaced) == form


def _replaced_words(text: str, unlike: re.Pattern[str]) -> Iterator[str]:
    for pattern in (_PLUSPLUS, _SHARP):
        for match in pattern.finditer(text):
            yield text[_word_start(text, match.start()) : match.end()]
    signs = _beyond_ascii(text)
    if signs and unlike.search(signs):
        yield from unlike.findall(text)


def _replaced(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    for word, form in pairs:
        text = text.replace(word, form)
    return text


def _indexed(text: str) -> str:
    """NFKC with "C++" and "C#" spelled out; SQLite folds ASCII itself, but not ``ß`` to ``ss``."""
    text = _spell_out_signs(normalize(text))
    return text if text.isascii() else SIGNS.sub(" ", text.casefold())


def phrase_tokens(literal: str) -> tuple[str, bool] | None:
    """
    The tokens of a literal in the full-text index, and whether the last token is a prefix.

    ``使用Docker`` → ``使用 用 Docker``, False; ``库`` → ``库``, True. None if the literal
    has no token.
    """
    text = _indexed(clean(literal))
    if not has_token(text):
        return None
    text = text.rstrip()
    prefix = False

    def pairs_in_phrase(match: re.Match[str]) -> str:
        nonlocal prefix
        run = match[0]
        if match.end() < len(text):
            return in_pairs(run)
        if len(run) == 1:
            prefix = True
            return f" {run}"
        return " " + " ".join(map(add, run, run[1:]))

    return text if text.isascii() else CJK_RUN.sub(pairs_in_phrase, text), prefix


def pairs_of(run: str) -> list[str]:
    """The pairs of a run of two or more characters, in order, each once."""
    return list(dict.fromkeys(map(add, run, run[1:])))


def camel_parts(text: str) -> list[str]:
    """The parts of the CamelCase words of a text, in order, each once: extra search terms."""
    # In the shape of the text, "aA" within a word and the blanks around it are found by plain
    # searches, which take half the time of a regular expression.
    data = text.encode("utf-8", "replace")
    shape = data.translate(_SHAPE)
    words: dict[bytes, None] = {}
    hump = shape.find(b"aA")
    while hump >= 0:
        start = shape.rfind(b" ", 0, hump) + 1
        end = shape.find(b" ", hump)
        if end < 0:
            end = len(data)
        words[data[start:end]] = None
        hump = shape.find(b"aA", end)
    parts: dict[str, None] = {}
    for word in words:
        parts.update(dict.fromkeys(_parts_of(word.decode())))
    return list(parts)


@lru_cache(maxsize=10_000)
def _parts_of(word: str) -> list[str]:
    return _CAMEL_PART.findall(word)


def clean(text: str) -> str:
    """Replace the characters that SQLite cannot store, NUL and lone surrogates, by blanks."""
    return "".join(
        " " if character == "\0" or "\ud800" <= character <= "\udfff" else character
        for character in text
    )


def has_token(text: str) -> bool:
    """Whether unicode61 finds at least one token: a letter, a number or a private-use character."""
    return any(c.isalnum() or unicodedata.category(c) in {"Co", "No", "Nl"} for c in text)


def _spell_out_signs(text: str) -> str:
    if "++" in text:
        text = _PLUSPLUS.sub(lambda match: _with_sign_named(match, "plusplus"), text)
    if "#" in text:
        text = _SHARP.sub(lambda match: _with_sign_named(match, "sharp"), text)
    return text


def _with_sign_named(match: re.Match[str], name: str) -> str:
    text, end = match.string, match.start()
    return f" {text[_word_start(text, end) : end]}{name} "


def _word_start(text: str, end: int) -> int:
    """Where the letters and digits of ASCII begin that stand before ``end``."""
    start = end
    while start and text[start - 1].isalnum() and text[start - 1].isascii():
        start -= 1
    return start
