"""Where settings, databases and models lie, and the move of the models out of tobi/qmd's cache."""

from __future__ import annotations

import sys
from pathlib import Path

import platformdirs
import pytest

from qmd.config import load_settings
from qmd.kb import KnowledgeBase
from qmd.system.user_dirs import Kind, user_dir

linux = pytest.mark.skipif(sys.platform != "linux", reason="platformdirs is asked elsewhere")


@linux
@pytest.mark.parametrize(
    ("kind", "name"),
    [("config", "qmd"), ("data", "qmd"), ("state", "qmd"), ("cache", "qmd-python")],
)
@pytest.mark.parametrize("base", [None, "/srv/x", "relative", "  "])
def test_they_are_those_of_platformdirs(
    kind: Kind, name: str, base: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"XDG_{kind.upper()}_HOME"
    if base is None:
        monkeypatch.delenv(variable, raising=False)
    else:
        monkeypatch.setenv(variable, base)
    assert user_dir(kind) == getattr(platformdirs, f"user_{kind}_path")(name, appauthor=False)


@linux
class TestTheOldCache:
    @pytest.fixture
    def base(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        return tmp_path

    def write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("content")

    def test_models_of_qmd_are_moved_and_what_tobi_has_stays(self, base: Path) -> None:
        tobis = ["index.sqlite", "team.sqlite", "models/hf_embeddinggemma.gguf", "mcp.pid"]
        ours = ["models/multilingual-e5-small-int8-1/manifest.json", "fastembed/model.ready"]
        for name in (*tobis, *ours):
            self.write(base / "qmd" / name)
        assert load_settings(environ={"XDG_CACHE_HOME": str(base)}).cache_dir == base / "qmd-python"
        assert all((base / "qmd" / name).is_file() for name in tobis)
        assert all((base / "qmd-python" / name).is_file() for name in ours)
        assert not any((base / "qmd" / name).exists() for name in ours)
        assert sorted(path.name for path in base.iterdir()) == ["qmd", "qmd-python"]

    def test_without_models_nothing_is_made(self, base: Path) -> None:
        self.write(base / "qmd/index.sqlite")
        assert user_dir("cache") == base / "qmd-python"
        assert [path.name for path in base.iterdir()] == ["qmd"]

    def test_a_cache_that_is_there_is_left_alone(self, base: Path) -> None:
        model = "models/multilingual-e5-small-int8-1/manifest.json"
        self.write(base / "qmd" / model)
        (base / "qmd-python").mkdir()
        user_dir("cache")
        assert (base / "qmd" / model).is_file()

    def test_models_that_cannot_be_moved_stay(self, base: Path) -> None:
        model = base / "qmd/models/multilingual-e5-small-int8-1/manifest.json"
        self.write(model)
        self.write(base / "qmd-python")  # a file is in the way
        user_dir("cache")
        assert model.is_file()
        assert sorted(path.name for path in base.iterdir()) == ["qmd", "qmd-python"]

    def test_programs_use_the_same_directory(self, base: Path) -> None:
        with KnowledgeBase.open(base / "kb.sqlite", create=True) as kb:
            assert kb._embedders.cache_dir == base / "qmd-python"
