"""
Writes docs/schema.md from a live database and the ``--:`` descriptions in migrations/.

Run ``python docs/generate_schema.py`` after adding a migration; a test fails when it is stale.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from qmd.store import open_store
from qmd.store.sqlite import migrate

DOCUMENT = Path(__file__).with_name("schema.md")

INTRODUCTION = """\
# The database

<!-- generated: python docs/generate_schema.py -->

One SQLite file holds all of qmd's data, in ordinary tables, FTS5 and views. Any SQLite of version
3.40 or newer opens, counts, searches and browses all of it without an extension: the `sqlite3`
shell, [Datasette](https://datasette.io) (which offers to search the table `documents`),
[sqlite-utils](https://sqlite-utils.datasette.io), DB Browser. You may read the file at any time,
even while qmd runs. To change something, do not change rows: change your files, and `qmd index`
updates the database.

Times are ISO 8601 in UTC. Spans are half-open: characters count from 0 in the decoded text, bytes
from 0 in its UTF-8 form, lines from 1. Columns that hold lists or objects hold JSON.

```sql
-- sqlite3 -readonly ~/.local/share/qmd/index.sqlite   ('qmd status' names your file)
SELECT file, title, tags, date FROM v_documents ORDER BY date DESC LIMIT 10;
SELECT file, title FROM v_hits WHERE v_hits.match MATCH 'parser' ORDER BY rank LIMIT 10;
SELECT file, title FROM v_hits WHERE v_hits.match MATCH '"数据 据库"' ORDER BY rank;  -- 数据库
SELECT file, reason, detail FROM v_skipped;
-- wikilinks to notes that are not there
SELECT file, target FROM v_links WHERE kind = 'wikilink' AND target > '' AND target_file IS NULL;
```

```sh
pip install datasette
datasette ~/.local/share/qmd/index.sqlite
```

Datasette splits text at blanks. So type a Chinese word there as in the third example: as its
overlapping pairs, in quotation marks.
"""

BY_LIBRARIES = {
    "_sqlite_migrations": "Which migrations were applied to this file; sqlite-utils writes it.",
}

# Released migrations are never edited, so a better description of their tables stands here.
REWORDED = {
    "meta": "Facts about the file: versions of segmenter and parser, times of the last runs.",
    "collections": "Indexed directories, with the rules that say which files are documents.",
    "contexts": "A description by the user of everything below a path prefix;"
    " if collection_id is NULL, it applies to all collections.",
    "documents": "One row per file: its decoded text, and the state of the file on the disk."
    " name_key is the file name in NFC, its letters folded to lower case, without .md or .markdown;"
    " links.target_key has the same form.",
    "links": "Links as they are written. target_key is the name of the target's file, as"
    " documents.name_key; NULL for a web address, empty for a link inside the note. text is the"
    " alias of a wikilink; the text of a Markdown link is in the document.",
    "chunks": "A piece of a document: substr(text, start_char + 1, end_char - start_char)."
    " Ends are exclusive, as in Python; lines count from 1. Ids are never reused. hash is the hash"
    " of the embedded text: title, headings and text of the chunk. If only the title or the"
    " headings are others since, next_hash is that of the text to embed, and the old vector"
    " answers until then.",
    "searchable": "The text that the full-text index uses for a document, if that differs from the"
    " document's own: NULL means that the title, body, path, frontmatter or description is used"
    " unchanged."
    " Runs of Chinese, Japanese and Korean characters are stored as overlapping pairs:"
    ' "数据库" as "数据 据库 库". title also holds the file name and the aliases, if they'
    " have words that the title lacks. words holds the parts of CamelCase names.",
    "embeddings": "Exact vectors by the hash of the embedded text (float16, unit norm):"
    " no text is embedded twice.",
    "skipped_files": "Files that match a collection's mask but are not documents, with the reason.",
    "model_cache": "Answers of models: expansions (JSON), scores of passages (a number as text),"
    " vectors of questions (float32). hash is the hash of the input. The oldest rows are removed"
    " first; you may delete all of them at any time.",
    "pending_writes": "Temporary files of writes in progress. If a process is killed, the next one"
    " that opens the database for writing, or writes in the same directory, removes its files.",
    "v_skipped": "Files that were skipped, and why.",
}

_DESCRIBED = re.compile(
    r"((?:^--:.*\n)+)CREATE (?:VIRTUAL TABLE|TABLE|VIEW)(?: IF NOT EXISTS)? (\w+)", re.MULTILINE
)


def document() -> str:
    """The whole of docs/schema.md."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "index.sqlite"
        store = open_store(path, create=True)
        store.close()
        # The standard library, to prove that it can.
        connection = sqlite3.connect(path)
        try:
            return INTRODUCTION + "\n" + "\n".join(_sections(connection))
        finally:
            connection.close()


def descriptions() -> dict[str, str]:
    """Table or view → its description: `REWORDED`, else the latest in the migrations."""
    described = dict(BY_LIBRARIES)
    folder = migrate.migrations_folder()
    for script in sorted(path for path in folder.iterdir() if path.suffix in {".sql", ".py"}):
        for comment, name in _DESCRIBED.findall(script.read_text(encoding="utf-8")):
            described[name] = re.sub(r"\s*^--:\s*", " ", comment, flags=re.MULTILINE).strip()
    return {**described, **REWORDED}


def _sections(connection: sqlite3.Connection) -> Iterator[str]:
    described = descriptions()
    for title, kind in (("Views", "view"), ("Tables", "table")):
        yield f"## {title}\n"
        for name, sql in _objects(connection, kind):
            yield f"### {name}\n"
            yield f"{_escaped(described[name])}\n"
            yield from _body(connection, kind, name, sql)
    yield "## Triggers\n"
    for _, sql in _objects(connection, "trigger"):
        yield f"```sql\n{sql};\n```\n"


def _objects(connection: sqlite3.Connection, kind: str) -> list[tuple[str, str]]:
    """Name and SQL, without what SQLite and its virtual tables keep for themselves."""
    rows = connection.execute(
        "SELECT m.name, m.sql FROM sqlite_master m JOIN pragma_table_list t ON t.name = m.tbl_name"
        " WHERE m.type = ? AND t.type <> 'shadow' AND m.name NOT LIKE 'sqlite@_%' ESCAPE '@'"
        " ORDER BY m.name",
        [kind],
    )
    return [(name, sql) for name, sql in rows]


def _body(connection: sqlite3.Connection, kind: str, name: str, sql: str) -> Iterator[str]:
    if sql.startswith("CREATE VIRTUAL"):
        yield f"```sql\n{sql};\n```\n"
        return
    columns = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', [name]
    ).fetchall()
    if kind == "view":
        yield f"Columns: {', '.join(f'`{column}`' for column, *_ in columns)}\n"
        return
    targets = {
        column: f"`{table}.{to}`"
        for column, table, to in connection.execute(
            'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', [name]
        )
    }
    rows = ["| column | type | |", "|---|---|---|"]
    for column, kind_, required, default, key in columns:
        notes = [
            "primary key" if key else "",
            f"→ {targets[column]}" if column in targets else "",
            "" if required or key else "may be NULL",
            f"default `{default}`" if default is not None else "",
        ]
        rows.append(f"| `{column}` | {kind_} | {', '.join(filter(None, notes))} |")
    yield "\n".join(rows) + "\n"
    indexes = [
        f"`{sql.split(' ON ', 1)[1]}`" + (" (unique)" if "UNIQUE" in sql else "")
        for (sql,) in connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql NOT NULL"
            " ORDER BY name",
            [name],
        )
    ]
    if indexes:
        yield f"Indexes: {'; '.join(indexes)}\n"


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "\\<")


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
