"""``qmd get``, ``multi-get`` and ``ls`` print documents and list them; the group ``qmd links``."""

from __future__ import annotations

import click

from qmd.cli import complete
from qmd.cli.command import Group, command, json_option
from qmd.cli.formats import format_options
from qmd.cli.listings import ListingView, limit_options, max_tokens_option
from qmd.cli.places import full_path_option, places
from qmd.cli.render_documents import (
    left_out_text,
    render_document,
    render_documents,
    render_listing,
    same_name_text,
)
from qmd.cli.render_reports import count
from qmd.cli.search_options import filter_options
from qmd.cli.session import session
from qmd.cli.terminal import note, write_json
from qmd.errors import NoMatchError
from qmd.values.tokens import MAX_TOTAL_BYTES
from qmd.values.wire import to_wire

_line_numbers = click.option(
    "--line-numbers/--no-line-numbers",
    default=True,
    help="Number the lines as an editor does.  [default: numbered]",
)


@command(
    "get",
    pages=True,
    examples=(
        "qmd get notes/2025/plan.md",
        "qmd get plan:120:40               # 40 lines from line 120",
        "qmd get 'plan#Next steps'         # the section below that heading",
        "qmd get '#a1b2c3' --no-line-numbers > plan.md",
    ),
)
@click.argument("file", metavar="FILE[:LINE[:COUNT]]", shell_complete=complete.documents)
@click.option("--from", "from_line", type=int, metavar="L", help="Start at this line.")
@click.option("-l", "--lines", type=click.IntRange(1), metavar="N", help="At most N lines.")
@click.option("--full", is_flag=True, hidden=True, expose_value=False)  # it always is
@max_tokens_option
@_line_numbers
@full_path_option
@format_options
def get(
    file: str,
    from_line: int | None,
    lines: int | None,
    max_tokens: int | None,
    line_numbers: bool,
    full_path: bool,
    output: str,
) -> None:
    """
    Print a document as it is stored.

    FILE is what a search printed, qmd://…, a path on the disk or the end of a path, a #docid, an
    alias, a title, or [[any of these]]; letter case does not matter, and .md may be left out.
    Behind it may be #Heading, #Heading#Subheading or ^block. Numbered lines are for reading: with
    --no-line-numbers, and in --json, --csv and --xml, the text is exactly the document's.
    """

    with session().open() as kb:
        numbered = line_numbers and output == "cli"
        excerpt = kb.get(
            file,
            from_line=from_line,
            max_lines=lines,
            max_tokens=max_tokens,
            line_numbers=numbered,
        )
        where = places(kb.collections, full_path=full_path)
    render_document(excerpt, output, line_numbers=numbered, where=where)
    if excerpt.left_out is not None:
        note(f"… {left_out_text(excerpt)}")
    elif excerpt.more_lines and output == "cli":
        lines_left = (
            "1 more line" if excerpt.more_lines == 1 else f"{excerpt.more_lines:,} more lines"
        )
        note(f"… {lines_left}")
    if excerpt.same_name and output == "cli":
        note(f"… {same_name_text(excerpt)}")


@command(
    "multi-get",
    pages=True,
    examples=(
        "qmd multi-get 'notes/2025-*.md'",
        "qmd multi-get 'plan.md, notes/todo.md' -l 50",
        "qmd multi-get 'notes/**/*.md' --max-bytes 200000 --json",
    ),
)
@click.argument(
    "patterns", nargs=-1, required=True, metavar="PATTERN...", shell_complete=complete.documents
)
@click.option("-l", "--lines", type=click.IntRange(1), metavar="N", help="At most N lines of each.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=10240,
    show_default=True,
    metavar="N",
    help="Leave out larger documents, and say so.",
)
@click.option(
    "--max-total-bytes",
    type=click.IntRange(1000),
    default=MAX_TOTAL_BYTES,
    show_default=True,
    metavar="N",
    help="Stop when all that is printed has about N bytes.",
)
@max_tokens_option
@_line_numbers
@full_path_option
@format_options
def multi_get(
    patterns: tuple[str, ...],
    lines: int | None,
    max_bytes: int,
    max_total_bytes: int,
    max_tokens: int | None,
    line_numbers: bool,
    full_path: bool,
    output: str,
) -> None:
    """
    Print several documents, by glob or list of names.

    PATTERN is a glob, or names separated by commas. Several PATTERNs are a list of names, so
    a glob without quotes, which the shell expands, works too. Names that match nothing are
    listed on stderr, and the exit code is then 1. Documents that do not fit into the bounds are
    counted on stderr, with the name of the first.
    """

    with session().open() as kb:
        numbered = line_numbers and output == "cli"
        reply = kb.multi_get(
            ",".join(patterns),
            max_lines=lines,
            max_bytes=max_bytes,
            max_tokens=max_tokens,
            max_total_bytes=max_total_bytes,
            line_numbers=numbered,
        )
        where = places(kb.collections, full_path=full_path)
    render_documents(reply.items, output, line_numbers=numbered, where=where)
    if reply.next_file is not None:
        raise_what = "--max-total-bytes" if max_tokens is None else "--max-tokens"
        note(
            f"{count(reply.more, 'more document')} left out, the first is {reply.next_file}: "
            f"narrow the pattern, or raise {raise_what}.",
            style="warning",
        )
    if reply.errors:
        raise NoMatchError("\n".join(reply.errors))


@command(
    "ls",
    pages=True,
    examples=(
        "qmd ls notes/2025",
        "qmd ls --tag work --sort -date -n 20",
        "qmd ls -p status:draft -p 'rating:>4' --sort -rating",
        "qmd ls notes --group-by status --json",
    ),
)
@click.argument(
    "prefix", metavar="[COLLECTION[/PREFIX]]", default="", shell_complete=complete.documents
)
@limit_options(None)
@filter_options("collections", "tags", "properties", "sort", "group_by")
@full_path_option
@json_option
def ls(
    prefix: str,
    limit: int | None,
    collections: tuple[str, ...],
    tags: tuple[str, ...],
    properties: tuple[str, ...],
    sort: str | None,
    group_by: str | None,
    full_path: bool,
    as_json: bool,
) -> None:
    """List documents: docid, size, time of change, file, title."""

    with session().open() as kb:
        documents = kb.documents(
            prefix,
            collections=collections,
            tags=tags,
            properties=properties,
            sort=sort,
            group_by=group_by,
            limit=limit,
        )
        total = len(documents)
        if limit == total:  # there may be more
            total = kb.count_documents(
                prefix, collections=collections, tags=tags, properties=properties
            )
        reason = "" if documents else kb.why_none(prefix, tags=tags, properties=properties)
        where = places(kb.collections, full_path=full_path)
    if as_json:
        write_json([{**to_wire(each), "file": where.name(each.file)} for each in documents])
        return
    render_listing(documents, where)
    if not documents and (prefix or collections or tags or properties):
        note(reason or "No documents meet all of this.")
    elif not documents:
        note("No documents. 'qmd up FOLDER' makes a folder searchable, 'qmd index' indexes anew.")
    ListingView(where, None).note_rest(len(documents), total, "document")


@click.group(
    "links",
    cls=Group,
    default="of",
    operations="links",
    examples=("qmd links notes/MOC.md", "qmd links backlinks MOC", "qmd links broken -c notes"),
)
def links() -> None:
    """
    List the links in a note, and where each leads.

    Embeds and web addresses are links, too. FILE is a name as 'qmd get' takes it. The commands
    list the links that lead to a note, notes without such links, and links that lead nowhere; a
    note that is named like one of them is 'qmd links of NAME'.
    """
