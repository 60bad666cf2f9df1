"""The Chromium of this machine."""

from __future__ import annotations

import os
import shutil


def program() -> str | None:
    """
    The path of Debian's Chromium, or the program that QMD_CHROMIUM names; None without one.

    The shell without windows takes three quarters of the CPU time.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("QMD_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
