"""Calibrations with given noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pytest_ldos.judge.baseline.key import Calibration, MetricNoise
from tests.builders.trials import FINGERPRINT


def calibration_of(metrics: Mapping[str, MetricNoise], **changes: Any) -> Calibration:
    """A calibration of the host and scenario of the generated trials."""
    plain = Calibration(
        scenario="baseline",
        stack_kind="embedded",
        fingerprint=FINGERPRINT,
        made_at="2026-01-01T00:00:00+00:00",
        commit="0123456789ab",
        starts=8,
        trials=64,
        metrics=metrics,
    )
    return dataclasses.replace(plain, **changes)
