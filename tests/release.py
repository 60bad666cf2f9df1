"""
Prepare a release, and check one.

    python tests/release.py prepare 1.4.0   # write the version wherever it is repeated
    python tests/release.py check v1.4.0    # the tag, the version and the changelog agree
    python tests/release.py notes           # the section of the changelog of this version

`qmd/__init__.py` has the version. The wheel takes it from there; files that other programs read in
git repeat it (`REPEATED`), and tests/contract/test_release.py fails if one differs. `prepare`
writes all of them and gives the changelog's section "Unreleased" its version and date. It commits
nothing: look at `git diff`, run `tests/update` and `tests/run`, commit, and push the tag. The
workflow release.yml then checks, builds and publishes.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "qmd/__init__.py"
CHANGELOG = ROOT / "CHANGELOG.md"

#: Files that repeat the version, each with the pattern of the text around it.
REPEATED = {
    "integrations/claude-code/.claude-plugin/plugin.json": r'("version": ")([^"]+)(")',
}

_HOME_PATTERN = r'(^__version__ = ")([^"]+)(")'
_VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


def version() -> str:
    """The version of this working copy."""
    return _read(HOME, _HOME_PATTERN)


def repeated() -> dict[str, str]:
    """File → the version in it."""
    return {name: _read(ROOT / name, pattern) for name, pattern in REPEATED.items()}


def section(number: str) -> str:
    """The changelog's text about a version, without its heading; empty if there is none."""
    text = CHANGELOG.read_text(encoding="utf-8")
    match = re.search(
        rf"^## {re.escape(number)}(?: - \d{{4}}-\d\d-\d\d)?\n(.*?)(?=^## |\Z)", text, re.M | re.S
    )
    return match[1].strip() if match else ""


def problems(tag: str) -> list[str]:
    """What speaks against publishing this working copy under a tag."""
    here = version()
    listed = []
    if tag != f"v{here}":
        listed.append(f"The tag is {tag}, and {HOME.relative_to(ROOT)} has {here}.")
    listed += [
        f"{name} has the version {other}, not {here}: python tests/release.py prepare {here}"
        for name, other in repeated().items()
        if other != here
    ]
    if not section(here):
        listed.append(f"CHANGELOG.md has no section '## {here} - DATE', or it is empty.")
    if section("Unreleased"):
        listed.append("CHANGELOG.md has lines below 'Unreleased', which this release would omit.")
    return listed


def prepare(number: str, today: str) -> None:
    """Write a version wherever it stands, and date the changelog."""
    if not _VERSION.fullmatch(number):
        sys.exit(f"tests/release.py: {number} is no version: write 1.4.0 or 1.4.0rc1.")
    if not section(number):
        notes = section("Unreleased")
        if not notes:
            sys.exit("tests/release.py: CHANGELOG.md has nothing below 'Unreleased'.")
        heading = f"## Unreleased\n\n## {number} - {today}\n"
        text = CHANGELOG.read_text(encoding="utf-8")
        CHANGELOG.write_text(text.replace("## Unreleased\n", heading, 1), encoding="utf-8")
    _write(HOME, _HOME_PATTERN, number)
    for name, pattern in REPEATED.items():
        _write(ROOT / name, pattern, number)


def _read(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.M)
    if match is None:
        sys.exit(f"tests/release.py: {path} has no version.")
    return match[2]


def _write(path: Path, pattern: str, number: str) -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(pattern, rf"\g<1>{number}\g<3>", text, flags=re.M), encoding="utf-8")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["prepare", number]:
            prepare(number, datetime.now(timezone.utc).date().isoformat())
            print(f"Now {number}. Next: tests/update, tests/run, commit, git tag v{number}")
        case ["check", tag]:
            listed = problems(tag)
            if listed:
                sys.exit("\n".join(listed))
        case ["notes"]:
            print(section(version()))
        case _:
            sys.exit((__doc__ or "").strip())


if __name__ == "__main__":
    main(sys.argv[1:])
