"""Plans of a suite of problems with given numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pytest_ldos.base.series import Missing, Value
from pytest_ldos.measure.metrics.catalogue import built_in_of
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.stimuli import PlanSpec, StimuliSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind
from tests.builders.trials import trial, trial_set

STACK = StackSpec(
    kind=StackKind.ROS2, stimulus=StimulusKind.PLAN, stimuli=StimuliSpec(plan=PlanSpec(problems="problems.yaml"))
)
METRICS = tuple(metric.description for metric in built_in_of(STACK).values() if metric.name in {"T1", "path_length"})
_STARTS = 15
STAGES = {"latency": 10, "planning stage: search": 8, "planning stage: interpolation": 2}


def planned_suite(
    seed: int,
    *,
    is_head: bool = True,
    problems: int = 30,
    plans: int = 10,
    time: float = 1.0,
    path: float = 1.0,
    slow: Mapping[int, float] | None = None,
    long: Mapping[int, float] | None = None,
    failing: Mapping[int, int] | None = None,
    scatter: float = 0.3,
    **changes,
) -> TrialSet:
    """Plans of problems that take 10 ms to 2 s, interleaved in the usual pairs of starts.

    Args:
        time, path: factors of all times and paths.
        slow, long: factors of single problems' times and paths.
        scatter: variation of the times of equal plans, relative.
        failing: number of the first plans of single problems that fail at once.
    """
    rng, slow, long, failing = np.random.default_rng(seed), slow or {}, long or {}, failing or {}
    usual_ms = np.geomspace(10.0, 2000.0, problems)
    starts = rng.lognormal(0, 0.02, _STARTS)
    trials: list[MotionTrial] = []
    for index in range(problems * plans):
        problem, plan = index % problems, index // problems
        start = index * _STARTS // (problems * plans)
        noise_of_time, noise_of_path = rng.lognormal(0, scatter), rng.lognormal(0, 0.2)
        plain = {
            "goal": f"problem {problem}",
            "block": 2 * start + is_head,
            "segments_ns": {"planning": STAGES},
            "content": f"{problem:012x}",
        }
        if plan < failing.get(problem, 0):
            values: dict[str, Value] = {"T1": 1.0, "path_length": Missing("the trial has no result")}
            failed = {"outcome": OutcomeClass.PLANNING_FAILED, "error_code": None, "message": "FAILURE"}
            trials.append(trial(index, values, **plain, **failed))
            continue
        time_ms = usual_ms[problem] * time * slow.get(problem, 1.0) * starts[start] * noise_of_time
        path_rad = (1 + problem / 10) * path * long.get(problem, 1.0) * noise_of_path
        trials.append(trial(index, {"T1": float(time_ms), "path_length": path_rad}, **plain))
    spec = ScenarioSpec(name="planning", stack=STACK, trials=len(trials), success_rate=0.5)
    of_suite = {"spec": spec, "metrics": METRICS, "session": "s", "stack_kind": "ros2-planning-plan"}
    return trial_set(trials, **{**of_suite, **changes})
