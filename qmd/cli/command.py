"""
Declares commands and groups of commands, and the options that set a setting.

Their help ends with examples, they accept ``--db`` and ``--index`` after their name too, and
their modules are imported only when they are called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmd import cli, lazy
from qmd.cli import complete
from qmd.cli.session import Session, session
from qmd.cli.terminal import note, paged, write_json
from qmd.config import SETTINGS
from qmd.system.session import SERVES_ONLY
from qmd.values.facts import LARGEST_INTEGER
from qmd.values.text import DEFAULT_MASK

if TYPE_CHECKING:
    from qmd.operations import Operation


F = TypeVar("F", bound=Callable[..., Any])

_ALL = "qmd.help_of_all"  # in the context: the help describes all commands
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


def refuse_unless_server(ctx: click.Context) -> None:
    """
    Refuse what is no server where `doctor` only asks whether an entry starts one.

    Raises:
        WrongUsage: The program was started to serve and do nothing else.
    """
    if SERVES_ONLY in os.environ:
        raise WrongUsage(
            f"'{ctx.command_path}' is no server that a client can start.",
            "It is no server; an entry that works has the arguments: mcp",
            ctx,
        )


class _Described(click.Command):
    """
    What has examples at the end of its help, and takes the database after its name, too.

    ``usual`` names the options that its help shows first, in this order; the others follow below
    "More options". ``shows_database`` says that the help has the options of the database.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        usual: Sequence[str] = (),
        shows_database: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("context_settings", CONTEXT_SETTINGS)
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.usual = tuple(usual)
        self.params.extend(database_options(hidden=not shows_database))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self.get_params(ctx), self.usual, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


class Command(_Described):
    """
    A command.

    ``destroys`` says that it removes or replaces something without a question. No hint suggests it
    to a person who typed another name. ``pages`` says that its output may be long: the pager of the
    settings shows it. ``extra_argument`` is the hint for a person who gives it more arguments than
    it takes.
    """

    def __init__(
        self,
        *args: Any,
        destroys: bool = False,
        pages: bool = False,
        extra_argument: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.destroys = destroys
        self.pages = pages
        self.extra_argument = extra_argument

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for option in _options_taken_for_words(self, args):
            note(f"qmd: {option} stands behind -- and is searched for: put it before --.",
                 style="warning")  # fmt: skip
        try:
            left = super().parse_args(ctx, _with_words(self, args))
        except click.UsageError as error:
            if type(error) is click.UsageError and self.extra_argument and args:
                raise WrongUsage(error.message, self.extra_argument, ctx) from error
            raise
        for param in self.params:
            value = ctx.params.get(param.name or "")
            if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
                raise click.BadParameter(f"{LARGEST_INTEGER:,} is the largest number.", ctx, param)
        return left

    def invoke(self, ctx: click.Context) -> Any:
        ctx.ensure_object(Session).command = ctx.command_path
        refuse_unless_server(ctx)
        with paged(ctx.ensure_object(Session).settings.pager) if self.pages else nullcontext():
            return super().invoke(ctx)


class Group(_Described, click.Group):
    """
    A group whose commands live in other modules and are imported when they are called.

    Args:
        lazy: Name → ``module:attribute`` of a command or an operation; "" for an operation of
            `operations`, which has its place here.
        operations: The group whose operations are its commands, "" for the top level; None for
            a group without any. They are loaded when no other command has a name.
        sections: Returns title in the help → full names of commands.
        first: The commands that the help describes; it only names those of ``sections``, which
            ``help --all`` describes. None describes all.
        aliases: Another name of a command → its full name here, which may go through groups.
        more_aliases: Returns those of operations, too.
        instead: Returns a name that other programs have → the sentence that says what to do here.
        spellings: Arguments → those that mean the same.
        default: The command that gets the arguments if the first is no command.
    """

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, str] | None = None,
        operations: str | None = None,
        sections: Callable[[], Mapping[str, Collection[str]]] = dict,
        first: Sequence[str] | None = None,
        aliases: Mapping[str, str] | None = None,
        more_aliases: Callable[[], Mapping[str, str]] = dict,
        instead: Callable[[], Mapping[str, str]] = dict,
        spellings: Mapping[tuple[str, ...], Sequence[str]] | None = None,
        default: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})
        self.operations = operations
        self.sections = sections
        self.first = first
        self.aliases = dict(aliases or {})
        self.more_aliases = more_aliases
        self.instead = instead
        self.spellings = dict(spellings or {})
        self.default = default

    def subcommand(self, name: str, **about: Any) -> Callable[[Callable[..., Any]], Command]:
        """Declare a command of this group, as `command` does."""

        def declare(function: Callable[..., Any]) -> Command:
            declared = command(name, **about)(function)
            self.add_command(declared)
            return declared

        return declare

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = dict.fromkeys([*self.commands, *self.lazy, *self._operations()])
        listed = [name for section in self.sections().values() for name in section]
        return [
            *(name for name in listed if name in names),
            *(name for name in names if name not in listed),
        ]

    def all_aliases(self) -> dict[str, str]:
        """Another name of a command → its full name here."""
        return self.aliases | dict(self.more_aliases())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name, _, rest = self.aliases.get(cmd_name, cmd_name).partition(" ")
        command: click.Command | None
        if self.lazy.get(name):
            target = lazy.imported(self.lazy[name])
            is_command = isinstance(target, click.Command)
            command = target if is_command else cli.operations.command_of(target)
        else:
            command = super().get_command(ctx, name) or self._command_of_operation(ctx, name)
        return command.get_command(ctx, rest) if rest and isinstance(command, Group) else command

    def _operations(self) -> Mapping[str, Operation]:
        """The operations among its commands, by their names here."""
        if self.operations is None:
            return {}
        return cli.operations.commands_below(self.operations)

    def _command_of_operation(self, ctx: click.Context, name: str) -> click.Command | None:
        operation = self._operations().get(name)
        if operation is not None:
            return cli.operations.command_of(operation)
        full_name = self.more_aliases().get(name)
        return None if full_name is None else self.get_command(ctx, full_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = list(self.spellings.get(tuple(args), args))
        if self.default is not None:
            at = 0
            while at < len(args) and args[at] in ("--db", "--index"):
                at += 2
            name = args[at] if at < len(args) else ""
            if name not in (*self.list_commands(ctx), *self.all_aliases(), "-h", "--help"):
                args.insert(at, self.default)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if name == "help" and command is None:
            return self._help(ctx, args[1:])
        if command is not None:
            return name, command, args[1:]
        if name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise WrongUsage(f"No such command: {name}", self.remedy(ctx, name), ctx)

    def _help(
        self, ctx: click.Context, names: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """What ``help NAMES`` runs: the command of these names with --help."""
        if names in ([], ["--all"]):
            ctx.meta[_ALL] = bool(names)
            click.echo(ctx.get_help())
            ctx.exit()
        name, command, rest = self.resolve_command(ctx, names)
        return name, command, [*rest, "--help"]

    def remedy(self, ctx: click.Context, name: str) -> str:
        """What a person who typed an unknown name may want instead."""
        instead = self.instead()
        if name in instead:
            return instead[name]
        nearest = cli.commands.nearest
        aliases = self.all_aliases()
        names = dict.fromkeys([*self.list_commands(ctx), *aliases])
        words = nearest(name, instead, cutoff=0.75)
        near = nearest(name, [*names, *words], cutoff=0.5)
        if near and near[0] not in names:
            return instead[near[0]]
        # A person may run what is suggested without reading what it does.
        if near and not getattr(self.get_command(ctx, near[0]), "destroys", False):
            return f"Did you mean: {aliases.get(near[0], near[0])}"
        return f"Run '{ctx.command_path} --help'."

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem[str]]:
        """
        Commands, without importing them for their help texts, which bash does not show.

        Names that no help lists are completed only if no other begins with what was typed. Where
        there is a default, what completes its first argument counts, too.
        """
        names = complete.commands(self, self.list_commands(ctx), ctx, incomplete)
        if not names and incomplete:
            names = complete.commands(self, self.all_aliases(), ctx, incomplete)
        return [*names, *self._options_and_arguments(ctx, incomplete)]

    def _options_and_arguments(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem[str]]:
        if self.default is None:
            return click.Command.shell_complete(self, ctx, incomplete)
        default = self._default_command(ctx)
        arguments = [each for each in default.params if isinstance(each, click.Argument)]
        if incomplete.startswith("-") or not arguments:
            return default.shell_complete(ctx, incomplete)
        return arguments[0].shell_complete(ctx, incomplete)

    def _default_command(self, ctx: click.Context) -> click.Command:
        command = self.get_command(ctx, self.default or "")
        assert command is not None
        return command

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        if self.default is None:
            return pieces
        return [*self._default_command(ctx).collect_usage_pieces(ctx), "|", *pieces[1:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        params = self.get_params(ctx)
        if self.default is not None:
            params = [*self._default_command(ctx).params, *params]
        if self.first is not None:  # a person looks for a command here
            self.format_commands(ctx, formatter)
        write_options(params, self.usual, ctx, formatter)
        if self.first is None:
            self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.first is None or ctx.meta.get(_ALL):
            sections = self.sections() or {"Commands": self.list_commands(ctx)}
            for title, names in sections.items():
                self._describe(title, names, ctx, formatter)
            return
        self._describe("Commands", self.first, ctx, formatter)
        rows = []
        for title, names in self.sections().items():
            rest = (name.removeprefix(f"{title} ") for name in names if name != title)
            rows.append((title, ", ".join(name for name in rest if name not in self.first)))
        with formatter.section(f"More, described by '{ctx.command_path} help --all'"):
            # click ends lines at hyphens, too, but a name is one word.
            start = len(formatter.buffer)
            formatter.write_dl([(title, names.replace("-", "\0")) for title, names in rows])
            written = formatter.buffer[start:]
            formatter.buffer[start:] = [piece.replace("\0", "-") for piece in written]

    def _describe(
        self, title: str, names: Collection[str], ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        rows = []
        for name in names:
            group, _, below = name.partition(" ")
            command = self.get_command(ctx, group)
            if below and isinstance(command, Group):
                command = command.get_command(ctx, below)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(formatter.width)))
        with formatter.section(title):
            formatter.write_dl(rows)


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


def write_options(
    params: Sequence[click.Parameter],
    usual: Sequence[str],
    ctx: click.Context,
    formatter: click.HelpFormatter,
) -> None:
    """Write the options of a help: those of ``usual`` in its order and --help, then the others."""
    records = {
        param: record
        for param in params
        if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None
    }
    ordered = [param for name in usual for param in records if name in param.opts]
    first = ordered + [param for param in records if not usual or "--help" in param.opts]
    more = [param for param in records if param not in first]
    for title, shown in (("Options", first), ("More options", more)):
        if shown:
            with formatter.section(title):
                formatter.write_dl([records[param] for param in shown])


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if not examples:
        return
    with formatter.section("Examples" if len(examples) > 1 else "Example"):
        for line in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def command(
    name: str,
    *,
    examples: Sequence[str],
    render: Callable[[Any], None] | None = None,
    fails: Callable[[Any], bool] = lambda value: False,
    **kwargs: Any,
) -> Callable[[Callable[..., Any]], Command]:
    """
    Declare a command; its help must show an example.

    Args:
        render: Prints what the function returns, for people; with ``--json``, which the command
            then has, it is printed as JSON. None for a function that prints by itself.
        fails: Whether the exit code is 1 for what the function returns.
    """

    def wrap(function: Callable[..., Any]) -> Command:
        callback = function if render is None else _printing(function, render, fails)
        declared = click.command(name, cls=Command, examples=examples, **kwargs)(callback)
        assert isinstance(declared, Command)
        if render is not None:
            declared.params.insert(-len(database_options(hidden=True)), _json())
        return declared

    return wrap


def _printing(
    function: Callable[..., Any], render: Callable[[Any], None], fails: Callable[[Any], bool]
) -> Callable[..., None]:
    @wraps(function)
    def run(as_json: bool, **options: Any) -> None:
        value = function(**options)
        (write_json if as_json else render)(value)
        if fails(value):
            raise click.exceptions.Exit(1)

    return run


def _json() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")


def json_option(function: F) -> F:
    """Add ``--json`` to a command that prints by itself."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


# --- words of a query that begin with a minus ------------------------------------------

#: Of the private use area. It stands for the minus of a word such as ``-weekly``, which click would
#: take for an option, or for several of one letter.
_MARK = "\ue000"


class QueryWord(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A word of a query. A command with an argument of this type takes ``-word`` as one."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        return f"-{text[1:]}" if text.startswith(_MARK) else text


def _with_words(command: click.Command, args: Sequence[str]) -> list[str]:
    """The arguments of a command, with each ``-word`` of a query marked as no option."""
    if not _takes_words(command):
        return list(args)
    return list(_marked(_options_by_name(command), args))


def _takes_words(command: click.Command) -> bool:
    """Whether the command has an argument for the words of a query."""
    return any(isinstance(param.type, QueryWord) for param in command.params)


def _options_taken_for_words(command: click.Command, args: Sequence[str]) -> list[str]:
    """The options of the command that stand after ``--`` and so are words of the query."""
    if "--" not in args or not _takes_words(command):
        return []
    after = args[list(args).index("--") + 1 :]
    options = _options_by_name(command)
    return [arg for arg in after if arg.partition("=")[0] in options]


def _options_by_name(command: click.Command) -> dict[str, click.Option]:
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
    """Options as one decorator; the help of a command lists them in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def mask_option(help_text: str, default: str = DEFAULT_MASK) -> Decorator:
    """Add ``--mask``, which says what of a folder is meant."""
    return click.option(
        "--mask",
        default=default,
        show_default=True,
        metavar="GLOB",
        help=f"{help_text}; several by comma or braces.",
    )


def _set_value(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    text = str(value) if isinstance(value, (int, float)) else value
    session().set_flag(str(param.name), text)


def _set_switch(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    session().set_flag(str(param.name), "true" if value else None)
