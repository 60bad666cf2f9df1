"""
Small databases of released versions, which `tests/unit/test_upgrades.py` opens.

    python -m tests.support.released 1.8.0

writes that of the version in the working directory, with its own program and `HashEmbedder`.
Do so once for each release, and commit the file: what a version has stored must stay readable.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data"

#: Texts that a parser may read in one way or another: where the title is from, headings of all
#: levels, several chunks, Chinese, links, properties, a drawing.
NOTES = {
    "h1.md": "# Harvest\n\nApples in [[cellar|the cellar]]. #autumn\n",
    "h2.md": "## Before the winter\n\nTurn the compost.\n\n## After it\n\nSow peas.\n",
    "plain.md": "No heading at all, but a link: [web](https://example.com).\n",
    "zh/笔记.md": "---\ntags: [备份]\n---\n## 引入\n\n使用 Docker 部署数据库。\n",
    "front.md": "---\ntitle: Named above\naliases: [Other]\nrating: 4\n---\n# Below it\n\nText.\n",
    "deep.md": "### Third\n\nOne.\n\n# First\n\nTwo.\n\n## Second\n\nThree. due:: 2025-03-01\n",
    "long.md": "## Part one\n\n" + "Slow rivers carry fine sand. " * 90
    + "\n\n## Part two\n\n" + "Fast rivers carry stones. " * 90 + "\n",
    "drawing.md": "---\nexcalidraw-plugin: parsed\n---\n# Text Elements\nBox ^a1\n\n%%\n"
    "## Drawing\n```compressed-json\nN4Ig\n```\n%%\n",
}  # fmt: skip


def main() -> None:
    # Of the version in the working directory, which may be an old one.
    from qmd import KnowledgeBase, Settings
    from tests.support.embedder import HashEmbedder

    with tempfile.TemporaryDirectory() as folder:
        root, database = Path(folder) / "notes", Path(folder) / "index.sqlite"
        write_notes(root)
        with KnowledgeBase.open(database, Settings(embedder=HashEmbedder()), create=True) as kb:
            kb.add_collection(root, name="notes", mask="**/*.md")
            kb.index()
            kb.embed()
            kb.cleanup()
        target = FOLDER / f"qmd-{sys.argv[1]}.sqlite.gz"
        target.write_bytes(gzip.compress(database.read_bytes(), mtime=0))
        print(f"{target}: {target.stat().st_size:,} bytes")


def write_notes(root: Path) -> None:
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
