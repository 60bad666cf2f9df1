"""The ``__init__`` of a package that is run late."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qmd.system.late_packages import run_late


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that says when it runs, with a module."""
    folder = tmp_path / "latepackage"
    folder.mkdir()
    (folder / "__init__.py").write_text("print('runs')\nfrom .part import VALUE\nOTHER = 2\n")
    (folder / "part.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("latepackage", "latepackage.part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "latepackage"


def test_its_modules_are_imported_without_it(
    package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_late(package)
    run_late(package)
    part = __import__(f"{package}.part", fromlist=["VALUE"])
    assert (part.VALUE, capsys.readouterr().out) == (1, "")
    whole = __import__(package, fromlist=["OTHER", "VALUE"])
    assert (whole.OTHER, whole.VALUE, capsys.readouterr().out) == (2, 1, "runs\n")
    with pytest.raises(AttributeError, match="module 'latepackage' has no attribute 'nothing'"):
        _ = whole.nothing
    assert capsys.readouterr().out == ""


def test_a_missing_package_is_reported_by_its_import() -> None:
    run_late("no_such_package_here")
    with pytest.raises(ModuleNotFoundError):
        __import__("no_such_package_here")


@pytest.mark.cold
def test_a_server_loads_no_client_and_no_cryptography() -> None:
    code = (
        "import sys\n"
        "import qmd.server.process, qmd.server.app, qmd.server.mcp\n"
        "heavy = ('cryptography', 'jwt', 'mcp.client', 'mcp.server.mcpserver', 'httpx2')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "from mcp import ClientSession\n"
        "from mcp.server import MCPServer\n"
        "import mcp\n"
        "print(ClientSession.__name__, MCPServer.__name__, 'ClientSession' in mcp.__all__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\nClientSession MCPServer True\n"


@pytest.mark.cold
def test_a_server_loads_the_page_for_the_first_browser(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from starlette.testclient import TestClient\n"
        "from qmd import KnowledgeBase\n"
        "from qmd.server.app import build_app\n"
        "def loaded():\n"
        "    heavy = ('jinja2', 'markdown_it', 'latex2mathml', 'nh3', 'qmd.server.page')\n"
        "    return [name for name in heavy if name in sys.modules]\n"
        "with KnowledgeBase.open(Path(sys.argv[1]), create=True) as kb:\n"
        "    with TestClient(build_app(kb), base_url='http://localhost') as client:\n"
        "        assert client.post('/search', json={'query': 'boats'}).status_code == 200\n"
        "        assert client.get('/metrics').status_code == 200\n"
        "        print(loaded())\n"
        "        assert client.get('/help').status_code == 200\n"
        "        print(len(loaded()))\n"
        "        assert client.get('/nowhere').status_code == 404\n"
        "        print('route=\"/help\"' in client.get('/metrics').text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "kb.sqlite")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["[]", "5", "True"]


@pytest.mark.cold
def test_a_server_loads_mcp_for_the_first_client_of_mcp(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from starlette.testclient import TestClient\n"
        "from qmd import KnowledgeBase\n"
        "from qmd.server import process\n"
        "from qmd.server.app import build_app\n"
        "def loaded():\n"
        "    heavy = ('mcp', 'mcp_types', 'qmd.server.mcp')\n"
        "    return [name for name in heavy if name in sys.modules]\n"
        "HEADERS = {'Accept': 'application/json, text/event-stream'}\n"
        "PARAMS = {'protocolVersion': '2025-06-18', 'capabilities': {},\n"
        "          'clientInfo': {'name': 'test', 'version': '1'}}\n"
        "HELLO = {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': PARAMS}\n"
        "with KnowledgeBase.open(Path(sys.argv[1]), create=True) as kb:\n"
        "    app = build_app(kb)\n"
        "    for _ in range(2):\n"
        "        with TestClient(app, base_url='http://localhost') as client:\n"
        "            assert client.post('/search', json={'query': 'boats'}).status_code == 200\n"
        "            print(loaded())\n"
        "            reply = client.post('/mcp', json=HELLO, headers=HEADERS)\n"
        "            print(reply.status_code, 'serverInfo' in reply.text)\n"
        "    print(len(loaded()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "kb.sqlite")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    first, *answers = done.stdout.splitlines()
    assert first == "[]"
    assert answers[0] == answers[2] == "200 True"
    assert answers[3] == "3"
