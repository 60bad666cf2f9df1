"""A server that ends, or is killed, in the middle of a turn."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from tests.support.cli import TIMEOUT_S, Scratch, filled
from tests.support.model_server import Call, ModelServer, says


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_turn_that_the_end_of_the_server_interrupts_is_resumed(
    tmp_path: Path, how: signal.Signals
) -> None:
    scratch: Scratch = filled(tmp_path)
    called, leave = threading.Event(), threading.Event()

    def slow(call: Call) -> None:
        called.set()  # what came of the round before is kept by now
        leave.wait(TIMEOUT_S)

    tool = '```json:tool\n{"tool": "search", "params": {"query": "parser"}}\n```'
    with ModelServer(says(tool), slow, says("In March.")) as model:
        with_model = scratch.with_env(QMD_LLM_URL=model.url)
        server = with_model.start(
            "server", "--transport", "http", "--port", "0", "--no-watch", stderr=subprocess.PIPE
        )
        try:
            announced = scratch.root.rglob("*.server.json")
            assert server.stderr is not None
            server.stderr.readline()
            url = json.loads(next(announced).read_text())["url"]
            with httpx.stream(
                "POST",
                f"{url}/chat/stream",
                json={"question": "when?"},
                timeout=TIMEOUT_S,
                trust_env=False,
            ) as response:
                for line in response.iter_lines():
                    if line == 'data: {"round": 2}':
                        assert called.wait(TIMEOUT_S)
                        server.send_signal(how)
                        break
            server.wait(TIMEOUT_S)
        finally:
            server.kill()
            server.wait()
            server.stderr.close()  # type: ignore[union-attr]
        leave.set()
        [chat] = json.loads(scratch.ok("chat", "list", "--json").out)["chats"]
        reply = with_model.start("server", "--transport", "http", "--port", "0", "--no-watch",
                                 stderr=subprocess.PIPE)  # fmt: skip
        try:
            assert reply.stderr is not None
            reply.stderr.readline()
            url = json.loads(next(scratch.root.rglob("*.server.json")).read_text())["url"]
            kept = httpx.get(f"{url}/chats/{chat['id']}", timeout=TIMEOUT_S, trust_env=False)
            [turn] = kept.json()["turns"]
            assert turn["status"] == "interrupted"
            again = httpx.post(
                f"{url}/chats/{chat['id']}/retry", timeout=TIMEOUT_S, trust_env=False
            )
            assert again.json()["answer"] == "In March."
            assert [message["role"] for message in model.requests[-1].messages] == [
                "system", "user", "assistant", "user",
            ]  # fmt: skip
        finally:
            reply.terminate()
            reply.wait(TIMEOUT_S)
            reply.stderr.close()  # type: ignore[union-attr]
