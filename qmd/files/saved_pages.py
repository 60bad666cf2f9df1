"""
Makes a note of a page of the web, with its pictures below ``.assets`` beside it.

What is a document there, such as a PDF, is kept as it is, beside a note that links to it.

The note has the article as Markdown, and says in its properties where it came from. Saved again,
the article is replaced; properties that a person has added stay, and the history keeps the rest.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from html import unescape
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from qmd import errors
from qmd.engine_text import engine_text
from qmd.files.edits import note_editor, properties
from qmd.files.vault import Vault, file_name_of
from qmd.files.writing.policy import ResolvedPath
from qmd.files.writing.writer import FileWriter
from qmd.ingest.rules import PICTURES_FOLDER
from qmd.parse import frontmatter
from qmd.parse.convert.blocks import link
from qmd.parse.convert.in_note import inert_in_note, inert_value, without_templates
from qmd.parse.formats import MB
from qmd.system.http_client import TimeLimit
from qmd.system.web import MAX_REDIRECTS, Fetched, Web, checked_address
from qmd.system.worker.jobs import Job, JobBudget, JobFailure
from qmd.system.worker.pool import WorkerPool
from qmd.values.text import one_line
from qmd.values.writing import PropertyValue, SavedPage

TOOL = "save_page"
#: The properties of a note with its address, and with the one that led there.
ADDRESSES = ("source", "link")
#: Bytes of a page and of a picture, and of all pictures of a page.
MAX_PAGE, MAX_PICTURE, MAX_PICTURES_BYTES = 10 * MB, 10 * MB, 50 * MB
#: Pictures that are kept of one page; those after them stay on the web.
MAX_PICTURES = 100
#: Characters of a property; addresses are shorter.
MAX_FACT = 2000
#: Seconds for a page with its redirects, and for all its pictures.
PAGE_S, PICTURES_S = 30.0, 20.0

_ATTEMPTS = 10
#: Bytes of a page that only sends browsers elsewhere, within five seconds.
_MAX_FORWARDING = 8000
_TARGET = re.compile(r"\]\((?:<([^<>\n]+)>|([^\s<>()]+))")
_LINK = re.compile(r"\[((?:\\.|[^\[\]\\\n]){1,300})" + _TARGET.pattern)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_META = re.compile(r"<meta\s[^>]{1,3000}", re.IGNORECASE)
_REFRESH = re.compile(r"http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)
_CONTENT = re.compile(r"content\s*=\s*(?:([\"'])(.*?)\1|([^\s\"'>]+))", re.IGNORECASE | re.DOTALL)
_SENT_ON = re.compile(r"\s*[0-5](?:\.\d*)?\s*[;,]\s*(?:url\s*=)?\s*(\S.*)", re.IGNORECASE)

_OPEN = "application/vnd.oasis.opendocument."
_OFFICE = "application/vnd.openxmlformats-officedocument."
#: The documents that a new collection takes, by their media types.
_DOCUMENTS = {
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    f"{_OFFICE}wordprocessingml.document": ".docx",
    f"{_OFFICE}presentationml.presentation": ".pptx",
    f"{_OFFICE}spreadsheetml.sheet": ".xlsx",
    f"{_OPEN}text": ".odt",
    f"{_OPEN}presentation": ".odp",
    f"{_OPEN}spreadsheet": ".ods",
}
#: Of a server that does not know what it has.
_ANY_TYPE = ("application/octet-stream", "binary/octet-stream", "application/x-download")
MAX_DOCUMENT = 50 * MB
_MAX_OF_TYPE = dict.fromkeys((*_DOCUMENTS, *_ANY_TYPE), MAX_DOCUMENT)

_ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
_PAGES = ("text/html", "application/xhtml+xml", "")
_BUDGET = JobBudget(20.0, 1024 * MB)
_workers = WorkerPool("qmd.parse.convert.html:plain_page_to_save")

#: How the file of a picture begins, and its suffix.
_PICTURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), ".png"),
    (re.compile(rb"\xff\xd8\xff"), ".jpg"),
    (re.compile(rb"GIF8[79]a"), ".gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), ".webp"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), ".avif"),
    (re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,300}>\s*)?(?:<!--.{0,1000}?-->\s*)?"
                rb"(?:<!DOCTYPE svg[^>]{0,300}>\s*)?<svg[\s>]", re.DOTALL), ".svg"),
)  # fmt: skip


class PageSource(NamedTuple):
    """
    A page as bytes.

    Attributes:
        name: Of its file, whose suffix says if it is MHTML or a document.
        charset: As the server said; "" if it did not.
        address: Where it was found; "" for a file.
        named: The address that the person gave, which may lead to the other.
        folder: Of the file, in which its pictures may be; None for one from the web.
    """

    name: str
    data: bytes
    charset: str = ""
    address: str = ""
    named: str = ""
    folder: Path | None = None


class SavedArticle(NamedTuple):
    """
    What a page says, as Markdown, and its pictures by the names of their files.

    Attributes:
        document: The suffix and the content of a document, which has no text here.
    """

    title: str
    text: str
    facts: Mapping[str, PropertyValue]
    pictures: Mapping[str, bytes]
    left_out: int
    document: tuple[str, bytes] | None = None


def fetched_page(web: Web, url: str) -> PageSource:
    """
    The page or the document at an address.

    Raises:
        InputError, WebPageError: As `Web.get`, or what is there is no page.
    """
    named = address = checked_address(url)
    limit = TimeLimit(PAGE_S, PAGE_S)
    for _ in range(MAX_REDIRECTS + 1):
        page = web.get(
            *(address, limit), max_bytes=MAX_PAGE, max_of_type=_MAX_OF_TYPE, accept=_ACCEPT
        )
        name = _document_name(page)
        if name:
            return PageSource(name, page.data, "", page.address, named)
        if page.media_type not in _PAGES:
            raise errors.WebPageError(
                engine_text(
                    *("{url} is no page, but {kind}.",),
                    url=page.address,
                    kind=one_line(page.media_type),
                ),
                hint="Pages, PDF, EPUB and Office files are saved.",
            )
        target = _refreshed_to(page)
        if target is None:
            return PageSource("page.html", page.data, page.charset, page.address, named)
        address = target
    raise errors.WebPageError(
        engine_text("{url} leads from redirect to redirect.", url=named),
        hint="Open it in a browser, and save the address where that ends.",
    )


def _document_name(page: Fetched) -> str:
    """The name of the file of a document; "" for what is none."""
    path = PurePosixPath(unquote(urlsplit(page.address).path))
    suffix = _DOCUMENTS.get(page.media_type, "")
    if page.media_type in _ANY_TYPE:
        suffix = path.suffix.lower()
    if suffix not in _DOCUMENTS.values() or not page.data.startswith(_beginning(suffix)):
        return ""
    stem = path.name[: -len(suffix)] if path.name.lower().endswith(suffix) else path.name
    return f"{stem or urlsplit(page.address).hostname}{suffix}"


def _beginning(suffix: str) -> bytes:
    return b"%PDF-" if suffix == ".pdf" else b"PK\x03\x04"


def _refreshed_to(page: Fetched) -> str | None:
    """Where a short page sends a browser at once; None if it is the page to read."""
    if len(page.data) > _MAX_FORWARDING:
        return None
    text = _COMMENT.sub("", page.data.decode("utf-8", "replace"))
    for tag in _META.findall(text):
        content = _REFRESH.search(tag) and _CONTENT.search(tag)
        match = content and _SENT_ON.fullmatch(unescape(content[2] or content[3]))
        if match:
            try:
                address = checked_address(urljoin(page.address, match[1].strip("'\" ")))
            except (errors.InputError, ValueError):
                return None
            return None if address == page.address else address
    return None


def page_in_file(path: Path) -> PageSource:
    """
    A page that a browser has saved.

    Raises:
        FileAccessError, WebPageError: It cannot be read, or is too long.
    """
    most = MAX_PAGE + MAX_PICTURES_BYTES
    with errors.file_access(str(path), reading=True), path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise errors.WebPageError(
            engine_text("{file} has more than {most} bytes.", file=path.name, most=f"{most:,}"),
            hint="Save the page alone, without its sound and video.",
        )
    return PageSource(path.name, data, folder=path.parent.resolve())


def article_of(source: PageSource, web: Web | None) -> SavedArticle:
    """
    The article of a page, with its pictures.

    Args:
        web: Fetches the pictures; None keeps only those that the file brings.

    Raises:
        WebPageError: There is no text in it, or too much.
    """
    file_name = PurePosixPath(source.name)
    kind = file_name.suffix.lower()
    if kind in _DOCUMENTS.values() and source.data.startswith(_beginning(kind)):
        title = " ".join(file_name.stem.split()) or "document"
        facts = _facts(source, {"title": title})
        return SavedArticle(title, "", facts, {}, 0, (kind, source.data))
    parsed = _parsed(source, {})
    targets: dict[str, str] = parsed["pictures"]
    pictures: dict[str, bytes] = {}
    kept_at: dict[str, str] = {}
    for name, data in _picture_data(source, targets, parsed["held"], web):
        suffix = next((suffix for sign, suffix in _PICTURES if sign.match(data)), None)
        if suffix is not None:
            file = f"{hashlib.sha256(data).hexdigest()[:16]}{suffix}"
            pictures[file] = data
            kept_at[name] = f"{PICTURES_FOLDER}/{file}"
    if kept_at:
        parsed = _parsed(source, targets | kept_at)
    text = parsed["text"].strip()
    if not text:
        raise errors.WebPageError(
            engine_text("{url} has no text.", url=source.address or source.name),
            hint="Pages that scripts make are saved by a browser: qmd save FILE.html",
        )
    title = _title(source, parsed["title"])
    facts = _facts(source, parsed | {"title": title})
    text = f"{without_templates(text)}\n"
    return SavedArticle(title, text, facts, pictures, len(targets) - len(kept_at))


def _facts(source: PageSource, stated: Mapping[str, str | None]) -> dict[str, PropertyValue]:
    """The properties of the note of a page, which states some of them."""
    facts = {
        "title": stated.get("title"),
        "author": stated.get("author"),
        "date": (stated.get("date") or "")[:10],
        "description": stated.get("description"),
        "source": stated.get("source") or source.address or source.name,
        "link": "" if source.named == source.address else source.named,
    }
    return {name: inert_value(value[:MAX_FACT]) for name, value in facts.items() if value}


def _title(source: PageSource, stated: str | None) -> str:
    """The title of a page; of one without, the end of its address, or the name of its file."""
    address = urlsplit(source.address)
    last = unquote(address.path).strip("/").rpartition("/")[2]
    return stated or last or address.hostname or Path(source.name).stem


class PageKeeper:
    """
    Writes articles as notes.

    Args:
        today: The day, in ISO 8601.
        notes_with: Finds the notes whose property ``source`` is an address.
    """

    def __init__(
        self, files: FileWriter, vault: Vault, today: str, notes_with: Callable[[str], list[str]]
    ) -> None:
        self._files = files
        self._vault = vault
        self._today = today
        self._notes_with = notes_with

    def note_of(self, address: str) -> str | None:
        """
        ``collection/path`` of the note that an address was saved as; None without one.

        Args:
            address: As `checked_address` gives it; or the name of a file.
        """
        for file in self._notes_with(address) if address else ():
            try:
                place = self._vault.locate(file)
            except errors.InvalidPathError:
                continue
            text = _text_at(place)
            if text is not None and address in _addresses_of(text):
                return file
        return None

    def keep(self, article: SavedArticle, folder: str) -> SavedPage:
        """
        Write an article, into the note that it has already, or into a new one.

        Args:
            folder: ``collection/folder`` for a new note.

        Raises:
            OutsideRootsError, WriteDeclinedError, FileAccessError: As `FileWriter.rewrite`.
            InvalidPathError: No note can be in that folder.
        """
        for _ in range(_ATTEMPTS):
            with suppress(errors.NoteExistsError):  # another page of this title has just been saved
                return self._kept(article, folder)
        return self._kept(article, folder)

    def _kept(self, article: SavedArticle, folder: str) -> SavedPage:
        """As `keep`. Raises NoteExistsError: the path of the new note was taken meanwhile."""
        notes = filter(None, (self.note_of(str(article.facts.get(name, ""))) for name in ADDRESSES))
        earlier = next(notes, None)
        file = earlier or self._new(article, folder)
        place = self._vault.locate(file)
        had = _text_at(place)
        folder = file.rpartition("/")[0]
        moved = _moved_pictures(had or "", article.pictures)
        beside = {
            f"{folder}/{PICTURES_FOLDER}/{name}": data
            for name, data in article.pictures.items()
            if name not in moved
        }
        document = None
        if article.document is not None:
            suffix, data = article.document
            document = _linked(had or "", folder, suffix)
            if document is None:
                document = self._free(file.removesuffix(".md"), suffix)
                name = document.rpartition("/")[2]
                title = without_templates(inert_in_note(article.title))
                text = f"# {title}\n\n{link(inert_in_note(name), name)}\n"
            else:  # what a person wrote around the link stays
                text = (had or "")[frontmatter.split(had or "").body_start :].lstrip("\n")
            article = article._replace(text=text)
            beside[document] = data
        old, new = "", ""

        def content(present: bytes | None) -> bytes:
            nonlocal old, new
            old = "" if present is None else present.decode("utf-8", "replace")
            if present is not None and earlier is None and not _is_of(old, article):
                raise errors.NoteExistsError(file)
            new = _note_text(old, article, moved)
            if new == old:
                return present or b""
            new = properties.set_property(new, "saved", self._today)
            return new.encode()

        with errors.file_access(file), self._files.change(tool=TOOL) as change:
            change.rewrite(place, content)
            for name, data in beside.items():
                change.rewrite(self._vault.locate(name), _always(data))
        return SavedPage(
            file=file,
            title=article.title,
            address=str(article.facts["source"]),
            saved_as="saved" if had is None else "updated" if change.number else "unchanged",
            docid=note_editor.docid_of(new),
            pictures=len(article.pictures),
            left_out=article.left_out,
            document=document,
            change=change.number,
            problem=change.problem,
        )

    def check_folder(self, folder: str) -> None:
        """Raises InvalidPathError, OutsideRootsError: no note can be written there."""
        self._vault.check_new(f"{folder}/page.md")
        place = self._vault.locate(f"{folder}/page.md")
        self._files.policy.permitted(place.target)
        self._files.store.require_writable()

    def _new(self, article: SavedArticle, folder: str) -> str:
        """The path of a new note: no file is there yet, or one that is not indexed yet."""
        name = file_name_of(article.title) or "page"
        return self._free(f"{folder}/{name}", ".md", article)

    def _free(self, path: str, suffix: str, article: SavedArticle | None = None) -> str:
        """The first path with this beginning that is free, or has the note of this article."""
        for number in count(1):
            file = f"{path}{'' if number == 1 else f' {number}'}{suffix}"
            place = self._vault.locate(file)
            if not place.target.exists():
                return file
            if article is not None and _is_of(_text_at(place) or "", article):
                return file
        raise AssertionError


def _is_of(text: str, article: SavedArticle) -> bool:
    """Whether a note has the address of an article."""
    return not {article.facts.get(name) for name in ADDRESSES}.isdisjoint(_addresses_of(text))


def _always(data: bytes) -> Callable[[bytes | None], bytes]:
    return lambda present: data


def _linked(text: str, folder: str, suffix: str) -> str | None:
    """
    ``collection/path`` of the document that was kept with a note in a folder.

    The text of its link is the name of the file; a link that a person has written mostly says more,
    and that document must not be replaced.
    """
    for label, in_angles, plain in _LINK.findall(text):
        target = unquote(in_angles or plain)
        name = target.rpartition("/")[2]
        if (
            name.lower().endswith(suffix)
            and "://" not in target
            and label.replace("\\", "") == name
        ):
            return posixpath.normpath(posixpath.join(folder, target))
    return None


def _moved_pictures(old: str, pictures: Mapping[str, bytes]) -> dict[str, str]:
    """The targets of pictures that are no longer beside a note, because the note was moved."""
    targets: dict[str, str] = {}
    for match in _TARGET.finditer(old):
        target = match[1] or match[2]
        name = target.rpartition("/")[2]
        if name in pictures and target != f"{PICTURES_FOLDER}/{name}":
            targets[name] = f"<{target}>" if match[1] else target
    return targets


def _note_text(old: str, article: SavedArticle, moved: Mapping[str, str]) -> str:
    """The note with a new article; properties that are not of the page stay."""
    body = article.text
    for name, target in moved.items():
        body = body.replace(f"]({PICTURES_FOLDER}/{name})", f"]({target})")
    body_start = frontmatter.split(old).body_start
    had = old[:body_start].rstrip()
    text = f"{had}\n\n{body}" if had else body
    for name, value in article.facts.items():
        text = properties.set_property(text, name, value)
    if not had:  # one blank line below them, as people write it
        start = frontmatter.split(text).body_start
        text = f"{text[:start].rstrip()}\n\n{text[start:].lstrip()}"
    return text


def _text_at(place: ResolvedPath) -> str | None:
    try:
        return place.read(note_editor.MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _addresses_of(text: str) -> list[str]:
    stated = frontmatter.split(text).properties
    return [str(stated[name]) for name in ADDRESSES if name in stated]


def _parsed(source: PageSource, pictures: Mapping[str, str]) -> dict[str, Any]:
    """What a worker makes of a page. Raises WebPageError."""
    argument = (source.name, source.data, source.charset, source.address, dict(pictures))
    [result] = _workers.run([Job(argument, len(source.data), _BUDGET)])
    if isinstance(result, JobFailure):
        raise errors.WebPageError(
            engine_text("{url} cannot be read.", url=source.address or source.name),
            hint=result.detail,
        )
    value: dict[str, Any] = result.value
    return value


def _picture_data(
    source: PageSource, targets: Mapping[str, str], held: Mapping[str, bytes], web: Web | None
) -> Iterator[tuple[str, bytes]]:
    """The pictures of a page that can be had, within the limits, by their sources."""
    limit = TimeLimit(PICTURES_S, PICTURES_S)
    left = MAX_PICTURES_BYTES
    for number, (name, target) in enumerate(targets.items()):
        if number >= MAX_PICTURES or left <= 0:
            return
        most = min(left, MAX_PICTURE)
        data = held.get(name) or _beside(source.folder, name, most)
        if data is None and web is not None and target.startswith(("http://", "https://")):
            data = _fetched(web, target, limit, most)
        if data and len(data) <= most:
            left -= len(data)
            yield name, data


def _beside(folder: Path | None, name: str, most: int) -> bytes | None:
    """A picture that a browser has saved beside a page; None if there is no such file."""
    path = unquote(name).partition("?")[0].removeprefix("./")
    if folder is None or ":" in path or path.startswith("/") or ".." in path.split("/"):
        return None
    try:
        return ResolvedPath(folder, folder / path).read(most)
    except (OSError, ValueError):
        return None


def _fetched(web: Web, address: str, limit: TimeLimit, most: int) -> bytes | None:
    try:
        picture: Fetched = web.get(address, limit, max_bytes=most, accept="image/*")
    except errors.QmdError:
        return None
    return picture.data
