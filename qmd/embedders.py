"""Which embedding model answers for one knowledge base, and where it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

# Opening a knowledge base must load no model code: `qmd search` needs none.
if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder
    from qmd.model import ModelSpec, Progress
    from qmd.running import RunningServer


class EmbedderChoice:
    """
    The embedder that was given, else the named model, opened when it is first needed.

    Args:
        database: Its running server may embed questions, if ``ask_server``.
        model: None for the embedded default.
        cache_dir: None for the user's cache directory.
        given: Use this, whatever ``model`` says.
    """

    def __init__(
        self,
        database: Path,
        *,
        model: str | None,
        cache_dir: Path | None,
        given: Embedder | None,
        ask_server: bool,
    ) -> None:
        self.given = given
        self.model = model
        self._database = database
        self._cache_dir = cache_dir
        self._ask_server = ask_server

    @property
    def cache_dir(self) -> Path:
        if self._cache_dir is None:
            from platformdirs import user_cache_dir

            self._cache_dir = Path(user_cache_dir("qmd", appauthor=False))
        return self._cache_dir

    def _name(self) -> str:
        from qmd.inference import embedders

        return self.model or embedders.DEFAULT_MODEL

    def spec(self) -> ModelSpec:
        """What `local` would embed with; loads nothing. Raises ModelMissingError."""
        if self.given is not None:
            return self.given.spec
        from qmd.inference import embedders

        return embedders.spec_of(self._name())

    def is_loaded(self) -> bool:
        """Whether the weights are in this process's memory."""
        if self.given is not None:
            return True
        if "qmd.inference.embedders" not in sys.modules:
            return False
        from qmd.inference import embedders

        return embedders.is_loaded(self._name(), self.cache_dir)

    def is_available(self) -> bool:
        """Whether `local` can do without a download."""
        if self.given is not None:
            return True
        from qmd.inference import embedders

        return embedders.is_available(self._name(), self.cache_dir)

    def local(
        self, *, download: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> Embedder:
        """The model in this process. Raises ModelMissingError, InferenceError."""
        if self.given is not None:
            return self.given
        from qmd.inference import embedders

        # embedders keeps one model a process; opening again is cheap.
        return embedders.open_embedder(
            self._name(), cache_dir=self.cache_dir, download=download, progress=progress
        )

    def for_questions(self) -> Embedder:
        """The database's running server while the model is not in memory here, else `local`."""
        if self.given is not None or not self._ask_server:
            return self.local()
        from qmd.inference.remote import RemoteEmbedder

        return RemoteEmbedder(
            self.spec(), find=self._other_server, is_loaded=self.is_loaded, local=self.local
        )

    def _other_server(self) -> RunningServer | None:
        from qmd import running

        server = running.find(self._database)
        return None if server is None or server.pid == os.getpid() else server
