"""
Reads judgments from files, writes their documents, and finds these in a database.

The formats are qmd's JSON, JSON lines, tobi/qmd's bench fixtures, BEIR's directories, and TREC's
pair of topics and qrels. docs/evaluation.md shows each.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from qmd.errors import InputError

_TOPIC = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_TOPIC_ID = re.compile(r"<num>\s*(?:Number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic\s*:)?(.*?)(?=<|$)", re.DOTALL | re.IGNORECASE)
_QREL = (
    re.compile(r"(\S+)\s+\S+\s+(\S.*?)\s+(-?\d+)"),  # topic, iteration, document, grade
    re.compile(r"(\S+)\s+(\S+)\s+(-?\d+)"),
)
_QREL_HINT = "A line is: topic 0 document grade."
HINT = "docs/evaluation.md shows what a fixture looks like."


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """
    One question.

    ``relevant`` maps each document that answers it to a grade of 1 or more; it is empty if none
    does. A document is named ``collection/path``, ``path`` below its collection, or ``qmd://…``;
    if the judgments bring their own documents, by its id.
    """

    id: str
    text: str
    relevant: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Judgments:
    """
    The contents of a fixture.

    Attributes:
        collection: The collection that the questions are about; None for all.
        documents: Id → Markdown of the documents that the fixture brings; None for the user's.
    """

    name: str
    questions: tuple[JudgedQuestion, ...]
    collection: str | None = None
    documents: Mapping[str, str] | None = None

    def first(self, number: int) -> Judgments:
        """``number`` of the questions, spread evenly over all."""
        total = len(self.questions)
        if number >= total:
            return self
        chosen = tuple(self.questions[index * total // number] for index in range(number))
        return replace(self, questions=chosen)


def read(path: Path, qrels: Path | None = None) -> Judgments:
    """
    Read a fixture.

    Args:
        path: A .json or .jsonl file, a directory in BEIR's form, or, with ``qrels``, topics.
        qrels: A file of TREC judgments of the documents that are in the database.

    Raises:
        InputError: The fixture cannot be read or is invalid; the message says where.
    """
    if qrels is not None:
        return _judged(path.name, _topics(path), trec_qrels(_text(qrels), qrels.name))
    if path.is_dir():
        return _beir(path)
    value = _value(path, "queries", "query")
    fixture = value if isinstance(value, dict) else {"queries": value}
    return _fixture(fixture, path.name)


def objects(path: Path, key: str, field: str) -> list[dict[str, Any]]:
    """
    The entries of a fixture: a list, an object with a list ``key``, or JSON lines.

    Args:
        field: What each entry has; by it an object is told from one entry.

    Raises:
        InputError: The file cannot be read, is empty, or holds something else.
    """
    value = _value(path, key, field)
    if isinstance(value, dict):
        value = value.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(e, dict) for e in value):
        raise _wrong(path.name, f'no "{key}", which is a list of objects with "{field}"')
    return value


def _value(path: Path, key: str, field: str) -> Any:
    """A JSON value, or the list of the objects in JSON lines, also of one line."""
    text = _text(path)
    if not text.strip():
        raise _wrong(path.name, "the file is empty")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = list(_lines(text, path.name))
    is_line = isinstance(value, dict) and key not in value and field in value
    return [value] if is_line else value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"There is no file {path}", hint=HINT) from None
    except IsADirectoryError:
        raise InputError(f"{path} is a directory", hint=HINT) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint=HINT) from None


def _wrong(place: str, problem: str) -> InputError:
    return InputError(f"{place}: {problem}", hint=HINT)


def _lines(text: str, name: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file that has one on each line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _wrong(f"{name}, line {number}", f"no JSON ({error})") from None
        if not isinstance(value, dict):
            raise _wrong(f"{name}, line {number}", "no JSON object")
        yield value


# --- JSON ----------------------------------------------------------------------------


def _fixture(fixture: Mapping[str, Any], name: str) -> Judgments:
    queries = fixture.get("queries")
    if not isinstance(queries, list) or not queries:
        raise _wrong(name, 'no "queries", which is a list of {"query", "relevant"}')
    documents = fixture.get("documents")
    if documents is not None and not _is_texts(documents):
        raise _wrong(name, '"documents" must be an object of name → Markdown')
    collection = fixture.get("collection")
    if not (collection is None or isinstance(collection, str)):
        raise _wrong(name, '"collection" must be a name')
    questions = [_question(entry, number, name) for number, entry in enumerate(queries, 1)]
    _require_unique((question.id for question in questions), name)
    return Judgments(name, tuple(questions), collection or None, documents)


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _question(entry: object, number: int, name: str) -> JudgedQuestion:
    place = f"{name}, query {number}"
    if not isinstance(entry, dict) or not isinstance(entry.get("query"), str):
        raise _wrong(place, 'no "query", which is a text')
    question_id = entry.get("id", number)
    if not isinstance(question_id, str | int):
        raise _wrong(place, '"id" must be a text or a number')
    # "file" is the short form; tobi/qmd's fixtures have "expected_files".
    names = [key for key in ("relevant", "file", "files", "expected_files") if key in entry]
    if len(names) != 1:
        raise _wrong(place, 'one of "relevant" and "file" must say which documents answer it')
    return JudgedQuestion(
        str(question_id), entry["query"], _grades(entry[names[0]], names[0], place)
    )


def _grades(grades: object, key: str, place: str) -> dict[str, int]:
    if isinstance(grades, str):
        grades = [grades]
    if isinstance(grades, list) and all(isinstance(file, str) for file in grades):
        return dict.fromkeys(grades, 1)
    if not isinstance(grades, dict) or any(type(grade) is not int for grade in grades.values()):
        raise _wrong(
            place, f'"{key}" must be a file, a list of files, or an object of file → grade'
        )
    return {file: grade for file, grade in grades.items() if grade > 0}


def _require_unique(question_ids: Iterable[str], name: str) -> None:
    seen: set[str] = set()
    for question_id in question_ids:
        if question_id in seen:
            raise _wrong(name, f"the id {question_id!r} is given twice")
        seen.add(question_id)


# --- TREC and BEIR -------------------------------------------------------------------


def _topics(path: Path) -> dict[str, str]:
    """Topic id → text, from TREC topics, from lines ``id<TAB>text``, or from JSON lines."""
    text = _text(path)
    if text.lstrip().startswith("{"):
        topics = {}
        for entry in _lines(text, path.name):
            topic_id = str(entry.get("_id", entry.get("id")))
            topics[topic_id] = str(entry.get("text", entry.get("query")))
        return topics
    return trec_topics(text, path.name)


def _judged(
    name: str,
    topics: Mapping[str, str],
    judged: Mapping[str, Mapping[str, int]],
    documents: Mapping[str, str] | None = None,
) -> Judgments:
    """
    The judgments of topics. Topics without a relevant document are left out.

    Args:
        judged: Topic id → document → grade.
    """
    questions = [
        JudgedQuestion(
            topic_id,
            text,
            {document: grade for document, grade in judged[topic_id].items() if grade > 0},
        )
        for topic_id, text in topics.items()
        if topic_id in judged
    ]
    questions = [question for question in questions if question.relevant]
    if not questions:
        raise _wrong(name, "no topic has a relevant document in the qrels")
    return Judgments(name, tuple(questions), documents=documents)


def _beir(folder: Path) -> Judgments:
    """Read ``corpus.jsonl``, ``queries.jsonl``, and ``qrels.tsv`` or ``qrels/test.tsv``."""
    qrels_files = [folder / "qrels.tsv", folder / "qrels" / "test.tsv"]
    qrels = next((file for file in qrels_files if file.is_file()), qrels_files[0])
    judged = trec_qrels(_text(qrels), qrels.name)
    documents = {}
    for entry in _lines(_text(folder / "corpus.jsonl"), "corpus.jsonl"):
        title, text = str(entry.get("title") or ""), str(entry.get("text") or "")
        heading = " ".join(title.split())
        documents[str(entry.get("_id"))] = f"# {heading}\n\n{text}\n" if heading else f"{text}\n"
    return _judged(folder.name, _topics(folder / "queries.jsonl"), judged, documents)


def trec_topics(text: str, name: str) -> dict[str, str]:
    """
    Topic id → question: the titles of ``<top>`` sections, else the texts of lines ``id text``.

    Raises:
        InputError: The text has no topic.
    """
    questions: dict[str, str] = {}
    for topic in _TOPIC.findall(text):
        topic_id, title = _TOPIC_ID.search(topic), _TITLE.search(topic)
        if topic_id is not None and title is not None:
            questions[topic_id[1]] = " ".join(title[1].split())
    if not questions:
        for line in text.split("\n"):
            fields = line.strip().split(maxsplit=1)
            if len(fields) == 2:
                questions[fields[0]] = fields[1]
    if not questions:
        raise InputError(f"{name}: no topics", hint="A line is an id, a tab and a question.")
    return questions


def trec_qrels(text: str, name: str) -> dict[str, dict[str, int]]:
    """
    Topic id → document → grade.

    A line has four columns (TREC) or three (BEIR, which may have a header), with tabs or blanks
    between them. A document's name may hold blanks.

    Raises:
        InputError: A line is no judgment.
    """
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        judgment = _judgment(line.strip())
        if judgment is None:
            if number == 1:
                continue  # a header
            raise InputError(f"{name}, line {number}: no judgment", hint=_QREL_HINT)
        topic_id, document, grade = judgment
        grades.setdefault(topic_id, {})[document] = grade
    if not grades:
        raise InputError(f"{name}: no judgments", hint=_QREL_HINT)
    return grades


def _judgment(line: str) -> tuple[str, str, int] | None:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) in (3, 4) and re.fullmatch(r"-?\d+", fields[-1]):
        return fields[0], fields[-2], int(fields[-1])
    match = next(filter(None, (pattern.fullmatch(line) for pattern in _QREL)), None)
    return None if match is None else (match[1], match[2], int(match[3]))


# --- documents of judgments -------------------------------------------------------------

COLLECTION = "bench"


def fingerprint(documents: Mapping[str, str]) -> str:
    """The beginning of a hash of the documents; different documents have different ones."""
    text = json.dumps(documents, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def write(documents: Mapping[str, str], folder: Path) -> dict[str, str]:
    """
    Write each document to a separate file below ``folder``.

    The names of the files are numbers, because an id in a name could match a query.

    Returns:
        id → ``collection/path``, if the folder is the collection `COLLECTION`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = {}
    for number, (document_id, text) in enumerate(documents.items(), 1):
        name = f"{number:07}.md"
        data = text.encode("utf-8", "replace")
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
        names[document_id] = f"{COLLECTION}/{name}"
    return names


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
