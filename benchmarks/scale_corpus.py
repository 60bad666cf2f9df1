"""
Short documents in any number, half English and half Chinese, for `scale.py`; copied from nowhere.

Words come from `tree.py`'s made-up vocabularies and follow Zipf's law. A document has a title, a
section or two, links to earlier documents, and in every fourth case tags and properties. What is
made depends only on the seed and the number of the document, so 10,000 documents are the first
10,000 of a million.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tree import PUNCTUATION_ZH, TAGS_EN, TAGS_ZH, Writer

#: Files in a folder, and folders in a folder.
FOLDER, SHELF = 100, 100
#: Ranks of words that many documents hold and that are no stop words; and of rare ones.
COMMON_RANKS = {"en": (90, 190), "zh": (24, 124)}
RARE_RANKS = (8_000, 38_000)


class Corpus:
    """
    Makes documents and the questions about them.

    Args:
        words: The mean length of a document.
        seed: Another one makes other words and other documents.
        exponent: That of Zipf's law. The smaller, the more words are common.
    """

    def __init__(self, words: int = 130, seed: int = 1, exponent: float = 1.1) -> None:
        self._words = words
        self._first = (seed - 1) << 32
        self._writers = {lang: Writer(lang, seed, exponent) for lang in ("en", "zh")}

    def place(self, number: int) -> str:
        """The path of a document below the collection."""
        shelf, folder = number // (FOLDER * SHELF), number // FOLDER
        return f"{shelf:03}/{folder:05}/note-{number:07}.md"

    def document(self, number: int) -> str:
        rng = random.Random(self._first + number)
        language = "zh" if number % 2 else "en"
        vocabulary = self._writers[language]
        count = max(20, int(rng.lognormvariate(0, 0.6) * self._words * 0.835))
        picked = rng.choices(vocabulary.words, cum_weights=vocabulary.cumulative, k=count)
        # What a document is about returns in it.
        size = len(vocabulary.words)
        topic = [vocabulary.words[int(size ** rng.uniform(0.45, 1))] for _ in range(6)]
        for place in range(0, count, 5):
            picked[place] = topic[int(6 * rng.random() ** 2)]
        title = self._sentence(rng, language, topic[:3]).rstrip(".。")
        parts = [f"# {title}"]
        if rng.random() < 0.25:
            tags = rng.sample(TAGS_ZH if language == "zh" else TAGS_EN, 2)
            day = f"20{rng.randrange(15, 26)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
            front = f"date: {day}\ntags: [{', '.join(tags)}]\nrating: {rng.randrange(1, 6)}"
            parts.insert(0, f"---\n{front}\n---")
        for start in range(0, count, 15):
            if start == 60:
                parts.append(f"## {topic[3]}")
            parts.append(self._sentence(rng, language, picked[start : start + 15]))
        if number and rng.random() < 0.5:
            target = int(number * rng.random())
            parts.append(f"[[note-{target:07}]]")
        return "\n\n".join(parts) + "\n"

    def _sentence(self, rng: random.Random, language: str, words: list[str]) -> str:
        if language == "en":
            return " ".join(words).capitalize() + "."
        middle = len(words) // 2
        comma = rng.choice(PUNCTUATION_ZH)
        return "".join(words[:middle]) + comma + "".join(words[middle:]) + "。"

    def questions(self, count: int) -> dict[str, list[str]]:
        """Queries of each kind; `count` of each."""
        rng = random.Random("questions")
        english, chinese = (self._writers[language].words for language in ("en", "zh"))
        common_en = [word for word in english[slice(*COMMON_RANKS["en"])] if len(word) > 2]
        common_zh = [word for word in chinese[slice(*COMMON_RANKS["zh"])] if len(word) == 2]
        rare_en = [word for word in english[slice(*RARE_RANKS)] if len(word) > 3]
        rare_zh = [word for word in chinese[slice(*RARE_RANKS)] if len(word) > 1]

        def pick(words: list[str]) -> str:
            return rng.choice(words)

        kinds = {
            "en, a rare word": lambda: pick(rare_en),
            "en, a common word": lambda: pick(common_en),
            "en, two common words": lambda: f"{pick(common_en)} {pick(common_en)}",
            "en, three common words": lambda: " ".join(pick(common_en) for _ in range(3)),
            "en, a stop word": lambda: pick(english[:30]),
            "en, a rare and a common word": lambda: f"{pick(rare_en)} {pick(common_en)}",
            "en, a phrase of common words": lambda: f'"{pick(english[:60])} {pick(common_en)}"',
            "en, the beginning of a word": lambda: pick(common_en)[:3] + "*",
            "en, a word without another": lambda: f"{pick(common_en)} -{pick(common_en)}",
            "en, a common word with a tag": lambda: f"{pick(common_en)} tag:{pick(TAGS_EN[:8])}",
            "en, a question": lambda: (
                f"how do I {pick(common_en)} the {pick(rare_en)} with {pick(common_en)}"
            ),
            "zh, a rare word": lambda: pick(rare_zh),
            "zh, a common word of two": lambda: pick(common_zh),
            "zh, a character": lambda: pick(common_zh)[0],
            "zh, two common words": lambda: f"{pick(common_zh)} {pick(common_zh)}",
            "zh, a phrase": lambda: f'"{pick(common_zh)}{pick(common_zh)}"',
            "zh, a question": lambda: f"怎么{pick(common_zh)}{pick(rare_zh)}的{pick(common_zh)}",
        }
        return {kind: [make() for _ in range(count)] for kind, make in kinds.items()}

    def files(self, first: int, last: int) -> Iterator[tuple[str, str]]:
        for number in range(first, last):
            yield self.place(number), self.document(number)


def make_files(directory: Path, count: int, corpus: Corpus) -> int:
    """
    Write the documents, unless they are there already.

    Returns:
        The size of all in bytes.
    """
    done = directory.with_suffix(".size")
    if not done.exists():
        size = 0
        for path, text in corpus.files(0, count):
            target = directory / path
            if path.endswith("00.md"):
                target.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            target.write_bytes(data)
            size += len(data)
        done.write_text(str(size))
    return int(done.read_text())
