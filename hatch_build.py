"""Puts the manual page into the wheel: what `qmd man` prints, so no copy of it is kept."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPage(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._directory = tempfile.TemporaryDirectory()
        page = Path(self._directory.name, "qmd.1")
        command = [sys.executable, "-m", "qmd", "man"]
        with page.open("wb") as file:
            subprocess.run(command, cwd=self.root, stdout=file, check=True)
        build_data["shared_data"][str(page)] = "share/man/man1/qmd.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._directory.cleanup()
