"""Errors of traces that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import read_trace


def refusal(directory: Path) -> TraceUnreadable:
    """The error of reading a trace."""
    with pytest.raises(TraceUnreadable) as caught:
        read_trace(directory)
    return caught.value
