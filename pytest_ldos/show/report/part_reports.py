"""Reports of a comparison's metrics and versions, from gate and trials."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from pytest_ldos.base.series import Series
from pytest_ldos.host.fingerprint import find_differences
from pytest_ldos.host.interference import Interference, describe_interference
from pytest_ldos.judge import drift
from pytest_ldos.judge.gate.comparison import Comparison
from pytest_ldos.judge.gate.shape import Finding, LateRise
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Judged
from pytest_ldos.judge.summarize import summarize_deadlines
from pytest_ldos.judge.summary import Summary
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import (
    Look,
    MotionTrial,
    TrialKind,
    TrialSet,
    invalid_trials,
    missing_reasons,
    sources_of,
)
from pytest_ldos.show.page.formats import finite
from pytest_ldos.show.report.document import (
    Additions,
    AspectReport,
    Change,
    Difference,
    DifferenceKind,
    Drift,
    Failure,
    Gap,
    Interleaving,
    Load,
    LookReport,
    MetricReport,
    Point,
    Sample,
    Surroundings,
    Version,
)
from pytest_ldos.show.report.reasons import describe_aspect, describe_reason
from pytest_ldos.show.report.sentences import report_origins


def report_metrics(judged: Judged) -> tuple[MetricReport, ...]:
    """Reports of all metrics of the head, and of those that only the base has."""
    return tuple(_report(metric, judged) for metric in judged.metrics)


def _report(metric: Metric, judged: Judged) -> MetricReport:
    head, result = judged.head, judged.result
    of_head, of_base = (summaries.get(metric.name) for summaries in (judged.head_summaries, judged.base_summaries))
    comparison = result.comparison(metric.name)
    incomparable = result.incomparable.get(metric.name)
    own = None if incomparable is None else Verdict.NOT_COMPARABLE
    return MetricReport(
        name=metric.name,
        title=metric.title,
        unit=metric.unit,
        better=metric.better,
        verdict=own if comparison is None else comparison.verdict,
        head=_sample(of_head, result.head_series.get(metric.name)),
        base=None if comparison is None else _sample(of_base, result.base_series.get(metric.name)),
        change=None if comparison is None else _change(comparison, judged.median_ratio(metric)),
        origins=report_origins(sources_of(head, metric)),
        gaps=_gaps(metric, head),
        incomparable="" if incomparable is None else describe_reason(incomparable),
        aspects=() if comparison is None else tuple(map(_aspect, comparison.findings)),
    )


def _aspect(found: Finding) -> AspectReport:
    aspect = found.shape.aspect
    of_base, of_head = (None, aspect.ratio) if isinstance(aspect, LateRise) else (aspect.base, aspect.head)
    return AspectReport(
        name=aspect.name,
        words=describe_aspect(aspect),
        base=None if of_base is None else finite(of_base),
        head=finite(of_head),
        p_value=found.shape.p_value,
        tail=found.tail,
        is_regressed=found.is_regressed,
        is_suspect=found.is_suspect,
    )


def _sample(summary: Summary | None, series: Series | None) -> Sample | None:
    if series is None or summary is None:
        return None
    return Sample(
        median=summary.median,
        cv=finite(summary.cv),
        adjusted_cv=summary.adjusted_cv,
        censored=summary.censored,
        points=tuple(map(_point, series.trials, series.blocks, series.strata, series.values)),
    )


def _point(trial: int, block: int, goal: str, value: float) -> Point:
    return Point(trial=trial + 1, block=block, goal=goal, value=finite(value))


def _change(comparison: Comparison, median_ratio: float | None) -> Change:
    if not comparison.has_ratio:
        return _without_ratios(comparison)
    is_open_below = comparison.low <= 0 and math.isinf(comparison.high)
    return Change(
        ratio=finite(comparison.ratio),
        low=None if is_open_below else finite(comparison.low),
        high=finite(comparison.high),
        tail=comparison.tail,
        p_value=comparison.p_value,
        floor=comparison.floor,
        mde=finite(comparison.mde),
        explained=comparison.explained,
        is_endless=comparison.low == math.inf,
        median_ratio=median_ratio,
    )


def _without_ratios(comparison: Comparison) -> Change:
    return Change(
        ratio=None,
        low=None,
        high=None,
        tail=comparison.tail,
        p_value=comparison.p_value,
        floor=comparison.floor,
        mde=None,
        explained=comparison.explained,
        is_from_zero=comparison.is_from_zero,
        is_below_zero=not comparison.is_from_zero,
    )


def _gaps(metric: Metric, trials: TrialSet) -> tuple[Gap, ...]:
    faults = _by_reason(invalid_trials(trials, metric))
    absent = _by_reason(missing_reasons(trials, metric))
    return (
        *(Gap(reason=reason, trials=numbers, is_fault=True) for reason, numbers in faults.items()),
        *(Gap(reason=reason, trials=numbers) for reason, numbers in absent.items()),
    )


def _by_reason(reasons: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    grouped: dict[str, tuple[int, ...]] = {}
    for index, reason in reasons.items():
        grouped[reason] = (*grouped.get(reason, ()), index + 1)
    return grouped


def report_version(trials: TrialSet, *, label: str, file: str = "") -> Version:
    """Facts about the run of a version."""
    return Version(
        label=label,
        commit=trials.commit,
        started_at=trials.started_at,
        asked=trials.spec.trials,
        trials=len(trials.trials),
        successes=trials.successes,
        incomplete=trials.incomplete,
        stack=trials.stack,
        recorder=trials.recorder,
        host_class=trials.fingerprint.host_class,
        discarded_events=trials.discarded_events,
        file=file,
        failures=_failures(trials),
        loads=tuple(Load(summary=str(load["summary"]), shortfall=str(load["shortfall"])) for load in trials.loads),
        deadlines=summarize_deadlines(trials),
        surroundings=report_surroundings(trials.interference),
        repeated=tuple(_describe_repetition(each) for each in trials.repeated),
        reset_failures=tuple(_reset_failures(trials)),
    )


def _describe_repetition(trial: MotionTrial) -> str:
    load = describe_interference(trial.interference)
    return f"trial {trial.index + 1} ({load})" if load else f"trial {trial.index + 1}"


def _reset_failures(trials: TrialSet) -> Iterator[str]:
    for trial in (*trials.motions, *trials.repeated):
        if trial.reset_failure:
            yield f"after trial {trial.index + 1}, {trial.reset_failure}"


def report_surroundings(found: Interference | None) -> Surroundings | None:
    """Interference in numbers and words; ``None`` if it was not measured."""
    if found is None:
        return None
    facts = {name: value for name, value in asdict(found).items() if name != "programs"}
    return Surroundings(summary=describe_interference(found), programs=tuple(found.programs), **facts)


def _failures(trials: TrialSet) -> tuple[Failure, ...]:
    grouped: dict[tuple[str, int | None, str, str], list[int]] = {}
    for trial in trials.trials:
        if not trial.succeeded:
            kind = trial.outcome.value, trial.moveit_code, trial.goal, trial.message
            grouped.setdefault(kind, []).append(trial.index + 1)
    return tuple(
        Failure(outcome=outcome, code=code, goal=goal, message=message, trials=tuple(numbers))
        for (outcome, code, goal, message), numbers in grouped.items()
    )


def report_differences(head: TrialSet, base: TrialSet) -> tuple[Difference, ...]:
    """Differences in machine, kernel and package versions, observers and inherited influences, and settings."""
    versions = find_differences(head.fingerprint, base.fingerprint)
    machines = (("machine", base.fingerprint.hostname or "unknown", head.fingerprint.hostname or "unknown"),)
    watched = (("watched by", base.watched or "nothing", head.watched or "nothing"),)
    names = sorted({*base.influences, *head.influences})
    inherited = ((name, base.influences.get(name, "unset"), head.influences.get(name, "unset")) for name in names)
    return (
        *(_difference(DifferenceKind.ENVIRONMENT, *each) for each in machines if each[1] != each[2]),
        *(_difference(DifferenceKind.ENVIRONMENT, *each) for each in versions),
        *(_difference(DifferenceKind.ENVIRONMENT, *each) for each in (*watched, *inherited) if each[1] != each[2]),
        *setting_differences(_settings(head), _settings(base)),
    )


def setting_differences(head: Mapping[str, object], base: Mapping[str, object]) -> tuple[Difference, ...]:
    """Differences between settings that may be nested, each by its dotted name."""
    before, after = _flat(base), _flat(head)
    both = [(name, before.get(name, "absent"), after.get(name, "absent")) for name in {**after, **before}]
    return tuple(_difference(DifferenceKind.SETTING, *each) for each in both if each[1] != each[2])


def _settings(trials: TrialSet) -> dict[str, object]:
    """Settings of stack and loads; rounds of instruments have neither."""
    if trials.trial_kind is TrialKind.ROUND:
        return {}
    return {**asdict(trials.spec.stack), **{load.KIND: vars(load) for load in trials.spec.loads}}


def _difference(kind: DifferenceKind, name: str, base: object, head: object) -> Difference:
    return Difference(kind=kind, name=name, base=str(base), head=str(head))


def _flat(settings: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested settings by dotted name."""
    flat: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def report_interleaving(head: TrialSet, base: TrialSet, drifts: tuple[Drift, ...]) -> Interleaving | None:
    """The order of stack starts, if the versions were interleaved."""
    if not head.is_interleaved_with(base):
        return None
    starts = sorted({*_starts(head, "head"), *_starts(base, "base")})
    return Interleaving(blocks=len(starts), order=tuple(version for _, version in starts), drifts=drifts)


def _starts(trials: TrialSet, version: str) -> Iterator[tuple[int, str]]:
    return ((trial.block, version) for trial in trials.trials)


def report_drifts(found: Sequence[drift.Drift]) -> tuple[Drift, ...]:
    """Changes of metrics over a session."""
    return tuple(
        Drift(metric=each.metric, change=each.change, p_value=each.p_value, is_notable=each.is_notable)
        for each in found
    )


def report_additions(trials: TrialSet) -> Additions | None:
    """Looks at a run that can be extended."""
    if not trials.looks:
        return None
    looks = tuple(_look(look) for look in trials.looks)
    limit = None if trials.last_look is None else _look(trials.last_look)
    return Additions(looks=looks, limit=limit, added=max(len(trials.trials), looks[-1].head) - looks[0].head)


def _look(look: Look) -> LookReport:
    return LookReport(head=look.head, base=look.base)
