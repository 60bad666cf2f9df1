"""What models said to questions, so that the same question is not asked twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmd.store.sqlite import clock
from qmd.store.sqlite.library import Connection

#: So many answers of a kind are kept, the latest: a few megabytes of each.
MOST = {"expansion": 2000, "score": 30_000, "vector": 2000}
#: A longer answer is not kept.
MOST_BYTES = 16_384


def recall(
    connection: Connection, kind: str, model: str, keys: Sequence[bytes]
) -> dict[bytes, bytes]:
    """Key → answer, for those that are known."""
    found: dict[bytes, bytes] = {}
    for key in set(keys):
        row = connection.execute(
            "SELECT value FROM model_cache WHERE hash = ? AND kind = ? AND model = ?",
            [key, kind, model],
        ).fetchone()
        if row is not None:
            found[key] = bytes(row[0])
    return found


def keep(connection: Connection, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
    """Remember answers, and forget the oldest of their kind where there are too many."""
    now = clock.now()
    connection.executemany(
        "INSERT OR REPLACE INTO model_cache (kind, model, hash, value, created_at)"
        " VALUES (?, ?, ?, ?, ?)",
        [
            (kind, model, key, value, now)
            for key, value in values.items()
            if len(value) <= MOST_BYTES
        ],
    )
    connection.execute(
        "DELETE FROM model_cache WHERE kind = ? AND id <= (SELECT id FROM model_cache"
        " WHERE kind = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        [kind, kind, MOST[kind]],
    )


def count(connection: Connection) -> int:
    row = connection.execute("SELECT count(*) FROM model_cache").fetchone()
    return int(row[0])
