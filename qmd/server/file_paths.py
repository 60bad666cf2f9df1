"""The part of an address that is the path of a file, as routes name it: ``{file:file}``."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor


class FilePath(PathConvertor):
    """Any text. Starlette's own ``path`` takes none with a line break, which names may have."""

    regex = "(?s:.*)"


KIND = "file"

register_url_convertor(KIND, FilePath())
