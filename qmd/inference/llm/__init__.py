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
    from qmd.inference.llm import endpoint as endpoint
    from qmd.inference.llm.answer import *
    from qmd.inference.llm.client import *
    from qmd.inference.llm.settings import *

_MODULES = {
    "answer": ("ChatAnswer", "Delta", "Event", "Message", "NativeCall", "Retry"),
    "client": ("LlmClient",),
    "settings": ("DEFAULT_MODEL", "DEFAULT_TIMEOUT_S", "DEFAULT_URL", "LlmSettings", "read_key"),
}

__getattr__ = lazy.load(
    __name__,
    attributes={
        name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names
    },
)
