"""Every metric that is taken and gated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_ldos.metrics.latency import T1, T2, T2X, T4
from pytest_ldos.metrics.model import Metric
from pytest_ldos.metrics.regularity import T3, T5

METRICS: Final[Mapping[str, Metric]] = {metric.name: metric for metric in (T1, T2, T2X, T3, T4, T5)}

SCORE_WEIGHTS: Final[Mapping[str, float]] = {"T1": 1.0, "T2": 1.0, "T3": 0.5, "T4": 1.5, "T5": 0.3}
"""Of the overall score, which is displayed and does not gate (seed harness)."""
