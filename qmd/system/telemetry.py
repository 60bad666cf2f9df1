"""
Switch off the telemetry of the libraries that this project uses. No other module does that.

`qmd/__init__.py` calls `switch_off` before it imports any other module of qmd, so telemetry is off
in the command, in every server, and in a program that imports qmd. onnxruntime reads its variable
once, at import. Without it, onnxruntime keeps a device id and a queue of events in the user's
cache, and looks up a host of Microsoft to send them to.
"""

from __future__ import annotations

import os
import sys

#: The environment variables that switch off the telemetry of each library.
VARIABLES = {
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub, and hf_xet, which it downloads with
    "HF_XET_TELEMETRY_ENABLED": "0",  # hf_xet
}

#: The values that onnxruntime reads as "on", ignoring case.
_ON = {"1", "true", "yes", "y", "on"}

#: Whether onnxruntime was imported before qmd, without the variable.
_too_late = False


def switch_off() -> None:
    """
    Set the environment variables of this process and of those that it starts.

    For libraries that the program imported before qmd, call their functions for it, if there are
    any.
    """
    global _too_late  # noqa: PLW0603 - depends on the imports so far
    was_off = os.environ.get("ORT_DISABLE_TELEMETRY", "").lower() in _ON
    os.environ.update(VARIABLES)
    if "onnxruntime" in sys.modules:
        _too_late = _too_late or not was_off
        switch_off_onnxruntime()
    hub = sys.modules.get("huggingface_hub.constants")
    if hub is not None:
        hub.HF_HUB_DISABLE_TELEMETRY = True  # type: ignore[attr-defined]


def switch_off_onnxruntime() -> None:
    """
    Tell an imported onnxruntime to record no more events.

    The builds for Windows obey this call and ignore the variable.
    """
    disable = getattr(sys.modules.get("onnxruntime"), "disable_telemetry_events", None)
    if disable is not None:
        disable()


def is_off() -> bool:
    """Whether it was switched off in time, before onnxruntime was imported."""
    return not _too_late
