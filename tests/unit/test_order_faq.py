"""Which pages and questions the bench of the order makes of what others were asked."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from order_faq import Section, sections

GUIDE = """# Backup

## 2.1. Storage

Copies lie in a folder of their own, which no other program writes to. {enough}

### 2.1.1. How do I restore a single file?

How do I restore a single file?

Open the [folder](folder.md) and copy it. {enough}

- [Restoring](https://example.org/restore)

#### By hand

```
# Why does this line not ask?
```

### (FAQ 3) Why is it so slow?

Short.
"""
ENOUGH = "It is as simple as that, and nobody needs to remember anything else about it. " * 3
TRANSLATION = """#: faq.rst:1
msgid "What does it cost to keep everything for ever?"
msgstr "把所有的东西永远保存下来要花多少钱？"

#: faq.rst:3
msgid ""
"Nothing, "
"as long as there is room."
msgstr ""
"{answer}"
"""
HTML = """<title>Backup</title><h1>Backup</h1><p>{enough}</p>
<dl><dt>Where do the old copies go?</dt><dd><p>{enough}</p></dd></dl>"""


def test_a_heading_that_asks_is_a_question_and_the_text_below_it_a_page(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text(GUIDE.format(enough=ENOUGH), encoding="utf-8")
    storage, restore = sections(tmp_path)
    assert storage.heading == "Storage"
    assert storage.text.startswith("Copies lie in a folder")
    assert restore == Section(
        "How do I restore a single file?",
        "Storage",
        f"Open the folder and copy it. {ENOUGH.strip()} \n\n#### By hand\n\n```\n"
        "# Why does this line not ask?\n```",
    )


def test_a_paragraph_of_a_translation_that_asks_is_a_question(tmp_path: Path) -> None:
    answer = "只要还有地方，就什么也不花。" * 6
    (tmp_path / "faq.po").write_text(TRANSLATION.format(answer=answer), encoding="utf-8")
    assert list(sections(tmp_path)) == [Section("把所有的东西永远保存下来要花多少钱？", "", answer)]


def test_a_term_that_asks_is_a_question(tmp_path: Path) -> None:
    (tmp_path / "faq.html").write_text(HTML.format(enough=ENOUGH), encoding="utf-8")
    assert [each.heading for each in sections(tmp_path)] == [
        "Backup",
        "Where do the old copies go?",
    ]
