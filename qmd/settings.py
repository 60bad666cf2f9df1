"""
How a knowledge base works: `Settings`, the one value that `KnowledgeBase.open` takes for it.

`qmd.config` is what a person has set in files, flags and the environment; the command line
makes of it a value of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qmd.errors import ConfigError
from qmd.inference import llm
from qmd.records import dataclass, field

if TYPE_CHECKING:
    from qmd.inference.llm import LlmSettings
    from qmd.inference.llm.endpoint import ModelEndpoint
    from qmd.inference.protocols import Embedder, Expander, Reranker
    from qmd.values.location import ServerDatabase
    from qmd.values.pictures import Recogniser
    from qmd.values.proposed import Confirm
    from qmd.values.tool_calls import ToolCallMode

Role = Literal["llm", "rerank", "embed"]

#: Seconds that all model calls of one query may take together.
BUDGET_S = 3.0
#: Seconds that all answers of the language model to one question of a person may take together.
ANSWERS_S = 600.0
#: Tokens that most language models take: question, history, results of tools and answer.
WINDOW = 32_768
#: Where the posts are if nobody says so, below the working directory.
POSTS_DIR = "data"


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """
    The settings about models that are asked, in plain values.

    ``rerank_url`` and ``embed_url`` are None where ``llm_url`` serves these as well: without any of
    them only the language model has a server by default. ``key``
    reads the key of a server when it is needed (it raises ConfigError): no server is sent the
    key of another, and none one over plain http beyond this machine unless ``allow_insecure_key``.
    ``budget_s`` is for all calls of a query, ``timeout_s`` for one call that
    no query waits for (None: the usual time). ``answers_s`` is for all answers of the model to one
    question, and ``window`` how many tokens the model takes. ``tool_calls`` says how the agent
    offers its tools.
    """

    expander: str | None = None
    reranker: str | None = None
    llm_url: str | None = None
    llm_model: str | None = None
    rerank_url: str | None = None
    embed_url: str | None = None
    budget_s: float = BUDGET_S
    timeout_s: float | None = None
    answers_s: float = ANSWERS_S
    window: int = WINDOW
    tool_calls: ToolCallMode = "blocks"
    allow_insecure_key: bool = False
    key: Callable[[Role], str | None] = field(default=lambda _: None, repr=False)

    def embedding_server(self) -> ModelEndpoint:
        """What models named ``openai:MODEL`` ask. Raises ConfigError."""
        return llm.endpoint.ModelEndpoint(self.server("embed"))

    def server(self, role: Role = "llm", model: str = "") -> LlmSettings:
        """
        The server for a role, by default with the model of the settings.

        Raises:
            ConfigError: The address is none, or the key cannot be read; or no server is named for
                a role that has none by default.
        """
        url = {"llm": None, "rerank": self.rerank_url, "embed": self.embed_url}[role]
        if role != "llm" and not (url or self.llm_url):
            raise _no_server(role)
        holder: Role = role if url else "llm"
        return llm.LlmSettings(
            url=url or self.llm_url or llm.DEFAULT_URL,
            model=model or self.llm_model or llm.DEFAULT_MODEL,
            key=self.key(holder),
            timeout_s=self.timeout_s or llm.DEFAULT_TIMEOUT_S,
            key_variable=f"QMD_{holder.upper()}_API_KEY",
            allow_insecure_key=self.allow_insecure_key,
        )


def _no_server(role: Literal["rerank", "embed"]) -> ConfigError:
    if role == "rerank":
        return ConfigError(
            "Neither QMD_RERANK_URL (rerank_url) nor QMD_LLM_URL (llm_url) names a server.",
            hint="Set the first to the address of the server that reranks, such as "
            "http://localhost:8080/v1, or the second if the language model's server reranks.",
        )
    return ConfigError(
        "Neither QMD_EMBED_URL (embed_url) nor QMD_LLM_URL (llm_url) names a server.",
        hint="Set the first to the address of the server that makes vectors, such as "
        "http://localhost:11434/v1, or the second if the language model's server makes them.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    Everything about a knowledge base but its file. Each field has a default::

        KnowledgeBase.open("notes.sqlite", Settings(vault="~/vault", write_roots=["~/vault"]))

    Args:
        replica: The URL of a streaming replica of a database on a server. It answers reads as long
            as it has replayed what this process wrote; None without one.
        model: The name of the embedding model; None for the one of the database, or else the
            default.
        cache_dir: The directory where models are kept; None for the user's cache directory.
        embedder: Makes all vectors, instead of ``model``.
        expander: Expands queries, instead of what ``backends`` says.
        reranker: Reranks hits, instead of what ``backends`` says.
        ask_server: While the model is not in memory, a qmd server that runs for this database
            embeds the queries.
        backends: Which models expand and rerank queries, and where model servers are.
        vault: The directory of the notes tools; None for a vault made of the collections.
        posts_dir: The directory of the posts tools.
        write_roots: The directories in which tools may change files; none for the usual ones
            (`qmd.files.writing.policy`).
        push_folder: The directory for folders of other machines (`qmd server push`), in which tools
            change nothing; None takes none.
        read_only_files: Tools change no file.
        exiftool: The program that writes into photos; None for the one on PATH.
        plugins: The names of installed plugins whose formats, models and operations are used
            (`qmd.system.plugins`); they hold for the whole process.
        ocr: What reads the text in pictures: ``rapidocr``, if it is installed, ``none``, or what a
            program brings.
        save_to: ``collection/folder`` for saved pages; None for the folder ``saved`` of the first
            collection that may be written.
        inbox: ``collection/path`` of the note for thoughts, in which ``{{date}}``, ``{{time}}`` and
            ``{{title}}`` are replaced; None for ``Inbox.md`` of the first collection that may be
            written.
        inbox_template: ``collection/path`` of the note from which a new one of these is made; None
            for none.
        allow_private_addresses: Pages are also saved from this machine and from networks that are
            not public.
        confirm_writes: For those who hand the tools to a language model. It is called with
            each change that a tool is about to write (`qmd.values.proposed`); only when it
            returns True is the change written. Tools then write inside the collections and
            the vault alone (or in ``write_roots``), and never into files that steer other
            programs.
    """

    replica: str | Path | ServerDatabase | None = None
    model: str | None = None
    cache_dir: str | Path | None = None
    embedder: Embedder | None = None
    expander: Expander | None = None
    reranker: Reranker | None = None
    ask_server: bool = False
    backends: BackendSettings = field(default_factory=BackendSettings)
    vault: str | Path | None = None
    posts_dir: str | Path = POSTS_DIR
    write_roots: Sequence[str | Path] = ()
    push_folder: str | Path | None = None
    read_only_files: bool = False
    exiftool: str | Path | None = None
    plugins: Sequence[str] = ()
    ocr: Recogniser | Literal["rapidocr", "none"] = "rapidocr"
    save_to: str | None = None
    inbox: str | None = None
    inbox_template: str | None = None
    allow_private_addresses: bool = False
    confirm_writes: Confirm | None = None
