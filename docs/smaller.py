"""Removal of indentation, and of drawings of the theme that a page does not show."""

from __future__ import annotations

import re
from typing import Final

_VERBATIM: Final = re.compile(r"(<pre.*?</pre>)", re.DOTALL)
_INDENTATION: Final = re.compile(r"\s*\n\s*")
_SYMBOL: Final = re.compile(r'<symbol id="(?P<name>[\w-]+)".*?</symbol>', re.DOTALL)


def make_smaller(page: str) -> str:
    """The page without both; text that is shown as it stands stays."""
    used = {*re.findall(r'href="#([\w-]+)"', page)}
    shown = _SYMBOL.sub(lambda found: found[0] if found["name"] in used else "", page)
    parts = _VERBATIM.split(shown)
    return "".join(part if number % 2 else _INDENTATION.sub("\n", part) for number, part in enumerate(parts))
