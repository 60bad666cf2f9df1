"""``qmd doctor`` and ``qmd config`` say how things are."""

from __future__ import annotations

import json
import re

import click

from qmd.cli.command import command, json_option
from qmd.cli.open import chosen_editor
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import render_checks
from qmd.cli.session import session
from qmd.cli.terminal import hanging, one_line, write, write_json
from qmd.config import SETTINGS
from qmd.system.editors import check_editor


@command("doctor", examples=("qmd doctor",))
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """
    Check the database and its engine, the model and the editor.

    The exit code is 1 if something is broken.
    """

    with session().open() as kb, progress_bar() as progress:
        checks = [*kb.doctor(progress=progress), check_editor(chosen_editor())]
    if as_json:
        write_json(checks)
    else:
        render_checks(checks)
    if any(check.status == "error" for check in checks):
        ctx.exit(1)


@command(
    "config",
    pages=True,
    examples=("qmd config", "QMD_DB=/tmp/try.sqlite qmd config --json"),
    extra_argument='Settings are written by hand, as in: editor = "vscode". The first line of'
    " 'qmd config' names the file.",
)
@json_option
def config(as_json: bool) -> None:
    """
    Show every setting and where it came from.

    A value comes from an option, else from the environment (QMD_DB, QMD_MODEL, QMD_CACHE_DIR),
    else from the file config.toml, else from the default.
    """
    settings = session().settings
    values = {name: getattr(settings, name) for name in SETTINGS}
    values = {name: _json_value(value) for name, value in values.items()}
    if as_json:
        write_json(
            {
                "config_file": str(settings.config_file),
                "settings": {
                    name: {
                        "value": value,
                        "source": settings.sources[name],
                        "env": SETTINGS[name].variable,
                        "description": SETTINGS[name].description,
                    }
                    for name, value in values.items()
                },
            }
        )
        return
    remark = "" if settings.config_file.exists() else " (not there)"
    write(f"# {one_line(str(settings.config_file))}{remark}\n")
    for name, value in values.items():
        line = f"# {name} is not set" if value is None else f"{name} = {_as_toml(name, value)}"
        source = settings.sources[name]
        origin = "" if value is None else f" ({'the' if source == 'default' else 'from'} {source})"
        remark = hanging(one_line(f"{SETTINGS[name].description}{origin}"), 4)
        write(f"{one_line(line)}\n  # {remark}\n".replace("\n    ", "\n  # "))


def _json_value(value: object) -> str | list[str] | None:
    """A value for JSON; no paths count as unset. A password in a URL is masked."""
    if isinstance(value, tuple):
        return [str(path) for path in value] or None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return None if value is None else re.sub(r"(\w://)[^/]*@", r"\1***@", str(value))


def _as_toml(name: str, value: str | list[str]) -> str:
    """A value as it stands in config.toml."""

    if SETTINGS[name].kind in ("switch", "seconds", "count"):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
