"""
Reads XMP: the values of RDF properties, single values and lists.

Entities cannot be declared, so no document expands. Of a document that is not well-formed, what
comes before the mistake is read.

Prefixes are resolved here and not by expat, which would write the full name of a namespace before
each name with its prefix: 100 KB for each of 20,000 elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

_LANGUAGE = "xml:lang"
_CONTAINERS = ("rdf:Bag", "rdf:Seq", "rdf:Alt")

_NAMESPACES = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/": "iptcCore",
    "http://iptc.org/std/Iptc4xmpExt/2008-02-29/": "iptcExt",
    "http://ns.adobe.com/photoshop/1.0/": "photoshop",
    "http://ns.adobe.com/exif/1.0/": "exif",
    "http://ns.adobe.com/tiff/1.0/": "tiff",
    "http://ns.adobe.com/xap/1.0/": "xmp",
}
_NAMES = frozenset(
    (
        *("dc:subject", "dc:description", "dc:title", "iptcExt:PersonInImage"),
        *("iptcCore:Location", "photoshop:City", "photoshop:State", "photoshop:Country"),
        *("photoshop:DateCreated", "exif:DateTimeOriginal", "xmp:CreateDate"),
        *("tiff:Make", "tiff:Model"),
    )
)
_MAX_DEPTH = 100
_MAX_ELEMENTS = 200_000
_MAX_VALUES = 10_000


class _XmpRefused(Exception):
    """The document is not what XMP can be."""


@dataclass(slots=True)
class _XmpReader:
    """
    The state of one pass. ``path`` holds the open elements from rdf:RDF on: a description, a
    property, a container, an item. ``prefixes`` are those of namespaces known here, by the
    prefixes in the document; ``scopes`` what they stood for outside each open element.
    """

    values: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    prefixes: dict[str, str | None] = field(default_factory=lambda: {"xml": "xml"})
    scopes: list[list[tuple[str, str | None]]] = field(default_factory=list)
    elements: int = 0
    above: int = 0
    name: str | None = None
    language: str = ""
    text: list[str] = field(default_factory=list)
    count: int = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements > _MAX_ELEMENTS:
            raise _XmpRefused("has too many elements")
        self._declare(attributes)
        tag = self._resolved(name)
        if not self.path and tag != "rdf:RDF":
            self.above += 1
            if self.above > _MAX_DEPTH:
                raise _XmpRefused("is nested too deeply")
            return
        self.path.append(tag)
        depth = len(self.path)
        if depth > _MAX_DEPTH:
            raise _XmpRefused("is nested too deeply")
        if depth == 2:
            self._add_attributes(attributes)
        elif depth == 3:
            self.name = tag if tag in _NAMES else None
            self.language = ""
            self.text = []
        elif depth == 5 and tag == "rdf:li":
            self.language = attributes.get(_LANGUAGE, "")
            self.text = []

    def _add_attributes(self, attributes: dict[str, str]) -> None:
        """The properties that a description has as attributes."""
        for key, value in attributes.items():
            attribute = self._resolved(key)
            if ":" in key and attribute in _NAMES:  # the default namespace holds for elements
                self._add(attribute, "", value)

    def end(self, _: str) -> None:
        if self.path:
            self._leave(self.path[-1])
        for prefix, before in reversed(self.scopes.pop()):
            self.prefixes[prefix] = before

    def _leave(self, tag: str) -> None:
        depth = len(self.path)
        if self.name is not None:
            in_list = depth == 5 and tag == "rdf:li" and self.path[3] in _CONTAINERS
            if in_list or (depth == 3 and "".join(self.text).strip()):
                self._add(self.name, self.language, "".join(self.text))
                self.text = []
            if depth == 3:
                self.name = None
            elif depth == 4:
                self.text = []  # the white space around the list
        self.path.pop()

    def _declare(self, attributes: dict[str, str]) -> None:
        hidden = []
        for name, value in attributes.items():
            if name == "xmlns" or name.startswith("xmlns:"):
                prefix = name.partition(":")[2]
                hidden.append((prefix, self.prefixes.get(prefix)))
                self.prefixes[prefix] = _NAMESPACES.get(value)
        self.scopes.append(hidden)

    def _resolved(self, name: str) -> str:
        """A name with the prefix that `_NAMESPACES` gives its namespace; else without prefix."""
        prefix, _, local = name.rpartition(":")
        usual_prefix = self.prefixes.get(prefix)
        return f"{usual_prefix}:{local}" if usual_prefix else local

    def characters(self, text: str) -> None:
        if self.name is not None and len(self.path) in (3, 5):
            self.text.append(text)

    def _add(self, name: str, language: str, value: str) -> None:
        self.count += 1
        if self.count > _MAX_VALUES:
            raise _XmpRefused("has too many values")
        if value.strip():
            self.values.setdefault(name, []).append((language, value))


def read_xmp(packet: bytes) -> tuple[Mapping[str, list[tuple[str, str]]], str | None]:
    """
    Property, like ``dc:subject`` → its values with their languages ("" mostly), and what is
    wrong with the packet, as the end of a sentence.
    """
    reader = _XmpReader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = _refuse_declarations
    problem = None
    try:
        wide = packet.startswith((b"\xff\xfe", b"\xfe\xff"))
        parser.Parse(packet if wide else packet.strip(b"\0 \t\r\n"), True)
    except _XmpRefused as refused:
        problem = str(refused)
    except expat.ExpatError as error:
        problem = f"is not well-formed (line {error.lineno})"
    except (ValueError, LookupError):  # an encoding that Python does not know
        problem = "has an unknown encoding"
    return reader.values, problem


def _refuse_declarations(*_: object) -> None:
    raise _XmpRefused("declares a document type, which XMP never does")
