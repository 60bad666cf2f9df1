"""The Chinese of the engine's sentences: each has an English one in the code, and is shown."""

from __future__ import annotations

import ast
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.site import Served, http_client, serve

import qmd
from qmd.engine_text import engine_text, with_cause
from qmd.errors import NotFoundError
from qmd.parse.formats import FORMATS
from qmd.server.page.templating import engine_texts
from tests.support.source_trees import source_nodes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(qmd.__file__).parent
TEXTS = "qmd/server/page/engine_zh.toml"
_FILE = tomllib.loads((PACKAGE / "server/page/engine_zh.toml").read_text(encoding="utf-8"))
STORED: dict[str, str] = _FILE.pop("stored")
SENTENCES: dict[str, str] = _FILE | STORED
FIELD = re.compile(r"\{\w*\}")


def _template(node: ast.AST) -> str:
    """The text of an expression, with ``{}`` for each part that is no literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_template, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    return "{}"


@pytest.mark.unmeasured
def test_each_english_sentence_stands_in_the_code() -> None:
    templates = {
        FIELD.sub("{}", _template(node))
        for of_module in source_nodes().values()
        for node in of_module
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp))
    }
    gone = [english for english in SENTENCES if FIELD.sub("{}", english) not in templates]
    assert gone == [], f"no code says these: mend or delete their lines in {TEXTS}"


#: Modules of which the page shows all that they say, and what they say to a model instead.
SHOWN = (
    *("ingest/ocr.py", "ingest/read_file.py", "ingest/scan.py", "ingest/why.py"),
    *("health/doctor.py", "health/clients.py"),
    *("parse/frontmatter.py", "parse/canvas.py", "parse/decode.py", "parse/pictures.py"),
    *(
        str(path.relative_to(PACKAGE))
        for folder in ("parse/convert", "parse/photo")
        for path in sorted((PACKAGE / folder).glob("*.py"))
    ),
)
TO_MODELS = {"Copy the file every night.", "Knead the dough for ten minutes."}
_SENTENCE = re.compile(r"[A-Z{][^ ]* .*\.", re.DOTALL)


def _sentences(tree: ast.Module) -> Iterator[str]:
    """What a module says to people: sentences, their templates, and all that a check says."""
    parts = {
        id(part)  # a piece of a text, or a docstring
        for node in ast.walk(tree)
        if isinstance(node, (ast.JoinedStr, ast.Expr))
        for part in ast.iter_child_nodes(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "engine_text":
                yield from map(_template, node.args[:1])
            elif node.func.id == "Check":
                yield from map(_template, node.args[2:])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("ok", "warning", "error"):  # of a check, whose name comes first
                yield from map(_template, node.args[1:])
            elif node.func.attr in ("_warning", "_error"):
                yield from map(_template, node.args)
        elif (
            isinstance(node, (ast.Constant, ast.JoinedStr))
            and id(node) not in parts
            and _SENTENCE.fullmatch(text := _template(node))
        ):
            yield text


@pytest.mark.parametrize("module", SHOWN)
def test_each_sentence_that_the_page_shows_has_a_chinese_wording(module: str) -> None:
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    translated = {FIELD.sub("{}", english) for english in SENTENCES}
    shown = {FIELD.sub("{}", sentence) for sentence in _sentences(tree)}
    missing = sorted(shown - translated - TO_MODELS - {"{}"})  # "{}": made elsewhere
    assert missing == [], f"give each its Chinese in {TEXTS}"


def test_what_to_do_with_a_skipped_file_has_a_chinese_wording() -> None:
    missing = {each.remedy for each in FORMATS} - SENTENCES.keys()
    assert missing == set(), f"give each its Chinese in {TEXTS}, without a full stop, as here"


def test_each_sentence_has_a_wording_with_no_other_fields() -> None:
    for english, chinese in SENTENCES.items():
        fields = FIELD.findall(english)
        assert not re.search("[{}]", FIELD.sub("", english)), f"braces are fields: {english}"
        assert set(FIELD.findall(chinese)) <= set(fields), english
        assert len(set(fields)) == len(fields), english
        sentence = engine_text(english, **{field.strip("{}"): "x7" for field in fields})
        assert sentence == FIELD.sub("x7", english)
        assert engine_texts().translated(sentence, "zh") == FIELD.sub("x7", chinese)
        assert engine_texts().translated(sentence, "en") == sentence


def test_what_stands_in_a_field_may_be_a_sentence_itself() -> None:
    cause = NotFoundError(engine_text("Document not found: {file}", file="a.md"), hint="Try again.")
    problem = with_cause("Answered from full text alone", cause.with_hint)
    assert problem == "Answered from full text alone: Document not found: a.md Try again."
    shown = engine_texts().translated(pickle.loads(pickle.dumps(problem)), "zh")
    assert shown == "只按字词搜索了：找不到文档：a.md请再试一次。"


def test_a_warning_that_the_database_keeps_as_text_is_translated() -> None:
    warning = "The frontmatter is not valid YAML in line 2 (mapping values); read line by line."
    shown = engine_texts().translated(warning, "zh")
    assert shown == "属性区不是有效的 YAML（mapping values），已逐行读取。"
    for other in (f"{warning} And more.", f"So: {warning}", "The frontmatter is not valid YAML"):
        assert engine_texts().translated(other, "zh") == other


def test_the_fields_of_a_plain_text_are_read_back() -> None:
    for english, chinese in STORED.items():
        plain = FIELD.sub("x7", english)
        assert engine_texts().translated(plain, "zh") == FIELD.sub("x7", chinese)


def test_a_sentence_without_a_wording_stays_as_it_is() -> None:
    assert engine_texts().translated("Nobody has translated this.", "zh") == (
        "Nobody has translated this."
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("site"), embed=False) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url, headers={"accept-language": "zh"}) as client:
        yield client


@pytest.mark.parametrize(
    "address",
    [
        "/?q=x&mode=none",
        "/?q=x&property=%3F%3F",
        "/?q=x&after=tomorrowish",
        "/?q=x&collection=gone",
        "/?q=x&n=0",
        "/edit/notes/gone.md",
        "/move/notes/gone.md",
        "/delete/notes/gone.md",
        "/history/notes/plan.md?revision=99",
        "/file/gone/x.png",
        "/photo/notes/plan.md",
        "/ask/999",
        "/overview/collection?name=gone",
        "/raw/notes/gone.md",
    ],
)
def test_what_a_person_meets_is_in_chinese(client: httpx.Client, address: str) -> None:
    html = client.get(address).text
    notices = re.findall(r'<div class="notice[^"]*" role="alert">(.*?)</div>', html, re.DOTALL)
    assert notices
    for notice in notices:
        words = re.sub(r"<[^>]*>", " ", notice)
        assert re.search("[\u4e00-\u9fff]", words), words
        assert not re.search(r"[A-Za-z]+ [A-Za-z]+ [A-Za-z]+", words), words


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("open.md", "---\ntitle: never ends\n\nText\n"),
        ("twice.md", "---\na: 1\na: 2\ndate: soon\n---\n"),
        ("lossy.md", ("属性" * 300).encode() + b"\xff"),
    ],
)
def test_warnings_of_a_document_are_in_chinese(
    served: Served, client: httpx.Client, file: str, content: str | bytes
) -> None:
    path = served.folder / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    served.kb.index()
    for address in ("/overview/warnings", f"/overview/why?path=notes/{file}"):
        main = client.get(address).text.partition("<main")[2].partition("</main>")[0]
        warnings = re.findall(r"<p>(.*?)</p>", main, re.DOTALL)
        assert any("属性" in words or "编码" in words for words in warnings)
        for words in warnings:
            assert not re.search(r"[A-Za-z]+ [A-Za-z]+ [A-Za-z]+", words), words


def test_what_doctor_checks_is_said_in_chinese(served: Served, client: httpx.Client) -> None:
    (served.folder / "warned.md").write_text("---\ntitle: never ends\n")
    served.kb.index()
    (served.folder / "warned.md").write_text("---\ntitle: changed since\n")
    html = _form(client, "/overview/check")
    checks = re.findall(r"<strong>(.*?)</strong>(.*?)</li>", html, re.DOTALL)
    assert {"integrity", "drift notes", "vectors", "warnings"} <= {name for name, _ in checks}
    for name, text in checks:
        # SQLite, sqlite-vec and Python say their own names, and that of clients speaks of files.
        if not name.startswith(("client ", "sqlite", "python")):
            assert re.search("[\u4e00-\u9fff]", text), (name, text)


def _form(client: httpx.Client, address: str, **fields: str) -> str:
    token = re.search(r'<meta name="csrf" content="([^"]+)">', client.get("/").text)
    assert token is not None
    origin = str(client.base_url).rstrip("/")
    answer = client.post(address, data={"csrf": token[1], **fields}, headers={"origin": origin})
    return answer.text


def test_a_refused_form_is_explained_in_chinese(client: httpx.Client) -> None:
    fields = {"collection": "notes", "folder": "", "text": "x"}
    assert "已经有笔记 notes/plan.md" in _form(client, "/new", name="plan", **fields)
    assert "请换一个名称" in _form(client, "/new", name="plan", **fields)
    assert "路径无效" in _form(client, "/new", name="../plan", **fields)
    hidden = _form(client, "/new", name=".plan", **fields)
    assert "不会显示出来：“.plan.md”是隐藏的" in hidden and "请去掉" in hidden
    moved = _form(client, "/move/notes/plan.md", to="Harbour.md", action="preview")
    assert "已经存在" in moved and "请换一个路径" in moved
