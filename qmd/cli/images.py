"""``qmd image`` writes metadata into photos, prints it, and has a model propose some."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from qmd import tools
from qmd.cli import complete
from qmd.cli.command import Group, json_option, setting_option
from qmd.cli.session import session
from qmd.cli.terminal import confirmed, note, one_line, write, write_json
from qmd.kb import KnowledgeBase
from qmd.values import PhotoChange, PhotoWritten
from qmd.values.wire import to_wire


@click.group(
    "image",
    cls=Group,
    examples=(
        "qmd image tag ~/photos/paris.jpg --tag 家庭 --tag holiday --person 张三",
        "qmd image show ~/photos/paris.jpg",
    ),
)
def image() -> None:
    """Write tags and people into photos, show or propose them."""


@image.subcommand(
    "tag",
    examples=(
        "qmd image tag paris.jpg --tag 家庭 --tag holiday --person 张三",
        "qmd image tag paris.jpg --location Paris --description 'All of us'",
        "qmd image tag paris.jpg --tag night --append",
    ),
)
@click.argument("file", shell_complete=complete.files)
@click.option(
    "--tag", "tags", multiple=True, metavar="T", help="A keyword; repeatable, '' for none."
)
@click.option(
    "--person",
    "people",
    multiple=True,
    metavar="P",
    help="Someone in the photo; repeatable, '' for none.",
)
@click.option("--description", metavar="D", help="What is seen; '' empties it.")
@click.option("--location", metavar="L", help="Where it was taken; '' empties it.")
@click.option("--append", is_flag=True, help="Add to the lists; texts that are there stay.")
@setting_option("write_roots")
@json_option
def tag(
    file: str,
    tags: tuple[str, ...],
    people: tuple[str, ...],
    description: str | None,
    location: str | None,
    append: bool,
    as_json: bool,
) -> None:
    """
    Write metadata into a JPG, PNG or HEIC photo.

    The new values replace the old ones, unless --append is given; everything else in the photo
    stays as it is. Needs exiftool. Searches find the new words at once, if the
    photo belongs to a collection.
    """
    change = PhotoChange(_names(tags), _names(people), description, location)
    if change == PhotoChange():
        raise click.UsageError("Give at least one of --tag, --person, --description, --location.")
    with session().open(create=True) as kb:
        written = kb.images.write(Path(file).expanduser().absolute(), change, overwrite=not append)
    if as_json:
        write_json(tools.images.success(written))
        return
    outcome = "Written into" if written.changed else "Already so in"
    write(f"{outcome} {one_line(file)}\n")
    _tell_kept(written, "; leave --append out to replace it")


@image.subcommand(
    "describe",
    examples=(
        "qmd image describe paris.jpg --llm-model qwen2.5vl",
        "qmd image describe *.jpg --language Chinese --yes",
    ),
)
@click.argument("files", nargs=-1, required=True, shell_complete=complete.files)
@click.option(
    "--language", default="English", show_default=True, help="Of the description and the tags."
)
@click.option("-y", "--yes", is_flag=True, help="Write what is proposed without asking.")
@setting_option("llm_url")
@setting_option("llm_model")
@setting_option("llm_timeout")
@setting_option("write_roots")
@json_option
def describe(files: tuple[str, ...], language: str, yes: bool, as_json: bool) -> None:
    """
    Have a model that takes pictures propose a description and tags.

    The photo is sent to the server of --llm-url, smaller and without its metadata. Nothing is
    written before you agree; then the tags are added, and a description that is there stays.
    Without a terminal the proposals are printed alone, unless --yes is given.
    """
    asks = sys.stdin.isatty() and not as_json
    shown: list[dict[str, object]] = []
    with session().open(create=True) as kb:
        for file in files:
            path = Path(file).expanduser().absolute()
            proposal = kb.describe_photo(path, language=language)
            if not as_json:
                write(f"{one_line(file)}\n")
                write(f"  description: {one_line(proposal.description) or '-'}\n")
                write(f"  tags:        {one_line(', '.join(proposal.tags)) or '-'}\n")
                sys.stdout.flush()
            is_agreed = yes or (asks and confirmed("Write this into it?", default=False))
            if is_agreed:
                change = PhotoChange(
                    tags=proposal.tags or None, description=proposal.description or None
                )
                _tell_kept(kb.images.write(path, change, overwrite=False))
            shown.append({"file": file, **to_wire(proposal), "written": is_agreed})
    if as_json:
        write_json(shown)


def _tell_kept(written: PhotoWritten, remedy: str = "") -> None:
    for name in written.kept:
        note(f"The {name} that was there stays{remedy}.")
    if written.problem is not None:
        note(f"Not searchable yet: {written.problem}", style="warning")


def _names(values: tuple[str, ...]) -> tuple[str, ...] | None:
    """The values of a repeatable option: None if it was left out, () for a single ''."""
    return (() if values == ("",) else values) if values else None


@image.subcommand("show", examples=("qmd image show paris.jpg", "qmd image show paris.jpg --json"))
@click.argument("file", shell_complete=complete.files)
@json_option
def show(file: str, as_json: bool) -> None:
    """
    Print tags, people, description, location, date and camera.

    Needs neither exiftool nor a database.
    """
    photo = KnowledgeBase.photo_metadata(Path(file).expanduser())
    if as_json:
        write_json({"file": file, **to_wire(photo)})
    else:
        rows: dict[str, Any] = to_wire(photo)
        warnings = rows.pop("warnings")
        for name, value in rows.items():
            shown = ", ".join(value) if isinstance(value, list) else value or ""
            write(f"{name + ':':<13}{one_line(shown) if shown else '-'}\n")
        for warning in warnings:
            note(warning, style="warning")
