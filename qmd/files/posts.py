"""
Lists, reads and searches an archive of posts, which has a folder for each author.

Posts lie at ``author/motions/post.md`` and ``author/album/post.md``. No link is followed, and
nothing whose name begins with a dot counts (``.assets``).
"""

from __future__ import annotations

import os
import stat
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, AnyStr, NamedTuple

from qmd import errors
from qmd.ingest import scan
from qmd.ingest.new_collection import new_collection
from qmd.ingest.read_file import read_file
from qmd.ingest.rules import Rules
from qmd.ingest.scan import is_vanished
from qmd.ingest.why import judge_path
from qmd.parse.decode import text_if_any
from qmd.parse.lines import split_lines
from qmd.store.sql.documents import StoredPost
from qmd.system import cancellation
from qmd.system.beneath import scandir_beneath, walk_beneath
from qmd.values import (
    AuthorPosts,
    Collection,
    FileState,
    Post,
    PostGroup,
    PostHit,
    PostHits,
    PostText,
)
from qmd.values.text import is_utf8, one_line, post_name

if TYPE_CHECKING:
    from qmd.store import Reader, Store, Writer


MOTIONS = "motions"
SUFFIX = ".md"


def require_archive(directory: Path) -> Path:
    """
    The absolute path of an archive; ``directory`` is as a person gave it.

    Raises:
        ArchiveNotFoundError: There is no such directory.
        UnreadablePostsError: It cannot be read.
    """
    try:
        archive = directory.expanduser().absolute()
        with os.scandir(archive):
            return archive
    except (OSError, ValueError, RuntimeError) as error:
        raise unusable(directory, error) from error


def unusable(directory: Path, error: Exception) -> errors.QmdError:
    """The error for a directory that cannot be listed."""
    if isinstance(error, OSError) and not is_vanished(error):
        return errors.UnreadablePostsError("archive", str(directory), str(error.strerror))
    return errors.ArchiveNotFoundError(str(directory))


def folders(root: Path, path: str = "") -> list[str]:
    """The folders in a directory of an archive, by their bytes. Raises OSError."""
    with scandir_beneath(root, path) as entries:
        return _in_order(
            each.name for each in entries if _counts(each) and each.is_dir(follow_symlinks=False)
        )


def post_files(root: Path, path: str) -> list[str]:
    """The posts directly in a directory of an archive, by their bytes. Raises OSError."""
    with scandir_beneath(root, path) as entries:
        return _in_order(
            each.name
            for each in entries
            if _counts(each) and each.name.endswith(SUFFIX) and each.is_file(follow_symlinks=False)
        )


def states(root: Path, authors: Iterable[str], unread: list[str]) -> dict[str, FileState]:
    """
    Path → state of the posts of these authors at any depth, in no order.

    What cannot be looked at is added to ``unread``.
    """
    states_by_path: dict[str, FileState] = {}

    def failed(path: str, error: OSError) -> None:
        if not is_vanished(error):
            unread.append(printable(path))

    for author in authors:
        for folder, entries in walk_beneath(root, author, _counts, failed):
            for entry in filter(_counts, entries):
                if entry.name.endswith(SUFFIX) and not entry.is_dir(follow_symlinks=False):
                    path = f"{folder}/{entry.name}"
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError as error:
                        failed(path, error)
                        continue
                    if stat.S_ISREG(status.st_mode):
                        states_by_path[path] = scan.file_state(status)
    return states_by_path


def _counts(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".")


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=os.fsencode)


# --- names of posts ------------------------------------------------------------------


def printable(path: str) -> str:
    """
    A path or name on one line, so that no file name can add a line to a list of posts: a line end
    becomes ``\\n`` and the like. `PostArchive.read` accepts this form as well.
    """
    return one_line(scan.printable(path))


def post_at(path: str) -> Post:
    """
    The post that a file name describes: ``author/album/YYYY-MM-DD[_HH_MM_SS]_title.md``.

    A name of any other form has no date and is a title as a whole.
    """
    path = printable(path)
    stem = path.rpartition("/")[2].removesuffix(SUFFIX)
    name = post_name(stem)
    return Post(path, None, stem) if name is None else Post(path, name.day, name.title)


# --- literals ---------------------------------------------------------------------------
# A literal is found in the text of a post whatever its letter case. Two texts are equal if their
# Unicode case foldings are: "ß" equals "SS", as "STRASSE" is the upper case of "straße". Nothing
# else is folded: a full-width letter is none of ASCII.
#
# Folding a text takes five times as long as looking through its bytes, so only those are folded
# that hold a sign which makes a difference: none for a literal in Chinese, and for one with letters
# of ASCII the few signs that fold to such letters.

#: All characters beyond ASCII whose case folding holds an ASCII letter: "ß" is "ss", "ﬁ" is "fi".
FOLDED_TO_ASCII = "ſ\u212aßẞİŉǰẖẗẘẙẚﬀﬁﬂﬃﬄﬅﬆ"


def caseless(sign: str) -> bool:
    """Whether no other text folds to this sign (perhaps False where none does)."""
    if not sign == sign.casefold() == sign.lower() == sign.upper():
        return False
    # Marks and modifier letters are what some letters fold to in part: "ŉ" is "ʼn".
    category = unicodedata.category(sign)
    return category[0] != "M" and category != "Lm"


class Literal:
    """What is looked for: any text but an empty one. One with a line end is in no line."""

    def __init__(self, text: str) -> None:
        self._text = _encoded(text)
        self._folded = text.casefold()
        self._folded_text = _encoded(self._folded)
        plain = "".join(sign if caseless(sign) else "\n" for sign in text)
        self._caseless = "\n" not in plain
        self._ascii = all(sign.isascii() or caseless(sign) for sign in self._folded)
        self._telling = _telling(self._folded)
        self._part = _encoded(max(plain.split("\n"), key=len))
        self._nowhere = "\n" in text or "\r" in text

    def lines(self, text: bytes) -> list[int]:
        """The numbers (from 1) of the lines of a UTF-8 text that hold the literal."""
        if self._nowhere or self._part not in text:
            return []
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._caseless:
            return _lines(text, self._text, b"\n")
        if self._ascii and (text.isascii() or not any(each in text for each in self._telling)):
            return _lines(text.lower(), self._folded_text, b"\n")
        return _lines(text.decode().casefold(), self._folded, "\n")

    def spans(self, line: str) -> list[tuple[int, int]]:
        """
        Where a line holds the literal, from left to right without overlaps.

        A sign that folds to several belongs to an occurrence as a whole. Each is the shortest
        that ends where it ends.
        """
        folded = line.casefold()
        origin: Sequence[int] = range(len(line))
        if len(folded) != len(line):  # a sign never folds to nothing
            origin = [at for at, sign in enumerate(line) for _ in sign.casefold()]
        spans: list[tuple[int, int]] = []
        start = folded.find(self._folded)
        while start >= 0:
            end = start + len(self._folded)
            last = origin[end - 1]
            while end < len(origin) and origin[end] == last:
                end += 1
            # In "Sß", folded to "sss", the shortest occurrence of "ss" begins at the second sign.
            start = folded.rfind(self._folded, start, end)
            spans.append((origin[start], last + 1))
            start = folded.find(self._folded, end)
        return spans


def around(text: bytes, line: int, lines: int) -> tuple[int, list[str]]:
    """A line of a UTF-8 text with ``lines`` on each side, and the number of the first of them."""
    every = split_lines(text.decode())
    first = max(line - lines, 1)
    return first, every[first - 1 : line + lines]


def _lines(text: AnyStr, literal: AnyStr, end: AnyStr) -> list[int]:
    lines: list[int] = []
    number, done = 1, 0
    start = text.find(literal)
    while start >= 0:
        number += text.count(end, done, start)
        lines.append(number)
        done = text.find(end, start)
        if done < 0:
            break
        start = text.find(literal, done)
    return lines


def _telling(folded: str) -> tuple[bytes, ...]:
    """Bytes of which a text holds some if it has a sign that folds to letters of this one."""
    signs = [sign for sign in FOLDED_TO_ASCII if not set(folded).isdisjoint(sign.casefold())]
    # The first byte tells enough, but for those that Chinese punctuation begins with, too.
    starts = [sign.encode() for sign in signs]
    return tuple(dict.fromkeys(each[: 2 if each[0] in (0xE2, 0xEF) else 1] for each in starts))


def _encoded(text: str) -> bytes:
    # No text holds a lone surrogate, so what becomes of one is in none.
    return text.encode("utf-8", "surrogatepass")


# --- the archive: what `kb.posts` is ----------------------------------------------------
# The folder says which posts there are. The text of each is the stored document's where that is of
# the file as it is now (same size, times and inode), and is else read from the disk. So a search
# equals one of the files, at any moment and whatever the collection's rules leave out or a watcher
# has yet to see, and takes little more than going through the stored texts.

# Path.resolve() fails where links lead in a circle, os.path.realpath() does not:
# ruff: noqa: PTH113, PTH118


#: Lines on each side of a hit.
AROUND = 3
#: Larger files are reported as unread: they would not fit into memory several times.
MAX_BYTES = 256 * 1024 * 1024
_MASK = "**/*.md"


class PostArchive:
    """
    The posts below ``directory``, which the errors name as it was given.

    Every method raises ArchiveNotFoundError while there is no such directory, and
    UnreadablePostsError where it cannot be read.
    """

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory

    def exists(self) -> bool:
        """Whether the directory is there and can be read."""
        try:
            require_archive(self._directory)
        except errors.QmdError:
            return False
        return True

    def looks_like_one(self) -> bool:
        """Whether an author's folder has the folder ``motions``, as downloaded archives have."""
        try:
            root = require_archive(self._directory)
            return any((root / name / MOTIONS).is_dir() for name in self._authors(root))
        except errors.QmdError:
            return False

    def authors(self) -> list[str]:
        """The folders of the archive, by name; one without posts, too."""
        return [printable(name) for name in self._authors(require_archive(self._directory))]

    def posts(self, author: str) -> AuthorPosts:
        """
        An author's posts in their groups; what lies deeper or outside of any is left out.

        Raises:
            AuthorNotFoundError.
            UnreadablePostsError: There are no posts but in folders that cannot be read.
        """
        root = require_archive(self._directory)
        author = self._author(root, author)
        try:
            names = folders(root, author)
        except OSError as error:
            raise _closed(author, error) from error
        groups: list[PostGroup] = []
        unread: dict[str, OSError] = {}
        for name in sorted(names, key=lambda name: name != MOTIONS):
            path = f"{author}/{name}"
            try:
                files = post_files(root, path)
            except OSError as error:
                if not is_vanished(error):
                    unread[path] = error
                continue
            if files:
                posts = tuple(post_at(f"{path}/{file}") for file in files)
                groups.append(PostGroup(printable(name), posts))
        if unread and not groups:  # "there are no posts" would be a guess
            raise _closed(*next(iter(unread.items())))
        return AuthorPosts(printable(author), tuple(groups), tuple(map(printable, unread)))

    def matching(self, author: str, title: str) -> AuthorPosts:
        """
        An author's posts whose title holds this text, whatever its letter case.

        Raises:
            As `posts`.
        """
        part = _folded(title)
        all_posts = self.posts(author)
        groups = (
            replace(group, posts=tuple(p for p in group.posts if part in _folded(p.title)))
            for group in all_posts.groups
        )
        return replace(all_posts, groups=tuple(group for group in groups if group.posts))

    def read(self, path: str) -> PostText:
        """
        A post by its path in the archive, as it is on the disk now.

        Raises:
            PostNotFoundError: No Markdown file is there, or it is not in the archive; the error
                does not say which.
            UnreadablePostsError: It cannot be read.
        """
        root = require_archive(self._directory)
        missing = errors.PostNotFoundError(path)
        parts = path.split("/")
        if not path.endswith(SUFFIX) or path.startswith("/") or ".." in parts or "\0" in path:
            raise missing
        try:
            real_root = os.path.realpath(root)
            real = os.path.realpath(os.path.join(real_root, *_real_names(real_root, parts)))
        except (OSError, ValueError) as error:
            raise missing from error
        inside = os.path.join(real_root, "")
        if not real.startswith(inside) or not real.endswith(SUFFIX) or not os.path.isfile(real):
            raise missing
        try:
            data = read_file(Path(real_root), real[len(inside) :], max_bytes=MAX_BYTES)[0]
        except errors.FileVanishedError as error:
            raise missing from error
        except errors.IngestError as error:
            raise errors.UnreadablePostsError("post", path, str(error), hint=error.hint) from error
        clean = "/".join(part for part in parts if part not in ("", "."))
        mark = "\ufeff" if data.startswith(BOM_UTF8) else ""  # part of what is in the file
        return PostText(post_at(clean), mark + _text(data))

    def search(self, query: str, *, author: str | None = None, limit: int | None = 20) -> PostHits:
        """
        The lines that hold ``query`` as it stands, whatever its letter case: by author, path
        and line. ``limit`` None means all of them.

        Raises:
            BlankQueryError, AuthorNotFoundError.
        """
        if not query.strip():
            raise errors.BlankQueryError
        root = require_archive(self._directory)
        if author is None:
            authors = self._authors(root)
        else:
            author = self._author(root, author)
            authors = [author]
        literal = Literal(query)
        unread: list[str] = []
        files = states(root, authors, unread)
        matches: list[_Match] = []
        with self._store.reading() as reader:
            for post in self._stored(reader, root, author):
                cancellation.check()
                if files.get(post.path) == post.state:
                    del files[post.path]
                    lines = literal.lines(post.text)
                    if lines:
                        matches.append(_Match(post.path, lines, id=post.id))
            kept = 0
            for path in sorted(files, key=_order):
                cancellation.check()
                text = _on_disk(root, path, unread)
                lines = literal.lines(text)
                if lines:
                    # Behind the first ``limit`` hits only the number of lines counts.
                    is_shown = limit is None or kept < limit
                    kept += len(lines)
                    matches.append(_Match(path, lines, text=text if is_shown else b""))
            hits = _first(
                reader, literal, sorted(matches, key=lambda match: _order(match.path)), limit
            )
        total = sum(len(match.lines) for match in matches)
        return PostHits(query, tuple(hits), total, tuple(unread))

    def adopt(self) -> Collection | None:
        """
        Make the directory a collection, unless one includes it already.

        Returns:
            The new collection, still empty; None if there is no need, or no such directory.

        Raises:
            ReadOnlyError, DatabaseBusyError: Searches read the files themselves then.
            InputError: The directory's path is no valid UTF-8.
        """
        try:
            root = require_archive(self._directory)
        except (errors.ArchiveNotFoundError, errors.UnreadablePostsError):
            return None
        place = new_collection(root, None, _MASK, ())

        def is_included(reader: Reader) -> bool:
            return any(_includes(c, Path(place.path)) for c in reader.collections.all())

        def add(writer: Writer) -> Collection | None:
            if is_included(writer):
                return None
            taken = {each.name for each in writer.collections.all()}
            name, number = place.name, 1
            while name in taken:
                number += 1
                name = f"{place.name}-{number}"
            return writer.collections.add(name=name, path=place.path, pattern=_MASK, ignore=())

        with self._store.reading() as reader:  # mostly there is nothing to write
            if is_included(reader):
                return None
        return self._store.write(add)

    # -- in detail ---------------------------------------------------------------------

    def _authors(self, root: Path) -> list[str]:
        try:
            return folders(root)
        except OSError as error:
            raise unusable(self._directory, error) from error

    def _author(self, root: Path, name: str) -> str:
        """
        The author's folder. Only a name from the list is one: no path leads out.

        Raises:
            AuthorNotFoundError.
        """
        author = _meant(self._authors(root), name)
        if author is None:
            raise errors.AuthorNotFoundError(name)
        return author

    @staticmethod
    def _stored(reader: Reader, root: Path, author: str | None) -> Iterator[StoredPost]:
        """
        The documents of all collections that the archive lies in, by path in the archive.

        A path may come twice, from collections inside each other.
        """
        real = Path(os.path.realpath(root))
        for collection in reader.collections.all():
            if not real.is_relative_to(collection.path):
                continue
            above = real.relative_to(collection.path).as_posix()
            above = "" if above == "." else f"{above}/"
            below = f"{above}{author or ''}".removesuffix("/")
            if is_utf8(below):
                for post in reader.documents.contents_below(collection.id, below):
                    yield post._replace(path=post.path[len(above) :]) if above else post


def _closed(path: str, error: OSError) -> errors.UnreadablePostsError:
    return errors.UnreadablePostsError("folder", printable(path), str(error.strerror))


class _Match(NamedTuple):
    """A post with hits; its text is that of a document, or ``text``."""

    path: str
    lines: list[int]
    id: int | None = None
    text: bytes = b""


def _order(path: str) -> tuple[bytes, bytes]:
    return os.fsencode(path.partition("/")[0]), os.fsencode(path)


def _first(
    reader: Reader, literal: Literal, matches: Sequence[_Match], limit: int | None
) -> list[PostHit]:
    hits: list[PostHit] = []
    for match in matches:
        lines = match.lines if limit is None else match.lines[: limit - len(hits)]
        if not lines:
            break
        text = match.text if match.id is None else reader.documents.text(match.id).encode()
        hits += [_hit(literal, match.path, text, line) for line in lines]
    return hits


def _on_disk(root: Path, path: str, unread: list[str]) -> bytes:
    """A file's text as UTF-8, empty if it is gone or cannot be read."""
    try:
        return _text(read_file(root, path, max_bytes=MAX_BYTES)[0]).encode()
    except errors.FileVanishedError:
        pass
    except errors.IngestError:
        unread.append(printable(path))
    return b""


def _text(data: bytes) -> str:
    """A file's text as the index has it; what is none there is shown as far as it can be."""
    text = text_if_any(data)
    return data.decode("utf-8", "replace") if text is None else text


def _hit(literal: Literal, path: str, text: bytes, line: int) -> PostHit:
    first, lines = around(text, line, AROUND)
    spans = literal.spans(lines[line - first])
    return PostHit(printable(path), line, first, tuple(lines), tuple(spans))


def _includes(collection: Collection, directory: Path) -> bool:
    """Whether the directory is the collection's or one below it that its rules include."""
    root = Path(collection.path)
    if not directory.is_relative_to(root):
        return False
    if directory == root:
        return True
    try:
        path = directory.relative_to(root).as_posix()
        return judge_path(Rules.of_collection(collection), path).indexed
    except errors.NotFoundError:
        return False


def _real_names(directory: str, parts: list[str]) -> list[str]:
    """
    The names on the disk of a path as it was shown, or as people type it. Raises OSError.

    From the first that is not there on, they stay as they are.
    """
    real_names: list[str] = []
    for index, part in enumerate(parts):
        name = part
        if not os.path.lexists(os.path.join(directory, part)):
            meant = _meant([each.name for each in Path(directory).iterdir()], part)
            if meant is None:
                return real_names + parts[index:]
            name = meant
        real_names.append(name)
        directory = os.path.join(directory, name)
    return real_names


def _meant(names: Sequence[str], shown: str) -> str | None:
    """The only name on the disk that is shown so."""
    # An archive from macOS may have decomposed names; nobody types those.
    same = [each for each in names if printable(each) == shown] or [
        each for each in names if _composed(each) == _composed(shown)
    ]
    return same[0] if len(same) == 1 else None


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _folded(text: str) -> str:
    return _composed(text).casefold()
