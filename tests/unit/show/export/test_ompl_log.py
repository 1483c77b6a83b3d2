"""OMPL's benchmark log, as ``ompl_benchmark_statistics.py`` reads it line by line."""

from __future__ import annotations

import dataclasses

from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.show.export.other_tools import render_ompl_logs
from tests.builders.plans import planned_suite
from tests.builders.reports import HOSTILE


def test_log_of_each_problem():
    trials = planned_suite(1, problems=3, plans=2, failing={1: 1})
    logs = render_ompl_logs(trials)
    assert list(logs) == ["problem 0", "problem 1", "problem 2"]
    lines = logs["problem 1"].splitlines()
    failed, solved = trials.trials[1], trials.trials[4]
    time_s, path = solved.measurements["T1"].value / 1000, solved.measurements["path_length"].value
    assert failed.outcome is OutcomeClass.PLANNING_FAILED
    assert lines[:4] == [
        "pytest-ldos version 0123456789ab",
        "Experiment problem_1",
        "Running on lab",
        "Starting at 2026-01-01T00:00:00+00:00",
    ]
    assert lines[lines.index("1 planners") :] == [
        "1 planners",
        "default",
        "0 common properties",
        "4 properties for each run",
        "time REAL",
        "solved BOOLEAN",
        "outcome ENUM",
        "path_length_rad REAL",
        "2 runs",
        "0.001; 0; 1; ; ",
        f"{time_s!r}; 1; 0; {path!r}; ",
        ".",
    ]


def test_names_cannot_break_the_log():
    plain = planned_suite(1, problems=1, plans=1)
    for name in HOSTILE:
        (log,) = render_ompl_logs(
            dataclasses.replace(plain, stack=name, trials=(dataclasses.replace(plain.trials[0], goal=name),))
        ).values()
        lines = log.splitlines()
        assert len(lines) == 28
        assert len(lines[1].split()) == 2
