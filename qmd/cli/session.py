"""The session of one command: its settings, and the database that it opens."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import qmd
from qmd import cli, libraries
from qmd.config import Configuration, load_settings
from qmd.errors import DatabaseMissingError, InputError
from qmd.system.session import name_process
from qmd.system.user_dirs import is_missing, is_writable

if TYPE_CHECKING:
    from qmd.inference.llm import LlmSettings
    from qmd.kb import KnowledgeBase
    from qmd.settings import BackendSettings, Role
    from qmd.values import Progress
    from qmd.values.location import DatabaseLocation


def lasting_name(database: DatabaseLocation) -> str:
    """
    The path or URL of a database, for a file of another program.

    Raises:
        InputError: Its URL holds a password, which such files show.
    """
    if isinstance(database, Path):
        return str(database)
    if database.secrets:
        raise InputError(
            "The URL of the database holds a password, which would stand in a file or in the"
            " list of processes.",
            hint="Put the password into ~/.pgpass, leave it out of the URL, and try again. See"
            " docs/postgresql.md.",
        )
    return database.url


class Session:
    """The global options and the settings of one command; ``ctx.obj`` in click."""

    def __init__(self) -> None:
        self.db: str | None = None
        self.index: str | None = None
        self.flags: dict[str, str | Sequence[str] | None] = {}  # setting → value of its option
        self.command = "qmd"  # the command as the user typed it
        self.interrupted = "Nothing is lost."  # the message that Ctrl-C prints
        self._settings: Configuration | None = None

    @property
    def settings(self) -> Configuration:
        if self._settings is None:
            if self.db is not None and self.index is not None:
                context = libraries.click.get_current_context(silent=True)
                raise libraries.click.UsageError("--db and --index exclude each other.", context)
            self._settings = load_settings(db=self.db, index=self.index, flags=self.flags)
        return self._settings

    @property
    def database_option(self) -> str:
        """The option that a command in a hint needs to use the same database; may be empty."""
        if self.db is None and self.index is None:
            return ""
        return f" --db {libraries.shlex.quote(str(self.settings.db))}"

    def database_arguments(self) -> list[str]:
        """
        The arguments that name the database where they stay: in a file of another program.

        Raises:
            InputError: Its URL holds a password, which such files show.
        """
        return ["--db", lasting_name(self.settings.db)]

    def existing_database(self) -> DatabaseLocation:
        """
        The database of the settings.

        Raises:
            DatabaseMissingError: There is none; the hint has the commands that create one.
        """
        database = self.settings.db
        if is_missing(database):
            raise DatabaseMissingError(
                f"No database at {database}",
                hint=f"Run 'qmd up FOLDER{self.database_option}' or"
                f" 'qmd collection add FOLDER{self.database_option}' first.",
            )
        return database

    def open(
        self,
        *,
        create: bool = False,
        write: bool = False,
        ask_server: bool = False,
        read_only_files: bool = False,
        use_replica: bool = False,
    ) -> KnowledgeBase:
        """
        Open the database of the settings.

        Args:
            create: Create the database if it does not exist.
            write: Open the database for writing; ``create`` does so too.
            ask_server: Let a running server embed queries while no model is loaded here.
            read_only_files: Forbid the tools to change files.
            use_replica: Read from the replica of the settings: for servers, and for status.

        Raises:
            DatabaseMissingError: As `existing_database`.
        """
        settings = self.settings
        if write or create:
            name_process("cli")
        database = settings.db if create else self.existing_database()
        chosen = qmd.settings.Settings(
            replica=settings.db_read if use_replica else None,
            model=settings.model,
            cache_dir=settings.cache_dir,
            ask_server=ask_server,
            backends=self._backends(),
            vault=settings.vault,
            posts_dir=settings.posts_dir,
            write_roots=settings.write_roots,
            push_folder=settings.push_folder,
            read_only_files=read_only_files,
            exiftool=settings.exiftool,
            plugins=settings.plugins,
            ocr="none" if settings.ocr == "none" else "rapidocr",
            save_to=settings.save_to,
            inbox=settings.inbox,
            inbox_template=settings.inbox_template,
            allow_private_addresses=settings.allow_private_addresses,
        )
        with cli.terminal.progress_bar_if_needed() as progress:

            def tell(tick: Progress) -> None:
                if tick.stage == "migrate" and not tick.done:
                    cli.terminal.note(
                        "The database is of an earlier version. It is brought up to date; earlier"
                        " versions cannot use it then."
                    )
                progress(tick)

            return qmd.KnowledgeBase.open(
                database,
                chosen,
                create=create,
                read_only=not (write or create),
                progress=tell,
            )

    def remembers(self) -> bool:
        """Whether searches use models whose answers the database caches."""
        configuration = self.settings
        stages = [
            model
            for model in (configuration.expander, configuration.reranker)
            if model and model != "none"
        ]
        is_remote_model = (configuration.model or "").startswith("openai:")
        return bool(stages or is_remote_model) and is_writable(configuration.db)

    def _backends(self) -> BackendSettings:
        configuration = self.settings

        def key(role: Role) -> str | None:
            read_key = qmd.inference.llm.read_key
            if role == "llm":
                url = configuration.llm_url or qmd.inference.llm.DEFAULT_URL
                return read_key(os.environ, configuration.llm_key_file, url=url)
            # The key of the language model must not be sent to another server.
            url = {"rerank": configuration.rerank_url, "embed": configuration.embed_url}[role] or ""
            return read_key(os.environ, url=url, variable=f"QMD_{role.upper()}_API_KEY")

        return qmd.settings.BackendSettings(
            expander=configuration.expander,
            reranker=configuration.reranker,
            llm_url=configuration.llm_url,
            llm_model=configuration.llm_model,
            rerank_url=configuration.rerank_url,
            embed_url=configuration.embed_url,
            budget_s=configuration.model_budget or qmd.settings.BUDGET_S,
            timeout_s=configuration.llm_timeout,
            answers_s=configuration.ask_timeout or qmd.settings.ANSWERS_S,
            window=configuration.llm_window or qmd.settings.WINDOW,
            tool_calls=configuration.llm_tool_calls,
            allow_insecure_key=configuration.allow_insecure_key,
            key=key,
        )

    def llm(self) -> LlmSettings:
        """
        The language model that the settings name, with the key of its server.

        Raises:
            ConfigError: A setting is wrong, or the key cannot be read.
        """
        return self._backends().server()

    def set_flag(self, name: str, value: str | Sequence[str] | None) -> None:
        """Set a setting by the option of a command; the last option counts."""
        if value:
            self.flags[name] = value
            self._settings = None


_without_click: list[Session] = []


@contextmanager
def running(session: Session) -> Iterator[None]:
    """Make this the session of a command that runs without click."""
    _without_click.append(session)
    try:
        yield
    finally:
        _without_click.pop()


def session() -> Session:
    """The session of the running command."""
    if _without_click:
        return _without_click[-1]
    current = libraries.click.get_current_context().find_object(Session)
    assert current is not None
    return current
