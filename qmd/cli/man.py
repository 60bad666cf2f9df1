"""
The manual page, made from the commands themselves; ``qmd man`` shows it.

https://man7.org/linux/man-pages/man7/man.7.html has the macros. No copy of the page is kept, so it
always describes the program that prints it.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from qmd import __version__
from qmd.cli.command import Command, Group, all_commands, command
from qmd.cli.terminal import write
from qmd.config import SETTINGS

EXIT_CODES = {
    0: "Done, even if nothing was found.",
    1: "An error: a message and a hint are on stderr.",
    2: "Wrong usage.",
    130: "Interrupted; nothing is lost.",
}

FILES = {
    "$XDG_CONFIG_HOME/qmd/config.toml": "The settings file (~/.config/qmd).",
    "$XDG_DATA_HOME/qmd/index.sqlite": "The default database (~/.local/share/qmd).",
    "$XDG_STATE_HOME/qmd/server.log": "The log of the servers (~/.local/state/qmd).",
    "$XDG_CACHE_HOME/qmd-python": "Models (~/.cache/qmd-python).",
}


@command("man", examples=("qmd man", "qmd man > ~/.local/share/man/man1/qmd.1"))
@click.pass_context
def man(ctx: click.Context) -> None:
    """
    Show the manual page.

    On a terminal 'man' shows it; a pipe or a file gets the source of the page. With that in
    the directory of the example, 'man qmd' finds it.
    """
    root = ctx.find_root().command
    assert isinstance(root, Group)
    page = man_page(root)
    if sys.stdout.isatty() and _shown(page):
        return
    write(page)


def man_page(root: Group) -> str:
    """The page in man's macros."""
    return "\n".join([*_head(root), *_commands(root), *_foot(root)]) + "\n"


def _head(root: Group) -> Iterator[str]:
    summary = (root.help or "").split(".")[0]
    yield f'.TH QMD 1 "" "qmd {_escaped(__version__)}" "User Commands"'
    yield ".ad l"  # lines of even length would stretch the blanks in commands
    yield ".nh"
    yield ".SH NAME"
    yield from _filled(f"qmd \\- {_escaped(summary[0].lower() + summary[1:])}")
    yield ".SH SYNOPSIS"
    yield ".B qmd"
    yield from _text("[--db FILE | --index NAME] COMMAND [OPTIONS] [ARGUMENTS]")
    yield ".SH OPTIONS"
    context = click.Context(root, info_name="qmd")
    yield from _options(root, context)


def _commands(root: Group) -> Iterator[str]:
    yield ".SH COMMANDS"
    for name, each in all_commands("qmd", root):
        if name == "qmd" or each.hidden:
            continue
        context = click.Context(each, info_name=name)
        yield f".SS {_quoted(name)}"
        yield f".B {_quoted(name)}"
        yield from _text(" ".join(each.collect_usage_pieces(context)))
        yield from _paragraphs(inspect.cleandoc(each.help or ""))
        yield from _options(each, context)
        if isinstance(each, Command | Group) and each.examples:
            yield ".sp"
            yield from _examples(each.examples)


def _foot(root: Group) -> Iterator[str]:
    yield ".SH ENVIRONMENT"
    yield from _text(
        "Each of these has the value of a setting. An option counts before it, the settings file"
        " after it."
    )
    for name, setting in SETTINGS.items():
        yield from _item(setting.variable, f"{name}: {setting.description}")
    yield from _item("QMD_TOKEN", "the token of a server that requires one")
    yield from _item("NO_COLOR, FORCE_COLOR", "colour is off, or on even in a pipe")
    yield ".SH FILES"
    for place, text in FILES.items():
        yield from _item(place, text)
    yield ".SH EXIT STATUS"
    for code, text in EXIT_CODES.items():
        yield from _item(str(code), text)
    yield ".SH EXAMPLES"
    yield from _examples(root.examples)


def _options(each: click.Command, context: click.Context) -> Iterator[str]:
    for param in each.params:
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record is not None:
            yield from _item(*record)


def _item(term: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_quoted(term)}"
    yield from _text(text)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text)):
        yield ".PP" if number else ".br"
        yield from _text(paragraph)


def _examples(lines: tuple[str, ...]) -> Iterator[str]:
    yield ".nf"
    yield from (f"    {_escaped(line)}" for line in lines)
    yield ".fi"


def _text(text: str) -> Iterator[str]:
    """Lines of a paragraph."""
    return _filled(_escaped(" ".join(text.split())))


def _filled(escaped: str) -> Iterator[str]:
    """Short lines, as editors and mandoc want them; a dot at the beginning would be a macro."""
    for line in textwrap.wrap(escaped, 76, break_long_words=False, break_on_hyphens=False):
        yield f"\\&{line}" if line.startswith((".", "'")) else line


def _quoted(text: str) -> str:
    """One argument of a macro."""
    return '"' + _escaped(text).replace('"', "\\(dq") + '"'


def _escaped(text: str) -> str:
    """Text in which a hyphen is the ASCII one, so that options can be copied."""
    for character, escape in (
        ("\\", "\\e"), ("-", "\\-"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti"),
    ):  # fmt: skip
        text = text.replace(character, escape)
    return text


def _shown(page: str) -> bool:
    """Show a page with ``man``; False if that is not installed or refuses it."""
    with tempfile.NamedTemporaryFile("w", suffix=".1", encoding="utf-8", delete=False) as file:
        file.write(page)
    try:
        return subprocess.run(["man", "-l", file.name], check=False).returncode == 0
    except OSError:
        return False
    finally:
        Path(file.name).unlink()
