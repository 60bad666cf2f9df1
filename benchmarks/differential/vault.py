"""The folders that both versions index: the same bytes and the same times in each run."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

#: Seconds since 1970 of the first file, 2024-03-01 12:00 UTC; each later one is an hour younger.
FIRST_TIME, STEP_S = 1_709_294_400, 3600

SUBJECTS = {
    "boat": "The boat lies in the harbour and waits for a new sail.",
    "backup": "A backup is written each night and restored once a month.",
    "garden": "Tomatoes grow beside the wall, and the pond needs a pump.",
    "server": "The server restarts after a deployment; its logs are kept for a week.",
    "budget": "The budget has 1,200 for tools and 300 for books.",
    "bread": "Sourdough rests overnight, then bakes for forty minutes.",
    "database": "Readers never wait for the writer, because the journal is a WAL.",
    "train": "The night train leaves at 21:40 and crosses the border at dawn.",
}
TOPICS_ZH = {
    "数据库": "这一年我们把数据库迁移到了新的服务器，读者不必等待写者。",
    "部署": "部署之后要重启服务，并检查日志里有没有错误。",
    "旅行": "夜里的火车九点四十分出发，天亮时越过边境。",
    "面包": "酸面团静置一夜，然后烘烤四十分钟。",
}
#: Notes with a feature each; their texts are compared as they come.
SPECIAL: dict[str, str | bytes] = {
    "MOC.md": "# Map\n\n[[boat 1]], [[Backup plan]] and [the garden](garden/garden%201.md).\n"
    "![[pixel.png]] [[nowhere]] [[boat 1#Next steps]] [[boat 1#^end]] #map/start\n",
    "Backup plan.md": "---\naliases: [Safety net, 备份计划]\ntags: [work, plan]\nstatus: draft\n"
    "rating: 5\ndate: 2024-02-03\ndescription: What is copied where.\n---\n# Backup plan\n\n"
    "See [[server 1]] and [[数据库 1]].\n\n## Steps\n\n- [ ] write the script\n- [x] buy a disk\n"
    "- [ ] test a restore 📅 2024-05-01\n\n## Open questions\n\nowner:: Anna\nWho pays? ^pay\n",
    "same.md": "# Same\n\nOne of two notes with this name.\n",
    "other/same.md": "# Same\n\nThe other of two notes with this name.\n",
    "empty.md": "",
    "only title.md": "# Nothing but a title\n",
    "windows.md": b"# CRLF\r\n\r\nfirst line\r\nsecond line\r\n",
    "latin.md": "# Caf\u00e9\n\nA text in another encoding: \u00fcber.\n".encode("latin-1"),
    "no end.md": "# No end\n\nthe last line has no line end",
    "100%.md": "# Percent\n\nAll of it, 100 % & more <b>bold</b>.\n",
    "-dash.md": "# Dash\n\nA name that looks like an option.\n",
    "a,b.md": "# Comma\n\nA name with a comma.\n",
    "quotes 'n \"more\".md": "# Quotes\n\nHe said \"no\".\n",
    "code.md": "# Code\n\n```python\ndef main():\n    # not a heading\n    return [[x]]\n```\n\n"
    "Inline `[[y]]` and $a^2$.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> [!note] A callout\n> text\n",
    "bad yaml.md": "---\ntags: [unclosed\n---\n# Bad frontmatter\n\nStill a note.\n",
    "conflict.md": "# Conflict\n\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n",
    "big.md": "# Big\n\n"
    + "".join(
        f"## Part {part}\n\n" + f"Line of filler about elephants in part {part}.\n" * 40 + "\n"
        for part in range(1, 13)
    ),
    "script.md": "# Script\n\n<script>alert(1)</script> [x](javascript:alert(1)) <img src=x>\n",
    "steps.canvas": json.dumps(
        {
            "nodes": [
                {"id": "1", "type": "text", "text": "First card about a boat", "x": 0, "y": 0,
                 "width": 200, "height": 80},
                {"id": "2", "type": "file", "file": "MOC.md", "x": 300, "y": 0,
                 "width": 200, "height": 80},
            ],
            "edges": [{"id": "e", "fromNode": "1", "toNode": "2", "label": "leads to"}],
        }
    ),
}  # fmt: skip
DOCS = {
    "install.md": "# Install\n\nRun `make install`, then start it.\n\n## Linux\n\nUse apt.\n",
    "configure.md": "# Configure\n\nThe option `port` says where the server listens.\n",
    "guide/first steps.md": "# First steps\n\nSee [install](../install.md) and [[configure]].\n",
}
POSTS = {
    "anna/motions/first.md": "# First\n\nHello, 温柔 world.\nC++ and more.\n",
    "anna/holidays/sea.md": "# The sea\n\nWaves and a boat.\n",
    "ben/motions/tea.md": "# Tea\n\nGreen tea, 绿茶.\n",
}


def make_vault(home: Path) -> None:
    """Write ``notes``, ``docs`` and ``posts`` below a directory."""
    notes = {**_generated(), **SPECIAL}
    files = {f"notes/{name}": text for name, text in notes.items()}
    files |= {f"docs/{name}": text for name, text in DOCS.items()}
    files |= {f"posts/{name}": text for name, text in POSTS.items()}
    files["notes/pixel.png"] = _png()
    for number, (name, text) in enumerate(files.items()):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        moment = FIRST_TIME + number * STEP_S
        os.utime(path, (moment, moment))


def _generated() -> dict[str, str]:
    """Four notes on each subject, which link to each other, with tags, properties and tasks."""
    notes = {}
    for language, subjects in (("en", SUBJECTS), ("zh", TOPICS_ZH)):
        for position, (subject, sentence) in enumerate(subjects.items()):
            for number in range(1, 5):
                after = list(subjects)[(position + number) % len(subjects)]
                notes[f"{subject}/{subject} {number}.md"] = (
                    f"---\ntags: [{language}/{subject}, {'work' if number % 2 else 'home'}]\n"
                    f"status: {('draft', 'done', 'open')[number % 3]}\nrating: {number}\n"
                    f"date: 2024-0{number}-1{position % 10}\n---\n# {subject} {number}\n\n"
                    f"{sentence} #topic/{subject}\n\n## Next steps\n\n"
                    f"- [ ] ask about {after}\n- [x] read [[{after} {number}]]\n\n"
                    f"{sentence} Compare [[{after} {number % 4 + 1}|the next]]. ^end\n"
                    + f"{sentence}\n"
                    * number
                )
    return notes


def _png() -> bytes:
    """A picture of one grey dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b"\0\x80"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")
