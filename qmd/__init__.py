"""
qmd: a SQLite-backed knowledge base over folders of Markdown.

    from qmd import KnowledgeBase

Importing this package is cheap: `KnowledgeBase` and the values are loaded on first use. It
switches off the telemetry of the libraries below, which has to happen before they are imported.
"""

from __future__ import annotations

from qmd.system import telemetry

# As typing has it, whose import would take longer than all else that is done here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from qmd.errors import QmdError
    from qmd.kb import KnowledgeBase
    from qmd.settings import Settings
    from qmd.values import Filters, Hit, SearchReply

__all__ = ["Filters", "Hit", "KnowledgeBase", "QmdError", "SearchReply", "Settings", "__version__"]

__version__ = "1.7.0"

telemetry.switch_off()

_MODULES = {
    "Filters": "qmd.values",
    "Hit": "qmd.values",
    "KnowledgeBase": "qmd.kb",
    "QmdError": "qmd.errors",
    "SearchReply": "qmd.values",
    "Settings": "qmd.settings",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'qmd' has no attribute {name!r}")
