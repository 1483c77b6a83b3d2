"""Trials and what belongs to them: the raw material of baselines and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.metrics.catalogue import METRICS
from pytest_ldos.metrics.deadlines import Kept
from pytest_ldos.metrics.model import Measurement, Metric
from pytest_ldos.metrics.segments import SegmentsNs
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.stack.goals import OutcomeClass

OURS: Final = tuple(metric.description for metric in METRICS.values())
"""What is measured where no user has registered a metric."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One measured goal.

    Attributes:
        index: of the trial in its scenario, from 0; decides the planner's seed.
        goal: name of the goal; trials of one goal are compared with each other.
        block: the stack start it belongs to, counted from 0 over all versions of a session.
        stamps_ns: the goal client's, ``CLOCK_MONOTONIC``, by phase name.
        measurements: by metric name; empty until the trace has been read.
        segments_ns: what the causal paths spent their time on; see `metrics.segments`.
        deadlines: how often its passages kept what the scenario expects, by path.
        cpu_work_ns: what a fixed computation took on the planner's CPU right before it
            planned; ``None`` where it was not timed.
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
    """A moment at which a comparison was looked at, by how many trials both versions had."""

    head: int
    base: int

    @property
    def information(self) -> float:
        """What a difference of two locations is known by, in trials: the inverse of its variance."""
        return self.head * self.base / max(self.head + self.base, 1)


@dataclass(frozen=True, kw_only=True)
class TrialSet:
    """The trials of one scenario in one run.

    Attributes:
        looks: at which a decision could have ended the run, in order; empty for one that was not
            to be extended.
        last_look: the most that the run could have been extended to.
        session: common to sets that were measured in turns; empty for others.
        started_at: ISO 8601, UTC.
        commit: of the project under test; empty outside a git checkout.
        stack_kind, stack: which stack, and its description.
        loads: proofs of the loads that were applied, as plain values.
        discarded_events: by the tracer's own count.
        incomplete: why fewer trials were made than asked for; empty where all were.
        trace: where the trace lies or lay, relative to the run's folder.
        metrics: what the measurements of the trials are of, in the order in which they are shown.
        watched: tools that watched the processes beside the tracer; such trials become no baseline.
        distortion: why their times compare with no others; empty where they do.
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
