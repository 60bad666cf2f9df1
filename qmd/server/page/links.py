"""Where the links of a note lead on the page: to notes, files, photos, searches and the web."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote

from qmd.engine_text import engine_text
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.parse.formats import format_of, has_signs_in_lines, is_photo
from qmd.parse.links import make_link
from qmd.render import Embedded, LinkResolver, Target, WrittenTarget, link_id
from qmd.values.documents import Link
from qmd.values.graph import NoteLink, View
from qmd.values.text import NOTE_SUFFIXES, link_anchor, link_path, path_from

#: The most links of one text that are resolved; those after them are shown as missing.
MAX_LINKS = 20_000

#: In a text with more links to headings and blocks of other notes, these are not looked for.
MAX_CHECKED = 200

_MAX_ROWS = 100  # of a view of a note

#: Of a longer document only a section or a block is embedded.
MAX_EMBEDDED_BYTES = 250_000

#: The pictures of which `/shown/` sends a smaller one if they are large.
SHRUNK = (".jpg", ".jpeg", ".png", ".webp")

_IN_NO_NAME = re.compile(r"[#^|]")

ShownKind = Literal["image", "audio", "video"]

_SHOWN: dict[ShownKind, tuple[str, ...]] = {
    "image": (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif", ".bmp", ".heic"),
    "audio": (".mp3", ".m4a", ".ogg", ".wav", ".flac", ".opus"),
    "video": (".mp4", ".webm", ".mov", ".m4v", ".ogv"),
}


class PageLinks:
    """
    Resolves the links of one document as the index does.

    Args:
        file: ``collection/path`` of the document; it need not exist yet.
        create_title: What is shown over a link to a note that does not exist; "" if the server
            takes no new notes, and the link leads nowhere.
        no_section_title: What is shown over a link to a heading or block that its note lacks.
        translated: Gives a sentence of the engine in the language of the person.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        file: str,
        *,
        create_title: str = "",
        no_section_title: str = "",
        translated: Callable[[str], str] = str,
    ) -> None:
        self._kb = kb
        self._file = file
        self._create_title = create_title
        self._no_section_title = no_section_title
        self._translated = translated

    def resolve(self, written: Sequence[WrittenTarget]) -> Sequence[Target]:
        """
        Raises:
            CollectionNotFoundError: There is no collection of the name that the file begins with.
        """
        links = [make_link(each.kind, each.target, None, 1) for each in written[:MAX_LINKS]]
        with_section = sum(bool(link.heading or link.block) for link in links)
        resolved = self._kb.link_targets(
            self._file, links, check_sections=with_section <= MAX_CHECKED
        )
        targets = [
            _in_place(target) if link.kind in ("embed", "image") else target
            for link, target in (
                (link, self._target(link, to)) for link, to in zip(links, resolved, strict=True)
            )
        ]
        return targets + [Target("missing", "")] * (len(written) - len(targets))

    def embedded(self, target: str) -> Embedded | None:
        link = make_link("embed", target, None, 1)
        (resolved,) = self._kb.link_targets(self._file, [link])
        if resolved.file is not None and resolved.file.lower().endswith(".base"):
            return self._base(resolved.file)
        if resolved.file is None or resolved.state != "document":
            return None
        if not format_of(resolved.file).is_note:  # a whole book would be shown
            return None
        heading, block = link_anchor("embed", link.heading, link.block)
        anchor = f"^{block}" if block else heading
        try:
            part = self._kb.get(
                f"{resolved.file}#{anchor}" if anchor else resolved.file,
                max_total_bytes=MAX_EMBEDDED_BYTES,
            )
        except QmdError:  # it has no such part, or was deleted meanwhile
            return None
        if part.left_out is not None or part.document.file != resolved.file:
            return None
        links: LinkResolver = PageLinks(
            self._kb,
            resolved.file,
            create_title=self._create_title,
            no_section_title=self._no_section_title,
            translated=self._translated,
        )
        return Embedded(part.text, links, f"{resolved.file}#{anchor}")

    def view(self, language: str, text: str) -> Embedded | None:
        if not has_signs_in_lines(self._file):  # code of a page or a mail is a stranger's
            return None
        try:
            views = self._kb.view_of_block(self._file, language, text, limit=_MAX_ROWS)
        except QmdError:  # the note or its collection has gone meanwhile
            return None
        return self._tables(views)

    def _base(self, file: str) -> Embedded | None:
        """The views of a base, as the note sees them that embeds it."""
        try:
            with self._kb.open_file(file) as opened:
                text = opened.read(MAX_EMBEDDED_BYTES).decode(errors="replace")
        except (QmdError, OSError):
            return None
        return self.view("base", text)

    def _tables(self, views: Sequence[View]) -> Embedded:
        """Views as Markdown, each below its name."""
        parts = []
        for view in views:
            named = [f"**{view.name}**"] if view.name else []
            parts += [*named, self._table(view)]
        return Embedded("\n\n".join(parts), self, "")

    def _table(self, view: View) -> str:
        if view.problem:
            return replace(view, problem=self._translated(view.problem)).markdown
        if not view.rows:
            return self._translated("No note is in this view.")
        if view.total == len(view.rows):
            return view.markdown
        left_out = engine_text("{count} more notes", count=f"{view.total - len(view.rows):,}")
        return f"{replace(view, total=len(view.rows)).markdown}\n… {self._translated(left_out)}"

    def _target(self, link: Link, to: NoteLink) -> Target:
        if to.state == "web":
            return Target("web", link.target)
        if to.state == "folder" and to.file is not None:
            return Target("note", folder_address(to.file), to.file)
        if to.file is None or to.state == "nothing":
            return self._missing(link)
        if to.state == "attachment" or is_photo(to.file):
            place = link_anchor(link.kind, link.heading, link.block)[0]  # such as page=3
            return _file_target(to.file, place)
        if to.state == "section missing":  # the note itself may still be what the reader needs
            title = self._no_section_title or to.file
            return Target("no-section", note_address(to.file) + anchor_of(link), title)
        if not format_of(to.file).is_note and link.heading:
            place = quote(link.heading, safe="=")
            return Target("note", f"{note_address(to.file)}?at={place}", to.file)
        return Target("note", note_address(to.file) + anchor_of(link), to.file)

    def _missing(self, link: Link) -> Target:
        name = self._new_note(link) if self._create_title else ""
        if not name:
            return Target("missing", "", link.target.strip())
        within = quote(self._file, safe="/", errors="surrogatepass")
        address = f"/new?name={quote(name, safe='', errors='surrogatepass')}&from={within}"
        return Target("missing", address, self._create_title)

    def _new_note(self, link: Link) -> str:
        """The name of the note that a link to nothing would lead to; "" if it means no note."""
        name = link_path(link.kind, link.target.strip()) or ""
        if link.kind == "image" or not may_be_note(name, is_path=link.kind == "link"):
            return ""
        if link.kind == "link" and _IN_NO_NAME.search(name):  # `/new` would cut the name there
            return ""
        if not name.startswith(("./", "../")):
            return name
        place = path_from(name, self._file.partition("/")[2])
        return "" if place.startswith("..") else place


def note_address(file: str) -> str:
    """The address of a document's view, by its ``collection/path``."""
    view = "photo" if is_photo(file) else "note"
    return f"/{view}/{quote(file, safe='/', errors='surrogatepass')}"


def folder_address(folder: str) -> str:
    """The address of a search below ``collection/folder``."""
    return f"/?path={quote(folder, safe='', errors='surrogatepass')}"


def anchor_of(link: Link) -> str:
    """``#id`` of the heading or block that a link names; "" without one."""
    heading, block = link_anchor(link.kind, link.heading, link.block)
    anchor = f"^{block}" if block else heading
    return f"#{quote(link_id(anchor), safe='')}" if anchor else ""


def may_be_note(name: str, *, is_path: bool) -> bool:
    """
    Whether a file of this name, to which ``.md`` is added where it lacks, can be a note.

    ``is_path``: any suffix but those of notes is one of a file; a name may be ``Trip to St. Ives``.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in NOTE_SUFFIXES:
        return True
    is_of_file = suffix[1:].isalnum() and not suffix[1:].isdigit()
    if (is_path and is_of_file) or suffix in (".canvas", ".base"):
        return False
    return bool(name) and format_of(name).is_note and shown_kind(name) is None


def shown_kind(file: str) -> ShownKind | None:
    """As what a browser shows a file in place; None if it does not."""
    name = file.lower()
    return next((kind for kind, suffixes in _SHOWN.items() if name.endswith(suffixes)), None)


def _in_place(target: Target) -> Target:
    """A picture that stands in a text: a large one is sent smaller."""
    if target.kind != "image" or not target.address.lower().endswith(SHRUNK):
        return target
    return replace(target, address=target.address.replace("/file/", "/shown/", 1))


def _file_target(file: str, place: str) -> Target:
    address = f"/file/{quote(file, safe='/', errors='surrogatepass')}"
    title = file.rpartition("/")[2]
    kind = shown_kind(file)
    if kind is not None:
        return Target(kind, address, title)
    return Target("file", f"{address}#{quote(place, safe='=&')}" if place else address, title)


# --- addresses ------------------------------------------------------------------------


def address(file: str) -> str:
    """The part of an address for ``collection/path``: percent-encoded but for the slashes."""
    return quote(file, safe="/", errors="surrogatepass")
