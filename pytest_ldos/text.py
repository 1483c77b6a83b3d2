"""Text that came from other programs, made safe to show."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """`text` with control characters written out, so that none reaches a terminal.

    Line ends and tabs stay. Right-to-left overrides are written out too: they make text
    look like what it is not.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
