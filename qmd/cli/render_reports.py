"""Prints the reports of indexing, embedding and upkeep as text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from qmd import libraries
from qmd.cli import terminal
from qmd.system import clock
from qmd.values.text import counted

if TYPE_CHECKING:
    from qmd import values
    from qmd.operations.collections import CollectionWithContexts
    from qmd.values.access import AccessToken, AuditEntry, NewAccessToken

LONG_S = 30  # a person wonders whether anything happens
SHOWN = 10  # the most entries of a list that are printed; the rest is counted


def duration(seconds: float) -> str:
    """About how long something takes, in words: "about 3 min"."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"


def time_of_vectors(status: values.Status) -> str:
    """``, about 27 min`` behind what vectors are made of; empty if it takes little."""
    left_s = status.embedding_left_s
    return f", {duration(left_s)}" if left_s >= LONG_S else ""


def render_index_report(report: values.IndexReport, *, verb: str = "Indexed") -> None:
    """Print the changes to stdout, and skipped files and warnings to stderr."""
    terminal.write(
        f"{verb} {counted(report.collections, 'collection')}: "
        f"{counted(report.total_documents, 'document')}\n"
    )
    changes = ("added", "updated", "moved", "removed", "unchanged")
    terminal.write(
        "  " + " · ".join(f"{getattr(report, name):,} {name}" for name in changes) + "\n"
    )
    sys.stdout.flush()
    if report.skipped:
        terminal.note(f"Skipped {counted(len(report.skipped), 'file')}:", style="warning")
        for line in skipped_lines(report.skipped[:SHOWN], sys.stderr):
            terminal.note_lines(f"  {line}")
        if len(report.skipped) > SHOWN:
            terminal.note(f"  … and {len(report.skipped) - SHOWN:,} more: qmd status")
    if report.warnings:
        terminal.note(f"{counted(len(report.warnings), 'warning')}:", style="warning")
        for warning in report.warnings[:SHOWN]:
            terminal.note_lines("  " + terminal.hanging(terminal.one_line(warning), 2, sys.stderr))
        if len(report.warnings) > SHOWN:
            terminal.note(f"  … and {len(report.warnings) - SHOWN:,} more: qmd why FILE")


def skipped_lines(skipped: Sequence[values.SkippedFile], stream: TextIO) -> list[str]:
    """Lines, to be indented by two, that list files by the reason why they were skipped."""
    files: dict[str, list[str]] = {}
    for file in skipped:
        reason = f"{file.reason}: {file.detail}" if file.detail else file.reason
        files.setdefault(terminal.one_line(reason), []).append(terminal.one_line(file.file))
    lines: list[str] = []
    for reason, names in files.items():
        lines += [terminal.hanging(reason, 2, stream), *(f"  {name}" for name in names)]
    return lines


def render_embed_report(report: values.EmbedReport) -> None:
    made_states_only = report.token_states and not report.embedded
    made_english_only = report.english and not (report.embedded or report.token_states)
    if made_english_only:
        text = f"Embedded {counted(report.english, 'English chunk')} with {report.english_model}"
    elif made_states_only:
        text = (
            f"Made the token states of {counted(report.token_states, 'chunk')} with {report.model}"
        )
    else:
        text = f"Embedded {counted(report.embedded, 'chunk')} with {report.model}"
    if report.reused:
        text += f", {report.reused:,} from the cache"
    if report.token_states and not made_states_only:
        text += f"; token states for {counted(report.token_states, 'chunk')} more"
    if report.english and not made_english_only:
        text += f"; {counted(report.english, 'English chunk')} with {report.english_model}, too"
    if report.remaining:
        text += f"; {report.remaining:,} remain: qmd embed"
    terminal.write(text + "\n")


def render_collections(listed: Sequence[values.Collection]) -> None:
    names = (terminal.one_line(collection.name) for collection in listed)
    width = max(map(terminal.columns, names), default=0)
    for collection in listed:
        name = terminal.paint(terminal.padded(terminal.one_line(collection.name), width), "title")
        documents = counted(collection.documents, "document")
        path = terminal.paint(terminal.one_line(collection.path), "file")
        excluded = "" if collection.included else terminal.paint("  excluded", "dim")
        if collection.owner:
            excluded += terminal.paint(f"  pushed by {terminal.one_line(collection.owner)}", "dim")
        rest = f"{path}  {terminal.one_line(_files_of(collection))}{excluded}"
        terminal.write(terminal.beside(f"{name}  {documents:>16}", rest, 0) + "\n")
    if not listed:
        terminal.note("No collections yet: qmd up FOLDER")


def render_collection(shown: CollectionWithContexts) -> None:
    details = shown.collection
    rows = [
        ("Name", details.name),
        ("Path", details.path),
        ("Mask", details.pattern),
        *(("Ignore", pattern) for pattern in details.ignore),
        *(() if details.included else (("Searched", "only if named: -c " + details.name),)),
        ("Documents", f"{details.documents:,}"),
        ("Changed", minute(details.last_updated)),
        ("Indexed", minute(details.last_indexed)),
        *(("Context", f"{context.path}: {context.text}") for context in shown.contexts),
    ]
    for label, value in rows:
        terminal.write(f"{label:<11}{terminal.hanging(terminal.one_line(value), 11)}\n")


def _files_of(collection: values.Collection) -> str:
    """Which files are its documents, in one line: ``**/*.md, without drafts/``."""
    return collection.pattern + "".join(f", without {each}" for each in collection.ignore)


def render_contexts(listed: Sequence[values.Context]) -> None:
    for context in listed:
        place = terminal.paint(terminal.one_line(context.path), "file")
        terminal.write(
            terminal.beside(place, terminal.paint(terminal.one_line(context.uri), "dim"), 0) + "\n"
        )
        terminal.write(
            "".join(
                f"  {terminal.hanging(terminal.one_line(line), 2)}\n"
                for line in context.text.splitlines()
            )
        )
    if not listed:
        terminal.note("No contexts yet: qmd context add PATH TEXT")


def render_new_token(created: NewAccessToken) -> None:
    terminal.write(f"{created.token}\n")
    libraries.click.echo(
        f"Token '{created.stored.name}' {_opened_by(created.stored)}. It is not shown again.",
        err=True,
    )


def render_tokens(listed: Sequence[AccessToken]) -> None:
    for each in listed:
        used = f"last used {each.last_used}" if each.last_used else "never used"
        terminal.write(f"{terminal.one_line(each.name)}: {_opened_by(each)}, {used}\n")
    if not listed:
        terminal.write("No tokens. To make one: qmd server token create NAME --read COLLECTION\n")


def _opened_by(token: AccessToken) -> str:
    """What a token opens, and until when."""
    reads = ", ".join(name for name in token.read if name not in token.write)
    writes = ", ".join(token.write)
    parts = [f"reads {reads}"] if reads else []
    if writes:
        parts.append(f"writes {writes}")
    if not parts:
        parts.append("opens nothing, since its collections were removed")
    if token.expires is not None:
        parts.append(f"{'expired' if token.expired else 'expires'} {minute(token.expires)}")
    return terminal.one_line(", ".join(parts))


def render_audit(entries: Sequence[AuditEntry]) -> None:
    for entry in entries:
        who = entry.actor or "(administrator)"
        what = terminal.one_line(f"{minute(entry.at)}  {who}  {entry.face}  {entry.action}")
        terminal.write(terminal.beside(what, terminal.one_line(entry.target), 0) + "\n")
    if not entries:
        terminal.write("Nothing was written.\n")


def render_status(status: values.Status, fresh: values.Freshness) -> None:
    """Print the state of the index."""
    rows = [
        ("Database", [f"{status.database} ({terminal.readable_size(status.database_bytes)})"]),
        ("Documents", [f"{status.total_documents:,}"]),
        ("Vectors", _vectors(status, fresh.embedding)),
        *((("Pictures", _pictures(status, fresh)),) if status.pictures else ()),
        ("Indexed", [_indexed(status, fresh)]),
    ]
    if fresh.keeper is not None:
        rows.append(("Kept by", [f"{fresh.keeper}, heard of {minute(fresh.keeper_heard_of)}"]))
    if fresh.replica_lag_s is not None:
        rows.append(("Replica", [f"{fresh.replica_lag_s:g} s behind"]))
    for name, lines in rows:
        for label, line in zip((name, *[""] * len(lines)), lines, strict=False):
            terminal.write(f"{terminal.paint(f'{label:<11}', 'dim')}{terminal.one_line(line)}\n")
    for notice in fresh.notices:
        line = terminal.hanging(f"{'Problem':<11}{terminal.one_line(notice)}", 11)
        terminal.write(line.replace("Problem", terminal.paint("Problem", "warning"), 1) + "\n")
    terminal.write(
        terminal.paint("Collections", "dim") + ("\n" if status.collections else "  none\n")
    )
    for collection in status.collections:
        name = terminal.paint(terminal.one_line(collection.name), "title")
        place = f"{name}  {terminal.one_line(collection.path)}"
        terminal.write(f"  {terminal.beside(place, f'({_state_of(collection)})', 2)}\n")
    if status.skipped:
        terminal.write(
            terminal.paint("Skipped", "warning") + f"  {counted(len(status.skipped), 'file')}\n"
        )
        terminal.write("".join(f"  {line}\n" for line in skipped_lines(status.skipped, sys.stdout)))
    if status.excluded:
        names = {"mask": "not matched by the mask"}
        reasons = ", ".join(
            f"{number:,} {names.get(reason, reason)}" for reason, number in status.excluded.items()
        )
        kinds = f": {left_out(status, most=8)}" if status.excluded_kinds else ""
        line = f"Left out   {terminal.one_line(reasons + kinds)} (qmd why PATH)"
        terminal.write(
            terminal.hanging(line, 11).replace("Left out", terminal.paint("Left out", "dim"), 1)
            + "\n"
        )


def _state_of(collection: values.Collection) -> str:
    """How many documents it has, which files these are, and what is special about it."""
    facts = [counted(collection.documents, "document"), terminal.one_line(_files_of(collection))]
    if not collection.included:
        facts.append("excluded")
    if collection.missing:
        facts.append("its folder cannot be read")
    if collection.last_updated:
        facts.append(f"changed {minute(collection.last_updated)}")
    return ", ".join(facts)


def _indexed(status: values.Status, fresh: values.Freshness) -> str:
    at = minute(status.last_indexed) + _zone(status.last_indexed)
    if not fresh.indexing:
        return at
    left = f", {counted(fresh.files_pending, 'file')} left" if fresh.files_pending else ""
    return f"{at}; under way now{left}"


def left_out(status: values.Status, *, most: int) -> str:
    """``4 PDF, 6 photos``: the files that are no documents, of ``most`` kinds."""
    kinds = [
        f"{number:,} {terminal.one_line(kind)}{'s' if kind == 'photo' and number > 1 else ''}"
        for kind, number in status.excluded_kinds.items()
    ]
    return ", ".join(kinds[:most]) + (" …" if len(kinds) > most else "")


def _vectors(status: values.Status, embedding: bool) -> list[str]:
    """How many chunks have vectors, and what is still to do; lines."""
    if not status.chunks:
        return ["none"]
    model = f", {status.model}" if status.model else ""
    lines = [f"{status.chunks_embedded:,} of {counted(status.chunks, 'chunk')}{model}"]
    how = "in the background" if embedding else "qmd embed"
    if status.needs_embedding:
        left = duration(status.embedding_left_s)
        lines.append(f"{counted(status.needs_embedding, 'document')} to do, {left}: {how}")
    if status.chunks_outdated:
        lines.append(f"{earlier_titles(status)}: {how}")
    if status.token_states is not None and status.token_states < status.chunks_embedded:
        states = f"token states: {status.token_states:,} of {status.chunks_embedded:,} chunks"
        lines.append(states + ("" if status.needs_embedding else f": {how}"))
    if status.english_model:
        english = f"English also by {status.english_model}"
        if status.english_waiting:
            english += f": {counted(status.english_waiting, 'chunk')} to look at"
            english += "" if status.needs_embedding else f", {how}"
        lines.append(english)
    if status.next_model:
        lines.append(f"{status.next_model} is to follow, with {status.next_embedded:,} so far")
    return lines


def _pictures(status: values.Status, fresh: values.Freshness) -> list[str]:
    """How many pictures were read, and what is still to do; lines."""
    done = status.pictures - status.pictures_waiting - status.pictures_failed
    failed = f", {status.pictures_failed:,} cannot be read" if status.pictures_failed else ""
    lines = [f"text read of {done:,} of {counted(status.pictures, 'page')} and photos{failed}"]
    if status.pictures_waiting and status.ocr_problem:
        lines.append(status.ocr_problem)
    elif status.pictures_waiting:
        how = "in the background" if fresh.embedding else "qmd ocr"
        lines.append(f"{status.pictures_waiting:,} to do, {duration(status.ocr_left_s)}: {how}")
    return lines


def render_ocr_report(report: values.OcrReport) -> None:
    text = f"Read the text of {counted(report.read, 'page')}"
    if report.empty:
        text += f"; {report.empty:,} have none"
    if report.failed:
        text += f"; {report.failed:,} cannot be read: qmd why FILE"
    if report.remaining:
        text += f"; {report.remaining:,} remain: qmd ocr"
    terminal.write(text + "\n")


def earlier_titles(status: values.Status) -> str:
    """How many vectors are renewed, without a full stop."""
    return (
        f"{counted(status.chunks_outdated, 'chunk')} answer with the vector of an earlier title"
        " until a new one is made"
    )


def minute(stamp: str | None) -> str:
    """``2026-11-23 13:46`` in the local time zone, which `_zone` names once; or ``never``."""
    return clock.minute(stamp) if stamp else "never"


def _zone(stamp: str | None) -> str:
    """`` (UTC+01:00)`` for a local time, `` (UTC)`` in Greenwich's time zone."""
    if stamp is None:
        return ""
    offset = clock.local(stamp).strftime("%z")
    return " (UTC)" if offset == "+0000" else f" (UTC{offset[:3]}:{offset[3:5]})"


_IN_REASON = ("collection", "path", "subject", "rule")  # the path and the reason name these


def render_explanation(explanation: values.Explanation) -> None:
    verdict = "indexed" if explanation.indexed else "not indexed"
    style = "ok" if explanation.indexed else "warning"
    terminal.write(f"{terminal.one_line(explanation.path)}: {terminal.paint(verdict, style)}\n")
    terminal.write(f"  {terminal.hanging(terminal.one_line(explanation.reason), 2)}\n")
    for key, value in explanation.detail.items():
        if key in _IN_REASON:
            continue
        for item in value if isinstance(value, list | tuple) else (value,):
            if str(item) not in explanation.reason:
                shown = minute(item) if key == "modified" else str(item)
                terminal.write(f"  {key}: {terminal.one_line(shown)}\n")
    if explanation.remedy:
        remedy = terminal.hanging(terminal.one_line(explanation.remedy), 8)
        terminal.write(f"  {terminal.paint('hint:', 'dim')} {remedy}\n")


def render_checks(checks: Sequence[values.Check]) -> None:
    for check in checks:
        word = terminal.paint(f"{check.status:<7}", check.status)
        terminal.write(
            f"{word}  {terminal.hanging(terminal.one_line(f'{check.name}: {check.message}'), 9)}\n"
        )
        if check.remedy:
            remedy = terminal.hanging(terminal.one_line(check.remedy), 15)
            terminal.write(f"         {terminal.paint('hint:', 'dim')} {remedy}\n")


def render_cleanup(report: values.CleanupReport) -> None:
    verb = "Would remove" if report.dry_run else "Removed"
    removed = _counted(report.removed)
    terminal.write(f"{verb} {removed}.\n" if removed else "Nothing to remove.\n")
    if not report.dry_run:
        before, after = map(terminal.readable_size, (report.bytes_before, report.bytes_after))
        terminal.write(f"Database: {before} before, {after} now.\n")


def _counted(removed: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in removed.items() if number)
