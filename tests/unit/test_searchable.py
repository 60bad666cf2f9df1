"""What SQLite makes of a text is what the index got, so that a document can be taken out."""

from __future__ import annotations

import hashlib
import random
import re
import sqlite3
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.parse.segment import MOST_PAIRED, is_cjk, read_otherwise_among_pairs, segment
from qmd.store import open_store
from qmd.store.reader import Writer
from qmd.store.sqlite import full_text
from qmd.values import FileState, NewDocument
from tests.support.dump import assert_sound

PARTS = [
    *("数据库", "库", "ひらがな", "カタカナー", "한국어", "〆切", "豈", "〸", "ゟ", "㋿"),
    *(
        "か\u3099",
        "\xad",
        "数\u200b据",
        "ก\u200bก",
        "\ue051",
        "C++",
        "C#",
        "Ｃ＋＋",
        "ＡＢＣ",
        "１２",
        "ｶﾞｷﾞ",
        "①",
        "🙂",
    ),
    *("é", "e\u0301", "ß", "İ", "½", "ﬁ", "foo#", "snake_case", "CamelCase", " ", "\n\n"),
    *("，", "。", "（", "）", "・", "＿", "＾", "\u3000", "a" * 500, "数" * 511, "数" * 513),
]


def document(path: str, text: str) -> NewDocument:
    data = text.encode()
    parsed = parse_document(path, data)
    return new_document(
        path, parsed, hashlib.sha256(data).hexdigest(), FileState(len(data), 1, 1, 1)
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_index_holds_the_words_of_its_view(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    texts = [
        f"---\nsummary: {''.join(chance.choices(PARTS, k=3)).splitlines()}\n---\n"
        + "".join(chance.choices(PARTS, k=chance.randrange(12)))
        for _ in range(200)
    ]
    path = tmp_path / "kb.sqlite"
    store = open_store(path, create=True)

    def put(writer: Writer, texts: list[str]) -> None:
        folder = writer.collections.add(name="c", path="/c", pattern="**", ignore=[]).id
        documents = [document(f"{number}.md", text) for number, text in enumerate(texts)]
        writer.files.put_all(folder, ((each, None) for each in documents))

    store.write(lambda writer: put(writer, texts))
    counts = store.write(
        lambda writer: writer.connection.execute(
            "SELECT count(has_pairs), count(replacements), count(body) FROM z_searchable"
        ).fetchone()
    )
    assert all(counts), "no text has pairs, replacements or a copy"
    assert_sound(path)

    def write_out(writer: Writer) -> int:
        full_text.write_out(writer.connection, range(1, 151))
        count = "SELECT count(*) FROM z_searchable WHERE has_pairs AND body IS NULL"
        return int(writer.connection.execute(count).fetchone()[0])

    # What is about to be taken out has the same words, made by Python.
    assert 0 < store.write(write_out) < counts[0] / 2
    assert_sound(path)
    store.write(lambda writer: writer.connection.execute("DELETE FROM documents WHERE id % 2"))
    assert_sound(path)
    store.close()


@pytest.mark.parametrize(
    "text", ["数据库 and C++", "数" * (MOST_PAIRED - 9), "， 。（ﬁ）数", "ｶﾞ数"]
)
def test_a_chinese_text_is_stored_once(text: str) -> None:
    entry = document("a.md", text).fulltext
    assert entry.body == segment(text)
    assert entry.has_pairs


@pytest.mark.parametrize("text", ["数" * (MOST_PAIRED + 1), "か\u3099"])
def test_a_text_of_which_pairs_would_be_others_or_late_is_kept(text: str) -> None:
    entry = document("a.md", text).fulltext
    assert (entry.has_pairs, list(entry.replacements)) == (False, [])


def test_sqlite_makes_pairs_of_the_same_characters(tmp_path: Path) -> None:
    path = tmp_path / "kb.sqlite"
    open_store(path, create=True).close()
    connection = sqlite3.connect(path)
    (view,) = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'z_documents_fts_text'"
    ).fetchone()
    kind = re.search(r"substr\(piece, place, 1\) GLOB '([^']+)'", view)
    assert kind is not None
    characters = [chr(code) for code in range(0x33000) if not 0xD800 <= code <= 0xDFFF]
    connection.execute("CREATE TEMP TABLE c (c TEXT)")
    connection.executemany("INSERT INTO c VALUES (?)", [(each,) for each in characters])
    found = connection.execute("SELECT c FROM c WHERE c GLOB ?", [kind[1]]).fetchall()
    assert [each for (each,) in found] == [each for each in characters if is_cjk(each)]
    connection.close()


def test_what_stays_among_pairs_is_read_as_nfkc() -> None:
    kept = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    kept = [character for character in kept if not read_otherwise_among_pairs().search(character)]
    for character in kept:
        changed = segment(character).strip()
        assert changed.casefold() == character.casefold() or not changed.isalnum(), character


def test_signs_that_part_words_hide_none(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    text = "# Note\n\nfirst\n\nThe Donau\xaddampf\u200bschiff is 数\u200b据\xad库 here\n"
    (tmp_path / "notes" / "a.md").write_text(text, "utf-8")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.index()
        for query in (
            "donaudampfschiff",
            '"the donaudampfschiff is"',
            "数据库",
            "Donau\xaddampfschiff",
        ):
            [hit] = kb.search(query).hits
            assert hit.line == 5
            assert "Donau\xaddampf\u200bschiff" in hit.snippet
        assert kb.get("a.md").text == text
