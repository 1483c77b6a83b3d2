"""Converts a judged run to rows of the history: one per trial and metric."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import polars as pl

from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import visible
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.metrics.model import (
    COVARIATES,
    CPU_WORK,
    PLANNED_DURATION,
    PLANS_CPU_WORK,
    WAITED_FOR_OTHERS,
    Measurement,
    Metric,
)
from pytest_ldos.measure.trial.record import Trial, TrialSet


class Version(StrEnum):
    """Version of an interleaved comparison."""

    HEAD = "head"
    BASE = "base"


class Status(StrEnum):
    """Status of one metric in one trial."""

    MEASURED = "measured"
    CENSORED = "censored"
    """The trial failed before the latency ended: it counts as infinitely slow."""
    MISSING = "missing"
    INVALID = "invalid"


SCHEMA: Final[dict[str, Any]] = {
    "trials": pl.String,
    "run": pl.String,
    "started_at": pl.Datetime("us", "UTC"),
    "commit": pl.String,
    "branch": pl.String,
    "scenario": pl.String,
    "stack": pl.String,
    "host_class": pl.String,
    "hostname": pl.String,
    "session": pl.String,
    "version": pl.String,
    "verdict": pl.String,
    "metric": pl.String,
    "title": pl.String,
    "unit": pl.String,
    "better": pl.String,
    "adjust_for": pl.List(pl.String),
    "adjust_where_alike": pl.List(pl.String),
    "goal": pl.String,
    "trial": pl.Int32,
    "block": pl.Int32,
    "outcome": pl.String,
    "status": pl.String,
    "value": pl.Float64,
    "reason": pl.String,
    "source": pl.String,
    PLANNED_DURATION: pl.Float64,
    CPU_WORK: pl.Float64,
    PLANS_CPU_WORK: pl.Float64,
    WAITED_FOR_OTHERS: pl.Float64,
}
"""Columns. ``trials`` identifies a set of trials; ``run`` is the folder that it was saved in. ``adjust_for`` and
``adjust_where_alike`` name covariates that explain part of the variation (see `metrics.model.Metric`). ``value`` is
null unless ``status`` is ``measured``; ``reason`` then says why it is null."""


KEPT_COVARIATES: Final = tuple(name for name in COVARIATES if name in SCHEMA)
"""Covariates that have a column; adding one would make existing files unreadable."""

INVALID: Final = "invalid"
"""The verdict on invalid trials."""


def why_left_out(trials: TrialSet, verdict: str) -> str:
    """Reason why trials are left out of a history; empty if they are not."""
    if verdict == INVALID:
        return "the measurement was invalid"
    return "watched, which makes them slower" if trials.watched else ""


def build_rows(
    trials: TrialSet, *, run: str, branch: str, verdict: str, version: Version = Version.HEAD
) -> pl.DataFrame:
    """Rows of a set of trials, with the columns of `SCHEMA`; none if the trials are left out."""
    if why_left_out(trials, verdict):
        return pl.DataFrame(schema=SCHEMA)
    of_set = {
        "trials": identify(trials),
        "run": run,
        "started_at": started_at(trials),
        "commit": trials.commit,
        "branch": branch,
        **vars(BaselineKey.of(trials)),
        "hostname": trials.fingerprint.hostname,
        "session": trials.session,
        "version": version.value,
        "verdict": verdict,
    }
    return pl.DataFrame([{**of_set, **row} for row in _rows(trials)], schema=SCHEMA)


def identify(trials: TrialSet) -> str:
    """An identity computed from the trials themselves, independent of their file: goal ids are random."""
    parts = [trials.started_at, trials.scenario, trials.fingerprint.hostname, trials.commit, trials.session]
    parts += [f"{trial.index} {trial.identity}" for trial in trials.trials]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def started_at(trials: TrialSet) -> datetime:
    """Start time of the run, UTC."""
    moment = datetime.fromisoformat(trials.started_at)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _rows(trials: TrialSet) -> Iterator[dict[str, Any]]:
    for metric in trials.metrics:
        of_metric = {
            "metric": metric.name,
            "title": metric.title,
            "unit": metric.unit,
            "better": metric.better.value,
            "adjust_for": list(metric.adjust_for),
            "adjust_where_alike": list(metric.adjust_where_alike),
        }
        for trial in trials.trials:
            yield {**of_metric, **_of_trial(trial), **_of_value(trial, metric)}


def _of_trial(trial: Trial) -> dict[str, Any]:
    return {
        "goal": visible(trial.goal),
        "trial": trial.index,
        "block": trial.block,
        "outcome": trial.outcome.value,
        **{name: trial.covariates_ms.get(name) for name in KEPT_COVARIATES},
    }


def _of_value(trial: Trial, metric: Metric) -> dict[str, Any]:
    if not trial.succeeded and metric.censored_by_failure:
        reason = f"the trial ended as {trial.outcome}: {trial.message}".rstrip(": ")
        return {"status": Status.CENSORED.value, "value": None, "reason": visible(reason), "source": None}
    measurement = trial.measurements.get(metric.name, Measurement(Missing("it was not measured")))
    value = measurement.value
    if isinstance(value, Missing | Invalid):
        status = Status.MISSING if isinstance(value, Missing) else Status.INVALID
        return {"status": status.value, "value": None, "reason": visible(value.reason), "source": None}
    source = None if measurement.source is None else measurement.source.name
    return {"status": Status.MEASURED.value, "value": value, "reason": None, "source": source}
