"""The format of calendars, for qmd. This module is imported where qmd looks for the format."""

from qmd.parse.formats import FileFormat

CALENDAR = FileFormat(
    "calendar",
    (".ics",),
    parser="qmd_ics.convert:convert",
    version=1,
    remedy="Export the calendar again",
)
