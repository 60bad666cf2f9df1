"""``qmd bench`` measures the searches on questions whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from qmd.cli import complete
from qmd.cli.command import command, json_option
from qmd.cli.progress import progress_bar
from qmd.cli.render_bench import bench_object, render_bench
from qmd.cli.render_reports import count
from qmd.cli.session import Session, session
from qmd.cli.terminal import note, write_json
from qmd.evaluate import corpus, fixtures
from qmd.evaluate.run import run
from qmd.evaluate.systems import SYSTEMS, systems_for

if TYPE_CHECKING:
    from qmd.evaluate.judgments import Judgments
    from qmd.evaluate.run import BenchReport
    from qmd.kb import KnowledgeBase
    from qmd.values import ProgressCallback


@command(
    "bench",
    usual=(*("--qrels", "--baseline", "--system", "--collection", "--limit", "--keep", "--json"),),
    examples=(
        "qmd bench questions.json -c notes",
        "qmd bench beir/scifact --keep ~/bench --json",
        "qmd bench topics.txt --qrels qrels.txt --system 'query --no-rerank'",
    ),
)
@click.argument("fixture", type=click.Path(path_type=Path))
@click.option(
    "--qrels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TREC judgments; FIXTURE is then the file of topics.",
)
@click.option(
    "--baseline",
    type=click.Choice(tuple(SYSTEMS)),
    default="query",
    show_default=True,
    metavar="NAME",
    help="The system that the others are compared with.",
)
@click.option(
    "--system",
    "systems",
    multiple=True,
    type=click.Choice(tuple(SYSTEMS)),
    metavar="NAME",
    help="Only this system and the baseline; repeat for several.",
)
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Only this collection; repeat for several.",
    shell_complete=complete.collections,
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Only N of the questions, spread evenly.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep there what is built for a fixture with documents, and use it again.",
)
@json_option
def bench(
    fixture: Path,
    qrels: Path | None,
    baseline: str,
    systems: tuple[str, ...],
    collections: tuple[str, ...],
    limit: int | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """
    Measure the searches on questions whose answers are known.

    FIXTURE is a JSON file of queries and the files that answer them, or a directory in BEIR's
    form, which brings its own documents. search, vsearch and query answer the same questions,
    and query without each of its parts in turn; with a reranker or an expander in the settings
    also without that. Printed are nDCG@10, MRR@10, success and recall, and the paired
    differences from the baseline with their 95 % intervals. docs/evaluation.md describes files
    and figures.
    """
    judgments = fixtures.read(fixture.expanduser(), qrels.expanduser() if qrels else None)
    if limit is not None:
        judgments = judgments.first(limit)
    if judgments.documents is not None and collections:
        raise click.UsageError("-c has no meaning for a fixture that brings its own documents.")
    needs_vectors = not systems or {*systems, baseline} != {"search"}
    with (
        progress_bar() as progress,
        _opened(judgments, keep, needs_vectors, progress) as (kb, ids),
    ):
        report = run(
            kb,
            judgments,
            systems=[name for name in SYSTEMS if name in (*(systems or systems_for(kb)), baseline)],
            baseline=baseline,
            collections=collections,
            ids=ids,
            progress=progress,
        )
    _warn(report)
    if as_json:
        write_json(bench_object(report))
    else:
        render_bench(report)


def _warn(report: BenchReport) -> None:
    """Name on stderr what could not be measured."""
    for system, reason in report.left_out.items():
        note(f"qmd: left out {system}: {reason}", style="warning")
    if report.unknown:
        note(
            f"qmd: not in the database, so counted as not found: "
            f"{count(len(report.unknown), 'judged document')} ({', '.join(report.unknown[:3])}"
            f"{', …' if len(report.unknown) > 3 else ''})",
            style="warning",
        )


@contextmanager
def _opened(
    judgments: Judgments,
    keep: Path | None,
    needs_vectors: bool,
    progress: ProgressCallback | None,
) -> Iterator[tuple[KnowledgeBase, Mapping[str, str] | None]]:
    """
    Open the knowledge base to measure, and give the fixture's document ids for its paths.

    A fixture that brings documents gets a database for them alone; otherwise it is the user's
    database, and there are no ids.
    """
    if judgments.documents is None:
        with session().open(ask_server=True) as kb:
            yield kb, None
        return

    built = nullcontext(str(keep.expanduser())) if keep else TemporaryDirectory(prefix="qmd-bench-")
    with built as folder:
        name = f"{judgments.name}-{corpus.fingerprint(judgments.documents)}"
        directory = Path(folder).absolute() / name
        ids = corpus.write(judgments.documents, directory)
        bench_session = Session()
        bench_session.db = str(directory.with_name(f"{name}.sqlite"))
        with bench_session.open(create=True) as kb:
            if corpus.COLLECTION not in {collection.name for collection in kb.collections()}:
                kb.add_collection(directory, name=corpus.COLLECTION)
            kb.index(progress=progress)
            if needs_vectors and kb.can_embed():
                kb.embed(progress=progress)
            yield kb, ids
