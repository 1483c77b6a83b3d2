"""Sentences and badges on the numbers of a document, common to all formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from pytest_ldos.base import text
from pytest_ldos.base.series import Better
from pytest_ldos.base.text import (
    LARGEST_EFFECT,
    counted,
    format_effect,
    format_quantity,
    format_ratio,
    ns_to_ms,
    percent,
    without_logs,
)
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.summary import FEWEST_BLOCKS, Deadline, Drift
from pytest_ldos.record.profiles import Evidence
from pytest_ldos.show.page.model import ABSENT, Badge, Block, Bullets, Column, Kind, Table, Tone
from pytest_ldos.show.page.model import Section as Shown
from pytest_ldos.show.report import document
from pytest_ldos.show.report.sentences import MOST_NAMED, SMALLEST_SHARE, describe_origins, qualified

_SMALLEST_EFFECT: Final = 0.05  # least relative change at which a path without a metric is mentioned


def moved_paths(section: document.Section) -> Iterator[tuple[str, document.PathReport]]:
    """Paths to mention with their names: those of changed metrics, then others.

    The first metric of a path is its latency; another one, such as T1mean, is only explained by it.
    """
    changed = {each.name for each in section.metrics if each.verdict is not None and each.verdict.is_change}
    for path in section.paths:
        if names := [each for each in path.metrics if each in changed]:
            yield names[0] if names[0] == path.metrics[0] else f"{names[0]}, by the path {path.path}:", path
    for path in section.paths:
        is_large = abs(path.whole.change_ns) > _SMALLEST_EFFECT * path.whole.base_ns
        if not path.metrics and path.whole.is_certain and is_large:
            yield f"path {path.path}", path


def describe_paths(section: document.Section) -> tuple[str, ...]:
    """A sentence on each path to mention, then on functions whose CPU time grew."""
    paths = (describe_path(path, name) for name, path in moved_paths(section))
    return (*paths, *(() if section.evidence is None else describe_evidence(section.evidence)))


def describe_evidence(evidence: Evidence) -> Iterator[str]:
    """``CPU time grew in move_group: check (planner.py) 0.1 % → 23.4 %, called by plan``, and the files that differ."""
    for each in evidence.grown:
        place = each.file if each.file.endswith(".py") else PurePath(each.file).name.partition(".so")[0]
        where = f" ({place})" if place else ""
        callers = f", called by {' → '.join(name[:100] for name in each.callers)}" if each.callers else ""
        shares = f"{percent(each.base)} → {percent(each.head)} of all CPU time"
        yield f"CPU time grew in {each.process}: {each.function[:100]}{where} {shares}{callers}"
    least = f": waiting, or computing less than {percent(evidence.smallest, None)} more"
    shown = "is from profiles, which are not judged" if evidence.grown else f"by function shows no difference{least}"
    yield f"CPU time {shown} ({evidence.tools}, {counted(evidence.starts, 'start')})"
    if evidence.files:
        yield f"changed files, in packages of these functions if there are any: {', '.join(evidence.files)}"


def describe_path(path: document.PathReport, name: str) -> str:
    """A sentence on one path: its change, and the segments with most of it."""
    named = [each for each in path.segments if each.share >= SMALLEST_SHARE and each.is_certain][:MOST_NAMED]
    if named and not (path.whole.is_certain and path.whole.change_ns * named[0].change_ns > 0):
        of_what = f"of what became {'longer' if named[0].change_ns > 0 else 'shorter'}"
    else:
        of_what = "of it"
    where = "; ".join(f"{percent(each.share, 0)} {of_what} in {each.name}, {format_change(each)}" for each in named)
    return f"{name} {format_change(path.whole)}: {where or 'no single segment stands out'}"


_MOST_CASES: Final = 3


def describe_cases(section: document.Section) -> Iterator[str]:
    """``T1 in 30 problems: -17.1 % (-20.0 % … -14.1 %), geometric mean; worst: into a box +203.1 %, …``."""
    noun = "problem" if section.is_suite else "goal"
    for metric in section.metrics:
        worst = [f"{each.name} {change_of(each.change)}" for each in metric.cases[:_MOST_CASES] if each.change]
        mean = ""
        if section.is_suite and metric.change is not None:
            unsolved = [each.name for each in metric.cases if None in {each.median, each.base_median}]
            more = " …" if len(unsolved) > _MOST_CASES else ""
            without = f", without {', '.join(unsolved[:_MOST_CASES])}{more}" if unsolved else ""
            mean = f"{change_of(metric.change)} ({interval_of(metric.change)}), geometric mean{without}; "
        if worst:
            yield f"{metric.name} in {counted(len(metric.cases), noun)}: {mean}worst: {', '.join(worst)}"
    if section.is_suite and section.cases:
        ordered = sorted(section.cases, key=_lost, reverse=True)[:_MOST_CASES]
        worst = [f"{each.name} {_solved(each)}" for each in ordered if _lost(each) > 0]
        base = f", {_solved(*section.cases, of='base_')} in the base" if section.base else ""
        yield f"solved: {_solved(*section.cases)}{base}{'; worst: ' if worst else ''}{', '.join(worst)}"


def _lost(case: document.CaseReport) -> float:
    """Share of the trials that succeeded in the base, or all without one, less that of this version."""
    before = case.base_successes / case.base_trials if case.base_trials else 1.0
    return before - case.successes / case.trials if case.trials else 0.0


def _solved(*cases: document.CaseReport, of: str = "") -> str:
    """``9 of 10``."""
    return " of ".join(str(sum(getattr(each, f"{of}{name}") for each in cases)) for name in ("successes", "trials"))


def cases_table(section: document.Section, metrics: Sequence[document.MetricReport], most: int | None = None) -> Table:
    """Planning problems, by default all, those in which the first metric is worst first, with outcomes and stages."""
    compared = any(each.change for metric in metrics for each in metric.cases)
    titles = ("base", "this run", "change", "interval") if compared else ("median", "quartiles")
    of_metrics = [
        Column(f"{metric.name} {title}" if len(metrics) > 1 else title, rank=_RANKS[title] + place)
        for place, metric in enumerate(metrics)
        for title in titles
    ]
    before = (Column("in the base", rank=6),) if compared else ()
    stage = Column("slowest stage", Kind.WORD, rank=3)
    columns = (Column("problem", Kind.WORD), Column("solved", rank=2), *before, *of_metrics, stage)
    by_name = [{each.name: each for each in metric.cases} for metric in metrics]
    outcomes = {each.name: each for cases in (*(metric.cases for metric in metrics), section.cases) for each in cases}
    rows = []
    for name in (each.name for metric in metrics[:1] for each in metric.cases[:most]):
        numbers = (_case_numbers(each, cases.get(name)) for each, cases in zip(metrics, by_name, strict=True))
        solved = _solved(outcomes[name]), *([_solved(outcomes[name], of="base_")] * compared)
        cells = (each[title] for each in numbers for title in titles)
        rows.append((name, *solved, *cells, outcomes[name].stage))
    shown = f"{most} of {len(section.cases)}" if most and most < len(section.cases) else "first"
    return Table(title=f"Planning problems, the worst {shown}", columns=columns, rows=tuple(rows))


_RANKS: Final = {"change": 1, "median": 1, "quartiles": 3, "this run": 4, "base": 7, "interval": 8}


def _case_numbers(metric: document.MetricReport, case: document.CaseReport | None) -> dict[str, str]:
    """Cells of a case by the titles of their columns."""
    values = [getattr(case, name, None) for name in ("low", "median", "high", "base_median")]
    low, middle, high, base = (ABSENT if each is None else format_quantity(each, metric.unit) for each in values)
    change = case and case.change
    moved = (change_of(change), interval_of(change)) if change else (ABSENT, ABSENT)
    plain = {"median": middle, "quartiles": f"{low} … {high}", "base": base, "this run": middle}
    return {**plain, "change": moved[0], "interval": moved[1]}


def format_change(segment: document.Segment) -> str:
    """``+5.04 ms [+5.00, +5.08]``."""
    sign = "+" if segment.change_ns >= 0 else "-"
    low, high = _bound(segment.low_ns, "-∞"), _bound(segment.high_ns, "+∞")
    return f"{sign}{format_quantity(abs(ns_to_ms(segment.change_ns)), 'ms')} [{low}, {high}]"


def _bound(bound_ns: float | None, without: str) -> str:
    return without if bound_ns is None else f"{ns_to_ms(bound_ns):+.3g}"


def known_percent(fraction: float | None) -> str:
    return ABSENT if fraction is None else percent(fraction)


def median_of(metric: document.MetricReport, sample: document.Sample | None) -> str:
    """``14.2 ms``, after ``≈`` if it is approximate."""
    if sample is None or sample.median is None:
        return ABSENT
    return qualified(format_quantity(sample.median, metric.unit), metric.origins)


def change_of(change: document.Change) -> str:
    """``+31.2 %``, or ``from 0`` or ``below 0`` if there is no ratio."""
    if not change.has_ratio:
        return "from 0" if change.is_from_zero else "below 0"
    return "+∞" if change.ratio is None else format_ratio(change.ratio)


def mde_of(change: document.Change) -> str:
    """``12.5 %``, ``> 1000 %``, or a dash if there is no MDE."""
    return ABSENT if change.mde is None else format_effect(change.mde)


def interval_of(change: document.Change) -> str:
    """``+25.0 % … +37.1 %``, ``-81.5 % … > 1000 %``, or a dash if unbounded."""
    if change.is_endless:
        return "+∞ … +∞"
    if change.low is None and change.high is None:
        return ABSENT
    low = "-∞" if change.low is None else format_ratio(change.low)
    if change.high is None:
        return f"{low} … +∞"
    is_large = change.high - 1 > LARGEST_EFFECT
    return f"{low} … {format_effect(change.high - 1) if is_large else format_ratio(change.high)}"


def numbers_of(change: document.Change | None) -> tuple[str, str, str]:
    """The change, its interval and its MDE; empty texts if the metric was not compared."""
    return ("", "", "") if change is None else (change_of(change), interval_of(change), mde_of(change))


def verdict_word(verdict: Verdict | None) -> str:
    return "not judged" if verdict is None else verdict.word


def describe_success(section: document.Section) -> str:
    """``10 of 10 trials succeeded``."""
    if section.head is None:
        return "nothing measured"
    trials = section.head.trials
    return f"{section.head.successes} of {trials} trials succeeded" if trials else "no trial was made"


def describe_outcome(section: document.Section) -> str:
    """``10 of 10 trials succeeded; not judged here: T3 (+12.0 %)``, to accompany a verdict."""
    return "; ".join((describe_success(section), *describe_caveats(section)))


def describe_caveats(section: document.Section) -> Iterator[str]:
    """Caveats of a verdict: metrics that were not judged, and medians that differ although the metric passed."""
    unjudged = [
        f"{metric.name} ({change_of(metric.change)})" if metric.change else metric.name
        for metric in section.metrics
        if metric.verdict is Verdict.NOT_JUDGED
    ]
    if unjudged:
        yield f"not judged here: {', '.join(unjudged)}"
    yield from (
        f"{metric.name} passed with {gap}" for metric in section.metrics if (gap := describe_median_gap(metric))
    )
    for metric in section.metrics:
        for aspect in metric.aspects:
            if aspect.is_suspect:
                yield f"{metric.name} may have become worse: {aspect.words}, p = {aspect.p_value:.1g}"


def describe_median_gap(metric: document.MetricReport) -> str:
    """``a median 3.1 times as high``, for a metric that passed although its medians differ by more than the MDE."""
    if metric.change is None or metric.change.median_ratio is None:
        return ""
    return f"a median {metric.change.median_ratio:.2g} times as {'high' if metric.better is Better.LOWER else 'low'}"


def shown_metrics(section: document.Section) -> tuple[document.MetricReport, ...]:
    """Metrics by severity of their verdicts, then those that are only shown; none if all numbers are missing."""

    def lightness(metric: document.MetricReport) -> tuple[bool, int]:
        return metric.verdict is Verdict.SHOWN, -(0 if metric.verdict is None else metric.verdict.severity)

    has_numbers = any(each.change or (each.head and each.head.median is not None) for each in section.metrics)
    return tuple(sorted(section.metrics, key=lightness)) if has_numbers else ()


def moved_metrics(section: document.Section) -> list[document.MetricReport]:
    return [metric for metric in section.metrics if metric.verdict is not None and metric.verdict.is_change]


def summarize(section: document.Section) -> str:
    """``T1 +43.2 %``: changes, or else the first reason, then caveats."""
    changes = ", ".join(
        "; ".join((f"{metric.name} {change_of(metric.change)}", *_regressed_aspects(metric)))
        for metric in moved_metrics(section)
        if metric.change and metric.verdict is not Verdict.ACCEPTED
    )
    found = (*([changes] if changes else []), *section.accepted)
    is_calm = section.verdict is Verdict.PASSED or not section.reasons
    return "; ".join((*(found or ["nothing moved" if is_calm else section.reasons[0]]), *describe_caveats(section)))


def overview_row(section: document.Section) -> tuple[Badge, str, str]:
    return badge_of(section.verdict), describe_success(section), summarize(section)


def _regressed_aspects(metric: document.MetricReport) -> list[str]:
    return [each.words for each in metric.aspects if each.is_regressed]


def describe_move(metric: document.MetricReport) -> str:
    """``T1 planning latency +43.2 % (+26.8 % … +65.7 %), 12.0 ms → 16.6 ms``, with each other aspect that regressed."""
    medians = f"{median_of(metric, metric.base)} → {median_of(metric, metric.head)}"
    change = f" {change_of(metric.change)}" if metric.change else ""
    interval = f" ({interval_of(metric.change)})" if metric.change and metric.change.has_ratio else ""
    return "; ".join((f"{metric.label}{change}{interval}, {medians}", *_regressed_aspects(metric)))


def describe_mdes(section: document.Section) -> Iterator[str]:
    mdes = [(each.name, each.change.mde) for each in section.metrics if each.change and each.change.has_ratio]
    known = [f"{name} {format_effect(mde)}" for name, mde in mdes if mde]
    unknown = [name for name, mde in mdes if mde is None]
    if known:
        yield f"MDE: {', '.join(known)}"
    if unknown:
        yield f"no MDE of {', '.join(unknown)}: too few trials"
    yield from (metric.incomparable for metric in section.metrics if metric.incomparable)
    yield from describe_gaps(section)


def describe_gaps(section: document.Section) -> Iterator[str]:
    """``T1, T3: 2 of 10 trials not to be trusted: …``: reasons for missing numbers of metrics."""
    names: dict[str, list[str]] = {}
    for metric in section.metrics:
        names.setdefault(_why_absent(section, metric), []).append(metric.name)
    yield from (f"{', '.join(some)}: {reason}" for reason, some in names.items() if reason)


def _why_absent(section: document.Section, metric: document.MetricReport) -> str:
    faults = [gap for gap in metric.gaps if gap.is_fault]
    if faults and section.head is not None:
        count = sum(len(gap.trials) for gap in faults)
        return f"{count} of {section.head.trials} trials not to be trusted: {faults[0].reason}"
    if metric.gaps:
        return metric.gaps[0].reason
    return "no trial succeeded" if metric.head is not None and metric.head.median is None else ""


def describe_sources(section: document.Section) -> tuple[str, ...]:
    return describe_origins({metric.name: metric.origins for metric in section.metrics})


def title_of(stacks: Iterable[str]) -> str:
    """Title of a report, before its verdict: ``ldos on ros2-mock:``."""
    named = " and ".join(dict.fromkeys(stacks))
    return f"ldos on {named}:" if named else "ldos:"


def describe_setting(whole: document.Document) -> tuple[str, ...]:
    """Stack, tracer, host and commit of a run, for each stack."""
    first = {section.stack: section.head for section in reversed(whole.sections) if section.head is not None}
    lines: list[str] = []
    for head in (first[stack] for stack in whole.stacks or first if stack in first):
        commit = f", commit {head.commit}" if head.commit else ""
        lines += [f"stack: {head.stack}", f"tracer: {head.recorder}; host class: {head.host_class}{commit}"]
    return tuple(dict.fromkeys(lines))


_DIFFERENCES: Final = {
    document.DifferenceKind.ENVIRONMENT: "environment differs",
    document.DifferenceKind.SETTING: "settings differ from the baseline's",
}
_BETWEEN_RUNS: Final = "between these runs, the environment changed"


def describe_measurement(section: document.Section) -> Iterator[str]:
    """Circumstances of the comparison: loads, deadlines, differences, the base, and drift of the machine."""
    if section.head is not None:
        yield from (load.summary for load in section.head.loads)
        yield from (_describe_deadline(each, section.head) for each in section.head.deadlines)
    yield from _describe_loads(section)
    for version in (section.head, section.base):
        if version is not None and version.stack_cpus:
            yield _describe_cpus(version)
        if version is not None and version.reset_failures:
            yield f"{version.label}: {'; '.join(version.reset_failures)}; the second attempt succeeded"
    for kind, beginning in _DIFFERENCES.items():
        if found := [each for each in section.differences if each.kind is kind]:
            is_setting = kind is document.DifferenceKind.SETTING
            yield f"{beginning if section.interleaving or is_setting else _BETWEEN_RUNS}: {list_differences(found)}"
    yield from _describe_incomplete(section)
    if section.base is not None:
        base = section.base
        commit, place = f"commit {base.commit}, " if base.commit else "", f"{base.file} " if base.file else ""
        yield f"{base.label}: {place}({commit}{counted(base.trials, 'trial')}, {base.started_at})"
    yield from section.notes
    drifts = () if section.interleaving is None else section.interleaving.drifts
    if notable := [_describe_drift(each) for each in drifts if each.is_notable]:
        yield f"the machine drifted during the session: {', '.join(notable)}"


def describe_details(section: document.Section) -> Iterator[str]:
    """Further numbers of the comparison: score, stack starts, spread and rises, added trials, calibration."""
    score = section.score
    if score is not None and score.value is not None:
        without = f", without {', '.join(score.without)}" if score.without else ""
        yield f"overall score: {score.value:.3f} × baseline (displayed, not gated{without})"
    yield from describe_interleaving(section.interleaving)
    for metric in section.metrics:
        if metric.aspects:
            yield f"{metric.name}: {'; '.join(f'{each.words}, p = {each.p_value:.1g}' for each in metric.aspects)}"
    yield from describe_additions(section.additions)
    yield from describe_calibration(section.calibration)


def describe_load(surroundings: document.Surroundings | None) -> str:
    """``meanwhile, others used 1.6 of 2 CPUs: cargo, cc1plus``; empty if negligible."""
    return f"meanwhile, {surroundings.summary}" if surroundings is not None and surroundings.summary else ""


def _describe_loads(section: document.Section) -> Iterator[str]:
    for version in (section.head, section.base):
        load = "" if version is None else describe_load(version.surroundings)
        if version is not None and load and not (version is section.head and load in section.reasons):
            yield f"{version.label}: {load}"
        if version is not None and version.repeated:
            made = counted(len(version.repeated), "trial was made again", "trials were made again")
            yield f"{version.label}: {made} because others used the machine: {'; '.join(version.repeated)}"


_MOVED: Final = ", below 99 %: a load or a program moved its threads, or a process of it began late"


def _describe_cpus(version: document.Version) -> str:
    """``stack on CPUs 2-3, all else on 0-1: 99.98 % of the stack's CPU time on its CPUs``."""
    others = f"all else on {version.other_cpus}" if version.other_cpus else "as all else, for no other CPU is left"
    if (share := version.share_on_cpus) is None:
        work = "nothing recorded shows where the stack ran"
    else:
        kind = "CPU time" if version.is_share_of_time else "events"
        work = f"{percent(share, 2)} of the stack's {kind} on its CPUs{_MOVED if share < 0.99 else ''}"
    return f"{version.label}: stack on CPUs {version.stack_cpus}, {others}: {work}"


def _describe_deadline(deadline: Deadline, head: document.Version) -> str:
    """``deadline of 'planning', 300 ms in 99 %: kept in 100.0 % of 10 passages; 10 of 10 trials kept to it``."""
    asked = f"deadline of '{deadline.path}', {deadline.ms:g} ms in {100 * deadline.share:g} %"
    if not deadline.passages:
        return f"{asked}: never passed"
    kept = f"kept in {percent(deadline.in_time / deadline.passages)} of {deadline.passages} passages"
    return f"{asked}: {kept}; {deadline.trials} of {head.trials} trials kept to it"


def _describe_incomplete(section: document.Section) -> Iterator[str]:
    """Number of trials, and why there are no more, unless the reasons include it."""
    version = section.head
    if version is not None and version.incomplete:
        cause = without_logs(version.incomplete)
        why = "" if any(cause in reason for reason in section.reasons) else f": {cause}"
        if version.trials >= version.asked:
            yield f"no more trials could be added{why}"
        elif version.trials:
            yield f"only {version.trials} of {version.asked} trials were made{why}"
        elif why:
            yield f"no trial was made{why}"


def list_differences(differences: Iterable[document.Difference]) -> str:
    """``velocity_scaling 0.5 → 0.3, goals reach → far``; pages have a table of all."""
    return text.listed([f"{each.name} {each.base} → {each.head}" for each in differences], most=10)


def describe_interleaving(interleaving: document.Interleaving | None) -> Iterator[str]:
    if interleaving is None:
        return
    yield f"order of the {interleaving.blocks} stack starts: {' '.join(interleaving.order)}"
    if interleaving.drifts:
        yield f"drift over {interleaving.blocks} blocks: {', '.join(map(_describe_drift, interleaving.drifts))}"
    elif interleaving.blocks < FEWEST_BLOCKS:
        yield f"drift: {interleaving.blocks} blocks are too few to tell, {FEWEST_BLOCKS} are needed"


def _describe_drift(drift: Drift) -> str:
    return f"{drift.metric} {format_ratio(1 + drift.change)} (p = {drift.p_value:.2g})"


def describe_additions(additions: document.Additions | None) -> Iterator[str]:
    if additions is None:
        return
    looks = ", ".join(f"{look.head} against {look.base}" for look in additions.looks)
    limit = "" if additions.limit is None else f" of at most {additions.limit.head}"
    count = len(additions.looks)
    in_all = additions.looks[0].head + additions.added if additions.looks else 0
    added = counted(additions.added, "trial was added", "trials were added")
    yield f"{added}, {in_all}{limit} in all; {counted(count, 'look')} at: {looks}"


def describe_calibration(calibration: document.CalibrationReport | None) -> Iterator[str]:
    if calibration is None:
        return
    rests_on = f"{counted(calibration.starts, 'start')}, {counted(calibration.trials, 'trial')}, {calibration.made_at}"
    yield f"calibration: {calibration.file} ({rests_on})"


def show_findings(section: document.Section, *, most: int | None = None) -> Iterator[Block]:
    """The reasons, then advice, MDEs and reasons for more trials under headings; at most `most` sentences each."""
    yield listed(section.reasons, most)
    for title, lines in (
        ("What moved", (*map(describe_move, moved_metrics(section)), *describe_paths(section))),
        ("Planning problems" if section.is_suite else "By goal", describe_cases(section)),
        ("What to do", section.advice),
        ("Minimum detectable effects", describe_mdes(section)),
        ("More trials would help", section.undecided),
    ):
        yield Shown(title, (listed(lines, most),))


def listed(lines: Iterable[str], most: int | None = None) -> Bullets:
    found = tuple(lines)
    more = (f"… and {len(found) - most} more",) if most is not None and len(found) > most else ()
    return Bullets((*found[:most], *more))


def badge_of(verdict: Verdict | None) -> Badge:
    return Badge(verdict_word(verdict), tone_of(verdict))


def badge_by_name(verdict: Verdict | None) -> Badge | None:
    """The verdict under its name in commands and files; ``None`` if nothing was judged."""
    return None if verdict is None else Badge(verdict.value, tone_of(verdict))


def badge_of_metric(metric: document.MetricReport, *, by_name: bool = False) -> Badge | str:
    """The verdict on a metric, or its name in commands and files, with its caveat; empty if not compared."""
    if metric.verdict is None:
        return ""
    gap, word = describe_median_gap(metric), metric.verdict.value if by_name else metric.verdict.word
    return Badge(f"{word}, {gap}", Tone.DOUBT) if gap else Badge(word, tone_of(metric.verdict))


def tone_of(verdict: Verdict | None) -> Tone:
    return Tone.PLAIN if verdict in {None, Verdict.SHOWN} else Tone(verdict.tone)
