"""``qmd status``, ``qmd why`` and ``qmd doctor`` inspect the index."""

from __future__ import annotations

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option
from qmd.cli.progress import progress_bar
from qmd.cli.render_reports import (
    render_checks,
    render_explanation,
    render_status,
)
from qmd.cli.session import session
from qmd.cli.terminal import write_json


@command("status", examples=("qmd status", "qmd status --json"))
@json_option
def status(as_json: bool) -> None:
    """Show what is indexed, awaits vectors, or was skipped."""

    with session().open(use_replica=True) as kb:
        report = kb.status()
        fresh = None if as_json else kb.freshness(embeddings_pending=report.needs_embedding)
    if fresh is None:
        write_json(report)
    else:
        render_status(report, fresh)


@command("why", examples=("qmd why ~/notes/build/report.md",))
@click.argument("path", shell_complete=complete.files)
@json_option
def why(path: str, as_json: bool) -> None:
    """Explain why a file is a document, or which rule leaves it out."""

    with session().open() as kb:
        explanation = kb.why(path)
    if as_json:
        write_json(explanation)
    else:
        render_explanation(explanation)


@command("doctor", examples=("qmd doctor",))
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """
    Check the database and its engine, the model and the editor.

    The exit code is 1 if something is broken.
    """
    from qmd.cli.edit import chosen_editor
    from qmd.system.editors import check_editor

    with session().open() as kb, progress_bar() as progress:
        checks = [*kb.doctor(progress=progress), check_editor(chosen_editor())]
    if as_json:
        write_json(checks)
    else:
        render_checks(checks)
    if any(check.status == "error" for check in checks):
        ctx.exit(1)
