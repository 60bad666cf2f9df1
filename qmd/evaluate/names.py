"""Finds the documents of the database by the names in judgments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote


class DocumentNames:
    """Maps every name that judgments may use to the documents of a database."""

    def __init__(self, files: Iterable[str]) -> None:
        """``files``: the documents as ``collection/path``."""
        self._files: dict[str, list[str]] = {}
        for file in files:
            # The names are the whole file, the path in its collection, and each end of this path.
            name = file
            while name:
                self._files.setdefault(name, []).append(file)
                _, _, name = name.partition("/")

    def document(self, judged_name: str) -> str | None:
        """
        The document with this name; None if there is none or more than one.

        A name is ``collection/path`` or ``qmd://…``, else the path in a collection, else the end
        of a path.
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
        The judgments by ``collection/path``, and the names without a document in the database.

        Such a name keeps its judgment, and counts as a document that no system returns.
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
