"""Parameters of which a few stand for all in `make test`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def representatives(values: Sequence[Any], keep: int) -> list[Any]:
    """All values; but `keep` of them, evenly spread and the first always, only in `make acceptance`."""
    kept = {round(at * (len(values) - 1) / max(keep - 1, 1)) for at in range(keep)}
    return [each if at in kept else pytest.param(each, marks=pytest.mark.acceptance) for at, each in enumerate(values)]
