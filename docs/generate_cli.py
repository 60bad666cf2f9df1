"""
Writes the reference of the command line into docs/cli.md, between its two markers.

Run ``.venv-tests/bin/python docs/generate_cli.py`` after changing a command; a test fails when it
is stale.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from qmd.cli.command import Command, Group, all_commands
from qmd.cli.main import cli

DOCUMENT = Path(__file__).with_name("cli.md")
BEGIN = "<!-- generated: docs/generate_cli.py -->\n"
END = "<!-- end of generated text -->\n"


def reference() -> str:
    """Every command with its usage, its help, its options and its examples."""
    return "\n".join(_section(name, command) for name, command in all_commands("qmd", cli))


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name, max_content_width=100)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    lines = [f"## {name}\n" if name != "qmd" else "## The command itself\n", f"`{usage}`\n"]
    if command.help:
        lines.append(f"{_paragraphs(command.help)}\n")
    records = [
        param.get_help_record(context)
        for param in command.params
        if isinstance(param, click.Option)
    ]
    options = [f"- `{record[0]}`: {_escaped(record[1])}" for record in records if record]
    if options:
        lines.append("\n".join(options) + "\n")
    if isinstance(command, Command | Group) and command.examples:
        lines.append("```sh\n" + "\n".join(command.examples) + "\n```\n")
    return "\n".join(lines)


def _paragraphs(text: str) -> str:
    return _escaped(inspect.cleandoc(text))


def _escaped(text: str) -> str:
    return text.replace("*", "\\*")


def fresh(document: str) -> str:
    """The document with the generated part made anew."""
    head, _, rest = document.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{reference()}\n{END}{tail}"


if __name__ == "__main__":
    DOCUMENT.write_text(fresh(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
