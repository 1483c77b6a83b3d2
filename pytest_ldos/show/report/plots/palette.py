"""Colours by name, as the pages' style sheets define them for a light ground."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_VARIABLE: Final = re.compile(r"--([a-z]\w*): (#[0-9a-f]{6});")
_DARK: Final = "@media (prefers-color-scheme: dark)"


@cache
def light() -> Mapping[str, str]:
    """``#rrggbb`` by name of the variable."""
    return _colours(dark=False)


@cache
def dark() -> Mapping[str, str]:
    """``#rrggbb`` by name of the variable, on a dark ground."""
    return _colours(dark=True)


def _colours(*, dark: bool) -> Mapping[str, str]:
    folder = files("pytest_ldos.show.page")
    sheets = (folder.joinpath(name).read_text("utf-8").partition(_DARK) for name in ("style.css", "series.css"))
    return MappingProxyType(dict(pair for sheet in sheets for pair in _VARIABLE.findall(sheet[2 if dark else 0])))


@cache
def variables() -> Mapping[str, str]:
    """``var(--name)`` by ``#rrggbb`` of a light ground; of equal colours, the name that all pages have."""
    return MappingProxyType({colour: f"var(--{name})" for name, colour in reversed(list(light().items()))})
