"""
The tokenizer, as the files that Hugging Face's `tokenizers` and fastembed read.
"""

from __future__ import annotations

from typing import Any

from qmd.inference.embedded.weights import Vocabulary

MAX_TOKENS = 512
METASPACE = "\u2581"

# The model was trained behind SentencePiece's nmt_nfkc rules: NFKC, but these are dropped,
_DROPPED = r"[\x{1}-\x{8}\x{b}\x{e}-\x{1f}\x{7f}\x{8f}\x{9f}]"
# these become a space,
_BLANKS = r"[\s\x{0}\x{200b}-\x{200f}\x{feff}\x{fffd}\x{2581}]+"
# and this one, frequent in Chinese, stays what it is.
_FULLWIDTH_TILDE, _STAND_IN = "\uff5e", "\ue000"

# Far below every ordinary piece: in a note, "<s>" and "<pad>" are characters.
_CONTROL_SCORE = -100.0


def tokenizer_files(vocabulary: Vocabulary) -> dict[str, Any]:
    """The JSON of each file, by file name."""
    special = {
        "<s>": vocabulary.bos,
        "<pad>": vocabulary.pad,
        "</s>": vocabulary.eos,
        "<unk>": vocabulary.unk,
    }
    return {
        "tokenizer.json": _tokenizer(vocabulary, special),
        "tokenizer_config.json": {"model_max_length": MAX_TOKENS, "pad_token": "<pad>"},
        "special_tokens_map.json": {
            "bos_token": "<s>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
        },
        "config.json": {"model_type": "xlm-roberta", "pad_token_id": vocabulary.pad},
    }


def _tokenizer(vocabulary: Vocabulary, special: dict[str, int]) -> dict[str, Any]:
    control = {*special, "<mask>"}
    metaspace = {
        "type": "Metaspace",
        "replacement": METASPACE,
        "prepend_scheme": "always",
        "split": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token, token_id in special.items()
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                _replace({"Regex": _DROPPED}, ""),
                _replace({"String": _FULLWIDTH_TILDE}, _STAND_IN),
                {"type": "NFKC"},
                _replace({"String": _STAND_IN}, _FULLWIDTH_TILDE),
                _replace({"Regex": _BLANKS}, " "),
            ],
        },
        "pre_tokenizer": metaspace,
        "post_processor": _post_processor(special),
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": vocabulary.unk,
            "byte_fallback": False,
            "vocab": [
                [piece, _CONTROL_SCORE if piece in control else score]
                for piece, score in vocabulary.pieces
            ],
        },
    }


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _post_processor(special: dict[str, int]) -> dict[str, Any]:
    def token(name: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    def sequence(name: str) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": 0}}

    first = [token("<s>"), sequence("A"), token("</s>")]
    return {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, token("</s>"), sequence("B"), token("</s>")],
        "special_tokens": {
            name: {"id": name, "ids": [special[name]], "tokens": [name]} for name in ("<s>", "</s>")
        },
    }
