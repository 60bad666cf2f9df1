"""Writes the names of files into addresses."""

from __future__ import annotations

from urllib.parse import quote


def address(file: str) -> str:
    """The part of an address for ``collection/path``: percent-encoded but for the slashes."""
    return quote(file, safe="/", errors="surrogatepass")
