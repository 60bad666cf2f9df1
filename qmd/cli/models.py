"""``qmd models`` lists, fetches and chooses embedding models and rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from qmd import models as kept
from qmd.cli import complete
from qmd.cli.command import Group
from qmd.cli.session import session
from qmd.cli.terminal import fitting, note, one_line, paint, progress_bar, readable_size, write
from qmd.system.user_dirs import is_missing
from qmd.values.text import counted

if TYPE_CHECKING:
    from qmd.values import ModelChange, ModelInfo

_NAME_WIDTH = 40  # columns; the facts of a longer name stand below it
_STATE_MARKS = {"active": "*", "coming": ">"}
_TITLES = {
    "embedding": "Embedding models",
    "english": "Beside the default, to order English hits",
    "reranker": "Rerankers",
}


@click.group(
    "models",
    cls=Group,
    examples=("qmd models list", "qmd models use intfloat/multilingual-e5-large"),
)
def models() -> None:
    """List, fetch and choose models for search by meaning."""


def _render_models(listed: Sequence[ModelInfo]) -> None:
    width = min(max((len(one_line(model.name)) for model in listed), default=0), _NAME_WIDTH)
    kind = None
    for model in listed:
        if model.kind != kind:
            kind = model.kind
            write(paint(_TITLES[kind], "dim") + "\n")
        style = "title" if model.ready else "dim"
        name = one_line(model.name)
        facts = one_line(_facts(model)).rstrip()
        line = f"{_mark(model)} {paint(f'{name:<{width}}', style)}"
        gap = f"\n  {'':<{width}}" if len(name) > width else ""
        write(f"{line}{gap} {fitting(facts, width + 3)}\n")


def _mark(model: ModelInfo) -> str:
    if model.state in _STATE_MARKS:
        return _STATE_MARKS[model.state]
    return "+" if model.ready else " "


def _facts(model: ModelInfo) -> str:
    """The model's dimension, size and languages, in columns."""
    dimension = model.dimension or ""
    size = readable_size(model.size_bytes) if model.size_bytes else model.source
    return f"{dimension:>5}  {size:>8}  {model.languages or ''}"


@models.subcommand(
    "list",
    pages=True,
    render=_render_models,
    examples=("qmd models list", "qmd models list --json"),
)
@click.option("--ready", is_flag=True, help="Only those that need no download.")
def list_(ready: bool) -> list[ModelInfo]:
    """
    List the models: those that embed, the one of English, rerankers.

    A star marks the model whose vectors answer, an arrow a model that will replace it, a plus
    models that need no download. Besides these, you can name the path of any folder with an
    ONNX model and tokenizer.json, and openai:MODEL for a model of an OpenAI-compatible server.
    """
    settings = session().settings
    if is_missing(settings.db):
        listed = kept.catalogue.list_models(settings.cache_dir, target=settings.model)
    else:
        with session().open() as kb:
            listed = kb.models.list()
    return [model for model in listed if not ready or model.ready or model.state]


def _render_pulled(model: ModelInfo) -> None:
    write(f"{one_line(model.name)} is on this machine.\n")
    if model.kind == "reranker":
        write(f"To use it: reranker = {model.name!r} in the settings file, or QMD_RERANKER.\n")
    elif model.state != "active":
        write(f"To use it: qmd models use {one_line(model.name)}\n")


@models.subcommand(
    "pull",
    render=_render_pulled,
    examples=("qmd models pull", "qmd models pull BAAI/bge-small-zh-v1.5"),
)
@click.argument("name", required=False, shell_complete=complete.models)
def pull(name: str | None) -> ModelInfo:
    """
    Fetch a model: an embedding model or a reranker.

    Without NAME it is the model chosen for this database, or else the default. Models other
    than the default come from the Hugging Face hub; HF_ENDPOINT names a mirror.
    """
    session().interrupted = "What was fetched stays: run the command again to go on."
    with progress_bar() as progress:
        settings = session().settings
        if is_missing(settings.db):
            chosen = name or settings.model or kept.catalogue.DEFAULT_MODEL
            return kept.catalogue.pull(chosen, settings.cache_dir, progress)
        with session().open() as kb:
            return kb.models.pull(name, progress)


def _render_change(change: ModelChange) -> None:
    name = one_line(change.model)
    if not change.waiting:
        write(f"{name} is the model of this database; every document has its vectors.\n")
    else:
        write(f"{name} ({change.dimension} dimensions) is to be the model of this database.\n")
        how = "in the background" if change.kept else "with: qmd embed"
        write(f"{counted(change.waiting, 'chunk')} get vectors {how}\n")
        if change.before and change.before != change.model:
            write(f"Until all have them, those of {one_line(change.before)} answer.\n")


@models.subcommand(
    "use",
    render=_render_change,
    examples=(
        "qmd models use BAAI/bge-small-zh-v1.5",
        "qmd models use ~/models/my-model",
        "qmd models use openai:nomic-embed-text",
    ),
)
@click.argument("name", shell_complete=complete.models)
def use(name: str) -> ModelChange:
    """
    Choose the embedding model of this database, for all programs.

    All documents get new vectors: in the background, if a server or 'qmd watch' runs, else by
    'qmd embed'. The old vectors answer searches until the last new one is made. They stay until
    'qmd db cleanup', in case you want to go back.
    """
    with session().open(write=True) as kb:
        change = kb.models.use(name)
    settings = session().settings
    if settings.model not in {None, change.model, name}:
        note(
            f"{settings.sources['model']} names {one_line(str(settings.model))}: what was chosen"
            " for the database counts."
        )
    return change
