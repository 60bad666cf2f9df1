"""
Makes text of a language model harmless to the programs that open it as a note.

A note may have led the model to write what acts when it is shown: an image at another site tells
that site the text of its address, and programs for notes run queries and scripts in code.
"""

from __future__ import annotations

import re

from qmd.parse.code_mask import mask_code
from qmd.parse.markdown import outline

_ACTIVE = re.compile(r"!(?=\[)|<(?=[A-Za-z/!?])(?!https?://)")
"""Images, embeds and HTML; a link in angle brackets is none."""

_FENCE = re.compile(r"(?m)^([ \t>]*(?:`{3,}|~{3,})[ \t]*)([^\s`]+)([^\r\n]*)$")
_INLINE_QUERY = re.compile(r"`(?=[ \t]*\$?=)")

#: Languages that programs for notes colour and do not run.
_SHOWN = {
    *("bash", "c", "clojure", "console", "cpp", "csharp", "css", "csv", "diff", "dockerfile"),
    *("elixir", "erlang", "fish", "go", "graphql", "haskell", "html", "http", "ini", "java"),
    *("javascript", "js", "json", "jsonc", "jsx", "julia", "kotlin", "latex", "lua", "makefile"),
    *("markdown", "md", "mermaid", "nginx", "objective-c", "perl", "php", "plaintext"),
    *("powershell", "python", "py", "r", "regex", "ruby", "rust", "scala", "scss", "sh", "shell"),
    *("sql", "swift", "text", "toml", "ts", "tsx", "txt", "typescript", "vim", "xml", "yaml"),
    *("yml", "zsh"),
}


def inert(text: str) -> str:
    """
    Markdown that shows the same and acts less: no images, embeds, HTML, queries or scripts.

    What stands in code stays, but for the names of languages that are not known to be harmless.
    Links, tags and tasks stay.
    """
    masked = mask_code(text, 0, outline(text))
    pieces: list[str] = []
    at = 0
    for match in _ACTIVE.finditer(masked):
        pieces += [text[at : match.start()], "\\"]
        at = match.start()
    shown = "".join([*pieces, text[at:]])
    shown = _INLINE_QUERY.sub(r"\\`", shown)
    return _FENCE.sub(_plain_fence, shown)


def _plain_fence(match: re.Match[str]) -> str:
    opening, language, rest = match.groups()
    is_shown = language.lower() in _SHOWN and not rest.strip()
    return f"{opening}{language}" if is_shown else f"{opening}text"
