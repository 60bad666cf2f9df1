"""Says once for all layers how text is treated: keys of names, escapes, tokens, encoding."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from operator import add
from typing import Annotated, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from qmd import lazy, libraries
from qmd.errors import InputError
from qmd.records import NamedTuple
from qmd.values.facts import Describe, Obvious, Range

#: The mask of a new collection: notes, and the documents that people keep beside them. Saved pages,
#: tables, mail and others are taken by a mask that names them.
DEFAULT_MASK = "**/*.{md,pdf,epub,docx,pptx,xlsx,odt,odp,ods}"
#: The suffixes that a link to a note, and a person, may leave out.
NOTE_SUFFIXES = (".md", ".markdown")
#: The kinds of links that are Markdown's; the others are wikilinks.
MARKDOWN_LINKS = ("link", "image")
#: The files, folded, to which a Markdown link to their folder leads, as on GitHub.
FOLDER_PAGES = ("readme.md", "index.md")

#: A web address, ``mailto:`` and the like; one letter and a colon may be a drive of Windows.
_ADDRESS = lazy.pattern(r"[a-zA-Z][a-zA-Z0-9+.-]+:|//")

# Only digits count as a date or time: a title may have "_" where a timestamp has it.
_STAMPED = lazy.pattern(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})_(?:([0-9]{2}_[0-9]{2}_[0-9]{2})_)?(.*)", re.DOTALL
)
_JOURNAL = lazy.pattern(r"(?:^|/)journals/(\d{4})_(\d{2})_(\d{2})\.(?:md|markdown)$", re.IGNORECASE)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAY = lazy.pattern(rf"({'|'.join(_MONTHS)}) (\d{{1,2}})(?:st|nd|rd|th), (\d{{4}})", re.IGNORECASE)
_LATIN, _WORDS = lazy.pattern("[A-Za-z]"), lazy.pattern("[a-z]+")
#: Common words of English, of which texts in other languages have few.
_ENGLISH = frozenset(("the", "and", "this", "that", "with", "from", "are", "you", "how", "which"))
#: More of them, which the languages of `_FOREIGN` do not have.
_ENGLISH_IN_QUESTIONS = _ENGLISH.union(
    """
    what where when why who whose does did can could should would it its to my our your their be
    been have has not if or by into about there
    """.split()  # noqa: SIM905  a list of quoted words is no easier to read
)
#: Common words of German, Dutch, French, Spanish, Italian, Portuguese, Danish, Swedish and Polish
#: in ASCII, which are no words of English, and stand in none of its names (Jest, Los Angeles).
_FOREIGN = frozenset(
    """
    wie warum wann wieso welche welcher welches wozu und nicht ich wir sind eine einen einem einer
    kann werden wird wenn oder gibt beim vom zum zur auf nach fuer meine meinen
    hoe waar waarom wanneer welke het een niet mijn worden wordt voor naar zijn
    pourquoi quand quel quelle quels quelles que qui sont une les dans avec faire peut cette
    como por cual cuales cuando donde quien una puedo puede hacer tiene
    perche dove quale quali della delle degli nella sono posso gli
    qual quais quem onde porque fazer uma minha
    hvordan hvorfor hvad hvilken jeg ikke varfor och jag inte vilka
    gdzie dlaczego kiedy czy jak nie
    """.split()  # noqa: SIM905
)
#: As `_FOREIGN`; of these, which names and loans have, two must stand in a question.
_FOREIGN_PAIRED = frozenset(
    """
    de la le el un en du des ou pour comment sur para los las con es se mi il di per come da os
    das der die den dem ist mit von zu im aus was wo op dit wat om te som att er det till jest
    """.split()  # noqa: SIM905
)
#: What Logseq does not write to a file's name as it is.
_ENCODED = lazy.pattern(r'[<>:"|?*\\#%]')


def fold(text: str) -> str:
    """
    A text without the differences of letter case and Unicode form: NFC and case folding.

    A space that does not break a line counts as a space, as in Obsidian.
    """
    if text.isascii():
        return text.lower()
    text = text.replace("\u00a0", " ").replace("\u202f", " ")
    # Folding may decompose characters again.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def may_be_english(text: str) -> bool:
    """Whether nearly all letters of a text are those of English."""
    letters = sum(map(str.isalpha, text))
    return letters > 0 and len(_LATIN.findall(text)) >= 0.9 * letters


def is_english_question(text: str) -> bool:
    """Whether a question may be English: it has no words of other languages, or one of English."""
    words = set(_WORDS.findall(text.lower()))
    is_foreign = not words.isdisjoint(_FOREIGN) or len(words & _FOREIGN_PAIRED) > 1
    return may_be_english(text) and not (is_foreign and words.isdisjoint(_ENGLISH_IN_QUESTIONS))


def is_english(text: str) -> bool:
    """Whether a text is English: one word in fifty is one of `_ENGLISH`."""
    words = _WORDS.findall(text.lower())
    return may_be_english(text) and sum(map(_ENGLISH.__contains__, words)) >= len(words) / 50


# --- names ------------------------------------------------------------------------------
# A name is looked up under its key, which is the same for all spellings of the name. People type
# names in any case, and macOS may store "é" as two characters where others store one. The files of
# a Logseq graph have names of their own: ``work___plan.md`` is "work/plan". Journals are taken to
# have Logseq's own date format, as "Mar 1st, 2025".


def file_stem(path: str) -> str:
    """The name of a file without its folders and its suffix: ``notes/Plan.md`` → ``Plan``."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


class PostName(NamedTuple):
    """The parts of a post's file name: ``YYYY-MM-DD[_HH_MM_SS]_title``, without the suffix."""

    day: str
    time: str | None
    title: str


def post_name(stem: str) -> PostName | None:
    """The parts of a file's stem that has the form of a post's name; None for any other."""
    stamped = _STAMPED.fullmatch(stem)
    return None if stamped is None else PostName(*stamped.groups())


def without_note_suffix(name: str) -> str:
    """A folded name or path without ``.md`` or ``.markdown``. Any other suffix stays."""
    for suffix in NOTE_SUFFIXES:
        if name.endswith(suffix) and not name.endswith("/" + suffix):
            return name[: -len(suffix)] or name
    return name


def are_alike(typed: str, name: str) -> bool:
    """
    Whether a name may be a misspelling of another: three letters of five are the same.

    A swap of two letters is one mistake, and so is a letter of two. What all paths of a folder
    share, the folder and the suffix, must not be in the names.
    """
    least = 0.6 if max(len(typed), len(name)) > 2 else 0.5
    return libraries.rapidfuzz.distance.OSA.normalized_similarity(typed, name) >= least


def name_key(path: str) -> str:
    """The key of a path's file name: ``Notes/Plan.md`` → ``plan``, ``Albums.base`` stays."""
    return without_note_suffix(fold(path.rpartition("/")[2]))


def link_path(kind: str, target: str) -> str | None:
    """
    The path that a link names, as it is to be looked up; "" is the note with the link itself.

    The target of a Markdown link (``kind`` "link" or "image") is percent-decoded; that of a
    wikilink is taken as it stands. None for a web address, which names no file.
    """
    if kind in MARKDOWN_LINKS:
        return None if _ADDRESS.match(target) else unquote(target)
    return None if "://" in target else target


def link_anchor(kind: str, heading: str | None, block: str | None) -> tuple[str, str]:
    """
    The heading (``Heading#Sub``) and the block that a link names; "" where it names none.

    Those of a Markdown link are percent-decoded, as its path is.
    """
    if kind not in MARKDOWN_LINKS:
        return heading or "", block or ""
    heading, block = unquote(heading or ""), unquote(block or "")
    return ("", heading[1:]) if heading.startswith("^") and not block else (heading, block)


def link_key(kind: str, target: str) -> str | None:
    """
    The key of the file that a link names, as `name_key` gives it for that file.

    None for a web address; "" for a link inside its own note.
    """
    path = link_path(kind, target)
    return None if path is None else name_key(path.rstrip("/"))


def keys_of_target(path: str) -> set[str]:
    """The keys of the files to which a link path may lead, but for pages of folders."""
    # The file of [[Plan.md]] may be Plan.md.md, that of [[Plan.md.md]] cannot be Plan.md.
    keys = {name_key(path), fold(path.rpartition("/")[2])}
    page_file = file_of_page(path)
    return keys if page_file is None else keys | {name_key(page_file)}


def path_from(path: str, source: str) -> str:
    """
    Where a link path leads from the folder of the note ``source``, or with ``/`` from the root.

    ``.`` is the root. ``../`` at the beginning is left if it leads out of the collection.
    """
    folder = "" if path.startswith("/") else posixpath.dirname(source)
    return posixpath.normpath(posixpath.join(folder, path.lstrip("/")))


def link_keys_to(path: str) -> tuple[str, ...]:
    """
    The keys of all links that may lead to a file.

    Several for ``Plan.md.md``, which both ``[[Plan.md.md]]`` and ``[[Plan.md]]`` may name, and for
    ``docs/README.md``, to which ``[x](docs)``, ``[x](.)`` and ``[x](..)`` may lead; also the last
    part of the page that Logseq keeps in the file.
    """
    key = name_key(path)
    keys = [key, without_note_suffix(key)]
    folder, _, name = fold(path).rpartition("/")
    page = page_of_file(path)
    if page is not None:
        keys.append(name_key(page))
    if name in FOLDER_PAGES:
        keys += [name_key(folder), ".", ".."]
    return tuple(dict.fromkeys(each for each in keys if each))


def journal_day(path: str) -> str | None:
    """The day ``YYYY-MM-DD`` of a journal of Logseq; None for any other file."""
    match = _JOURNAL.search(path)
    if match is None or not (1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31):
        return None
    return "-".join(match.groups())


def page_of_file(path: str) -> str | None:
    """The name of the page in a file, if it differs from the file's; None if it does not."""
    day = journal_day(path)
    if day is not None:
        return f"{_MONTHS[int(day[5:7]) - 1]} {ordinal(int(day[8:]))}, {day[:4]}"
    stem = file_stem(path)
    return unquote(stem.replace("___", "/")) if "___" in stem.strip("_") else None


def file_of_page(page: str) -> str | None:
    """The path, without ``.md``, of the file that holds a page; None if it is the page's name."""
    day = _DAY.fullmatch(page)
    if day is not None:
        month = _MONTHS.index(day[1].title()) + 1
        return f"journals/{day[3]}_{month:02}_{int(day[2]):02}"
    if "/" not in page.strip("/"):
        return None
    return _ENCODED.sub(lambda match: quote(match[0]), page).replace("/", "___")


def ordinal(number: int) -> str:
    """``1st``, ``22nd`` and so on."""
    suffix = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


# --- escapes ----------------------------------------------------------------------------
# What a terminal would obey, or a reader would not see, is escaped. A control character in a note
# or a file name could move the cursor, hide text or answer as the user. Before a model, a line
# break in a name could add a line that looks like a tool's result.

# C0 without tab and newline, DEL and C1, bidi marks, embeddings, overrides and isolates,
# line and paragraph separators, and lone surrogates.
# It is the text of a pattern: compiling it on import would slow the start of every command.
UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"

# More invisible characters: soft hyphen, joiners, byte order mark, fillers, tags.
_INVISIBLE = (
    "[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def is_safe_name(name: str) -> bool:
    """Whether a new file may have this name or path: `one_line` would escape nothing of it."""
    return one_line(name) == name


def counted(count: int, noun: str) -> str:
    """Such as "1 document" and "1,200 documents"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def one_line(text: str) -> str:
    """Escape every control character of a name or title, so that it fits on one line."""
    return text if text.isprintable() else re.sub(f"[\t\n]|{UNSAFE}", _escape, text)


def harmless(text: str) -> str:
    """Escape the control characters of a text for a terminal; tabs and line ends stay."""
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text  # as most texts are, for which the pattern need not be compiled
    return re.sub(UNSAFE, _escape, text)


def visible(text: str) -> str:
    """
    Escape control characters and invisible characters.

    For a text that the user must judge. Unlike `harmless`, it escapes the CR of a CR LF.
    """
    return re.sub(f"{_INVISIBLE}|{UNSAFE}", _escape, text)


def escape_json(text: str) -> str:
    """Escape the unsafe characters that JSON allows raw."""
    # JSON has them in strings only; the pattern leaves out the newlines of the layout.
    return re.sub(UNSAFE, lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    short_escape = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if short_escape:
        return short_escape
    code = ord(char)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def unescaped(text: str) -> str:
    """A name as it was before `one_line` escaped its control characters."""
    return re.sub(
        r"\\(?:[ntr]|x(?!00)[0-9a-f]{2}|u(?!00)[0-9a-f]{4})",
        lambda match: match[0].encode("ascii").decode("unicode_escape"),
        text,
    )


# --- tokens -----------------------------------------------------------------------------
# Each language model has its own tokenizer, and qmd cannot know which one its caller has. So the
# estimate aims at the middle of six: those of GPT-4o, Qwen 3, DeepSeek V3, Gemma 3 and Llama 3, and
# that of the built-in model. ``benchmarks/tokens.py`` measures it: for each folder of English and
# of Chinese documents, and for each of these tokenizers, the estimate is at most 15 % off.

ItemT = TypeVar("ItemT")

#: The least budget of an answer: one hit with a short snippet, or a paragraph.
MIN_TOKENS = 300
#: The most bytes of a reply of `multi_get`, and over MCP of `get`, as JSON. Some MCP clients read
#: 1 MiB of a reply at most.
MAX_TOTAL_BYTES = 200_000

#: The budget of an answer, in estimated tokens; None for no budget.
MaxTokens: TypeAlias = Annotated[
    int | None,
    Range(MIN_TOKENS),
    Describe("Most tokens to return", zh="最多返回多少 token"),
    Obvious(),
]


def check_max_tokens(max_tokens: int | None) -> None:
    """Raises InputError: The budget is too small for an answer."""
    if max_tokens is not None and max_tokens < MIN_TOKENS:
        raise InputError(
            f"The budget must be at least {MIN_TOKENS} tokens, not {max_tokens}.",
            hint="A hit with a short snippet takes about 100 tokens.",
        )


class Rate(NamedTuple):
    """The tokens that text of one kind takes: for each match of the pattern, and each character."""

    pattern: str
    match_cost: float
    character_cost: float
    #: The characters of a match that its cost includes.
    included: int = 0


_EAST_ASIAN = (
    "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
# Measured with benchmarks/tokens.py: the rates with the least squared relative errors.
RATES = (
    # A part of an English word or of a camelCase name.
    Rate("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", 0.87, 0.12, included=5),
    Rate("[0-9]+", 0, 0.86),
    Rate("[!-/:-@\\[-`{-~\u2010-\u2027]+", 1.3, 0.06, included=1),
    Rate("\n|[ \t]{2,}", 0.57, 0),
    Rate(f"[{_EAST_ASIAN}]+", 0, 0.64),
    # Letters of other scripts, or with accents.
    Rate(f"[^\\W\\d_\x00-\x7f{_EAST_ASIAN}]+", 0, 0.32),
    # Other symbols, most of them emoji.
    Rate(f"[^\\w\\s\x00-\x7f\u2010-\u2027{_EAST_ASIAN}]", 2.8, 0),
)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Rate], ...]:
    return tuple((re.compile(rate.pattern), rate) for rate in RATES)


def estimate_tokens(text: str) -> float:
    """
    Estimate how many tokens a text is.

    The sum over the lines of a text, each with its line end, is the estimate of the text.
    """
    tokens = 0.0
    for pattern, rate in _patterns():
        matches = pattern.findall(text)
        tokens += rate.match_cost * len(matches)
        if rate.character_cost:
            tokens += rate.character_cost * sum(
                len(match) - rate.included for match in matches if len(match) > rate.included
            )
    return tokens


def fitting_items(
    items: Iterable[ItemT], size: Callable[[ItemT], float], room: float
) -> tuple[list[ItemT], float]:
    """The first items that have room together, and the room that is left; looks at one more."""
    fitting: list[ItemT] = []
    total = 0.0
    for item in items:
        more = total + size(item)
        if more > room:
            break
        fitting.append(item)
        total = more
    return fitting, room - total


# --- pairs of characters ----------------------------------------------------------------
# Full text stores a run ``ABC`` of Chinese, Japanese or Korean as ``AB BC C``: see
# `qmd.parse.segment`.

#: The characters that form pairs, as a class of a regular expression has them.
CJK = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"  # 々〆〇, numerals, kana repeats
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"  # hiragana, katakana
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"  # bopomofo, small katakana
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua48c"  # Han, Yi
    "\uac00-\ud7a3\uf900-\ufaff"  # Hangul, compatibility Han
    "\U00020000-\U0002ebef\U0002ebf0-\U0002ee5d\U00030000-\U000323af"  # Han extensions
)
CJK_RUN = lazy.pattern(f"[{CJK}]+")


def in_pairs(text: str) -> str:
    """A text whose runs of Chinese, Japanese or Korean are written as pairs."""
    return CJK_RUN.sub(_pairs, text)


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "


# --- halves of characters ---------------------------------------------------------------
# UTF-8 cannot encode a half of a surrogate pair. Such halves come from escapes in JSON, from
# programs that cut an emoji in two, and from file names that are not UTF-8, whose bytes Python
# decodes to them.


#: JSON may hold a half of a character only where this stands.
ESCAPED_HALF = lazy.pattern(rb"\\u[dD][89a-fA-F]")


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can encode the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_halves(text: str) -> str:
    """Replace surrogate pairs by their characters, and lone halves by U+FFFD."""
    if is_utf8(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def as_utf8(text: str) -> str:
    """Escape a text for messages: a half becomes ``\\udcNN``."""
    return text.encode("utf-8", "backslashreplace").decode()
