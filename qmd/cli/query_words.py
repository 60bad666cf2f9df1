"""
Lets a query hold words that begin with a minus, as in ``qmd search backup -weekly``.

The parser of click takes such a word for an option, or for several of one letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

_MARK = "\ue000"  # of the private use area: stands for the minus until click has parsed


class QueryWord(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A word of a query. A command with an argument of this type takes ``-word`` as one."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        return f"-{text[1:]}" if text.startswith(_MARK) else text


def with_words(command: click.Command, args: Sequence[str]) -> list[str]:
    """The arguments of a command, with each ``-word`` of a query marked as no option."""
    if not takes_words(command):
        return list(args)
    return list(_marked(_options(command), args))


def takes_words(command: click.Command) -> bool:
    """Whether the command has an argument for the words of a query."""
    return any(isinstance(param.type, QueryWord) for param in command.params)


def options_taken_for_words(command: click.Command, args: Sequence[str]) -> list[str]:
    """The options of the command that stand behind ``--`` and so are words of the query."""
    if "--" not in args or not takes_words(command):
        return []
    behind = args[list(args).index("--") + 1 :]
    options = _options(command)
    return [arg for arg in behind if arg.partition("=")[0] in options]


def _options(command: click.Command) -> dict[str, click.Option]:
    options = [param for param in command.params if isinstance(param, click.Option)]
    return {name: option for option in options for name in option.opts}


def _marked(options: dict[str, click.Option], args: Sequence[str]) -> Iterator[str]:
    is_value = False
    for position, arg in enumerate(args):
        if arg == "--" and not is_value:
            yield from args[position:]
            return
        option = options.get(arg)
        if is_value or option is not None or not _is_word(options, arg):
            yield arg
        else:
            yield _MARK + arg[1:]
        is_value = not is_value and option is not None and not option.is_flag


def _is_word(options: dict[str, click.Option], arg: str) -> bool:
    """Whether an argument excludes a word: no option of one letter has the rest as its value."""
    if len(arg) < 3 or arg[0] != "-" or arg[1] == "-":
        return False
    option, value = options.get(arg[:2]), arg[2:]
    if option is None:
        return arg[1] != "h"  # -h, as in -help
    if isinstance(option.type, (click.types.IntParamType, click.types.FloatParamType)):
        return not value.lstrip("=").replace(".", "", 1).isdigit()
    return option.metavar == "KEY:VALUE" and ":" not in value
