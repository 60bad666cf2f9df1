"""
Declares commands and groups of commands.

Their help ends with examples, they accept ``--db`` and ``--index`` after their name too, and
their modules are imported only when they are called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from qmd.cli import complete
from qmd.cli.query_words import with_words
from qmd.cli.session import Session

F = TypeVar("F", bound=Callable[..., Any])

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        setattr(ctx.ensure_object(Session), str(param.name), value)


def database_options(*, hidden: bool) -> list[click.Option]:
    return [
        click.Option(
            ["--db"],
            metavar="FILE|URL",
            shell_complete=complete.files,
            help="Database: a file, or postgresql://… (default: QMD_DB, or index.sqlite in the"
            " user's data directory).",
            expose_value=False,
            callback=_remember,
            hidden=hidden,
        ),
        click.Option(
            ["--index"],
            metavar="NAME",
            shell_complete=complete.indexes,
            help="The database NAME.sqlite beside the default one.",
            expose_value=False,
            callback=_remember,
            hidden=hidden,
        ),
    ]


class Command(click.Command):
    """
    A command with ``examples``: command lines shown at the end of its help.

    ``destroys`` says that it removes or replaces something without a question. No hint suggests
    such a command to a person who typed another name. ``extra_argument`` is the hint for a person
    who gives it more arguments than it takes.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        destroys: bool = False,
        extra_argument: str | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("context_settings", CONTEXT_SETTINGS)
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.destroys = destroys
        self.extra_argument = extra_argument
        self.params.extend(database_options(hidden=True))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, with_words(self, args))
        except click.UsageError as error:
            if type(error) is click.UsageError and self.extra_argument and args:
                raise WrongUsage(error.message, self.extra_argument, ctx) from error
            raise

    def invoke(self, ctx: click.Context) -> Any:
        ctx.ensure_object(Session).command = ctx.command_path
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


class Group(click.Group):
    """
    A group whose commands live in other modules and are imported when they are called.

    ``lazy`` maps a name to ``module:attribute``; ``sections`` orders the names in the help.
    ``aliases`` maps another name of a command to its name here, and ``elsewhere`` a name that other
    programs have to the sentence that says what to do here.
    """

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, str] | None = None,
        sections: Mapping[str, Collection[str]] | None = None,
        aliases: Mapping[str, str] | None = None,
        elsewhere: Mapping[str, str] | None = None,
        examples: Sequence[str] = (),
        root: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("context_settings", CONTEXT_SETTINGS)
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})
        self.sections = dict(sections or {})
        self.aliases = dict(aliases or {})
        self.elsewhere = dict(elsewhere or {})
        self.examples = tuple(examples)
        self.params.extend(database_options(hidden=not root))

    def list_commands(self, ctx: click.Context) -> list[str]:
        if self.sections:
            return [name for names in self.sections.values() for name in names]
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = self.aliases.get(cmd_name, cmd_name)
        if cmd_name in self.lazy:
            module, _, attribute = self.lazy[cmd_name].partition(":")
            command = getattr(importlib.import_module(module), attribute)
            assert isinstance(command, click.Command)
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if name == "help" and command is None:
            return self._help(ctx, args[1:])
        if command is not None:
            return command.name, command, args[1:]
        if name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise WrongUsage(f"No such command: {name}", self.remedy(ctx, name), ctx)

    def _help(
        self, ctx: click.Context, names: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """What ``help NAMES`` runs: the command of these names with --help."""
        if not names:
            click.echo(ctx.get_help())
            ctx.exit()
        name, command, rest = self.resolve_command(ctx, names)
        return name, command, [*rest, "--help"]

    def remedy(self, ctx: click.Context, name: str) -> str:
        """What a person who typed an unknown name may want instead."""
        if name in self.elsewhere:
            return self.elsewhere[name]
        import difflib

        names = dict.fromkeys([*self.list_commands(ctx), *self.lazy, *self.aliases])
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        # A person may run what is suggested without reading what it does.
        if near and not getattr(self.get_command(ctx, near[0]), "destroys", False):
            return f"Did you mean: {near[0]}"
        return f"Run '{ctx.command_path} --help'."

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem[str]]:
        """Commands, without importing them for their help texts, which bash does not show."""
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*complete.commands(self, ctx, incomplete), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = self.sections or {"Commands": self.list_commands(ctx)}
        for title, names in sections.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                if command is not None and not command.hidden:
                    rows.append((name, command.get_short_help_str(formatter.width)))
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


def all_commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it by their full names, in the order of the help."""
    yield name, command
    if isinstance(command, Group):
        context = click.Context(command, info_name=name)
        for child in command.list_commands(context):
            below = command.get_command(context, child)
            assert below is not None
            yield from all_commands(f"{name} {child}", below)


class WrongUsage(click.UsageError):
    """A usage error that brings its own hint."""

    def __init__(self, message: str, hint: str, ctx: click.Context) -> None:
        super().__init__(message, ctx)
        self.hint = hint


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if not examples:
        return
    with formatter.section("Examples" if len(examples) > 1 else "Example"):
        for line in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def command(name: str, *, examples: Sequence[str], **kwargs: Any) -> Callable[[F], Command]:
    """Declare a command; its help must show an example."""

    def wrap(function: F) -> Command:
        declared = click.command(name, cls=Command, examples=examples, **kwargs)(function)
        assert isinstance(declared, Command)
        return declared

    return wrap


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)
