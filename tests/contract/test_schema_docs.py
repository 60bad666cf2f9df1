"""docs/schema.md says what the live database is, and its examples run in the stock shell."""

from __future__ import annotations

import re
import runpy
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from support.cli import filled

ROOT = Path(__file__).parents[2]
GENERATOR = runpy.run_path(str(ROOT / "docs" / "generate_schema.py"))
WHOLE: str = GENERATOR["WHOLE"].read_text(encoding="utf-8")
DOCUMENT: str = GENERATOR["DOCUMENT"].read_text(encoding="utf-8")


def test_the_schema_document_is_fresh() -> None:
    assert GENERATOR["document"]() == DOCUMENT, "run: python docs/generate_schema.py"


@pytest.mark.migrates
def test_the_script_of_new_databases_is_fresh() -> None:
    assert GENERATOR["whole"]() == WHOLE, "run: python docs/generate_schema.py"


def test_the_examples_of_the_schema_document_run_in_a_stock_sqlite(tmp_path: Path) -> None:
    database = filled(tmp_path).database
    (examples,) = re.findall(r"```sql\n(-- sqlite3.*?)```", DOCUMENT, re.DOTALL)
    shell = shutil.which("sqlite3")
    if shell is None:  # tests/run installs it
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        rows = [row for query in examples.splitlines()[1:] for row in connection.execute(query)]
        connection.close()
        out = "\n".join("|".join(map(str, row)) for row in rows)
    else:
        done = subprocess.run(
            [shell, "-readonly", str(database)],
            input=examples,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        out = done.stdout
    assert "notes/plan.md|Road map\n" in out
    assert "notes/zh/备份.md|备份方案" in out
