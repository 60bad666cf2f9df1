"""Taking over folders of other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from qmd.values.imports import ImportPlan, ImportReport

Program = Literal["tobi", "basic-memory", "obsidian"]
"""tobi/qmd, the program of the same name on npm; basic-memory; Obsidian."""


class TransferMethods(Parts):
    @staticmethod
    def plan_import(program: Program, file: str | Path | None = None) -> ImportPlan:
        """
        Read which folders another program has; nothing is changed.

        Args:
            file: Its configuration file; None for the place where the program keeps it. For
                tobi/qmd also the name of one of its indexes.

        Raises:
            NotFoundError: There is no such file.
            InputError: It is not one of the program.
        """
        from qmd.transfer import basic_memory, obsidian, tobi

        environ, home = os.environ, Path.home()
        path = None if file is None else Path(file).expanduser()
        if program == "obsidian":
            return obsidian.read(path or obsidian.find_file(environ, home))
        if program == "basic-memory":
            return basic_memory.read(path or basic_memory.find_file(environ, home))
        if path is None or tobi.is_index_name(str(file)):
            path = tobi.find_file(str(file or "index"), environ, home)
        return tobi.read(path)

    def import_folders(self, plan: ImportPlan, *, dry_run: bool = False) -> ImportReport:
        """
        Add the collections and contexts of a plan; `index` then fills the collections.

        Nothing that is there is changed, and the report lists what was not taken.

        Args:
            dry_run: Only say what would be added.
        """
        from qmd.transfer.take_over import take_over

        return take_over(self._store, plan, dry_run=dry_run)
