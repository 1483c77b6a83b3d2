"""Sweeps with given results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pytest_ldos.campaign.cells import Axis, Grid
from pytest_ldos.campaign.sweep import CellResult, CellState, StartRecord, collect
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.show.report.sweep import SweepReport, compose_sweep
from tests.builders.trials import noisy_set

FLOOD = {"kind": "dds_flood", "seconds": 5.0, "shortfall": "", "summary": "DDS flood: 3990 of 4000 msg/s", "block": 0}


def grid(over: Mapping[str, Any] | None = None, *, name: str = "msg_load", **spec: Any) -> Grid:
    """Two rates on one and two CPUs by default."""
    axes = over or {"dds_flood.rate": [500, 1000], "cpu_limit.cpus": [1, 2]}
    base = ScenarioSpec(name=name, **{"trials": 4, **spec})
    return Grid(base=base, axes=tuple(Axis.of(address, values) for address, values in axes.items()))


def start_of(spec: ScenarioSpec, seed: int = 0, **changes: Any) -> TrialSet:
    """The trials of one start of a cell."""
    return noisy_set(seed, n=spec.trials, **{"spec": spec, "loads": (FLOOD,), **changes})


def measured(name: str, trials: TrialSet, start: int = 0, **changes: Any) -> StartRecord:
    plain = StartRecord(
        cell=name, start=start, state=CellState.MEASURED, trials=trials, began_ns=1, ended_ns=2, host="lab"
    )
    return dataclasses.replace(plain, **changes)


def failed(name: str, state: CellState, reason: str, start: int = 0) -> StartRecord:
    return StartRecord(cell=name, start=start, state=state, reason=reason, host="lab")


def results_of(swept: Grid, *records: StartRecord, starts: int = 1) -> list[CellResult]:
    found = {(record.cell, record.start): record for record in records}
    return collect(swept.outline.cells, found, starts)


def full_report(
    words: str = "the simulator ended with exit code 1", over: Mapping[str, Any] | None = None
) -> SweepReport:
    """A valid, an invalid, a missing, a skipped cell, one whose trials mostly failed, and one to come."""
    rates = [100, 500, 1000, 5000, 20_000, 100_000]
    swept = grid(over or {"dds_flood.rate": rates, "rmw": ["rmw_one", "rmw_two"]}, trials=10)
    records = []
    for number, (name, spec) in enumerate(list(swept.specs.items())[:-1]):
        factors = {"T1": 1 + number / 4, "T3": 1.6**number, "T4": 1 + number / 10}
        kept = measured(name, start_of(spec, number, factors=factors, failures=max(0, number - 4)))
        if number == 3:
            kept = failed(name, CellState.INFRA, words)
        if number == 4:
            kept = failed(name, CellState.SKIPPED, words)
        if number == 6:
            kept = dataclasses.replace(kept, state=CellState.INVALID, reason=words, verdict="invalid")
        records.append(kept)
    return compose_sweep(words, swept.outline, results_of(swept, *records))
