"""The entries of a folder by the index of paths equal those of a plain look at all paths."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from qmd.store import Writer, open_store
from tests.contract.test_store import add, document

NAMES = st.text("a0./-é中\U0010fffe", min_size=1, max_size=3).filter(
    lambda name: "/" not in name and name not in (".", "..")
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@given(
    paths=st.sets(PATHS, max_size=12),
    prefix=st.one_of(st.just(""), PATHS, PATHS.map(lambda path: path + "/")),
    limit=st.integers(1, 12),
)
def test_entries_are_the_paths_cut_behind_the_next_slash(
    paths: set[str], prefix: str, limit: int
) -> None:
    # On a disk a name is either a file or a folder.
    paths = {path for path in paths if not any(each.startswith(path + "/") for each in paths)}
    expected = dict.fromkeys(
        prefix + rest[: slash + 1] if (slash := rest.find("/")) >= 0 else path
        for path in sorted(paths, key=str.encode)
        if path.startswith(prefix)
        for rest in [path[len(prefix) :]]
    )

    def fill(writer: Writer) -> None:
        for name in ("other", "notes"):
            collection = add(writer, name, f"/home/{name}")
            for path in paths if name == "notes" else ["a/elsewhere"]:
                writer.files.put(collection, document(path, "# Text\n"))

    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(Path(folder, "index.sqlite"), create=True)) as store,
    ):
        store.write(fill)
        with store.reading() as reader:
            entries = list(expected)
            assert reader.documents.entries("notes", prefix, limit) == entries[:limit]
            for at, start in enumerate(entries):
                behind = reader.documents.entries("notes", prefix, limit, start)
                assert behind == entries[at : at + limit]
