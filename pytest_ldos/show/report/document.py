"""Contents of a report in numbers, independent of its format.

Every format is a function of one `Document`. Its numbers come unchanged from trials, gate and explanation. Units are in
the names of fields, or in a field of their own. A missing or unbounded number is ``None``; nothing in a document is
infinite.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.judge.summary import Deadline, Drift, Score
from pytest_ldos.measure.trial.record import Look
from pytest_ldos.record.profiles import Evidence

KIND: Final = "pytest-ldos report"
SCHEMA_VERSION: Final = 3
"""Version of the JSON form. It is raised if a field is removed or changes its meaning, not if one is added."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Value of one metric in one trial.

    Attributes:
        trial: number of the trial in its run, from 1.
        block: number of its stack start, counted over both versions if they were interleaved.
        goal: name of its goal.
        value: in the metric's unit; null if the trial failed and counts as slower than any.
    """

    trial: int
    block: int
    goal: str
    value: float | None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One metric over the trials of one version.

    Attributes:
        median: of the values, in the metric's unit; null if there are none.
        cv: coefficient of variation of the values; null for fewer than two.
        adjusted_cv: the same after covariates are removed; null if there are none.
        censored: number of trials that failed and count as slower than any.
        points: all trials that have the metric, in order.
    """

    median: float | None
    cv: float | None
    adjusted_cv: float | None = None
    censored: int = 0
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Change:
    """Change of one metric from the base to this version.

    Attributes:
        ratio: this version over base, the estimate; null if unbounded.
        low: lower end of its interval; null if unbounded.
        high: upper end of its interval; null if unbounded.
        tail: probability of error of each end of the interval.
        p_value: one-sided, of a change for the worse.
        floor: relative effect below which nothing is reported.
        mde: minimum detectable effect, relative, which is reported with probability 0.8; null if there is none.
        explained: share of the variance that was removed with covariates.
        is_endless: whether even the lower end of the interval is unbounded, because too many trials failed.
        is_from_zero: whether the base's median is 0, so that all ratios are null.
        is_below_zero: whether the estimate or an end of its interval is below zero, so that all ratios are null.
        median_ratio: worse median over the better one, if the metric passed although it exceeds the MDE; else null.
    """

    ratio: float | None
    low: float | None
    high: float | None
    tail: float
    p_value: float
    floor: float
    mde: float | None
    explained: float = 0.0
    is_endless: bool = False
    is_from_zero: bool = False
    is_below_zero: bool = False
    median_ratio: float | None = None

    @property
    def has_ratio(self) -> bool:
        """True if this version is a positive multiple of the base."""
        return not (self.is_from_zero or self.is_below_zero)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Source of a metric's numbers.

    Attributes:
        name: of the source, as shown.
        caveat: difference of the number from the metric's definition; empty if there is none.
        is_usual: whether this is the source in the metric's definition.
    """

    name: str
    caveat: str = ""
    is_usual: bool = True


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Trials without a usable number of a metric.

    Attributes:
        reason: why the number is missing or unusable.
        trials: their numbers, from 1.
        is_fault: whether the measurement failed; otherwise the trial has no such value.
    """

    reason: str
    trials: tuple[int, ...]
    is_fault: bool = False


@dataclass(frozen=True, kw_only=True)
class AspectReport:
    """A property of a metric other than its location that was tested for a change for the worse.

    Attributes:
        name: ``spread``, ``tail`` or ``late_rise``.
        words: its numbers in words.
        base: mean distance from the median (relative), or share of the trials in the upper tail; null for a rise.
        head: the same for this version; for a rise, the ratio of later trials to earlier ones.
        p_value: one-sided, of a change for the worse.
        tail: probability of error granted to the test.
        is_regressed: whether it changed for the worse.
        is_suspect: whether it may have changed for the worse, but not certainly.
    """

    name: str
    words: str
    base: float | None
    head: float | None
    p_value: float
    tail: float
    is_regressed: bool = False
    is_suspect: bool = False


@dataclass(frozen=True, kw_only=True)
class CaseReport:
    """One metric in one case: a goal, a planning problem, or what else a stimulus distinguishes.

    Attributes:
        name: of the case.
        trials: number of this version's trials.
        successes: number of those that succeeded.
        median: of this version's trials, in the metric's unit; null if most of them failed.
        low: first quartile; null if it is a failed trial.
        high: third quartile; null if it is a failed trial.
        base_trials: number of the base's trials; 0 without a base.
        base_successes: number of those that succeeded.
        base_median: null if most of them failed, or without a base.
        change: from the base, with the 95 % interval of these trials alone; null if there is none.
        stage: part of the metric's path that took most of this version's time; empty if unknown.
    """

    name: str
    trials: int
    successes: int
    median: float | None
    low: float | None
    high: float | None
    base_trials: int = 0
    base_successes: int = 0
    base_median: float | None = None
    change: Change | None = None
    stage: str = ""


@dataclass(frozen=True, kw_only=True)
class MetricReport:
    """One metric of a scenario.

    Attributes:
        name: of the metric, ``T1``.
        title: of the metric in words.
        unit: of its values.
        better: which way it improves.
        verdict: on this metric; null if it was not compared.
        head: this version's values; null if it has none.
        base: the base's values; null if there is no base or none are comparable.
        change: from the base to this version; null if they were not compared.
        origins: sources of this version's numbers.
        gaps: trials of this version without a usable number.
        incomparable: why it was not compared although both versions have it; empty otherwise.
        aspects: results of tests other than that of its location.
        cases: its numbers by case, the worst first, if it changed or is that of planning problems; else empty.
    """

    name: str
    title: str
    unit: str
    better: Better = Better.LOWER
    verdict: Verdict | None = None
    head: Sample | None = None
    base: Sample | None = None
    change: Change | None = None
    origins: tuple[Origin, ...] = ()
    gaps: tuple[Gap, ...] = ()
    incomparable: str = ""
    aspects: tuple[AspectReport, ...] = ()
    cases: tuple[CaseReport, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name} {self.title}"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One way in which trials failed.

    Attributes:
        outcome: its class, such as ``planning_failed``.
        code: MoveIt's error code; null if there was none.
        goal: name of the goal.
        message: the stack's message.
        trials: numbers of the trials, from 1.
    """

    outcome: str
    code: int | None
    goal: str
    message: str
    trials: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Load:
    """A disturbance applied during the trials.

    Attributes:
        summary: what was measured of it.
        shortfall: difference to the requested load; empty if it was reached.
    """

    summary: str
    shortfall: str = ""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Interference by other processes during a version's trials.

    Attributes:
        summary: in words; empty if it was too small to matter.
        seconds: total length of the trials, or of the whole starts if not all trials were made.
        cpus: CPUs of the machine.
        others_s: CPU time used by other processes; null if unknown.
        steal_s: CPU time that the hypervisor gave to other machines; null if unknown.
        throttled_s: time for which a quota stopped our own control group; null if unknown.
        thermal_throttles: number of times cores were throttled for heat; null if unknown.
        memory_stall_s: time in which some process waited for memory; null if unknown.
        programs: names of the programs with the highest use, in descending order.
    """

    summary: str
    seconds: float
    cpus: int
    others_s: float | None = None
    steal_s: float | None = None
    throttled_s: float | None = None
    thermal_throttles: int | None = None
    memory_stall_s: float | None = None
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Version:
    """One measured version: this one, or the base.

    Attributes:
        label: its name in the report.
        commit: of the project under test; empty outside a checkout, with a ``+`` if files were changed.
        started_at: ISO 8601, UTC.
        asked: number of requested trials.
        trials: number of trials that were made.
        successes: number of trials that succeeded.
        incomplete: why fewer were made than requested; empty if all were.
        stack: description of the stack.
        recorder: the tracer.
        host_class: of the machine.
        discarded_events: by the tracer's own count.
        file: location of its trials; may be empty.
        failures: the ways in which trials failed.
        loads: disturbances of the stack.
        deadlines: expectations on causal paths.
        surroundings: use of the machine by other processes; null if not measured.
        repeated: trials that were repeated because of interference, each in words.
        reset_failures: failures of a first attempt to bring the stack back after a trial, each in words.
        stack_cpus: CPUs of the stack alone; empty if it shares all.
        other_cpus: CPUs of recorder, loads and tests; empty if none were left.
        share_on_cpus: share of the stack's CPU time on its CPUs, or of its events; null if unknown.
        is_share_of_time: whether that is a share of CPU time, which needs context switches.
    """

    label: str
    commit: str
    started_at: str
    asked: int
    trials: int
    successes: int
    incomplete: str = ""
    stack: str = ""
    recorder: str = ""
    host_class: str = ""
    discarded_events: int = 0
    file: str = ""
    failures: tuple[Failure, ...] = ()
    loads: tuple[Load, ...] = ()
    deadlines: tuple[Deadline, ...] = ()
    surroundings: Surroundings | None = None
    repeated: tuple[str, ...] = ()
    reset_failures: tuple[str, ...] = ()
    stack_cpus: str = ""
    other_cpus: str = ""
    share_on_cpus: float | None = None
    is_share_of_time: bool = False


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Change of the time that a part of a causal path takes.

    Attributes:
        name: kind and subject of the part.
        base_ns: median over the base's trials, nanoseconds.
        head_ns: median over this version's trials, nanoseconds.
        change_ns: estimate of the difference, nanoseconds.
        low_ns: lower end of its interval; null if unbounded.
        high_ns: upper end of its interval; null if unbounded.
        share: of the sum of all parts' changes; negative for a change in the opposite direction.
        is_certain: whether the interval excludes zero.
    """

    name: str
    base_ns: float
    head_ns: float
    change_ns: float
    low_ns: float | None
    high_ns: float | None
    share: float
    is_certain: bool


@dataclass(frozen=True, kw_only=True)
class PathReport:
    """Changes in the duration of a causal path and its parts.

    Attributes:
        path: its name.
        metrics: those that measure this path's latency.
        whole: the path itself.
        segments: its parts, the largest share first.
    """

    path: str
    metrics: tuple[str, ...]
    whole: Segment
    segments: tuple[Segment, ...]


class DifferenceKind(StrEnum):
    """Kind of a difference between two versions' surroundings."""

    ENVIRONMENT = "environment"
    SETTING = "setting"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference between the versions other than the code.

    Attributes:
        kind: environment (kernel, package), or setting of the stack.
        name: of it.
        base: its value with the base.
        head: its value with this version.
    """

    kind: DifferenceKind
    name: str
    base: str
    head: str


@dataclass(frozen=True, kw_only=True)
class Interleaving:
    """Base and this version measured interleaved in one session.

    Attributes:
        blocks: number of stack starts of both versions together.
        order: version of each start, ``base`` or ``head``.
        drifts: over the order of blocks, by metric.
    """

    blocks: int
    order: tuple[str, ...]
    drifts: tuple[Drift, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Additions:
    """Trials that were added because the comparison was inconclusive.

    Attributes:
        looks: interim looks at which a decision could have ended the run, in order.
        limit: numbers of trials up to which the run could be extended.
        added: trials of this version added after the first look.
    """

    looks: tuple[Look, ...]
    limit: Look | None
    added: int


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """The calibration that the floors come from.

    Attributes:
        made_at: ISO 8601, UTC.
        commit: that was measured.
        starts: number of stack starts it is based on.
        trials: number of trials it is based on.
        metrics: names of its metrics.
        file: its location; may be empty.
    """

    made_at: str
    commit: str
    starts: int
    trials: int
    metrics: tuple[str, ...]
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Location of a scenario's test.

    Attributes:
        file: relative to the root of the project.
        line: its line, from 1.
    """

    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Section:
    """One scenario.

    Attributes:
        scenario: its name.
        stack: the stack under test, ``embedded`` or ``ros2-mock``; the requested kind if it could not be measured;
            empty if there is none.
        verdict: on it; null if nothing was judged.
        reasons: for the verdict, the most important first.
        accepted: those of the reasons that are accepted changes for the worse.
        undecided: why more trials would help; empty if they would not.
        advice: what to do now.
        head: this version; null if it could not be measured.
        base: version that it was compared with; null without one.
        metrics: all measured metrics, in order.
        paths: changes by causal path.
        differences: of surroundings and settings.
        score: over all metrics; null without a base.
        interleaving: null if the versions were not interleaved.
        additions: null for a run that could not be extended.
        calibration: null if the host is not calibrated.
        notes: locations of files, and other remarks.
        test: that requested the verdict; null if none did.
        is_suite: whether its goals are planning problems, each of which is reported.
        evidence: comparison of profiles after a regression; null if none were made.
    """

    scenario: str
    verdict: Verdict | None
    reasons: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    head: Version | None = None
    base: Version | None = None
    metrics: tuple[MetricReport, ...] = ()
    paths: tuple[PathReport, ...] = ()
    differences: tuple[Difference, ...] = ()
    score: Score | None = None
    interleaving: Interleaving | None = None
    additions: Additions | None = None
    calibration: CalibrationReport | None = None
    notes: tuple[str, ...] = ()
    test: Place | None = None
    stack: str = ""
    is_suite: bool = False
    accepted: tuple[str, ...] = ()
    evidence: Evidence | None = None

    @property
    def cases(self) -> tuple[CaseReport, ...]:
        """Cases of the first metric that has some, with the outcomes of their trials."""
        return next((metric.cases for metric in self.metrics if metric.cases), ())

    @property
    def of_suite(self) -> tuple[MetricReport, ...]:
        """Metrics of planning problems that are reported for each problem."""
        return tuple(metric for metric in self.metrics if metric.cases) if self.is_suite else ()

    @property
    def labels(self) -> tuple[str, str]:
        """Names of base and this version."""
        return (self.base.label if self.base else "base", self.head.label if self.head else "this run")


def worst_of(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The worst verdict; ``None`` if nothing was judged."""
    return worst(judged) if (judged := [each for each in verdicts if each is not None]) else None


@dataclass(frozen=True, kw_only=True)
class Document:
    """A report.

    Attributes:
        made_at: ISO 8601, UTC; may be empty.
        made_by: name and version of the program.
        sections: one per scenario, in the order of judgement.
    """

    sections: tuple[Section, ...]
    made_at: str = ""
    made_by: str = ""

    @property
    def verdict(self) -> Verdict | None:
        return worst_of(section.verdict for section in self.sections)

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks under test, in the order of the sections."""
        return tuple(dict.fromkeys(section.stack for section in self.sections if section.stack))

    def name_of(self, section: Section) -> str:
        """Name of one of its sections: the scenario, and its stack if the report has several."""
        return f"{section.scenario} on {section.stack}" if len(self.stacks) > 1 and section.stack else section.scenario
