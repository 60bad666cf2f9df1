"""
The file explains itself: comments in each CREATE, names that tell machinery, views for people.

Tables and views of the program alone get the prefix ``z_``, which puts them behind the others in
every list. SQLite keeps the comments inside a statement, so ``.schema`` and Datasette show them.
The code stands here whole, because later versions of the program must not change what this step
does. A later migration that adds a table writes its comment behind the first parenthesis.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

MACHINERY = (
    "access_scopes", "access_tokens", "changed_documents", "common_word_builds", "common_words",
    "documents_fts", "embeddings", "meta", "model_cache", "models", "names", "pending_writes",
    "searchable", "token_projections", "token_states", "vectors",
)  # fmt: skip

#: Where a statement names a table: FROM names, INTO names; not a word in a comment.
_NAMED = re.compile(
    rf"\b(FROM|JOIN|INTO|UPDATE|ON|OF)\s+({'|'.join(MACHINERY)})\b|\bdocuments_fts(_text)?\b"
)

#: The columns of the full-text index.
_FIELDS = "title, headings, body, path, extra, description"

COMMENTS = {
    "aliases": "Other names of a document, from frontmatter.",
    "attachments": (
        "The other files of a collection, such as images: a note may embed them or link to them,"
        " and they are no documents themselves. Files in hidden and ignored folders are left out."
        " name_key is as in documents."
    ),
    "audit": (
        "Who wrote what. actor is the name of a token, '' for the administrator and for programs"
        " on the server's machine. face is cli, mcp, rest, page or another part of the program;"
        " action is the tool or the command; target is a file or what else was changed. The oldest"
        " rows are removed first."
    ),
    "changes": (
        "One call of a tool that changed files; its files are the revisions with its id. session"
        " names the MCP session, the REST client or the process of the call; number_in_session"
        " counts its changes from 1, also those that are not kept any more. files is how many files"
        " were changed: with fewer revisions left, the change cannot be undone. undone_by is the"
        " change that undid this one."
    ),
    "chat_turns": (
        "A question with all that came of it; number counts from 1 within the conversation. status"
        " is running, done, stopped, failed, limit or interrupted. process is the one that runs the"
        " turn: its id, a dot, and when it started. events is what happened, as JSON, to be shown"
        " again; messages is what was said to the model and by it, as JSON. bytes is the length of"
        " both."
    ),
    "chats": (
        "A conversation. id is random, and part of its address. mode is read or write. summary is"
        " what the model wrote of the first summarized turns, which do not fit into its window any"
        " more; '' if all fit. owner is the id of the token whose client began it; '' for the"
        " administrator."
    ),
    "chunks": (
        "A piece of a document: substr(text, start_char + 1, end_char - start_char); v_chunks has"
        " the text. Ends are exclusive, as in Python; lines count from 1. Ids are never reused."
        " model_id is the model whose vector it has, NULL while it waits for one. hash is the hash"
        " of the embedded text: title, headings and text of the chunk. If only the title or the"
        " headings are others since, next_hash is that of the text to embed, and the old vector"
        " answers until then."
    ),
    "collections": (
        "Indexed directories, with the rules that say which files are documents. excluded counts"
        " the files that the rules leave out. included is 1 if searches that name no collection"
        " look in it. owner is whose folder it is, if another machine pushes it, else ''. is_vault"
        " is 1 if the folder has a folder .obsidian."
    ),
    "contexts": (
        "What the user says about everything below a path prefix; if collection_id is NULL, about"
        " all collections. v_contexts has the names."
    ),
    "documents": (
        "One row per file: its text, and the state of the file on the disk; v_documents has the"
        " names of the collections. tags is JSON, as v_documents has it. name_key is the file name"
        " in NFC, its letters folded to lower case, without .md or .markdown. hash is the SHA-256"
        " of the text. body_start is where the text begins behind the frontmatter, in characters."
    ),
    "links": (
        "Links as they are written; v_links has the files. target_key is the name of the target's"
        " file, as documents.name_key; NULL for a web address, '' for a link inside the note. text"
        " is the alias of a wikilink; the text of a Markdown link is in the document."
    ),
    "properties": (
        "The values of a document's properties: frontmatter and inline fields, which"
        " documents.properties has whole. A list has one row per element, and a key inside another"
        ' is written "book.author". key and text are folded: without letter case, a blank in a key'
        ' as "-". value is the text as written, NULL where it is the same. number and date (ISO'
        " 8601, as written in the note, a month as its first day) are set where the value is one."
        " Long values are cut."
    ),
    "revisions": (
        "What a tool did to a file, and the file before that; v_history has it in words. content"
        " is the earlier file; kind is 'content', or 'content, zlib' (compressed), or 'metadata'"
        " (of a photo), or 'none' (there was no file). hash is the SHA-256 of the earlier file,"
        " hash_after that of the new one. change_id is the row of changes."
    ),
    "skipped_files": (
        "Files that match a collection's mask but are no documents, with the reason; v_skipped has"
        " the names."
    ),
    "tags": 'Tags of a document, from frontmatter and text, without the "#".',
    "z_access_scopes": (
        "A collection that a token opens; may_write is 1 if its files may be written, too. A"
        " collection that is renamed keeps its tokens, and one that is removed loses them."
    ),
    "z_access_tokens": (
        "A token of a client. id is random, and never used again. hash is the SHA-256 of the"
        " secret, in hexadecimal; the secret itself is stored nowhere. expires_at is NULL if it"
        " never expires. last_used is the day (UTC) of its last use."
    ),
    "z_changed_documents": (
        "Documents that were stored or removed since a build of z_common_words began; full text is"
        " asked for these."
    ),
    "z_common_word_builds": (
        "A run that computes z_common_words; finished is 0 until the last of its words is stored."
        " lengths is uint32[highest document id + 1], the number of tokens of each document. All of"
        " it is computed from the full-text index; you may delete its rows at any time."
    ),
    "z_common_words": (
        "The words that most documents hold, and those documents: the distances of their ids, and"
        " how often each holds the word, weighed by field, times ten. token is a token of the"
        ' full-text index; a Chinese, Japanese or Korean character and "*" stand for all tokens'
        ' that begin with it; "/" behind it, for the word outside paths. The numbers are uint8,'
        " uint16 or uint32: as many bytes as the column is long, divided by documents."
    ),
    "z_embeddings": (
        "Exact vectors by the hash of the embedded text (float16, unit norm): no text is embedded"
        " twice."
    ),
    "z_meta": "Facts about the file: versions of segmenter and parser, times of the last runs.",
    "z_model_cache": (
        "Answers of models: expansions (JSON), scores of passages (a number as text), vectors of"
        " questions (float32). hash is the hash of the input. The oldest rows are removed first;"
        " you may delete all of them at any time."
    ),
    "z_models": (
        "An embedding model; vectors of different models never mix. The one with active = 1"
        " answers, and the one with next = 1 takes over when it has all of its vectors."
    ),
    "z_names": (
        'Names of a document besides that of its file: kind is "title" or "alias". name_key is the'
        " name in NFC, its letters folded to lower case. The table aliases has the aliases as they"
        " are written."
    ),
    "z_pending_writes": (
        "Temporary files of writes in progress. If a process is killed, the next one that opens"
        " the database for writing, or writes in the same directory, removes its files."
    ),
    "z_searchable": (
        "The text that the full-text index uses for a document, if that differs from the"
        " document's own: NULL means that the title, body, path, frontmatter or description is used"
        " unchanged. Runs of Chinese, Japanese and Korean characters are stored as overlapping"
        ' pairs: "数据库" as "数据 据库 库". title also holds the file name and the aliases,'
        " if they have words that the title lacks. words holds the parts of CamelCase names."
    ),
    "z_token_projections": (
        "How the token states of a model are made into codes, one row per model that has some."
        " recipe names the projection and the form of the codes; code_bytes is the size of the code"
        " of one token; projection is empty for the default model, whose projection is part of the"
        " program."
    ),
    "z_token_states": (
        "The token states of an embedded text: codes of code_bytes each, one for each distinct"
        " token that is kept. They come and go with the vector in z_embeddings."
    ),
    "z_vectors": (
        "The vectors that a search scans for the nearest: one row per chunk and model,"
        " int8[dimension], 256 times the exact value, clipped to -63..63. The exact vectors are in"
        " z_embeddings; these rows can be computed from them at any time. During a change of the"
        " model there are rows of both models."
    ),
}

#: Datasette and sqlite-utils look for content="documents" in the statement: then they offer to
#: search the table documents. FTS5 itself does not see the comment; it reads the view.
FULL_TEXT = (
    'content="documents". The full-text index, one row per document (rowid = documents.id), for'
    " v_hits. It stores no text but reads z_documents_fts_text, where a run of Chinese, Japanese or"
    ' Korean characters is written as overlapping pairs: search for "数据 据库" to find 数据库.'
)

_FILE = "c.name || '/' || d.path"


def _relative(path: str) -> str:
    """SQL: a path below the innermost collection, as COLLECTION/PATH; elsewhere the whole path."""
    return (
        "coalesce((SELECT c.name || substr(" + path + ", length(c.path) + 1) FROM collections c\n"
        f"                 WHERE {path} > c.path || '/' AND {path} < c.path || '0'\n"
        f"                 ORDER BY length(c.path) DESC LIMIT 1), {path})"
    )


#: Name → the comment, and the query.
VIEWS = {
    "v_documents": (
        "Documents, with the names of their collections. docid is the short name that qmd shows;"
        " date is the date in the note, else that of the file; tags is a JSON list. To find a text"
        " as you type it, Chinese too: WHERE text LIKE '%数据库%'. v_hits is faster, and ranks.",
        f"""
SELECT d.id,
       c.name AS collection,
       d.path,
       {_FILE} AS file,
       c.path || '/' || d.path AS absolute_path,
       '#' || substr(d.hash, 1, 6) AS docid,
       d.title,
       coalesce(d.date, d.modified_at) AS date,
       d.modified_at,
       d.bytes,
       d.tags,
       (SELECT count(*) FROM chunks k WHERE k.document_id = d.id) AS chunks,
       d.description,
       d.text
FROM documents d JOIN collections c ON c.id = d.collection_id""",
    ),
    "v_hits": (
        "Full-text search by hand: SELECT file, title FROM v_hits WHERE v_hits.match MATCH 'word'"
        " ORDER BY rank. It finds a Chinese word by its overlapping pairs: MATCH"
        " '\"数据 据库\"' for 数据库. beginning is the first 200 characters below the frontmatter.",
        f"""
SELECT z_documents_fts AS match,
       rank,
       {_FILE} AS file,
       d.title,
       d.modified_at,
       substr(d.text, d.body_start + 1, 200) AS beginning
FROM z_documents_fts
JOIN documents d ON d.id = z_documents_fts.rowid
JOIN collections c ON c.id = d.collection_id""",
    ),
    "v_chunks": (
        "The pieces of documents that are embedded, with their text; embedded is 1 if a piece has"
        " its vector.",
        f"""
SELECT k.id,
       {_FILE} AS file,
       k.seq,
       k.start_line,
       k.end_line - 1 AS last_line,
       k.heading_path,
       k.model_id IS NOT NULL AS embedded,
       substr(d.text, k.start_char + 1, k.end_char - k.start_char) AS text
FROM chunks k
JOIN documents d ON d.id = k.document_id
JOIN collections c ON c.id = d.collection_id""",
    ),
    "v_links": (
        "Links, and the files of the same collection that have the name in the link: several rows"
        " if there are several files, of which the link leads to one; target_file is NULL if there"
        " is none.",
        f"""
SELECT {_FILE} AS file,
       l.line,
       l.kind,
       l.target,
       l.text,
       l.heading,
       l.block,
       c.name || '/' || coalesce(iif(l.target = '', d.path, t.path), a.path) AS target_file
FROM links l
JOIN documents d ON d.id = l.document_id
JOIN collections c ON c.id = d.collection_id
LEFT JOIN documents t ON t.name_key = l.target_key AND t.collection_id = d.collection_id
LEFT JOIN attachments a
    ON t.id IS NULL AND a.name_key = l.target_key AND a.collection_id = d.collection_id""",
    ),
    "v_skipped": (
        "Files that were skipped, and why.",
        """
SELECT c.name || '/' || s.path AS file, s.reason, s.detail, s.bytes
FROM skipped_files s JOIN collections c ON c.id = s.collection_id""",
    ),
    "v_contexts": (
        "What the user says about everything below a place; place is a collection, or a folder or a"
        " file in it, or '' for all collections.",
        """
SELECT coalesce(c.name || iif(x.prefix = '', '', '/' || x.prefix), '') AS place,
       c.name AS collection,
       x.prefix AS path,
       x.text,
       x.created_at
FROM contexts x LEFT JOIN collections c ON c.id = x.collection_id""",
    ),
    "v_history": (
        "What tools did to files, in that order. text is the file before that; NULL if there was"
        " none, if it was a photo, or if it is stored compressed, as those of more than 10 MB."
        " moved_from is where the file lay before a move; undone_by is the change that undid this"
        " one.",
        f"""
SELECT r.id,
       r.created_at,
       r.action,
       {_relative("r.path")} AS file,
       {_relative("r.moved_from")} AS moved_from,
       r.tool,
       r.change_id AS change,
       g.undone_by,
       iif(r.kind = 'content', CAST(r.content AS TEXT), NULL) AS text
FROM revisions r LEFT JOIN changes g ON g.id = r.change_id""",
    ),
    "z_documents_fts_text": (
        "The text that the full-text index is built from. It is for FTS5, not for people.",
        """
SELECT d.id,
       coalesce(s.title, d.title) AS title,
       s.headings,
       coalesce(s.body, substr(d.text, d.body_start + 1)) AS body,
       coalesce(s.path, d.path) AS path,
       coalesce(s.front, substr(d.text, 1, d.body_start)) || char(10) || s.words AS extra,
       coalesce(s.description, d.description) AS description
FROM z_searchable s JOIN documents d ON d.id = s.document_id""",
    ),
}

ABOUT = {
    "README": (
        "This file is an index of folders of notes, made by qmd. The notes are the files in those"
        " folders: what is here of them can be made again. Tables and views whose names begin with"
        " z_ (and _sqlite_migrations) belong to the program: full text, vectors, models. All others"
        " are for people. Begin with the views: v_documents, v_hits, v_links, v_chunks, v_contexts,"
        " v_history, v_skipped. Each statement in .schema has a comment that explains its columns."
        " Read as much as you like, also while qmd runs; to change something, change your files."
    ),
    "find a word": "SELECT file, title FROM v_hits WHERE v_hits.match MATCH 'word' ORDER BY rank",
    "find a text as typed": "SELECT file, title FROM v_documents WHERE text LIKE '%数据库%'",
    "latest": "SELECT file, title, tags, date FROM v_documents ORDER BY date DESC LIMIT 10",
    "tags": "SELECT tag, count(*) FROM tags GROUP BY tag ORDER BY 2 DESC",
    "history": "SELECT created_at, action, file, tool FROM v_history ORDER BY id DESC LIMIT 10",
    "what was left out": "SELECT file, reason, detail FROM v_skipped",
}


def migrate(db: Database) -> None:
    triggers = _take_out(db, "trigger")
    _take_out(db, "view")
    for name in MACHINERY:
        db.execute(f"ALTER TABLE {name} RENAME TO z_{name}")
    db.execute("ALTER TABLE documents ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'")
    db.execute(
        "CREATE TABLE about (\n"
        "    -- What this file is, and questions to begin with: read the row README.\n"
        "    subject TEXT PRIMARY KEY,\n    text    TEXT NOT NULL\n)"
    )
    db.conn.executemany("INSERT INTO about VALUES (?, ?)", list(ABOUT.items()))
    _write_comments(db)
    for name, (comment, query) in VIEWS.items():
        db.execute(f"CREATE VIEW {name} AS\n{_lines(comment, '-- ')}{query}")
    for statement in triggers:
        db.execute(_NAMED.sub(_renamed, statement))
    db.execute(
        "UPDATE documents SET tags ="
        " (SELECT json_group_array(tag) FROM tags t WHERE t.document_id = documents.id)"
        " WHERE id IN (SELECT document_id FROM tags)"
    )


def _take_out(db: Database, kind: str) -> list[str]:
    """Drop all triggers or views; the statements that make them again."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE type = ?", [kind]).fetchall()
    for name, _ in rows:
        db.execute(f'DROP {kind} "{name}"')
    return [sql for _, sql in rows]


def _renamed(match: re.Match[str]) -> str:
    if match[1] is None:
        return f"z_{match[0]}"
    return match[0][: -len(match[2])] + f"z_{match[2]}"


def _write_comments(db: Database) -> None:
    """SQLite changes nothing but columns and names of a statement, so it is written by hand."""
    changed = []
    for name, sql in db.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
    ).fetchall():
        if name in COMMENTS:
            head, parenthesis, columns = sql.partition("(")
            comment = _lines(COMMENTS[name], "    -- ")
            changed.append((head + parenthesis + "\n" + comment + columns, name))
        elif name == "z_documents_fts":
            options = "tokenize = 'porter unicode61 remove_diacritics 2'"
            changed.append(
                (
                    f"CREATE VIRTUAL TABLE {name} USING fts5 /* {FULL_TEXT} */ (\n    {_FIELDS},\n"
                    f"    content = '{name}_text', content_rowid = 'id',\n    {options}\n)",
                    name,
                )
            )
    db.execute("PRAGMA writable_schema = ON")
    try:
        db.conn.executemany(
            "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = ?", changed
        )
    finally:
        db.execute("PRAGMA writable_schema = RESET")


def _lines(text: str, begin: str) -> str:
    return textwrap.indent(textwrap.fill(text, 100 - len(begin)), begin)
