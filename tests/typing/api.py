"""
User code, checked by mypy in strict mode and never run: what a typed caller may rely on.
"""

from __future__ import annotations

from pathlib import Path

from qmd import Filters, Hit, KnowledgeBase, QmdError, SearchReply, Settings, __version__
from qmd.errors import AmbiguousNameError, DocumentNotFoundError
from qmd.values import Collection, DocumentInfo, DocumentSlice, IndexReport, Progress, Status


def show(tick: Progress) -> None:
    print(tick.stage, tick.done, tick.total)


def build(database: Path, folder: Path) -> IndexReport:
    settings = Settings(vault=folder, write_roots=[folder])
    with KnowledgeBase.open(database, settings, create=True) as kb:
        collection: Collection = kb.add_collection(folder, name="notes", ignore=["drafts/"])
        kb.add_context(f"qmd://{collection.name}/2025", "the year 2025")
        report = kb.index([collection.name], verify=True, progress=show)
        made: int = kb.embed(progress=show).embedded
        status: Status = kb.status()
        print(made, status.chunks_embedded, __version__)
        return report


def ask(kb: KnowledgeBase, question: str) -> list[str]:
    filters = Filters(collections=("notes",), tags=("review",), after="2025-01-01")
    reply: SearchReply = kb.query(question, limit=5, filters=filters, explain=True)
    if reply.notice is not None:
        print(reply.notice.upper())
    if reply.degraded is not None:
        print(reply.degraded.upper())
    hits: tuple[Hit, ...] = reply.hits
    return [f"{hit.file}:{hit.line} {hit.score:.2f} {hit.snippet}" for hit in hits]


def read(kb: KnowledgeBase, name: str) -> str | None:
    try:
        document: DocumentSlice = kb.get(name, from_line=10, max_lines=5)
    except DocumentNotFoundError as error:
        print(list(error.suggestions))
        return None
    except AmbiguousNameError as error:
        print(list(error.candidates))
        return None
    except QmdError as error:
        print(error.code, error.hint, error.exit_code, error.http_status)
        return None
    info: DocumentInfo = document.document
    return f"{info.uri} {info.docid}\n{document.text}"
