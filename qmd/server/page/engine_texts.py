"""
The sentences of the engine in the language of the page: errors, hints, and what it says is wrong.

The engine writes English, for every face. ``engine_zh.toml`` has the Chinese for those sentences
that a person of the page may meet, by the English one as the code has it::

    "Document not found: {file}" = "找不到文档：{file}"

A sentence without an entry stays English. A test compares the English ones with the code.
"""

from __future__ import annotations

import re
import sys
from functools import cache, cached_property
from importlib.resources import files

from qmd.server.page.language import Language

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
