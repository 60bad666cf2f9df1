"""
Settings: command-line flag, then environment, then ``config.toml``, then default.

Only the faces read this module; everything below is handed plain values. The file lies in
the user's config directory (``~/.config/qmd/config.toml`` on Linux), and the values are::

    db = "~/notes/index.sqlite"      # QMD_DB
    model = "multilingual-e5-small"  # QMD_MODEL
    cache_dir = "~/.cache/qmd"       # QMD_CACHE_DIR
    vault = "~/vault"                # QMD_VAULT
    posts_dir = "~/posts"            # QMD_POSTS_DIR
    write_roots = ["~/notes"]        # QMD_WRITE_ROOTS, separated as in PATH
    exiftool = "/opt/bin/exiftool"   # QMD_EXIFTOOL
    llm_url = "http://localhost:11434/v1"  # QMD_LLM_URL
    llm_model = "qwen3:8b"           # QMD_LLM_MODEL
    llm_key_file = "~/.secrets/llm"  # QMD_LLM_KEY_FILE; the key itself is never a setting
    llm_timeout = 120                # QMD_LLM_TIMEOUT, in seconds
    expander = "llm"                 # QMD_EXPANDER
    reranker = "rerank:bge-reranker-v2-m3"  # QMD_RERANKER
    rerank_url = "http://localhost:8012/v1"  # QMD_RERANK_URL
    embed_url = "http://localhost:8080/v1"   # QMD_EMBED_URL
    model_budget = 3                 # QMD_MODEL_BUDGET, in seconds
    allow_insecure_key = true        # QMD_ALLOW_INSECURE_KEY: true or false
    allow_other_users = true         # QMD_ALLOW_OTHER_USERS: true or false
    ask_write = true                 # QMD_ASK_WRITE: true or false

A relative path in the file is relative to the file's directory, elsewhere to the working
directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qmd.errors import ConfigError

# name: (what it is, whether it is a path)
SETTINGS: dict[str, tuple[str, bool]] = {
    "db": ("the database file", True),
    "model": ("the embedding model; unset means the embedded one", False),
    "cache_dir": ("where models are kept", True),
    "vault": ("the directory of the notes tools; unset means the collections", True),
    "posts_dir": ("the directory of the posts tools; unset means 'data' here", True),
    "write_roots": ("below which directories tools may write; unset means the usual ones", True),
    "exiftool": ("the program that writes into photos; unset means the one on PATH", False),
    "llm_url": ("the language model's server; unset means DeepSeek", False),
    "llm_model": ("the language model; unset means deepseek-chat", False),
    "llm_key_file": ("a file of mode 600 that holds the server's key", True),
    "llm_timeout": ("seconds to wait for the language model; unset means 120", False),
    "expander": ("what asks in other words, too: none, llm or llm:MODEL", False),
    "reranker": ("what reorders the best hits: none, llm, rerank:MODEL, a model or folder", False),
    "rerank_url": ("the server that reranks; unset means the language model's", False),
    "embed_url": ("the server of openai:MODEL; unset means the language model's", False),
    "model_budget": ("seconds a query may wait for models, all together; unset means 3", False),
    "allow_insecure_key": ("whether a key may leave this machine over plain http", False),
    "allow_other_users": ("whether a server without a token answers all users here", False),
    "ask_write": ("whether qmd ask may write, if you agree each time", False),
}
#: Settings that are several paths: an array in the file, separated as in PATH elsewhere.
_LISTS = frozenset({"write_roots"})
#: Settings that may be written as a number, too.
_NUMBERS = frozenset({"llm_timeout", "model_budget"})
#: Settings that are true or false; text that says so will do, as it must in the environment.
_SWITCHES = frozenset({"allow_insecure_key", "allow_other_users", "ask_write"})


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings in force; ``sources`` says of each where it came from."""

    db: Path
    model: str | None
    cache_dir: Path
    vault: Path | None
    posts_dir: Path
    write_roots: tuple[Path, ...]
    exiftool: str | None
    llm_url: str | None
    llm_model: str | None
    llm_key_file: Path | None
    llm_timeout: float | None
    expander: str | None
    reranker: str | None
    rerank_url: str | None
    embed_url: str | None
    model_budget: float | None
    allow_insecure_key: bool
    allow_other_users: bool
    ask_write: bool
    config_file: Path
    sources: Mapping[str, str]


def env_name(setting: str) -> str:
    return f"QMD_{setting.upper()}"


def load_settings(
    *,
    db: str | None = None,
    index: str | None = None,
    flags: Mapping[str, str | Sequence[str] | None] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """
    Find every setting.

    Args:
        db: The flag ``--db``.
        index: The flag ``--index``: the database of this name beside the default one.
        flags: Other flags, by the setting they set; None and empty ones were not given.
        environ: Instead of the process's environment.

    Raises:
        ConfigError: The file is unreadable, is no TOML, or holds an unknown or ill-typed key;
            or a value is no number, or neither true nor false.
        InputError: ``index`` is no file name.
    """
    environ = os.environ if environ is None else environ
    config_file = user_dir("config", environ) / "config.toml"
    in_file = _read(config_file)
    given: dict[str, list[str]] = {}
    sources: dict[str, str] = {}
    for name, (_, is_path) in SETTINGS.items():
        flag, variable = (flags or {}).get(name), environ.get(env_name(name))
        if flag:
            given[name] = [flag] if isinstance(flag, str) else list(flag)
            option = name.removesuffix("s") if name in _LISTS else name
            sources[name] = "--" + option.replace("_", "-")
        elif variable:
            given[name] = variable.split(os.pathsep) if name in _LISTS else [variable]
            sources[name] = env_name(name)
        elif name in in_file:
            given[name], sources[name] = in_file[name], str(config_file)
            if is_path:
                there = config_file.parent
                given[name] = [str(there / os.path.expanduser(each)) for each in given[name]]  # noqa: PTH111
        else:
            sources[name] = "default"
    values = {name: parts[0] for name, parts in given.items()}
    if db is not None:
        values["db"], sources["db"] = db, "--db"
    elif index is not None:
        values["db"], sources["db"] = str(_named_index(index, environ)), "--index"
    return Configuration(
        db=_path(values.get("db")) or user_dir("data", environ) / "index.sqlite",
        model=values.get("model"),
        cache_dir=_path(values.get("cache_dir")) or user_dir("cache", environ),
        vault=_path(values.get("vault")),
        posts_dir=Path(values.get("posts_dir") or "data"),
        write_roots=tuple(
            path for each in given.get("write_roots", ()) if (path := _path(each)) is not None
        ),
        exiftool=values.get("exiftool"),
        llm_url=values.get("llm_url"),
        llm_model=values.get("llm_model"),
        llm_key_file=_path(values.get("llm_key_file")),
        llm_timeout=_seconds(values.get("llm_timeout"), sources["llm_timeout"]),
        expander=values.get("expander"),
        reranker=values.get("reranker"),
        rerank_url=values.get("rerank_url"),
        embed_url=values.get("embed_url"),
        model_budget=_seconds(values.get("model_budget"), sources["model_budget"]),
        allow_insecure_key=_switch(values.get("allow_insecure_key"), sources["allow_insecure_key"]),
        allow_other_users=_switch(values.get("allow_other_users"), sources["allow_other_users"]),
        ask_write=_switch(values.get("ask_write"), sources["ask_write"]),
        config_file=config_file,
        sources=sources,
    )


def user_dir(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """
    The user's ``config``, ``data`` or ``cache`` directory for qmd, as platformdirs has it.

    On Linux it is worked out here: importing platformdirs takes as long as a whole search.
    """
    environ = os.environ if environ is None else environ
    if sys.platform == "linux" and "ANDROID_DATA" not in environ:
        base = environ.get(f"XDG_{kind.upper()}_HOME", "").strip()
        if not os.path.isabs(base):  # noqa: PTH117 - the XDG rule: a relative path is ignored
            default = {"config": ".config", "data": ".local/share", "cache": ".cache"}[kind]
            base = os.path.join(os.path.expanduser("~"), default)  # noqa: PTH111, PTH118
        return Path(base) / "qmd"
    import platformdirs

    directory: Path = getattr(platformdirs, f"user_{kind}_path")("qmd", appauthor=False)
    return directory


def _path(value: str | None) -> Path | None:
    if not value:
        return None
    return Path(os.path.abspath(os.path.expanduser(value)))  # noqa: PTH100, PTH111


def _seconds(value: str | None, source: str) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"Not a number of seconds in {source}: {value}", hint="For example: 120")
    return seconds


def _switch(value: str | None, source: str) -> bool:
    text = (value or "false").strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise ConfigError(f"Neither true nor false in {source}: {value}", hint="Give true or false.")


def _named_index(name: str, environ: Mapping[str, str]) -> Path:
    if not name or name.startswith(".") or any(c in name for c in "/\\\0"):
        from qmd.errors import InputError

        raise InputError(
            f"Not a name for an index: {name!r}",
            hint="--index takes a plain name such as 'work'; a path goes to --db.",
        )
    return user_dir("data", environ) / f"{name}.sqlite"


def _read(file: Path) -> dict[str, list[str]]:
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(
            f"Cannot read {file}: {error.strerror}", hint="Make the file readable or move it away."
        ) from error
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{file} is not TOML: {error}",
            hint="Mend the file, for example: db = '~/qmd.sqlite'",
        ) from error
    for key, value in found.items():
        if key not in SETTINGS:
            raise ConfigError(f"Unknown setting in {file}: {key}", hint=_known(key))
        if key in _NUMBERS and type(value) in (int, float):
            value = str(value)  # noqa: PLW2901
        if key in _SWITCHES and type(value) in (bool, int):
            value = str(value).lower()  # noqa: PLW2901
        several = value if key in _LISTS and isinstance(value, list) else [value]
        if not several or not all(isinstance(each, str) and each for each in several):
            kind = "an array of strings" if key in _LISTS else "a string"
            example = '["…", "…"]' if key in _LISTS else '"…"'
            raise ConfigError(
                f"Setting {key} in {file} must be {kind} that is not empty.",
                hint=f"For example: {key} = {example}; a line that is not there means the default.",
            )
        found[key] = several
    return found


def _known(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, SETTINGS, n=1)
    if near:
        return f"Did you mean: {near[0]}"
    return "Known settings: " + ", ".join(SETTINGS)
