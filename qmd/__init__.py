"""
qmd: a SQLite-backed knowledge base over folders of Markdown.

    from qmd import KnowledgeBase

Importing this package is cheap: `KnowledgeBase` and the values are loaded on first use. It
switches off the telemetry of the libraries below, which has to happen before they are imported.
"""

from __future__ import annotations

from qmd import lazy
from qmd.system import telemetry

# As typing has it, whose import would take longer than all else that is done here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from qmd import inference as inference
    from qmd import settings as settings
    from qmd.errors import QmdError
    from qmd.kb import KnowledgeBase
    from qmd.settings import Settings
    from qmd.values import Filters, Hit, SearchReply

__all__ = ["Filters", "Hit", "KnowledgeBase", "QmdError", "SearchReply", "Settings", "__version__"]

__version__ = "2.0.0"

telemetry.switch_off()

__getattr__ = lazy.load(
    __name__,
    attributes={
        "Filters": "qmd.values",
        "Hit": "qmd.values",
        "KnowledgeBase": "qmd.kb",
        "QmdError": "qmd.errors",
        "SearchReply": "qmd.values",
        "Settings": "qmd.settings",
    },
)
