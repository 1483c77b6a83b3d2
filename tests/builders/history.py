"""Histories with given numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from pytest_ldos.base.series import Better
from pytest_ldos.campaign.order import Role, first_blocks
from pytest_ldos.judge.baseline.history import HistoryStore, build_rows
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.series import MetricSeries, Run
from pytest_ldos.measure.trial.record import TrialSet
from tests.builders.trials import noisy_set

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def commit(number: int) -> str:
    return f"{(number + 1) * 0x9E3779B97F4A7 % 16**12:012x}"


def run_of(number: int, *, seed: int | None = None, **changes) -> TrialSet:
    """The trials of a day's run."""
    plain = {"started_at": (BEGIN + timedelta(days=number)).isoformat(), "commit": commit(number)}
    return noisy_set(number if seed is None else seed, **{"n": 6, **plain, **changes})


def interleaved_set(number: int, role: Role) -> TrialSet:
    """Thirty trials as a session makes them: six pairs of blocks, so that either version is first in three."""
    numbers = {i: block.number for block in first_blocks(30, size=5) if block.role is role for i in block.trials}
    trials = run_of(number, n=30, session="s")
    turned = tuple(dataclasses.replace(each, block=numbers[each.index]) for each in trials.trials)
    return dataclasses.replace(trials, trials=turned)


def add_run(store: HistoryStore, number: int, *, verdict: str = "passed", branch: str = "main", **changes) -> TrialSet:
    trials = run_of(number, **changes)
    store.append(build_rows(trials, run=f"run-{number:03d}", branch=branch, verdict=verdict))
    return trials


def fill(directory: Path, factors: Sequence[Mapping[str, float]], **changes) -> HistoryStore:
    """A history of one run a day, each slower by its factors."""
    store = HistoryStore(directory)
    for number, of_run in enumerate(factors):
        add_run(store, number, factors=of_run, **changes)
    return store


def series_of(
    locations: Sequence[float],
    *,
    trial_deviation: float = 0.005,
    verdicts: Mapping[int, str] | None = None,
    commits: Sequence[str] | None = None,
    better: Better = Better.LOWER,
) -> MetricSeries:
    """A series on logarithms with given locations of its runs."""
    plain = Run(
        trials="",
        name="",
        started_at=BEGIN,
        commit="",
        branch="",
        version="head",
        verdict="passed",
        count=10,
        failed=0,
        median=0.0,
        location=0.0,
        half_width=1.96 * trial_deviation,
    )
    names = [commit(i) for i in range(len(locations))] if commits is None else commits
    runs = [
        dataclasses.replace(
            plain,
            trials=f"set-{i}",
            name=f"run-{i}",
            started_at=BEGIN + timedelta(hours=i),
            commit=names[i],
            verdict=(verdicts or {}).get(i, "passed"),
            median=float(np.exp(location)),
            location=float(location),
        )
        for i, location in enumerate(locations)
    ]
    return MetricSeries(
        key=BaselineKey("embedded", "host", "baseline"),
        metric="T1",
        title="planning latency",
        unit="ms",
        better=better,
        source="markers",
        scale=0.0,
        runs=tuple(runs),
    )
