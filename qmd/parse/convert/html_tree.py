"""Makes a tree of the bytes of an HTML file; nothing that it names is loaded."""

from __future__ import annotations

import codecs
import re

from lxml import etree

from qmd.parse.convert.html_blocks import Element, local_name
from qmd.parse.decode import decode

_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w:.-]{2,40})|<\?xml[^>]{0,100}encoding=[\"']([\w:.-]{2,40})",
    re.IGNORECASE,
)
_OF_HEAD = frozenset(("title", "meta", "link", "script", "style", "base", "noscript", "template"))
#: What pages call an encoding, and the larger one that browsers read it as.
_READ_AS = {
    "gb2312": "gb18030", "gbk": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252",
    "ascii": "cp1252", "us-ascii": "cp1252", "shift_jis": "cp932", "big5": "big5hkscs",
    "ks_c_5601-1987": "cp949", "euc-kr": "cp949",
}  # fmt: skip


def html_text(data: bytes, charset: str = "") -> str:
    """
    The text of an HTML file: in the encoding that it names if it is in it, else in a detected one.

    Args:
        charset: What else names the encoding, such as the header of a message.

    Raises:
        DecodeError: The bytes are no text.
    """
    if not data.startswith(_BOMS):
        match = _CHARSET.search(data, 0, 4096)
        named = (match[1] or match[2]).decode("ascii", "replace") if match else ""
        for name in (charset, named):
            text = _decoded(data, name)
            if text is not None:
                return text
    return decode(data).text


def html_tree(text: str) -> tuple[Element | None, tuple[str, ...]]:
    """The root of a page's tree, None if it has no elements, and warnings."""
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        return None, ()
    if root is not None:
        _complete_body(root)
    too_deep = any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log)
    warnings = ("The page is nested too deeply; a part of it was not read.",) if too_deep else ()
    return root, warnings


def _complete_body(root: Element) -> None:
    """
    Put into ``<body>`` what begins it.

    The parser knows no element of HTML 5, and takes one behind the head for a part of it.
    """
    head, body = root.find("head"), root.find("body")
    if head is None:
        return
    begin = next((n for n, each in enumerate(head) if local_name(each) not in _OF_HEAD), None)
    if begin is None:
        return
    if body is None:
        body = etree.SubElement(root, "body")
    for place, element in enumerate(head[begin:]):
        body.insert(place, element)


def _decoded(data: bytes, charset: str) -> str | None:
    name = _READ_AS.get(charset.lower(), charset.lower())
    if not name or name.startswith("utf-16"):  # a page that can be read so far is not in UTF-16
        return None
    try:
        if codecs.lookup(name)._is_text_encoding is False:
            return None
        text = data.decode(name)
    except (LookupError, UnicodeError, ValueError):
        return None
    return None if "\0" in text else text
