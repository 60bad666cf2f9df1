"""The embedding model, and what expands and reranks: do they answer?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any

from qmd.errors import QmdError
from qmd.inference.protocols import Reranker
from qmd.models import embedders
from qmd.models.backends import Backends, is_set, open_expander, open_reranker
from qmd.models.embedder_choice import EmbedderChoice
from qmd.models.guard import ModelGuard
from qmd.values import Check

if TYPE_CHECKING:
    from qmd.store import Store

#: Longer than a query waits, so that "slow" and "not at all" are told apart.
PATIENCE_S = 20.0


def examine(store: Store, choice: EmbedderChoice, backends: Backends) -> Iterator[Check]:
    yield from _embedding(store, choice, backends.settings.budget_s)
    yield from _asked(backends, choice)


def _embedding(store: Store, choice: EmbedderChoice, budget_s: float) -> Iterator[Check]:
    with store.reading() as reader:
        active, coming = reader.models.active(), reader.models.coming()
        wanted, chosen = choice.wanted(reader), reader.models.chosen_name()
        missing = 0 if coming is None else reader.embeddings.count_waiting(coming)
        waiting = reader.upkeep.count_contents_waiting()
        stray = reader.upkeep.has_misplaced_vectors()
    try:
        ready = choice.available(wanted)
        fits = active is None or choice.spec().fingerprint == active.fingerprint
    except QmdError as error:
        yield Check("model", "error", str(error), error.hint)
        return
    if choice.given is None and embedders.is_endpoint(wanted):
        yield _ask("model", wanted, budget_s, lambda: choice.open(wanted).embed_query("hello"))
    elif ready:
        yield Check("model", "ok", f"{wanted} is on this machine")
    else:
        yield Check("model", "warning", f"{wanted} is not on this machine yet.", "qmd embed")
    setting = choice.model
    if chosen is not None and setting is not None and choice.given is None and setting != chosen:
        yield Check(
            "model setting",
            "warning",
            f"The settings name {setting}, but {chosen} was chosen for this database, and counts.",
            f"Remove the setting, or change the database: qmd models use {setting}",
        )
    if stray:
        yield Check(
            "vectors",
            "warning",
            "A process of version 1.0.0 has written vectors where this version does not look.",
            "End servers, 'qmd watch' and MCP clients of that version, then run: qmd embed",
        )
    elif active is not None and not fits:
        yield Check(
            "vectors",
            "warning",
            f"The vectors are those of the model {active.name}, which has changed since.",
            "qmd embed",
        )
    elif coming is not None and active is not None:
        yield Check(
            "vectors",
            "warning",
            f"Those of {active.name} answer until {coming.name} has all of its own: {missing:,}"
            " chunks are missing.",
            "qmd embed, or wait for the process that keeps the index",
        )
    elif active is not None and wanted != active.name:
        yield Check(
            "vectors",
            "warning",
            f"The vectors are those of the model {active.name}, and the settings name {wanted}.",
            f"qmd models use {wanted}",
        )
    elif waiting:
        yield Check("vectors", "warning", f"{waiting} documents wait for vectors.", "qmd embed")
    elif active is None:
        yield Check("vectors", "warning", "Nothing has been embedded yet.", "qmd embed")
    else:
        yield Check("vectors", "ok", "Every document has its vectors")


def _asked(backends: Backends, choice: EmbedderChoice) -> Iterator[Check]:
    """Each is asked something small, as a query would."""
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
        opened: list[Reranker] = []

        def rerank() -> Any:
            if not opened:
                opened.append(open_reranker(settings, choice.cache_dir))
            return opened[0].rerank(
                "how is the database backed up",
                ["Copy the file every night.", "Knead the dough for ten minutes."],
                timeout_s=PATIENCE_S,
            )

        yield _ask("reranker", str(settings.reranker), settings.budget_s, rerank, again=True)


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
