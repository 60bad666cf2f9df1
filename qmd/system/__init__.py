"""Use the operating system: processes, sockets, time and paths."""

from __future__ import annotations

from qmd import lazy

# As typing has it, whose import would take longer than all else that is done here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from qmd.system import clock as clock
    from qmd.system import editors as editors
    from qmd.system import handshake as handshake
    from qmd.system import http_client as http_client
    from qmd.system import installation as installation
    from qmd.system import memory as memory
    from qmd.system import plugins as plugins
    from qmd.system import running as running
    from qmd.system import temporary as temporary
    from qmd.system import web as web

__getattr__ = lazy.load(__name__)
