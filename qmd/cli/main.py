"""
Runs ``qmd``: finds the command, and turns errors into messages and exit codes.

Exit codes: 0 success, even without a hit; 1 an error; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from qmd import __version__
from qmd import cli as cli_modules
from qmd.cli import commands
from qmd.cli.command import Group
from qmd.cli.session import Session
from qmd.cli.terminal import hanging, harmless, json_text, paint, prepare_streams
from qmd.errors import QmdError

_EXAMPLES = (
    "qmd up ~/notes                 # index a folder and make it searchable",
    'qmd search "error handling"    # by words; Chinese too: qmd search 数据库',
    'qmd query "how do we deploy?"  # by words and by meaning',
    "qmd get notes/plan.md:20:10    # ten lines of a hit, from line 20",
)


@click.group(
    cls=Group,
    shows_database=True,
    lazy={place.name: place.target for place in commands.TABLE if " " not in place.name},
    operations="",
    aliases=commands.ALIASES,
    more_aliases=commands.other_names,
    instead=lambda: commands.INSTEAD_OF,
    first=commands.FIRST,
    sections=commands.sections,
    spellings={
        ("version",): ("--version",),
        ("--help", "--all"): ("help", "--all"),
        ("-h", "--all"): ("help", "--all"),
    },
    examples=_EXAMPLES,
    help="Search folders of Markdown by words and by meaning; one SQLite file holds it all.",
)
@click.version_option(__version__, "-V", "--version", prog_name="qmd")
@click.pass_context
def cli(ctx: click.Context) -> None:
    ctx.ensure_object(Session)


def main(args: Sequence[str]) -> int:
    """
    Run one command line and return its exit code.

    All errors are reported here: no other function prints an error or ends the process.
    """
    if "_QMD_COMPLETE" in os.environ:  # the shell asks for completions
        cli_modules.shell_completion.register()
        cli.main(list(args), prog_name="qmd")
    prepare_streams()
    session = Session()
    try:
        code = _invoke(list(args), session)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - what is no error of a command is raised there
        return report(error, session, as_json=_wants_json(args))
    return code


def report(raised: BaseException, session: Session, *, as_json: bool) -> int:
    """
    Write to stderr what ended a command, and return its exit code.

    Args:
        as_json: Write it as JSON.
    """
    try:
        raise raised
    except QmdError as error:
        remedy = error.hint or f"Run '{session.command} --help'."
        return _fail(error.code, str(error), remedy, error.exit_code, as_json)
    except click.ClickException as error:
        return _wrong_usage(error, as_json)
    except (KeyboardInterrupt, click.Abort):
        message = f"Interrupted. {session.interrupted}"
        return _fail("interrupted", message, None, 130, as_json, prefix="qmd: ")
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except MemoryError:
        remedy = "Close other programs, or raise the limit (ulimit -v). 'qmd search' needs least."
        return _fail("out_of_memory", "Not enough memory.", remedy, 1, as_json)
    except OSError as error:
        problem = error.strerror or str(error)
        file = f": {error.filename}" if error.filename else ""
        hint = "Check its permissions." if isinstance(error, PermissionError) else None
        return _fail("os_error", f"{problem}{file}", hint, 1, as_json)


def _invoke(args: list[str], session: Session) -> int:
    try:
        with cli.make_context("qmd", args, obj=session) as ctx:
            cli.invoke(ctx)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return 0


def _wrong_usage(error: click.ClickException, as_json: bool) -> int:
    message = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(message + "\n")
        return error.exit_code
    hint: str | None = getattr(error, "hint", None)
    ctx = getattr(error, "ctx", None)
    if hint is None and isinstance(error, click.NoSuchOption):
        if error.option_name in commands.INSTEAD_OF_OPTION:
            message = f"No such option: {error.option_name}"
            hint = commands.INSTEAD_OF_OPTION[error.option_name]
        elif error.possibilities:
            message = f"No such option: {error.option_name}"
            near = commands.nearest(error.option_name, error.possibilities, most=3, cutoff=0)
            hint = "Did you mean: " + ", ".join(near)
        elif ctx is not None and ctx.command.name in ("search", "vsearch", "query"):
            hint = (
                "To leave a word out, quote the query or put -- before it: qmd search -- foo -bar"
            )
        elif ctx is not None and error.option_name[1:].isdigit():
            hint = f"Put -- before a number below zero: {ctx.command_path} … -- {error.option_name}"
    if hint is None and ctx is not None:
        hint = f"Run '{ctx.command_path} --help'."
    code = "usage" if error.exit_code == 2 else "error"
    return _fail(code, message, hint, error.exit_code, as_json)


def _fail(
    code: str,
    message: str,
    hint: str | None,
    exit_code: int,
    as_json: bool,
    *,
    prefix: str = "qmd: error: ",
) -> int:
    try:
        sys.stdout.flush()
    except OSError:  # stdout cannot be written to, which may be the error to report
        _silence_stdout()
    if as_json:
        error = {"error": {"code": code, "message": message, "hint": hint}}
        text = json_text(error, indent=None)
    else:
        text = paint(prefix, "error" if "error" in prefix else "dim", sys.stderr)
        text += _below(message, len(prefix))
        if hint:
            text += "\n" + paint("hint: ", "dim", sys.stderr) + _below(hint, len("hint: "))
    sys.stderr.write(text + "\n")
    return exit_code


def _below(text: str, indent: int) -> str:
    """A message after its label; what a line of the terminal has no room for stands below."""
    return "\n".join(hanging(line, indent, sys.stderr) for line in harmless(text).split("\n"))


def _wants_json(args: Sequence[str]) -> bool:
    """Whether errors must be JSON too; the arguments are read here since parsing them may fail."""
    for position, arg in enumerate(args):
        if arg == "--":
            return False
        if arg in ("--json", "--format=json"):
            return True
        if arg == "--format" and list(args[position + 1 : position + 2]) == ["json"]:
            return True
    return False


def _silence_stdout() -> None:
    """Discard the buffered output, since the reader of a pipe has gone or the disk is full."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
