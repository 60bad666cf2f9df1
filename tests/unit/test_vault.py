"""An Obsidian vault is indexed as its owner sees it: canvases too, excluded files not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from qmd.ingest.rules import MAX_SETTINGS_BYTES, ExcludedFiles, Rules, VaultSettings, vault_settings
from qmd.ingest.scan import ScannedFile, ScanSkip, scan
from qmd.ingest.why import judge_path


def make(root: Path, files: list[str], app: Any = None, vault: str = ".obsidian") -> None:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file, encoding="utf-8")
    settings = root / vault
    settings.mkdir(parents=True)
    if app is not None:
        text = app if isinstance(app, str) else json.dumps(app)
        (settings / "app.json").write_text(text, encoding="utf-8")


def included(root: Path, mask: str = "**/*.md") -> list[str]:
    return [item.path for item in scan(root, Rules(root, mask)) if isinstance(item, ScannedFile)]


def test_canvases_are_documents_in_a_vault_only(tmp_path: Path) -> None:
    files = ["v/a.md", "v/sub/Map.CANVAS", "v/b.txt", "plain/c.canvas", "plain/d.md"]
    make(tmp_path, files, vault="v/.obsidian")
    assert included(tmp_path) == ["plain/d.md", "v/a.md", "v/sub/Map.CANVAS"]
    assert included(tmp_path / "v") == ["a.md", "sub/Map.CANVAS"]
    assert included(tmp_path / "v", "*.md") == ["a.md"]
    assert included(tmp_path / "v", "**/*.txt") == ["b.txt"]
    assert included(tmp_path / "plain", "**/*.{md,canvas}") == ["c.canvas", "d.md"]


def test_one_path_is_judged_as_the_whole_walk_does(tmp_path: Path) -> None:
    files = ["a.md", "sub/Map.canvas", "Templates/t.md", "Old/deep/x.md", "Old/map.canvas"]
    make(tmp_path, files, {"userIgnoreFilters": ["templates/", "/deep\\/x/"]})
    rules = Rules(tmp_path, "**/*.md")
    assert included(tmp_path) == ["Old/map.canvas", "a.md", "sub/Map.canvas"]
    for file in files:
        assert judge_path(rules, file).indexed == (file in included(tmp_path)), file
        (items,) = scan(tmp_path, rules).at([file]).values()
        assert bool(items) == (file in included(tmp_path)), file


def test_excluded_files_are_told_and_still_there_for_links(tmp_path: Path) -> None:
    make(tmp_path, ["a.md", "Templates/t.md"], {"userIgnoreFilters": ["Templates/"]})
    walk = scan(tmp_path, Rules(tmp_path, "**/*.md"))
    assert [item.path for item in walk if isinstance(item, ScannedFile)] == ["a.md"]
    assert walk.excluded["excluded in Obsidian"] == 1
    assert walk.others == ["Templates/t.md"]
    verdict = judge_path(Rules(tmp_path, "**/*.md"), "Templates/t.md")
    assert verdict.detail["rule"] == "excluded in Obsidian"
    assert verdict.reason == (
        "Obsidian excludes it from its search: 'Templates/' in the setting Excluded files matches"
        " 'Templates/t.md'."
    )
    assert verdict.detail["ignore_file"] == ".obsidian/app.json"
    assert verdict.detail["pattern"] == "Templates/"
    (tmp_path / ".qmdignore").write_text("!/Templates/t.md\n", encoding="utf-8")
    assert included(tmp_path) == ["Templates/t.md", "a.md"]


def test_excluded_files_of_a_vault_below_the_root_count_from_that_vault(tmp_path: Path) -> None:
    app = {"userIgnoreFilters": ["Old"]}
    make(tmp_path, ["Old/a.md", "v/Old/b.md", "v/Older.md", "v/c/Old.md"], app, "v/.obsidian")
    assert included(tmp_path) == ["Old/a.md", "v/c/Old.md"]


@pytest.mark.parametrize(
    ("line", "path", "excluded"),
    [
        ("Archive/", "archive/a.md", True),
        ("Archive", "Archived.md", True),
        ("Archive/", "x/Archive/a.md", False),
        ("/^Daily\\/2023-.*\\.md$/", "daily/2023-01-01.md", True),
        ("/^Daily\\/2023-.*\\.md$/", "Daily/2024-01-01.md", False),
        ("/.*secret.*/", "my secret note.md", True),
        ("/^.*\\.excalidraw\\.md$/", "a/b.excalidraw.md", True),
        ("/draft|old/", "my old note.md", True),
        ("/[0-9]+/", "a1.md", True),
    ],
)
def test_lines_match_as_in_obsidian(line: str, path: str, excluded: bool) -> None:
    files = ExcludedFiles([line], "")
    assert (files.match(path) is not None) == excluded
    assert files.problem == ""


@pytest.mark.parametrize(
    "line",
    [
        "/(a+)+$/",
        "/a{9}/",
        "/a.*b.*c/",
        "/^a.*b.*c*/",
        "/.*a.*b.*c.*d/",
        "/(?=x)/",
        "/a**/",
        "/" + "a" * 300 + "/",
    ],
)
def test_expressions_that_could_take_long_are_not_applied_and_told(line: str) -> None:
    files = ExcludedFiles(["keep", line], "")
    assert files.match("aaaa") is None
    assert files.match("keep.md") is not None
    assert repr(line[:100]) in files.problem


def test_settings_have_the_defaults_of_obsidian(tmp_path: Path) -> None:
    assert vault_settings(tmp_path) is None
    (tmp_path / ".obsidian").mkdir()
    assert vault_settings(tmp_path) == VaultSettings()
    odd = {"attachmentFolderPath": 5, "newLinkFormat": "x", "userIgnoreFilters": [1, " "]}
    (tmp_path / ".obsidian/app.json").write_text(json.dumps(odd), encoding="utf-8")
    assert vault_settings(tmp_path) == VaultSettings()


def test_settings_are_read(tmp_path: Path) -> None:
    app = {
        "attachmentFolderPath": "./media",
        "newLinkFormat": "relative",
        "strictLineBreaks": True,
        "useMarkdownLinks": True,
        "userIgnoreFilters": ["Old/"],
    }
    make(tmp_path, [], app)
    (tmp_path / ".obsidian/templates.json").write_text('{"folder": "Templates/"}', "utf-8")
    assert vault_settings(tmp_path) == VaultSettings(
        ("Old/",), "./media", True, "relative", "Templates", True, ""
    )


@pytest.mark.parametrize(
    "text", ["{", "[]", "[" * 100_000, " " * (MAX_SETTINGS_BYTES + 1), "\udcff"]
)
def test_settings_that_cannot_be_read_are_one_sentence(tmp_path: Path, text: str) -> None:
    make(tmp_path, ["a.md"])
    (tmp_path / ".obsidian/app.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    skips = [
        item for item in scan(tmp_path, Rules(tmp_path, "**/*.md")) if isinstance(item, ScanSkip)
    ]
    assert [(skip.path, skip.reason) for skip in skips] == [(".obsidian", "settings not applied")]
    assert "app.json" in skips[0].detail
    assert included(tmp_path) == ["a.md"]


@pytest.mark.skipif(os.name == "nt", reason="links need a permission")
def test_links_out_of_the_vault_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    make(outside, [], {"userIgnoreFilters": ["a"]})
    vault = tmp_path / "vault"
    make(vault, ["a.md"])
    (vault / ".obsidian/app.json").symlink_to(outside / ".obsidian/app.json")
    settings = vault_settings(vault)
    assert settings is not None
    assert settings.excluded == ()
    assert "could not be read" in settings.problem


def test_backups_of_logseq_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, ["logseq/bak/pages/a/1.md", "logseq/b.md", "bak/c.md", "g/logseq/bak/d.md"])
    assert included(tmp_path) == ["bak/c.md", "logseq/b.md"]
    verdict = judge_path(Rules(tmp_path, "**/*.md"), "g/logseq/bak/d.md")
    assert verdict.detail == {"rule": "Logseq backups", "subject": "g/logseq/bak"}
