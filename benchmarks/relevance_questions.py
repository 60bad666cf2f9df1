"""
The questions that relevance is measured with, and the collections that they are put to.

Next to the questions of fixtures there are kinds that are made from a database, always the same for
the same seed: exact titles, single words of titles, words that no document holds, gibberish; and
collections of ten documents, each with questions that they answer and questions that they do not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NamedTuple

from qmd.evaluate import fixtures
from qmd.evaluate.fixtures import DocumentNames

if TYPE_CHECKING:
    from qmd import KnowledgeBase
    from qmd.evaluate.fixtures import Judgments
    from qmd.values import DocumentInfo

Size = Literal["whole", "ten"]
#: "question", "absent": of a fixture about the database, with and without a page that answers it;
#: "elsewhere": of a fixture about another database, or its pages are not among the ten; "title",
#: "word": of a page of the collection; "no such word": no document holds it, or it is gibberish.
Kind = Literal["question", "title", "word", "elsewhere", "absent", "no such word"]

#: How many titles, words and words that no document holds are asked of each database.
TITLES, WORDS, NO_SUCH_WORDS = 40, 40, 30
#: Documents of a small collection.
TEN = 10
#: Words that technical documentation hardly holds; each database uses those that it lacks.
RARE_WORDS = {
    "en": """marmalade trombone glacier orchid saxophone marathon cathedral pancake penguin volcano
          harvest bakery dentist mortgage sonata walnut lighthouse pottery monsoon cinnamon""",
    "zh": """果酱 长号 冰川 兰花 萨克斯 马拉松 大教堂 煎饼 企鹅 火山 丰收 面包房 牙医 房贷 奏鸣曲
          核桃 灯塔 陶艺 季风 桂皮""",
}
LETTERS = {
    "en": "bcdfghjklmnpqrstvwxzaeiou",
    "zh": "龘犇驫麤鱻灥羴垚骉猋淼焱晶磊鑫蛊魃魍魉黼黻",
}
#: A word of a title: two to six Chinese characters between other signs, or a Latin word.
TITLE_WORD = re.compile(r"[\u4e00-\u9fff]{2,6}(?![\u4e00-\u9fff])|[A-Za-z][A-Za-z0-9_+#]{3,}")


class Question(NamedTuple):
    """
    Attributes:
        relevant: The documents of the collection that answer it, as ``collection/path``.
    """

    kind: Kind
    text: str
    relevant: frozenset[str]


class Source(NamedTuple):
    """A database and the judgments about its documents."""

    name: str
    database: Path
    judgments: tuple[Judgments, ...]
    #: Judged id → ``collection/path``, if the judgments brought their documents.
    ids: Mapping[str, str]


def read_source(argument: str, keep: Path) -> Source:
    """
    Read ``DATABASE=FIXTURE[,FIXTURE…]``, or a ``FIXTURE`` that brings its documents.

    The database of the latter is made below ``keep``, or used again if it is there.
    """
    database, _, names = argument.rpartition("=")
    judgments = tuple(fixtures.read(Path(name)) for name in names.split(","))
    if database:
        return Source(Path(database).stem, Path(database), judgments, {})
    (brought,) = judgments
    if not brought.documents:
        raise SystemExit(f"{names} brings no documents: DATABASE={names} names a database.")
    name = f"{Path(names).stem}-{fixtures.fingerprint(brought.documents)}"
    ids = fixtures.write(brought.documents, keep / name)
    return Source(Path(names).stem, index(keep / f"{name}.sqlite", keep / name), judgments, ids)


def index(database: Path, folder: Path) -> Path:
    """Index and embed a folder, unless the database has it already."""
    from qmd import KnowledgeBase

    with KnowledgeBase.open(database, create=True) as kb:
        if not kb.collections():
            kb.add_collection(folder, name=fixtures.COLLECTION)
        kb.index()
        kb.embed()
    return database


def judged(kb: KnowledgeBase, source: Source, sources: Iterable[Source]) -> list[Question]:
    """The questions of all fixtures, with the documents of this database that answer them."""
    names = DocumentNames(info.file for info in documents(kb))
    questions = []
    for other in sources:
        for entry in (entry for judgments in other.judgments for entry in judgments.questions):
            files = {other.ids.get(name, name) for name in entry.relevant}
            here = {file for file in map(names.document, files) if other is source and file}
            is_absent = other is source and not files
            kind: Kind = "question" if here else "absent" if is_absent else "elsewhere"
            questions.append(Question(kind, entry.text, frozenset(here)))
    return list({question.text: question for question in reversed(questions)}.values())[::-1]


def documents(kb: KnowledgeBase) -> list[DocumentInfo]:
    return kb.documents(limit=1_000_000)


def drawn(seed: str, of: Iterable[str]) -> list[str]:
    """The texts in an order that only depends on the seed."""
    return sorted(set(of), key=lambda text: hashlib.sha256(f"{seed}\n{text}".encode()).digest())


def generated(kb: KnowledgeBase, seed: str, language: str) -> Iterator[Question]:
    """Titles, words of titles, words that no document holds, and gibberish."""
    infos = documents(kb)
    by_title: dict[str, set[str]] = {}
    by_word: dict[str, set[str]] = {}
    for info in infos:
        by_title.setdefault(info.title.casefold(), set()).add(info.file)
        for word in TITLE_WORD.findall(info.title):
            by_word.setdefault(word.casefold(), set()).add(info.file)
    titles = {info.title for info in infos if len(info.title) > 3}
    for title in drawn(seed, titles)[:TITLES]:
        yield Question("title", title, frozenset(by_title[title.casefold()]))
    # Half of the words are in one title only, half in more than one.
    rare, others = (
        drawn(seed, (word for word, files in by_word.items() if (len(files) == 1) is once))
        for once in (True, False)
    )
    for word in rare[: WORDS // 2] + others[: WORDS // 2]:
        # A page may also be titled with a longer word, such as "modules".
        files = {info.file for info in infos if word in info.title.casefold()}
        yield Question("word", word, frozenset(files))
    for word in no_such_words(kb, seed, language):
        yield Question("no such word", word, frozenset())


def no_such_words(kb: KnowledgeBase, seed: str, language: str) -> list[str]:
    """Real words that no document of the database holds, and about as many of random letters."""
    real = (word for word in RARE_WORDS[language].split() if not kb.search(f'"{word}"').hits)
    words = drawn(seed, real)[: NO_SUCH_WORDS // 2]
    for number in range(NO_SUCH_WORDS // 2):
        digest = hashlib.sha256(f"{seed} {number}".encode()).digest()
        letters = LETTERS[language]
        size = 5 + digest[0] % 5 if language == "en" else 2 + digest[0] % 3
        words.append("".join(letters[byte % len(letters)] for byte in digest[1 : size + 1]))
    return words


class Small(NamedTuple):
    """A collection of ten documents; texts by path."""

    texts: Mapping[str, str]
    questions: Sequence[Question]


def small_collections(
    kb: KnowledgeBase, questions: Sequence[Question], seed: str, number: int
) -> Iterator[Small]:
    """
    Draw collections of ten documents, each with the page of one judged question.

    Put to each: this question, the title of its page and of another of the ten; two questions and
    a title whose pages are not there, an absent one.
    """
    infos = {info.file: info for info in documents(kb)}
    answered = {question.text: question for question in questions if question.kind == "question"}
    order = [answered[text] for text in drawn(seed, answered)]
    absent = drawn(seed, (q.text for q in questions if q.kind in ("absent", "elsewhere")))
    for position in range(min(number, len(order))):
        chosen = [min(order[position].relevant)]
        chosen += [f for f in drawn(f"{seed} {position}", infos) if f not in chosen][: TEN - 1]
        others = [order[(position + step) % len(order)] for step in (1, 2, 3)]
        titles = [infos[file].title for file in (*chosen[:2], min(others[2].relevant))]
        inside = {f"{fixtures.COLLECTION}/{infos[file].path}": infos[file] for file in chosen}

        def here(is_answer: Callable[[DocumentInfo], bool]) -> frozenset[str]:
            return frozenset(file for file, info in inside.items() if is_answer(info))  # noqa: B023

        put = []
        for question in (order[position], *others[:2]):
            files = here(lambda info, q=question: info.file in q.relevant)  # type: ignore[misc]
            put.append(Question("question" if files else "elsewhere", question.text, files))
        for title in titles:
            files = here(lambda info, t=title: info.title == t)  # type: ignore[misc]
            put.append(Question("title" if files else "elsewhere", title, files))
        if absent:
            put.append(Question("absent", absent[position % len(absent)], frozenset()))
        yield Small({info.path: kb.get(info.file).text for info in inside.values()}, put)


def load_small(kb: KnowledgeBase, small: Small) -> TemporaryDirectory[str]:
    """
    Make the ten documents the only ones of the database. Returns the folder, to be cleaned up.

    The vectors of texts that the database held before are kept in it, so no model runs.
    """
    for collection in kb.collections():
        kb.remove_collection(collection.name)
    folder = TemporaryDirectory()
    for path, text in small.texts.items():
        file = Path(folder.name, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    kb.add_collection(folder.name, name=fixtures.COLLECTION)
    kb.index()
    kb.embed()
    return folder
