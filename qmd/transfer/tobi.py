"""
Reads the collections and contexts of tobi/qmd.

It keeps them in ``index.yml`` of its configuration directory, those of ``--index work`` in
``work.yml``, and those of a project in ``.qmd/index.yml`` there. Checked with version 2.8.3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from qmd.errors import NotFoundError
from qmd.system.surrogates import whole
from qmd.transfer.foreign_file import absolute, entries, read_yaml, shown, unknown_keys
from qmd.values.imports import ImportPlan, NotTaken, PlannedCollection, PlannedContext

#: Folders that tobi/qmd never reads and qmd does.
_NEVER_READ = ("build/", "dist/", "vendor/")
_FILE_KEYS = frozenset(
    ("collections", "global_context", "models", "editor_uri", "editor_uri_template")
)
_COLLECTION_KEYS = frozenset(("path", "pattern", "ignore", "context", "update", "includeByDefault"))


def plan(file: Path | None, environ: Mapping[str, str], home: Path) -> ImportPlan:
    """
    What a configuration file says, or that of the index of this name; None for the default one.

    The file of the project that the person is in is listed, too.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of tobi/qmd.
    """
    if file is not None and not _is_index_name(file):
        return read(file)
    project = _project_file(Path.cwd())
    of_index = read(_file_of("index" if file is None else file.name, environ, home, project))
    if project is None:
        return of_index
    listed = NotTaken(
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


def read(file: Path) -> ImportPlan:
    """
    What a configuration file says.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of tobi/qmd.
    """
    values = read_yaml(file)
    base = file.absolute().parent.parent if file.parent.name == ".qmd" else None
    collections: list[PlannedCollection] = []
    not_taken: list[NotTaken] = []
    for name, entry in entries(values.get("collections"), file).items():
        path = absolute(_text(entry, "path"), base) if _text(entry, "path") else None
        if not isinstance(entry, dict) or path is None:
            not_taken.append(NotTaken(name, "It names no folder by an absolute path."))
            continue
        if base is not None and not _is_below(path, base):
            # The file came with the project, perhaps from a stranger; tobi/qmd asks a person.
            reason = f"{path} lies outside of the project. 'qmd collection add' takes it."
            not_taken.append(NotTaken(name, reason))
            continue
        collections.append(_collection(name, path, entry))
        not_taken += _left_of(name, entry)
    not_taken += _left_of_file(values)
    if base is None:
        not_taken += [
            NotTaken(other, f"Another index: {_command(other)} reads it.")
            for other in _other_indexes(file)
        ]
    return ImportPlan(
        str(file),
        tuple(collections),
        whole(_text(values, "global_context").strip()),
        tuple(not_taken),
    )


def _is_below(path: str, base: Path) -> bool:
    """Whether a path lies below a folder, wherever links lead."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(base))


def _command(index: str) -> str:
    return "'qmd import tobi'" if index == "index" else f"'qmd --index {index} import tobi'"


def _collection(name: str, path: str, entry: Mapping[str, object]) -> PlannedCollection:
    contexts = entry.get("context")
    return PlannedCollection(
        name,
        path,
        _text(entry, "pattern") or "**/*.md",
        tuple(map(_as_gitignore, _texts(entry.get("ignore")))) + _NEVER_READ,
        entry.get("includeByDefault") is not False,
        tuple(
            PlannedContext(whole(str(prefix)).strip("/"), whole(text))
            for prefix, text in (contexts.items() if isinstance(contexts, dict) else ())
            if isinstance(text, str) and text.strip()
        ),
    )


def _as_gitignore(pattern: str) -> str:
    """The same pattern in the words of a .gitignore, where a bare name matches at any depth."""
    pattern = pattern.removeprefix("./")
    return pattern if "/" in pattern.rstrip("/") else f"/{pattern}"


def _left_of(name: str, entry: Mapping[str, object]) -> Iterator[NotTaken]:
    """What qmd does not take of a collection."""
    if update := _text(entry, "update"):
        yield NotTaken(
            f"{name}: update command '{shown(update)}'",
            "qmd runs no commands before it indexes. 'qmd update --pull' pulls git repositories.",
        )
    yield from unknown_keys(entry, _COLLECTION_KEYS, f"{name}: ")


def _left_of_file(values: Mapping[str, object]) -> Iterator[NotTaken]:
    if values.get("models"):
        yield NotTaken(
            "models", "GGUF models do not run here. 'qmd models list' names those that do."
        )
    for key in ("editor_uri", "editor_uri_template"):
        if link := _text(values, key):
            yield NotTaken(
                key, f"Put it into qmd's config.toml if you want it: editor = '{shown(link)}'"
            )
    yield from unknown_keys(values, _FILE_KEYS, "")


def _text(values: object, key: str) -> str:
    """The text of a key; "" without one."""
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, str) and each.strip()]
