"""Makes collections and contexts of what another program knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from qmd import values
from qmd.errors import QmdError
from qmd.ingest.new_collection import check_context_text, check_name, new_collection
from qmd.values.imports import (
    ImportedCollection,
    ImportPlan,
    ImportReport,
    NotTaken,
    PlannedCollection,
    PlannedContext,
)

if TYPE_CHECKING:
    from qmd.store import Reader, Store, Writer
    from qmd.values import Collection


def take_over(
    store: Store,
    plan: ImportPlan,
    *,
    dry_run: bool = False,
    record: Callable[[Writer], object] = lambda writer: None,
) -> ImportReport:
    """
    Add the collections and contexts of a plan, all in one transaction.

    What is there already stays as it is: collections keep their rules, contexts their texts. So an
    import may be repeated.

    Args:
        dry_run: Only say what would be added.
        record: Called in the transaction, for the audit log.
    """
    folders = check_folders(plan)
    if dry_run:
        with store.reading() as reader:
            return FolderImport(plan, reader).run(folders)

    def run(writer: Writer) -> ImportReport:
        record(writer)
        return FolderImport(plan, writer, writer).run(folders)

    return store.write(run)


def check_folders(plan: ImportPlan) -> list[PlannedCollection | NotTaken]:
    """
    The folders that can be collections, with the names and absolute paths that they would have; of
    the others, why not.

    It looks at the disk, which may be slow, so it is done before a transaction.
    """
    folders: list[PlannedCollection | NotTaken] = []
    for planned in plan.collections:
        name = _usable(planned.name) if plan.names_are_free else planned.name
        try:
            new = new_collection(planned.path, name, planned.pattern, planned.ignore)
        except QmdError as error:
            folders.append(NotTaken(planned.name or planned.path, str(error)))
        else:
            folders.append(replace(planned, name=new.name, path=new.path))
    return folders


def _usable(name: str | None) -> str | None:
    """The name, if a collection can have it; else None, which stands for that of the folder."""
    try:
        check_name(name or "")
    except QmdError:
        return None
    return name


class FolderImport:
    """The import of folders within a transaction; without a writer nothing is changed."""

    def __init__(self, plan: ImportPlan, reader: Reader, writer: Writer | None = None) -> None:
        self._plan = plan
        self._writer = writer
        self._before = {each.name: each for each in reader.collections.all()}
        self._contexts = {
            (each.collection, each.prefix): each.text for each in reader.contexts.all()
        }
        self._not_taken = list[NotTaken]()
        self._added_contexts = 0

    def run(self, folders: Sequence[PlannedCollection | NotTaken]) -> ImportReport:
        """Add the folders that `check_folders` has checked, and their contexts."""
        collections = []
        for folder in folders:
            if isinstance(folder, NotTaken):
                self._not_taken.append(folder)
            elif (collection := self._take(folder)) is not None:
                collections.append(collection)
        if self._plan.global_context:
            self._add_context(None, None, PlannedContext("", self._plan.global_context))
        return ImportReport(
            self._plan.source,
            self._writer is None,
            tuple(collections),
            self._added_contexts,
            (*self._not_taken, *self._plan.not_taken),
        )

    def _take(self, planned: PlannedCollection) -> ImportedCollection | None:
        name = planned.name or ""
        present = self._present(planned, name)
        if present is None and name in self._before:
            if not self._plan.names_are_free:
                taken = self._before[name].path
                self._not_taken.append(
                    NotTaken(
                        name,
                        f"There is a collection of this name already: {taken}."
                        f" 'qmd collection rename {name} …' makes room.",
                    )
                )
                return None
            name = next(
                free for number in count(2) if (free := f"{name}-{number}") not in self._before
            )
        collection = present or self._add(planned, name)
        before = self._added_contexts
        for context in planned.contexts:
            self._add_context(collection.id, collection.name, context)
        return ImportedCollection(
            collection.name,
            collection.path,
            collection.pattern,
            collection.ignore,
            collection.included,
            self._added_contexts - before,
            "new" if present is None else "present",
        )

    def _present(self, planned: PlannedCollection, name: str) -> Collection | None:
        """The collection that this folder is already."""
        same = self._before.get(name)
        if same is None or same.path != planned.path:
            others = (each for each in self._before.values() if each.path == planned.path)
            same = next(others, None) if self._plan.names_are_free else None
        if same is not None and same.pattern != planned.pattern:
            self._not_taken.append(
                NotTaken(
                    f"{same.name}: mask {planned.pattern}",
                    f"It is a collection already, with the mask {same.pattern}.",
                )
            )
        return same

    def _add(self, planned: PlannedCollection, name: str) -> Collection:
        if self._writer is None:
            added = values.Collection(
                0, name, planned.path, planned.pattern, planned.ignore, 0, None, None,
                planned.included, planned.owner,
            )  # fmt: skip
        else:
            collections = self._writer.collections
            added = collections.add(
                name=name,
                path=planned.path,
                pattern=planned.pattern,
                ignore=planned.ignore,
                owner=planned.owner,
            )
            if not planned.included:
                added = collections.set_included(name, included=False)
        self._before[name] = added
        return added

    def _add_context(
        self, collection_id: int | None, collection: str | None, context: PlannedContext
    ) -> None:
        place = f"{collection}/{context.prefix}".rstrip("/") if collection else "all collections"
        text = context.text.strip()
        try:
            check_context_text(text)
        except QmdError as error:
            self._not_taken.append(NotTaken(f"context of {place}", str(error)))
            return
        present = self._contexts.get((collection, context.prefix))
        if present == text:
            return
        if present is not None:
            self._not_taken.append(
                NotTaken(
                    f"context of {place}",
                    "It has another text here. 'qmd context add' replaces it.",
                )
            )
            return
        if self._writer is not None:
            self._writer.contexts.put(collection_id, context.prefix, text)
        self._contexts[collection, context.prefix] = text
        self._added_contexts += 1
