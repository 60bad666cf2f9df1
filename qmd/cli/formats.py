"""
The output formats: how one is chosen, and how each quotes.

``cli`` is for people and may change; the others are for programs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import click

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("cli", "json", "csv", "md", "xml", "files")
# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def format_options(function: F) -> F:
    """``--format`` and its short forms; the command gets one argument ``output``."""

    @functools.wraps(function)
    def with_format(**options: Any) -> Any:
        chosen = [name for name in FORMATS[1:] if options.pop(f"as_{name}")]
        named = options.pop("format_name")
        if named is not None:
            chosen.append(named)
        if len(set(chosen)) > 1:
            raise click.UsageError("One format only: " + " or ".join(dict.fromkeys(chosen)) + "?")
        return function(output=chosen[0] if chosen else "cli", **options)

    for name in reversed(FORMATS[1:]):
        click.option(f"--{name}", f"as_{name}", is_flag=True, help=f"Short for --format {name}.")(
            with_format
        )
    click.option(
        "--format", "format_name", type=click.Choice(FORMATS), help="How to print the result."
    )(with_format)
    return cast(F, with_format)


def numbered(text: str, first: int = 1) -> str:
    """Each line as ``N: text``, as the MCP tools number them."""
    from qmd.parse.lines import split_lines

    return "".join(f"{number}: {line}\n" for number, line in enumerate(split_lines(text), first))


def flat(text: str | None) -> str:
    """A context, which may have paragraphs, on one line."""
    return " · ".join(line.strip() for line in (text or "").splitlines() if line.strip())


def csv_rows(rows: Iterable[Sequence[object]]) -> str:
    import csv
    import io

    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def xml_text(text: str) -> str:
    text = re.sub(_NOT_XML, "\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def xml_element(name: str, attributes: dict[str, object | None], text: str) -> str:
    pairs = "".join(
        f' {key}="{_attribute(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}>{xml_text(text)}</{name}>\n"


def _attribute(value: str) -> str:
    # A parser folds raw line ends in attributes into blanks.
    value = xml_text(value).replace('"', "&quot;")
    return value.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")


def md_fenced(text: str) -> str:
    """A code block whose fence no line of the text can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text if text.endswith(chr(10)) else text + chr(10)}{fence}\n"
