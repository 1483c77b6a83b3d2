"""Contents of a report in numbers, before anybody decides how it looks.

Every format is a function of one `Document`. Its numbers come from trials, gate and explanation as they
are; units are in the names of fields, or beside the value. A number that does not exist, or that has no
bound, is ``None``; nothing in a document is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.judge.summary import Deadline, Score

KIND: Final = "pytest-ldos report"
SCHEMA_VERSION: Final = 2
"""Version of the JSON form. It goes up when a field goes or changes its meaning, not when one is added."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Value of one metric in one trial.

    Attributes:
        trial: number of the trial in its run, from 1.
        block: number of the stack start it belongs to, over both versions where they were interleaved.
        goal: name of its goal.
        value: in the metric's unit; null where the trial failed and counts as slower than any.
    """

    trial: int
    block: int
    goal: str
    value: float | None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One metric over the trials of one version.

    Attributes:
        median: of the values, in the metric's unit; null where there are none.
        cv: coefficient of variation of the values; null for fewer than two.
        adjusted_cv: what is left of it when covariates are taken out; null where there are none.
        censored: how many trials failed and count as slower than any.
        points: every trial that has the metric, in order.
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
        ratio: this version over base, the estimate; null beyond any bound.
        low: lower end of its interval; null where it is open.
        high: upper end of its interval; null where it is open.
        tail: probability of error of each end of the interval.
        p_value: one-sided, of a change for the worse.
        floor: relative effect below which nothing is reported.
        mde: minimum detectable effect, relative, reported with probability 0.8; null where none would be.
        explained: share of the variance that covariates took out.
        is_endless: whether even the lower end of the interval lies beyond any bound, because so many trials failed.
        is_from_zero: whether the base's median is 0, so that there is no ratio, and all that would be one is null.
        is_below_zero: whether the change, or an end of its interval, reaches below zero; there is no ratio either.
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
        """True if this version is some positive multiple of the base."""
        return not (self.is_from_zero or self.is_below_zero)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Source of a metric's numbers.

    Attributes:
        name: of the source, as it is shown.
        caveat: in what the number differs from the metric as it is defined; empty where it does not.
        is_usual: whether the metric is defined by this source.
    """

    name: str
    caveat: str = ""
    is_usual: bool = True


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Trials without a usable number of a metric.

    Attributes:
        reason: why there is none.
        trials: their numbers, from 1.
        is_fault: whether the measurement failed; otherwise the trial had no such value.
    """

    reason: str
    trials: tuple[int, ...]
    is_fault: bool = False


@dataclass(frozen=True, kw_only=True)
class AspectReport:
    """A property of a metric beside its location that was tested for a change for the worse.

    Attributes:
        name: ``spread``, ``tail`` or ``late_rise``.
        words: its numbers in words.
        base: mean distance from the median (relative), or share of the trials in the upper tail; null of a rise.
        head: the same of this version; of a rise, the ratio of later trials to earlier ones.
        p_value: one-sided, of a change for the worse.
        tail: probability of error granted to the test.
        is_regressed: whether it changed for the worse.
        is_suspect: whether it may have, which is not certain.
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
class MetricReport:
    """One metric of a scenario.

    Attributes:
        name: of the metric, ``T1``.
        title: of the metric in words.
        unit: of its values.
        better: which way it improves.
        verdict: on this metric; null where it was not compared.
        head: this version's values; null where it has none.
        base: the base's values; null where there is no base, or none of them is comparable.
        change: of this version over the base; null where they were not compared.
        origins: where this version's numbers were taken.
        gaps: trials of this version without a usable number.
        incomparable: why it was not compared although both versions have it; empty otherwise.
        aspects: what else was tested than its location.
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


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One way in which trials failed.

    Attributes:
        outcome: its class, such as ``planning_failed``.
        code: MoveIt's error code; null where there was none.
        goal: name of the goal.
        message: the stack's own words.
        trials: numbers of the trials, from 1.
    """

    outcome: str
    code: int | None
    goal: str
    message: str
    trials: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Load:
    """A disturbance beside the stack.

    Attributes:
        summary: what was measured of it.
        shortfall: in what it was less than asked for; empty where it was not.
    """

    summary: str
    shortfall: str = ""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Interference by others during a version's trials.

    Attributes:
        summary: in words; empty where it was too little to matter.
        seconds: length of the trials together; of the whole starts where not all trials were made.
        cpus: CPUs of the machine.
        others_s: CPU time that others used; null where it is not known.
        steal_s: CPU time that the hypervisor gave to others; null where it is not known.
        throttled_s: time for which a quota stopped our own control group; null where it is not known.
        thermal_throttles: how many times cores slowed down for heat; null where it is not known.
        memory_stall_s: time in which some process waited for memory; null where it is not known.
        programs: names of the programs that used most, the first used the most.
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
        label: how it is called in the report.
        commit: of the project under test; empty outside a checkout, with a ``+`` where files had changed.
        started_at: ISO 8601, UTC.
        asked: how many trials were asked for.
        trials: how many were made.
        successes: how many of them succeeded.
        incomplete: why fewer were made than asked for; empty where all were.
        stack: description of the stack.
        recorder: the tracer.
        host_class: of the machine.
        discarded_events: by the tracer's own count.
        file: where its trials are stored; empty where that does not matter.
        failures: the ways in which trials failed.
        loads: what disturbed the stack.
        deadlines: what was expected of causal paths.
        surroundings: what others took from the machine; null where it was not measured.
        repeated: trials that were made again because others took too much, each in words.
        reset_failures: failures of a first attempt to bring the stack back after a trial, each in words.
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


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Change of the time that a part of a causal path takes.

    Attributes:
        name: kind and subject of the part.
        base_ns: median over the base's trials, nanoseconds.
        head_ns: median over this version's trials, nanoseconds.
        change_ns: estimate of the difference, nanoseconds.
        low_ns: lower end of its interval; null where it is open.
        high_ns: upper end of its interval; null where it is open.
        share: of the sum of all parts' changes; negative for what moved against it.
        is_certain: whether the interval excludes no change.
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
    """Changes of the time of a causal path and of its parts.

    Attributes:
        path: its name.
        metrics: those whose value is this path's latency.
        whole: the path itself.
        segments: its parts, those with the largest share first.
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
    """Something beside the code that differs between the versions.

    Attributes:
        kind: of the environment (kernel, package), or a setting of the stack.
        name: of it.
        base: its value with the base.
        head: its value with this version.
    """

    kind: DifferenceKind
    name: str
    base: str
    head: str


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Change of a metric over an interleaved session, in both versions together.

    Attributes:
        metric: its name.
        change: from the first pair of blocks to the last, relative.
        p_value: of a trend like this where order means nothing, two-sided.
        is_notable: whether it is pointed out.
    """

    metric: str
    change: float
    p_value: float
    is_notable: bool


@dataclass(frozen=True, kw_only=True)
class Interleaving:
    """Base and this version measured interleaved in one session.

    Attributes:
        blocks: how many stack starts there were, of both versions together.
        order: which version each start was, ``base`` or ``head``.
        drifts: over the order of blocks, by metric.
    """

    blocks: int
    order: tuple[str, ...]
    drifts: tuple[Drift, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LookReport:
    """One moment at which the comparison was looked at.

    Attributes:
        head: trials that this version had.
        base: trials that the base had.
    """

    head: int
    base: int


@dataclass(frozen=True, kw_only=True)
class Additions:
    """Trials that were added because the comparison was inconclusive.

    Attributes:
        looks: at which a decision could have ended the run, in order.
        limit: the most that the run could have been extended to.
        added: trials of this version beyond the first look.
    """

    looks: tuple[LookReport, ...]
    limit: LookReport | None
    added: int


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """The calibration that floors come from.

    Attributes:
        made_at: ISO 8601, UTC.
        commit: that was measured.
        starts: stack starts it rests on.
        trials: trials it rests on.
        metrics: names of the metrics it knows.
        file: where it is stored; empty where that does not matter.
    """

    made_at: str
    commit: str
    starts: int
    trials: int
    metrics: tuple[str, ...]
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Place where the test of a scenario is written.

    Attributes:
        file: relative to the root of the project.
        line: in it, from 1.
    """

    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Section:
    """One scenario.

    Attributes:
        scenario: its name.
        stack: the stack under test, ``embedded`` or ``ros2-mock``; of what could not be measured, the kind that was
            requested. Empty where there is none.
        verdict: on it; null where nothing was judged.
        reasons: why the verdict is what it is, the weightiest first.
        undecided: why more trials would help; empty where they would not.
        advice: what to do now.
        head: this version; null where nothing could be measured.
        base: what it was compared with; null without one.
        metrics: every metric that is taken, in order.
        paths: where time was gained or lost.
        differences: of surroundings and settings.
        score: over all metrics; null without a base.
        interleaving: null where the versions were not interleaved.
        additions: null for a run that was not to be extended.
        calibration: null where the host is not calibrated.
        notes: where things lie, what else is worth knowing.
        test: that asked for the verdict; null where none did.
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

    @property
    def labels(self) -> tuple[str, str]:
        """Names of base and this version."""
        return (self.base.label if self.base else "base", self.head.label if self.head else "this run")

    def metric(self, name: str) -> MetricReport | None:
        """The metric of that name, or ``None``."""
        return next((each for each in self.metrics if each.name == name), None)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A report.

    Attributes:
        made_at: ISO 8601, UTC; empty where it does not matter.
        made_by: name and version of the program.
        sections: one a scenario, in the order in which they were judged.
    """

    sections: tuple[Section, ...]
    made_at: str = ""
    made_by: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict of its sections; ``None`` where none was judged."""
        judged = [section.verdict for section in self.sections if section.verdict is not None]
        return worst(judged) if judged else None

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks under test, in the order of the sections."""
        return tuple(dict.fromkeys(section.stack for section in self.sections if section.stack))

    def name_of(self, section: Section) -> str:
        """Name of one of its sections: the scenario, and its stack where the report has several."""
        return f"{section.scenario} on {section.stack}" if len(self.stacks) > 1 and section.stack else section.scenario
