"""
Turns a Jupyter notebook into Markdown: its text, its code, and what the code printed.

Each cell is an anchor. Pictures are left out. Source: the nbformat schema, versions 3 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from qmd.parse.convert.blocks import Blocks
from qmd.parse.converted import Converted
from qmd.parse.decode import decode, json_object
from qmd.parse.markdown import closed
from qmd.values.text import replace_halves

#: Cells that are read.
MAX_CELLS = 20_000
#: Characters of what one cell printed; the rest is left out.
MAX_OUTPUT = 4000

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,40}[A-Za-z]")
_ATTACHED = re.compile(r"!\[([^\[\]]{0,500})\]\((?:attachment:|data:)[^()\s]{0,200000}\)")


def convert(path: str, data: bytes) -> Converted:
    """
    A notebook.

    Raises:
        DecodeError: The bytes are no text.
        DamagedFileError: They are no notebook.
    """
    notebook = json_object(
        decode(data).text,
        damaged="The file is no notebook: its JSON cannot be read ({error}).",
        other="The file is no notebook: its JSON holds no cells.",
        hint="Open it in Jupyter and save it again.",
    )
    metadata = _mapping(notebook.get("metadata"))
    language = _text(
        _mapping(metadata.get("language_info")).get("name")
        or _mapping(metadata.get("kernelspec")).get("language")
        or "python"
    )
    cells = _cells(notebook)
    blocks = Blocks()
    if len(cells) > MAX_CELLS:
        blocks.warnings.append(
            f"The notebook has {len(cells):,} cells; only {MAX_CELLS:,} were read."
        )
    for number, cell in enumerate(cells[:MAX_CELLS], start=1):
        blocks.anchor("cell", str(number))
        _write(blocks, _mapping(cell), language)
    return blocks.converted(title=_text(metadata.get("title")))


def _cells(notebook: Mapping[str, object]) -> list[object]:
    cells = _list(notebook.get("cells"))
    for sheet in _list(notebook.get("worksheets")):  # version 3
        cells = [*cells, *_list(_mapping(sheet).get("cells"))]
    return cells


def _write(blocks: Blocks, cell: Mapping[str, object], language: str) -> None:
    kind = cell.get("cell_type")
    source = _text(cell.get("source") or cell.get("input"))
    if kind == "markdown":
        text = _ATTACHED.sub(r"\1", source.replace("\r\n", "\n").replace("\r", "\n"))
        blocks.markdown(closed(text))
    elif kind == "heading":
        level = cell.get("level")
        blocks.heading(level if isinstance(level, int) else 1, source)
    elif kind == "code":
        blocks.code(source, _text(cell.get("language")) or language)
        for output in _list(cell.get("outputs"))[:100]:
            _write_output(blocks, _mapping(output))
    else:
        blocks.code(source)


def _write_output(blocks: Blocks, output: Mapping[str, object]) -> None:
    data = _mapping(output.get("data"))
    text = _text(output.get("text"))
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    elif data:
        text = _text(data.get("text/plain"))
        markdown = _text(data.get("text/markdown"))
        if markdown:
            blocks.markdown(closed(_shortened(markdown)))
            return
    text = _COLOURS.sub("", text)
    blocks.code(_shortened(text))


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_OUTPUT else f"{text[:MAX_OUTPUT]}\n…"


def _text(value: object) -> str:
    """A text, or one in a list of its lines."""
    if isinstance(value, list):
        value = "".join(part for part in value if isinstance(part, str))
    return replace_halves(value).replace("\0", "\ufffd") if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
