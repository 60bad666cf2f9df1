"""What a terminal would obey is escaped, and all else stays as it is."""

from __future__ import annotations

import re
import sys

from qmd.values.text import UNSAFE, harmless


def test_every_unsafe_character_is_escaped_and_no_other() -> None:

    unsafe = re.compile(UNSAFE)
    for character in map(chr, range(sys.maxunicode + 1)):
        is_escaped = harmless(character) != character
        assert is_escaped == (unsafe.match(character) is not None), hex(ord(character))
    assert harmless("a\r\nb\tc") == "a\nb\tc"
