"""
The words of the page, in English and Chinese.

``texts/VIEW.toml`` holds both languages of a text side by side::

    placeholder = { en = "Search your notes", zh = "搜索笔记" }

A template asks for it as ``t("VIEW.placeholder")``, and names what a text has in braces:
``t("VIEW.count", n=3)``.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping, Set
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Language = Literal["en", "zh"]
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


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_SENTENCE = 5_000  # characters; a longer one is shown as it is
_BETWEEN_SENTENCES = re.compile(r"(?<=[.?!]) (?=[A-Z])")
_FIELD = re.compile(r"\{(\w+)\}")


class EngineTexts:
    """Sentences of the engine, and their Chinese."""

    def translated(self, sentence: str, language: Language) -> str:
        """A sentence of the engine in a language; as it is if there is no other wording."""
        if language != "zh" or len(sentence) > _MAX_SENTENCE:
            return sentence
        return self._in_chinese(sentence) or sentence

    def _in_chinese(self, text: str, *, has_parts: bool = True) -> str | None:
        """One sentence, or several that follow each other; None if one of them has no wording."""
        whole = self._whole(text, has_parts=has_parts)
        if whole is not None:
            return whole
        effect, _, cause = text.partition(": ")
        start = self._whole(effect, has_parts=False)
        if start is not None and cause:
            return f"{start}：{self._in_chinese(cause, has_parts=has_parts) or cause}"
        several = [
            self._whole(each, has_parts=has_parts) for each in _BETWEEN_SENTENCES.split(text)
        ]
        return "".join(each for each in several if each) if all(several) else None

    def _whole(self, sentence: str, *, has_parts: bool) -> str | None:
        """One sentence; what fills its fields may be sentences themselves."""
        for pattern, chinese in self._patterns:
            match = pattern.fullmatch(sentence)
            if match is None:
                continue
            fields = match.groupdict()
            if has_parts:
                fields = {
                    name: self._in_chinese(text, has_parts=False) or text
                    for name, text in fields.items()
                }
            return chinese.format(**fields)
        return None

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        """The English sentences as patterns; those with most words come first."""
        source = files("qmd.server.page").joinpath("engine_zh.toml").read_text(encoding="utf-8")
        sentences: dict[str, str] = tomllib.loads(source)
        ordered = sorted(sentences, key=lambda english: -len(_FIELD.sub("", english)))
        return [(_pattern(english), sentences[english]) for english in ordered]


@cache
def engine_texts() -> EngineTexts:
    """The sentences, read once for all servers of this process."""
    return EngineTexts()


def _pattern(english: str) -> re.Pattern[str]:
    parts = _FIELD.split(english)  # words and names of fields by turns
    return re.compile(
        "".join(
            f"(?P<{part}>.+?)" if number % 2 else re.escape(part)
            for number, part in enumerate(parts)
        ),
        re.DOTALL,
    )
