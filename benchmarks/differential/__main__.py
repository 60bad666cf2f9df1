"""
Do two versions of qmd give the same replies?

    python benchmarks/differential --before PYTHON --after PYTHON [--only FACE…] [--lines 20]

Each PYTHON is the interpreter of an environment with one version (the same one twice must give no
difference). Both versions index the same small vault and get the same calls, over the command
line, Python, REST, MCP and the page; a server of models in this process makes vectors and answers.
What may differ is replaced: times of today, random numbers, ports and paths. What else differs is
printed as a diff of the two replies, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import difflib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import calls
from models import model_server
from vault import make_vault

WAIT_S = 120
TOKEN = "a-token-of-the-differential-run"
FACES = ("command", "python", "rest", "page", "mcp", "guarded")


class Reply(NamedTuple):
    call: str
    text: str


class Version:
    """One version with its own directory, database and memory of what replies have named."""

    def __init__(self, python: Path, home: Path, models: str) -> None:
        self._python = python
        self._home = home
        self._names = {
            "home": str(home),
            "change": "0",
            "chat": "none",
            "csrf": "",
            "url": "",
            "token": TOKEN,
        }
        self._cookie: dict[str, str] = {}
        self._database = home / "index.sqlite"
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            "PYTHONHASHSEED": "0",  # Starlette writes a set into the header Allow
            "QMD_DB": str(self._database),
            "QMD_MODEL": "openai:words",
            "QMD_EMBED_URL": f"{models}/v1",
            "QMD_LLM_URL": f"{models}/v1",
            "QMD_LLM_MODEL": "script",
            "QMD_RERANKER": "rerank:overlap",
            "QMD_EXPANDER": "llm",
            "QMD_MODEL_BUDGET": "60",
            "QMD_POSTS_DIR": str(home / "posts"),
            "QMD_WRITE_ROOTS": str(home),
        }
        self._models = models

    def replies(self, faces: tuple[str, ...]) -> Iterator[Reply]:
        make_vault(self._home)
        for name, mask in (("notes", "**/*.{md,canvas,png}"), ("docs", "**/*.md")):
            yield self._command(
                calls.Command(
                    ["collection", "add", f"{self._home}/{name}", "--name", name, "--mask", mask]
                )
            )
        yield self._command(calls.Command(["context", "add", "qmd://docs", "how to run it"]))
        if "command" in faces:
            with ThreadPoolExecutor(2) as pool:
                yield from pool.map(self._command, calls.commands())
        if "python" in faces:
            yield from self._python_calls(list(calls.python_calls()))
        with self._server("--allow-origin", "https://friend.example", "--toolset", "all") as ask:
            if "rest" in faces:
                yield from map(ask, calls.rest_reads())
            if "page" in faces:
                yield from map(ask, calls.pages())
            if "command" in faces:
                for command in ("search", "query", "vsearch"):
                    yield self._command(
                        calls.Command([command, "boat", "--json", "--mode", "server"])
                    )
            if "rest" in faces:
                yield from map(ask, calls.rest_changes())
            if "page" in faces:
                yield from map(ask, calls.page_forms())
        if "guarded" in faces:
            with self._server("--read-only", "--token", TOKEN) as ask:
                yield from map(ask, calls.guarded())
        if "mcp" in faces:
            yield from self._mcp(calls.mcp_calls())
        if "command" in faces:
            yield from map(self._command, calls.changing_commands())
        yield Reply("files", self._files())

    def _filled(self, text: str) -> str:
        """A text with the names in braces replaced; two braces are one."""
        for name, value in self._names.items():
            text = text.replace(f"{{{name}}}", value)
        return text.replace("{{", "{").replace("}}", "}")

    def _filled_all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._filled(value)
        if isinstance(value, dict):
            return {key: self._filled_all(each) for key, each in value.items()}
        return [self._filled_all(each) for each in value] if isinstance(value, list) else value

    def _reply(self, call: str, text: str) -> Reply:
        for name, pattern in _NAMED.items():
            if matches := pattern.findall(text):
                self._names[name] = matches[-1]
        return Reply(call, normalised(self._short(text)))

    def _short(self, text: str) -> str:
        for path in (str(self._home), quote(str(self._home), safe="")):
            text = text.replace(path, "<home>")
        return text.replace(self._models, "<models>")

    def _command(self, command: calls.Command) -> Reply:
        arguments = [self._filled(each) for each in command.arguments]
        done = subprocess.run(
            [self._python, "-m", "qmd", *arguments],
            input=self._filled(command.stdin or ""),
            capture_output=True,
            encoding="utf-8",
            cwd=self._home,
            env=self._environment,
            timeout=WAIT_S,
            check=False,
        )
        text = f"exit code {done.returncode}\n{done.stdout}\n--- stderr\n{done.stderr}"
        return self._reply(f"qmd {' '.join(command.arguments)}", text)

    def _python_calls(self, asked: list[calls.PythonCall]) -> Iterator[Reply]:
        done = subprocess.run(
            [self._python, Path(__file__).with_name("probe.py"), self._database],
            input=json.dumps(asked),
            capture_output=True,
            encoding="utf-8",
            cwd=self._home,
            env=self._environment,
            timeout=WAIT_S,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stderr)
        for call, reply in zip(asked, json.loads(done.stdout), strict=True):
            yield self._reply(f"python {call}", json.dumps(reply, ensure_ascii=False, indent=1))

    @contextmanager
    def _server(self, *options: str) -> Iterator[Callable[[calls.Request], Reply]]:
        """A running server, and a function that sends it a request."""
        process = subprocess.Popen(
            [
                self._python,
                "-m",
                "qmd",
                "server",
                "--port",
                "0",
                "--transport",
                "http",
                "--no-watch",
                *options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=self._home,
            env=self._environment,
        )
        assert process.stderr is not None
        try:
            url = next((match[1] for line in process.stderr if (match := _URL.search(line))), None)
            if url is None:
                sys.exit("the server did not start")
            self._names["url"] = url.rstrip("/")
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield lambda request: self._request(url, request)
        finally:
            process.terminate()
            process.wait(WAIT_S)

    def _request(self, url: str, request: calls.Request) -> Reply:
        headers = {name: self._filled(value) for name, value in request.headers}
        headers |= self._cookie
        body = request.body
        if request.form is not None:
            body = urlencode(self._filled_all(request.form)).encode()
            headers |= {
                "Content-Type": "application/x-www-form-urlencoded",
                "Origin": url.rstrip("/"),
            }
        elif body is not None and not isinstance(body, bytes):
            body = json.dumps(self._filled_all(body)).encode()
            headers = {"Content-Type": "application/json", **headers}
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=WAIT_S)
        try:
            connection.request(request.method, self._filled(request.path), body, headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "backslashreplace")
        finally:
            connection.close()
        cookie = answer.getheader("Set-Cookie")
        if cookie and ("Accept", "text/html") in request.headers:
            self._cookie = {"Cookie": cookie.partition(";")[0]}
        shown = sorted(
            f"{k.lower()}: {v}" for k, v in answer.getheaders() if k.lower() not in _UNSHOWN
        )
        lines = "\n".join([str(answer.status), *shown, "", _indented(text)])
        sent = request.form or (
            request.body
            if isinstance(request.body, bytes)
            else json.dumps(request.body, ensure_ascii=False)
        )
        asked = " ".join(f"{k}: {v}" for k, v in request.headers)
        text = lines.replace(parts.netloc, "<server>").replace(str(parts.port), "<port>")
        return self._reply(f"{request.method} {request.path} {asked} {str(sent)[:300]}", text)

    def _mcp(self, asked: Iterator[calls.ToolCall]) -> Iterator[Reply]:
        """Calls over stdin and stdout, one after the other."""
        process = subprocess.Popen(
            [self._python, "-m", "qmd", "mcp", "--toolset", "all", "--no-watch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._home,
            env=self._environment,
            encoding="utf-8",
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            for number, call in enumerate(asked):
                message = {"jsonrpc": "2.0", "id": number, "method": call.method}
                message["params"] = self._filled_all(call.params)
                print(json.dumps(message), file=process.stdin, flush=True)
                for line in process.stdout:
                    reply = json.loads(line)
                    if reply.get("id") == number:
                        break
                shown = json.dumps(call.params, ensure_ascii=False)[:300]
                yield self._reply(
                    f"mcp {call.method} {shown}",
                    json.dumps(reply, ensure_ascii=False, indent=1),
                )
                if call.method == "initialize":
                    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                    print(json.dumps(done), file=process.stdin, flush=True)
        finally:
            process.stdin.close()
            process.wait(WAIT_S)

    def _files(self) -> str:
        """All notes after all edits."""
        files = sorted((self._home / "notes").rglob("*.md"))
        texts = (file.read_bytes().decode("utf-8", "backslashreplace") for file in files)
        return normalised(
            self._short(
                "\n".join(f"== {file}\n{text}" for file, text in zip(files, texts, strict=True))
            )
        )


_URL = re.compile(r"url=(http://\S+)")
_NAMED = {
    "change": re.compile(r'(?:"change": |[Cc]hange |/undo/)(\d{6,})'),
    "chat": re.compile(r'"chat": "([0-9a-f]{16})"'),
    "csrf": re.compile(r'<meta name="csrf" content="([^"]+)">'),
}
#: Of each connection, of no interest.
_UNSHOWN = {"date", "server", "content-length"}


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    except ValueError:
        return text


def _today() -> str:
    days = [datetime.now(timezone.utc) + timedelta(days=shift) for shift in (-1, 0, 1)]
    return "|".join(re.escape(day.strftime("%Y-%m-%d")) for day in days)


#: What differs from run to run, and what stands for it.
_VARYING = [
    (re.compile(rf"(?:{_today()})[T ][\d:.]+(?:Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(_today()), "<today>"),
    (re.compile(r"\b\d{10}(?:\.\d+)?\b"), "<seconds>"),
    (re.compile(r"(?<=\"csrf\" content=\")[^\"]+"), "<csrf>"),
    (re.compile(r"(?<=name=\"csrf\" value=\")[^\"]+"), "<csrf>"),
    (re.compile(r"(?<=/open\?code=)[\w-]+"), "<code>"),
    (re.compile(r"^((?:qmd|process)_\S*(?:seconds|bytes|bucket|rss|fds)\S*) .*", re.M), r"\1 <n>"),
    (re.compile(r"(?<=set-cookie: )([^=]+=)[^;]+"), r"\1<cookie>"),
    (re.compile(r"\b(?:[a-z]+-)[0-9a-f]{8}\b"), "<session>"),
    (re.compile(r"\b[0-9a-f]{16,64}\b"), "<id>"),
    (re.compile(r"(?<![\w.#])\d{6,9}(?![\w.])"), "<number>"),
    (
        re.compile(
            r"(\"(?:durationMs|pid|seconds|(?:duration|uptime|embedding_left)_(?:ms|s))\": )[\d.]+"
        ),
        r"\1<n>",
    ),
    (re.compile(r"\b\d+(?:\.\d+)? m?s\b"), "<duration>"),
    (re.compile(r"\b\d+ (?:seconds?|minutes?) ago|\d+ (?:秒|分钟)前"), "<age>"),
    (re.compile(r"(<rect class=\"(?:upper|lower)\") [^>]*"), r"\1"),  # bars of durations
    # The exported conversation has the time in it.
    (re.compile(r"#[0-9a-f]{6}(?=[^#]{0,60}talk\.md)"), "<docid>"),
    (re.compile(r"(talk\.md[^#]{0,60})#[0-9a-f]{6}"), r"\1<docid>"),
    (re.compile(r"(?<=<home>/export \()[\d,]+"), "<size>"),  # numbers in it differ in length
    (re.compile(r"(?<=\b)\d\d:\d\d(?::\d\d)?(?=\b)"), "<clock>"),
]


def normalised(text: str) -> str:
    for pattern, stand_in in _VARYING:
        text = pattern.sub(stand_in, text)
    return text


def show_differences(before: list[Reply], after: list[Reply], most_lines: int) -> int:
    """Print a diff of each reply that differs; returns how many there are."""
    count = 0
    for old, new in zip(before, after, strict=True):
        if old.text == new.text:
            continue
        count += 1
        print(f"\n== {old.call}")
        lines = list(
            difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), n=1, lineterm="")
        )
        print("\n".join(line[:400] for line in lines[2 : 2 + most_lines]))
        if len(lines) > 2 + most_lines:
            print(f"… {len(lines) - 2 - most_lines} more lines")
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--before", type=Path, required=True, metavar="PYTHON")
    parser.add_argument("--after", type=Path, required=True, metavar="PYTHON")
    parser.add_argument("--only", nargs="+", choices=FACES, default=FACES, metavar="FACE")
    parser.add_argument("--replies", type=Path, help="write all replies of AFTER into this file")
    parser.add_argument("--lines", type=int, default=20, help="most lines of each diff")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, model_server() as models:
        versions = []
        for name, python in (("1", arguments.before), ("2", arguments.after)):
            home = Path(work, name)  # of one length: texts are cut to the width of a line
            home.mkdir()
            versions.append(Version(python.absolute(), home, models))
        with ThreadPoolExecutor(2) as pool:
            before, after = pool.map(
                lambda version: list(version.replies(tuple(arguments.only))), versions
            )
    if arguments.replies:
        arguments.replies.write_text(
            "".join(f"== {reply.call}\n{reply.text}\n\n" for reply in after), encoding="utf-8"
        )
    count = show_differences(before, after, arguments.lines)
    print(f"{len(before):,} replies, {count:,} differ")
    sys.exit(count > 0)


if __name__ == "__main__":
    main()
