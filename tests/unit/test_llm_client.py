"""
The client to OpenAI-compatible servers against one that answers as hostile ones do.

Nothing here waits: the pauses between tries are counted instead.
"""

from __future__ import annotations

import gzip
import logging
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.errors import (
    ConfigError,
    InferenceError,
    QmdError,
    TransientInferenceError,
)
from qmd.inference.llm import (
    DEFAULT_URL,
    ChatAnswer,
    Delta,
    Event,
    LlmClient,
    LlmSettings,
    Message,
    Retry,
    read_key,
)
from qmd.inference.llm.answer import Assembly
from qmd.inference.llm.endpoint import ModelEndpoint
from tests.support.model_server import (
    Call,
    ModelServer,
    Step,
    fails,
    hangs,
    hangs_after,
    resets,
    says,
    sends,
    streams,
)

KEY = "sk-0123456789abcdef"
HELLO = [Message("user", "Hello")]
IN_TIME_S = 1.0
"""Waited for in full where a server is silent, and enough for one that answers."""


class Asked:
    """One question to a server with this script: the answer or the error, and what was heard."""

    def __init__(
        self,
        *script: Step,
        stream: bool = True,
        key: str | None = KEY,
        timeout_s: float = 30,
        retries: int = 3,
    ) -> None:
        self.heard: list[Event] = []
        self.pauses: list[float] = []
        self.answer: ChatAnswer | None = None
        self.error: InferenceError | None = None
        with ModelServer(*script) as server:
            chosen = LlmSettings(server.url, "a-model", key, timeout_s)
            llm = LlmClient(chosen, retries=retries, wait=self.pauses.append, jitter=lambda: 1.0)
            try:
                self.answer = llm.chat(HELLO, listen=self.heard.append if stream else None)
            except InferenceError as error:
                self.error = error
            self.requests = server.requests

    @property
    def text(self) -> str:
        assert self.answer is not None, self.error
        return self.answer.text

    @property
    def failed(self) -> InferenceError:
        assert self.error is not None, self.answer
        return self.error

    @property
    def shown(self) -> str:
        """What stands on a terminal at the end: a new try begins anew."""
        last = max((n for n, each in enumerate(self.heard) if isinstance(each, Retry)), default=-1)
        return "".join(each.text for each in self.heard[last + 1 :] if isinstance(each, Delta))


both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "in one piece"])


class TestAnswers:
    @both_ways
    @pytest.mark.parametrize("piece", [1, 3, 1000])
    def test_the_text_comes_as_the_model_wrote_it(self, stream: bool, piece: int) -> None:
        text = "Hello, 世界 👋\r\n\n```json:tool\n{}\n```\n"
        asked = Asked(says(text, piece=piece), stream=stream)
        assert asked.text == text
        assert asked.shown == (text if stream else "")

    def test_question_model_and_key_are_sent(self) -> None:
        (request,) = Asked(says("ok")).requests
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body == {
            "model": "a-model",
            "messages": [{"role": "user", "content": "Hello"}],
            "stream": True,
        }

    def test_a_server_without_key_gets_no_key_of_another_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
        monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-an-admin")
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Key: sk-of-somebody-else")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-of-somebody-else")
        monkeypatch.setenv("OPENAI_ORG_ID", "org")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
        (request,) = Asked(says("ok"), key=None).requests
        assert "authorization" not in request.headers
        assert not [name for name in request.headers if name.startswith("openai")]
        assert "sk-" not in str(request.headers)

    def test_no_proxy_stands_before_a_server_of_this_machine(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        assert Asked(says("ok")).text == "ok"

    @pytest.mark.parametrize(
        ("proxy", "said"),
        [
            ("http://me:s3cr/etpw@127.0.0.1:1", "none"),
            ("ftp://me:s3cretpw@127.0.0.1:1", "none"),
            ("socks5://me:s3cretpw@127.0.0.1:1", "socksio"),
        ],
    )
    def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(
        self, proxy: str, said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if said == "socksio":
            monkeypatch.setitem(sys.modules, "socksio", None)  # as if it were not installed
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        llm = LlmClient(LlmSettings("https://model.invalid/v1", key=KEY))
        with pytest.raises(ConfigError, match=said) as problem:
            llm.chat(HELLO)
        assert "s3cr" not in f"{problem.value} {problem.value.hint}"

    @both_ways
    @pytest.mark.parametrize("piece", [1, 4, 1000])
    def test_thoughts_are_no_part_of_the_text(self, stream: bool, piece: int) -> None:
        asked = Asked(says("\n<think>\nwhy <b>?\n</think>\n\nBecause.", piece=piece), stream=stream)
        assert asked.answer == ChatAnswer("Because.", "\nwhy <b>?\n", "stop")
        assert asked.shown in ("Because.", "")

    @both_ways
    def test_thoughts_in_a_field_of_their_own_are_kept_apart(self, stream: bool) -> None:
        asked = Asked(says("Because.", reasoning="why?"), stream=stream)
        assert asked.answer == ChatAnswer("Because.", "why?", "stop")

    @pytest.mark.parametrize("text", ["<thin", "<b>x", "a <think>b</think>", "</think>"])
    def test_other_tags_are_text(self, text: str) -> None:
        assert Asked(says(text, piece=2)).text == text

    def test_an_answer_in_one_piece_will_do_where_a_stream_was_asked_for(self) -> None:
        def step(call: Call) -> None:
            call.answer_json({"choices": [{"message": {"content": [{"text": "whole"}]}}]})

        asked = Asked(step)
        assert (asked.text, asked.shown) == ("whole", "whole")

    def test_a_stream_will_do_where_an_answer_in_one_piece_was_asked_for(self) -> None:
        data = b'data: {"choices": [{"delta": {"content": "ok"}}]}\n\ndata: [DONE]\n\n'
        assert Asked(streams(data), stream=False).text == "ok"

    def test_halves_of_a_character_in_two_pieces_become_one(self) -> None:
        asked = Asked(
            streams(
                b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n',
                b'data: {"choices": [{"delta": {"content": "\\ude00\\ud83d!"}}]}\n\n',
                b"data: [DONE]\n\n",
            )
        )
        assert asked.text == asked.shown == "😀\ufffd!"

    def test_a_stream_may_be_cut_anywhere(self) -> None:
        data = 'data: {"choices": [{"delta": {"content": "你好"}}]}\r\n\r\ndata: [DONE]\r\n\r\n'
        raw = data.encode()
        assert Asked(streams(*(raw[n : n + 1] for n in range(len(raw))))).text == "你好"

    def test_half_a_surrogate_in_the_question_does_no_harm(self) -> None:
        with ModelServer(says("ok")) as server:
            LlmClient(LlmSettings(server.url)).chat([Message("user", "a\ud800b")])
            assert server.requests[0].messages[0]["content"] == "a?b"


class TestTrying:
    @both_ways
    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
    def test_what_passes_is_tried_again(self, status: int, stream: bool) -> None:
        asked = Asked(fails(status), fails(status), says("ok"), stream=stream)
        assert (asked.text, asked.pauses) == ("ok", [1.0, 2.0])
        assert len(asked.heard) == (3 if stream else 0)

    @both_ways
    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 501, 301])
    def test_a_refusal_is_not(self, status: int, stream: bool) -> None:
        asked = Asked(fails(status, "because"), says("never"), stream=stream)
        assert f"answered {status}: because" in str(asked.failed)
        assert asked.failed.hint
        assert len(asked.requests) == 1

    def test_of_an_error_without_end_only_the_beginning_is_read(self) -> None:
        sent = 0

        def step(call: Call) -> None:
            nonlocal sent
            call.begin_stream("text/plain", status=400)
            for _ in range(100_000):  # 6.5 GB
                call.write(b"because " * 8192)
                sent += 1

        asked = Asked(step)
        assert "answered 400: because" in str(asked.failed)
        assert sent < 1000

    def test_an_error_that_drips_is_waited_for_as_long_as_an_answer(self) -> None:
        def step(call: Call) -> None:
            call.begin_stream("text/plain", status=400)
            while not call.closing.wait(IN_TIME_S / 20):
                call.write(b"because")

        asked = Asked(step, timeout_s=IN_TIME_S)
        assert "answered 400: because" in str(asked.failed)

    def test_it_gives_up_after_growing_pauses(self) -> None:
        asked = Asked(fails(500))
        assert asked.pauses == [1.0, 2.0, 4.0]
        assert len(asked.requests) == 4
        assert isinstance(asked.failed, TransientInferenceError)

    def test_the_pauses_of_several_clients_are_spread(self) -> None:
        pauses: list[float] = []
        with ModelServer(fails(500)) as server, pytest.raises(TransientInferenceError):
            LlmClient(
                LlmSettings(server.url), retries=2, wait=pauses.append, jitter=lambda: 0.0
            ).chat(HELLO)
        assert pauses == [0.5, 1.0]

    def test_the_server_may_ask_for_a_longer_pause(self) -> None:
        assert Asked(fails(429, Retry_After="17"), says("ok")).pauses == [17.0]

    @pytest.mark.parametrize("value", ["0", "-5", "soon", "", "Mon, 01 Jan 2001 00:00:00 GMT"])
    def test_but_not_for_a_shorter_one(self, value: str) -> None:
        assert Asked(fails(429, Retry_After=value), says("ok")).pauses == [1.0]

    @pytest.mark.parametrize("value", ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"])
    def test_a_server_that_wants_an_hour_is_left_alone(self, value: str) -> None:
        asked = Asked(fails(429, Retry_After=value), says("never"))
        assert asked.pauses == []
        assert "as it asks" in str(asked.failed.hint)

    def test_a_used_up_account_is_not_tried_again(self) -> None:
        body = b'{"error": {"message": "no money", "code": "insufficient_quota"}}'
        asked = Asked(sends(body, status=429))
        assert (asked.pauses, asked.failed.hint) == (
            [],
            "Your account with this server is used up.",
        )

    @both_ways
    def test_silence_is_tried_again(self, stream: bool) -> None:
        asked = Asked(hangs(), says("ok"), stream=stream, timeout_s=IN_TIME_S)
        assert (asked.text, asked.pauses) == ("ok", [1.0])

    @both_ways
    def test_silence_to_the_end_is_a_time_out(self, stream: bool) -> None:
        asked = Asked(hangs(), stream=stream, timeout_s=0.1, retries=1)
        assert "within 0.1 s" in str(asked.failed)
        assert "--timeout" in str(asked.failed.hint)

    @both_ways
    def test_a_lost_connection_is_tried_again(self, stream: bool) -> None:
        assert Asked(resets(), says("ok"), stream=stream).text == "ok"

    @pytest.mark.parametrize("step", [resets("half an ans"), hangs_after("half an ans")])
    def test_half_an_answer_is_void(self, step: Step) -> None:
        asked = Asked(step, says("whole"), timeout_s=IN_TIME_S)
        assert isinstance(asked.heard[-1], Delta)
        assert (asked.text, asked.shown) == ("whole", "whole")
        assert [each for each in asked.heard if isinstance(each, Retry)]

    def test_a_stream_without_an_end_broke_off(self) -> None:
        asked = Asked(streams(b'data: {"choices": [{"delta": {"content": "half"}}]}\n\n'))
        assert "broke off" in str(asked.failed)

    def test_a_stream_may_end_without_the_closing_word(self) -> None:
        assert Asked(says("ok", done=False)).text == "ok"

    @pytest.mark.parametrize(
        "noise",
        [b": still there\n\n", b'data: {"choices": [{"delta": {"content": ""}}]}\n\n'],
        ids=["comments", "empty pieces"],
    )
    def test_noise_does_not_keep_a_dead_stream_alive(self, noise: bytes) -> None:
        def step(call: Call) -> None:
            call.begin_stream()
            while not call.closing.wait(IN_TIME_S / 20):
                call.write(noise)

        asked = Asked(step, timeout_s=IN_TIME_S, retries=0)
        assert f"within {IN_TIME_S:g} s" in str(asked.failed)

    def test_a_byte_that_is_no_utf8_loses_one_character(self) -> None:
        piece = (
            b'data: {"choices": [{"delta": {"content": "a\xffb"}, "finish_reason": "stop"}]}\n\n'
        )
        assert Asked(streams(piece)).text == "a\ufffdb"

    def test_a_budget_ends_the_tries(self) -> None:
        pauses: list[float] = []
        with ModelServer(fails(500)) as server, pytest.raises(TransientInferenceError):
            LlmClient(
                LlmSettings(server.url),
                wait=pauses.append,
                clock=lambda: sum(pauses),
                jitter=lambda: 1.0,
            ).chat(HELLO, budget_s=5.0)
        assert pauses == [1.0, 2.0]

    def test_nobody_there_is_said_with_advice(self) -> None:
        with ModelServer(says("")) as server:
            url = server.url
        llm = LlmClient(LlmSettings(url), retries=0)
        with pytest.raises(TransientInferenceError, match="Cannot reach http://127") as caught:
            llm.chat(HELLO)
        assert "Is it running?" in str(caught.value.hint)


class TestNonsense:
    @both_ways
    @pytest.mark.parametrize(
        ("step", "said"),
        [
            (sends(b"<!doctype html><title>Hi</title>", "text/html"), "an HTML page"),
            (sends(b'{"choices": [', "application/json"), "no JSON"),
            (sends(b"[" * 100_000), "no JSON"),
            (sends(b"", "application/json"), "no JSON"),
            (sends(b'"text"'), "no JSON object"),
            (sends(b"\xff\xfe\x00"), "no JSON"),
            (sends(b'{"choices": []}'), "no choices"),
            (sends(b'{"choices": null}'), "no choices"),
            (sends(b'{"choices": {"a": 1}}'), "no choices"),
            (sends(b'{"error": {"message": "overloaded"}}'), "overloaded"),
            (sends(b'{"choices": [{"message": null}]}'), "answered with nothing"),
            (sends(b'{"choices": [{"message": {"content": 7}}]}'), "answered with nothing"),
            (sends(b'{"choices": [{"message": {"content": null, "tool_calls": [{}]}}]}'), "a tool"),
            (
                streams(
                    b'data: {"choices": [{"delta": {"tool_calls": [{}]}}]}\n\n', b"data: [DONE]\n\n"
                ),
                "called a tool",
            ),
            (says(None), "answered with nothing"),
            (says(None, reasoning="hm"), "answered with nothing"),
            (says(None, reasoning="hm", finish="length"), "cut off"),
            (says("<think>hm", finish="length"), "cut off"),
            (says("x" * 10_000_000, piece=100_000), "longer than 1,000,000 characters"),
        ],
    )
    def test_is_an_error_that_says_what_came(self, step: Step, said: str, stream: bool) -> None:
        asked = Asked(step, stream=stream, retries=0)
        assert said in str(asked.failed)
        assert len(str(asked.failed)) < 600
        assert asked.failed.hint

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"data: {nope}\n\n", "no JSON"),
            (b"data: [1]\n\n", "no JSON object"),
            (b'data: {"error": "overloaded"}\n\n', "overloaded"),
            (b"", "broke off"),
            (b"event: ping\n\n", "broke off"),
            (b"data: " + b"x" * (17 << 20), "a line without end"),
        ],
    )
    def test_in_a_stream_is_one_too(self, data: bytes, said: str) -> None:
        assert said in str(Asked(streams(data or b"\n"), retries=0).failed)

    def test_packed_bytes_that_are_not_packed_are_one_too(self) -> None:
        def step(call: Call) -> None:
            call.answer(200, "application/json", b"plain", Content_Encoding="gzip")

        assert "does not answer as a language model" in str(Asked(step).failed)

    def test_packed_bytes_are_unpacked(self) -> None:
        def step(call: Call) -> None:
            body = gzip.compress(b'{"choices": [{"message": {"content": "ok"}}]}')
            call.answer(200, "application/json", body, Content_Encoding="gzip")

        assert Asked(step).text == "ok"

    def test_a_moved_server_is_not_followed_with_the_key(self) -> None:
        with ModelServer(says("caught")) as other:

            def step(call: Call) -> None:
                call.answer(307, "text/plain", b"", Location=f"{other.url}/chat/completions")

            failed = Asked(step).failed
            assert other.url in str(failed.hint)
            assert other.requests == []

    def test_a_reader_looks_at_each_piece_once(self) -> None:
        # A quadratic one would not come to an end here.
        found = Assembly(KEY)
        for _ in range(100_000):
            found.add({"delta": {"content": " "}}, "delta")
        assert len(found.end()) <= 100_000

    @settings(deadline=None)
    @given(
        body=st.lists(
            st.sampled_from(
                [
                    *(b"data: ", b"data:", b"\n\n", b"\r", b"[DONE]", b": x\n", b"event: a\n"),
                    *(b'{"choices": [{"delta": {"content": "', b'"}}]}', b'{"choices":[', b"]}"),
                    *(b'{"choices": [{"message": {"content": "a"}}]}', b"null", b"[]", b"{}"),
                    *(b"7", b'"', b"\\ud83d", b"\xff", b"<html>", b"<think>", b"\x00"),
                    b'{"choices": [{"delta": 7, "finish_reason": {}}]}',
                ]
            ),
            max_size=12,
        ).map(b"".join)
        | st.binary(max_size=80),
        kind=st.sampled_from(["text/event-stream", "application/json", "text/html", "", "x/\x7f"]),
        status=st.sampled_from([200, 200, 200, 204, 206, 302, 400, 418, 500, 599]),
        stream=st.booleans(),
    )
    def test_whatever_a_server_sends_is_an_answer_or_an_error(
        self, body: bytes, kind: str, status: int, stream: bool
    ) -> None:
        asked = Asked(sends(body, kind, status), stream=stream, retries=1)
        assert (asked.answer is None) != (asked.error is None)
        if asked.error is not None:
            assert str(asked.error)
            assert asked.error.hint
        elif stream:
            assert asked.shown == asked.text


class TestKey:
    @both_ways
    @pytest.mark.parametrize(
        "step",
        [
            fails(401, f"Bad key {KEY}!"),
            fails(500, KEY),
            sends(f"<p>{KEY}".encode(), "text/html"),
            sends(f"oops {'x' * 280} {KEY}".encode(), "text/plain", 400),
            sends(f"oops {KEY}".encode()),
            sends(f'{{"error": {{"message": "{KEY}"}}}}'.encode()),
            lambda call: call.answer(302, "text/plain", b"", Location=f"http://a/?k={KEY}"),
            says(f"You are {KEY}, {KEY}.", piece=3),
            says("ok", reasoning=f"The key is {KEY}"),
        ],
    )
    def test_is_never_shown_whatever_the_server_sends(
        self, step: Step, stream: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        asked = Asked(step, stream=stream, retries=1)
        error = asked.error
        shown = [asked.answer, asked.heard, error, error and error.hint, error and error.__cause__]
        assert KEY not in repr(shown)
        assert KEY[:12] not in repr(shown)
        assert KEY not in caplog.text

    def test_is_not_in_the_settings_as_shown(self) -> None:
        assert KEY not in repr(LlmSettings(key=KEY))

    def test_a_placeholder_for_a_key_is_a_word_like_any_other(self) -> None:
        assert Asked(says("ollama is ollama", piece=1), key="ollama").text == "ollama is ollama"

    def test_the_environment_comes_first(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_text("from-file\n")
        file.chmod(0o600)
        own, deepseek = {"QMD_LLM_API_KEY": "own"}, {"DEEPSEEK_API_KEY": "deepseek"}
        assert read_key(own | deepseek, file, url=DEFAULT_URL) == "own"
        assert read_key(deepseek, file, url=DEFAULT_URL) == "deepseek"
        assert read_key({"QMD_LLM_API_KEY": " "}, file, url=DEFAULT_URL) == "from-file"
        assert read_key({}, url=DEFAULT_URL) is None

    @pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
    def test_a_file_that_others_may_touch_is_refused(self, tmp_path: Path, mode: int) -> None:
        file = tmp_path / "key"
        file.write_text(KEY)
        file.chmod(mode)
        with pytest.raises(ConfigError, match=f"{mode:04o}") as caught:
            read_key({}, file, url=DEFAULT_URL)
        assert f"chmod 600 {file}" in str(caught.value.hint)

    @pytest.mark.parametrize("content", ["", "\n", "two words", "schlüssel", "a\x00b", "x" * 5000])
    def test_what_is_no_key_is_not_sent(self, tmp_path: Path, content: str) -> None:
        file = tmp_path / "key"
        file.write_text(content, encoding="utf-8")
        file.chmod(0o600)
        with pytest.raises(ConfigError, match="no usable key") as caught:
            read_key({}, file, url=DEFAULT_URL)
        assert not content.strip() or content not in str(caught.value)

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="Cannot read the key file"):
            read_key({}, tmp_path / "none", url=DEFAULT_URL)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
    def test_neither_a_pipe_nor_a_directory_is_a_key_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe", 0o600)
        for path in (tmp_path / "pipe", tmp_path):
            with pytest.raises(ConfigError, match="is not a file"):
                read_key({}, path, url=DEFAULT_URL)

    @pytest.mark.parametrize("url", ["https://api.deepseek.com", "https://api.openai.com/v1"])
    def test_without_one_nothing_is_asked_where_one_is_needed(self, url: str) -> None:
        with pytest.raises(ConfigError) as caught:
            LlmClient(LlmSettings(url)).chat(HELLO)
        assert "QMD_LLM_API_KEY" in str(caught.value.hint)
        assert "localhost:11434" in str(caught.value.hint)

    def test_nor_does_any_other_request_go_out(self) -> None:
        endpoint = ModelEndpoint(
            LlmSettings("https://api.openai.com/v1", key_variable="QMD_EMBED_API_KEY")
        )
        with pytest.raises(ConfigError, match=r"OpenAI .* wants a key") as caught:
            endpoint.ask("/embeddings", {}, timeout_s=1)
        assert caught.value.hint == "Set QMD_EMBED_API_KEY"


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "used"),
        [
            ("http://localhost:11434/v1/", "http://localhost:11434/v1"),
            ("https://x.org/v1/chat/completions", "https://x.org/v1"),
            (" https://api.deepseek.com ", "https://api.deepseek.com"),
        ],
    )
    def test_an_address_is_the_base_of_the_calls(self, given: str, used: str) -> None:
        assert LlmSettings(given).url == used

    @pytest.mark.parametrize(
        "url",
        [
            *("", "localhost:11434", "ftp://x", "http://", "http://a b/", "http://x:99999"),
            *("http://x:0", "http://[::1", "http://x?key=1", "http://x#a", "http://x\n.org"),
            *(f"http://user:{KEY}@x.org", "http://user@x.org"),
        ],
    )
    def test_what_is_no_address_is_refused_without_showing_a_password(self, url: str) -> None:
        with pytest.raises(ConfigError) as caught:
            LlmSettings(url)
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
    def test_a_time_out_is_a_time(self, seconds: float) -> None:
        with pytest.raises(ConfigError):
            LlmSettings(timeout_s=seconds)

    def test_a_model_has_a_name(self) -> None:
        with pytest.raises(ConfigError):
            LlmSettings(model=" ")

    @pytest.mark.parametrize("host", ["☃.example", "a..b", "xn--", "x" * 300, "%41"])
    def test_a_host_that_cannot_be_is_an_error_like_any_other(self, host: str) -> None:
        with pytest.raises(QmdError) as caught:
            LlmClient(LlmSettings(f"http://{host}/v1"), retries=0).chat(HELLO)
        assert caught.value.hint
