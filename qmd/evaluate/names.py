"""Finds the documents of the database that judgments name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote


class DocumentNames:
    """The documents of a database by every name that judgments may use."""

    def __init__(self, files: Iterable[str]) -> None:
        """``files`` as ``collection/path``."""
        self._files: dict[str, list[str]] = {}
        for file in files:
            # The whole name, the path in its collection, and what is left of it further down.
            name, rest = file, file
            while name:
                self._files.setdefault(name, []).append(file)
                _, _, rest = rest.partition("/")
                name = rest

    def document(self, judged_name: str) -> str | None:
        """
        The document meant, None if there is none or more than one: by ``collection/path`` or
        ``qmd://…``, by the path in its collection, else by the end of a path.
        """
        name = judged_name.removeprefix("./").strip("/")
        if judged_name.startswith("qmd://"):
            name = unquote(judged_name.removeprefix("qmd://"))
        matches = self._files.get(name, [])
        for depth in (0, 1):
            exact = [file for file in matches if file.count("/") - name.count("/") == depth]
            if exact:
                return exact[0] if len(exact) == 1 else None
        return matches[0] if len(matches) == 1 else None

    def resolve(self, judged: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
        """
        The judgments by ``collection/path``, and the names that fit no document.

        What is not in the database stays judged under its name: no system can return it.
        """
        resolved: dict[str, int] = {}
        unknown: list[str] = []
        for judged_name, grade in judged.items():
            file = self.document(judged_name)
            if file is None:
                unknown.append(judged_name)
            name = file or judged_name
            resolved[name] = max(grade, resolved.get(name, 0))
        return resolved, unknown
