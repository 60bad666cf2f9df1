"""
What is asked of both versions, face by face: the same in each run.

Texts may hold names in braces: ``{home}`` is the directory of the version, ``{change}`` the number
of the last change that a reply has named, ``{chat}`` the last conversation, and ``{csrf}`` the
token of the last page.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from qmd.operations import every_operation

FILES = (
    "MOC",
    "notes/Backup plan.md",
    "Backup plan",
    "Safety net",
    "备份计划",
    "boat 1",
    "[[boat 2]]",
    "notes/boat/boat 3.md",
    "数据库 1",
    "notes/部署/部署 2.md",
    "docs/install.md",
    "install",
    "guide/first steps",
    "steps.canvas",
    "notes/empty.md",
    "only title",
    "windows",
    "latin",
    "no end",
    "100%",
    "-dash.md",
    "a,b.md",
    'quotes \'n "more"',
    "code",
    "bad yaml",
    "conflict",
    "big",
    "script",
    "garden/garden 1",
    "BOAT 1",
    "qmd://notes/MOC.md",
    "pixel.png",
)
WRONG_FILES = (
    "same",
    "nothing like this",
    "bota 1",
    "",
    "../outside",
    "notes/",
    "#000000",
    "x" * 300,
)
SECTIONS = (
    "boat 1#Next steps",
    "boat 1#^end",
    "big#Part 3",
    "boat 1#No such part",
    "Backup plan#Steps",
)
WORDS = (
    "boat",
    "harbour sail",
    '"night train"',
    "-boat sail",
    "deploy*",
    "restart OR pump",
    "title:boat",
    "tag:work plan",
    "path:garden pond",
    "description:copied",
    "数据库",
    "火车 边境",
    "酸面团",
    "elephants",
    "sourdouhg",
    "status:draft boat",
    "rating:>3 boat",
    "c++",
    "a-b",
    "AND",
    "foo:bar",
    "100%",
    "zzzz qqqq",
    '"unclosed',
    "the",
    "who waits for the writer?",
    "备份 plan",
    "é",
    "WAL journal readers",
    "[[boat]]",
)
WRONG_WORDS = ("", "   ", "-boat", "*", '""')
FILTERS: tuple[dict[str, Any], ...] = (
    {"limit": 3},
    {"limit": 1, "explain": True},
    {"explain": True},
    {"collection": "docs"},
    {"path": "notes/boat"},
    {"tags": ["work"]},
    {"tags": ["work", "en/boat"]},
    {"properties": ["rating:>2"]},
    {"properties": ["status:draft", "rating:<5"]},
    {"after": "2024-02-01"},
    {"before": "2024-02-01"},
    {"sort": "-date"},
    {"sort": "title"},
    {"sort": "-rating", "group_by": "status"},
    {"min_score": 0.3},
    {"min_relevance": 0.5},
    {"max_tokens": 120},
)
WRONG_FILTERS: tuple[dict[str, Any], ...] = (
    {"limit": 0},
    {"limit": -1},
    {"limit": "many"},
    {"collection": "nowhere"},
    {"after": "no date"},
    {"sort": "shoe size"},
    {"properties": ["a"]},
    {"min_score": "high"},
    {"nonsense": 1},
    {"tags": "work"},
    {"max_tokens": 0},
)
LISTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("broken", {}),
    ("broken", {"collection": "docs"}),
    ("broken", {"limit": 2}),
    ("orphans", {}),
    ("orphans", {"limit": 3}),
    ("orphans", {"collection": "nowhere"}),
    ("tags", {}),
    ("tags", {"prefix": "en/"}),
    ("tags", {"limit": 2}),
    ("tags", {"collection": "docs"}),
    ("recent", {}),
    ("recent", {"limit": 5}),
    ("recent", {"since": "2024-03-02"}),
    ("recent", {"since": "no date"}),
    ("recent", {"collection": "docs"}),
    ("properties", {}),
    ("properties", {"key": "status"}),
    ("properties", {"key": "none"}),
    ("properties", {"key": "rating", "limit": 2}),
)
#: Values of arguments that no listing takes, and budgets that cut it.
ODD: tuple[dict[str, Any], ...] = (
    {"limit": 0},
    {"limit": 1001},
    {"limit": "x"},
    {"max_tokens": 40},
    {"max_tokens": 1},
    {"wrong": 1},
)
PATTERNS = (
    "boat/*.md",
    "notes/**/*.md",
    "MOC, install",
    "*.none",
    "",
    "部署/*",
    "docs/*.md, nothing",
)
#: Edits of one note, in this order; what they leave is the next one's start.
EDITS: tuple[dict[str, Any], ...] = (
    {"action": "append", "text": "- [ ] an appended task"},
    {"action": "prepend", "text": "Put in front."},
    {"action": "replace", "old": "Put in front.", "text": "Put there instead."},
    {"action": "replace", "old": "not in the note", "text": "x"},
    {"action": "replace", "old": "the", "text": "x"},
    {"action": "replace"},
    {"action": "replace_section", "heading": "Next steps", "text": "Nothing more."},
    {"action": "replace_section", "heading": "No such", "text": "x"},
    {"action": "insert_before", "heading": "Next steps", "text": "Before it."},
    {"action": "insert_after", "heading": "Next steps", "text": "- [ ] a task\n- [x] done"},
    {"action": "set_property", "property": "status", "value": "final"},
    {"action": "set_property", "property": "tags", "value": ["a", "b"]},
    {"action": "set_property", "property": "n", "value": 3},
    {"action": "remove_property", "property": "rating"},
    {"action": "remove_property", "property": "none"},
    {"action": "tick", "text": "a task"},
    {"action": "untick", "text": "done"},
    {"action": "tick", "line": 1},
    {"action": "append", "text": "only shown", "preview": True},
    {"action": "append", "text": "x", "if_docid": "#000000"},
    {"action": "dance"},
)
#: Behind ``SCRIPT:`` stand the answers of the model, see `models`.
QUESTIONS = (
    "Where is the boat? SCRIPT: It lies in the harbour.",
    'Where is the boat? SCRIPT: search {{"query": "boat"}} ;; '
    'read_note {{"path": "notes/boat/boat 1"}} ;; The boat lies in the harbour '
    "[notes/boat/boat 1.md:9]. It costs 99 [notes/boat/boat 1.md:9].",
    '数据库在哪里？ SCRIPT: get {{"file": "数据库 1"}} ;; '
    "数据库迁移到了新的服务器 [notes/数据库/数据库 1.md:9]。",
    'x SCRIPT: no_such_tool {{"a": 1}} ;; get {{"wrong": 1}} ;; Done.',
    'x SCRIPT: create_note {{"path": "notes/asked", "content": "x"}} ;; I may not.',
    "x SCRIPT: STATUS 400",
    'x SCRIPT: search {{"query": "boat"}}',
)


class Request(NamedTuple):
    """A request of HTTP; ``form`` instead of ``body`` is one that a page sends."""

    method: str
    path: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    form: dict[str, Any] | None = None


class Command(NamedTuple):
    arguments: list[str]
    stdin: str | None = None


class ToolCall(NamedTuple):
    """A message to the MCP server."""

    method: str
    params: dict[str, Any]


PythonCall = tuple[str, list[Any], dict[str, Any]]


def camel(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments as the tools name them."""
    return {
        first + "".join(part.title() for part in rest): value
        for name, value in arguments.items()
        for first, *rest in [name.split("_")]
    }


def searches(words: tuple[str, ...] = WORDS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each query by each command, and some queries with each filter."""
    commands = ("search", "vsearch", "query")
    for command, query in itertools.product(commands, (*words, *WRONG_WORDS)):
        yield command, {"query": query}
    for command, query, options in itertools.product(
        commands, ("boat", "数据库", "who waits"), (*FILTERS, *WRONG_FILTERS)
    ):
        yield command, {"query": query, **options}


# The command line.


def commands() -> Iterator[Command]:
    """Commands that only read."""
    yield from map(Command, _COMMANDS)
    for command, query in itertools.product(("search", "query"), WORDS[::2]):
        yield Command([command, "--json", "--explain", "--", query])
    for query in ("boat", "数据库"):
        for form in ("cli", "csv", "md", "xml", "files"):
            yield Command(["query", query, "-n", "4", "--format", form, "--explain"])
            yield Command(["search", query, "-n", "4", "--format", form, "--full"])
    for file in (*FILES[::2], *WRONG_FILES[:4], *SECTIONS):
        yield Command(["get", "--", file])
        yield Command(["outline", "--json", "--", file])
    for file in FILES[:6]:
        yield Command(["links", "of", file])
        yield Command(["backlinks", file, "--full-path"])
    for listing in ("broken", "orphans", "tags", "recent", "properties", "ls"):
        yield Command([listing])
        yield Command([listing, "--json", "-n", "3"])
        yield Command([listing, "-n", "0"])
    for form in ("cli", "json", "csv", "md", "xml", "files"):
        yield Command(["multi-get", "boat/*.md", "MOC", "--format", form])
        yield Command(["get", "boat 1:2:5", "--format", form])


_COMMANDS = [
    ["--version"],
    ["--help"],
    ["help", "--all"],
    ["nonsense"],
    ["serch"],
    ["search"],
    ["get"],
    ["status"],
    ["status", "--json"],
    ["collection", "list"],
    ["collection", "show", "notes"],
    ["collection", "show", "nowhere"],
    ["context", "list"],
    ["similar", "boat 1"],
    ["similar", "install", "--json"],
    ["why", "{home}/notes/MOC.md"],
    ["why", "{home}/notes/none.md"],
    ["why", "/nowhere/x.md", "--json"],
    ["history"],
    ["undo"],
    ["tags", "en/"],
    ["properties", "status"],
    ["recent", "--since", "2024-03-02"],
    ["recent", "--since", "never"],
    ["ls", "notes/boat", "--sort", "-rating"],
    ["ls", "--tag", "work", "--json"],
    ["ls", "nowhere"],
    ["ls", "notes", "--group-by", "status", "-n", "6"],
    ["ls", "-p", "rating:>3"],
    ["ls", "-p", "x"],
    ["search", "boat", "--sort", "shoe"],
    ["search", "boat", "-c", "nowhere"],
    ["search", "boat", "-n", "x"],
    ["search", "boat", "--max-tokens", "100"],
    ["query", "boat", "--without", "words", "--explain"],
    ["query", "lex: boat\nvec: a ship at the pier", "--json"],
    ["vsearch", "a ship", "--json", "--explain"],
    ["query", "boat", "--intent", "sailing", "-C", "5"],
    ["search", "boat", "--full-path", "-n", "2"],
    ["note", "list"],
    ["note", "list", "notes/boat"],
    ["note", "list", "nowhere"],
    ["note", "read", "notes/MOC"],
    ["note", "read", "notes/nothing"],
    ["posts", "authors"],
    ["posts", "list", "anna"],
    ["posts", "list", "carl"],
    ["posts", "read", "anna/motions/first.md"],
    ["posts", "read", "anna/none.md"],
    ["posts", "search", "温柔"],
    ["posts", "search", "C++", "--json"],
    ["image", "show", "{home}/notes/pixel.png"],
    ["chat", "list"],
    ["chat", "show", "none"],
    ["token", "list"],
    ["audit"],
    ["config"],
    ["models", "list"],
    ["completion", "bash"],
    ["db", "backup"],
    ["restore", "notes/MOC.md"],
]


def changing_commands() -> Iterator[Command]:
    """Commands that write, each with what shows what it did."""
    for question in QUESTIONS[:-1]:
        yield Command(["ask", "--json", question])
        yield Command(["ask", question])
    yield Command(["ask", "--strict", QUESTIONS[1]])
    yield Command(["ask", "--max-rounds", "2", QUESTIONS[-1]])
    yield Command(["ask", "--tool-calls", "native", QUESTIONS[0]])
    yield Command(["ask", "--write", "--yes", QUESTIONS[4]])
    yield Command(["ask", "--write", QUESTIONS[4]])
    yield Command(["ask", "-"], stdin=QUESTIONS[0])
    yield Command(["ask"], stdin="first SCRIPT: One.\nsecond SCRIPT: Two.\n")
    for question in QUESTIONS[:-1]:
        yield Command(["chat", "ask", question])
    yield Command(["chat", "ask", "--json", "--continue", QUESTIONS[1]])
    yield from map(
        Command, (["chat", "list"], ["chat", "list", "--json"], ["chat", "search", "boat"])
    )
    yield Command(["chat", "ask", "--continue", "--write", "--yes", QUESTIONS[4]])
    for arguments in (
        ["context", "add", "qmd://notes/boat", "all about boats"],
        ["context", "list", "--json"],
        ["context", "remove", "qmd://notes/boat"],
        ["context", "remove", "qmd://notes/none"],
        ["collection", "add", "{home}/posts", "--name", "posts"],
        ["collection", "add", "{home}/none"],
        ["collection", "add", "{home}/docs", "--name", "docs"],
        ["collection", "rename", "posts", "old"],
        ["collection", "rename", "none", "x"],
        ["collection", "remove", "old"],
        ["index"],
        ["update"],
        ["note", "create", "notes/cli", "--content", "# From the shell\n"],
        ["note", "read", "notes/cli"],
        ["note", "create", "notes/cli", "--content", "x"],
        ["note", "create", "notes/cli", "--append", "--content", "more"],
        ["note", "create", "notes/.git/x", "--content", "x"],
        ["history", "--json"],
        ["history", "notes/cli.md"],
        ["undo"],
        ["undo", "--redo"],
        ["undo", "999999"],
        ["undo", "{change}"],
        ["mv", "boat 4", "ferry", "--preview"],
        ["mv", "boat 4", "ferry"],
        ["backlinks", "ferry"],
        ["mv", "ferry", "boat 4"],
        ["mv", "none", "x"],
        ["mv", "MOC", "boat 1"],
        ["rm", "bread 4", "--preview"],
        ["rm", "bread 4"],
        ["get", "bread 4"],
        ["undo"],
        ["rm", "none"],
        ["summary", "{home}/notes/summary.md", "--content", "a summary"],
        ["summary", "/nowhere/x.md", "--content", "a"],
        ["restore", "notes/bread/bread 4.md"],
        ["history"],
        ["audit", "--json"],
        ["export", "{home}/export"],
        ["cleanup", "--dry-run"],
        ["status", "--json"],
    ):
        yield Command(arguments)


# Python.


def python_calls() -> Iterator[PythonCall]:
    for file in (*FILES, *WRONG_FILES, *SECTIONS):
        for method in ("get", "outline", "links", "backlinks", "details", "similar", "tasks"):
            yield method, [file], {}
        yield "get", [file], {"from_line": 2, "max_lines": 3, "line_numbers": True}
        yield "get", [file], {"max_tokens": 30}
    for pattern in PATTERNS:
        yield "multi_get", [pattern], {}
        yield "multi_get", [pattern], {"max_lines": 2, "max_total_bytes": 900}
    for listing, arguments in LISTINGS:
        method = {"broken": "broken_links"}.get(listing, listing)
        if "key" in arguments:
            keywords = {name: value for name, value in arguments.items() if name != "key"}
            yield "property_values", [arguments["key"]], keywords
        elif listing != "properties":
            yield method, [], dict(arguments)
    for method in ("search", "vsearch", "query"):
        for query in (*WORDS, *WRONG_WORDS):
            yield method, [query], {"explain": True}
        for filters in (
            {"collections": ["docs"]},
            {"path": "notes/garden"},
            {"tags": ["home"]},
            {"properties": ["rating:4"]},
            {"collections": ["none"]},
            {"after": "soon"},
        ):
            yield method, ["boat server"], {"filters": filters, "min_score": 0}
    for arguments in (
        {},
        {"prefix": "notes/boat"},
        {"tags": ["work"], "sort": "-rating", "limit": 4},
    ):
        yield "documents", [], dict(arguments)
        yield "count_documents", [], {k: v for k, v in arguments.items() if k in ("prefix", "tags")}
    for method in (
        "collections",
        "contexts",
        "properties",
        "overview",
        "tokens",
        "warned",
        "count_warned",
    ):
        yield method, [], {}
    yield "create_note", ["notes/python.md", "# Made by Python\n\n- [ ] a task\n"], {}
    yield "create_note", ["notes/python.md", "x"], {}
    yield "tick_task", ["notes/python.md", 3], {"done": True}
    yield "tick_task", ["notes/python.md", 1], {"done": True}
    yield "replace_note", ["notes/python.md", "# Another\n"], {"preview": True}
    yield "replace_note", ["notes/python.md", "# Another\n"], {}
    yield "move_note", ["notes/python.md", "notes/moved.md"], {}
    yield "undo.undo_last", [], {}
    yield "delete_note", ["notes/python.md"], {}
    yield "chats", [], {}


# HTTP: REST, MCP and the pages.

_JSON = (("Accept", "application/json"),)


def rest_reads() -> Iterator[Request]:
    for command, arguments in searches():
        yield Request("POST", f"/{command}", arguments)
    for searched in (
        [{"type": "lex", "query": "boat"}, {"type": "vec", "query": "a ship"}],
        [],
        [{}],
    ):
        yield Request("POST", "/query", {"searches": searched})
    yield Request(
        "POST", "/query", {"query": "boat", "rerank": False, "expand": False, "explain": True}
    )
    yield Request("POST", "/query", {"query": "boat", "without": ["words"], "explain": True})
    for file in (*FILES, *WRONG_FILES, *SECTIONS):
        yield Request("POST", "/get", {"file": file})
        yield Request(
            "POST", "/get", {"file": file, "from_line": 2, "max_lines": 2, "max_tokens": 50}
        )
        for listing in ("outline", "links", "backlinks", "similar"):
            yield Request("GET", f"/{listing}?file={quote(file)}")
    for pattern in PATTERNS:
        yield Request("POST", "/multi_get", {"pattern": pattern, "max_lines": 3})
    for listing, arguments in (*LISTINGS, ("documents", {}), ("documents", {"prefix": "docs/"})):
        for odd in ({}, *ODD):
            pairs = {**arguments, **odd}.items()
            yield Request(
                "GET", f"/{listing}?" + "&".join(f"{k}={quote(str(v))}" for k, v in pairs)
            )
    for path in (
        "/status",
        "/health",
        "/openapi.json",
        "/collections",
        "/collections/notes",
        "/collections/none",
        "/contexts",
        "/chats",
        "/chats/none",
        "/changes",
        "/nowhere",
        "/documents?sort=-date&limit=4",
        "/documents?group_by=status",
        "/tasks",
        "/tasks?done=true&limit=3",
        "/tasks?due=soonish",
        "/view?view=none",
        "/periodic_note?when=2024-03-02",
        "/recall?query=boat",
        "/recall?about=boat+1",
        "/build_context?file=boat+1&max_tokens=200",
        "/build_context?file=none",
        "/plugins",
        "/push/none",
        "/properties?key=",
        "/sse",
    ):
        # What is there must still be there for what follows.
        for method in (
            "GET",
            "HEAD",
            "PATCH" if path == "/collections/notes" else "DELETE",
            "OPTIONS",
        ):
            yield Request(method, path, headers=_JSON)
    for operation in every_operation():
        if operation.method == "GET" and not operation.in_shell_alone:
            yield Request("GET", re.sub(r"\{\w+\}", "boat+1", operation.path), headers=_JSON)
    yield Request("POST", "/embed", {"texts": ["boat", "数据库"]})
    for body in (b"", b"{", b"[]", b'"x"', b"\xff", b'{"query": "a", "query": "b"}', b"null"):
        yield Request("POST", "/search", body, (("Content-Type", "application/json"),))
    yield Request("POST", "/search", b'{"query": "boat"}', (("Content-Type", "text/plain"),))
    yield Request("POST", "/search", b'{"query": "boat"}', (("Content-Encoding", "gzip"),))
    yield Request("POST", "/search", {"query": "x" * 200_000})
    yield Request("POST", "/search", {"query": ["boat"]})
    for name, value in (
        ("Host", "evil.example"),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Authorization", "Bearer wrong"),
        ("Accept", "text/html"),
        ("Origin", "{url}"),
        ("Origin", "https://friend.example"),
    ):
        for method, path in (
            ("GET", "/status"),
            ("POST", "/search"),
            ("GET", "/"),
            ("OPTIONS", "/mcp"),
        ):
            body = {"query": "boat"} if method == "POST" else None
            yield Request(method, path, body, ((name, value),))
    asked = (
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type"),
    )
    for origin in ("https://friend.example", "https://evil.example", "{url}"):
        for path in ("/search", "/mcp", "/", "/nowhere"):
            yield Request("OPTIONS", path, None, (("Origin", origin), *asked))


def rest_changes() -> Iterator[Request]:
    for edit in EDITS:
        yield Request("POST", "/edit_note", {"file": "garden 2", **edit})
    yield Request("POST", "/get", {"file": "garden 2"})
    for body in ({}, {"redo": True}, {"change": 1}, {"change": "x"}, {"session": "none"}):
        yield Request("POST", "/undo", body)
    yield Request("GET", "/changes")
    yield Request("GET", "/changes?limit=2")
    for new_path, file in (
        ("garden/pond", "garden 3"),
        ("pond/", "pond"),
        ("x", "none"),
        ("../x", "pond"),
    ):
        for preview in (True, False):
            body = {"file": file, "new_path": new_path, "preview": preview}
            yield Request("POST", "/move_note", body)
    for file in ("garden 4", "garden 4", "none", "same"):
        yield Request("POST", "/delete_note", {"file": file})
    yield Request("POST", "/undo", {})
    for method, path, body in (
        ("POST", "/collections/add", {"name": "p", "path": "{home}/posts"}),
        ("POST", "/collections/add", {"name": "p", "path": "{home}/posts"}),
        ("POST", "/collections/add", {"name": "q", "path": "/etc"}),
        ("POST", "/collections/add", {"name": "q", "path": "relative"}),
        ("PUT", "/collections/p", {"new_name": "r"}),
        ("PUT", "/collections/none", {"new_name": "r"}),
        ("PUT", "/collections/r", {"new_name": "notes"}),
        ("DELETE", "/collections/r", None),
        ("DELETE", "/collections/r", None),
        ("POST", "/index", {}),
        ("POST", "/update", {}),
        ("POST", "/contexts/add", {"path": "notes/boat", "text": "boats"}),
        ("POST", "/contexts/add", {"path": "none", "text": "boats"}),
        ("GET", "/contexts", None),
        ("DELETE", "/contexts/notes%2Fboat", None),
        ("DELETE", "/contexts/notes%2Fboat", None),
    ):
        yield Request(method, path, body)
    for question in QUESTIONS:
        yield Request("POST", "/chat", {"question": question, "wait": True})
        yield Request("GET", "/chats/{chat}")
    for method, path, body in (
        ("POST", "/chat", {"question": "More? SCRIPT: Yes.", "chat": "{chat}", "wait": True}),
        ("POST", "/chat", {"question": ""}),
        ("POST", "/chat", {"question": "x", "chat": "none"}),
        ("POST", "/chat/stream", {"question": QUESTIONS[1]}),
        ("POST", "/chat/stream", {"question": ""}),
        ("PUT", "/chats/{chat}", {"name": "Renamed"}),
        ("PUT", "/chats/{chat}", {"name": ""}),
        ("GET", "/chats?query=boat", None),
        ("GET", "/chats?limit=1", None),
        ("POST", "/chats/{chat}/export", {"path": "notes/talk.md"}),
        ("POST", "/delete_note", {"file": "notes/talk.md"}),  # it has the time in it
        ("POST", "/chats/{chat}/stop", None),
        ("POST", "/chats/{chat}/answer", {"question": 1, "agreed": True}),
        ("POST", "/chats/{chat}/retry", {}),
        ("DELETE", "/chats/{chat}", None),
        ("DELETE", "/chats/{chat}", None),
    ):
        yield Request(method, path, body)


def pages() -> Iterator[Request]:
    """Each view in both languages, with what does not exist."""
    paths = [
        "/",
        "/overview",
        "/overview/charts",
        "/overview/collections/new",
        "/overview/skipped",
        "/overview/warnings",
        "/overview/why?path=MOC",
        "/overview/collection?name=notes",
        "/overview/collection?name=none",
        "/overview/context?path=notes",
        "/new",
        "/help",
        "/ask",
        "/ask/none",
        "/photos",
        "/nowhere",
        "/part/suggest?q=boa",
        "/part/links?q=boa",
        "/part/words?q=boa",
        "/part/live",
        "/part/ask/list",
        "/part/help",
        "/login",
    ]
    for query in (*WORDS, *WRONG_WORDS):
        paths += [f"/?q={quote(query)}", f"/?q={quote(query)}&mode=search"]
    paths += [
        f"/?q=boat&{rest}"
        for rest in ("collection=none", "after=never", "sort=x", "tag=work", "p=a")
    ]
    for file in FILES:
        paths += [f"/note/{quote(file)}"]
    for file in (
        "notes/MOC.md",
        "notes/Backup plan.md",
        "notes/none.md",
        "docs/install.md",
        "same",
        "none",
    ):
        for view in (
            "note",
            "graph",
            "edit",
            "history",
            "move",
            "delete",
            "tick",
            "photo",
            "raw",
            "file",
            "part/similar",
        ):
            paths.append(f"/{view}/{quote(file)}")
    for path, language in itertools.product(paths, ("en", "zh")):
        yield Request("GET", path, headers=(("Accept", "text/html"), ("Accept-Language", language)))


def page_forms() -> Iterator[Request]:
    """Forms of the pages: most of them with an error that the page must say in its language."""
    forms: tuple[tuple[str, dict[str, Any]], ...] = (
        (
            "/new",
            {
                "collection": "notes",
                "folder": "",
                "name": "from {language}",
                "text": "# From a page\n",
            },
        ),
        ("/new", {"collection": "notes", "folder": "", "name": "MOC", "text": "x"}),
        ("/new", {"collection": "none", "folder": "", "name": "x", "text": "x"}),
        ("/new", {"collection": "notes", "folder": ".git", "name": "x", "text": "x"}),
        ("/new", {"collection": "notes", "folder": "", "name": "", "text": "x"}),
        ("/new", {"collection": "notes", "folder": "", "name": "n" * 300, "text": "x"}),
        ("/edit/notes/train/train%201.md", {"text": "# Changed in {language}\n", "action": "save"}),
        (
            "/edit/notes/train/train%201.md",
            {"text": "# Again\n", "docid": "#000000", "action": "save"},
        ),
        ("/edit/notes/none.md", {"text": "x", "action": "save"}),
        ("/edit/notes/latin.md", {"text": "数据库", "action": "save"}),
        ("/part/preview", {"file": "notes/MOC.md", "text": "# Seen\n\n[[boat 1]] **x**"}),
        ("/move/notes/train/train%202.md", {"to": "notes/MOC.md", "action": "move"}),
        ("/move/notes/train/train%202.md", {"to": "train/moved {language}", "action": "preview"}),
        ("/move/notes/train/train%202.md", {"to": "../outside", "action": "move"}),
        ("/move/notes/train/train%202.md", {"to": "", "action": "move"}),
        ("/delete/notes/train/train%203.md", {"docid": "#000000"}),
        ("/delete/notes/none.md", {}),
        ("/tick/notes/train/train%204.md", {"line": "1", "done": "1"}),
        ("/tick/notes/train/train%204.md", {"line": "x", "done": "1"}),
        ("/tick/notes/train/train%204.md", {"line": "14", "done": "1"}),
        ("/undo/{change}", {}),
        ("/undo/1", {}),
        ("/undo/x", {}),
        ("/undo/1", {"from": "overview"}),
        ("/history/notes/MOC.md", {"revision": "1"}),
        ("/history/notes/MOC.md", {"revision": "x"}),
        ("/overview/collections/add", {"path": "{home}/none", "name": "x"}),
        ("/overview/collections/add", {"path": "{home}/notes", "name": "notes"}),
        ("/overview/collections/add", {"path": "/etc", "name": "x"}),
        (
            "/overview/collections/look",
            {"path": "{home}/docs", "name": "", "mask": "**/*.md", "ignore": ""},
        ),
        ("/overview/collections/look", {"path": "relative", "name": "x"}),
        ("/overview/collection/rename", {"name": "notes", "new_name": "docs"}),
        ("/overview/collection/rename", {"name": "none", "new_name": "x"}),
        ("/overview/collection/rename", {"name": "docs", "new_name": "a/b"}),
        ("/overview/collection/remove", {"name": "none"}),
        ("/overview/context/save", {"path": "notes/train", "text": "trains", "is_new": "1"}),
        ("/overview/context/save", {"path": "nowhere/x", "text": "trains"}),
        ("/overview/context/save", {"path": "notes", "text": ""}),
        ("/overview/context/remove", {"path": "notes/train"}),
        ("/overview/context/remove", {"path": "notes/train"}),
        ("/overview/index", {"collection": "none"}),
        ("/ask", {"text": "", "mode": "read"}),
        ("/photo/notes/pixel.png", {"tags": "x"}),
        ("/login", {"password": "x"}),
        ("/nowhere", {}),
    )
    for language in ("en", "zh"):
        headers = (("Accept", "text/html"), ("Accept-Language", language))
        yield Request("GET", "/", headers=headers)
        for path, fields in forms:
            filled = {k: str(v).replace("{language}", language) for k, v in fields.items()}
            yield Request("POST", path, None, headers, {**filled, "csrf": "{csrf}"})
        yield Request("POST", "/new", None, headers, {"name": "x", "csrf": "wrong"})
        yield Request("POST", "/new", b"name=x", (*headers, ("Content-Type", "text/plain")))


def guarded() -> Iterator[Request]:
    """A server with a token that only reads."""
    for token in ("", "Bearer wrong", "Basic x", "Bearer {token}"):
        headers = (("Authorization", token), *_JSON) if token else _JSON
        for method, path, body in (
            ("GET", "/status", None),
            ("POST", "/search", {"query": "boat"}),
            ("GET", "/", None),
            ("POST", "/index", {}),
            ("POST", "/edit_note", {"file": "MOC", "action": "append", "text": "x"}),
            ("POST", "/collections/add", {"path": "{home}/posts"}),
            ("GET", "/mcp", None),
            ("GET", "/nowhere", None),
            ("POST", "/undo", {}),
            ("POST", "/chat", {"question": "x"}),
            ("GET", "/health", None),
            ("GET", "/metrics", None),
            ("GET", "/openapi.json", None),
            ("POST", "/open", None),
            ("DELETE", "/contexts/x", None),
            ("GET", "/login", None),
            ("OPTIONS", "/search", None),
        ):
            yield Request(method, path, body, headers)
            if method == "GET":
                shown = (("Accept", "text/html"), ("Accept-Language", "zh"))
                yield Request(method, path, body, (*headers[:-1], *shown))


_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "differential", "version": "1"},
}


def mcp_calls() -> Iterator[ToolCall]:
    yield ToolCall("initialize", _HELLO)
    for method in (
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "ping",
        "no/such",
    ):
        yield ToolCall(method, {})
    for file in ("notes/MOC.md", "notes/none.md", "notes/pixel.png", "docs/install.md"):
        yield ToolCall("resources/read", {"uri": f"qmd://{file}"})
    yield ToolCall("prompts/get", {"name": "query"})
    yield ToolCall("prompts/get", {"name": "none"})
    for reference in (
        {"type": "ref/resource", "uri": "qmd://{+path}"},
        {"type": "ref/prompt", "name": "query"},
    ):
        argument = {"name": "path", "value": "notes/b"}
        yield ToolCall("completion/complete", {"ref": reference, "argument": argument})
    for name, arguments in _tool_calls():
        yield ToolCall("tools/call", {"name": name, "arguments": arguments})


def _tool_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    for command, arguments in searches(WORDS[::2]):
        yield command, camel(arguments)
    for file in (*FILES, *WRONG_FILES, *SECTIONS):
        yield "get", {"file": file}
        yield (
            "get",
            {"file": file, "fromLine": 2, "maxLines": 2, "maxTokens": 40, "lineNumbers": True},
        )
        for tool in ("outline", "links", "similar"):
            yield tool, {"file": file}
        yield "read_note", {"path": file}
    for pattern in PATTERNS:
        yield "multi_get", {"pattern": pattern, "maxLines": 3}
    for listing, arguments in LISTINGS:
        tool = {"broken": "check_links", "orphans": "check_links"}.get(listing, listing)
        for odd in ({}, *ODD):
            yield tool, camel({**arguments, **odd})
    for collection in ({}, {"collection": "docs"}, {"collection": "none"}):
        yield "status", collection
    for path in ("", "notes", "notes/boat", "none", "/", "../"):
        yield "list_folder", {"path": path}
    for tool, arguments in (
        ("list_authors", {}),
        ("list_authors", {"name": "ann"}),
        ("list_authors", {"name": "zz"}),
        ("list_posts", {"author": "anna"}),
        ("list_posts", {"author": "carl"}),
        ("read_post", {"path": "anna/motions/first.md"}),
        ("read_post", {"author": "ben", "title": "tea"}),
        ("read_post", {}),
        ("read_post", {"path": "none"}),
        ("search_posts", {"query": "温柔"}),
        ("search_posts", {"query": ""}),
        ("search_posts", {"query": "boat", "author": "carl"}),
        ("no_such_tool", {}),
        ("get", {}),
        ("get", {"file": 3}),
        ("get", {"file": "MOC", "lines": 3}),
    ):
        yield tool, arguments
    for edit in EDITS:
        yield "edit_note", camel({"file": "budget 2", **edit})
    yield "get", {"file": "budget 2"}
    for arguments in ({}, {"redo": True}, {"change": 1}, {"session": True}):
        yield "undo", arguments
    for tool, arguments in (
        ("create_note", {"path": "notes/tool", "content": "# By a tool\n"}),
        ("create_note", {"path": "notes/tool", "content": "more\n", "mode": "append"}),
        ("create_note", {"path": "notes/tool", "content": "all\n", "mode": "overwrite"}),
        ("create_note", {"path": "notes/.obsidian/x", "content": "x"}),
        ("create_note", {"path": "../x", "content": "x"}),
        ("create_note", {"path": "notes/y"}),
        ("move_note", {"file": "budget 3", "newPath": "budget/money", "preview": True}),
        ("move_note", {"file": "budget 3", "newPath": "budget/money"}),
        ("move_note", {"file": "none", "newPath": "x"}),
        ("delete_note", {"file": "budget 4"}),
        ("delete_note", {"file": "budget 4"}),
        ("delete_note", {"file": "MOC", "ifDocid": "#000000"}),
        ("undo", {}),
        ("undo", {"redo": True}),
        (
            "update_summary",
            {"content": "sum", "file_path": "{home}/notes/sum.md", "mode": "append"},
        ),
        ("update_summary", {"content": "sum", "file_path": "/nowhere/sum.md"}),
        ("update_summary", {"content": "", "file_path": "{home}/notes/sum.md"}),
        ("writeImageMetadata", {"filePath": "{home}/notes/none.jpg", "metadata": {"tags": ["a"]}}),
        ("writeImageMetadata", {"filePath": "{home}/notes/MOC.md", "metadata": {}}),
    ):
        yield tool, arguments
