"""
Stores what processes leave for each other: values by key, unfinished writes, answers of models.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from qmd import libraries
from qmd.store.sql import Capability, Sql
from qmd.system import clock


class Meta(Capability):
    """Reads values by key."""

    def get(self, key: str) -> str | None:
        """The value of a key; None if it was never set."""
        row = self._sql.first("SELECT value FROM z_meta WHERE key = ?", [key])
        return None if row is None else str(row[0])


class MetaWriter(Meta):
    """Sets values."""

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self._sql.run(
            "INSERT INTO z_meta (key, value) VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [key, value],
        )


#: The key of the record that the process which indexes writes for the others.
KEEPER = "keeper"
#: Counts changes of the vectors, so that processes notice stale copies.
VECTORS = "vectors"


def vector_version(sql: Sql) -> tuple[int, int]:
    """
    The first number grows when vectors that a process holds may differ, the second when some
    came or went. Chunks that were deleted by hand do not count.
    """
    epoch, _, count = (Meta(sql).get(VECTORS) or "0:0").partition(":")
    return int(epoch), int(count)


def advance_vectors(sql: Sql, *, remade: bool = False) -> None:
    """Call this in the transaction of every change; ``remade``: vectors that exist may differ."""
    epoch, count = vector_version(sql)
    MetaWriter(sql).put(VECTORS, f"{epoch + 1}:0" if remade else f"{epoch}:{count + 1}")


# --- the temporary files of unfinished writes -------------------------------------------
# A killed process leaves its temporary files behind; their records tell the next process where. On
# a server each record names its machine. Records of other machines count only where their files are
# here, too, as on a volume that machines share: else their files would be taken for files that are
# gone.


class PendingWrites(Capability):
    """Reads the absolute paths of the temporary files of unfinished writes."""

    def all(self) -> list[str]:
        """All temporary files."""
        columns = "temporary, machine" if self._sql.dialect.is_shared else "temporary, ''"
        here = self._machine()
        return [
            path
            for path, machine in self._sql.rows(
                (str, str), f"SELECT {columns} FROM z_pending_writes"
            )
            if machine == here or os.path.lexists(path)
        ]

    def _machine(self) -> str:
        """This one; "" where a database has one machine."""
        if not self._sql.dialect.is_shared:
            return ""
        return libraries.socket.gethostname()

    def in_directory(self, directory: str) -> list[str]:
        """The temporary files directly in a directory, an absolute path."""
        return [path for path in self.all() if os.path.dirname(path) == directory]  # noqa: PTH120


class PendingWritesWriter(PendingWrites):
    """Records the begin and the end of writes."""

    def begin(self, temporary: str) -> None:
        """Record that a temporary file will be made at this absolute path."""
        record = {"temporary": temporary, "created_at": clock.now()}
        if machine := self._machine():
            record["machine"] = machine
        self._sql.insert("z_pending_writes", ", ".join(record), [[*record.values()]])

    def end(self, temporaries: Iterable[str]) -> None:
        """Remove the records of temporary files that were removed or have replaced their file."""
        self._sql.many(
            "DELETE FROM z_pending_writes WHERE temporary = ?", [(path,) for path in temporaries]
        )


#: Kind of answer → how many of the latest answers are kept; each kind takes a few megabytes.
MAX_ANSWERS = {"expansion": 2000, "score": 30_000, "vector": 2000}
#: A longer answer is not kept.
MAX_ANSWER_BYTES = 16_384


class ModelCache(Capability):
    """Reads answers of models; a key is the hash of the question."""

    def get(self, kind: str, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """
        Key → answer, for the keys that have one.

        Args:
            kind: A key of `MAX_ANSWERS`.
            model: The fingerprint or name of the model.
        """
        rows = self._sql.with_keys(
            "SELECT hash, value FROM z_model_cache WHERE hash {} AND kind = ? AND model = ?",
            keys,
            [kind, model],
        )
        return {key: bytes(value) for key, value in rows}

    def count(self) -> int:
        """How many answers are kept."""
        return self._sql.number("SELECT count(*) FROM z_model_cache")


class ModelCacheWriter(ModelCache):
    """Keeps answers of models."""

    def put(self, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
        """Store answers by key, and remove the oldest of the kind if there are too many."""
        now = clock.now()
        kept = {key: value for key, value in values.items() if len(value) <= MAX_ANSWER_BYTES}
        # New rows also for old keys: the answers with the lowest ids are removed first.
        self._sql.many(
            "DELETE FROM z_model_cache WHERE hash = ? AND kind = ? AND model = ?",
            [(key, kind, model) for key in kept],
        )
        self._sql.many(
            "INSERT INTO z_model_cache (kind, model, hash, value, created_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [(kind, model, key, value, now) for key, value in kept.items()],
        )
        self._sql.run(
            "DELETE FROM z_model_cache WHERE kind = ? AND id <= (SELECT id FROM z_model_cache"
            " WHERE kind = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            [kind, kind, MAX_ANSWERS[kind]],
        )
