"""
Trees of made-up Markdown for the benchmarks: seeded, so the same everywhere, and copied from
nowhere.

    python benchmarks/tree.py DIRECTORY [--files 10000] [--language en|zh]

Word frequencies follow Zipf's law, each document has words of its own that return, and the
sizes of files are log-normal, as in folders of notes. There are headings, lists, code,
tables, links, tags and frontmatter. 10,000 files are about 46 MB in English and 26 MB in
Chinese.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path


def _words(text: str) -> list[str]:
    return text.split()


FUNCTION_WORDS = _words(
    """
    the of and to a in is that for it as with on be by are this an at from or which you not have
    if can was but all when one there will has use each more so only how then other its no into
    they about we do set may new some these after between what up would time where also your
    any than them two first must out while most used same over just both does such before
    should because without see through like make another many following however here since
    """
)
ONSETS = _words(
    "b c d f g h j k l m n p r s t v w br cl cr dr fl gr pl pr sc sh sl st str th tr ch"
)
VOWELS = _words("a e i o u a e i o ea ou ai io ee")
CODAS = [*_words("n r s t l m d x ck nd nt st ng rm sh"), *[""] * 12]
ENDINGS = [*[""] * 10, *_words("s s es ed ing er ation ity ly able ment")]
FUNCTION_CHARACTERS = _words(
    "的 是 在 了 和 有 不 这 我 也 就 与 为 对 中 上 可以 我们 一个 因为 所以 但是 如果 没有"
)
PUNCTUATION_ZH = "，，，、。；："
TAGS_EN = _words("project idea meeting reading howto reference todo archive release area/ops")
TAGS_ZH = _words("项目 想法 会议 读书 教程 参考 待办 归档 发布 领域/运维")
MEAN_BYTES = {"en": 4250, "zh": 2600}
TOPIC_SHARE = 0.30


class Writer:
    """Makes documents of one language; what it makes depends only on the seed."""

    def __init__(self, language: str, seed: int = 1, exponent: float = 1.1) -> None:
        self.language = language
        self.rng = random.Random(f"{language}-{seed}")
        self.words = self._vocabulary()
        # Zipf-Mandelbrot: rank r has frequency 1 / (r + 2.7) ** exponent.
        self.cumulative = list(accumulate((r + 2.7) ** -exponent for r in range(len(self.words))))
        self.names: list[str] = []

    def _vocabulary(self) -> list[str]:
        rng, size = self.rng, 60_000 if self.language == "en" else 40_000
        words = dict.fromkeys(FUNCTION_WORDS if self.language == "en" else FUNCTION_CHARACTERS)
        # The 3,755 common characters of GB 2312, in a made-up order of frequency.
        pairs = (bytes((high, low)) for high in range(0xB0, 0xD8) for low in range(0xA1, 0xFF))
        characters = list(b"".join(pairs).decode("gb2312", "ignore"))
        rng.shuffle(characters)
        weights = list(accumulate(1 / (r + 20) for r in range(len(characters))))
        while len(words) < size:
            rank = len(words)
            if self.language == "zh":
                length = rng.choices((1, 2, 3, 4), (4, 70, 16, 10))[0]
                words["".join(rng.choices(characters, cum_weights=weights, k=length))] = None
                continue
            syllables = 1 + min(2, int(rng.expovariate(2.2) + math.log10(rank) / 8))
            word = "".join(
                rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)
                for _ in range(syllables)
            )
            words[word + rng.choice(ENDINGS)] = None
        return list(words)

    # -- pieces ------------------------------------------------------------------------

    def _pick(self, count: int, topic: list[str]) -> list[str]:
        rng = self.rng
        picked = rng.choices(self.words, cum_weights=self.cumulative, k=count)
        for place in range(count):
            if rng.random() < TOPIC_SHARE:
                picked[place] = topic[int(len(topic) * rng.random() ** 2)]
        return picked

    def _topic(self) -> list[str]:
        # Drawn flatter than the language itself: what a document is about is seldom common.
        return [self.words[int(len(self.words) ** self.rng.uniform(0.45, 1))] for _ in range(30)]

    def sentence(self, topic: list[str]) -> str:
        rng = self.rng
        words = self._pick(max(3, int(rng.gauss(15, 6))), topic)
        if self.language == "zh":
            text = ""
            for word in words:
                text += word + (rng.choice(PUNCTUATION_ZH) if rng.random() < 0.14 else "")
            return text.rstrip(PUNCTUATION_ZH) + "。"
        place = rng.randrange(len(words))
        roll = rng.random()
        if roll < 0.10:
            words[place] += ","
        elif roll < 0.14:
            words[place] = f"`{self.identifier()}`"
        elif roll < 0.17:
            words[place] = f"**{words[place]}**"
        elif roll < 0.22:
            words[place] = str(rng.randrange(10 ** rng.randint(1, 4)))
        return " ".join(words).capitalize() + "."

    def identifier(self) -> str:
        first, second = self._latin(), self._latin()
        return f"{first}_{second}" if self.rng.random() < 0.5 else first + second.capitalize()

    def _latin(self) -> str:
        rng = self.rng
        return (
            rng.choice(ONSETS)
            + rng.choice(VOWELS)
            + rng.choice(("n", "r", "t", "x", ""))
            + rng.choice(ONSETS)
            + rng.choice(VOWELS)
        )

    def paragraph(self, topic: list[str]) -> str:
        joint = "" if self.language == "zh" else " "
        text = joint.join(self.sentence(topic) for _ in range(self.rng.randint(2, 6)))
        roll = self.rng.random()
        if self.names and roll < 0.25:
            name = self.rng.choice(self.names)
            label = self._pick(1, topic)[0]
            text += joint + (f"[[{name}|{label}]]" if roll < 0.10 else f"[{label}]({name}.md)")
        elif roll < 0.30:
            text += f" https://example.org/{self._latin()}/{self._latin()}"
        return text

    def bullets(self, topic: list[str]) -> str:
        mark = self.rng.choice(("- ", "- ", "1. ", "- [ ] "))
        return "\n".join(mark + self.sentence(topic) for _ in range(self.rng.randint(2, 7)))

    def code(self) -> str:
        lines = [f"def {self.identifier()}({self._latin()}):"]
        for _ in range(self.rng.randint(2, 9)):
            lines.append(f"    {self._latin()} = {self.identifier()}({self.rng.randrange(100)})")
        return "```python\n" + "\n".join(lines) + "\n```"

    def table(self, topic: list[str]) -> str:
        rows = [" | ".join(self._pick(3, topic)) for _ in range(self.rng.randint(3, 7))]
        return f"| {rows[0]} |\n|---|---|---|\n" + "\n".join(f"| {row} |" for row in rows[1:])

    def title(self, topic: list[str]) -> str:
        words = self._pick(self.rng.randint(2, 5), topic)
        return "".join(words) if self.language == "zh" else " ".join(words).capitalize()

    # -- documents ---------------------------------------------------------------------

    def document(self, name: str) -> str:
        """One Markdown text; ``name`` may be linked to from the ones that follow."""
        rng, topic = self.rng, self._topic()
        mean = MEAN_BYTES[self.language]
        size = min(40 * mean, int(rng.lognormvariate(math.log(mean) - 0.32, 0.8)))
        size //= 3 if self.language == "zh" else 1
        title = self.title(topic)
        parts = []
        if rng.random() < 0.3:
            tags = rng.sample(TAGS_ZH if self.language == "zh" else TAGS_EN, 2)
            day = f"20{rng.randrange(15, 26)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
            parts.append(f"---\ntitle: {title}\ndate: {day}\ntags: [{', '.join(tags)}]\n---")
        parts.append(f"# {title}")
        written = 0
        while written < size:
            roll = rng.random()
            if roll < 0.13:
                part = f"{'#' * rng.choice((2, 2, 3))} {self.title(topic)}"
            elif roll < 0.22:
                part = self.bullets(topic)
            elif roll < 0.26:
                part = self.code()
            elif roll < 0.28:
                part = self.table(topic)
            else:
                part = self.paragraph(topic)
            parts.append(part)
            written += len(part) + 2
        if rng.random() < 0.15:
            parts.append("#" + rng.choice(TAGS_ZH if self.language == "zh" else TAGS_EN))
        self.names.append(name)
        return "\n\n".join(parts) + "\n"

    def documents(self, count: int) -> Iterator[tuple[str, str]]:
        """Path and text, in folders of about 40 files."""
        for number in range(count):
            folder = f"{self.words[200 + number // 800]}/{self.words[600 + number // 40]}"
            name = f"{self.words[1000 + self.rng.randrange(20_000)]}-{number:05}"
            yield f"{folder}/{name}.md", self.document(name)

    def queries(self, count: int) -> dict[str, list[str]]:
        """Queries of each kind, made of the tree's own words (call it behind `documents`)."""
        rng = self.rng

        def word() -> str:
            while True:
                found = self.words[int(len(self.words) ** rng.uniform(0.45, 0.95))]
                if len(found) > 1:
                    return found

        kinds = {
            "one word": word,
            "two words": lambda: f"{word()} {word()}",
            "phrase": lambda: f'"{self.words[rng.randrange(60)]} {self.words[rng.randrange(60)]}"',
            "question": lambda: f"how do I {word()} the {word()} with {word()} {word()}",
        }
        if self.language == "zh":
            kinds["phrase"] = lambda: f'"{self.words[rng.randrange(60)]}{word()}"'
            kinds["question"] = lambda: f"怎么{word()}{word()}的{word()}"
        return {kind: [make() for _ in range(count)] for kind, make in kinds.items()}


def make_tree(directory: Path, files: int = 10_000, language: str = "en") -> int:
    """
    Write the tree, unless it is there already.

    Returns:
        The size of its files in bytes.
    """
    done = directory.with_suffix(".size")
    if not done.exists():
        total = 0
        for path, text in Writer(language).documents(files):
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            target.write_bytes(data)
            total += len(data)
        done.write_text(str(total))
    return int(done.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--language", choices=("en", "zh"), default="en")
    arguments = parser.parse_args()
    size = make_tree(arguments.directory, arguments.files, arguments.language)
    print(f"{arguments.files} files, {size / 1e6:.1f} MB in {arguments.directory}")


if __name__ == "__main__":
    main()
