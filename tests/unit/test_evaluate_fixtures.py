"""Judgments are read from every form people keep them in, and what is wrong is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qmd.errors import InputError
from qmd.evaluate import fixtures
from qmd.evaluate.fixtures import DocumentNames, JudgedQuestion, Judgments


def given(tmp_path: Path, content: Any, name: str = "fixture.json") -> Path:
    path = tmp_path / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_whole_form_names_everything(tmp_path: Path) -> None:
    fixture = {
        "collection": "notes",
        "queries": [
            {"id": "q1", "query": "boats", "relevant": {"notes/a.md": 2, "b.md": 1, "c.md": 0}},
            {"query": "nothing", "relevant": {}},
        ],
        "documents": {"a": "# A"},
    }
    assert fixtures.read(given(tmp_path, fixture)) == Judgments(
        "fixture.json",
        (
            JudgedQuestion("q1", "boats", {"notes/a.md": 2, "b.md": 1}),
            JudgedQuestion("2", "nothing", {}),
        ),
        "notes",
        {"a": "# A"},
    )


@pytest.mark.parametrize(
    ("answer", "relevant"),
    [
        ({"file": "a.md"}, {"a.md": 1}),
        ({"files": ["a.md", "b.md"]}, {"a.md": 1, "b.md": 1}),
        ({"relevant": ["a.md"]}, {"a.md": 1}),
        ({"expected_files": ["a.md"], "expected_in_top_k": 3, "type": "exact"}, {"a.md": 1}),
    ],
)
def test_each_short_form_names_what_is_relevant(
    tmp_path: Path, answer: dict[str, Any], relevant: dict[str, int]
) -> None:
    (question,) = fixtures.read(given(tmp_path, [{"query": "q", **answer}])).questions
    assert question == JudgedQuestion("1", "q", relevant)


def test_json_lines_of_one_or_many_lines(tmp_path: Path) -> None:
    line = '{"query": "电脑关机", "file": "a b.md"}'
    one = fixtures.read(given(tmp_path, line, "one.jsonl")).questions
    many = fixtures.read(given(tmp_path, f"\ufeff{line}\n\n{line}\r\n", "many.jsonl")).questions
    assert one == (JudgedQuestion("1", "电脑关机", {"a b.md": 1}),)
    assert [each.id for each in many] == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        ("[]", 'no "queries"'),
        ('{"queries": 3}', 'no "queries"'),
        ("3", 'no "queries"'),
        ("{not json", "line 1: no JSON"),
        ('{"query": "a", "file": "b"}\n[3]', "line 2: no JSON object"),
        ('[{"file": "a.md"}]', 'query 1: no "query"'),
        ('["q"]', 'query 1: no "query"'),
        ('[{"query": "q"}]', 'one of "relevant" and "file"'),
        ('[{"query": "q", "file": "a", "relevant": {}}]', 'one of "relevant" and "file"'),
        ('[{"query": "q", "file": 3}]', '"file" must be a file'),
        ('[{"query": "q", "relevant": {"a": "1"}}]', '"relevant" must be'),
        ('[{"query": "q", "relevant": {"a": true}}]', '"relevant" must be'),
        ('[{"query": "q", "id": [], "file": "a"}]', '"id" must be'),
        ('[{"query": "q", "id": 2, "file": "a"}, {"query": "q", "file": "b"}]', "given twice"),
        ('{"queries": [{"query": "q", "file": "a"}], "documents": {"a": 1}}', '"documents"'),
        ('{"queries": [{"query": "q", "file": "a"}], "collection": 1}', '"collection"'),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(InputError, match=r"^fixture\.json") as raised:
        fixtures.read(given(tmp_path, content))
    assert said in str(raised.value)
    assert raised.value.hint is not None


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        fixtures.read(tmp_path / "missing.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        fixtures.read(tmp_path / "binary.json")
    with pytest.raises(InputError, match="is a directory"):
        fixtures.read(tmp_path, tmp_path)


def beir(folder: Path, qrels: str, place: str = "qrels.tsv") -> Path:
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_text(qrels, encoding="utf-8")
    documents = [
        {"_id": "d1", "title": "One\nline", "text": "first"},
        {"_id": "d2", "title": "", "text": "second"},
    ]
    queries = [{"_id": str(n), "text": f"question {n}"} for n in (1, 2, 3)]
    for name, lines in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        text = "".join(json.dumps(each) + "\n" for each in lines)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("place", ["qrels.tsv", "qrels/test.tsv"])
def test_a_directory_in_the_form_of_beir(tmp_path: Path, place: str) -> None:
    folder = beir(tmp_path / "set", "query-id\tcorpus-id\tscore\n1\td1\t2\n2\td2\t0\n", place)
    assert fixtures.read(folder) == Judgments(
        "set",
        (JudgedQuestion("1", "question 1", {"d1": 2}),),
        documents={"d1": "# One line\n\nfirst\n", "d2": "second\n"},
    )


TOPICS = """<top>
<num> Number: 301
<title> International
Organized Crime
<desc> Description: Identify.
</top>
<top><num>302</num><title>海盗</title></top>
"""


@pytest.mark.parametrize("topics", [TOPICS, "301\tInternational Organized Crime\n302 海盗\n"])
def test_topics_and_qrels_of_trec(tmp_path: Path, topics: str) -> None:
    qrels = given(tmp_path, "301 0 notes/a b.md 1\n301 Q0 notes/c.md 0\n302 0 d.md 2\n", "qrels")
    assert fixtures.read(given(tmp_path, topics, "topics"), qrels).questions == (
        JudgedQuestion("301", "International Organized Crime", {"notes/a b.md": 1}),
        JudgedQuestion("302", "海盗", {"d.md": 2}),
    )


def test_topics_as_json_lines(tmp_path: Path) -> None:
    topics = given(tmp_path, '{"_id": "a", "text": "q"}\n{"id": 2, "query": "r"}\n', "topics")
    qrels = given(tmp_path, "a\td.md\t1\n2\te.md\t1\n", "qrels")
    assert [each.text for each in fixtures.read(topics, qrels).questions] == ["q", "r"]


@pytest.mark.parametrize("line", ["1 0 d 1", "1\t0\td\t1", "1\td\t1", "1 d 1", " 1  0  d  1 \r"])
def test_the_columns_of_qrels(line: str) -> None:
    assert fixtures.trec_qrels(line, "qrels") == {"1": {"d": 1}}


@pytest.mark.parametrize(
    ("text", "said"), [("", "no judgments"), ("1 0 d 1\noops\n", "line 2: no judgment")]
)
def test_qrels_that_are_none(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fixtures.trec_qrels(text, "qrels")


def test_topics_that_are_none_and_topics_that_nobody_judged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no topics"):
        fixtures.trec_topics("word\n", "topics")
    qrels = given(tmp_path, "9 0 d 1\n", "qrels")
    with pytest.raises(InputError, match="no topic has a relevant document"):
        fixtures.read(given(tmp_path, "1\tq\n", "topics"), qrels)


def test_some_of_the_questions_are_spread_over_all() -> None:
    questions = tuple(JudgedQuestion(str(n), "q", {}) for n in range(10))
    judgments = Judgments("j", questions)
    assert [each.id for each in judgments.first(3).questions] == ["0", "3", "6"]
    assert judgments.first(10) is judgments
    assert judgments.first(99) is judgments


# --- names ---------------------------------------------------------------------------

FILES = ["notes/a.md", "notes/2025/a.md", "notes/2025/数 据.md", "work/plan.md", "old/notes/a.md"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("notes/a.md", "notes/a.md"),  # collection and path win over a path in a collection
        ("2025/a.md", "notes/2025/a.md"),
        ("plan.md", "work/plan.md"),
        ("./plan.md", "work/plan.md"),
        ("数 据.md", "notes/2025/数 据.md"),
        ("qmd://notes/2025/%E6%95%B0%20%E6%8D%AE.md", "notes/2025/数 据.md"),
        ("a.md", "notes/a.md"),  # the only one that lies directly in a collection
        ("none.md", None),
        ("025/a.md", None),
        ("", None),
    ],
)
def test_a_document_is_known_by_the_names_people_use(name: str, file: str | None) -> None:
    assert DocumentNames(FILES).document(name) == file


def test_a_name_of_two_documents_is_no_name() -> None:
    assert DocumentNames(["a/x.md", "b/x.md"]).document("x.md") is None


def test_two_names_of_one_document_are_one_judgment_with_the_higher_grade() -> None:
    names = DocumentNames(FILES)
    assert names.resolve({"plan.md": 1, "work/plan.md": 3, "gone.md": 2}) == (
        {"work/plan.md": 3, "gone.md": 2},
        ["gone.md"],
    )
