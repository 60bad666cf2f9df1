"""What the README shows is what happens: its session and the Python of docs/python.md are run."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import click
import pytest
from support.cli import Scratch

from qmd.cli.main import cli
from qmd.operations import every_own
from qmd.parse.formats import CODE, FORMATS
from qmd.system.user_dirs import user_dir

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
SESSION = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.fixture
def clone(tmp_path: Path, model_cache: Path) -> Scratch:
    """A directory with the example, and the model where the user's cache is."""
    scratch = Scratch(tmp_path, {"QMD_CACHE_DIR": str(model_cache)})
    for note in (ROOT / "docs" / "example").iterdir():
        scratch.write(f"docs/example/{note.name}", note.read_bytes())
    return scratch


def test_the_session_in_the_readme_is_what_the_commands_print(clone: Scratch) -> None:
    match = SESSION.search(TEXT)
    assert match is not None
    commands = re.findall(r"^\$ qmd (.+)$", match[1], re.MULTILINE)
    assert commands
    session = ""
    for command in commands:
        out = clone.ok(*shlex.split(command)).out
        out = out.replace(str(clone.database.parent), "~/.local/share/qmd")
        out = out.replace(str(clone.root), "~/qmd").strip()
        session += f"$ qmd {command}\n{out}\n\n"
    session = session.rstrip() + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        for readme in (README, ROOT / "README.zh-CN.md"):
            text = readme.read_text(encoding="utf-8")
            fresh = SESSION.sub(lambda _: f"```console\n{session}```", text, count=1)
            readme.write_text(fresh, encoding="utf-8")
    else:
        assert _numberless(match[1]) == _numberless(session), "run this test with UPDATE_GOLDEN=1"


def _numberless(text: str) -> str:
    """Without what depends on the day and on the processor's rounding."""
    return re.sub(r"\d+", "0", text)


@pytest.mark.unmeasured
def test_the_python_in_the_docs_prints_what_its_comments_say(
    clone: Scratch, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    said = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert len(said) == code.count("print(")
    monkeypatch.chdir(clone.root)
    monkeypatch.setenv("XDG_CACHE_HOME", str(clone.root / "cache"))
    # Not at the name that version 1.3 had: models would be moved away from there.
    cache = user_dir("cache")
    cache.parent.mkdir()
    cache.symlink_to(model_cache)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "docs/python.md", "exec"), {})
    assert out.getvalue().splitlines() == said


CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def _blocks(text: str) -> list[str]:
    """The code of a page, without what is explained in comments."""
    blocks = re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)
    return [re.sub(r" +# .*", "", block) for block in blocks]


def _code(text: str) -> set[str]:
    """The pieces of code in the sentences of a page."""
    pieces = re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return {" ".join(piece.split()) for piece in pieces}


def _rows(text: str) -> list[list[str]]:
    """The figures of each row of each table."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [re.findall(r"\d[\d.,]*(?: (?:s|ms|MB)\b)?", row) for row in rows]


def test_the_chinese_readme_has_the_commands_and_figures_of_the_english_one() -> None:
    assert _blocks(CHINESE) == _blocks(TEXT)
    assert _rows(CHINESE) == _rows(TEXT)
    assert _code(CHINESE) == _code(TEXT)
    images = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
    assert images.findall(CHINESE) == images.findall(TEXT)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "zh").glob("*.md")), ids=lambda p: p.name)
def test_the_commands_of_the_chinese_pages_are_there(page: Path) -> None:
    code = "\n".join(_blocks(page.read_text("utf-8")))
    commands = re.findall(r"^qmd (.+)$", code, re.MULTILINE)
    for command in commands:
        name, *arguments = shlex.split(command)
        found = cli.get_command(click.Context(cli), name)
        assert found is not None, command
        if isinstance(found, click.Group) and arguments and not arguments[0].startswith("-"):
            found = found.get_command(click.Context(found), arguments[0])
            assert found is not None, command
        options = {option for param in found.params for option in param.opts}
        named = {each.partition("=")[0] for each in arguments if each.startswith("--")}
        assert named <= options, command


PAGES = sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "README.zh-CN.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "benchmarks/README.md",
        *PAGES,
    ],
)
def test_links_between_the_documents_lead_somewhere(document: str) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert not [target for target in targets if not (path.parent / target).exists()]


def test_every_page_is_named_by_the_index_of_pages() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"}
    assert not {page for page in pages if f"]({page})" not in index}


#: Commands of which their help says all.
IN_THE_HELP_ALONE = {
    *("multi-get", "posts list", "posts read", "chat delete", "chat rename"),
    *("collection rename", "collection show", "context list", "context rm"),
}


def test_every_command_stands_in_a_page() -> None:
    """In what people wrote: a reference that is made from the code has all commands."""
    pages = (page.read_text(encoding="utf-8") for page in ROOT.glob("docs/*.md"))
    written = "\n".join(page.partition("<!-- generated")[0] for page in pages)
    commands = {each.command_name for each in every_own() if each.command_name is not None}
    missing = {name for name in commands if not re.search(rf"qmd {name}\b", written)}
    assert missing == IN_THE_HELP_ALONE, "a command has a row in the page of its family in docs/"


def test_every_suffix_stands_in_the_page_of_formats() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    suffixes: dict[str, set[str]] = {}
    for row in re.findall(r"^\| (.*`\..*)$", page, re.MULTILINE):
        name, cell, *_ = row.split(" | ")
        suffixes[re.sub(r"\[(.*)\]\(.*\)", r"\1", name)] = set(re.findall(r"`(\.\w+)`", cell))
    of_code = suffixes.pop(CODE.name)  # the page names one of each language, "and their kin"
    assert suffixes == {each.name: set(each.suffixes) for each in FORMATS if each != CODE}
    assert of_code < set(CODE.suffixes)


def test_the_tests_that_the_security_page_names_are_there() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:unit|e2e|contract|properties)/test_\w+\.py)`", page))
    assert len(named) > 20
    assert {name for name in named if not (ROOT / "tests" / name).is_file()} == set()
