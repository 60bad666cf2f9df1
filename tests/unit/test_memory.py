"""A process that runs for long gives freed memory back."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import gc, sys
from qmd.system import memory
loaded = len(gc.get_objects())
if sys.argv[1] == "settled":
    memory.settle()
    assert len(gc.get_objects()) < loaded / 10, "collections visit what was loaded"
large = b"x" * 30_000_000
del large
blocks = [b"%d" % n * 100_000 for n in range(100)]
del blocks
with open("/proc/self/statm") as file:
    print(int(file.read().split()[1]))
"""


@pytest.mark.cold
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_has_settled_keeps_less() -> None:
    pages = {
        how: int(subprocess.check_output([sys.executable, "-c", CODE, how], timeout=60))
        for how in ("settled", "not settled")
    }
    assert pages["settled"] < pages["not settled"] - 2_000  # of 4 KB, some 5,000 of which are freed
