"""
A language model behind an OpenAI-compatible server: DeepSeek, Ollama, llama.cpp, vLLM, OpenAI.

::

    url = "https://api.deepseek.com"
    llm = LlmClient(LlmSettings(url, key=read_key(environ, key_file, url=url)))
    print(llm.chat([Message("user", "Hello")]).text)

The agent holds conversations with it (`LlmClient`); expansion, reranking and embedding ask one
question at a time (`qmd.inference.llm.endpoint`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.inference.llm import endpoint
    from qmd.inference.llm.answer import (
        ChatAnswer,
        Delta,
        Event,
        Message,
        NativeCall,
        Retry,
        Usage,
    )
    from qmd.inference.llm.client import LlmClient
    from qmd.inference.llm.settings import (
        DEFAULT_MODEL,
        DEFAULT_TIMEOUT_S,
        DEFAULT_URL,
        LlmSettings,
        read_key,
    )

__all__ = [
    "DEFAULT_MODEL",
    "DEFAULT_TIMEOUT_S",
    "DEFAULT_URL",
    "ChatAnswer",
    "Delta",
    "Event",
    "LlmClient",
    "LlmSettings",
    "Message",
    "NativeCall",
    "Retry",
    "Usage",
    "endpoint",
    "read_key",
]

_MODULES = {
    "answer": "ChatAnswer Delta Event Message NativeCall Retry Usage",
    "client": "LlmClient",
    "settings": "DEFAULT_MODEL DEFAULT_TIMEOUT_S DEFAULT_URL LlmSettings read_key",
}

__getattr__ = lazy.load(
    __name__,
    modules=("endpoint",),
    attributes={
        name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()
    },
)
