"""Where a language model may write, and which files it never writes: those that steer programs."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.errors import OutsideRootsError, SteeringFileError
from qmd.files.vault import file_name_of
from qmd.files.writing.policy import WritePolicy, steering_reason

posix = pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")

STEERING = [
    *("CLAUDE.md", "claude.md", "CLAUDE.local.md", "AGENTS.md", "Agents.MD", "GEMINI.md"),
    *("SKILL.md", "sub/SKILL.md", "copilot-instructions.md", "a.instructions.md", "b.prompt.md"),
    *("OpenCode.md", "opencode.local.md", "AGENTS.local.md"),
    *(".cursorrules", ".windsurfrules.md", ".qmdignore", ".gitignore", ".hidden.md"),
    *(".git/hooks/x.md", ".github/x.md", ".claude/commands/x.md", ".obsidian/x.md", "a/.x/b/c.md"),
    # As a disk may read them that knows no case, no end of dots, or no invisible characters.
    *("CLAUDE.md.", "CLAUDE.md . ", "\u200b.git/x.md", "CLA\u200dUDE.md", "AGENTS\ufeff.md"),
    *("\u017fkill.md", "\u212aILL/.x.md", "AGENTS\ufe0f.md", "ＣＬＡＵＤＥ.md"),
]
PLAIN = [
    *("plan.md", "claude.txt.md", "my AGENTS.md.md", "agents/plan.md", "CLAUDE/notes.md"),
    *("skills.md", "…and so on.md", "备份.md", "README.md", "a.b.md", "x.markdown", "photo.jpg"),
]


@pytest.mark.parametrize("path", STEERING)
def test_what_steers_a_program_is_known_in_every_spelling(path: str) -> None:
    assert steering_reason(path.split("/")) is not None
    assert steering_reason(["notes", *path.split("/")]) is not None


@pytest.mark.parametrize("path", PLAIN)
def test_a_note_steers_nothing(path: str) -> None:
    assert steering_reason(path.split("/")) is None


@pytest.mark.parametrize(
    ("title", "name"),
    [
        *(("CLAUDE", "CLAUDE-1"), ("agents", "agents-1"), ("SKILL.", "SKILL-1")),
        *(("x.instructions", "x.instructions-1"), ("ＧＥＭＩＮＩ", "ＧＥＭＩＮＩ-1")),
        *(("\u200b.git", ""), ("Claude", "Claude-1"), ("Claude: how", "Claude how")),
    ],
)
def test_no_file_is_called_so_by_a_title(title: str, name: str) -> None:
    assert file_name_of(title) == name


@given(st.sampled_from(["", "\u200b", " "]), st.sampled_from(STEERING), st.sampled_from(["", "#"]))
def test_no_title_gives_a_name_that_steers(before: str, path: str, behind: str) -> None:
    for title in (path, path.removesuffix(".md"), path.rpartition("/")[2].removesuffix(".md")):
        for suffix in (".md", ""):
            name = file_name_of(f"{before}{title}{behind}", suffix)
            assert not name or steering_reason([f"{name}{suffix}"]) is None


@given(
    st.sampled_from(["CLAUDE.md", "AGENTS.md", "SKILL.md", "gemini.md", ".cursor", ".Git"]),
    st.randoms(use_true_random=False),
)
def test_case_and_invisible_characters_make_no_other_name(name: str, random: object) -> None:
    chosen = "".join(
        random.choice([each.upper(), each.lower()])  # type: ignore[attr-defined]
        + random.choice(["", "", "\u200c", "\u2060"])  # type: ignore[attr-defined]
        for each in name
    )
    for form in ("NFC", "NFD"):
        assert steering_reason([unicodedata.normalize(form, chosen) + " ."]) is not None


# --- the policy ------------------------------------------------------------------------


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault in a home of its own, which is also the working directory."""
    home = tmp_path / "home"
    for name in ("vault/.git/hooks", "vault/docs", "vault/shared", ".notes", "other"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(home)
    return home / "vault"


def refused(policy: WritePolicy, path: Path | str) -> type[OutsideRootsError] | None:
    try:
        policy.resolve(path)
    except OutsideRootsError as error:
        assert error.hint
        return type(error)
    return None


def test_an_agent_writes_in_collections_and_vault_and_nowhere_else(vault: Path) -> None:
    policy = WritePolicy.for_agent([vault])
    assert refused(policy, vault / "docs/a.md") is None
    home = vault.parent
    for path in ("a.md", home / "a.md", home / "other/a.md", home.parent / "a.md", vault):
        assert refused(policy, path) is OutsideRootsError
        assert refused(WritePolicy.default(), home / "other/a.md") is None


def test_a_write_root_narrows_and_extends(vault: Path) -> None:
    other = vault.parent / "other"
    policy = WritePolicy.for_agent([vault], [vault / "docs", other])
    assert refused(policy, vault / "docs/a.md") is None
    assert refused(policy, other / "a.md") is None
    assert refused(policy, vault / "a.md") is OutsideRootsError
    assert refused(policy, other / "CLAUDE.md") is SteeringFileError
    assert refused(policy, other / ".git/a.md") is SteeringFileError


def test_a_hidden_collection_needs_the_persons_word(vault: Path) -> None:
    hidden = vault.parent / ".notes"
    assert refused(WritePolicy.for_agent([hidden]), hidden / "a.md") is OutsideRootsError
    assert refused(WritePolicy.for_agent([vault], [hidden]), hidden / "a.md") is None
    # A collection inside a hidden directory of another one opens nothing there.
    both = WritePolicy.for_agent([vault, vault / ".git"])
    assert refused(both, vault / ".git/a.md") is SteeringFileError


@pytest.mark.parametrize("path", [*STEERING, "docs/AGENTS.md", ".git/hooks/post-commit.md"])
def test_what_steers_programs_is_refused(vault: Path, path: str) -> None:
    policy = WritePolicy.for_agent([vault])
    assert refused(policy, vault / path) in (SteeringFileError, OutsideRootsError)
    with pytest.raises(SteeringFileError):
        policy.check_name(path)
    WritePolicy.explicit([vault]).check_name(path)


@posix
def test_links_do_not_hide_what_steers_programs(vault: Path) -> None:
    (vault / "plain.md").symlink_to(vault / "CLAUDE.md")  # to what is not there yet
    (vault / "hooks").symlink_to(vault / ".git/hooks")
    (vault / "AGENTS.md").symlink_to("docs/guide.md")
    (vault / ".claude").symlink_to("shared")
    policy = WritePolicy.for_agent([vault])
    for path in ("plain.md", "hooks/a.md", "AGENTS.md", "docs/guide.md", "shared/commands/a.md"):
        assert refused(policy, vault / path) is SteeringFileError, path
    assert refused(policy, vault / "docs/other.md") is None
