"""``qmd doctor`` and ``qmd config`` say how things are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd import cli, operations
from qmd.cli.command import command
from qmd.cli.open import chosen_editor
from qmd.cli.places import places
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import render_checks
from qmd.cli.session import session
from qmd.cli.terminal import hanging, note, one_line, write, write_json
from qmd.config import SETTINGS
from qmd.operations.definition import Replied
from qmd.system.editors import check_editor
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.operations import Operation
    from qmd.values import Check


def _is_broken(checks: Sequence[Check]) -> bool:
    return any(check.status == "error" for check in checks)


@command("doctor", render=render_checks, fails=_is_broken, examples=("qmd doctor",))
def doctor() -> list[Check]:
    """
    Check the database and its engine, the model and the editor.

    The exit code is 1 if something is broken.
    """
    with session().open() as kb, progress_bar() as progress:
        return [*kb.doctor(progress=progress), check_editor(chosen_editor())]


def plugins(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    """List the installed plugins; a person may look for one before there is a database."""
    value = operations.plugins.listed(session().settings.plugins)
    if as_json:
        write_json(to_wire(value))
        return
    view = cli.listings.ListingView(places(list, full_path=False), None)
    cli.listings.write_rows(operation.rows(value), view)
    if not value.plugins:
        note(operation.sentence(operation.when_empty, Replied(value, arguments)))


def _render_settings(shown: dict[str, Any]) -> None:
    remark = "" if Path(shown["config_file"]).exists() else " (not there)"
    write(f"# {one_line(shown['config_file'])}{remark}\n")
    for name, setting in shown["settings"].items():
        value, source = setting["value"], setting["source"]
        line = f"# {name} is not set" if value is None else f"{name} = {_as_toml(name, value)}"
        origin = "" if value is None else f" ({'the' if source == 'default' else 'from'} {source})"
        remark = hanging(one_line(f"{setting['description']}{origin}"), 4)
        write(f"{one_line(line)}\n  # {remark}\n".replace("\n    ", "\n  # "))


@command(
    "config",
    render=_render_settings,
    pages=True,
    examples=("qmd config", "QMD_DB=/tmp/try.sqlite qmd config --json"),
    extra_argument='Settings are written by hand, as in: editor = "vscode". The first line of'
    " 'qmd config' names the file.",
)
def config() -> dict[str, Any]:
    """
    Show every setting and where it came from.

    A value comes from an option, else from the environment (QMD_DB, QMD_MODEL, QMD_CACHE_DIR),
    else from the file config.toml, else from the default.
    """
    settings = session().settings
    return {
        "config_file": str(settings.config_file),
        "settings": {
            name: {
                "value": _json_value(getattr(settings, name)),
                "source": settings.sources[name],
                "env": setting.variable,
                "description": setting.description,
            }
            for name, setting in SETTINGS.items()
        },
    }


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
