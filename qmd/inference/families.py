"""
The words that an embedding model was trained to see in front of a question and of a passage.

A model that does not get them finds less, without an error. The names of a model differ from hub
to hub (``BAAI/bge-small-en-v1.5``, ``bge-small:335m``), so a pattern recognises a family; the
first pattern that matches counts. ``source`` is the card of the model that a row comes from.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Pooling = Literal["mean", "cls", "last", "max"]


class Family(NamedTuple):
    """``pooling``: how the vectors of the tokens become one, where no file of the model says."""

    pattern: str
    query_prefix: str
    passage_prefix: str
    pooling: Pooling
    source: str


_SENTENCE = "Represent this sentence for searching relevant passages: "
_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_HF = "https://huggingface.co/"

FAMILIES = (
    Family(r"e5-mistral", f"Instruct: {_TASK}\nQuery: ", "", "last",
           _HF + "intfloat/e5-mistral-7b-instruct"),
    Family(r"e5-.*instruct", f"Instruct: {_TASK}\nQuery: ", "", "mean",
           _HF + "intfloat/multilingual-e5-large-instruct"),
    Family(r"(^|[-/:_])e5([-_:]|$)", "query: ", "passage: ", "mean",
           _HF + "intfloat/multilingual-e5-small"),
    Family(r"bge-m3", "", "", "cls", _HF + "BAAI/bge-m3"),
    Family(r"bge-.*zh", "为这个句子生成表示以用于检索相关文章：", "", "cls",
           _HF + "BAAI/bge-small-zh-v1.5"),
    # Ollama leaves out that its bge-large is the English one.
    Family(r"bge-(small|base|large)", _SENTENCE, "", "cls", _HF + "BAAI/bge-small-en-v1.5"),
    Family(r"mxbai-embed", _SENTENCE, "", "cls", _HF + "mixedbread-ai/mxbai-embed-large-v1"),
    Family(r"arctic-embed(2|.*v2)", "query: ", "", "cls",
           _HF + "Snowflake/snowflake-arctic-embed-l-v2.0"),
    Family(r"arctic-embed", _SENTENCE, "", "cls", _HF + "Snowflake/snowflake-arctic-embed-m"),
    Family(r"nomic-embed-code", "Represent this query for searching relevant code: ", "", "last",
           _HF + "nomic-ai/nomic-embed-code"),
    Family(r"nomic-embed", "search_query: ", "search_document: ", "mean",
           _HF + "nomic-ai/nomic-embed-text-v1.5"),
    Family(r"gte-qwen|gte_qwen", f"Instruct: {_TASK}\nQuery: ", "", "last",
           _HF + "Alibaba-NLP/gte-Qwen2-1.5B-instruct"),
    Family(r"gte-multilingual|gte-.*-v1\.5|gte-modernbert", "", "", "cls",
           _HF + "Alibaba-NLP/gte-multilingual-base"),
    Family(r"(^|[-/:_])gte-", "", "", "mean", _HF + "thenlper/gte-base"),
    Family(r"jina-embeddings-v3", "Represent the query for retrieving evidence documents: ",
           "Represent the document for retrieval: ", "mean", _HF + "jinaai/jina-embeddings-v3"),
    Family(r"jina-embeddings-v4", "Query: ", "Passage: ", "mean",
           _HF + "jinaai/jina-embeddings-v4"),
    Family(r"jina-embeddings", "", "", "mean", _HF + "jinaai/jina-embeddings-v2-base-zh"),
    Family(r"embedding-?gemma", "task: search result | query: ", "title: none | text: ", "mean",
           _HF + "google/embeddinggemma-300m"),
    Family(r"qwen3-embedding", f"Instruct: {_TASK}\nQuery:", "", "last",
           _HF + "Qwen/Qwen3-Embedding-0.6B"),
    Family(r"stella[-_]en", f"Instruct: {_TASK}.\nQuery: ", "", "mean",
           _HF + "NovaSearch/stella_en_400M_v5"),
    Family(r"granite-embedding", "", "", "cls",
           _HF + "ibm-granite/granite-embedding-small-english-r2"),
    Family(r"minilm|mpnet|distiluse", "", "", "mean",
           _HF + "sentence-transformers/all-MiniLM-L6-v2"),
    Family(r"text-embedding-(3|ada)", "", "", "mean",
           "https://platform.openai.com/docs/guides/embeddings"),
)  # fmt: skip
UNKNOWN = Family("", "", "", "mean", "")


def family(name: str) -> Family:
    """The family that a model's name belongs to; `UNKNOWN`, without prefixes, for other names."""
    lowered = name.lower()
    for each in FAMILIES:
        if re.search(each.pattern, lowered):
            return each
    return UNKNOWN
