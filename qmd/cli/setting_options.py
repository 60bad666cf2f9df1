"""Makes the options that set a setting; their names and help come from `qmd.config.SETTINGS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from qmd.cli import complete
from qmd.cli.session import session
from qmd.config import SETTINGS

F = TypeVar("F", bound=Callable[..., Any])


def setting_option(name: str, value_type: click.ParamType[Any] | None = None) -> Callable[[F], F]:
    """Add the option of a setting. Its value goes to the session, not to the command."""
    setting = SETTINGS[name]
    if setting.choices:
        value_type = click.Choice(setting.choices)
    return click.option(
        setting.option,
        name,
        is_flag=setting.kind == "switch",
        multiple=setting.is_list,
        type=value_type,
        callback=_set_switch if setting.kind == "switch" else _set_value,
        expose_value=False,
        metavar=setting.metavar,
        shell_complete=complete.setting(setting),
        help=setting.help,
    )


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Options of several commands, as one decorator."""
    return lambda function: apply_options(options, function)


def apply_options(options: Sequence[Callable[[F], F]], function: F) -> F:
    """Decorate a command with options, which its help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def _set_value(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    text = str(value) if isinstance(value, (int, float)) else value
    session().set_flag(str(param.name), text)


def _set_switch(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    session().set_flag(str(param.name), "true" if value else None)
