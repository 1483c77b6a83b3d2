"""Adds trials on a running stack until its comparison with a stored baseline is clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_ldos.campaign.order import usual_size
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.measure.trial.conduct import Procedure, Save, add_trials
from pytest_ldos.measure.trial.record import Look, TrialSet
from pytest_ldos.measure.trial.rig import Rig

Decide = Callable[[TrialSet], GateResult]
"""Compares the trials with their baseline."""


def top_up(
    rig: Rig, trials: TrialSet, procedure: Procedure, *, base: int, decide: Decide, save: Save, size: int | None = None
) -> TrialSet:
    """Adds as many trials as the comparison needs and the scenario allows, and returns all of them.

    Args:
        base: number of trials of the baseline.
        size: number of trials added at once, by default the `usual_size` for the largest number of trials.
    """
    most = trials.spec.max_trials
    if len(trials.trials) < most:
        trials = _looked(trials, base, most, save)
    while len(trials.trials) < most and not trials.incomplete and decide(trials).more_trials_because:
        until = min(len(trials.trials) + (size or usual_size(most)), most)
        trials = _looked(add_trials(rig, trials, procedure, until=until, warmup=0, save=save), base, most, save)
    return trials


def _looked(trials: TrialSet, base: int, most: int, save: Save) -> TrialSet:
    now = Look(len(trials.trials), base)
    noted = replace(trials, looks=(*trials.looks, now), last_look=Look(most, base))
    save(noted)
    return noted
