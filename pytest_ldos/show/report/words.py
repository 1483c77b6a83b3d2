"""Sentences on the numbers of a document, common to all formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.base.text import LARGEST_EFFECT, counted, format_effect, format_quantity, format_ratio, ns_to_ms
from pytest_ldos.judge.drift import FEWEST_BLOCKS
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.summary import Deadline, Score
from pytest_ldos.show.page.model import ABSENT
from pytest_ldos.show.report.document import (
    Additions,
    CalibrationReport,
    Change,
    Difference,
    DifferenceKind,
    Document,
    Drift,
    Interleaving,
    MetricReport,
    PathReport,
    Sample,
    Section,
    Segment,
    Surroundings,
    Version,
)
from pytest_ldos.show.report.sentences import describe_origins, qualified

_MOST: Final = 3
"""Most segments named for one path."""

_SMALLEST_SHARE: Final = 0.05
_SMALLEST_EFFECT: Final = 0.05
"""Least relative change at which a path without a metric is mentioned."""


def moved_paths(section: Section) -> Iterator[tuple[str, PathReport]]:
    """Paths to mention with their names: those of changed metrics, then others."""
    for metric in section.metrics:
        if metric.verdict is not None and metric.verdict.is_change:
            yield from ((metric.name, path) for path in section.paths if metric.name in path.metrics)
    yield from ((f"path {path.path}", path) for path in section.paths if not path.metrics and _has_moved(path.whole))


def describe_paths(section: Section) -> tuple[str, ...]:
    """A sentence for each changed path, with its change and segments."""
    return tuple(describe_path(path, name) for name, path in moved_paths(section))


def _has_moved(whole: Segment) -> bool:
    return whole.is_certain and abs(whole.change_ns) > _SMALLEST_EFFECT * whole.base_ns


def describe_path(path: PathReport, name: str) -> str:
    """A sentence on one path: its change, and the segments with most of it."""
    named = [each for each in path.segments if each.share >= _SMALLEST_SHARE and each.is_certain][:_MOST]
    where = "; ".join(f"{100 * each.share:.0f} % of it in {each.name}, {format_change(each)}" for each in named)
    return f"{name} {format_change(path.whole)}: {where or 'no single segment stands out'}"


def format_change(segment: Segment) -> str:
    """``+5.04 ms [+5.00, +5.08]``."""
    sign = "+" if segment.change_ns >= 0 else "-"
    low, high = _bound(segment.low_ns, "-∞"), _bound(segment.high_ns, "+∞")
    return f"{sign}{format_quantity(abs(ns_to_ms(segment.change_ns)), 'ms')} [{low}, {high}]"


def _bound(bound_ns: float | None, without: str) -> str:
    return without if bound_ns is None else f"{ns_to_ms(bound_ns):+.3g}"


def percent(fraction: float | None) -> str:
    """``12.5 %``."""
    return ABSENT if fraction is None else f"{100 * fraction:.1f} %"


def median_of(metric: MetricReport, sample: Sample | None) -> str:
    """``14.2 ms``, after ``≈`` if it is approximate."""
    if sample is None or sample.median is None:
        return ABSENT
    return qualified(format_quantity(sample.median, metric.unit), metric.origins)


def change_of(change: Change) -> str:
    """``+31.2 %``, or ``from 0`` or ``below 0`` if there is no ratio."""
    if not change.has_ratio:
        return "from 0" if change.is_from_zero else "below 0"
    return "+∞" if change.ratio is None else format_ratio(change.ratio)


def mde_of(change: Change) -> str:
    """``12.5 %``, ``> 1000 %``, or a dash if there is no MDE."""
    return ABSENT if change.mde is None else format_effect(change.mde)


def interval_of(change: Change) -> str:
    """``+25.0 % … +37.1 %``, ``-81.5 % … > 1000 %``, or a dash if unbounded."""
    if change.is_endless:
        return "+∞ … +∞"
    if change.low is None and change.high is None:
        return ABSENT
    low = "-∞" if change.low is None else format_ratio(change.low)
    return f"{low} … {'+∞' if change.high is None else _upper(change.high)}"


def _upper(ratio: float) -> str:
    """The upper end of an interval; large numbers become ``> 1000 %``."""
    return format_ratio(ratio) if ratio - 1 <= LARGEST_EFFECT else format_effect(ratio - 1)


def verdict_word(verdict: Verdict | None) -> str:
    """A verdict in words, such as ``not comparable``."""
    return "not judged" if verdict is None else verdict.word


def describe_success(section: Section) -> str:
    """``10 of 10 trials succeeded``."""
    return "nothing measured" if section.head is None else success_of(section.head)


def describe_outcome(section: Section) -> str:
    """``10 of 10 trials succeeded; not judged here: T3 (+12.0 %)``, to accompany a verdict."""
    return "; ".join((describe_success(section), *describe_caveats(section)))


def describe_caveats(section: Section) -> Iterator[str]:
    """Caveats of a verdict: metrics that were not judged, and medians that differ although the metric passed."""
    unjudged = [metric for metric in section.metrics if metric.verdict is Verdict.NOT_JUDGED]
    if unjudged:
        yield f"not judged here: {', '.join(map(_with_change, unjudged))}"
    yield from (
        f"{metric.name} passed with {gap}" for metric in section.metrics if (gap := describe_median_gap(metric))
    )
    for metric in section.metrics:
        for aspect in metric.aspects:
            if aspect.is_suspect:
                yield f"{metric.name} may have become worse: {aspect.words}, p = {aspect.p_value:.1g}"


def describe_median_gap(metric: MetricReport) -> str:
    """``a median 3.1 times as high``, for a metric that passed although its medians differ by more than the MDE."""
    if metric.change is None or metric.change.median_ratio is None:
        return ""
    return f"a median {metric.change.median_ratio:.2g} times as {'high' if metric.better is Better.LOWER else 'low'}"


def _with_change(metric: MetricReport) -> str:
    return metric.name if metric.change is None else f"{metric.name} ({change_of(metric.change)})"


def success_of(version: Version) -> str:
    """``10 of 10 trials succeeded``."""
    return f"{version.successes} of {version.trials} trials succeeded" if version.trials else "no trial was made"


def shown_metrics(section: Section) -> tuple[MetricReport, ...]:
    """Metrics of a scenario, the most important first; none if all numbers are missing."""
    return tuple(sorted(section.metrics, key=_lightness)) if any(map(_has_number, section.metrics)) else ()


def _lightness(metric: MetricReport) -> tuple[bool, int]:
    """Order of metrics: by severity of their verdicts, then those that are only shown."""
    return metric.verdict is Verdict.SHOWN, -(0 if metric.verdict is None else metric.verdict.severity)


def _has_number(metric: MetricReport) -> bool:
    return metric.change is not None or (metric.head is not None and metric.head.median is not None)


def moved_metrics(section: Section) -> list[MetricReport]:
    """Metrics that became worse or better, in order."""
    return [metric for metric in section.metrics if metric.verdict is not None and metric.verdict.is_change]


def summarize(section: Section) -> str:
    """``T1 +43.2 %``: changes, or else the first reason, then caveats."""
    changes = ", ".join(_short_move(each, each.change) for each in moved_metrics(section) if each.change)
    is_calm = section.verdict is Verdict.PASSED or not section.reasons
    return "; ".join((changes or ("nothing moved" if is_calm else section.reasons[0]), *describe_caveats(section)))


def _short_move(metric: MetricReport, change: Change) -> str:
    """``T1 +43.2 %``, with other aspects that regressed."""
    aspects = [each.words for each in metric.aspects if each.is_regressed]
    return "; ".join((f"{metric.name} {change_of(change)}", *aspects))


def describe_move(metric: MetricReport) -> str:
    """``T1 planning latency +43.2 % (+26.8 % … +65.7 %), 12.0 ms → 16.6 ms``, with each other aspect that regressed."""
    medians = f"{median_of(metric, metric.base)} → {median_of(metric, metric.head)}"
    aspects = (each.words for each in metric.aspects if each.is_regressed)
    return "; ".join((f"{metric.name} {metric.title}{_change_and_interval(metric.change)}, {medians}", *aspects))


def _change_and_interval(change: Change | None) -> str:
    if change is None:
        return ""
    return f" {change_of(change)}" if not change.has_ratio else f" {change_of(change)} ({interval_of(change)})"


def describe_mdes(section: Section) -> Iterator[str]:
    """The MDEs, metrics without one, and missing values."""
    compared = [metric for metric in section.metrics if metric.change is not None and metric.change.has_ratio]
    underpowered = [metric for metric in compared if metric.change and metric.change.mde is None]
    seeing = [(metric, metric.change.mde) for metric in compared if metric.change and metric.change.mde]
    if seeing:
        yield f"MDE: {', '.join(f'{metric.name} {format_effect(mde)}' for metric, mde in seeing)}"
    if underpowered:
        yield f"no MDE of {', '.join(metric.name for metric in underpowered)}: too few trials"
    yield from (metric.incomparable for metric in section.metrics if metric.incomparable)
    yield from describe_gaps(section)


def describe_gaps(section: Section) -> Iterator[str]:
    """``T1, T3: 2 of 10 trials not to be trusted: …``: reasons for missing numbers of metrics."""
    names: dict[str, list[str]] = {}
    for metric in section.metrics:
        names.setdefault(_why_absent(section, metric), []).append(metric.name)
    yield from (f"{', '.join(some)}: {reason}" for reason, some in names.items() if reason)


def _why_absent(section: Section, metric: MetricReport) -> str:
    faults = [gap for gap in metric.gaps if gap.is_fault]
    if faults and section.head is not None:
        count = sum(len(gap.trials) for gap in faults)
        return f"{count} of {section.head.trials} trials not to be trusted: {faults[0].reason}"
    if metric.gaps:
        return metric.gaps[0].reason
    if metric.head is not None and metric.head.median is None:
        return "no trial succeeded"
    return ""


def describe_sources(section: Section) -> tuple[str, ...]:
    """Sentences on sources that differ from the metrics' definitions."""
    return describe_origins({metric.name: metric.origins for metric in section.metrics})


def title_of(stacks: Iterable[str]) -> str:
    """Title of a report, before its verdict: ``ldos on ros2-mock:``."""
    named = " and ".join(dict.fromkeys(stacks))
    return f"ldos on {named}:" if named else "ldos:"


def describe_setting(document: Document) -> tuple[str, ...]:
    """Stack, tracer, host and commit of a run, for each stack."""
    first = {section.stack: section.head for section in reversed(document.sections) if section.head is not None}
    lines = (line for stack in document.stacks or first if stack in first for line in _describe_head(first[stack]))
    return tuple(dict.fromkeys(lines))


def _describe_head(head: Version) -> tuple[str, str]:
    commit = f", commit {head.commit}" if head.commit else ""
    return f"stack: {head.stack}", f"tracer: {head.recorder}; host class: {head.host_class}{commit}"


def describe_measurement(section: Section) -> Iterator[str]:
    """Circumstances of the comparison: loads, deadlines, differences, the base, and drift of the machine."""
    if section.head is not None:
        yield from (load.summary for load in section.head.loads)
        yield from (_describe_deadline(each, section.head) for each in section.head.deadlines)
    yield from _describe_loads(section)
    yield from _describe_reset_failures(section)
    yield from _describe_differences(section)
    yield from _describe_incomplete(section)
    yield from _describe_base(section.base)
    yield from section.notes
    yield from _describe_notable_drift(section.interleaving)


def describe_details(section: Section) -> Iterator[str]:
    """Further numbers of the comparison: score, stack starts, spread and rises, added trials, calibration."""
    yield from _describe_score(section.score)
    yield from describe_interleaving(section.interleaving)
    yield from describe_aspects(section)
    yield from describe_additions(section.additions)
    yield from describe_calibration(section.calibration)


def describe_load(surroundings: Surroundings | None) -> str:
    """``meanwhile, others used 1.6 of 2 CPUs: cargo, cc1plus``; empty if negligible."""
    return f"meanwhile, {surroundings.summary}" if surroundings is not None and surroundings.summary else ""


def _describe_loads(section: Section) -> Iterator[str]:
    """Interference during the trials of each version, unless it is among the reasons."""
    for version in (section.head, section.base):
        load = "" if version is None else describe_load(version.surroundings)
        if version is not None and load and not (version is section.head and load in section.reasons):
            yield f"{version.label}: {load}"
        if version is not None and version.repeated:
            made = counted(len(version.repeated), "trial was made again", "trials were made again")
            yield f"{version.label}: {made} because others used the machine: {'; '.join(version.repeated)}"


def _describe_reset_failures(section: Section) -> Iterator[str]:
    for version in (section.head, section.base):
        if version is not None and version.reset_failures:
            failures = "; ".join(version.reset_failures)
            yield f"{version.label}: {failures}; the second attempt succeeded"


def _describe_deadline(deadline: Deadline, head: Version) -> str:
    """``deadline of 'planning', 300 ms in 99 %: kept in 100.0 % of 10 passages; 10 of 10 trials kept to it``."""
    asked = f"deadline of '{deadline.path}', {deadline.ms:g} ms in {100 * deadline.share:g} %"
    if not deadline.passages:
        return f"{asked}: never passed"
    kept = f"kept in {percent(deadline.in_time / deadline.passages)} of {deadline.passages} passages"
    return f"{asked}: {kept}; {deadline.trials} of {head.trials} trials kept to it"


def _describe_incomplete(section: Section) -> Iterator[str]:
    """Number of trials, and why there are no more, unless the reasons include it."""
    version = section.head
    if version is not None and version.incomplete:
        is_known = any(version.incomplete in reason for reason in section.reasons)
        why = "" if is_known else f": {version.incomplete}"
        if version.trials >= version.asked:
            yield f"no more trials could be added{why}"
        elif version.trials:
            yield f"only {version.trials} of {version.asked} trials were made{why}"
        elif why:
            yield f"no trial was made{why}"


def _describe_base(base: Version | None) -> Iterator[str]:
    if base is not None:
        commit = f"commit {base.commit}, " if base.commit else ""
        place = f"{base.file} " if base.file else ""
        yield f"{base.label}: {place}({commit}{counted(base.trials, 'trial')}, {base.started_at})"


def _describe_score(score: Score | None) -> Iterator[str]:
    if score is not None and score.value is not None:
        without = f", without {', '.join(score.without)}" if score.without else ""
        yield f"overall score: {score.value:.3f} × baseline (displayed, not gated{without})"


def _describe_differences(section: Section) -> Iterator[str]:
    words = {
        DifferenceKind.ENVIRONMENT: "environment differs",
        DifferenceKind.SETTING: "settings differ from the baseline's",
    }
    for kind, beginning in words.items():
        found = [each for each in section.differences if each.kind is kind]
        if found:
            yield f"{beginning}: {list_differences(found)}"


def list_differences(differences: Iterable[Difference]) -> str:
    """``velocity_scaling 0.5 → 0.3, goals reach → far``."""
    return ", ".join(f"{each.name} {each.base} → {each.head}" for each in differences)


def describe_interleaving(interleaving: Interleaving | None) -> Iterator[str]:
    """Order of the stack starts, and the trend of each metric over them."""
    if interleaving is None:
        return
    yield f"order of the {interleaving.blocks} stack starts: {' '.join(interleaving.order)}"
    if interleaving.drifts:
        yield f"drift over {interleaving.blocks} blocks: {', '.join(map(_describe_drift, interleaving.drifts))}"
    elif interleaving.blocks < FEWEST_BLOCKS:
        yield f"drift: {interleaving.blocks} blocks are too few to tell, {FEWEST_BLOCKS} are needed"


def _describe_notable_drift(interleaving: Interleaving | None) -> Iterator[str]:
    drifts = () if interleaving is None else interleaving.drifts
    notable = [_describe_drift(each) for each in drifts if each.is_notable]
    if notable:
        yield f"the machine drifted during the session: {', '.join(notable)}"


def _describe_drift(drift: Drift) -> str:
    return f"{drift.metric} {format_ratio(1 + drift.change)} (p = {drift.p_value:.2g})"


def describe_aspects(section: Section) -> Iterator[str]:
    """``T1: spread × 1.1 (…), p = 0.3``: tested aspects of each metric other than its location."""
    for metric in section.metrics:
        if metric.aspects:
            yield f"{metric.name}: {'; '.join(f'{each.words}, p = {each.p_value:.1g}' for each in metric.aspects)}"


def describe_additions(additions: Additions | None) -> Iterator[str]:
    """Looks at the comparison, and the added trials."""
    if additions is None:
        return
    looks = ", ".join(f"{look.head} against {look.base}" for look in additions.looks)
    limit = "" if additions.limit is None else f" of at most {additions.limit.head}"
    count = len(additions.looks)
    in_all = additions.looks[0].head + additions.added if additions.looks else 0
    added = counted(additions.added, "trial was added", "trials were added")
    yield f"{added}, {in_all}{limit} in all; {counted(count, 'look')} at: {looks}"


def describe_calibration(calibration: CalibrationReport | None) -> Iterator[str]:
    """Calibration from which the floors were taken."""
    if calibration is None:
        return
    rests_on = f"{counted(calibration.starts, 'start')}, {counted(calibration.trials, 'trial')}, {calibration.made_at}"
    yield f"calibration: {calibration.file} ({rests_on})"
