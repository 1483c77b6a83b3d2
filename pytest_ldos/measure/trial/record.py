"""Trials and trial sets: the raw data of baselines and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.deadlines import Kept
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.measure.metrics.segments import SegmentsNs
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec

OURS: Final = tuple(metric.description for metric in METRICS.values())
"""Metrics of a trial set if no user has registered one."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One measured goal.

    Attributes:
        index: of the trial in its scenario, from 0; determines the planner's seed.
        goal: name of the goal; trials of the same goal are compared with each other.
        block: stack start that it belongs to, counted from 0 over all versions of a session.
        stamps_ns: the goal client's, ``CLOCK_MONOTONIC``, by phase name.
        measurements: by metric name; empty until the trace has been read.
        segments_ns: durations of the segments of the causal paths; see `metrics.segments`.
        deadlines: compliance of its passages with the scenario's deadlines, by path.
        cpu_work_ns: duration of a fixed computation on the planner's CPU right before
            planning; ``None`` if it was not timed.
    """

    index: int
    goal: str
    goal_id: str
    seed: int | None
    block: int
    outcome: OutcomeClass
    error_code: int | None
    message: str
    stamps_ns: Mapping[str, int]
    plan_duration_ns: int | None
    plan_points: int
    position_error_m: float | None
    rotation_error_rad: float | None
    measurements: Mapping[str, Measurement] = field(default_factory=dict)
    segments_ns: SegmentsNs = field(default_factory=dict)
    deadlines: Mapping[str, Kept] = field(default_factory=dict)
    cpu_work_ns: int | None = None

    @property
    def succeeded(self) -> bool:
        return self.outcome is OutcomeClass.SUCCESS


@dataclass(frozen=True)
class Look:
    """Interim look of a comparison, given by the number of trials of both versions."""

    head: int
    base: int

    @property
    def information(self) -> float:
        """Information about the difference of two locations, in trials: inverse of its variance at unit variance."""
        return self.head * self.base / max(self.head + self.base, 1)


@dataclass(frozen=True, kw_only=True)
class TrialSet:
    """The trials of one scenario in one run.

    Attributes:
        looks: interim looks at which a decision could have ended the run, in order; empty for a run that was not
            to be extended.
        last_look: look at the largest possible extension of the run.
        session: common to sets that were measured interleaved; empty for others.
        started_at: ISO 8601, UTC.
        commit: of the project under test; empty outside a git checkout.
        stack_kind, stack: kind of the stack, and its description.
        loads: proofs of the applied loads, as plain values.
        discarded_events: by the tracer's own count.
        incomplete: reason why fewer trials were made than requested; empty if all were made.
        trace: present or former location of the trace, relative to the run's folder.
        metrics: metrics of the trials' measurements, in display order.
        watched: tools that watched the processes in addition to the tracer; such trials become no baseline.
        distortion: reason why their times are not comparable with others; empty if they are.
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

    @property
    def scenario(self) -> str:
        return self.spec.name

    @property
    def successes(self) -> int:
        return sum(trial.succeeded for trial in self.trials)
