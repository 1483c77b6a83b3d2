"""Calibration of user-defined metrics, as described in records."""

from __future__ import annotations

import dataclasses

from pytest_ldos.campaign.calibrate import learn
from pytest_ldos.campaign.noise import template_of
from pytest_ldos.campaign.starts import append_start
from pytest_ldos.measure.trial.artifacts import decode_trials, encode_trials
from tests.builders.own_metric import GRIP_RATE, with_own
from tests.builders.trials import noisy_set


def starts(count: int, *, own: bool):
    """Sets of one stack start each, with or without the user's metric."""
    sets = [noisy_set(seed, n=6) for seed in range(count)]
    numbered = [
        dataclasses.replace(each, trials=tuple(dataclasses.replace(trial, block=block) for trial in each.trials))
        for block, each in enumerate(sets)
    ]
    return [with_own(each) for each in numbered] if own else numbered


def joined(parts):
    run = None
    for part in parts:
        run = append_start(run, part)
    return run


def test_noise_of_a_user_metric_is_estimated():
    found = learn([joined(starts(4, own=True))]).metrics
    assert 0.01 < found["grip_rate"].trial_sd < 0.1
    assert "grip_rate" not in learn([joined(starts(4, own=False))]).metrics


def test_metric_added_to_a_run_is_described(tmp_path):
    run = joined([*starts(2, own=False), *starts(2, own=True)])
    assert run.metrics[-1] == GRIP_RATE
    assert decode_trials(encode_trials(run), tmp_path) == run


def test_runs_have_the_metrics_of_all():
    before, now = joined(starts(3, own=False)), joined(starts(3, own=True))
    assert template_of([before, now]).metrics[-1] == GRIP_RATE
    assert "grip_rate" in learn([before, now]).metrics
