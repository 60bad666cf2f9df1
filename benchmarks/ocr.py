"""
How many characters OCR gets wrong: pages of PDFs are drawn, read, and compared with their text.

    python benchmarks/ocr.py --pages 6 R-intro.pdf debian-reference.zh-cn.pdf

It needs the extra ``ocr``. Blanks do not count, nor the width of punctuation; heads and feet do.
The text that the PDF has is the reference, in the order of pdfium.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from time import process_time

import numpy as np
from PIL import Image
from rapidfuzz.distance import Levenshtein

from qmd.inference import ocr
from qmd.parse.convert import pdf
from qmd.parse.pictures import picture_of_page
from qmd.values.pictures import Pixels

#: Name → how a page becomes worse before it is read.
_VARIANTS = {
    "as drawn": lambda image: image,
    "JPEG of 100 dpi": lambda image: _jpeg(image.resize((image.width // 2, image.height // 2))),
    "tilted by 1 degree": lambda image: image.rotate(1, expand=True, fillcolor="white", resample=3),
    "on its side": lambda image: image.rotate(90, expand=True),
    "upside down": lambda image: image.rotate(180),
}


def _jpeg(image: Image.Image) -> Image.Image:
    data = BytesIO()
    image.save(data, "JPEG", quality=40)
    return Image.open(data)


def _plain(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def _pages(data: bytes, count: int) -> Iterator[tuple[int, str]]:
    """The numbers of pages with much text, from all over the file, and their texts."""
    with closing(pdf.opened_pdf(data)) as document:
        step = max(1, len(document) // (count + 1))
        for number in range(step, len(document), step):
            with closing(document[number]) as page, closing(page.get_textpage()) as text_page:
                text = text_page.get_text_range().replace("\ufffe", "-")
            if len(_plain(text)) > 600 and count:
                count -= 1
                yield number + 1, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=6, help="of each file")
    arguments = parser.parse_args()
    print("| file | pages | " + " | ".join(_VARIANTS) + " | s of CPU a page |")
    print("|---|--:|" + "--:|" * (len(_VARIANTS) + 1))
    for file in arguments.files:
        data = file.read_bytes()
        wrong = dict.fromkeys(_VARIANTS, 0)
        characters = pages = 0
        seconds = 0.0
        for number, text in _pages(data, arguments.pages):
            pages += 1
            expected = _plain(text)
            characters += len(expected)
            pixels = picture_of_page(file.name, data, number)
            drawn = Image.fromarray(pixels.rgb)
            for name, worse in _VARIANTS.items():
                before = process_time()
                read = ocr.read(Pixels(np.asarray(worse(drawn).convert("RGB")), pixels.per_point))
                seconds += process_time() - before if name == "as drawn" else 0.0
                lines = " ".join(line.text for line in pdf._lines_read(read))
                wrong[name] += Levenshtein.distance(_plain(lines), expected)
        rates = " | ".join(f"{count / characters:.3f}" for count in wrong.values())
        print(f"| {file.stem} | {pages} | {rates} | {seconds / pages:.1f} |", flush=True)


if __name__ == "__main__":
    main()
