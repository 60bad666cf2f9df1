"""Passages are scored in order of need, for as long as the time allows."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd import KnowledgeBase
from qmd.errors import InferenceError, TransientInferenceError
from qmd.inference import onnx_folder
from qmd.inference.assistant import ChatEndpoint, LlmReranker, RerankEndpoint
from qmd.inference.crossencoder import CrossEncoder
from qmd.inference.llm import LlmSettings
from qmd.inference.llm.endpoint import ModelEndpoint
from qmd.inference.onnx_model import OnnxPairModel
from qmd.inference.replies import cut, score_in_time
from qmd.models.guard import Budget, CarefulReranker, Guarded, ModelGuard
from qmd.settings import BackendSettings, Settings
from qmd.values import SearchReply
from tests.support.corpus import Corpus
from tests.support.model_server import Call, ModelServer, says
from tests.support.tiny_onnx import write_cross_encoder

AMPLE_S = 60.0


class Clock:
    """Time that passes only when somebody works."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Worker:
    """Scores a passage in the seconds that stand in it, and notes the sizes of the calls."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sizes: list[int] = []

    def __call__(self, passages: Sequence[str], left_s: float) -> list[float]:
        self.sizes.append(len(passages))
        self.clock.now_s += sum(map(float, passages))
        return [0.5] * len(passages)


def scored(seconds: Sequence[float], timeout_s: float, first: int, most: int) -> tuple[int, Worker]:
    """How many passages have a score, and who scored them."""
    clock = Clock()
    worker = Worker(clock)
    passages = [str(each) for each in seconds]
    scores = score_in_time("it", worker, passages, timeout_s, first=first, most=most, clock=clock)
    count = sum(score is not None for score in scores)
    assert scores == [0.5] * count + [None] * (len(seconds) - count)  # the first ones, in order
    return count, worker


def test_one_at_a_time_it_stops_before_the_pair_that_would_end_too_late() -> None:
    count, worker = scored([0.25] * 100, 3.0, 1, 1)
    assert (count, worker.clock.now_s) == (11, 2.75)  # another could end at 3.06 s


def test_the_first_call_tells_how_many_fit_into_the_next() -> None:
    _, quick = scored([0.01] * 100, 3.0, 4, 100)
    assert quick.sizes == [4, 96]
    count, slow = scored([0.25] * 100, 3.0, 4, 100)
    assert slow.sizes == [4, 4, 2, 1]
    assert count == 11


SECONDS = st.lists(st.floats(0.001, 0.5), min_size=1, max_size=60)


@given(SECONDS, st.floats(0.6, 5), st.integers(1, 100))
def test_what_is_scored_is_scored_once_in_calls_of_a_limited_size(
    seconds: list[float], timeout_s: float, most: int
) -> None:
    count, worker = scored(seconds, timeout_s, 1, most)
    assert 1 <= count == sum(worker.sizes)
    assert max(worker.sizes) <= most
    before_last_s = sum(seconds[: count - worker.sizes[-1]])
    assert before_last_s <= timeout_s + 1e-9  # no call begins after the end
    if count < len(seconds):
        assert worker.clock.now_s + 1.25 * max(seconds[:count]) >= timeout_s - 1e-9


@given(SECONDS, st.floats(0.6, 5))
def test_a_call_of_one_passage_after_the_first_never_ends_late_by_more_than_it_grew(
    seconds: list[float], timeout_s: float
) -> None:
    count, worker = scored(seconds, timeout_s, 1, 1)
    growth = max(0.0, seconds[count - 1] - 1.25 * max(seconds[: count - 1], default=0.0))
    assert worker.clock.now_s <= max(timeout_s, seconds[0]) + growth + 1e-9
    if sum(seconds) + 1.25 * max(seconds) <= timeout_s:
        assert count == len(seconds)


def test_what_is_scored_when_the_time_is_up_counts() -> None:
    clock = Clock()

    def score(passages: Sequence[str], left_s: float) -> list[float]:
        if clock.now_s > 0:
            clock.now_s += left_s
            raise TransientInferenceError("not answered in time")
        clock.now_s += 1
        return [0.5] * len(passages)

    scores = score_in_time("it", score, ["p"] * 3, 5.0, first=2, most=9, clock=clock)
    assert scores == [0.5, 0.5, None]


def test_what_breaks_while_there_is_time_is_told() -> None:
    clock = Clock()

    def score(passages: Sequence[str], left_s: float) -> list[float]:
        if clock.now_s > 0:
            raise TransientInferenceError("connection refused")
        clock.now_s += 1
        return [0.5] * len(passages)

    with pytest.raises(TransientInferenceError, match="connection refused"):
        score_in_time("it", score, ["p"] * 3, 5.0, first=2, most=9, clock=clock)


def test_without_any_time_nothing_is_asked() -> None:
    worker = Worker(Clock())
    with pytest.raises(TransientInferenceError, match="it has scored none of 2 passages") as caught:
        score_in_time("it", worker, ["1", "1"], 0.0, first=1, most=1, clock=worker.clock)
    assert "model_budget" in (caught.value.hint or "")
    assert worker.sizes == []
    assert score_in_time("it", worker, [], 0.0, first=1, most=1, clock=worker.clock) == []


@given(st.text(max_size=60), st.integers(1, 20))
def test_a_cut_text_is_a_beginning_of_about_so_many_tokens(text: str, tokens: int) -> None:
    beginning = cut(text, tokens)
    assert text.startswith(beginning)
    assert len(beginning) >= min(len(text), tokens)
    assert sum(1.0 if each >= "\u2e80" else 0.25 for each in beginning) <= max(
        tokens, 0.25 * tokens
    )


# --- cross-encoders ------------------------------------------------------------------


class Slow:
    """A real model in a folder, and a clock that says that each pair has taken ``pair_s``."""

    def __init__(self, folder: Path, clock: Clock, pair_s: float) -> None:
        self._model = OnnxPairModel(onnx_folder.read(str(folder)))
        self._clock, self._pair_s = clock, pair_s
        self.lengths: list[int] = []

    def logit(self, query: str, passage: str) -> float:
        self._clock.now_s += self._pair_s
        self.lengths.append(len(passage))
        return self._model.logit(query, passage)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cross_encoder(tmp_path / "judge", {"good": 2.0, "bad": -2.0})


def test_a_slow_cross_encoder_scores_the_best_candidates(folder: Path) -> None:
    clock = Clock()
    model = CrossEncoder("slow", lambda: Slow(folder, clock, 0.5), cores=1, clock=clock)
    scores = model.rerank("which", ["a good boat", "a bad boat"] * 50, timeout_s=5.0)
    assert scores[:2] == pytest.approx([0.8808, 0.1192], abs=1e-4)
    assert [score is not None for score in scores] == [True] * 9 + [False] * 91
    assert clock.now_s == 4.5


def test_pairs_that_run_at_once_keep_their_places(folder: Path) -> None:
    passages = [" ".join(["good"] * (n % 5) + ["bad"] * (n % 3)) for n in range(40)]
    scores = [
        CrossEncoder(
            "it", lambda: OnnxPairModel(onnx_folder.read(str(folder))), cores=cores
        ).rerank("which", passages, timeout_s=AMPLE_S)
        for cores in (1, 3)
    ]
    assert scores[0] == scores[1]


def test_a_pair_that_fails_fails_all(folder: Path) -> None:
    class Fails(Slow):
        def logit(self, query: str, passage: str) -> float:
            return float("nan") if "bad" in passage else super().logit(query, passage)

    clock = Clock()
    model = CrossEncoder("it", lambda: Fails(folder, clock, 0.1), cores=2, clock=clock)
    with pytest.raises(InferenceError, match="it gave nan for a score"):
        model.rerank("which", ["a good boat", "a bad boat"], timeout_s=AMPLE_S)


def test_a_pair_that_takes_too_long_loses_no_others() -> None:
    go = threading.Event()

    class Stuck:
        def logit(self, query: str, passage: str) -> float:
            assert passage != "stuck" or go.wait(AMPLE_S)
            return 0.0

    model = CrossEncoder("it", Stuck, cores=1)
    assert model.rerank("q", ["one"], timeout_s=AMPLE_S) == [0.5]
    assert model.rerank("q", ["one", "stuck", "two"], timeout_s=1.0) == [0.5, None, None]
    with pytest.raises(TransientInferenceError, match=r"it has not scored a passage within 0\.1 s"):
        model.rerank("q", ["stuck"], timeout_s=0.1)
    go.set()


ENDS_WHILE_IT_SCORES = """
import hashlib
import threading
from qmd.errors import TransientInferenceError
from qmd.inference.crossencoder import CrossEncoder
from qmd.models.guard import ModelGuard

is_at_its_end = threading.Event()

class Model:
    def logit(self, query, passage):
        if passage == "long":
            is_at_its_end.wait()
            hashlib.pbkdf2_hmac("sha256", b"", b"", 500_000)
            print("scored")
        return 0.0

model = CrossEncoder("it", Model, cores=1)
for passage, timeout_s in (("short", 60.0), ("long", 0.1)):
    try:  # on a daemon thread
        ModelGuard("it").call(lambda: model.rerank("q", [passage], timeout_s=timeout_s), 60.0)
    except TransientInferenceError:
        print("too late")
is_at_its_end.set()
"""


def test_the_process_waits_for_native_code() -> None:
    """Python cannot end a thread inside C++; it aborts the process."""
    command = [sys.executable, "-c", ENDS_WHILE_IT_SCORES]
    printed = subprocess.check_output(command, text=True, timeout=AMPLE_S)
    assert printed == "too late\nscored\n"


def test_a_long_passage_is_cut(folder: Path) -> None:
    clock = Clock()
    slow = Slow(folder, clock, 0.1)
    CrossEncoder("slow", lambda: slow, cores=1, clock=clock).rerank(
        "q", ["word " * 2000, "数据库" * 2000, "a good boat"], timeout_s=AMPLE_S
    )
    assert slow.lengths == [2048, 512, 11]


# --- servers -------------------------------------------------------------------------


def test_a_server_on_this_machine_gets_few_passages_first() -> None:
    def step(call: Call) -> None:
        rows = [
            {"index": index, "relevance_score": float(text)}
            for index, text in enumerate(call.request.body["documents"])
        ]
        call.answer_json({"results": rows})

    passages = [str(number / 100) for number in range(30)]
    with ModelServer(step) as server:
        judge = RerankEndpoint(ModelEndpoint(LlmSettings(url=server.url)), "m")
        scores = judge.rerank("q", passages, timeout_s=AMPLE_S)
    assert scores == [float(passage) for passage in passages]
    assert [len(request.body["documents"]) for request in server.requests] == [4, 26]


def test_logits_that_come_late_change_how_all_are_read() -> None:
    def step(call: Call) -> None:
        texts = call.request.body["documents"]
        rows = [{"index": n, "relevance_score": float(text)} for n, text in enumerate(texts)]
        call.answer_json(rows)

    with ModelServer(step) as server:
        judge = RerankEndpoint(ModelEndpoint(LlmSettings(url=server.url)), "m")
        scores = judge.rerank("q", ["0.5", "0.5", "0.5", "0.5", "-3"], timeout_s=AMPLE_S)
    assert scores == pytest.approx([0.6225] * 4 + [0.0474], abs=1e-4)


def test_marks_of_a_language_model_come_in_parts_too() -> None:
    with ModelServer(says("[1, 2, 3, 4]"), says("[5, 6]")) as server:
        judge = LlmReranker(ChatEndpoint(ModelEndpoint(LlmSettings(url=server.url)), "m"))
        scores = judge.rerank("q", ["p"] * 6, timeout_s=AMPLE_S)
    assert scores == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


# --- a query -------------------------------------------------------------------------


class Judge:
    """Scores the first ``reached`` passages; notes what it is asked for."""

    name = "judge"

    def __init__(self, reached: int) -> None:
        self.reached = reached
        self.asked: list[Sequence[str]] = []

    def rerank(
        self, query: str, passages: Sequence[str], *, timeout_s: float
    ) -> Sequence[float | None]:
        self.asked.append(passages)
        count = min(self.reached, len(passages))
        return [0.9] * count + [None] * (len(passages) - count)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    corpus = Corpus(tmp_path)
    corpus.fill({f"{n}.md": f"# Page {n}\n\n{'red boat ' * n}sails\n" for n in range(1, 9)})
    corpus.kb.embed()
    return corpus


def asking(corpus: Corpus, judge: Judge) -> SearchReply:
    settings = Settings(
        embedder=corpus.embedder, reranker=judge, backends=BackendSettings(budget_s=5.0)
    )
    return KnowledgeBase(corpus.store, settings).query("red boat", explain=True)


def test_what_was_not_reached_stays_behind_in_the_fused_order(corpus: Corpus) -> None:
    fused = [hit.path for hit in corpus.kb.query("red boat", rerank=False).hits]
    judge = Judge(3)
    reply = asking(corpus, judge)
    assert [hit.path for hit in reply.hits] == fused
    assert reply.degraded == (
        "Reranked 3 of 8 candidates: a query waits 5 s for models (model_budget)."
    )
    read = [passage.splitlines()[0] for passage in judge.asked[0]]
    assert read == [f"Page {path[0]}" for path in fused]  # the best first
    marks = [(hit.explain or {})["rerank"] for hit in reply.hits]
    assert marks == [0.9] * 3 + [None] * 5


def test_with_all_of_them_reached_nothing_is_missing(corpus: Corpus) -> None:
    assert asking(corpus, Judge(8)).degraded is None


def test_a_reranker_that_reaches_none_has_failed(corpus: Corpus) -> None:
    reply = asking(corpus, Judge(0))
    assert reply.degraded == "Not reranked: No passage has a score."
    assert reply.hits[0].path == corpus.kb.query("red boat").hits[0].path


class Remembers:
    """A `Memory` in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}

    def recall(self, kind: str, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self.values[key] for key in keys if key in self.values}

    def keep(self, kind: str, model: str, values: dict[bytes, bytes]) -> None:
        self.values |= values


def test_asked_again_it_goes_on_where_it_stopped() -> None:
    judge, memory = Judge(2), Remembers()
    passages = ["one", "two", "three", "four", "five"]

    def ask() -> Sequence[float | None]:
        guarded = Guarded(ModelGuard("it"), Budget(AMPLE_S), memory=memory, model="m")  # type: ignore[arg-type]
        careful = CarefulReranker(judge, guarded)
        return careful.rerank("q", passages, timeout_s=AMPLE_S)

    assert ask() == [0.9, 0.9, None, None, None]
    assert ask() == [0.9, 0.9, 0.9, 0.9, None]
    assert ask() == [0.9] * 5
    assert ask() == [0.9] * 5
    assert judge.asked == [passages, passages[2:], passages[4:]]


def test_scores_that_come_too_late_serve_the_next_question() -> None:
    go, kept = threading.Event(), threading.Event()

    class Late(Judge):
        def rerank(
            self, query: str, passages: Sequence[str], *, timeout_s: float
        ) -> Sequence[float | None]:
            assert go.wait(AMPLE_S)
            return super().rerank(query, passages, timeout_s=timeout_s)

    class Tells(Remembers):
        def keep(self, kind: str, model: str, values: dict[bytes, bytes]) -> None:
            super().keep(kind, model, values)
            kept.set()

    judge, memory, guard = Late(9), Tells(), ModelGuard("it")

    def ask(budget_s: float) -> Sequence[float | None]:
        guarded = Guarded(guard, Budget(budget_s), memory=memory, model="m")  # type: ignore[arg-type]
        careful = CarefulReranker(judge, guarded)
        return careful.rerank("q", ["one", "two"], timeout_s=AMPLE_S)

    with pytest.raises(TransientInferenceError, match="has not answered within"):
        ask(0.01)
    go.set()
    assert kept.wait(AMPLE_S)
    assert ask(0.01) == [0.9, 0.9]
    assert len(judge.asked) == 1


def test_a_cross_encoder_is_loaded_while_documents_are_retrieved(folder: Path) -> None:
    loads: list[int] = []
    loaded = threading.Event()

    def load() -> OnnxPairModel:
        loads.append(1)
        model = OnnxPairModel(onnx_folder.read(str(folder)))
        loaded.set()
        return model

    encoder = CrossEncoder("it", load)
    encoder.prepare()
    assert loaded.wait(AMPLE_S)
    encoder.prepare()
    assert len(encoder.rerank("q", ["good"], timeout_s=AMPLE_S)) == 1
    assert loads == [1]


@pytest.mark.parametrize("error", [InferenceError("broken"), TransientInferenceError("away")])
def test_a_reply_says_why_nothing_was_reranked(corpus: Corpus, error: InferenceError) -> None:
    class Fails(Judge):
        def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> list[float]:
            raise error

    assert asking(corpus, Fails(0)).degraded == f"Not reranked: {error}"
