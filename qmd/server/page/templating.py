"""Has what the page is made of: templates, words in two languages, styles and scripts."""

from __future__ import annotations

import functools
import hashlib
import json
import mimetypes
import string
from collections.abc import Mapping, Set
from datetime import datetime
from importlib.resources import files
from typing import cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from qmd import libraries
from qmd.engine_text import EngineText
from qmd.server.page.links import address
from qmd.server.page.note_text import plain_line
from qmd.server.security import STATIC_PATH
from qmd.server.streams import Compressed
from qmd.system import clock
from qmd.values.search import shown_relevance
from qmd.values.text import file_stem
from qmd.values.writing import Language


@functools.cache
def environment() -> Environment:
    """The templates, compiled once for all servers of this process."""
    templates = Environment(
        loader=PackageLoader("qmd.server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"static": static_files().address}
    templates.filters |= {
        "number": number,
        "bytes": byte_count,
        "seconds": seconds,
        "day": day,
        "minute": minute,
        "clock": clock_time,
        "address": address,
        "stem": file_stem,
        "lines": lambda text: text.removesuffix("\n").split("\n") if text else [],
        "plain_line": plain_line,
        "relevance": shown_relevance,
        "as_text": as_text,
        "utf16_length": utf16_length,
    }
    return templates


def rendered_template(name: str, language: Language, values: Mapping[str, object]) -> str:
    """The HTML of a template, which has the texts of the page and of the engine by functions."""
    texts = page_texts()

    def meaning(start: str, reason: str) -> str | None:
        """What a reason of the engine means; None for one without a text."""
        key = start + reason.lower().lstrip("._").rstrip("_").replace(" ", "_")
        return texts.text(language, key) if key in texts.names() else None

    return (
        environment()
        .get_template(name)
        .render(
            {
                "t": functools.partial(texts.text, language),
                "engine": lambda sentence: engine_texts().translated(sentence, language),
                "meaning": meaning,
                "lang": language,
                "script_texts": functools.partial(texts.of_view, language),
                **values,
            }
        )
    )


def number(value: float) -> str:
    return f"{value:,}"


def byte_count(value: float) -> str:
    """``1.4 MB``."""
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def seconds(value: float) -> str:
    """``350 ms``, ``4.2 s``, ``3:05 min``."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)}:{int(value % 60):02} min"


def as_text(value: object, indent: int | None = None) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=indent)


def utf16_length(text: str) -> int:
    """The length of a text as a script counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def day(value: str | datetime) -> str:
    """``2026-11-23``, in the server's time zone."""
    return _local(value).strftime("%Y-%m-%d")


def minute(value: str | datetime) -> str:
    """``2026-11-23 14:05``, in the server's time zone."""
    return _local(value).strftime("%Y-%m-%d %H:%M")


def clock_time(value: str | datetime | float) -> str:
    """``14:05:09`` for a time or seconds since 1970, in the server's time zone."""
    if isinstance(value, (int, float)):
        value = datetime.fromtimestamp(value).astimezone()
    return _local(value).strftime("%H:%M:%S")


def _local(value: str | datetime) -> datetime:
    if isinstance(value, str):
        return clock.local(value)
    return value.astimezone()


# --- styles and scripts -----------------------------------------------------------------

_TYPES = {
    ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}  # fmt: skip
#: The script that may answer for views, and for which.
_POLICY_OF_WORKER = {
    "content-security-policy": "default-src 'none'; connect-src 'self'; frame-ancestors 'none'"
}
_WORKER, _VIEW_OF_WORKER = "capture-worker.js", "/add"
_CACHED = "private, max-age=31536000, immutable"


class StaticFiles:
    """
    The files in ``static/``, read once. Only these names are served, whatever the address says.
    """

    def __init__(self) -> None:
        folder = files("qmd.server.page").joinpath("static")
        self._contents = {
            entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()
        }
        self._versions = {
            name: hashlib.sha256(content).hexdigest()[:12]
            for name, content in self._contents.items()
        }

    def address(self, name: str) -> str:
        """The address of a file; it changes with the file, so that browsers may keep it."""
        return f"{STATIC_PATH}{name}?v={self._versions[name]}"

    def route(self) -> Route:
        gzip = Middleware(Compressed, minimum_size=1_000, compresslevel=5)
        return Route(STATIC_PATH + "{name}", self._serve, methods=["GET"], middleware=[gzip])

    async def _serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        content = self._contents.get(name)
        if content is None:
            return PlainTextResponse("There is no such file.", 404)
        suffix = name[name.rfind(".") :]
        kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        # A module imports others without a version; those are asked for again each time.
        is_versioned = request.query_params.get("v") == self._versions[name]
        etag = f'"{self._versions[name]}"'
        headers = {"cache-control": _CACHED if is_versioned else "no-cache", "etag": etag}
        if name == _WORKER:
            headers |= {"service-worker-allowed": _VIEW_OF_WORKER, **_POLICY_OF_WORKER}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)


@functools.cache
def static_files() -> StaticFiles:
    """The files, read once for all servers of this process."""
    return StaticFiles()


# --- the words of the page, in English and Chinese --------------------------------------
# ``texts/VIEW.toml`` holds both languages of a text side by side::
#
#     placeholder = { en = "Search your notes", zh = "搜索笔记" }
#
# A template asks for it as ``t("VIEW.placeholder")``, and names what a text has in braces:
# ``t("VIEW.count", n=3)``.

LANGUAGES: tuple[Language, ...] = ("en", "zh")

_MAX_RANGES = 20  # of an Accept-Language header that are read


class Texts:
    """All texts of the page: ``VIEW.NAME`` → language → text."""

    def __init__(self) -> None:
        self._texts: dict[str, Mapping[str, str]] = {}
        for entry in files("qmd.server.page").joinpath("texts").iterdir():
            if not entry.name.endswith(".toml"):
                continue
            view = entry.name.removesuffix(".toml")
            for name, text in libraries.tomllib.loads(entry.read_text(encoding="utf-8")).items():
                self._texts[f"{view}.{name}"] = text

    def names(self) -> Set[str]:
        return self._texts.keys()

    def text(self, language: Language, name: str, /, **values: object) -> str:
        """
        One text. A count ``n`` of 1 takes the text ``NAME_one`` if there is one.

        Raises:
            KeyError: There is no such text, or a value of it is missing.
        """
        if values.get("n") == 1 and f"{name}_one" in self._texts:
            name = f"{name}_one"
        text = self._texts[name][language]
        return text.format(**values) if values else text

    def of_view(self, language: Language, prefix: str) -> dict[str, str]:
        """The texts of a view for its script: name → text."""
        start = f"{prefix}."
        return {
            name.removeprefix(start): text[language]
            for name, text in self._texts.items()
            if name.startswith(start)
        }


@functools.cache
def page_texts() -> Texts:
    """The texts, read once for all servers of this process."""
    return Texts()


def language_of(accepted: str) -> Language:
    """The language that a browser prefers, from its Accept-Language header; else English."""
    best: tuple[float, Language] = (0.0, "en")
    for position, part in enumerate(accepted.split(",")[:_MAX_RANGES]):
        name, _, weight = part.strip().partition(";q=")
        try:
            quality = float(weight) if weight else 1.0
        except ValueError:
            continue
        primary = name.strip().lower().partition("-")[0]
        for language in LANGUAGES:
            if primary == language and quality - position * 1e-6 > best[0]:
                best = (quality - position * 1e-6, language)
    return best[1]


# --- sentences of the engine ----------------------------------------------------------


class EngineTexts:
    """
    The sentences of the engine in the language of the page: errors, hints, what is wrong.

    The engine writes English, for every face, and keeps what stands in the fields of a sentence
    (`EngineText`). ``engine_zh.toml`` has the Chinese for those sentences that a person of the page
    may meet, by the English one as the code has it::

        "Document not found: {file}" = "找不到文档：{file}"

    Those below ``stored`` come as plain text: the database keeps them, of documents and citations,
    or an error has them. A sentence without an entry stays English. A test compares the English
    ones with the code.
    """

    def __init__(self) -> None:
        source = files("qmd.server.page").joinpath("engine_zh.toml").read_text(encoding="utf-8")
        sentences = libraries.tomllib.loads(source)
        self._stored: dict[str, str] = sentences.pop("stored")
        self._chinese: dict[str, str] = sentences | self._stored

    def translated(self, sentence: str, language: Language) -> str:
        """A sentence of the engine in a language; as it is if there is no other wording."""
        if language == "en":
            return sentence
        if not isinstance(sentence, EngineText):
            stored = (read_back(template, sentence) for template in self._stored)
            read = next(filter(None, stored), None)
            if read is None:
                return self._chinese.get(sentence, sentence)
            sentence = read
        chinese = self._chinese.get(sentence.template)
        if chinese is None:
            return sentence
        fields = {
            name: self.translated(value, language) if isinstance(value, str) else value
            for name, value in sentence.fields.items()
        }
        return chinese.format_map(fields)


def read_back(template: str, text: str) -> EngineText | None:
    """The sentence of ``template`` whose words ``text`` has; None if it has others."""
    parts = list(string.Formatter().parse(template))
    fields: dict[str, object] = {}
    start, name = 0, None
    for literal, following, _, _ in [*parts, ("", None, None, None)]:
        end = text.find(literal, start) if literal else len(text)
        if not literal and name is None:
            end = start  # the template begins with a field
        if end < 0 or (name is None and end > start):
            return None
        if name is not None:
            fields[name] = text[start:end]
        start, name = end + len(literal), following
    return EngineText(template, fields) if start == len(text) else None


def lines_of(text: str) -> list[str]:
    """The sentences of a text that has one in each line."""
    if isinstance(text, EngineText) and text.template == "{first}\n{others}":
        return [line for part in text.fields.values() for line in lines_of(cast("str", part))]
    return [text] if isinstance(text, EngineText) else text.split("\n")


@functools.cache
def engine_texts() -> EngineTexts:
    """The sentences, read once for all servers of this process."""
    return EngineTexts()
