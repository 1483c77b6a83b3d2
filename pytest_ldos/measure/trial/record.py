"""Trials and trial sets: the raw data of baselines and verdicts, and one series per metric.

The time for which other processes had the planner's CPU is subtracted from planning latencies, as measured in each
trial. It is subtracted only if it is known for every trial of both versions, so that both are corrected alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import ClassVar, Final, TypeVar

from pytest_ldos.base.series import CENSORED, Invalid, Missing, Series
from pytest_ldos.base.text import ns_to_ms
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.host.interference import Interference, add_up
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import Kept, SegmentsNs
from pytest_ldos.measure.metrics.latency import T1, T1_MEAN, T4
from pytest_ldos.measure.metrics.model import (
    COVARIATES,
    CPU_WORK,
    PLANNED_DURATION,
    PLANS_CPU_WORK,
    PLANS_WAITED_FOR_OTHERS,
    WAITED_FOR_OTHERS,
    Measurement,
    Metric,
    Source,
)
from pytest_ldos.measure.metrics.on_cpus import Placed
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec

_IN_DETAILS: Final = frozenset({PLANS_CPU_WORK, WAITED_FOR_OTHERS, PLANS_WAITED_FOR_OTHERS})
"""Covariates that are found while measuring a metric."""

OURS: Final = tuple(metric.description for metric in METRICS.values())
"""Metrics of a trial set if no user has registered one."""


class TrialKind(StrEnum):
    """A motion of a stack, or a round of an instrument."""

    MOTION = "motion"
    ROUND = "round"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One measured repetition, a `MotionTrial` or a `RoundTrial`, as seen by gate and statistics.

    Attributes:
        index: index of the trial in its scenario, from 0.
        goal: name of a motion's goal, or a round's case; trials of the same goal are compared with each other.
        block: number of the stack start, counted from 0 over all versions of a session.
        message: reason of a failure.
        measurements: by metric name; empty until the trace has been read.
    """

    KIND: ClassVar[TrialKind]

    index: int
    goal: str
    block: int
    outcome: OutcomeClass
    message: str
    measurements: Mapping[str, Measurement] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        return self.outcome is OutcomeClass.SUCCESS

    @property
    def identity(self) -> str:
        """Unique name of the trial within its run."""
        return str(self.index)

    @property
    def question(self) -> str:
        """The question, such as a goal and a seed; empty if trials are not matched."""
        return ""

    @property
    def moveit_code(self) -> int | None:
        """MoveIt's error code, if it answered."""
        return None

    @property
    def covariates_ms(self) -> Mapping[str, float]:
        """Known covariates (`metrics.model.COVARIATES`), by name."""
        return {}


@dataclass(frozen=True, kw_only=True)
class RoundTrial(Trial):
    """One round of an instrument."""

    KIND = TrialKind.ROUND


@dataclass(frozen=True, kw_only=True)
class MotionTrial(Trial):
    """One motion of an arm to a goal, or another stimulus of a stack.

    Attributes:
        goal_id: unique, 32 hexadecimal characters.
        seed: of the planner; ``None`` for a planner that takes none.
        error_code: MoveIt's; ``None`` without an answer or without MoveIt.
        stamps_ns: the goal client's stamps, ``CLOCK_MONOTONIC``, by phase name.
        segments_ns: durations of the segments of the causal paths; see `metrics.extract`.
        deadlines: compliance of its passages with the scenario's deadlines, by path.
        cpu_work_ns: duration of a fixed computation on the planner's CPU right before or at
            the start of planning; ``None`` if not timed.
        interference: resources used by other processes during the motion; ``None`` if not measured.
        numbers: numbers measured by the stimulus, by name with a unit suffix.
        reset_failure: failure of the first attempt to reset the stack after the trial; empty if it succeeded.
        content: digest of a planning problem without what the settings replace; empty for other goals.
        placed: the stack's work on its own CPUs; ``None`` if it has none, or if that is unknown.
    """

    KIND = TrialKind.MOTION

    goal_id: str
    seed: int | None
    error_code: int | None
    stamps_ns: Mapping[str, int]
    plan_duration_ns: int | None
    plan_points: int
    position_error_m: float | None
    rotation_error_rad: float | None
    segments_ns: SegmentsNs = field(default_factory=dict)
    deadlines: Mapping[str, Kept] = field(default_factory=dict)
    cpu_work_ns: int | None = None
    interference: Interference | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    reset_failure: str = ""
    content: str = ""
    placed: Placed | None = None

    @property
    def identity(self) -> str:
        return self.goal_id

    @property
    def question(self) -> str:
        return "" if self.seed is None else f"{self.goal} {self.seed}"

    @property
    def moveit_code(self) -> int | None:
        return self.error_code

    @property
    def covariates_ms(self) -> Mapping[str, float]:
        found = {PLANNED_DURATION: self.plan_duration_ns, CPU_WORK: self.cpu_work_ns}
        details = (each.details.items() for each in self.measurements.values())
        return {
            **{name: ns_to_ms(duration_ns) for name, duration_ns in found.items() if duration_ns is not None},
            **{name: value for name, value in chain.from_iterable(details) if name in _IN_DETAILS},
        }


@dataclass(frozen=True)
class Look:
    """One interim look at the comparison.

    Attributes:
        head: trials that this version had.
        base: trials that the base had.
    """

    head: int
    base: int

    @property
    def information(self) -> float:
        """Statistical information about the difference of two locations: inverse of its variance at unit variance."""
        return self.head * self.base / max(self.head + self.base, 1)


@dataclass(frozen=True, kw_only=True)
class TrialSet:
    """The trials of one scenario in one run.

    Attributes:
        trial_kind: kind of all its trials.
        looks: interim looks at which the run could have ended, in order; empty for a run of fixed size.
        last_look: look at the largest size of the run.
        session: identifier shared by interleaved sets; empty for others.
        started_at: ISO 8601, UTC.
        commit: commit of the project under test; empty if unknown to git.
        influences: inherited settings that affected its processes, by name; see `find_influences`.
        environment: settings of firmware, kernel and middleware, and parameters of ROS 2 processes, by name; empty in
            older records.
        other_cpus: CPUs of recorder, loads and tests if the stack has its own; empty if none were left.
        withheld: variables that were not passed on because they belong to the tests.
        commit_unknown: git's reason why the commit is unknown; empty if it is known.
        stack_kind, stack: kind of the stack, and its description.
        loads: proofs of the applied loads, as plain values.
        discarded_events: number of events discarded by the tracer.
        incomplete: reason why trials are missing; empty if none are.
        trace: current or former location of the trace, relative to the run's folder.
        metrics: metrics of the trials' measurements, in display order.
        watched: tools that observed the processes in addition to the tracer; such trials cannot be a baseline.
        distortion: reason why times are not comparable with other sets; empty if they are.
        surroundings: interference over its stack starts, each from launch to the end of its trials; ``None`` if
            not measured.
        repeated: trials with too much interference, which are not judged; `trials` holds the repetition with the
            same index.

    Raises:
        ValueError: a trial is of another kind.
    """

    spec: ScenarioSpec
    started_at: str
    commit: str
    stack_kind: str
    stack: str
    recorder: str
    fingerprint: Fingerprint
    trials: tuple[Trial, ...]
    loads: tuple[Mapping[str, object], ...] = ()
    discarded_events: int = 0
    incomplete: str = ""
    trace: str = ""
    looks: tuple[Look, ...] = ()
    last_look: Look | None = None
    session: str = ""
    metrics: tuple[Metric, ...] = OURS
    watched: str = ""
    distortion: str = ""
    trial_kind: TrialKind = TrialKind.MOTION
    surroundings: Interference | None = None
    repeated: tuple[MotionTrial, ...] = ()
    commit_unknown: str = ""
    influences: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    other_cpus: str = ""

    def __post_init__(self) -> None:
        for trial in self.trials:
            if trial.KIND is not self.trial_kind:
                raise ValueError(f"trial {trial.index} is a {trial.KIND} among trials that are {self.trial_kind}s")

    @property
    def motions(self) -> tuple[MotionTrial, ...]:
        """Its trials if they are motions, else none."""
        return tuple(trial for trial in self.trials if isinstance(trial, MotionTrial))

    @property
    def interference(self) -> Interference | None:
        """Interference during its trials; over whole starts if it is incomplete or only that is known."""
        of_trials = add_up(each.interference for each in self.motions if each.interference is not None)
        return self.surroundings or of_trials if self.incomplete else of_trials or self.surroundings

    @property
    def is_disturbed(self) -> bool:
        """True if other processes used so much that its trials are not comparable with those of calm runs."""
        found = self.interference
        return found is not None and found.is_heavy

    def without_programs(self) -> TrialSet:
        """Removes the names of interfering programs, which are private to the machine."""
        return replace(
            self,
            trials=tuple(map(_without_programs, self.trials)),
            surroundings=self.surroundings and replace(self.surroundings, programs={}),
            repeated=tuple(map(_without_programs, self.repeated)),
        )

    def is_interleaved_with(self, other: TrialSet) -> bool:
        """True if both sets were measured in one interleaved session."""
        return bool(self.session) and self.session == other.session

    @property
    def scenario(self) -> str:
        return self.spec.name

    @property
    def successes(self) -> int:
        return sum(trial.succeeded for trial in self.trials)


_AnyTrial = TypeVar("_AnyTrial", bound=Trial)


def _without_programs(trial: _AnyTrial) -> _AnyTrial:
    if isinstance(trial, MotionTrial) and trial.interference is not None:
        return replace(trial, interference=replace(trial.interference, programs={}))
    return trial


CONTAINED_IN: Final[Mapping[str, str]] = {
    T1.name: WAITED_FOR_OTHERS,
    T1_MEAN.name: PLANS_WAITED_FOR_OTHERS,
    T4.name: WAITED_FOR_OTHERS,
}
"""Covariates that are part of a metric's values, by metric."""


def to_series(trials: TrialSet, metric: Metric) -> Series:
    """Series of a metric over the trials, without invalid values (`invalid_trials`).

    A failed trial counts as infinitely slow in latencies that a failure cuts short, so that failing fast is no
    improvement; in other metrics it keeps its value. A latency without a value in any successful trial is not measured
    in this set, and its failed trials are ignored.
    """
    counted = trials.trials if not metric.censored_by_failure or _is_measured(trials, metric) else ()
    chosen = [(trial, value) for trial in counted if (value := _value(trial, metric)) is not None]
    causes = [trial.covariates_ms for trial, _ in chosen]
    return Series(
        name=metric.name,
        unit=metric.unit,
        better=metric.better,
        values=tuple(value for _, value in chosen),
        strata=tuple(trial.goal for trial, _ in chosen),
        blocks=tuple(trial.block for trial, _ in chosen),
        trials=tuple(trial.index for trial, _ in chosen),
        covariates={name: tuple(each.get(name, math.nan) for each in causes) for name in COVARIATES},
        questions=tuple(trial.question for trial, _ in chosen),
    )


def all_series(trials: TrialSet) -> dict[str, Series]:
    return {metric.name: to_series(trials, metric) for metric in trials.metrics}


def metrics_of(head: TrialSet, base: TrialSet) -> dict[str, Metric]:
    """Metrics of both sets, by name; the head's description has precedence."""
    return {metric.name: metric for metric in (*head.metrics, *base.metrics, *head.metrics)}


def sources_of(trials: TrialSet, metric: Metric) -> frozenset[Source]:
    measured = (trial.measurements.get(metric.name) for trial in trials.trials)
    return frozenset(each.source for each in measured if each is not None and each.source is not None)


def invalid_trials(trials: TrialSet, metric: Metric) -> dict[int, str]:
    """Index and reason of each trial with an invalid value of a metric."""
    return _reasons(trials.trials, metric, Invalid)


def missing_reasons(trials: TrialSet, metric: Metric) -> dict[int, str]:
    """Index and reason of each successful trial without a value of a metric."""
    return _reasons([trial for trial in trials.trials if trial.succeeded], metric, Missing)


def _reasons(trials: Iterable[Trial], metric: Metric, kind: type[Missing | Invalid]) -> dict[int, str]:
    found = ((trial.index, trial.measurements.get(metric.name)) for trial in trials)
    return {index: each.value.reason for index, each in found if each is not None and isinstance(each.value, kind)}


def _is_measured(trials: TrialSet, metric: Metric) -> bool:
    values = [_value(trial, metric) for trial in trials.trials if trial.succeeded]
    return not values or any(value is not None for value in values)


def _value(trial: Trial, metric: Metric) -> float | None:
    if not trial.succeeded and metric.censored_by_failure:
        return CENSORED
    measurement = trial.measurements.get(metric.name)
    return None if measurement is None else measurement.number


def without_other_processes(head: Series, base: Series) -> tuple[Series, Series]:
    """Series of one metric, minus the time taken by other processes if known for both versions."""
    part = CONTAINED_IN.get(head.name)
    if part is None or not all(_is_known(part, each) for each in (head, base)):
        return head, base
    return _less(part, head), _less(part, base)


def _is_known(part: str, series: Series) -> bool:
    taken = series.covariates.get(part, (math.nan,) * len(series))
    return all(0 <= some < value for value, some in zip(series.values, taken, strict=True) if math.isfinite(value))


def _less(part: str, series: Series) -> Series:
    pairs = zip(series.values, series.covariates[part], strict=True)
    return replace(series, values=tuple(value - some if math.isfinite(value) else value for value, some in pairs))
