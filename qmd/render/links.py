"""What a text links to, and what its caller says about that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class WrittenTarget:
    """
    A link as it is written.

    Attributes:
        kind: A wikilink, a Markdown link or image, or an embed (``![[…]]``).
        target: With ``#heading`` or ``#^block``; a Markdown link still percent-encoded.
    """

    kind: Literal["wikilink", "embed", "link", "image"]
    target: str


@dataclass(frozen=True, slots=True)
class Target:
    """
    What a link leads to.

    Attributes:
        kind: A document; an image, sound or video of the collection, which can be shown in place;
            another file of it; an address outside; a document without the section that the link
            names; or nothing.
        address: Where the page goes; for what is missing, where it can be made, or "" for no link.
        title: Shown on hover.
    """

    kind: Literal["note", "image", "audio", "video", "file", "web", "no-section", "missing"]
    address: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    """
    A document, or a part of it, that is shown inside another.

    Attributes:
        text: Markdown without frontmatter.
        links: Says where its links lead.
        identity: The same for the same part of the same document, so that circles are noticed.
    """

    text: str
    links: LinkResolver
    identity: str


class LinkResolver(Protocol):
    """Where the links of one document lead."""

    def resolve(self, written: Sequence[WrittenTarget]) -> Sequence[Target]:
        """The targets of links, in their order. Called once for a text."""
        ...

    def embedded(self, target: str) -> Embedded | None:
        """The content of an embedded document; None to show a link instead."""
        ...


class NoLinks:
    """A document of which no link leads anywhere but to the web and to itself."""

    def resolve(self, written: Sequence[WrittenTarget]) -> Sequence[Target]:
        return [
            Target("web", link.target)
            if link.target.startswith(("http://", "https://", "mailto:"))
            else Target("missing", "")
            for link in written
        ]

    def embedded(self, target: str) -> Embedded | None:
        return None
