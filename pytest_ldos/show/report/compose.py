"""Composes a document from trials and verdicts, without computing new numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median
from typing import Final

import numpy as np

from pytest_ldos.base.files import copied
from pytest_ldos.base.series import Series
from pytest_ldos.host.fingerprint import find_differences
from pytest_ldos.host.interference import Interference, describe_interference
from pytest_ldos.judge.baseline.store import Calibrated, CalibrationLookup, Uncalibrated
from pytest_ldos.judge.gate.reasons import AcceptedChange
from pytest_ldos.judge.gate.verdict import Comparison, Finding, LateRise, Tone, Verdict
from pytest_ldos.judge.judging import Judged
from pytest_ldos.judge.summary import (
    TAIL,
    CaseNumbers,
    Drift,
    Explanation,
    SegmentChange,
    Summary,
    path_of,
    share_on_cpus,
    slowest_stages,
    summarize_deadlines,
)
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialKind, TrialSet, invalid_trials, missing_reasons, sources_of
from pytest_ldos.record.profiles import Evidence
from pytest_ldos.show.page.formats import finite
from pytest_ldos.show.report import document, reasons
from pytest_ldos.show.report.sentences import (
    Untried,
    advise,
    describe_parts,
    describe_run_variation,
    name_unmatched,
    report_origins,
)
from pytest_ldos.show.report.words import describe_load


def _report_metric(metric: Metric, judged: Judged) -> document.MetricReport:
    head, result = judged.head, judged.result
    of_head, of_base = (summaries.get(metric.name) for summaries in (judged.head_summaries, judged.base_summaries))
    comparison = result.comparison(metric.name)
    incomparable = result.incomparable.get(metric.name)
    own = None if incomparable is None else Verdict.NOT_COMPARABLE
    cases, stages = judged.by_case.get(metric.name, ()), slowest_stages(head, path_of(metric))
    faults, absent = _by_reason(invalid_trials(head, metric)), _by_reason(missing_reasons(head, metric))
    return copied(
        document.MetricReport,
        metric,
        verdict=own if comparison is None else comparison.verdict,
        head=_sample(of_head, result.head_series.get(metric.name)),
        base=None if comparison is None else _sample(of_base, result.base_series.get(metric.name)),
        change=None if comparison is None else _change(comparison, judged.median_ratio(metric)),
        origins=report_origins(sources_of(head, metric)),
        gaps=(
            *(document.Gap(reason=reason, trials=numbers, is_fault=True) for reason, numbers in faults.items()),
            *(document.Gap(reason=reason, trials=numbers) for reason, numbers in absent.items()),
        ),
        incomparable="" if incomparable is None else reasons.describe_reason(incomparable),
        aspects=() if comparison is None else tuple(map(_aspect, comparison.findings)),
        cases=tuple(_case(each, comparison, stages.get(each.case, "")) for each in cases),
    )


def _case(found: CaseNumbers, comparison: Comparison | None, stage: str) -> document.CaseReport:
    shift, change = found.shift, None
    if shift is not None and shift.estimate > -math.inf and comparison is not None:
        ratio, low, high = (math.exp(each) for each in (shift.estimate, shift.low, shift.high))
        change = document.Change(
            ratio=finite(ratio),
            low=finite(low) or None,
            high=finite(high),
            tail=TAIL,
            p_value=found.p_value,
            floor=comparison.floor,
            mde=None,
            is_endless=low == math.inf,
        )
    low, high = np.quantile(found.head, (0.25, 0.75), method="inverted_cdf").tolist()
    return document.CaseReport(
        name=found.case,
        trials=found.head.size,
        successes=int(np.isfinite(found.head).sum()),
        median=finite(median(found.head.tolist())),
        low=finite(low),
        high=finite(high),
        base_trials=found.base.size,
        base_successes=int(np.isfinite(found.base).sum()),
        base_median=finite(median(found.base.tolist())) if found.base.size else None,
        change=change,
        stage=stage,
    )


def _aspect(found: Finding) -> document.AspectReport:
    aspect = found.shape.aspect
    of_base, of_head = (None, aspect.ratio) if isinstance(aspect, LateRise) else (aspect.base, aspect.head)
    base, head = None if of_base is None else finite(of_base), finite(of_head)
    words = reasons.describe_aspect(aspect)
    return copied(document.AspectReport, found, found.shape, aspect, words=words, base=base, head=head)


def _sample(summary: Summary | None, series: Series | None) -> document.Sample | None:
    if series is None or summary is None:
        return None
    points = zip(series.trials, series.blocks, series.strata, series.values, strict=False)
    return copied(
        document.Sample,
        summary,
        cv=finite(summary.cv),
        points=tuple(
            document.Point(trial=trial + 1, block=block, goal=goal, value=finite(value))
            for trial, block, goal, value in points
        ),
    )


def _change(comparison: Comparison, median_ratio: float | None) -> document.Change:
    has_ratio = comparison.has_ratio
    is_open_below = comparison.low <= 0 and math.isinf(comparison.high)
    return copied(
        document.Change,
        comparison,
        ratio=finite(comparison.ratio) if has_ratio else None,
        low=finite(comparison.low) if has_ratio and not is_open_below else None,
        high=finite(comparison.high) if has_ratio else None,
        mde=finite(comparison.mde) if has_ratio else None,
        is_endless=has_ratio and comparison.low == math.inf,
        is_below_zero=not has_ratio and not comparison.is_from_zero,
        median_ratio=median_ratio if has_ratio else None,
    )


def _by_reason(reasons: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    grouped: dict[str, tuple[int, ...]] = {}
    for index, reason in reasons.items():
        grouped[reason] = (*grouped.get(reason, ()), index + 1)
    return grouped


def report_version(trials: TrialSet, *, label: str, file: str = "") -> document.Version:
    interference = ((each.index + 1, describe_interference(each.interference)) for each in trials.repeated)
    resets = ((each.index + 1, each.reset_failure) for each in (*trials.motions, *trials.repeated))
    share, is_time = share_on_cpus(trials)
    return copied(
        document.Version,
        trials,
        trials.fingerprint,
        label=label,
        asked=trials.spec.trials,
        trials=len(trials.trials),
        file=file,
        failures=_failures(trials),
        loads=tuple(
            document.Load(summary=str(load["summary"]), shortfall=str(load["shortfall"])) for load in trials.loads
        ),
        deadlines=summarize_deadlines(trials),
        surroundings=report_surroundings(trials.interference),
        repeated=tuple(f"trial {number} ({load})" if load else f"trial {number}" for number, load in interference),
        reset_failures=tuple(f"after trial {number}, {failure}" for number, failure in resets if failure),
        share_on_cpus=share,
        is_share_of_time=is_time,
    )


def report_surroundings(found: Interference | None) -> document.Surroundings | None:
    """Interference in numbers and words; ``None`` if it was not measured."""
    if found is None:
        return None
    facts = {name: value for name, value in asdict(found).items() if name != "programs"}
    return document.Surroundings(summary=describe_interference(found), programs=tuple(found.programs), **facts)


def _failures(trials: TrialSet) -> tuple[document.Failure, ...]:
    grouped: dict[tuple[str, int | None, str, str], list[int]] = {}
    for trial in trials.trials:
        if not trial.succeeded:
            kind = trial.outcome.value, trial.moveit_code, trial.goal, trial.message
            grouped.setdefault(kind, []).append(trial.index + 1)
    return tuple(
        document.Failure(outcome=outcome, code=code, goal=goal, message=message, trials=tuple(numbers))
        for (outcome, code, goal, message), numbers in grouped.items()
    )


def report_differences(head: TrialSet, base: TrialSet) -> tuple[document.Difference, ...]:
    """Differences in machine, kernel and package versions, observers, influences, environment, and settings."""
    versions = find_differences(head.fingerprint, base.fingerprint)
    is_known = bool(head.environment and base.environment)  # which older records lack
    before, now = ({**each.influences, **(each.environment if is_known else {})} for each in (base, head))
    names = sorted({*before, *now} - head.fingerprint.versions.keys())  # they include variables of the middleware
    found = (
        ("machine", base.fingerprint.hostname or "unknown", head.fingerprint.hostname or "unknown"),
        *versions,
        ("watched by", base.watched or "nothing", head.watched or "nothing"),
        *((name, before.get(name, "unset"), now.get(name, "unset")) for name in names),
    )
    return (
        *(_difference(document.DifferenceKind.ENVIRONMENT, *each) for each in found if each[1] != each[2]),
        *setting_differences(_settings(head), _settings(base)),
    )


def setting_differences(head: Mapping[str, object], base: Mapping[str, object]) -> tuple[document.Difference, ...]:
    """Differences between settings that may be nested, each by its dotted name."""
    before, after = _flat(base), _flat(head)
    both = [(name, before.get(name, "absent"), after.get(name, "absent")) for name in {**after, **before}]
    return tuple(_difference(document.DifferenceKind.SETTING, *each) for each in both if each[1] != each[2])


def _settings(trials: TrialSet) -> dict[str, object]:
    """Settings of stack and loads; rounds of instruments have neither."""
    if trials.trial_kind is TrialKind.ROUND:
        return {}
    return {**asdict(trials.spec.stack), **{load.KIND: vars(load) for load in trials.spec.loads}}


def _difference(kind: document.DifferenceKind, name: str, base: object, head: object) -> document.Difference:
    return document.Difference(kind=kind, name=name, base=str(base), head=str(head))


def _flat(settings: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def report_interleaving(head: TrialSet, base: TrialSet, drifts: tuple[Drift, ...]) -> document.Interleaving | None:
    if not head.is_interleaved_with(base):
        return None
    starts = {(trial.block, version) for trials, version in ((head, "head"), (base, "base")) for trial in trials.trials}
    order = tuple(version for _, version in sorted(starts))
    return document.Interleaving(blocks=len(order), order=order, drifts=drifts)


def report_additions(trials: TrialSet) -> document.Additions | None:
    if not trials.looks:
        return None
    looks = trials.looks
    added = max(len(trials.trials), looks[-1].head) - looks[0].head
    return document.Additions(looks=looks, limit=trials.last_look, added=added)


THIS_RUN: Final = "this run"


def compose(sections: Sequence[document.Section]) -> document.Document:
    """A report with the current time."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return document.Document(sections=tuple(sections), made_at=made_at, made_by=f"pytest-ldos {version('pytest-ldos')}")


def compose_section(judged: Judged, *, notes: Sequence[str] = (), evidence: Evidence | None = None) -> document.Section:
    trials, result, base = judged.head, judged.result, judged.base
    is_running = trials.spec.stack.ros2.is_running
    metrics = tuple(_report_metric(metric, judged) for metric in judged.metrics)
    paths = report_paths(judged.explained, trials.metrics)
    differences = () if base is None else report_differences(trials, base)
    head = report_version(trials, label=THIS_RUN)
    inherited = ", ".join(f"{name} {value}" for name, value in trials.influences.items())
    section = document.Section(
        scenario=trials.scenario,
        verdict=result.verdict,
        reasons=name_load(tuple(map(reasons.describe_reason, result.reasons)), result.verdict, head.surroundings),
        accepted=tuple(reasons.describe_reason(each) for each in result.reasons if isinstance(each, AcceptedChange)),
        undecided=tuple(map(reasons.describe_more_trials, result.more_trials_because)),
        advice=advise(
            result.verdict,
            metrics,
            paths,
            trials=trials,
            is_inconclusive=bool(result.more_trials_because),
            base_needs=result.base_needs,
            differences=differences,
            untried=Untried(
                more_trials=not trials.spec.max_trials,
                interleaving=not (base is None or is_running or trials.is_interleaved_with(base)),
                calibration=not isinstance(judged.calibration, Calibrated),
            ),
        ),
        head=head,
        differences=differences,
        metrics=metrics,
        paths=paths,
        additions=report_additions(trials),
        calibration=report_calibration(judged.calibration),
        notes=(
            *_describe_commit(trials, THIS_RUN),
            *([f"inherited by the measured processes: {inherited}"] if inherited else []),
            *describe_uncalibrated(judged.calibration),
            *name_unmatched(each.measurements for each in trials.trials),
            *notes,
        ),
        stack="" if trials.trial_kind is TrialKind.ROUND else trials.stack_kind,
        is_suite=judged.is_suite,
        evidence=evidence,
    )
    return section if base is None else _with_base(section, judged, base)


def name_load(reasons: Sequence[str], verdict: Verdict, surroundings: document.Surroundings | None) -> tuple[str, ...]:
    """The reasons for a verdict; if it is not good, the first one is followed by other use of the machine."""
    load = describe_load(surroundings) if verdict.tone is not Tone.GOOD else ""
    return (*reasons[:1], *([load] if load else []), *reasons[1:])


def _with_base(section: document.Section, judged: Judged, base: TrialSet) -> document.Section:
    head = judged.head
    is_judged = head.trial_kind is TrialKind.MOTION and judged.calibration is not None
    variation = describe_run_variation(judged) if is_judged else ""
    return dataclasses.replace(
        section,
        base=report_version(base, label=judged.base_label, file=str(judged.base_file or "")),
        score=judged.score,
        interleaving=report_interleaving(head, base, judged.drifts),
        notes=(
            *section.notes,
            *_describe_commit(base, judged.base_label),
            *map(describe_parts, judged.parts),
            *([variation] if variation else []),
        ),
    )


def _describe_commit(trials: TrialSet, label: str) -> tuple[str, ...]:
    return (f"{label}: its commit is unknown: {trials.commit_unknown}",) if trials.commit_unknown else ()


def without_verdict(section: document.Section) -> document.Section:
    return dataclasses.replace(section, verdict=None, advice=())


def compose_infra(
    scenario: str, reasons: Sequence[str], *, stack: str = "", interference: Interference | None = None
) -> document.Section:
    """A scenario that could not be measured, on the requested kind of stack, and use of the machine by others."""
    advice = advise(Verdict.INFRA, (), ())
    named = name_load(reasons, Verdict.INFRA, report_surroundings(interference))
    return document.Section(scenario=scenario, verdict=Verdict.INFRA, reasons=named, advice=advice, stack=stack)


def report_paths(explained: Mapping[str, Explanation], metrics: Sequence[Metric]) -> tuple[document.PathReport, ...]:
    return tuple(
        document.PathReport(
            path=each.path,
            metrics=tuple(metric.name for metric in metrics if path_of(metric) == name),
            whole=_segment(each.whole),
            segments=tuple(_segment(change) for change in each.changes),
        )
        for name, each in explained.items()
    )


def _segment(change: SegmentChange) -> document.Segment:
    facts = vars(change) | {"low_ns": finite(change.low_ns), "high_ns": finite(change.high_ns)}
    return document.Segment(name=facts.pop("segment"), is_certain=change.is_certain, **facts)


def report_calibration(lookup: CalibrationLookup | None) -> document.CalibrationReport | None:
    if not isinstance(lookup, Calibrated):
        return None
    names, file = tuple(lookup.calibration.metrics), str(lookup.file)
    return copied(document.CalibrationReport, lookup.calibration, metrics=names, file=file)


def describe_uncalibrated(lookup: CalibrationLookup | None) -> tuple[str, ...]:
    """Sentence on a calibration that exists but is not used; empty if there is none."""
    other = lookup.other if isinstance(lookup, Uncalibrated) else None
    return () if other is None else (reasons.describe_other_calibration(other),)
