"""What qmd takes of tobi/qmd, basic-memory and Obsidian, and what it lists as not taken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.errors import InputError, NotFoundError, QmdError
from qmd.kb import KnowledgeBase
from qmd.transfer import programs
from qmd.values.transfer import ImportPlan

#: As 'collection add', 'context add', 'update-cmd' and 'exclude' of tobi/qmd 2.8.3 have written it.
WRITTEN_BY_TOBI = """\
collections:
  notes:
    path: HOME/notes
    pattern: "**/*.md"
    context:
      "": Notes root
      sub: "the plans: of x"
  work:
    path: HOME/work
    pattern: "**/*.{md,txt}"
    update: git pull --rebase
    includeByDefault: false
models:
  embed: hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf
global_context: All my things
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "QMD_CONFIG_DIR", "BASIC_MEMORY_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for name in ("notes/a.md", "notes/sub/plan.md", "work/r.txt"):
        write(home / name, "# A note\n")
    return home


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        yield kb


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def write_tobi(home: Path, text: str = WRITTEN_BY_TOBI, name: str = "index.yml") -> Path:
    return write(home / ".config/qmd" / name, text.replace("HOME", str(home)))


def contexts(kb: KnowledgeBase) -> dict[str, str]:
    return {each.uri: each.text for each in kb.contexts()}


def test_a_pipe_in_place_of_a_file_is_not_waited_for(home: Path) -> None:
    (home / ".basic-memory").mkdir()
    os.mkfifo(home / ".basic-memory/config.json")
    with pytest.raises(InputError, match="pipe"):
        KnowledgeBase.plan_import("basic-memory")


class TestTobi:
    def test_collections_and_contexts_arrive(self, home: Path, kb: KnowledgeBase) -> None:
        write_tobi(home)
        report = kb.import_folders(KnowledgeBase.plan_import("tobi"))
        assert [each.state for each in report.collections] == ["new", "new"]
        notes, work = kb.collection("notes"), kb.collection("work")
        assert (notes.path, notes.pattern, notes.included) == (
            str(home / "notes"),
            "**/*.md",
            True,
        )
        assert (work.pattern, work.included) == ("**/*.{md,txt}", False)
        assert contexts(kb) == {
            "/": "All my things",
            "qmd://notes": "Notes root",
            "qmd://notes/sub": "the plans: of x",
        }
        assert report.contexts == 3

    def test_what_qmd_lacks_is_listed(self, home: Path, kb: KnowledgeBase) -> None:
        write_tobi(
            home, WRITTEN_BY_TOBI + 'editor_uri: "zed://file{path}"\nshiny: 1\n', "index.yml"
        )
        write_tobi(home, "collections: {}\n", "team.yml")
        report = kb.import_folders(KnowledgeBase.plan_import("tobi"))
        reasons = {each.subject: each.reason for each in report.not_taken}
        assert list(reasons) == [
            "work: update command 'git pull --rebase'",
            "models",
            "editor_uri",
            "shiny",
            "team",
        ]
        assert "qmd update --pull" in reasons["work: update command 'git pull --rebase'"]
        assert "editor = 'zed://file{path}'" in reasons["editor_uri"]
        assert "'qmd --index team import tobi'" in reasons["team"]

    def test_a_dry_run_reports_the_same_and_changes_nothing(
        self, home: Path, kb: KnowledgeBase
    ) -> None:
        write_tobi(home)
        plan = KnowledgeBase.plan_import("tobi")
        planned = kb.import_folders(plan, dry_run=True)
        assert kb.collections() == [] and kb.contexts() == []
        done = kb.import_folders(plan)
        assert planned.dry_run
        assert planned.collections == done.collections
        assert (planned.contexts, planned.not_taken) == (done.contexts, done.not_taken)

    def test_a_second_import_changes_nothing(self, home: Path, kb: KnowledgeBase) -> None:
        write_tobi(home)
        plan = KnowledgeBase.plan_import("tobi")
        kb.import_folders(plan)
        kb.add_context("qmd://notes", "My own words")
        before = (kb.collections(), contexts(kb))
        report = kb.import_folders(plan)
        assert [each.state for each in report.collections] == ["present", "present"]
        assert (kb.collections(), contexts(kb)) == before
        assert "context of notes" in [each.subject for each in report.not_taken]

    def test_ignores_leave_out_the_same_files(self, home: Path, kb: KnowledgeBase) -> None:
        # tobi/qmd 2.8.3 has indexed exactly these, apart from the upper-case suffix.
        for name in (
            *("a.md", "sub/b.md", "sub/x.test.md", "Archive/z.md"),
            *("drafts/c.md", "y.test.md", "build/d.md", "vendor/x/v.md", ".hid/h.md"),
        ):
            write(home / "exp" / name, "# A note\n")
        text = "collections: {exp: {path: HOME/exp, ignore: ['*.test.md', drafts]}}\n"
        write_tobi(home, text)
        kb.import_folders(KnowledgeBase.plan_import("tobi"))
        kb.index()
        assert {each.path for each in kb.documents()} == {
            "a.md",
            "sub/b.md",
            "sub/x.test.md",
            "Archive/z.md",
        }

    def test_a_name_that_is_taken_is_listed(self, home: Path, kb: KnowledgeBase) -> None:
        write_tobi(home)
        kb.add_collection(home / "work", name="notes")
        report = kb.import_folders(KnowledgeBase.plan_import("tobi"))
        assert [each.name for each in report.collections] == ["work"]
        assert report.not_taken[0].subject == "notes"
        assert "qmd collection rename notes" in report.not_taken[0].reason

    def test_folders_and_masks_that_cannot_be_are_listed(
        self, home: Path, kb: KnowledgeBase
    ) -> None:
        write_tobi(
            home,
            "collections:\n"
            "  gone: {path: HOME/gone}\n"
            "  none: {pattern: '*.md'}\n"
            "  near: {path: notes}\n"
            "  bad/name: {path: HOME/notes}\n"
            "  mask: {path: HOME/notes, pattern: '../*.md'}\n"
            "  text: just words\n",
        )
        report = kb.import_folders(KnowledgeBase.plan_import("tobi"))
        assert report.collections == ()
        subjects = {each.subject for each in report.not_taken}
        assert subjects == {"gone", "none", "near", "bad/name", "mask", "text"}

    def test_an_index_is_read_by_its_name_and_one_of_a_project_by_its_file(
        self, home: Path, kb: KnowledgeBase
    ) -> None:
        write_tobi(home, "collections: {team: {path: HOME/work}}\n", "team.yaml")
        assert KnowledgeBase.plan_import("tobi", "team").collections[0].name == "team"
        project = write(
            home / "notes/.qmd/index.yml",
            "collections: {docs: {path: ./sub}, all: {path: HOME}, up: {path: ../work}}\n".replace(
                "HOME", str(home)
            ),
        )
        report = kb.import_folders(KnowledgeBase.plan_import("tobi", project))
        assert [each.path for each in report.collections] == [str(home / "notes/sub")]
        # It came with the project, perhaps from a stranger.
        assert [each.subject for each in report.not_taken] == ["all", "up"]
        with pytest.raises(NotFoundError) as caught:
            KnowledgeBase.plan_import("tobi", "other")
        assert "team" in (caught.value.hint or "")

    def test_the_index_of_the_project_around_is_listed(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_tobi(home, "global_context: mine\n")
        file = write(home / "notes/.qmd/index.yml", "collections: {}\n")
        monkeypatch.chdir(home / "notes/sub")
        plan = KnowledgeBase.plan_import("tobi")
        assert plan.global_context == "mine"
        assert [each.subject for each in plan.not_taken] == [str(file)]
        assert f"'qmd import tobi {file}'" in plan.not_taken[0].reason

    def test_its_own_environment_says_where_the_file_is(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
        write(home / "xdg/qmd/index.yml", "global_context: of XDG\n")
        assert KnowledgeBase.plan_import("tobi").global_context == "of XDG"
        monkeypatch.setenv("QMD_CONFIG_DIR", str(home / "direct"))
        write(home / "direct/index.yml", "global_context: direct\n")
        assert KnowledgeBase.plan_import("tobi").global_context == "direct"


class TestBasicMemory:
    def test_projects_of_all_versions_arrive(self, home: Path, kb: KnowledgeBase) -> None:
        projects = {
            "main": {"path": str(home / "notes"), "mode": "local"},
            "old": str(home / "work"),
            "a/b": {"path": "~/notes/sub"},
            "cloud": {"path": "basic-memory-cloud", "mode": "cloud"},
            "synced": {"path": "x", "mode": "cloud", "local_sync_path": str(home / "notes/sub")},
        }
        file = home / ".basic-memory/config.json"
        write(file, json.dumps({"env": "user", "projects": projects, "default_project": "main"}))
        report = kb.import_folders(KnowledgeBase.plan_import("basic-memory"))
        paths = {each.name: each.path for each in report.collections}
        assert paths == {
            "main": str(home / "notes"),
            "old": str(home / "work"),
            "sub": str(home / "notes/sub"),
        }
        assert [each.subject for each in report.not_taken] == ["cloud"]

    @pytest.mark.parametrize("variable", ["BASIC_MEMORY_CONFIG_DIR", "XDG_CONFIG_HOME"])
    def test_its_own_environment_says_where_the_file_is(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        monkeypatch.setenv(variable, str(home / "there"))
        folder = home / "there"
        if variable == "XDG_CONFIG_HOME":
            folder = folder / "basic-memory"
        write(folder / "config.json", json.dumps({"projects": {"main": str(home / "notes")}}))
        assert len(KnowledgeBase.plan_import("basic-memory").collections) == 1


class TestObsidian:
    def vaults(self, *paths: Path) -> str:
        vaults = {
            f"{number:016x}": {"path": str(path), "ts": number, "open": True}
            for number, path in enumerate(paths)
        }
        return json.dumps({"vaults": vaults, "frame": "hidden"})

    def test_vaults_become_collections_of_their_folders_names(
        self, home: Path, kb: KnowledgeBase
    ) -> None:
        write(home / "other/notes/b.md", "# B\n")
        listed = self.vaults(home / "other/notes", home / "notes", home / "gone")
        (file, *_) = programs.obsidian_places(os.environ, home)
        write(file, listed)
        report = kb.import_folders(KnowledgeBase.plan_import("obsidian"))
        assert [(each.name, each.path) for each in report.collections] == [
            ("notes", str(home / "notes")),  # opened later than the other
            ("notes-2", str(home / "other/notes")),
        ]
        assert report.not_taken[0].subject == str(home / "gone")

    def test_a_vault_that_is_a_collection_under_another_name_is_not_added_again(
        self, home: Path, kb: KnowledgeBase
    ) -> None:
        kb.add_collection(home / "notes", name="mine")
        file = write(home / "obsidian.json", self.vaults(home / "notes"))
        report = kb.import_folders(KnowledgeBase.plan_import("obsidian", file))
        assert [(each.name, each.state) for each in report.collections] == [("mine", "present")]

    def test_each_platform_has_its_place(self, tmp_path: Path) -> None:
        def places(platform: str, **environ: str) -> list[str]:
            found = programs.obsidian_places(environ, tmp_path, platform)
            return [file.relative_to(tmp_path).as_posix() for file in found]

        assert places("darwin") == ["Library/Application Support/obsidian/obsidian.json"]
        assert places("win32", APPDATA=str(tmp_path / "R")) == ["R/obsidian/obsidian.json"]
        assert places("linux") == [
            ".config/obsidian/obsidian.json",
            ".var/app/md.obsidian.Obsidian/config/obsidian/obsidian.json",
            "snap/obsidian/current/.config/obsidian/obsidian.json",
        ]

    def test_without_obsidian_the_hint_names_another_way(self, home: Path) -> None:
        with pytest.raises(NotFoundError) as caught:
            KnowledgeBase.plan_import("obsidian")
        assert "qmd up FOLDER" in (caught.value.hint or "")


class TestHostileFiles:
    @pytest.mark.parametrize(
        "text",
        [
            "a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" + "c: &c [*b,*b,*b,*b]\n" * 30000,
            "[" * 100_000,
            "- a\n- b\n",
            "just words",
            "collections: [a, b]\n",
            "\t- x: {",
            "x" * 1_100_000,
        ],
        ids=["aliases", "deep", "a list", "a text", "no mapping", "no YAML", "long"],
    )
    def test_they_are_refused(self, tmp_path: Path, text: str) -> None:
        file = write(tmp_path / "index.yml", text)
        with pytest.raises(InputError) as caught:
            programs.read_tobi(file)
        assert str(file) in str(caught.value)

    def test_too_many_folders_are_refused(self, tmp_path: Path) -> None:
        projects = {f"p{number}": "/tmp" for number in range(1_001)}
        with pytest.raises(InputError, match="1,001"):
            programs.read(
                "basic-memory", write(tmp_path / "c.json", json.dumps({"projects": projects}))
            )

    def test_half_a_character_does_not_reach_the_database(
        self, home: Path, kb: KnowledgeBase
    ) -> None:
        projects = {"a\ud800": str(home / "notes"), "b": str(home / "b\udfff")}
        file = write(home / "c.json", json.dumps({"projects": projects}))
        report = kb.import_folders(KnowledgeBase.plan_import("basic-memory", file))
        assert [each.name for each in report.collections] == ["notes"]
        assert [each.subject for each in report.not_taken] == ["b"]


KEYS = (
    *("collections", "projects", "vaults", "path", "pattern", "ignore", "context", "update"),
    *("includeByDefault", "models", "global_context", "editor_uri", "local_sync_path", "ts", "x"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(value=VALUES)
def test_any_values_make_a_plan_or_an_error_with_the_file(
    value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.json"
    file.write_text(json.dumps(value))
    for program in get_args(programs.Program):
        try:
            plan = programs.plan(program, file, {}, file.parent)
        except QmdError as error:
            assert str(file) in str(error)
        else:
            assert isinstance(plan, ImportPlan)
