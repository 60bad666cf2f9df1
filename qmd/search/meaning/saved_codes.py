"""
Keeps codes in a file of the user's cache directory, for the next start.

Reading three million vectors takes half a minute, reading their codes a second. The file is only a
copy: it is read if the database has the same vectors, and anybody may delete it.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd.search.meaning.codes import Codes
from qmd.search.meaning.loaded_vectors import LoadedVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from qmd.store.sql.models import StoredModel

#: The head of a file: JSON, filled with spaces.
_HEAD_BYTES = 1024
#: Changes with the form of the file or of the codes.
_VERSION = 1
_BITS_IN_WORD = 64


class CodesFile:
    """
    The file for one database.

    Args:
        folder: It is made when something is saved.
        database: The path of the database, which must exist.
    """

    def __init__(self, folder: Path, database: Path) -> None:
        self._database = Path(os.path.realpath(database))
        name = hashlib.sha256(os.fsencode(self._database)).hexdigest()[:32]
        self.path = folder / f"{name}.codes"

    def save(self, model: StoredModel, epoch: int, loaded: LoadedVectors) -> None:
        """
        Write the file anew: all of it, or nothing.

        Args:
            loaded: Codes in one piece.

        Raises:
            OSError: It cannot be written.
        """
        import numpy as np

        (codes,) = loaded.pieces
        assert isinstance(codes, Codes)
        waiting_ids = np.array(loaded.waiting_ids, np.int64)
        numbers = [loaded.ids, loaded.documents, loaded.collections, waiting_ids]
        arrays: list[NDArray[Any]] = [*numbers, codes.mean, codes.spread, codes.planes]
        contents = [np.ascontiguousarray(each).data.cast("B") for each in arrays]
        checksum = 0
        for part in contents:
            checksum = zlib.crc32(part, checksum)
        head = self._identity(model, epoch) | {
            "last_id": loaded.last_id,
            "chunks": len(loaded.ids),
            "waiting": len(waiting_ids),
            "checksum": checksum,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(f".{os.getpid()}")
        # Codes tell of the texts that they are of: nobody else may read them.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(head).encode().ljust(_HEAD_BYTES))
                for part in contents:
                    file.write(part)
            temporary.replace(self.path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def read(self, model: StoredModel, epoch: int) -> LoadedVectors | None:
        """None if there is no file, or not one of these vectors, or it is damaged."""
        try:
            with self.path.open("rb") as file:
                head = json.loads(file.read(_HEAD_BYTES))
                identity = self._identity(model, epoch)
                if any(head.get(key) != value for key, value in identity.items()):
                    return None
                data = file.read()
        except (OSError, ValueError, AttributeError):
            return None
        try:
            return _parsed(head, data, model.dimension)
        except (KeyError, TypeError, ValueError):
            return None

    def _identity(self, model: StoredModel, epoch: int) -> dict[str, object]:
        """What must be equal for the codes to be those of the vectors of the database."""
        return {
            "version": _VERSION,
            "database": str(self._database),
            "file": self._database.stat().st_ino,
            "model": [model.id, model.name, model.fingerprint, model.dimension],
            "epoch": epoch,
        }


def _parsed(head: dict[str, int], data: bytes, dimension: int) -> LoadedVectors:
    """Raises ValueError: The file is damaged."""
    import numpy as np

    if zlib.crc32(data) != head["checksum"]:
        raise ValueError("the checksum is wrong")
    chunks, waiting_count = head["chunks"], head["waiting"]
    words = -(-dimension // _BITS_IN_WORD)
    place = 0

    def take(kind: type[np.generic], *shape: int) -> NDArray[Any]:
        nonlocal place
        values = np.frombuffer(data, kind, int(np.prod(shape)), place).reshape(shape)
        place += values.nbytes
        return values

    ids, documents, collections = (take(np.int64, chunks) for _ in range(3))
    waiting_ids = take(np.int64, waiting_count)
    mean, spread = take(np.float32, dimension), take(np.float32, dimension)
    planes = take(np.uint64, 2, words, chunks)
    if place != len(data):
        raise ValueError("the file has another length")
    codes = Codes(planes, mean, spread)
    return LoadedVectors(
        ids, documents, collections, (codes,), head["last_id"], waiting_ids.tolist()
    )
