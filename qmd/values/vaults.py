"""The settings of an Obsidian vault, as far as qmd follows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Obsidian's "New link format": the shortest unique path, or relative to the note, or to the vault.
LinkFormat = Literal["shortest", "relative", "absolute"]


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """
    What the folder ``.obsidian`` of a vault says. The defaults are Obsidian's.

    Attributes:
        excluded: "Excluded files": beginnings of paths, or ``/regular expressions/``.
        attachment_folder: Where Obsidian puts new attachments: ``/`` is the vault's root, ``./`` or
            ``./media`` is relative to the note, anything else is a folder of the vault.
        use_markdown_links: New links are ``[text](path)`` instead of ``[[path]]``.
        link_format: How the paths of new links are written.
        template_folder: The folder of the core plugin "Templates"; "" without one.
        strict_line_breaks: Whether a single line end inside a paragraph is shown as a space, as
            in Markdown, and not as a line end.
        problem: A sentence, if a file of settings could not be read; "" without one.
    """

    excluded: tuple[str, ...] = ()
    attachment_folder: str = "/"
    use_markdown_links: bool = False
    link_format: LinkFormat = "shortest"
    template_folder: str = ""
    strict_line_breaks: bool = False
    problem: str = ""
