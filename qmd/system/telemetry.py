"""
Switch off the telemetry of the libraries that this project uses; done nowhere else.

`qmd/__init__.py` calls `switch_off` before anything else of qmd is imported, so it holds for
the command, every server, and a program that imports qmd. onnxruntime reads its switch once,
when it is imported: from then on it keeps a device id and a queue of events in the user's
cache, and looks up a host of Microsoft's to send them to.
"""

from __future__ import annotations

import os
import sys

#: The environment variables that the libraries read, each library its own.
VARIABLES = {
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub, and hf_xet, which it downloads with
    "HF_XET_TELEMETRY_ENABLED": "0",  # hf_xet
}

#: The values that onnxruntime reads as "on", ignoring case.
_ON = {"1", "true", "yes", "y", "on"}

#: Whether onnxruntime was imported before qmd, and without its switch.
_too_late = False


def switch_off() -> None:
    """
    Set the environment variables of this process and of those that it starts.

    Calls what may still be called where the program has imported the libraries before.
    """
    global _too_late  # noqa: PLW0603 - what was imported before is known only now
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

    Its builds for Windows heed this call and not the variable.
    """
    disable = getattr(sys.modules.get("onnxruntime"), "disable_telemetry_events", None)
    if disable is not None:
        disable()


def is_off() -> bool:
    """Whether it was switched off in time; False where onnxruntime was imported before qmd."""
    return not _too_late
