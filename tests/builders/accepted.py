"""Accepted changes with given metric and size."""

from __future__ import annotations

from typing import Any

from pytest_ldos.judge.baseline.accepted import Accepted


def accepted(metric: str, size: float, **changes: Any) -> Accepted:
    plain = {
        "scenario": "baseline",
        "stack": "embedded",
        "reason": "it checks collisions twice",
        "by": "Ada",
        "at": "2026-01-01T00:00:00+00:00",
        "commit": "0123456789ab",
        "base": "ba9876543210",
        "difference": "d",
    }
    return Accepted(metric=metric, size=size, **{**plain, **changes})
