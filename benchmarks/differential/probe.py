"""
Calls of the Python face, by the interpreter of the version that is asked.

    PYTHON probe.py DATABASE < calls.json > replies.json

A call is ``[method, arguments, keywords]``; ``{"filters": {…}}`` among the keywords stands for a
`Filters`. A reply is the value as JSON, or the error with what it carries.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qmd import Filters, KnowledgeBase, QmdError, Settings
from qmd.settings import BackendSettings


def plain(value: Any) -> Any:
    """A value as JSON can say it; records are objects, so that their class may have any name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names if not name.startswith("_")}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return round(value, 6)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def call(kb: KnowledgeBase, method: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    if "filters" in keywords:
        keywords = {**keywords, "filters": Filters(**keywords["filters"])}
    try:
        return {"value": plain(operator.attrgetter(method)(kb)(*arguments, **keywords))}
    except QmdError as error:
        return {
            "error": str(error),
            "code": error.code,
            "hint": error.hint,
            "http_status": error.http_status,
        }
    except (TypeError, ValueError) as error:
        return {"raised": type(error).__name__, "text": str(error)}


def main() -> None:
    calls = json.load(sys.stdin)
    home, models = Path(sys.argv[1]).parent, BackendSettings(embed_url=os.environ["QMD_EMBED_URL"])
    settings = Settings(
        model=os.environ["QMD_MODEL"], backends=models, posts_dir=home / "posts", write_roots=[home]
    )
    with KnowledgeBase.open(sys.argv[1], settings) as kb:
        json.dump([call(kb, *each) for each in calls], sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
