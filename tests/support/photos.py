"""Photos as cameras make them, and what independent readers find in them."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageCms
from pillow_heif import from_pillow, register_heif_opener

register_heif_opener()

SUFFIXES = ("jpg", "png", "heic")
#: A collection that holds photos beside its notes.
MASK = "**/*.{md,jpg,jpeg,png,heic}"

#: Fields that a write may change, or that say when and where the file lies.
OURS = (
    *("XMP-dc:Subject", "IPTC:Keywords", "XMP-iptcExt:PersonInImage", "XMP-dc:Description"),
    *("IPTC:Caption-Abstract", "IFD0:ImageDescription", "XMP-iptcCore:Location"),
    "IPTC:Sub-location",
)
_INCIDENTAL = (
    *("SourceFile", "System:", "File:FileSize", "File:CurrentIPTCDigest"),
    *("ExifTool:", "Composite:"),
)

MAKER_NOTE = bytes(range(256)) * 4
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def picture() -> Image.Image:
    return Image.effect_mandelbrot((96, 64), (-2, -1, 1, 1), 30).convert("RGB")


def camera_exif() -> Image.Exif:
    """Camera, date, place on earth, a thumbnail's directory, and notes of an unknown maker."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x0112] = "ACME", "ACME X100", 6
    exif[0x9C9E] = "schon da".encode("utf-16-le")  # XPKeywords
    details = exif.get_ifd(0x8769)
    details[0x9003], details[0x9011] = "2024:07:14 18:30:00", "+02:00"
    details[0x829A], details[0x8827] = (1, 250), 400
    details[0x927C] = MAKER_NOTE
    details[0x9286] = b"ASCII\0\0\0a comment"
    exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 51.0, 29.6), 3: "E", 4: (2.0, 17.0, 40.2)})
    return exif


def make(path: Path, *, exif: Image.Exif | None = None) -> Path:
    """A photo in the format of its suffix, with a colour profile and what a camera notes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = camera_exif() if exif is None else exif
    suffix = path.suffix.lower()
    if suffix == ".heic":
        photo = from_pillow(picture())
        photo.info["exif"] = found.tobytes()
        photo.save(path, quality=60, icc_profile=ICC)
    else:
        kind = "PNG" if suffix == ".png" else "JPEG"
        picture().save(path, kind, exif=found, icc_profile=ICC)
    return path


class _Reader:
    """An exiftool that stays open, since starting it takes longer than all it is asked."""

    def __init__(self) -> None:
        found = shutil.which("exiftool")
        assert found, "tests/run installs exiftool (libimage-exiftool-perl)"
        self.process = subprocess.Popen(
            [found, "-config", "", "-stay_open", "True", "-@", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )

    def ask(self, arguments: list[str]) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n".join([*arguments, "-execute77", ""]))
        self.process.stdin.flush()
        lines = iter(self.process.stdout.readline, "{ready77}\n")
        return "".join(lines)


_readers: list[_Reader] = []


@atexit.register
def close() -> None:
    """End the open exiftool, which goes on waiting after its input has ended."""
    while _readers:
        with _readers.pop().process as process:
            process.kill()


def exiftool(*arguments: str | Path) -> str:
    """What the installed exiftool says; our own code plays no part."""
    if not _readers:
        _readers.append(_Reader())
    given = [str(each) for each in arguments]
    assert not any("\n" in each for each in given)
    out = _readers[0].ask(given)
    assert not out.startswith("Error"), out
    return out


def set_tags(path: Path, *assignments: str) -> Path:
    """Values as HTML writes them: ``&#10;`` is a line break."""
    out = exiftool("-q", "-q", "-m", "-E", "-overwrite_original", *assignments, path)
    assert out == "", out
    return path


def tags(path: Path) -> dict[str, Any]:
    """Every tag that exiftool finds, by ``group:name``, numbers as they are written."""
    out = exiftool("-q", "-q", "-j", "-G1", "-a", "-n", "-b", "-struct", path)
    found: dict[str, Any] = json.loads(out, parse_float=str, parse_int=str)[0]
    return found


def listed(value: Any) -> list[str]:
    """A list of one is a value to exiftool."""
    if value is None:
        return []
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def others(path: Path) -> dict[str, Any]:
    """The tags that no write may touch."""
    return {
        name: value
        for name, value in tags(path).items()
        if name not in OURS and not name.startswith(_INCIDENTAL)
    }


def pixels(path: Path) -> bytes:
    with Image.open(path) as image:
        return image.convert("RGB").tobytes()


def needs_posix() -> pytest.MarkDecorator:
    import os

    return pytest.mark.skipif(os.name != "posix", reason="names and permissions of POSIX")
