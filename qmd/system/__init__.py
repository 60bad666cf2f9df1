"""Use the operating system: processes, sockets, time and paths."""

from __future__ import annotations

from qmd import lazy

# As typing has it, whose import would take longer than all else that is done here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from qmd.system import editors, http_client, installation, running

__all__ = ["editors", "http_client", "installation", "running"]

__getattr__ = lazy.load(__name__, modules=__all__)
