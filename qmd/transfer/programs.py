"""
Takes over the folders that other programs know on this machine, with their contexts.

basic-memory (checked with version 0.24.1) keeps its projects in ``config.json``; up to 0.18 a
project was its path alone. Obsidian keeps its vaults in ``obsidian.json``. tobi/qmd (checked with
version 2.8.3) knows contexts, too: it keeps both in ``index.yml`` of its configuration directory,
those of ``--index work`` in ``work.yml``, and those of a project in ``.qmd/index.yml`` there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from qmd import parse
from qmd.errors import InputError, NotFoundError, QmdError
from qmd.ingest.new_collection import check_context_text, check_name, new_collection
from qmd.system.settings_file import read_settings
from qmd.values import Collection, transfer
from qmd.values.text import replace_halves

if TYPE_CHECKING:
    from qmd.store import Reader, Store, Writer


# --- files of settings, within limits of size and depth ---------------------------------

#: Bytes of a configuration file; real ones have a few thousand.
MAX_BYTES = 1024 * 1024
#: Collections, projects or vaults in one file.
MAX_FOLDERS = 1_000
_MAX_SHOWN = 80  # characters of a value in a message


def read_bytes(path: Path) -> bytes:
    """
    The content of a configuration file.

    Raises:
        NotFoundError: There is no such file.
        InputError: It cannot be read, or is too long.
    """
    data = read_settings(path, MAX_BYTES)
    if data is None:
        raise NotFoundError(f"There is no file {path}.", hint="Give the file's path.")
    return data


def read_json(path: Path) -> Mapping[str, object]:
    """The object in a JSON file. Raises NotFoundError, or InputError as `read_bytes` does."""
    try:
        value = json.loads(read_bytes(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {error}", hint="Mend it, then try again.") from error
    return mapping(value, path)


def read_yaml(path: Path) -> Mapping[str, object]:
    """The mapping in a YAML file. Raises NotFoundError, or InputError as `read_bytes` does."""
    yaml = parse.yaml_values
    try:
        value, _ = yaml.YamlReader().read(read_bytes(path).decode("utf-8-sig"))
    except (yaml.YAMLError, yaml.YamlRefused, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{path} is no YAML: {text}", hint="Mend it, then try again.") from error
    return mapping({} if value is None else value, path)


def mapping(value: object, path: Path) -> Mapping[str, object]:
    """A value that must be a mapping. Raises InputError."""
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no settings: it is no mapping of names to values.")
    return {str(key): each for key, each in value.items()}


def entries(value: object, path: Path) -> dict[str, object]:
    """
    The named folders of a file. Raises InputError for too many, or if it is no mapping.

    None stands for no folders.
    """
    folders = dict(mapping({} if value is None else value, path))
    if len(folders) > MAX_FOLDERS:
        raise InputError(f"{path} names {len(folders):,} folders, more than {MAX_FOLDERS:,}.")
    return folders


def absolute(text: str, base: Path | None = None) -> str | None:
    """The path in a setting, ``~`` being the home; None for one that is relative to nothing."""
    expanded = os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises an error
    if base is not None:
        return str(base / expanded)
    return expanded if os.path.isabs(expanded) else None  # noqa: PTH117


def unknown_keys(
    values: Mapping[str, object], keys: frozenset[str], owner: str
) -> list[transfer.NotTaken]:
    """
    What a newer version of the program, or a person, wrote beside the keys that are read.

    Args:
        owner: What the settings are of, in front of each key: "notes: ", or "".
    """
    return [
        transfer.NotTaken(f"{owner}{key}", "qmd does not know this setting.")
        for key in values
        if key not in keys
    ]


def cut_line(value: object) -> str:
    """A value in a message: one line, cut."""
    text = " ".join(str(value).split())
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


# --- what each program has --------------------------------------------------------------

#: tobi/qmd, the program of the same name on npm; basic-memory; Obsidian.
Program = Literal["tobi", "basic-memory", "obsidian"]


class _Folders(NamedTuple):
    """
    How a program keeps its folders.

    Attributes:
        places: Where its file may be: the first that is there, or else the last.
        key: What holds the folders in it, by their names.
        paths: The keys of the path of a folder, of which the first counts.
        is_named: Whether the names are for people.
        missing: Why a folder is not taken that has no path here.
    """

    places: Callable[[Mapping[str, str], Path], Sequence[Path]]
    key: str
    paths: tuple[str, ...]
    is_named: bool
    missing: str


def plan(
    program: Program, file: Path | None, environ: Mapping[str, str], home: Path
) -> transfer.ImportPlan:
    """
    What a program has, in its file; None for the place where the program keeps it.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of the program.
    """
    if program == "tobi":
        return tobi_plan(file, environ, home)
    return read(program, file or _file(program, environ, home))


def read(program: Program, file: Path) -> transfer.ImportPlan:
    """The folders that a file names, the one that was opened last first. Raises as `plan`."""
    about = _PROGRAMS[program]
    collections: list[transfer.PlannedCollection] = []
    not_taken: list[transfer.NotTaken] = []
    folders = entries(read_json(file).get(about.key), file)
    for name, entry in sorted(folders.items(), key=lambda item: -_opened(item[1])):
        path = _path(entry, about.paths)
        if path is not None:
            collections.append(transfer.PlannedCollection(name if about.is_named else None, path))
        else:
            subject = name if about.is_named else f"{about.key.removesuffix('s')} {name}"
            not_taken.append(transfer.NotTaken(subject, about.missing))
    return transfer.ImportPlan(
        str(file), tuple(collections), not_taken=tuple(not_taken), names_are_free=True
    )


def _file(program: Program, environ: Mapping[str, str], home: Path) -> Path:
    places = _PROGRAMS[program].places(environ, home)
    file = next((each for each in places if each.is_file()), None)
    if file is None and program == "obsidian":
        raise NotFoundError(
            f"Obsidian has left no list of vaults: {places[0]}",
            hint="Index a vault by its folder: 'qmd up FOLDER'.",
        )
    return file or places[-1]


def obsidian_places(
    environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> list[Path]:
    """Where the file may be; on Linux the packages of Flatpak and snap have their own homes."""
    if platform == "win32":
        roots = [Path(environ.get("APPDATA") or home / "AppData/Roaming")]
    elif platform == "darwin":
        roots = [home / "Library/Application Support"]
    else:
        roots = [
            Path(environ.get("XDG_CONFIG_HOME") or home / ".config"),
            home / ".var/app/md.obsidian.Obsidian/config",
            home / "snap/obsidian/current/.config",
        ]
    return [root / "obsidian/obsidian.json" for root in roots]


def _basic_memory_places(environ: Mapping[str, str], home: Path) -> list[Path]:
    """By the rules of basic-memory; earlier versions did not look in XDG_CONFIG_HOME."""
    if directory := environ.get("BASIC_MEMORY_CONFIG_DIR"):
        return [Path(directory, "config.json")]
    directories = [home / ".basic-memory"]
    if directory := environ.get("XDG_CONFIG_HOME"):
        directories.insert(0, Path(directory, "basic-memory"))
    return [each / "config.json" for each in directories]


_PROGRAMS: Mapping[Program, _Folders] = {
    "basic-memory": _Folders(
        _basic_memory_places,
        "projects",
        ("local_sync_path", "cloud_sync_path", "path"),
        is_named=True,
        missing="The project has no folder on this machine.",
    ),
    "obsidian": _Folders(
        obsidian_places, "vaults", ("path",), is_named=False, missing="It names no folder."
    ),
}


def _path(entry: object, keys: Sequence[str]) -> str | None:
    """The path of a folder on this machine; None for one that is elsewhere."""
    values = [entry.get(key) for key in keys] if isinstance(entry, dict) else [entry]
    paths = (absolute(value) for value in values if isinstance(value, str))
    return next((path for path in paths if path is not None), None)


def _opened(entry: object) -> float:
    """When a folder was opened last, in milliseconds; 0 if nothing says so."""
    time = entry.get("ts") if isinstance(entry, dict) else None
    return time if isinstance(time, int | float) else 0


# --- tobi/qmd ---------------------------------------------------------------------------

#: Folders that tobi/qmd never reads and qmd does.
_NEVER_READ = ("build/", "dist/", "vendor/")
_FILE_KEYS = frozenset(
    ("collections", "global_context", "models", "editor_uri", "editor_uri_template")
)
_COLLECTION_KEYS = frozenset(("path", "pattern", "ignore", "context", "update", "includeByDefault"))


def tobi_plan(file: Path | None, environ: Mapping[str, str], home: Path) -> transfer.ImportPlan:
    """
    What a configuration file says, or that of the index of this name; None for the default one.

    The file of the project that the person is in is listed, too.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of tobi/qmd.
    """
    if file is not None and not _is_index_name(file):
        return read_tobi(file)
    project = _project_file(Path.cwd())
    of_index = read_tobi(_file_of("index" if file is None else file.name, environ, home, project))
    if project is None:
        return of_index
    listed = transfer.NotTaken(
        str(project), f"The index of a project: 'qmd import tobi {project}' reads it."
    )
    return replace(of_index, not_taken=(*of_index.not_taken, listed))


def _is_index_name(file: Path) -> bool:
    """Whether an argument names an index, and no file."""
    return file.name == str(file) and file.suffix not in (".yml", ".yaml")


def _file_of(index: str, environ: Mapping[str, str], home: Path, project: Path | None) -> Path:
    """
    The configuration file of an index.

    Args:
        project: The file of a project, for the hint.

    Raises:
        NotFoundError: There is no such file; the hint names those that are there.
    """
    folder = _folder(environ, home)
    for suffix in (".yml", ".yaml"):
        if (file := folder / f"{index}{suffix}").is_file():
            return file
    hint = f"If it lies elsewhere, give the file: 'qmd import tobi {project or 'FILE'}'."
    if names := ", ".join(_other_indexes(folder / f"{index}.yml")):
        hint = f"There are the indexes: {names}. 'qmd import tobi NAME' reads one."
    raise NotFoundError(f"tobi/qmd has no {folder / index}.yml on this machine.", hint=hint)


def _folder(environ: Mapping[str, str], home: Path) -> Path:
    """The configuration directory, by the rules of tobi/qmd."""
    if directory := environ.get("QMD_CONFIG_DIR"):
        return Path(directory)
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "qmd"


def _project_file(folder: Path) -> Path | None:
    """The file of the project that a folder lies in, which tobi/qmd uses there; None without."""
    for above in (folder, *folder.parents):
        for name in ("index.yaml", "index.yml"):
            if (file := above / ".qmd" / name).is_file():
                return file
    return None


def _other_indexes(file: Path) -> list[str]:
    """The names of the indexes beside this one."""
    files = (*file.parent.glob("*.yml"), *file.parent.glob("*.yaml"))
    return sorted({other.stem for other in files} - {file.stem})


def read_tobi(file: Path) -> transfer.ImportPlan:
    """
    What a configuration file says.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of tobi/qmd.
    """
    values = read_yaml(file)
    base = file.absolute().parent.parent if file.parent.name == ".qmd" else None
    collections: list[transfer.PlannedCollection] = []
    not_taken: list[transfer.NotTaken] = []
    for name, entry in entries(values.get("collections"), file).items():
        path = absolute(_text(entry, "path"), base) if _text(entry, "path") else None
        if not isinstance(entry, dict) or path is None:
            not_taken.append(transfer.NotTaken(name, "It names no folder by an absolute path."))
            continue
        if base is not None and not _is_below(path, base):
            # The file came with the project, perhaps from a stranger; tobi/qmd asks a person.
            reason = f"{path} lies outside of the project. 'qmd collection add' takes it."
            not_taken.append(transfer.NotTaken(name, reason))
            continue
        collections.append(_collection(name, path, entry))
        not_taken += _left_of(name, entry)
    not_taken += _left_of_file(values)
    if base is None:
        not_taken += [
            transfer.NotTaken(other, f"Another index: {_command(other)} reads it.")
            for other in _other_indexes(file)
        ]
    return transfer.ImportPlan(
        str(file),
        tuple(collections),
        replace_halves(_text(values, "global_context").strip()),
        tuple(not_taken),
    )


def _is_below(path: str, base: Path) -> bool:
    """Whether a path lies below a folder, wherever links lead."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(base))


def _command(index: str) -> str:
    return "'qmd import tobi'" if index == "index" else f"'qmd --index {index} import tobi'"


def _collection(name: str, path: str, entry: Mapping[str, object]) -> transfer.PlannedCollection:
    contexts = entry.get("context")
    return transfer.PlannedCollection(
        name,
        path,
        _text(entry, "pattern") or "**/*.md",
        tuple(map(_as_gitignore, _texts(entry.get("ignore")))) + _NEVER_READ,
        entry.get("includeByDefault") is not False,
        tuple(
            transfer.PlannedContext(replace_halves(str(prefix)).strip("/"), replace_halves(text))
            for prefix, text in (contexts.items() if isinstance(contexts, dict) else ())
            if isinstance(text, str) and text.strip()
        ),
    )


def _as_gitignore(pattern: str) -> str:
    """The same pattern in the words of a .gitignore, where a bare name matches at any depth."""
    pattern = pattern.removeprefix("./")
    return pattern if "/" in pattern.rstrip("/") else f"/{pattern}"


def _left_of(name: str, entry: Mapping[str, object]) -> Iterator[transfer.NotTaken]:
    """What qmd does not take of a collection."""
    if update := _text(entry, "update"):
        yield transfer.NotTaken(
            f"{name}: update command '{cut_line(update)}'",
            "qmd runs no commands before it indexes. 'qmd update --pull' pulls git repositories.",
        )
    yield from unknown_keys(entry, _COLLECTION_KEYS, f"{name}: ")


def _left_of_file(values: Mapping[str, object]) -> Iterator[transfer.NotTaken]:
    if values.get("models"):
        yield transfer.NotTaken(
            "models", "GGUF models do not run here. 'qmd models list' names those that do."
        )
    for key in ("editor_uri", "editor_uri_template"):
        if link := _text(values, key):
            yield transfer.NotTaken(
                key, f"Put it into qmd's config.toml if you want it: editor = '{cut_line(link)}'"
            )
    yield from unknown_keys(values, _FILE_KEYS, "")


def _text(values: object, key: str) -> str:
    """The text of a key; "" without one."""
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, str) and each.strip()]


# --- taking folders over ----------------------------------------------------------------


def carry_out(
    store: Store,
    plan: transfer.ImportPlan,
    *,
    dry_run: bool = False,
    record: Callable[[Writer], object] = lambda writer: None,
) -> transfer.ImportReport:
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
        return store.read(lambda reader: FolderImport(plan, reader).run(folders))

    def run(writer: Writer) -> transfer.ImportReport:
        record(writer)
        return FolderImport(plan, writer, writer).run(folders)

    return store.write(run)


def check_folders(
    plan: transfer.ImportPlan,
) -> list[transfer.PlannedCollection | transfer.NotTaken]:
    """
    The folders that can be collections, with the names and absolute paths that they would have; of
    the others, why not.

    It looks at the disk, which may be slow, so it is done before a transaction.
    """
    folders: list[transfer.PlannedCollection | transfer.NotTaken] = []
    for planned in plan.collections:
        name = _usable(planned.name) if plan.names_are_free else planned.name
        try:
            new = new_collection(planned.path, name, planned.pattern, planned.ignore)
        except QmdError as error:
            folders.append(transfer.NotTaken(planned.name or planned.path, str(error)))
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

    def __init__(
        self, plan: transfer.ImportPlan, reader: Reader, writer: Writer | None = None
    ) -> None:
        self._plan = plan
        self._writer = writer
        self._before = {each.name: each for each in reader.collections.all()}
        self._contexts = {
            (each.collection, each.prefix): each.text for each in reader.contexts.all()
        }
        self._not_taken = list[transfer.NotTaken]()
        self._added_contexts = 0

    def run(
        self, folders: Sequence[transfer.PlannedCollection | transfer.NotTaken]
    ) -> transfer.ImportReport:
        """Add the folders that `check_folders` has checked, and their contexts."""
        collections = []
        for folder in folders:
            if isinstance(folder, transfer.NotTaken):
                self._not_taken.append(folder)
            elif (collection := self._take(folder)) is not None:
                collections.append(collection)
        if self._plan.global_context:
            self._add_context(None, None, transfer.PlannedContext("", self._plan.global_context))
        return transfer.ImportReport(
            self._plan.source,
            self._writer is None,
            tuple(collections),
            self._added_contexts,
            (*self._not_taken, *self._plan.not_taken),
        )

    def _take(self, planned: transfer.PlannedCollection) -> transfer.ImportedCollection | None:
        name = planned.name or ""
        present = self._present(planned, name)
        if present is None and name in self._before:
            if not self._plan.names_are_free:
                taken = self._before[name].path
                self._not_taken.append(
                    transfer.NotTaken(
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
        return transfer.ImportedCollection(
            collection.name,
            collection.path,
            collection.pattern,
            collection.ignore,
            collection.included,
            self._added_contexts - before,
            "new" if present is None else "present",
        )

    def _present(self, planned: transfer.PlannedCollection, name: str) -> Collection | None:
        """The collection that this folder is already."""
        same = self._before.get(name)
        if same is None or same.path != planned.path:
            others = (each for each in self._before.values() if each.path == planned.path)
            same = next(others, None) if self._plan.names_are_free else None
        if same is not None and same.pattern != planned.pattern:
            self._not_taken.append(
                transfer.NotTaken(
                    f"{same.name}: mask {planned.pattern}",
                    f"It is a collection already, with the mask {same.pattern}.",
                )
            )
        return same

    def _add(self, planned: transfer.PlannedCollection, name: str) -> Collection:
        if self._writer is None:
            added = Collection(
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
        self, collection_id: int | None, collection: str | None, context: transfer.PlannedContext
    ) -> None:
        place = f"{collection}/{context.prefix}".rstrip("/") if collection else "all collections"
        text = context.text.strip()
        try:
            check_context_text(text)
        except QmdError as error:
            self._not_taken.append(transfer.NotTaken(f"context of {place}", str(error)))
            return
        present = self._contexts.get((collection, context.prefix))
        if present == text:
            return
        if present is not None:
            self._not_taken.append(
                transfer.NotTaken(
                    f"context of {place}",
                    "It has another text here. 'qmd context add' replaces it.",
                )
            )
            return
        if self._writer is not None:
            self._writer.contexts.put(collection_id, context.prefix, text)
        self._contexts[collection, context.prefix] = text
        self._added_contexts += 1
