"""Where the documents of an output lie on the disk: their full paths, and links that open them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from urllib.parse import quote

from qmd import system
from qmd.cli.session import session
from qmd.cli.terminal import fitting_path, one_line

if TYPE_CHECKING:
    from qmd.values import Collection


class Places:
    """How an output names documents: by their display paths, or by their paths on the disk."""

    def __init__(
        self,
        roots: Mapping[str, str] | None = None,
        *,
        full_path: bool = False,
        links: bool = False,
        editor: str | None = None,
    ) -> None:
        """
        Args:
            roots: Collection → its directory; not needed for display paths without links.
            links: Whether names are links that open the document.
            editor: The setting of this name.
        """
        self._roots = roots or {}
        self._full_path = full_path
        self._links = links
        self._editor = editor

    def name(self, file: str) -> str:
        """The name to print for a display path, ``collection/path``."""
        path = self.path(file) if self._full_path else None
        return file if path is None else str(path)

    def fitting_name(self, file: str, used: int = 0) -> str:
        """
        The name in one line for the end of a line of which ``used`` columns are taken.

        On a terminal a display path loses folders at its beginning that have no room.
        """
        name = one_line(self.name(file))
        return name if self._full_path else fitting_path(name, used)

    def path(self, file: str) -> Path | None:
        """The path on the disk; None if the collection is unknown."""
        collection, _, path = file.partition("/")
        root = self._roots.get(collection)
        return None if root is None else Path(root, path)

    def link(self, text: str, file: str, line: int = 1, anchor: str | None = None) -> str:
        """
        Make a text, which is already safe for a terminal, a link that opens a document.

        Args:
            anchor: ``page=12``, if the file is opened by its viewer and not by an editor.
        """
        path = self.path(file) if self._links else None
        if path is None:
            return text
        if anchor is None:
            target = system.editors.editor_link(self._editor, path, line)
        else:
            target = f"{path.as_uri()}#{quote(anchor, safe='=')}"
        return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"


DISPLAY_PATHS = Places()


def places(collections: Callable[[], Iterable[Collection]], *, full_path: bool) -> Places:
    """
    The places of an output to stdout.

    ``collections``: reads all collections; not called if the output needs no paths.
    """
    links = use_links(sys.stdout)
    if not (links or full_path):
        return Places()
    roots = {collection.name: collection.path for collection in collections()}
    return Places(roots, full_path=full_path, links=links, editor=session().settings.editor)


def use_links(stream: TextIO) -> bool:
    """Whether a stream shows links (OSC 8): a terminal, unless a variable says otherwise."""
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced:
        return forced not in ("0", "false")
    if os.environ.get("NO_COLOR") or not stream.isatty():
        return False
    return os.environ.get("TERM") not in ("dumb", "linux")
