"""Converts the rounds of a study to trials, so that they have baselines and verdicts like an arm's."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from pytest_ldos.host.checkout import commit_of
from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.host.inherited import find_influences, find_withheld
from pytest_ldos.instruments.study import Round, Study
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.measure.trial.record import RoundTrial, TrialKind, TrialSet
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec


def to_trials(study: Study, *, name: str = "", commit: str | None = None) -> TrialSet:
    """Converts each round to a trial with its case as the goal: rounds of one case are compared with each other.

    Their baselines lie in a folder of their own, ``middleware-<layer>``, so that no scenario of an arm has the same.

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
    """Gives all metrics an equal share of the error probability, unless the instrument sets shares itself."""
    if any(each.error_share for each in quantities):
        return quantities
    return tuple(dataclasses.replace(each, error_share=1 / len(quantities)) for each in quantities)
