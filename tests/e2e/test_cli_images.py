"""``qmd image`` and photos in a collection, as a person at a terminal meets them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.cli import Scratch
from tests.support.model_server import ModelServer, says
from tests.support.photos import MASK, listed, make, tags


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def test_what_is_written_into_a_photo_is_found_and_shown(scratch: Scratch) -> None:
    photo = make(scratch.root / "photos/paris.jpg")
    scratch.ok("collection", "add", "photos", "--mask", MASK)
    told = scratch.run(
        "image", "tag", "photos/paris.jpg", "--tag", "家庭", "--tag", "-o", "--person", "张三",
        "--description", "Evening\nat the tower", "--location", "巴黎",
    )  # fmt: skip
    assert (told.code, told.out, told.err) == (0, "Written into photos/paris.jpg\n", "")
    assert listed(tags(photo)["XMP-dc:Subject"]) == ["家庭", "-o", "张三"]
    assert scratch.ok("search", "tag:张三 evening", "--files").out.count("photos/paris.jpg") == 1
    shown = scratch.run("image", "show", "photos/paris.jpg")
    assert shown.out == (
        "format:      JPG\n"
        "title:       -\n"
        "tags:        家庭, -o\n"
        "people:      张三\n"
        "description: Evening\\nat the tower\n"
        "location:    巴黎\n"
        "place:       -\n"
        "date:        2024-07-14T18:30:00+02:00\n"
        "camera:      ACME X100\n"
    )
    again = scratch.ok("image", "tag", "photos/paris.jpg", "--append", "--location", "London")
    assert again.out == "Already so in photos/paris.jpg\n"
    assert "The location that was there stays" in again.err
    scratch.ok("image", "tag", "photos/paris.jpg", "--tag", "", "--description", "")
    shown = scratch.ok("image", "show", "photos/paris.jpg", "--json").json()
    assert (shown["tags"], shown["people"], shown["description"]) == ([], ["张三"], None)


def test_json_is_the_tools_answer_and_the_fields(scratch: Scratch) -> None:
    photo = make(scratch.root / "a.heic")
    done = scratch.ok("image", "tag", str(photo), "--tag", "x", "--json").json()
    assert done == {
        "success": True,
        "filePath": str(photo),
        "message": "元数据已成功写入HEIC图片。",
    }
    shown = scratch.ok("image", "show", "a.heic", "--json").json()
    assert shown["tags"] == ["x"]
    assert (shown["file"], shown["format"], shown["people"]) == ("a.heic", "HEIC", [])


def test_showing_needs_neither_exiftool_nor_a_database(scratch: Scratch) -> None:
    make(scratch.root / "a.jpg")
    result = scratch.with_env(QMD_EXIFTOOL="/nowhere").run("image", "show", "a.jpg")
    assert result.code == 0
    assert not scratch.database.exists()


def test_errors_say_what_to_do(scratch: Scratch) -> None:
    make(scratch.root / "a.jpg")
    scratch.write("note.txt", "x")
    poor = scratch.with_env(QMD_EXIFTOOL="/nowhere")
    for result, words in (
        (scratch.call("image", "show", "none.jpg"), "no file none.jpg"),
        (scratch.call("image", "show", "note.txt"), "Not a JPG, PNG or HEIC photo: note.txt"),
        (scratch.call("image", "tag", "note.txt", "--tag", "x"), "Not a JPG, PNG or HEIC photo"),
        (scratch.call("image", "tag", "a.jpg", "--tag", " "), "an entry of tags is blank"),
        (
            poor.call("image", "tag", "a.jpg", "--tag", "x"),
            "apt-get install libimage-exiftool-perl",
        ),
    ):
        assert result.code == 1
        assert words in result.err
        assert "hint: " in result.err
    assert scratch.call("image", "tag", "a.jpg").code == 2
    error = scratch.call("image", "show", "none.jpg", "--json").error()
    assert error["code"] == "photo_failed"


def test_write_roots_hold_here_too(scratch: Scratch) -> None:
    make(scratch.root / "in/a.jpg")
    make(scratch.root / "out/a.jpg")
    for name, code in (("in/a.jpg", 0), ("out/a.jpg", 1)):
        result = scratch.call("image", "tag", name, "--tag", "x", "--write-root", "in")
        assert result.code == code, result.err


def test_the_history_shows_what_a_photo_said(scratch: Scratch) -> None:
    make(scratch.root / "a.jpg")
    for name in ("first", "second"):
        scratch.ok("image", "tag", "a.jpg", "--tag", name)
    assert "writeImageMetadata" in scratch.ok("history", "a.jpg").out
    refused = scratch.call("restore", "a.jpg")
    assert refused.code == 1
    assert "qmd image tag" in refused.err


def test_doctor_tells_of_exiftool_where_photos_need_it(scratch: Scratch) -> None:
    scratch.write("notes/a.md", "# A\n")
    scratch.ok("collection", "add", "notes")
    nowhere = scratch.with_env(PATH=str(scratch.root))

    def found(here: Scratch) -> dict[str, str]:
        checks = here.call("doctor", "--json").json()
        (check,) = [each for each in checks if each["name"] == "exiftool"]
        return dict(check)

    assert found(nowhere)["status"] == "ok"
    assert found(scratch)["message"].endswith("writes into photos")
    make(scratch.root / "photos/a.jpg")
    scratch.ok("collection", "add", "photos", "--mask", MASK)
    assert found(nowhere)["status"] == "warning"
    other = shutil.which("exiftool")
    assert other is not None
    assert found(nowhere.with_env(QMD_EXIFTOOL=other))["status"] in ("ok", "warning")
    broken = found(scratch.with_env(QMD_EXIFTOOL="/nowhere"))
    assert "/nowhere" in broken["message"]


def test_what_a_model_proposes_is_written_when_agreed(scratch: Scratch) -> None:
    photo = make(scratch.root / "beach.jpg")
    proposed = '{"description": "Waves\\u001b[31m and sand", "tags": ["#sea", "Sea", 7]}'
    answer = f"Here:\n```json\n{proposed}\n```"
    with ModelServer(says(answer)) as server:
        line = ("image", "describe", str(photo), "--llm-url", server.url, "--llm-model", "eyes")
        shown = scratch.run(*line)
        assert shown.out.splitlines()[1:] == [
            "  description: Waves [31m and sand",
            "  tags:        sea",
        ]
        [picture] = server.requests[0].body["messages"][1]["content"]
        assert picture["image_url"]["url"].startswith("data:image/jpeg;base64,")
        assert "Waves" not in scratch.run("image", "show", str(photo)).out
        agreed = scratch.run(*line, "--yes", "--json")
        assert agreed.json() == [
            {
                "file": str(photo),
                "description": "Waves [31m and sand",
                "tags": ["sea"],
                "written": True,
            }
        ]
        assert "sea" in scratch.run("image", "show", str(photo)).out
    with ModelServer(says("I see a beach.")) as server:
        refused = scratch.run(*line[:3], "--llm-url", server.url, "--llm-model", "eyes")
        assert refused.code == 1 and "not described the photo" in refused.err
    unnamed = scratch.run("image", "describe", str(photo))
    assert unnamed.code == 1 and "--llm-model NAME" in unnamed.err
