"""
Finds the file formats that other installed packages offer, and turns on those that a person names.

A package offers formats by entry points of the group `GROUP`: each names a
`qmd.parse.formats.FileFormat`, or several in a tuple. None is used before it is named in the
setting ``plugins``, because its code would run with the rights of qmd. What it converts is parsed
in the same worker, within the same limits, as a file of any format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from io import StringIO
from typing import Literal, NamedTuple

from qmd.parse import formats
from qmd.parse.formats import FileFormat
from qmd.system.worker.jobs import described

GROUP = "qmd.formats"


class Plugin(NamedTuple):
    """
    An installed entry point.

    Attributes:
        package, version: What was installed.
        state: "broken" is one that is turned on and gives no formats; ``problem`` says why.
        formats: Their names and suffixes, as ``Org (.org)``, if it is on.
    """

    name: str
    package: str
    version: str
    state: Literal["on", "off", "broken"]
    formats: tuple[str, ...] = ()
    problem: str = ""


def installed(turned_on: Iterable[str]) -> list[Plugin]:
    """
    All plugins, by name; names that are turned on and not installed are broken ones.

    Args:
        turned_on: The names that the settings have.
    """
    names = tuple(turned_on)
    loaded = turn_on(names)
    plugins: dict[str, Plugin] = {}
    for point in entry_points(group=GROUP):
        package = point.dist.name if point.dist is not None else ""
        version = point.dist.version if point.dist is not None else ""
        plugins[point.name] = Plugin(point.name, package, version, "off")
    for name in names:
        plugin = plugins.get(name, Plugin(name, "", "", "off"))
        offered = loaded[name]
        if isinstance(offered, str):
            plugins[name] = plugin._replace(state="broken", problem=offered)
        else:
            shown = (f"{each.name} ({', '.join(each.suffixes)})" for each in offered)
            plugins[name] = plugin._replace(state="on", formats=tuple(shown))
    return [plugins[name] for name in sorted(plugins)]


def turn_on(names: tuple[str, ...]) -> dict[str, tuple[FileFormat, ...] | str]:
    """
    Use the formats of these plugins from now on, in this process.

    Returns:
        The formats of each, or a sentence that says why it has none.
    """
    points = {point.name: point for point in entry_points(group=GROUP)} if names else {}
    loaded: dict[str, tuple[FileFormat, ...] | str] = {}
    for name in names:
        point = points.get(name)
        loaded[name] = "It is not installed." if point is None else _offered(point)
    offered = [each for each in loaded.values() if not isinstance(each, str)]
    formats.turn_on(names, [each for several in offered for each in several])
    return loaded


@cache
def _offered(point: EntryPoint) -> tuple[FileFormat, ...] | str:
    try:
        with redirect_stdout(StringIO()):  # stdout may be that of MCP, or JSON
            value = point.load()
    except Exception as error:  # noqa: BLE001 - the code of others may raise anything
        return described(error)
    several: Sequence[object] = value if isinstance(value, (tuple, list)) else (value,)
    for each in several:
        if not isinstance(each, FileFormat):
            return f"{point.value} is no FileFormat."
        problem = formats.problem_of(each)
        if problem is not None:
            return problem
    return tuple(each for each in several if isinstance(each, FileFormat))
