"""
Completes arguments and options for the shell: documents, collections, tags, properties, models.

Each function is the ``shell_complete`` of a parameter. `shell_completion` has the scripts that the
shells run. A shell shows errors in the middle of the command line, so if the database cannot be
read, there are no completions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING

from qmd import system
from qmd.cli.session import Session
from qmd.errors import QmdError
from qmd.system.user_dirs import user_dir
from qmd.values.text import one_line

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from qmd.config import Setting
    from qmd.kb import KnowledgeBase

    Items = list[CompletionItem[str]]

#: What click calls with the context, the parameter and what was typed of its value.
Completions = Callable[["click.Context", "click.Parameter", str], "Items"]

#: The most completions; a shell asks before it shows as many.
MOST = 500

#: The most characters of the help text of a command.
SHORT_HELP = 66

#: Kinds of completions besides click's "plain", "file" and "dir".
DOCUMENT = "path"
FOLDER = "part"  # the user goes on typing after it, so the shell adds no space


def commands(
    group: click.Group, names: Iterable[str], ctx: click.Context, incomplete: str
) -> Items:
    """Those of the commands of a group; each is imported only if the shell shows its help text."""
    from click.shell_completion import CompletionItem

    class CommandItem(CompletionItem):  # before click 8.5 it is not generic
        def __getattribute__(self, name: str) -> object:
            if name == "help":
                command = group.get_command(ctx, self.value)
                return None if command is None else command.get_short_help_str(SHORT_HELP)
            return super().__getattribute__(name)

    return [CommandItem(name) for name in names if name.startswith(incomplete)]


def _from_database(read: Callable[[KnowledgeBase, str], Items]) -> Completions:
    """What a function reads for the beginning that was typed; nothing if it cannot be read."""

    @wraps(read)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        try:
            with ctx, ctx.ensure_object(Session).open() as kb:
                return read(kb, incomplete)
        except (QmdError, OSError):
            return []

    return complete


def documents(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """
    Documents, folder by folder; or file names, as long as no collection begins so.

    A path on the disk, which ``/``, ``~`` or ``.`` begins, is completed by the shell.
    """
    on_disk = incomplete.startswith(("/", "~", "./", "../"))
    return (files if on_disk else _documents)(ctx, param, incomplete)


@_from_database
def _documents(kb: KnowledgeBase, incomplete: str) -> Items:
    scheme = "qmd://" if incomplete.startswith("qmd://") else ""
    prefix = incomplete.removeprefix("qmd://")
    names = [name for name in kb.paths_from(prefix, limit=MOST) if name.isprintable()]
    if not names and not scheme and "/" not in prefix:
        # A file name alone also names a document, and begins with what was typed.
        paths = kb.files_named(prefix, limit=MOST)
        names = list(dict.fromkeys(path.rpartition("/")[2] for path in paths))
    return [
        _item(scheme + name, FOLDER if name.endswith("/") else DOCUMENT)
        for name in names
        if name.isprintable()
    ]


def documents_or_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Documents; files on the disk if no document begins so."""
    return documents(ctx, param, incomplete) or files(ctx, param, incomplete)


def _rows(read: Callable[[KnowledgeBase], Iterable[tuple[str, str]]]) -> Completions:
    """Those that begin with what was typed, of values with help texts from the database."""
    return _from_database(lambda kb, incomplete: _items(read(kb), incomplete))


#: Names of collections, with their directories.
collections = _rows(lambda kb: sorted((each.name, each.path) for each in kb.collections()))


@_from_database
def tags(kb: KnowledgeBase, incomplete: str) -> Items:
    """Tags that documents have, with the number of documents."""
    mark = "#" if incomplete.startswith("#") else ""
    counts = kb.tags(limit=1000).tags
    return _items(((mark + each.tag, str(each.documents)) for each in counts), incomplete)


def _keys(kb: KnowledgeBase) -> Iterable[tuple[str, str]]:
    return ((each.key, "") for each in kb.properties())


#: Properties that documents have.
property_keys = _rows(_keys)

#: What documents can be sorted by.
sort_keys = _rows(lambda kb: [("date", ""), ("title", ""), *_keys(kb)])


@_from_database
def conditions(kb: KnowledgeBase, incomplete: str) -> Items:
    """``KEY:VALUE``: first the properties, then the values of one."""
    key, colon, _ = incomplete.partition(":")
    if not colon:
        return [_item(f"{item.value}:", FOLDER) for item in _items(_keys(kb), incomplete)]
    values = kb.property_values(key, limit=MOST)
    return _items(((f"{key}:{each.value}", "") for each in values), incomplete)


#: Models, those of the database first; takes 0.7 s, because fastembed lists most of them.
models = _rows(
    lambda kb: ((model.name, "") for model in kb.models.list() if model.kind != "english")
)

#: Authors of posts.
authors = _rows(lambda kb: ((name, "") for name in kb.posts.authors()))

#: Ids of conversations, with their names.
chats = _rows(lambda kb: ((chat.id, chat.name) for chat in kb.chats(limit=100).chats))


def indexes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of the databases beside the default one."""
    names = sorted(path.stem for path in user_dir("data").glob("*.sqlite"))
    return _items(((name, "") for name in names if name != "index"), incomplete)


def editors(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Names of editors."""
    return _items(((name, "") for name in system.editors.EDITORS), incomplete)


def setting(setting: Setting) -> Completions | None:
    """What completes the option of a setting."""
    if setting.name == "editor":
        return editors
    return folders if setting.is_path else None


def listed(names: Iterable[str]) -> Completions:
    """Completes the last of several names that commas separate."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        before, comma, last = incomplete.rpartition(",")
        return [
            _item(f"{before}{comma}{name}")
            for name in names
            if name.startswith(last) and name not in before.split(",")
        ]

    return complete


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Files on the disk, which the shell completes."""
    return [_item(incomplete, "file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Directories on the disk, which the shell completes."""
    return [_item(incomplete, "dir")]


def _items(rows: Iterable[tuple[str, str]], incomplete: str) -> Items:
    """Those of the values, each with a help text, that begin with what was typed."""
    begin = incomplete.casefold()
    matching = [
        _item(value, help_text=help_text)
        for value, help_text in rows
        if value.casefold().startswith(begin) and value.isprintable()
    ]
    return matching[:MOST]


def _item(value: str, kind: str = "plain", help_text: str = "") -> CompletionItem[str]:
    from click.shell_completion import CompletionItem

    # A line end would make another completion of the rest.
    return CompletionItem(value, type=kind, help=one_line(help_text) or None)
