"""
Writes docs/schema.md from a live database, whose statements have comments.

And migrations/new.sql, which makes a new database as all migrations would, one after the other.

Run ``.venv-tests/bin/python docs/generate_schema.py`` after adding a migration; a test fails when
it is stale. With ``--postgres 0032_name`` it writes the same migration for PostgreSQL, too, so that
a table is declared once.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from qmd.store import open_store
from qmd.store.migrations import available, migrations_folder
from qmd.store.sqlite import library, migrate

DOCUMENT = Path(__file__).with_name("schema.md")
WHOLE = migrations_folder() / migrate.WHOLE

INTRODUCTION = """\
# The database

<!-- generated: docs/generate_schema.py -->

One SQLite file holds all of qmd's data, in ordinary tables, FTS5 and views. Any SQLite of version
3.40 or newer opens, counts, searches and browses all of it without an extension: the `sqlite3`
shell, [Datasette](https://datasette.io) (which offers to search the table `documents`),
[sqlite-utils](https://sqlite-utils.datasette.io), DB Browser. You may read the file at any time,
even while qmd runs. To change something, do not change rows: change your files, and `qmd index`
updates the database.

Tables and views whose names begin with `z_` belong to the program, and stand last in every list;
all others are for people. The row `README` of the table `about` says so, with questions to begin
with, and each statement in `.schema` has a comment that explains its columns.

Times are ISO 8601 in UTC. Spans are half-open: characters count from 0 in the decoded text, bytes
from 0 in its UTF-8 form, lines from 1. Columns that hold lists or objects hold JSON.

```sql
-- sqlite3 -readonly ~/.local/share/qmd/index.sqlite   ('qmd status' names your file)
SELECT file, title, tags, date FROM v_documents ORDER BY date DESC LIMIT 10;
SELECT file, title FROM v_hits WHERE v_hits.match MATCH 'parser' ORDER BY rank LIMIT 10;
SELECT file, title FROM v_documents WHERE text LIKE '%数据库%';                        -- as typed
SELECT file, title FROM v_hits WHERE v_hits.match MATCH '"数据 据库"' ORDER BY rank;  -- ranked
SELECT place, text FROM v_contexts;
SELECT created_at, action, file, text FROM v_history ORDER BY id DESC LIMIT 10;
SELECT file, reason, detail FROM v_skipped;
-- wikilinks to notes that are not there
SELECT file, target FROM v_links WHERE kind = 'wikilink' AND target > '' AND target_file IS NULL;
```

```sh
pip install datasette
datasette ~/.local/share/qmd/index.sqlite
```

Datasette searches `documents`, and counts the documents of each tag there and in `v_documents`:
choose "tags (array)" behind "Suggested facets". Its search splits text at blanks, so type a Chinese
word as its overlapping pairs, in quotation marks; or filter `v_documents` by "text contains".
"""

#: What has no comment of its own.
BY_LIBRARIES = {
    "_sqlite_migrations": "Which migrations were applied to this file; sqlite-utils writes it.",
}
#: The comment in a statement: of a table behind the parenthesis, of a view behind AS.
_COMMENT = re.compile(r"(?:\(|\bAS)\n((?: *-- .*\n)+)|/\* (.*?) \*/")

#: The comment of a column that a later migration added.
_COLUMN_COMMENT = re.compile(r"(\w+) /\* (.*?)\.? \*/")


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


def whole(folder: Path) -> str:
    """
    The whole of migrations/new.sql, for the migrations of a folder.

    Raises SystemExit: One of them fails; the message names it.
    """
    with tempfile.TemporaryDirectory() as directory:
        steps = Path(directory, "migrations")
        steps.mkdir()
        path = Path(directory, "new.sqlite")
        connection = library.connect(path, read_only=False)
        try:
            for name in available(folder):  # one by one: an error of SQLite names no file
                step = next(folder.glob(f"{name}.*"))
                shutil.copy(step, steps)
                try:
                    migrate.migrate(connection, path, steps)
                except library.Error as error:
                    raise SystemExit(f"{step}: {error}") from error
            return "\n".join(_statements(connection))
        finally:
            connection.close()


def _statements(connection: sqlite3.Connection) -> Iterator[str]:
    """What makes the objects of a database, and their rows."""
    yield "-- generated: docs/generate_schema.py"
    for name, kind, sql in connection.execute(
        "SELECT m.name, t.type, m.sql FROM sqlite_master m LEFT JOIN pragma_table_list t"
        " ON t.name = m.name WHERE t.type IS NOT 'shadow' AND m.sql NOT NULL"
        " AND m.name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY m.rowid"
    ).fetchall():
        yield f"{sql};"
        for values in _rows(connection, name, kind):
            yield f"INSERT INTO {name} {values};"
    yield ""


def _rows(connection: sqlite3.Connection, name: str, kind: str | None) -> Iterator[str]:
    """What stands behind ``INSERT INTO name`` for each row of a table."""
    if kind == "virtual":  # what full text was told
        for key, value in connection.execute(
            f"SELECT k, quote(v) FROM {name}_config WHERE k <> 'version' ORDER BY k"
        ):
            yield f"({name}, rank) VALUES ('{key}', {value})"
    elif name == "_sqlite_migrations":
        now = "strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now')"
        for group, step in connection.execute(
            f"SELECT migration_set, name FROM {name} ORDER BY id"
        ):
            yield f"(migration_set, name, applied_at) VALUES ('{group}', '{step}', {now})"
    elif kind == "table":
        for row in connection.execute(f'SELECT * FROM "{name}"'):
            marks = ", ".join(["quote(?)"] * len(row))
            quoted = connection.execute(f"SELECT {marks}", row).fetchone()
            yield f"VALUES ({', '.join(quoted)})"


def description(name: str, sql: str) -> str:
    """What the file says of a table or a view."""
    comment = _COMMENT.search(sql)
    if comment is None:
        return BY_LIBRARIES[name]
    return re.sub(r"\s*^ *-- ", " ", comment[1] or comment[2], flags=re.MULTILINE).strip()


#: A column, or what is added as one: what stands before its type, the type, and the rest.
_COLUMN = re.compile(r"^(.*?\w\s+)(INTEGER|TEXT|BLOB|REAL)\b(.*)$", re.MULTILINE)
_TYPES = {
    "INTEGER": "bigint",  # of 64 bits, as in SQLite
    "TEXT": 'text COLLATE "C"',  # compared byte by byte, as in SQLite
    "BLOB": "bytea",
    "REAL": "double precision",
}


def for_postgres(migration: str) -> str:
    """
    The migration of PostgreSQL that does what one of SQLite does.

    Tables and columns get types and comments of PostgreSQL; ``ON DELETE CASCADE``, which triggers
    of SQLite repeat, is enough there. Views are left out, for most are for people who open the
    file; a comment names them.

    Raises:
        ValueError: A statement is none of these, so it is to be written by hand.
    """
    title, _, rest = migration.partition("\n")
    statements = [title]
    comments: list[str] = []
    pending = ""
    for line in rest.splitlines(keepends=True):
        pending += line
        if not sqlite3.complete_statement(pending):
            continue
        statement, pending = pending.strip(), ""
        kind = " ".join(statement.split()[:2])
        if kind not in ("CREATE INDEX", "CREATE UNIQUE"):  # an index stands before the comment
            statements, comments = [*statements, *comments], []
        if kind in ("CREATE TABLE", "ALTER TABLE"):
            made, comment = _table_for_postgres(statement)
            statements.append(made)
            comments = [comment] if comment else []
        elif kind in ("CREATE INDEX", "CREATE UNIQUE"):
            statements.append(statement)
        elif kind in ("CREATE VIEW", "DROP VIEW"):
            statements.append(f"-- SQLite has here: {statement.splitlines()[0]}")
        elif not re.match(r"CREATE TRIGGER documents_delete_\w+ AFTER DELETE ON doc", statement):
            raise ValueError(f"To be written by hand for PostgreSQL: {statement}")
    return "\n".join([*statements, *comments, ""])


def _table_for_postgres(statement: str) -> tuple[str, str]:
    """A statement that makes or alters a table, and the one that makes its comment, if any."""
    target = statement.split()[2]
    column = _COLUMN_COMMENT.search(statement)
    if statement.startswith("ALTER") and column is not None:
        text = f"{column[2]}."
        plain = re.sub(r" /\*.*?\*/", "", statement, count=1)
        kind, target = "COLUMN", f"{target}.{column[1]}"
    else:
        comment = _COMMENT.search(statement)
        text = "" if comment is None else description("", statement)
        text = re.sub(r" v_\w+ has [^.]*\.", "", text)
        plain = statement if comment is None else statement.replace(comment[0], "(\n", 1)
        kind = "TABLE"
    if "/*" in plain or "PRIMARY KEY AUTOINCREMENT" in plain or "INTEGER PRIMARY KEY" in plain:
        raise ValueError(f"To be written by hand for PostgreSQL: {statement}")
    made = _COLUMN.sub(lambda column: f"{column[1]}{_TYPES[column[2]]}{column[3]}", plain)
    made = re.sub(r"\) WITHOUT ROWID;$", ");", made)
    quoted = text.replace("'", "''")
    return made, quoted and f"COMMENT ON {kind} {target} IS\n    '{quoted}';"


def _write_for_postgres(name: str) -> None:
    """Write the file, or write it anew if there is one of this name."""
    source = migrations_folder() / f"{name}.sql"
    if not source.exists():
        raise SystemExit(f"There is no {source}: name a migration, such as 0032_name.")
    folder = migrations_folder("postgres")
    before = next(folder.glob(f"[0-9][0-9][0-9][0-9]_{name[5:]}.sql"), None)
    number = int(available(folder)[-1][:4]) + 1
    target = before or folder / f"{number:04}_{name[5:]}.sql"
    try:
        script = for_postgres(source.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SystemExit(f"{target}: {error}") from error
    target.write_text(script, encoding="utf-8")
    print(target)


def _sections(connection: sqlite3.Connection) -> Iterator[str]:
    for title, kind in (("Views", "view"), ("Tables", "table")):
        yield f"## {title}\n"
        for name, sql in _objects(connection, kind):
            yield f"### {name}\n"
            yield f"{_escaped(description(name, sql))}\n"
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
    comments = dict(_COLUMN_COMMENT.findall(sql))
    rows = ["| column | type | |", "|---|---|---|"]
    for column, kind_, required, default, key in columns:
        notes = [
            "primary key" if key else "",
            f"→ {targets[column]}" if column in targets else "",
            "" if required or key else "may be NULL",
            f"default `{default}`" if default is not None else "",
            comments.get(column, ""),
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
    WHOLE.write_text(whole(migrations_folder()), encoding="utf-8")
    DOCUMENT.write_text(document(), encoding="utf-8")
    if sys.argv[1:2] == ["--postgres"]:  # last: only a migration that SQLite takes is translated
        _write_for_postgres("".join(sys.argv[2:3]).removesuffix(".sql"))
