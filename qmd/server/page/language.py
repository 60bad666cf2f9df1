"""
The words of the page, in English and Chinese.

``texts/VIEW.toml`` holds both languages of a text side by side::

    placeholder = { en = "Search your notes", zh = "搜索笔记" }

A template asks for it as ``t("VIEW.placeholder")``, and names what a text has in braces:
``t("VIEW.count", n=3)``.
"""

from __future__ import annotations

import functools
import string
import sys
from collections.abc import Mapping, Set
from importlib.resources import files
from typing import cast

from qmd.engine_text import EngineText
from qmd.values.notes import Language

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LANGUAGES: tuple[Language, ...] = ("en", "zh")

_MAX_RANGES = 20  # of an Accept-Language header that are read


class Texts:
    """All texts of the page: ``VIEW.NAME`` → language → text."""

    def __init__(self) -> None:
        self._texts: dict[str, Mapping[str, str]] = {}
        for entry in files("qmd.server.page").joinpath("texts").iterdir():
            if not entry.name.endswith(".toml"):
                continue
            view = entry.name.removesuffix(".toml")
            for name, text in tomllib.loads(entry.read_text(encoding="utf-8")).items():
                self._texts[f"{view}.{name}"] = text

    def names(self) -> Set[str]:
        return self._texts.keys()

    def text(self, language: Language, name: str, /, **values: object) -> str:
        """
        One text. A count ``n`` of 1 takes the text ``NAME_one`` if there is one.

        Raises:
            KeyError: There is no such text, or a value of it is missing.
        """
        if values.get("n") == 1 and f"{name}_one" in self._texts:
            name = f"{name}_one"
        text = self._texts[name][language]
        return text.format(**values) if values else text

    def of_view(self, language: Language, prefix: str) -> dict[str, str]:
        """The texts of a view for its script: name → text."""
        start = f"{prefix}."
        return {
            name.removeprefix(start): text[language]
            for name, text in self._texts.items()
            if name.startswith(start)
        }


@functools.cache
def page_texts() -> Texts:
    """The texts, read once for all servers of this process."""
    return Texts()


def language_of(accepted: str) -> Language:
    """The language that a browser prefers, from its Accept-Language header; else English."""
    best: tuple[float, Language] = (0.0, "en")
    for position, part in enumerate(accepted.split(",")[:_MAX_RANGES]):
        name, _, weight = part.strip().partition(";q=")
        try:
            quality = float(weight) if weight else 1.0
        except ValueError:
            continue
        primary = name.strip().lower().partition("-")[0]
        for language in LANGUAGES:
            if primary == language and quality - position * 1e-6 > best[0]:
                best = (quality - position * 1e-6, language)
    return best[1]


# --- sentences of the engine ----------------------------------------------------------


STORED = (
    "The frontmatter is not valid YAML{line} ({problem}); read line by line.",
    "a citation names 1 to {most} lines, the first one first",
    "the document has {count} lines",
    "the lines do not say {numbers}",
)
"""Sentences that the database keeps as text: of documents, and of citations."""


class EngineTexts:
    """
    The sentences of the engine in the language of the page: errors, hints, what is wrong.

    The engine writes English, for every face, and keeps what stands in the fields of a sentence
    (`EngineText`). ``engine_zh.toml`` has the Chinese for those sentences that a person of the page
    may meet, by the English one as the code has it::

        "Document not found: {file}" = "找不到文档：{file}"

    A sentence without an entry stays English. A test compares the English ones with the code.
    """

    def __init__(self) -> None:
        source = files("qmd.server.page").joinpath("engine_zh.toml").read_text(encoding="utf-8")
        self._chinese: dict[str, str] = tomllib.loads(source)

    def translated(self, sentence: str, language: Language) -> str:
        """A sentence of the engine in a language; as it is if there is no other wording."""
        if language == "en":
            return sentence
        if not isinstance(sentence, EngineText):
            stored = (read_back(template, sentence) for template in STORED)
            read = next(filter(None, stored), None)
            if read is None:
                return self._chinese.get(sentence, sentence)
            sentence = read
        chinese = self._chinese.get(sentence.template)
        if chinese is None:
            return sentence
        fields = {
            name: self.translated(value, language) if isinstance(value, str) else value
            for name, value in sentence.fields.items()
        }
        return chinese.format_map(fields)


def read_back(template: str, text: str) -> EngineText | None:
    """The sentence of ``template`` whose words ``text`` has; None if it has others."""
    parts = list(string.Formatter().parse(template))
    fields: dict[str, object] = {}
    start, name = 0, None
    for literal, following, _, _ in [*parts, ("", None, None, None)]:
        end = text.find(literal, start) if literal else len(text)
        if end < 0 or (name is None and end > start):
            return None
        if name is not None:
            fields[name] = text[start:end]
        start, name = end + len(literal), following
    return EngineText(template, fields) if start == len(text) else None


def lines_of(text: str) -> list[str]:
    """The sentences of a text that has one in each line."""
    if isinstance(text, EngineText) and text.template == "{first}\n{others}":
        return [line for part in text.fields.values() for line in lines_of(cast("str", part))]
    return [text] if isinstance(text, EngineText) else text.split("\n")


@functools.cache
def engine_texts() -> EngineTexts:
    """The sentences, read once for all servers of this process."""
    return EngineTexts()
