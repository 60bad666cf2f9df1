"""``qmd server token`` manages the tokens of clients; ``qmd server audit`` shows who wrote what."""

from __future__ import annotations

import click

from qmd.cli import complete
from qmd.cli.command import Group, command, json_option
from qmd.cli.listings import limit_options
from qmd.cli.render_reports import minute
from qmd.cli.session import session
from qmd.cli.terminal import beside, one_line, write, write_json
from qmd.values.access import AccessToken


@click.group(
    "token",
    cls=Group,
    examples=(
        "qmd server token create anna --read work,docs --write inbox --expires 90d",
        "qmd server token list",
        "qmd server token revoke anna",
    ),
)
def token() -> None:
    """Let clients of a server use some collections only."""


def _names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    names = (name.strip() for value in values for name in value.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


@command(
    "create",
    examples=(
        "qmd server token create anna --read work,docs",
        "qmd server token create agent --read docs --write inbox --expires 90d",
        "qmd server token create bea --read docs --push bea    # for qmd server push",
    ),
)
@click.argument("name")
@click.option(
    "--read",
    multiple=True,
    callback=_names,
    metavar="COLLECTION[,COLLECTION]...",
    shell_complete=complete.collections,
    help="Collections that clients may read.",
)
@click.option(
    "--write",
    "write_",
    multiple=True,
    callback=_names,
    metavar="COLLECTION[,COLLECTION]...",
    shell_complete=complete.collections,
    help="Collections that clients may read and write.",
)
@click.option(
    "--push",
    "push_",
    multiple=True,
    callback=_names,
    metavar="COLLECTION[,COLLECTION]...",
    help="Collections that clients may push and read; they need not exist yet.",
)
@click.option(
    "--expires",
    metavar="WHEN",
    help="Refuse it after this time: 90d, 12h, 2w, 1y or "
    "a date; without this option it does not expire.",
)
@json_option
def create(
    name: str,
    read: tuple[str, ...],
    write_: tuple[str, ...],
    push_: tuple[str, ...],
    expires: str | None,
    as_json: bool,
) -> None:
    """
    Create a token NAME, and print it once.

    Clients send it to a server as 'Authorization: Bearer TOKEN'. Other collections do not exist
    for them. The token itself is stored nowhere, only its hash.
    """
    with session().open(write=True) as kb:
        created = kb.create_token(name, read=read, write=write_, push=push_, expires=expires)
    if as_json:
        write_json(created)
        return
    write(f"{created.token}\n")
    click.echo(f"Token '{name}' {_described(created.stored)}. It is not shown again.", err=True)


@command("list", examples=("qmd server token list", "qmd server token list --json"))
@json_option
def list_(as_json: bool) -> None:
    """List the tokens: what they open, and when each was last used."""
    with session().open() as kb:
        tokens = kb.tokens()
    if as_json:
        write_json(tokens)
        return
    for each in tokens:
        used = f"last used {each.last_used}" if each.last_used else "never used"
        write(f"{one_line(each.name)}: {_described(each)}, {used}\n")
    if not tokens:
        write("No tokens. To make one: qmd server token create NAME --read COLLECTION\n")


@command("revoke", examples=("qmd server token revoke anna",), destroys=True)
@click.argument("name")
@json_option
def revoke(name: str, as_json: bool) -> None:
    """Remove the token NAME; servers refuse it from then on."""
    with session().open(write=True) as kb:
        removed = kb.revoke_token(name)
    if as_json:
        write_json(removed)
    else:
        write(f"Revoked token {one_line(removed.name)}\n")


def _described(token: AccessToken) -> str:
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
    return one_line(", ".join(parts))


token.add_command(create)
token.add_command(list_)
token.add_command(revoke)


@command(
    "audit",
    pages=True,
    examples=("qmd server audit --since 7d --token anna", "qmd server audit --json"),
)
@click.option("--since", metavar="WHEN", help="Only since 7d, yesterday, 2026-11 or another date.")
@click.option(
    "--token",
    "name",
    metavar="NAME",
    help="Only what was written with this token; '' for the administrator.",
)
@limit_options(100, most=100_000)
@json_option
def audit(since: str | None, name: str | None, limit: int | None, as_json: bool) -> None:
    """
    Show who wrote what, and when, the latest first.

    It has every file that tools wrote, and every change of collections, contexts and tokens, of the
    last 400 days, at most 100,000 entries.
    """
    with session().open() as kb:
        entries = kb.audit(since=since, token=name, limit=limit)
    if as_json:
        write_json(entries)
        return
    for entry in entries:
        who = entry.actor or "(administrator)"
        what = one_line(f"{minute(entry.at)}  {who}  {entry.face}  {entry.action}")
        write(beside(what, one_line(entry.target), 0) + "\n")
    if not entries:
        write("Nothing was written.\n")
