"""A key goes to the server it belongs to, and to nobody on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qmd.errors import ConfigError, InferenceError
from qmd.inference.llm import DEFAULT_URL, LlmClient, LlmSettings, Message, read_key
from qmd.inference.llm.endpoint import ModelEndpoint
from qmd.settings import BackendSettings, Role
from tests.support.cli import Scratch, filled
from tests.support.model_server import Call, ModelServer, fails, says

KEY = "sk-0123456789abcdef"
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def asked_by_client(settings: LlmSettings) -> None:
    LlmClient(settings, retries=0).chat([Message("user", "Hello")])


def asked_by_endpoint(settings: LlmSettings) -> None:
    ModelEndpoint(settings).ask("/rerank", {"query": "Hello"}, timeout_s=60).json()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return filled(tmp_path_factory.mktemp("keys"))


both_clients = pytest.mark.parametrize("ask", [asked_by_client, asked_by_endpoint])


@pytest.fixture
def strange_proxy(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModelServer], None]:
    for name in ("no_proxy", "NO_PROXY", *PROXIES):
        monkeypatch.delenv(name, raising=False)

    def use(proxy: ModelServer) -> None:
        for name in PROXIES:
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))

    return use


class TestDeepSeek:
    @pytest.mark.parametrize(
        "url", [DEFAULT_URL, " https://api.deepseek.com/v1 ", "https://API.DeepSeek.com:443/beta"]
    )
    def test_its_key_goes_to_its_own_host(self, url: str) -> None:
        assert read_key({"DEEPSEEK_API_KEY": KEY}, url=url) == KEY

    @pytest.mark.parametrize(
        "url",
        [
            "http://api.deepseek.com",
            "http://localhost:11434/v1",
            "https://api.openai.com/v1",
            "https://deepseek.com",
            "https://api.deepseek.com.evil.test",
            "https://api.deepseek.com.",
            "https://api-deepseek.com",
            "https://xapi.deepseek.com",
            "https://api.deepseek.com@evil.test",
            "https://me@api.deepseek.com",
            "https://evil.test/api.deepseek.com",
            "https://evil.test?https://api.deepseek.com",
            "https://evil.test#api.deepseek.com",
            "https://evil.test\\@api.deepseek.com",
            "https://api.deepseek.com\\.evil.test",
            "https://api.d\u0435epseek.com",  # a Cyrillic letter
            "//api.deepseek.com",
            "https://[api.deepseek.com",
            "",
        ],
    )
    def test_and_to_no_other(self, url: str) -> None:
        assert read_key({"DEEPSEEK_API_KEY": KEY}, url=url) is None
        assert read_key({"DEEPSEEK_API_KEY": KEY, "QMD_LLM_API_KEY": "own"}, url=url) == "own"

    def test_another_server_asks_for_the_right_variable(self) -> None:
        with (
            ModelServer(fails(401)) as server,
            pytest.raises(InferenceError) as caught,
        ):
            LlmClient(LlmSettings(server.url)).chat([Message("user", "Hello")])
        assert "set QMD_LLM_API_KEY" in (caught.value.hint or "")
        assert "DEEPSEEK_API_KEY is sent to https://api.deepseek.com alone" in (
            caught.value.hint or ""
        )


class TestPlainHttp:
    @pytest.mark.parametrize(
        "url",
        [
            "http://192.168.1.5:8000/v1", "http://models.example/v1", "http://[2001:db8::1]/v1",
            "http://localhost.evil.test", "http://127.0.0.1.evil.test", "http://0.0.0.0:8000",
            "HTTP://models.example/v1", "http://api.deepseek.com",
        ],
    )  # fmt: skip
    def test_a_key_is_refused_unless_it_is_allowed(self, url: str) -> None:
        with pytest.raises(ConfigError) as caught:
            LlmSettings(url, key=KEY, key_variable="QMD_RERANK_API_KEY")
        said = caught.value.with_hint
        assert KEY not in said
        assert "unset QMD_RERANK_API_KEY" in said
        assert "--allow-insecure-key (QMD_ALLOW_INSECURE_KEY, allow_insecure_key)" in said
        assert LlmSettings(url, key=KEY, allow_insecure_key=True).key == KEY
        assert LlmSettings(url).key is None

    @pytest.mark.parametrize(
        "url",
        ["http://localhost:1/v1", "http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:8080",
         "https://models.example"],
    )  # fmt: skip
    def test_this_machine_and_https_get_it(self, url: str) -> None:
        assert LlmSettings(url, key=KEY).key == KEY

    @pytest.mark.parametrize(
        ("role", "variable"),
        [("llm", "QMD_LLM_API_KEY"), ("rerank", "QMD_RERANK_API_KEY"),
         ("embed", "QMD_EMBED_API_KEY")],
    )  # fmt: skip
    def test_so_it_is_for_every_server_and_the_variable_is_its_own(
        self, role: Role, variable: str
    ) -> None:
        settings = BackendSettings(
            llm_url="http://a.example",
            rerank_url="http://b.example",
            embed_url="http://c.example",
            key=lambda _: KEY,
        )
        with pytest.raises(ConfigError, match="A key is not sent to http://") as caught:
            settings.server(role)
        assert f"unset {variable}" in (caught.value.hint or "")

    @pytest.mark.parametrize(
        ("role", "setting"), [("rerank", "rerank_url"), ("embed", "embed_url")]
    )
    def test_only_the_language_model_has_a_server_by_default(
        self, role: Role, setting: str
    ) -> None:
        settings = BackendSettings(key=lambda _: KEY)
        with pytest.raises(ConfigError, match=f"{setting}.*names a server"):
            settings.server(role)
        assert settings.server().url == DEFAULT_URL

    def test_a_server_that_two_roles_share_has_one_key(self) -> None:
        asked: list[Role] = []

        def key(role: Role) -> None:
            asked.append(role)

        server = BackendSettings(llm_url="http://127.0.0.1:1", key=key).server("rerank")
        assert (asked, server.key_variable) == (["llm"], "QMD_LLM_API_KEY")


class TestOnTheWay:
    @both_clients
    def test_a_key_follows_no_redirect(self, ask: Callable[[LlmSettings], None]) -> None:
        with ModelServer(says("stolen")) as other:

            def moved(call: Call) -> None:
                call.answer(307, "text/plain", b"", Location=f"{other.url}/chat/completions")

            with ModelServer(moved) as server, pytest.raises(InferenceError):
                ask(LlmSettings(server.url, key=KEY))
            assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
            assert other.requests == []

    @both_clients
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_a_server_of_this_machine_is_asked_without_any_proxy(
        self,
        ask: Callable[[LlmSettings], None],
        host: str,
        strange_proxy: Callable[[ModelServer], None],
    ) -> None:
        with ModelServer(says("stolen")) as proxy, ModelServer(says("ok")) as server:
            strange_proxy(proxy)
            ask(LlmSettings(server.url.replace("127.0.0.1", host), key=KEY))
            assert len(server.requests) == 1
            assert proxy.requests == []


class TestCommands:
    """What really goes over the wire; a proxy of ours stands for all servers elsewhere."""

    def test_another_server_does_not_get_the_key_of_deepseek(self, scratch: Scratch) -> None:
        with ModelServer(says("ok")) as server:
            chosen = scratch.with_env(DEEPSEEK_API_KEY=KEY, QMD_LLM_URL=server.url)
            chosen.ok("ask", "--json", "hello?")
            chosen.with_env(QMD_EXPANDER="llm").ok("query", "hello")
            chosen.with_env(QMD_RERANKER="rerank:x", QMD_RERANK_URL=server.url).ok("query", "road")
            assert len(server.requests) >= 3
        assert [each.headers.get("authorization") for each in server.requests if each] == [
            None for _ in server.requests
        ]

    def test_a_host_that_looks_like_deepseeks_does_not_get_it(self, scratch: Scratch) -> None:
        with ModelServer(says("ok")) as proxy:
            chosen = scratch.with_env(
                DEEPSEEK_API_KEY=KEY,
                HTTP_PROXY=proxy.url,
                http_proxy=proxy.url,
                QMD_LLM_URL="http://api.deepseek.com.evil.test/v1",
            )
            chosen.ok("ask", "--json", "hello?")
            (request,) = proxy.requests
        assert "authorization" not in request.headers

    def test_plain_http_is_refused_before_anything_is_sent(
        self, scratch: Scratch, tmp_path: Path
    ) -> None:
        with ModelServer(says("ok")) as proxy:
            chosen = scratch.with_env(
                QMD_LLM_API_KEY=KEY, HTTP_PROXY=proxy.url, QMD_LLM_URL="http://models.example/v1"
            )
            refused = chosen.call("ask", "hello?")
            assert (refused.code, KEY in refused.err) == (1, False)
            assert "A key is not sent to http://models.example/v1" in refused.err
            assert "unset QMD_LLM_API_KEY" in refused.err
            expanded = chosen.with_env(QMD_EXPANDER="llm").ok("query", "parser")
            assert "A key is not sent to" in expanded.err
            assert "A key is not sent to" in chosen.with_env(QMD_EXPANDER="llm").call("doctor").out
            assert proxy.requests == []
            chosen.ok("ask", "--allow-insecure-key", "--json", "hello?")
            chosen.with_env(QMD_ALLOW_INSECURE_KEY="1").ok("ask", "--json", "hello?")
            assert [each.headers["authorization"] for each in proxy.requests] == [
                f"Bearer {KEY}"
            ] * 2
