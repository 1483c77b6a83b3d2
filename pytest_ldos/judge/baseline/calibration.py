"""Calibrated noise of a host, for each metric of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pytest_ldos.host.fingerprint import Fingerprint

ENOUGH_RUNS: Final = 5
"""Fewest runs at different times from which nothing is assumed about other times."""


@dataclass(frozen=True, kw_only=True)
class MetricNoise:
    """Variation of one metric between equal versions.

    Standard deviations of logarithms, which for small values are relative deviations.

    Attributes:
        trial_sd: between trials of one stack start, after covariates.
        start_sd: between starts of one session, beyond what the variation of their trials explains.
        start_df: degrees of freedom of `start_sd`.
        run_sd: between runs at different times, beyond what the variation of their trials explains.
        run_df: degrees of freedom of what runs add to `start_sd`; 0 if that is not known, as from one run.
        floor: relative effect below which nothing is reported on this host.
    """

    trial_sd: float
    start_sd: float
    start_df: float
    run_sd: float
    run_df: float
    floor: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Noise of equal versions, as measured on one host.

    Attributes:
        made_at: ISO 8601, UTC.
        starts, trials: numbers of stack starts and trials it is based on.
        runs: number of runs, at different times, that the starts belong to.
    """

    scenario: str
    stack_kind: str
    fingerprint: Fingerprint
    made_at: str
    commit: str
    starts: int
    trials: int
    metrics: Mapping[str, MetricNoise]
    runs: int = 1
