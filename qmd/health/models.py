"""The embedding model, and what expands and reranks: do they answer?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any

from qmd.errors import QmdError
from qmd.models import embedders
from qmd.models.backends import Backends, is_set, open_expander, open_reranker
from qmd.models.embedder_choice import EmbedderChoice
from qmd.models.guard import ModelGuard
from qmd.values import Check

if TYPE_CHECKING:
    from qmd.store import Reader, Store

#: Longer than a query waits, so that "slow" and "not at all" are told apart.
PATIENCE_S = 20.0


def examine(store: Store, choice: EmbedderChoice, backends: Backends) -> Iterator[Check]:
    yield from _embedding(store, choice, backends.settings.budget_s)
    yield from _query_models(backends, choice)


def _embedding(store: Store, choice: EmbedderChoice, budget_s: float) -> Iterator[Check]:
    with store.reading() as reader:
        target, chosen = choice.target_name(reader), reader.models.chosen_name()
        active = reader.models.active()
    try:
        ready = choice.is_available(target)
        fits = active is None or choice.spec().fingerprint == active.fingerprint
    except QmdError as error:
        yield Check("model", "error", str(error), error.hint)
        return
    if choice.custom_embedder is None and embedders.is_endpoint(target):
        yield _ask("model", target, budget_s, lambda: choice.open(target).embed_query("hello"))
    elif ready:
        yield Check("model", "ok", f"{target} is on this machine")
    else:
        yield Check("model", "warning", f"{target} is not on this machine yet.", "qmd embed")
    if choice.custom_embedder is None:
        yield from _setting(choice.configured_model, chosen)
    with store.reading() as reader:
        problem = _problem_of_vectors(reader, target, fits=fits)
    if problem is None:
        yield Check("vectors", "ok", "Every document has its vectors")
    else:
        yield Check("vectors", "warning", *problem)


def _setting(setting: str | None, chosen: str | None) -> Iterator[Check]:
    """A warning where the settings name another model than the one chosen for the database."""
    if setting is not None and chosen is not None and setting != chosen:
        yield Check(
            "model setting",
            "warning",
            f"The settings name {setting}, but {chosen} was chosen for this database, and counts.",
            f"Remove the setting, or change the database: qmd models use {setting}",
        )


def _problem_of_vectors(reader: Reader, target: str, *, fits: bool) -> tuple[str, str] | None:
    """
    What is wrong with the vectors, and the remedy.

    Args:
        target: The model that the index is to have.
        fits: Whether the active model is still what it was when it made the vectors.
    """
    active, coming = reader.models.active(), reader.models.coming()
    if active is not None and not fits:
        message = f"The vectors are those of the model {active.name}, which has changed since."
        return message, "qmd embed"
    if coming is not None and active is not None:
        return (
            f"Those of {active.name} answer until {coming.name} has all of its own:"
            f" {reader.embeddings.count_waiting(coming):,} chunks are missing.",
            "qmd embed, or wait for the process that keeps the index",
        )
    if active is not None and target != active.name:
        return (
            f"The vectors are those of the model {active.name}, and the settings name {target}.",
            f"qmd models use {target}",
        )
    if waiting := reader.upkeep.count_contents_waiting():
        wait = "1 document waits" if waiting == 1 else f"{waiting:,} documents wait"
        return f"{wait} for vectors.", "qmd embed"
    return ("Nothing has been embedded yet.", "qmd embed") if active is None else None


def _query_models(backends: Backends, choice: EmbedderChoice) -> Iterator[Check]:
    """Expander and reranker, each given a small task, as a query would."""
    settings = backends.settings
    if is_set(settings.expander):
        yield _ask(
            "expander",
            str(settings.expander),
            settings.budget_s,
            lambda: open_expander(settings).expand(
                "how is the database backed up", limit=5, timeout_s=PATIENCE_S
            ),
        )
    if is_set(settings.reranker):
        reranker = cache(lambda: open_reranker(settings, choice.cache_dir))
        yield _ask(
            "reranker",
            str(settings.reranker),
            settings.budget_s,
            lambda: reranker().rerank(
                "how is the database backed up",
                ["Copy the file every night.", "Knead the dough for ten minutes."],
                timeout_s=PATIENCE_S,
            ),
            again=True,
        )


def _ask(
    name: str, setting: str, budget_s: float, ask: Callable[[], Any], *, again: bool = False
) -> Check:
    """``again``: the second answer is timed, since the first waits for weights to be read."""
    guard = ModelGuard(setting)
    try:
        if again:
            guard.call(ask, PATIENCE_S)
        began = monotonic()
        guard.call(ask, PATIENCE_S)
    except QmdError as error:
        return Check(name, "warning", f"{setting}: {error}", error.hint)
    seconds = monotonic() - began
    if seconds > budget_s:
        return Check(
            name,
            "warning",
            f"{setting} answers, but takes {seconds:.1f} s, and a query waits for {budget_s:g} s.",
            "A smaller model, or a larger model_budget (QMD_MODEL_BUDGET).",
        )
    return Check(name, "ok", f"{setting} answers in {seconds:.1f} s")
