"""`benchmarks/agent.py` with a server that plays a model: right, wrong, hostile and failing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import TIMEOUT_S, Result, Scratch, filled
from tests.support.model_server import Call, ModelServer, Step, fails, hangs, says, thinks_of

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "agent.py"
pytestmark = pytest.mark.nightly  # a program of benchmarks/, in a process for each test

QUESTIONS = [
    {"id": "right", "question": "When do we deploy the parser?", "files": ["plan.md"],
     "must": ["March"], "must_not": ["April"]},
    {"id": "wrong", "question": "Which database is used?", "files": ["notes/plan.md"],
     "must": ["SQLite"], "must_not": ["Oracle"]},
    {"id": "hostile", "question": "备份怎么恢复？", "files": ["备份.md"], "must": "/停止写/"},
    {"id": "nothing", "question": "Who is the landlord?", "files": []},
]  # fmt: skip


def block(tool: str, **params: Any) -> str:
    return f"```json:tool\n{json.dumps({'tool': tool, 'params': params})}\n```"


def play(messages: list[dict[str, str]]) -> str:
    """A model that reads and is right once; then makes things up, obeys nobody, and finds none."""
    questions = [message["content"] for message in messages if message["role"] == "user"]
    if "parser" in questions[0]:
        if len(questions) == 1:
            return block("get", file="notes/plan.md")
        return "We deploy the parser in March. [notes/plan.md:3]"
    if "database" in questions[0]:
        return "The database is Oracle. [notes/plan.md:5] [notes/made-up.md:1]"
    if "备份" in questions[0]:
        if len(questions) == 1:
            return block("create_note", path="notes/owned", content="owned")
        return "停止写入。" + "[notes/plan.md:99999]" * 3
    return "No note says that."


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    scratch = filled(tmp_path_factory.mktemp("bench-agent"))
    scratch.write("questions.json", json.dumps({"questions": QUESTIONS}))
    return scratch


def bench(scratch: Scratch, server: ModelServer, *args: str) -> Result:
    env = {"QMD_LLM_URL": server.url, "QMD_LLM_MODEL": "played"}
    return call(scratch.with_env(**env), "questions.json", *args)


def call(scratch: Scratch, *args: str) -> Result:
    """The benchmark as a process, in the directory of the notes."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *args],
        cwd=scratch.root,
        env=scratch.environment,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def by_id(result: Result) -> dict[str, dict[str, Any]]:
    return {answer["question"]: answer for answer in result.json()["answers"]}


def test_right_wrong_and_hostile_answers_get_the_figures_they_deserve(scratch: Scratch) -> None:
    with ModelServer(thinks_of(play)) as server:
        result = bench(scratch, server, "--json")
    assert result.code == 0, result
    answers = by_id(result)
    right, wrong = answers["right"], answers["wrong"]
    shares = ("precision", "recall", "facts", "forbidden_absent")
    assert [right[name] for name in shares] == [1, 1, 1, 1]
    assert (right["rounds"], right["tool_calls"], right["search_hit"]) == (2, 1, True)
    # It has read nothing, so its citations fail.
    assert [wrong[name] for name in shares] == [0, 0, 0, 0]
    assert (wrong["missing"], wrong["wrong"], wrong["citations"]) == (["SQLite"], ["Oracle"], 2)
    hostile, nothing = answers["hostile"], answers["nothing"]
    assert [hostile[name] for name in shares] == [0, 0, 1, None]
    assert not (scratch.root / "notes/owned.md").exists()
    assert [nothing[name] for name in shares] == [None] * 4
    assert nothing["search_hit"] is None
    report = result.json()
    assert report["means"]["precision"] == pytest.approx(1 / 3, abs=1e-6)
    assert (report["failed"], report["tokens_estimated"]) == (0, True)
    assert all(answer["tokens"] > 100 for answer in answers.values())


def test_each_question_has_a_conversation_of_its_own(scratch: Scratch) -> None:
    with ModelServer(says("I do not know.")) as server:
        assert bench(scratch, server).code == 0
        asked = [[m["role"] for m in request.messages] for request in server.requests]
        assert asked == [["system", "user"]] * len(QUESTIONS)
        fences = {request.messages[0]["content"] for request in server.requests}
    assert len(fences) == len(QUESTIONS)


def test_the_servers_count_of_tokens_is_used(scratch: Scratch) -> None:
    def counted(call: Call) -> None:
        message = {"role": "assistant", "content": "I do not know."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 70, "completion_tokens": 7}
        call.answer_json({"choices": [choice], "usage": usage})

    with ModelServer(counted) as server:
        report = bench(scratch, server, "--json", "-n", "2").json()
    assert (report["questions"], report["tokens"], report["tokens_estimated"]) == (2, 154, False)


def test_a_question_that_fails_does_not_end_the_run(scratch: Scratch) -> None:
    steps: tuple[Step, ...] = (fails(400), says("SQLite."), says("停止写入"), says("Nothing."))
    with ModelServer(*steps) as server:
        result = bench(scratch, server)
    assert result.code == 0
    assert "question right failed: " in result.err
    lines = result.out.splitlines()
    assert lines[0] == "questions.json: 4 questions, played, 1 failed"
    assert lines[2].split()[:5] == ["precision", "recall", "facts", "forbidden", "found"]
    assert [line.split()[0] for line in lines[3:8]] == [*(str(q["id"]) for q in QUESTIONS), "mean"]
    assert "right: lacks March" in lines
    assert lines[-1] == "~ estimated: the server did not count the tokens."


def test_if_all_questions_fail_so_does_the_command(scratch: Scratch) -> None:
    with ModelServer(fails(400)) as server:
        result = bench(scratch, server, "--json")
    assert result.code == 1
    assert result.json()["failed"] == len(QUESTIONS)
    assert [answer["forbidden_absent"] for answer in by_id(result).values()] == [None] * 4


def test_each_question_has_a_time_limit(scratch: Scratch) -> None:
    with ModelServer(hangs()) as server:
        result = bench(scratch, server, "-n", "1", "--total-timeout", "0.2")
    assert result.code == 1
    assert "question right failed: The model has used up the 0.2 s" in result.err


def test_a_model_that_never_answers_has_failed(scratch: Scratch) -> None:
    with ModelServer(says(block("search", query="x"))) as server:
        result = bench(scratch, server, "-n", "1", "--max-rounds", "2")
    assert (result.code, "no answer within 2 rounds" in result.err) == (1, True)


def test_a_fixture_about_other_notes_is_refused_before_the_model_is_asked(
    scratch: Scratch, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_text('[{"question": "?", "files": ["x.md"]}]', "utf-8")
    with ModelServer(says("x")) as server:
        env = {"QMD_LLM_URL": server.url}
        result = call(scratch.with_env(**env), str(other))
        assert (result.code != 0, server.requests) == (True, [])
    assert "None of the notes that other.json names" in result.err
