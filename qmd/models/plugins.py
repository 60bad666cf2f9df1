"""
Opens the models of installed plugins.

An entry point of the group ``qmd.models`` names a `PluginModel`, or several in a tuple. A setting
names one as ``plugin:NAME``. It is guarded like every model: vectors, scores and expansions are
checked, and a question waits for it no longer than its budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from qmd import models as qmd_models
from qmd.errors import ModelMissingError, QmdError
from qmd.system import plugins
from qmd.system.worker.jobs import described

#: What begins the name of a model of a plugin.
PREFIX = "plugin:"
ModelRole = Literal["embedding", "reranking", "expanding"]
_SETTING = {"embedding": "model", "reranking": "reranker", "expanding": "expander"}


@dataclass(frozen=True, slots=True)
class PluginModel:
    """
    A model of another package.

    Args:
        name: The settings name it ``plugin:NAME``.
        role: An embedding model is an `Embedder`, the others a `Reranker` and an `Expander` of
            `qmd.inference.protocols`.
        opener: A function without arguments that returns it, as ``module:function``. The module is
            imported when the model is first needed, in each process once. It may not load weights;
            the first text does.
    """

    name: str
    role: ModelRole
    opener: str


def is_plugin(name: str | None) -> bool:
    """Whether a model's name means one of a plugin."""
    return (name or "").startswith(PREFIX)


def problem_of(model: PluginModel) -> str | None:
    """Why a model cannot be used, in a sentence; None if it can."""
    if model.role not in _SETTING:
        return f"The model {model.name} neither embeds, reranks nor expands."
    if not re.fullmatch(r"[\w.:/-]+", model.name) or not re.fullmatch(r"[\w.]+:\w+", model.opener):
        return f"The model {model.name} has no name for a setting, or no opener."
    return None


def offered(names: Iterable[str]) -> dict[str, tuple[PluginModel, ...] | str]:
    """The models of these plugins, or a sentence that says why one has none."""
    return plugins.offers("models", names, PluginModel, problem_of)


def models(role: ModelRole) -> dict[str, PluginModel]:
    """The models of a role that are turned on in this process, by the names that settings have."""
    values = offered(plugins.turned_on()).values()
    usable = (each for several in values if not isinstance(several, str) for each in several)
    return {f"{PREFIX}{each.name}": each for each in usable if each.role == role}


def opened(name: str, role: ModelRole) -> Any:
    """
    The model of this name, one for the whole process: as ``role`` says.

    Raises:
        ModelMissingError: No plugin that is turned on has it, or it cannot be opened.
    """
    model = models(role).get(name)
    if model is None:
        raise ModelMissingError(
            f"No plugin that is turned on has the {role} model {name}.",
            hint="Name its plugin in the setting plugins; 'qmd plugins' lists what is installed.",
        )
    try:
        return opened_once(model)
    except QmdError:
        raise
    except (Exception, SystemExit) as error:  # the code of others may raise anything
        raise ModelMissingError(
            f"The model {name} cannot be opened: {described(error)}",
            hint=f"Repair or update its package, or change the setting {_SETTING[role]}.",
        ) from error


@cache
def opened_once(model: PluginModel) -> Any:
    """The model that an opener returns, which is called once."""
    module, _, function = model.opener.partition(":")

    def open_model() -> Any:  # the import may print, too
        return getattr(import_module(module), function)()

    value = plugins.without_output(open_model)
    if model.role != "embedding":
        return value
    return qmd_models.checked.PluginEmbedder(value, f"{PREFIX}{model.name}")
