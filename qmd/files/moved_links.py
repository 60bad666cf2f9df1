"""
Rewrites links for a move of a file, so that each means the file that it meant before.

Only links that would lose their target are changed, and of these only the path: the kind, the shown
text, the heading and the block stay. A path is written as Obsidian would write it, and as it was
written before. Which notes a move concerns is read from the index.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from qmd import values
from qmd.ingest.rules import LinkFormat
from qmd.parse import frontmatter
from qmd.parse.formats import CANVAS, MARKDOWN, FileFormat
from qmd.parse.links import LinkSpan, PathForm, link_spans
from qmd.search.lookup.link_targets import LinkedFiles
from qmd.store.sql.links import NamedFile

if TYPE_CHECKING:
    from qmd.store import Reader


CANVAS_SUFFIX = CANVAS.suffixes[0]

_UNLINKABLE = re.compile(r"[\[\]|#^\r\n]|\A\s|\s\Z")
_CODE_OF_OTHER_SCRIPT = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")
#: What stays as it is in the path of a Markdown link, besides letters, digits and ``_.-~``.
_SAFE = "/!$&'*+,;=:@"


class LinkTree:
    """
    The files of a collection at one time, as far as links may lead to them.

    Args:
        is_vault: Whether the collection is an Obsidian vault.
    """

    def __init__(self, paths: Iterable[str], *, is_vault: bool = True) -> None:
        unique = dict.fromkeys(paths)
        self._files = LinkedFiles(is_vault=is_vault)
        self._files.add(NamedFile(path, None) for path in unique)
        self._names = Counter(values.text.fold(path.rpartition("/")[2]) for path in unique)

    def find(self, path: str, source: str, kind: str) -> str | None:
        """The file that a link path in the note ``source`` leads to, as `LinkedFiles.find`."""
        file = self._files.find(path, source, kind) if path else None
        return None if file is None else file.path

    def has_one_name(self, path: str) -> bool:
        """Whether no other file has the name of this one, in any letter case."""
        return self._names[values.text.fold(path.rpartition("/")[2])] <= 1


@dataclass(frozen=True, slots=True)
class Move:
    """
    A move, as the links of one collection see it.

    Attributes:
        before, after: The files; at least those that the links may lead to which are rewritten.
        old, new: The moved file; None in ``old`` if it comes from another collection, None in
            ``new`` if it goes to another.
        leaves: Whether the note with the links goes to another collection, without their targets.
        link_format: That of the Obsidian vault; None if the collection is no vault. Then Markdown
            links that were relative to their note stay so, as other programs need them.
    """

    before: LinkTree
    after: LinkTree
    old: str | None
    new: str | None
    link_format: LinkFormat | None = None
    leaves: bool = False

    def meaning_before(self, kind: str, target: str, source: str) -> str | None:
        """The file that a link led to; None for none, and for a link into its own note."""
        path = values.text.link_path(kind, target)
        return self.before.find(path, source, kind) if path else None

    def meaning_after(self, kind: str, target: str, source: str) -> str | None:
        path = values.text.link_path(kind, target)
        return self.after.find(path, source, kind) if path else None

    def place_after(self, path: str) -> str | None:
        """Where links find a file after the move; None if they cannot lead there any more."""
        if path == self.old:
            return self.new
        return None if self.leaves else path


def is_relative(path: str, source: str, target: str) -> bool:
    """
    Whether a link path leads to the target if it is read from the folder of its note.

    Letter case counts, as it does for most programs and disks.
    """
    if not path or path.startswith("/"):
        return False
    whole = values.text.path_from(path, source)
    folder, _, name = target.rpartition("/")
    if values.text.fold(name) in values.text.FOLDER_PAGES and (folder or ".") == whole:
        return True
    return target == whole or target in [whole + suffix for suffix in values.text.NOTE_SUFFIXES]


def written_path(
    move: Move, kind: str, old: str, source: str, target: str, form: PathForm, *, was_relative: bool
) -> str | None:
    """
    The text of a link's path, so that the link leads to a file after the move.

    Args:
        old: The path as the link was written, without ``#heading``.
        source: The note with the link, after the move.
        target: The file to lead to, after the move.
        was_relative: Whether a Markdown link led to the file from the folder of its note.

    Returns:
        None if no such link can be written, as to a name with ``#`` in a wikilink.
    """
    is_markdown = kind in ("link", "image")
    path = values.text.link_path(kind, old) or ""
    names_folder = path.rpartition("/")[2] in ("", ".", "..")  # and so its README
    omits_suffix = not is_markdown or not (
        values.text.fold(path).endswith(values.text.NOTE_SUFFIXES) or names_folder
    )
    style = _style(move, path, is_markdown=is_markdown, was_relative=was_relative)
    for candidate in _candidates(
        move,
        source,
        target,
        style,
        keeps_dot=is_markdown and path.startswith("./"),
        keeps_slash=path.startswith("/"),
    ):
        for spelling in _spellings(candidate, omits_suffix=omits_suffix):
            text = _encoded(spelling, old, form) if is_markdown else spelling
            if not is_markdown and _UNLINKABLE.search(text):
                continue
            if move.meaning_after(kind, text, source) == target:
                return text
    return None


def _style(move: Move, path: str, *, is_markdown: bool, was_relative: bool) -> LinkFormat:
    # A Markdown link stays as it is written: other programs read it from its note or the root.
    if move.link_format is not None and not (is_markdown and path.startswith(("/", "./", "../"))):
        return move.link_format
    if path.startswith("/"):
        return "absolute"
    if path.startswith(("./", "../")) or (is_markdown and was_relative):
        return "relative"
    return "shortest"


def _candidates(
    move: Move, source: str, target: str, style: LinkFormat, *, keeps_dot: bool, keeps_slash: bool
) -> Iterator[str]:
    """Ways to name the target, the best first; the last one always leads there."""
    if style == "relative":
        relative = posixpath.relpath(target, posixpath.dirname(source) or ".")
        if not keeps_dot:
            yield relative
        if not relative.startswith("../"):
            yield f"./{relative}"
    elif style == "shortest" and move.after.has_one_name(target):
        yield target.rpartition("/")[2]
    if not keeps_slash:
        yield target
    yield f"/{target}"


def _spellings(path: str, *, omits_suffix: bool) -> Iterator[str]:
    if omits_suffix:
        # Obsidian leaves out .md alone.
        suffix = next(
            (each for each in values.text.NOTE_SUFFIXES if values.text.fold(path).endswith(each)),
            None,
        )
        if suffix is not None and path[-len(suffix) - 1 : -len(suffix)] not in ("", "/"):
            yield path[: -len(suffix)]
    yield path


def _encoded(path: str, old: str, form: PathForm) -> str:
    """The path of a Markdown link, with percent signs where it needs them or had them before."""
    in_angles = form in ("angle", "angle definition")
    keeps_spaces = in_angles and "%20" not in old
    encodes_scripts = _CODE_OF_OTHER_SCRIPT.search(old) is not None
    safe = _SAFE + (" ()" if keeps_spaces else "")

    def encoded(character: str) -> str:
        if not character.isascii() and not encodes_scripts and not character.isspace():
            return character
        return quote(character, safe=safe)

    return "".join(map(encoded, path))


# --- which notes a move concerns ------------------------------------------------------------


def plan_move(
    reader: Reader,
    old: tuple[str, str],
    new: tuple[str, str],
    text: str | None,
    formats: dict[str, LinkFormat | None],
) -> tuple[Move, list[tuple[str, Move]]]:
    """
    Read from the index which notes a move concerns.

    Args:
        old, new: Collection and path of the note before and after.
        text: That of the note; None if it is no text.
        formats: `Move.link_format` of each collection.

    Returns:
        The move for the links in the moved note, and the other notes with links that it concerns:
        the ``collection/path`` of each, with the move as the links of its collection see it.
    """
    old_keys, new_keys = (
        set(values.text.link_keys_to(old[1])),
        set(values.text.link_keys_to(new[1])),
    )
    inside_keys = _link_keys(reader, *old, text)

    def tree(collection: str, paths: Iterable[str]) -> LinkTree:
        return LinkTree(sorted(paths), is_vault=reader.collections.is_vault(collection))

    if old[0] == new[0]:
        collection = old[0]
        paths = _paths(reader, collection, old_keys | new_keys | inside_keys) - {new[1]} | {old[1]}
        move = Move(
            tree(collection, paths),
            tree(collection, paths - {old[1]} | {new[1]}),
            *(old[1], new[1], formats.get(collection)),
        )
        linking = _linking(reader, collection, old_keys | new_keys, besides=old[1])
        return move, [(file, move) for file in linking]
    paths = _paths(reader, old[0], old_keys | inside_keys) | {old[1]}
    paths_there = _paths(reader, new[0], new_keys | inside_keys) - {new[1]}
    before, without = tree(old[0], paths), tree(old[0], paths - {old[1]})
    there, with_new = tree(new[0], paths_there), tree(new[0], paths_there | {new[1]})
    leaving = Move(before, without, old[1], None, formats.get(old[0]))
    arriving = Move(there, with_new, None, new[1], formats.get(new[0]))
    there_before = _linking(reader, old[0], old_keys, besides=old[1])
    there_after = _linking(reader, new[0], new_keys, besides=new[1])
    return Move(before, with_new, old[1], new[1], formats.get(new[0]), leaves=True), [
        *((file, leaving) for file in there_before),
        *((file, arriving) for file in there_after),
    ]


def _paths(reader: Reader, collection: str, keys: Iterable[str]) -> set[str]:
    return {file.path for file in reader.links.files_with_keys(collection, keys)}


def _linking(reader: Reader, collection: str, keys: Iterable[str], *, besides: str) -> list[str]:
    """The notes with links that have one of these keys, and the canvases that are no documents."""
    paths = {link.path for link in reader.links.to_keys(collection, keys)}
    attachments = reader.links.attachments(collection)
    paths.update(path for path in attachments if path.lower().endswith(CANVAS_SUFFIX))
    return [f"{collection}/{path}" for path in sorted(paths - {besides})]


def _link_keys(reader: Reader, collection: str, path: str, text: str | None) -> set[str]:
    """The keys of the files that the links of a note may lead to."""
    links = [(span.link.kind, span.link.target) for span in link_spans(text or "")]
    document = reader.documents.by_path(collection, path)
    if document is not None:  # of a canvas, the text of the document has the links of its cards
        stored = reader.links.of_documents([document.id])
        links += [(link.kind, link.target) for link in stored]
    paths = {values.text.link_path(kind, target) for kind, target in links}
    keys = {key for each in paths if each for key in values.text.keys_of_target(each)}
    return keys | set(map(values.text.name_key, values.text.FOLDER_PAGES))


# --- the new text of a note or a canvas -------------------------------------------------
# Of a canvas of Obsidian, links are the files that its cards show, and those in the cards' text;
# all other characters of the JSON stay as they are. Source: https://jsoncanvas.org/spec/1.0/

NOT_IN_THIS_FORMAT = "links in files of this format are not rewritten"
NO_SPELLING = "its new name cannot stand in such a link"
OTHER_COLLECTION = "links do not lead into another collection"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")


class LinkInText(NamedTuple):
    """
    A link that loses its target.

    Attributes:
        line: From 1.
        link: The whole link as written before.
        reason: Why it could not be rewritten; "" if it was.
    """

    line: int
    link: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """
    The new text of a note.

    Attributes:
        changed: The links that were rewritten, in the order of the text.
        left: Those that lose their target all the same.
    """

    text: str
    changed: tuple[LinkInText, ...] = ()
    left: tuple[LinkInText, ...] = ()


class _NewPath(NamedTuple):
    """A new text for the characters ``[start, end)``; None if there is none, with the reason."""

    span: LinkSpan
    text: str | None
    reason: str = ""


def rewrite_note(text: str, move: Move, source: str, source_after: str | None = None) -> Rewritten:
    """
    The text of a note after a move; the time is linear.

    Args:
        source: The note's path before the move.
        source_after: Its path after the move, if the note is the one that is moved.
    """
    after = source if source_after is None else source_after
    plan = [
        new
        for span in link_spans(text)
        if (new := _new_path(text, span, move, source, after)) is not None
    ]
    if not plan:
        return Rewritten(text)
    new_text = _replaced(text, plan)
    if not _is_intact(text, new_text, plan, move, source, after):
        # A name can hold what ends the link where it stands, such as a quote in a property.
        body_start = frontmatter.split(text).body_start
        plan = [new if _fits_quotes(text, new, body_start) else _left(new) for new in plan]
        new_text = _replaced(text, plan)
        if not _is_intact(text, new_text, plan, move, source, after):
            plan, new_text = [_left(new) for new in plan], text
    return Rewritten(
        new_text,
        tuple(_changed(text, plan)),
        tuple(
            LinkInText(new.span.link.line, text[new.span.start : new.span.end], new.reason)
            for new in plan
            if new.text is None
        ),
    )


def _new_path(text: str, span: LinkSpan, move: Move, source: str, after: str) -> _NewPath | None:
    """None if the link stays as it is."""
    kind = span.link.kind
    written = text[span.path_start : span.path_end]
    target = move.meaning_before(kind, span.link.target, source)
    if target is None:
        return None
    goal = move.place_after(target)
    was_relative = kind in ("link", "image") and is_relative(
        values.text.link_path(kind, span.link.target) or "", source, target
    )
    present = move.meaning_after(kind, span.link.target, after)
    if goal is not None and present == goal:
        stays_relative = is_relative(
            values.text.link_path(kind, span.link.target) or "", after, goal
        )
        if move.link_format is not None or not was_relative or stays_relative:
            return None
    if goal is None:
        return _NewPath(span, None, OTHER_COLLECTION)
    path = written_path(move, kind, written, after, goal, span.form, was_relative=was_relative)
    if path == written:
        return None
    return _NewPath(span, path, NO_SPELLING if path is None else "")


def _replaced(text: str, plan: list[_NewPath]) -> str:
    """Links that refer to one definition have one path, which is replaced once."""
    parts: list[str] = []
    position = 0
    places = {
        (new.span.path_start, new.span.path_end): new.text for new in plan if new.text is not None
    }
    for (start, end), path in sorted(places.items()):
        parts += [text[position:start], path]
        position = end
    return "".join([*parts, text[position:]])


def _is_intact(
    text: str, new_text: str, plan: list[_NewPath], move: Move, source: str, after: str
) -> bool:
    """Whether the new text has the same links as before, and each leads where it should."""
    spans, new_spans = link_spans(text), link_spans(new_text)
    if len(spans) != len(new_spans):
        return False
    planned = {new.span for new in plan if new.text is not None}
    for span, new in zip(spans, new_spans, strict=True):
        one, other = span.link, new.link
        if (one.kind, one.heading, one.block) != (other.kind, other.heading, other.block):
            return False
        if span not in planned:
            if one.target != other.target:
                return False
            continue
        target = move.meaning_before(one.kind, one.target, source)
        goal = None if target is None else move.place_after(target)
        if move.meaning_after(other.kind, other.target, after) != goal:
            return False
    return True


def _fits_quotes(text: str, new: _NewPath, body_start: int) -> bool:
    """Whether a new path holds no quote like those around it, if it stands in a property."""
    position = new.span.start - 1
    if new.text is None or position >= body_start:
        return True
    while position > 0 and text[position] in " \t!":
        position -= 1
    return text[position] not in new.text


def _left(new: _NewPath) -> _NewPath:
    return _NewPath(new.span, None, new.reason or NO_SPELLING)


def _changed(text: str, plan: list[_NewPath]) -> Iterator[LinkInText]:
    for new in plan:
        if new.text is None:
            continue
        span = new.span
        whole = text[span.start : span.end]
        if not span.start <= span.path_start <= span.path_end <= span.end:
            whole = text[span.path_start : span.path_end]  # it stands in a definition
        yield LinkInText(span.link.line, whole)


def rewrite_canvas(
    text: str, move: Move, source: str, source_after: str | None = None
) -> Rewritten:
    """As `rewrite_note`. What is no JSON has no links."""
    if not _is_json(text):
        return Rewritten(text)
    parts: list[str] = []
    changed: list[LinkInText] = []
    left: list[LinkInText] = []
    position, line, key = 0, 1, ""
    for match in _STRING.finditer(text):
        if _COLON.match(text, match.end()):
            key = match.group()
            continue
        if key in ('"file"', '"text"'):
            line += text.count("\n", position, match.start())
            value = _value(match.group())
            if key == '"file"':
                card = _card_of_file(value, move)
            else:
                card = rewrite_note(value, move, source, source_after)
            changed += [link._replace(line=line) for link in card.changed]
            left += [link._replace(line=line) for link in card.left]
            new = match.group() if card.text == value else _json(card.text, match.group())
            parts += [text[position : match.start()], new]
            line += match.group().count("\n")
            position = match.end()
        key = ""
    new_text = "".join([*parts, text[position:]])
    if not _is_json(new_text):
        left += [link._replace(reason=NO_SPELLING) for link in changed]
        return Rewritten(text, (), tuple(left))
    return Rewritten(new_text, tuple(changed), tuple(left))


def _card_of_file(path: str, move: Move) -> Rewritten:
    """A card that shows a file names it by its whole path."""
    if move.old is None or values.text.fold(path) != values.text.fold(move.old):
        return Rewritten(path)
    if move.before.find(f"/{path}", "", "embed") != move.old:
        return Rewritten(path)  # another file, whose path differs in case
    if move.new is None:
        return Rewritten(path, (), (LinkInText(0, path, OTHER_COLLECTION),))
    return Rewritten(move.new, (LinkInText(0, path),))


def _value(string: str) -> str:
    value = json.loads(string, strict=False)
    assert isinstance(value, str)
    return value


def _json(value: str, before: str) -> str:
    """The value as JSON; other scripts are escaped if they were before."""
    return json.dumps(value, ensure_ascii=before.isascii() and "\\u" in before)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


#: What rewrites the links of a file. Of a format without a rewriter, a move lists the links that
#: lose their target.
REWRITERS: Mapping[FileFormat, Callable[[str, Move, str, str | None], Rewritten]] = {
    MARKDOWN: rewrite_note,
    CANVAS: rewrite_canvas,
}
