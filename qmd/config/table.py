"""
Lists the settings: the name, kind, description, command-line option and default of each.

``qmd config``, the options of the commands and the reader of ``config.toml`` take their texts
from here; ``docs/cli.md`` describes the settings for users.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from qmd.values.tool_calls import TOOL_CALL_MODES

Kind = Literal[
    "text", "texts", "path", "path_as_written", "paths", "database", "seconds", "count", "switch"
]
"""
The type of a setting's value: ``path`` is made absolute, ``path_as_written`` is not; ``paths`` are
an array in the file, and separated as in PATH elsewhere, ``texts`` by spaces;
``database`` is a ``path`` or the URL of a server; ``count`` is a whole number above 0; ``switch``
is true or false.
"""


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
    """

    name: str
    kind: Kind
    description: str
    option: str = ""
    metavar: str | None = None
    option_help: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()

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


_ROWS = (
    Setting("db", "database", "the database: a file, or postgresql://…", "--db", "FILE|URL"),
    Setting(
        "db_read",
        "database",
        "a streaming replica of db, which answers the reads of a server",
        "--db-read",
        "URL",
        "Read from this replica of the database while it is up to date.",
    ),
    Setting("model", "text", "the embedding model; unset means the built-in one"),
    Setting("cache_dir", "path", "where models are kept"),
    Setting(
        "vault",
        "path",
        "the directory of the notes tools; unset means the collections",
        "--vault",
        "DIR",
        "The directory of the notes tools; else all collections.",
    ),
    Setting(
        "posts_dir",
        "path_as_written",
        "the directory of the posts tools; unset means 'data' here",
        "--posts-dir",
        "DIR",
        "The directory of the posts tools; else 'data' here.",
    ),
    Setting(
        "write_roots",
        "paths",
        "below which directories tools may write; unset means the usual ones",
        "--write-root",
        "DIR",
        "Let tools write below DIR alone; repeat for several.",
    ),
    Setting(
        "push_folder",
        "path",
        "where a server keeps the folders that other machines push; unset means it takes none",
        "--push-folder",
        "DIR",
        "Take folders of other machines ('qmd server push'), and keep them in DIR.",
    ),
    Setting(
        "exiftool",
        "text",
        "the program that writes into photos; unset means the one on PATH",
    ),
    Setting(
        "editor",
        "text",
        "what opens hits: vscode, cursor, obsidian, vim, a command or a link",
        "--editor",
        "EDITOR",
        "Such as vscode, obsidian or vim; or a command.",
        default="$VISUAL, then $EDITOR",
    ),
    Setting(
        "pager",
        "text",
        "shows long output on a terminal, such as less; unset means nothing does",
    ),
    Setting(
        "llm_url",
        "text",
        "the language model's server; unset means DeepSeek",
        "--llm-url",
        "URL",
        "The server's address, as far as /v1.",
        default="https://api.deepseek.com",
    ),
    Setting(
        "llm_model",
        "text",
        "the language model; unset means deepseek-chat",
        "--llm-model",
        "NAME",
        "The model.",
        default="deepseek-chat",
    ),
    Setting("llm_key_file", "path", "a file of mode 600 that holds the server's key"),
    Setting(
        "llm_timeout",
        "seconds",
        "seconds to wait for the language model; unset means 120",
        "--timeout",
        "SECONDS",
        "Longest wait for the next piece of an answer.",
        default="120",
    ),
    Setting(
        "ask_timeout",
        "seconds",
        "seconds that all answers of qmd ask may take together; unset means 600",
        "--total-timeout",
        "SECONDS",
        "Longest time for all answers of the model together.",
        default="600",
    ),
    Setting(
        "llm_window",
        "count",
        "how many tokens the language model takes; unset means 32768",
        "--window",
        "TOKENS",
        "How many tokens the model takes; older turns of a conversation are cut to it.",
        default="32768",
    ),
    Setting(
        "llm_tool_calls",
        "text",
        "how the agent offers its tools to the model; unset means blocks",
        "--tool-calls",
        None,
        "Offer the tools by blocks in the prompt, natively, or natively if the server takes them.",
        default="blocks",
        choices=TOOL_CALL_MODES,
    ),
    Setting("expander", "text", "what writes other versions of a query: none, llm or llm:MODEL"),
    Setting(
        "reranker",
        "text",
        "what reorders the best hits: none, llm, rerank:MODEL, a model or folder",
    ),
    Setting("rerank_url", "text", "the server that reranks; unset means the language model's"),
    Setting("embed_url", "text", "the server of openai:MODEL; unset means the language model's"),
    Setting(
        "model_budget",
        "seconds",
        "seconds a query may wait for models, all together; unset means 3",
    ),
    Setting(
        "allow_insecure_key",
        "switch",
        "whether a key may leave this machine over plain http",
        "--allow-insecure-key",
        None,
        "Send a key over plain http, too, beyond this machine.",
    ),
    Setting(
        "allow_other_users",
        "switch",
        "whether a server without a token answers all users here",
        "--allow-other-users",
        None,
        "Without a token, answer all users of this machine, not you alone.",
    ),
    Setting(
        "allow_origins",
        "texts",
        "the origins whose web pages may use a server; unset means its own",
        "--allow-origin",
        "ORIGIN",
        "Let pages of this origin in, such as https://chat.example.org; repeat for several.",
    ),
    Setting(
        "ask_write",
        "switch",
        "whether qmd ask may write, if you agree each time",
        "--write",
        None,
        "Let the model write, after asking you each time.",
    ),
)

SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _ROWS}
