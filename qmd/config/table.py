"""
Lists the settings, each with its type, kind, description, command-line option and default.

``qmd config``, the options of the commands and the reader of ``config.toml`` take their texts
from here; ``docs/cli.md`` describes the settings for users.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from qmd.records import NamedTuple
from qmd.values.tool_calls import TOOL_CALL_MODES, ToolCallMode

if TYPE_CHECKING:
    from qmd.values.location import DatabaseLocation

#: The type of a setting's value: ``path`` is made absolute, ``path_as_written`` is not; ``paths``
#: are an array in the file, and separated as in PATH elsewhere, ``texts`` by spaces; ``database``
#: is a ``path`` or the URL of a server; ``count`` is a whole number above 0; ``switch`` is true or
#: false.
Kind = Literal[
    "text", "texts", "path", "path_as_written", "paths", "database", "seconds", "count", "switch"
]


# A NamedTuple, because a frozen dataclass takes four times as long to define, and every command
# imports this module.
class Setting(NamedTuple):
    """
    One setting.

    Attributes:
        option: The command-line option that sets it; "" if no command has one.
        option_help: The help of that option.
        default: The default in the help; "" to name none there.
        choices: The words that the value may be; none for any.
        name: That of its attribute of `Configuration`.
    """

    kind: Kind
    description: str
    option: str = ""
    metavar: str | None = None
    option_help: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()
    name: str = ""

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"QMD_{self.name.upper()}"

    @property
    def is_path(self) -> bool:
        return self.kind in ("path", "path_as_written", "paths", "database")

    @property
    def is_list(self) -> bool:
        return self.kind in ("paths", "texts")

    @property
    def help(self) -> str:
        """The help of the option, which ends with the variable and the default."""
        default = f"; default: {self.default}" if self.default else ""
        return f"{self.option_help}  [env: {self.variable}{default}]"


_setting: Any = Setting  # what stands in a class for a value is taken for one by type checkers


class Configuration:
    """
    The settings in force.

    ``sources`` names for each setting where its value came from: an option, a variable, the file
    or "default".
    """

    def __init__(
        self, values: Mapping[str, Any], sources: Mapping[str, str], config_file: Path
    ) -> None:
        vars(self).update(values)
        self.sources = sources
        self.config_file = config_file

    db: DatabaseLocation = _setting(
        "database", "the database: a file, or postgresql://…", "--db", "FILE|URL"
    )
    db_read: DatabaseLocation | None = _setting(
        "database",
        "a streaming replica of db, which answers the reads of a server",
        "--db-read",
        "URL",
        "Read from this replica of the database while it is up to date.",
    )
    model: str | None = _setting("text", "the embedding model; unset means the built-in one")
    cache_dir: Path = _setting("path", "where models are kept")
    vault: Path | None = _setting(
        "path",
        "the directory of the notes tools; unset means the collections",
        "--vault",
        "DIR",
        "The directory of the notes tools; else all collections.",
    )
    posts_dir: Path = _setting(
        "path_as_written",
        "the directory of the posts tools; unset means 'data' here",
        "--posts-dir",
        "DIR",
        "The directory of the posts tools; else 'data' here.",
    )
    write_roots: tuple[Path, ...] = _setting(
        "paths",
        "below which directories tools may write; unset means the usual ones",
        "--write-root",
        "DIR",
        "Let tools write below DIR alone; repeat for several.",
    )
    push_folder: Path | None = _setting(
        "path",
        "where a server keeps the folders that other machines push; unset means it takes none",
        "--push-folder",
        "DIR",
        "Take folders of other machines ('qmd server push'), and keep them in DIR.",
    )
    exiftool: str | None = _setting(
        "text",
        "the program that writes into photos; unset means the one on PATH",
    )
    editor: str | None = _setting(
        "text",
        "what opens hits: vscode, cursor, obsidian, vim, a command or a link",
        "--editor",
        "EDITOR",
        "Such as vscode, obsidian or vim; or a command.",
        default="$VISUAL, then $EDITOR",
    )
    pager: str | None = _setting(
        "text",
        "shows long output on a terminal, such as less; unset means nothing does",
    )
    llm_url: str | None = _setting(
        "text",
        "the language model's server; unset means DeepSeek",
        "--llm-url",
        "URL",
        "The server's address, as far as /v1.",
        default="https://api.deepseek.com",
    )
    llm_model: str | None = _setting(
        "text",
        "the language model; unset means deepseek-chat",
        "--llm-model",
        "NAME",
        "The model.",
        default="deepseek-chat",
    )
    llm_key_file: Path | None = _setting("path", "a file of mode 600 that holds the server's key")
    llm_timeout: float | None = _setting(
        "seconds",
        "seconds to wait for the language model; unset means 120",
        "--timeout",
        "SECONDS",
        "Longest wait for the next piece of an answer.",
        default="120",
    )
    ask_timeout: float | None = _setting(
        "seconds",
        "seconds that all answers of qmd ask may take together; unset means 600",
        "--total-timeout",
        "SECONDS",
        "Longest time for all answers of the model together.",
        default="600",
    )
    llm_window: int | None = _setting(
        "count",
        "how many tokens the language model takes; unset means 32768",
        "--window",
        "TOKENS",
        "How many tokens the model takes; older turns of a conversation are cut to it.",
        default="32768",
    )
    llm_tool_calls: ToolCallMode = _setting(
        "text",
        "how the agent offers its tools to the model; unset means blocks",
        "--tool-calls",
        None,
        "Offer the tools by blocks in the prompt, natively, or natively if the server takes them.",
        default="blocks",
        choices=TOOL_CALL_MODES,
    )
    expander: str | None = _setting(
        "text", "what writes other versions of a query: none, llm or llm:MODEL"
    )
    reranker: str | None = _setting(
        "text",
        "what reorders the best hits: none, llm, rerank:MODEL, a model or folder",
    )
    rerank_url: str | None = _setting(
        "text", "the server that reranks; unset means the language model's"
    )
    embed_url: str | None = _setting(
        "text", "the server of openai:MODEL; unset means the language model's"
    )
    model_budget: float | None = _setting(
        "seconds",
        "seconds a query may wait for models, all together; unset means 3",
    )
    allow_insecure_key: bool = _setting(
        "switch",
        "whether a key may leave this machine over plain http",
        "--allow-insecure-key",
        None,
        "Send a key over plain http, too, beyond this machine.",
    )
    allow_other_users: bool = _setting(
        "switch",
        "whether a server without a token answers all users here",
        "--allow-other-users",
        None,
        "Without a token, answer all users of this machine, not you alone.",
    )
    allow_origins: tuple[str, ...] = _setting(
        "texts",
        "the origins whose web pages may use a server; unset means its own",
        "--allow-origin",
        "ORIGIN",
        "Let pages of this origin in, such as https://chat.example.org; repeat for several.",
    )
    plugins: tuple[str, ...] = _setting(
        "texts",
        "the plugins whose formats, models and operations are used; 'qmd plugins' lists them",
    )
    ocr: str = _setting(
        "text",
        "what reads the text in pictures: rapidocr, where it is installed, or none",
        default="rapidocr",
        choices=("rapidocr", "none"),
    )
    save_to: str | None = _setting(
        "text", "the collection/folder for saved pages; unset means 'saved' in the first collection"
    )
    inbox: str | None = _setting(
        "text",
        "the note for thoughts, such as notes/{{date}}.md, notes/in/{{title}}.md or {{daily}};"
        " unset means Inbox.md in the first collection",
    )
    inbox_template: str | None = _setting(
        "text", "the note from which new notes for thoughts are made; unset means none"
    )
    allow_private_addresses: bool = _setting(
        "switch",
        "whether pages are also saved from this machine and networks that are not public",
        "--allow-private-addresses",
        None,
        "Save pages of this machine and of networks that are not public, too.",
    )
    ask_write: bool = _setting(
        "switch",
        "whether qmd ask may write, if you agree each time",
        "--write",
        None,
        "Let the model write, after asking you each time.",
    )


SETTINGS: dict[str, Setting] = {
    name: each._replace(name=name)
    for name, each in vars(Configuration).items()
    if isinstance(each, Setting)
}
