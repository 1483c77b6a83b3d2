"""Studies of instruments: conversion to trials with baselines, and measurement with profilers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_ldos.base.writable import writing
from pytest_ldos.campaign.watching import Drawings, Watching, write_watched
from pytest_ldos.host.checkout import commit_of
from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.host.inherited import find_influences, find_withheld
from pytest_ldos.instruments.study import Column, Round, Study, Table
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.measure.trial.record import RoundTrial, TrialKind, TrialSet
from pytest_ldos.record.strace import SyscallCount
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.watching import WatchSpec


def to_trials(study: Study, *, name: str = "", commit: str | None = None) -> TrialSet:
    """Converts each round to a trial with its case as the goal, so that rounds of one case are compared.

    Their baselines have a separate folder, ``middleware-<layer>``, to avoid clashes with scenarios of arms.

    Args:
        name: name of their scenario, hence of their baseline; by default the study's own.
        commit: commit of the project under test; by default that of the current checkout.
    """
    known, unknown = commit_of(Path.cwd()) if commit is None else (commit, "")
    return TrialSet(
        spec=ScenarioSpec(name=name or study.name, trials=max(1, len(study.rounds)), warmup=0),
        started_at=study.started_at,
        commit=known,
        commit_unknown=unknown,
        influences=find_influences(os.environ),
        withheld=find_withheld(os.environ),
        stack_kind=f"middleware-{study.layer}",
        stack=f"{study.layer}: {study.middleware}",
        recorder="none",
        fingerprint=take_fingerprint(rmw=study.middleware, versions=study.versions),
        trials=tuple(_trial(index, each) for index, each in enumerate(study.rounds)),
        metrics=_with_shares(study.quantities),
        watched=study.watched,
        distortion=study.distortion,
        trial_kind=TrialKind.ROUND,
    )


def _trial(index: int, measured: Round) -> RoundTrial:
    return RoundTrial(
        index=index,
        goal=measured.case,
        block=measured.block,
        outcome=OutcomeClass.ABORTED if measured.failure else OutcomeClass.SUCCESS,
        message=measured.failure,
        measurements={name: Measurement(value, measured.details) for name, value in measured.values.items()},
    )


def _with_shares(quantities: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Gives all metrics an equal share of the error probability, unless the instrument sets shares."""
    if any(each.error_share for each in quantities):
        return quantities
    return tuple(dataclasses.replace(each, error_share=1 / len(quantities)) for each in quantities)


_COLUMNS = (
    Column(name="call", title="system call"),
    Column(name="calls"),
    Column(name="errors"),
    Column(name="time", unit="s"),
    Column(name="share", unit="%"),
)


def measure_watched(spec: WatchSpec, folder: Path, drawings: Drawings, measure: Callable[[], Study]) -> Study:
    """Measures a study; adds a table of system calls, and notes with the profile's path.

    Args:
        folder: folder of the files and the tools' logs.

    Raises:
        NotWritten, ConfigurationError: it cannot be created.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    watching = Watching(spec)
    with watching.attached_to_self(folder):
        study = measure()
    notes = write_watched(watching, folder, drawings, title=f"ldos {study.instrument}")
    return dataclasses.replace(
        study,
        notes=(*_warnings(watching), *study.notes, *notes),
        tables=(*study.tables, *_tables(watching)),
        watched=watching.tools,
        distortion=watching.distortion,
    )


def _warnings(watching: Watching) -> Iterator[str]:
    if watching.distortion:
        yield watching.distortion


def _tables(watching: Watching) -> Iterator[Table]:
    if watching.syscalls:
        yield syscall_table(watching.syscalls)


def syscall_table(counts: tuple[SyscallCount, ...]) -> Table:
    """Table of system calls, the longest total time first."""
    rows = tuple((each.name, each.calls, each.errors, each.seconds, 100 * each.share) for each in counts)
    return Table(name="system_calls", title="System calls, as strace counts them", columns=_COLUMNS, rows=rows)
