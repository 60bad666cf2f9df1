"""Asking whether a change may be written."""

from __future__ import annotations

from qmd.errors import WriteDeclinedError
from qmd.values.proposed import Confirm, Proposed


def require_consent(confirm: Confirm, proposed: Proposed) -> None:
    """Raises WriteDeclinedError: unless the answer is yes."""
    if confirm(proposed) is not True:
        raise WriteDeclinedError
