"""Configuration: the order of sources, the file's rules, the places platformdirs names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from qmd.config import SETTINGS, load_settings
from qmd.errors import ConfigError, InputError

linux = pytest.mark.skipif(sys.platform != "linux", reason="platformdirs is asked elsewhere")


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    file = tmp_path / "config" / "qmd" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@linux
class TestOrder:
    def test_without_any_source_the_defaults_hold(self, environ: dict[str, str]) -> None:
        found = load_settings(environ=environ)
        assert found.db == Path(environ["XDG_DATA_HOME"], "qmd", "index.sqlite")
        assert found.cache_dir == Path(environ["XDG_CACHE_HOME"], "qmd-python")
        assert found.model is None
        assert dict(found.sources) == dict.fromkeys(SETTINGS, "default")

    def test_the_file_beats_the_default(self, environ: dict[str, str], config_file: Path) -> None:
        config_file.write_text('model = "other"\n')
        found = load_settings(environ=environ)
        assert (found.model, found.sources["model"]) == ("other", str(config_file))

    def test_the_environment_beats_the_file(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.write_text('model = "file"\n')
        found = load_settings(environ=environ | {"QMD_MODEL": "env"})
        assert (found.model, found.sources["model"]) == ("env", "QMD_MODEL")

    def test_the_flag_beats_the_environment(self, environ: dict[str, str], tmp_path: Path) -> None:
        flag = str(tmp_path / "flag.sqlite")
        found = load_settings(db=flag, environ=environ | {"QMD_DB": "/env.sqlite"})
        assert (found.db, found.sources["db"]) == (Path(flag), "--db")

    def test_a_flag_of_a_command_beats_the_environment(
        self, environ: dict[str, str], tmp_path: Path
    ) -> None:
        flags = {"vault": str(tmp_path), "write_roots": ("/a:b", "/c"), "posts_dir": None}
        variables = {"QMD_VAULT": "/env", "QMD_POSTS_DIR": "posts"}
        found = load_settings(flags=flags, environ=environ | variables)
        assert (found.vault, found.sources["vault"]) == (tmp_path, "--vault")
        assert found.write_roots == (Path("/a:b"), Path("/c"))
        assert found.sources["write_roots"] == "--write-root"
        assert found.posts_dir == Path("posts")

    def test_write_roots_are_a_list_everywhere(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.write_text('write_roots = ["a", "/b"]\n')
        assert load_settings(environ=environ).write_roots == (config_file.parent / "a", Path("/b"))
        variable = os.pathsep.join(["/x", "/y"])
        found = load_settings(environ=environ | {"QMD_WRITE_ROOTS": variable})
        assert found.write_roots == (Path("/x"), Path("/y"))

    @pytest.mark.parametrize("value", ["[]", '["a", 1]', '[""]', "3"])
    def test_a_list_that_is_none_is_refused(
        self, environ: dict[str, str], config_file: Path, value: str
    ) -> None:
        config_file.write_text(f"write_roots = {value}\n")
        with pytest.raises(ConfigError, match="must be an array of strings"):
            load_settings(environ=environ)

    def test_an_empty_variable_counts_as_unset(self, environ: dict[str, str]) -> None:
        assert load_settings(environ=environ | {"QMD_MODEL": ""}).sources["model"] == "default"

    def test_an_index_is_a_file_beside_the_default_one(self, environ: dict[str, str]) -> None:
        found = load_settings(index="work", environ=environ | {"QMD_DB": "/env.sqlite"})
        assert found.db == Path(environ["XDG_DATA_HOME"], "qmd", "work.sqlite")
        assert found.sources["db"] == "--index"

    def test_a_relative_path_in_the_file_belongs_to_the_files_directory(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.write_text('db = "../notes.sqlite"\n')
        assert load_settings(environ=environ).db == config_file.parent.parent / "notes.sqlite"

    def test_a_tilde_is_the_home_directory(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.write_text('db = "~/notes.sqlite"\n')
        assert load_settings(environ=environ).db == Path.home() / "notes.sqlite"

    def test_seconds_may_be_a_number_in_the_file_and_are_text_elsewhere(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        for line in ("llm_timeout = 2.5", "llm_timeout = '2.5'"):
            config_file.write_text(line)
            assert load_settings(environ=environ).llm_timeout == 2.5
        assert load_settings(environ=environ | {"QMD_LLM_TIMEOUT": "9"}).llm_timeout == 9

    @pytest.mark.parametrize(
        ("text", "value"),
        [("true", True), ("'yes'", True), ("1", True), ("false", False), ("'off'", False)],
    )
    def test_a_switch_is_true_or_false_in_the_file_and_text_elsewhere(
        self, environ: dict[str, str], config_file: Path, text: str, value: bool
    ) -> None:
        config_file.write_text(f"allow_other_users = {text}")
        found = load_settings(environ=environ)
        assert (found.allow_other_users, found.sources["allow_other_users"]) == (
            value,
            str(config_file),
        )
        config_file.unlink()
        variable = environ | {"QMD_ALLOW_OTHER_USERS": text.strip("'").upper()}
        assert load_settings(environ=variable).allow_other_users is value
        flags = {"allow_other_users": "true"}
        found = load_settings(flags=flags, environ=variable)
        assert found.allow_other_users
        assert found.sources["allow_other_users"] == "--allow-other-users"

    def test_texts_are_an_array_in_the_file_and_separated_by_spaces_elsewhere(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.write_text("allow_origins = ['https://a.example', 'http://b:8']")
        assert load_settings(environ=environ).allow_origins == ("https://a.example", "http://b:8")
        variable = environ | {"QMD_ALLOW_ORIGINS": " https://c.example  http://d "}
        assert load_settings(environ=variable).allow_origins == ("https://c.example", "http://d")
        flags = {"allow_origins": ["https://e.example"]}
        assert load_settings(flags=flags, environ=variable).allow_origins == ("https://e.example",)
        config_file.unlink()
        assert load_settings(environ=environ).allow_origins == ()

    def test_a_switch_that_is_neither_is_refused(self, environ: dict[str, str]) -> None:
        with pytest.raises(ConfigError, match="Neither true nor false in QMD_ALLOW_OTHER_USERS"):
            load_settings(environ=environ | {"QMD_ALLOW_OTHER_USERS": "maybe"})

    @pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf", "1e999"])
    def test_seconds_that_are_none_are_an_error(self, environ: dict[str, str], value: str) -> None:
        with pytest.raises(ConfigError, match="QMD_LLM_TIMEOUT"):
            load_settings(environ=environ | {"QMD_LLM_TIMEOUT": value})

    def test_a_key_is_no_setting(self, environ: dict[str, str], config_file: Path) -> None:
        config_file.write_text("llm_api_key = 'sk-0123456789'")
        with pytest.raises(ConfigError) as caught:
            load_settings(environ=environ)
        assert caught.value.hint == "Did you mean: llm_key_file"
        assert "sk-" not in str(caught.value)

    def test_a_byte_order_mark_in_the_file_does_no_harm(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.write_bytes(b'\xef\xbb\xbfmodel = "x"\n')
        assert load_settings(environ=environ).model == "x"


@linux
class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            ('modle = "x"\n', "Unknown setting", "Did you mean: model"),
            ("colour = 1\n", "Unknown setting", "Known settings: db, db_read, model, cache_dir"),
            ("model = 3\n", "must be a string", "For example"),
            ('db = ""\n', "must be a string", "For example"),
            ("db = \n", "is not TOML", "Mend the file"),
            ("[db]\n", "must be a string", "For example"),
        ],
    )
    def test_a_wrong_file_is_an_error_with_a_hint(
        self, environ: dict[str, str], config_file: Path, text: str, message: str, hint: str
    ) -> None:
        config_file.write_text(text)
        with pytest.raises(ConfigError, match=message) as caught:
            load_settings(environ=environ)
        assert str(config_file) in str(caught.value)
        assert hint in str(caught.value.hint)

    def test_bytes_that_are_no_text_are_an_error(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.write_bytes(b'model = "\xff"\n')
        with pytest.raises(ConfigError, match="is not TOML"):
            load_settings(environ=environ)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x = " + "[" * 100_000, "nested too deeply"),
            ("x" + ".x" * 100_000 + " = 1\n", "a key of too many parts"),
            ("#" * 2_000_000, "longer than 1,048,576 bytes"),
        ],
        ids=["deep", "long key", "long"],
    )
    def test_a_file_that_would_take_the_memory_is_an_error(
        self, environ: dict[str, str], config_file: Path, text: str, message: str
    ) -> None:
        config_file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            load_settings(environ=environ)

    def test_a_pipe_is_not_waited_for(self, environ: dict[str, str], config_file: Path) -> None:
        os.mkfifo(config_file)
        with pytest.raises(ConfigError, match="cannot be read"):
            load_settings(environ=environ)

    def test_a_link_to_the_null_device_is_an_empty_file(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.symlink_to(os.devnull)
        assert load_settings(environ=environ).model is None

    def test_a_directory_in_the_files_place_is_an_error(
        self, environ: dict[str, str], config_file: Path
    ) -> None:
        config_file.mkdir()
        with pytest.raises(ConfigError, match="cannot be read"):
            load_settings(environ=environ)

    @pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a\\b", "a\0b"])
    def test_an_index_name_cannot_leave_the_directory(
        self, environ: dict[str, str], name: str
    ) -> None:
        with pytest.raises(InputError, match="Not a name for an index"):
            load_settings(index=name, environ=environ)


class TestVariables:
    def test_every_setting_has_a_variable_of_its_name(self) -> None:
        found = [setting.variable for setting in SETTINGS.values()]
        assert found == [f"QMD_{name.upper()}" for name in SETTINGS]
        assert {"QMD_DB", "QMD_MODEL", "QMD_CACHE_DIR", "QMD_VAULT"} <= set(found)


class TestTable:
    def test_the_defaults_it_names_are_those_of_the_language_model(self) -> None:
        from qmd.inference.llm.settings import DEFAULT_MODEL, DEFAULT_TIMEOUT_S, DEFAULT_URL
        from qmd.settings import ANSWERS_S, BUDGET_S

        named = [SETTINGS[name].default for name in ("llm_url", "llm_model", "llm_timeout")]
        assert named == [DEFAULT_URL, DEFAULT_MODEL, f"{DEFAULT_TIMEOUT_S:g}"]
        assert DEFAULT_MODEL in SETTINGS["llm_model"].description
        assert f"{DEFAULT_TIMEOUT_S:g}" in SETTINGS["llm_timeout"].description
        assert f"unset means {ANSWERS_S:g}" in SETTINGS["ask_timeout"].description
        assert SETTINGS["ask_timeout"].default == f"{ANSWERS_S:g}"
        assert f"unset means {BUDGET_S:g}" in SETTINGS["model_budget"].description
