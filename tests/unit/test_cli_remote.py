"""What a command gets of a running server."""

from __future__ import annotations

import pytest

from qmd.cli.remote import received
from qmd.values.graph import RecentChange


def test_what_a_server_does_not_send_is_named_with_what_it_sends() -> None:
    reply = received(RecentChange, {"file": "notes/plan.md"})
    assert reply.file == "notes/plan.md"
    with pytest.raises(AttributeError, match=r"does not send RecentChange\.document: .* file, "):
        _ = reply.document
