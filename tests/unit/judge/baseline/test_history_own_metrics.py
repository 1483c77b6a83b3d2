"""A history has the metrics of a user's own, with what the records say of them."""

from __future__ import annotations

from pytest_ldos.judge.baseline.history import build_rows
from tests.builders.own_metric import with_own
from tests.builders.trials import noisy_set


def test_rows_describe_own_metrics():
    trials = with_own(noisy_set(1, n=4))
    rows = build_rows(trials, run="run-001", branch="main", verdict="passed")
    own = rows.filter(rows["metric"] == "grip_rate")
    assert len(own) == 4
    assert set(own["title"]) == {"rate of the gripper"}
    assert set(own["unit"]) == {"Hz"}
    assert set(own["better"]) == {"higher"}
    assert own["value"].to_list() == [trial.measurements["grip_rate"].number for trial in trials.trials]
    assert "T3p99" in set(rows["metric"])
