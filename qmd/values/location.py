"""Where a database is: a file of SQLite, or a database on a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from qmd import lazy
from qmd.errors import ConfigError

SCHEMES = ("postgresql", "postgres")
#: What people see instead of a password.
_HIDDEN = "***"
_HOST = lazy.pattern(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")
_SCHEME = lazy.pattern(r"[A-Za-z][A-Za-z0-9+.-]+://")


class ServerDatabase:
    """
    A database on a PostgreSQL server.

    ``str()``, ``repr()`` and formatting give its name without the password. Only what connects
    uses ``url``. It is no tuple or dataclass, because programs print the fields of those.
    """

    __slots__ = ("url",)

    def __init__(self, url: str) -> None:
        self.url = url

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServerDatabase) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __str__(self) -> str:
        """The URL without passwords, for people, logs and answers."""
        parts = urlsplit(self.url)
        user, _, host = parts.netloc.rpartition("@")
        name, colon, _ = user.partition(":")
        if user:
            host = f"{name}{colon and ':' + _HIDDEN}@{host}"
        options = [
            (key, _HIDDEN if _is_secret(key) else value)
            for key, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        return urlunsplit(parts._replace(netloc=host, query=urlencode(options, safe="/*,")))

    def __repr__(self) -> str:
        return f"ServerDatabase({str(self)!r})"

    @property
    def name(self) -> str:
        """The name of the database on its server; "" if the URL leaves it to the server."""
        return unquote(urlsplit(self.url).path.lstrip("/"))

    @property
    def secrets(self) -> list[str]:
        """The passwords in the URL, as written and decoded; no message may repeat them."""
        parts = urlsplit(self.url)
        written = [parts.netloc.rpartition("@")[0].partition(":")[2]]
        for option in parts.query.split("&"):
            key, _, value = option.partition("=")
            if _is_secret(key):
                written.append(value)
        return [secret for each in written if each for secret in {each, unquote(each)}]


def _is_secret(option: str) -> bool:
    """Whether an option of a URL holds a password, perhaps under a name that is misspelt."""
    return any(word in option.lower() for word in ("pass", "secret", "scram"))


#: ``str()`` of both kinds names the database to people.
DatabaseLocation: TypeAlias = "Path | ServerDatabase"


def is_url(text: str) -> bool:
    """Whether a text is a URL, as that of a database on a server, and not the path of a file."""
    return "://" in text and _SCHEME.match(text) is not None


def database_location(text: str) -> DatabaseLocation:
    """
    The database that ``--db`` or ``QMD_DB`` names: a URL of PostgreSQL, or the path of a file.

    Raises:
        ConfigError: The URL is malformed, or of another kind of server.
    """
    if not is_url(text):
        return Path(text)
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in SCHEMES:
        raise ConfigError(
            f"qmd knows no databases of the kind {scheme}://.",
            hint="Give the path of a file, or a URL that begins with postgresql://.",
        )
    location = ServerDatabase(f"{scheme.lower()}://{rest}")
    if not _is_clear(location.url) or not text.isprintable():
        raise ConfigError(
            "The URL of the database is malformed.",
            hint="Write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE. In a password, write"
            " @ as %40, / as %2F, # as %23, and ? as %3F.",
        )
    return location


def _is_clear(url: str) -> bool:
    """Whether it is certain which part of a URL is the password, so that it can be hidden."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.netloc.count("@") <= 1
        and "@" not in parts.path + parts.query
        and not parts.fragment
        and all(map(_HOST.fullmatch, parts.netloc.rpartition("@")[2].split(",")))
    )


def as_location(database: str | Path | ServerDatabase) -> DatabaseLocation:
    """
    As `database_location`, for callers in Python; ``~`` stands for the home directory.

    Raises:
        ConfigError: The URL of a server is malformed.
    """
    if isinstance(database, ServerDatabase):
        return database
    location = database if isinstance(database, Path) else database_location(database)
    return location.expanduser() if isinstance(location, Path) else location
