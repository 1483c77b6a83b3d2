"""Composes a document from trials and verdicts, without computing new numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from pytest_ldos.host.interference import Interference
from pytest_ldos.judge.baseline.lookup import Calibrated, CalibrationLookup, Uncalibrated
from pytest_ldos.judge.explain import Explanation, SegmentChange, path_of
from pytest_ldos.judge.gate.verdict import Tone, Verdict
from pytest_ldos.judge.judging import Judged
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialKind, TrialSet
from pytest_ldos.show.page.formats import finite
from pytest_ldos.show.report.document import (
    CalibrationReport,
    Document,
    PathReport,
    Section,
    Segment,
    Surroundings,
)
from pytest_ldos.show.report.part_reports import (
    report_additions,
    report_differences,
    report_drifts,
    report_interleaving,
    report_metrics,
    report_surroundings,
    report_version,
)
from pytest_ldos.show.report.reasons import describe_more_trials, describe_other_calibration, describe_reasons
from pytest_ldos.show.report.sentences import Untried, advise, describe_parts, describe_run_variation
from pytest_ldos.show.report.words import describe_load

THIS_RUN: Final = "this run"


def compose(sections: Sequence[Section]) -> Document:
    """A report with the current time."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Document(sections=tuple(sections), made_at=made_at, made_by=f"pytest-ldos {version('pytest-ldos')}")


def compose_section(judged: Judged, *, notes: Sequence[str] = ()) -> Section:
    """One scenario with its verdict, and the comparison if there was a base."""
    trials, result, base = judged.head, judged.result, judged.base
    metrics = report_metrics(judged)
    paths = report_paths(judged.explained, trials.metrics)
    head = report_version(trials, label=THIS_RUN)
    section = Section(
        scenario=trials.scenario,
        verdict=result.verdict,
        reasons=name_load(describe_reasons(result.reasons), result.verdict, head.surroundings),
        undecided=tuple(map(describe_more_trials, result.more_trials_because)),
        advice=advise(
            result.verdict,
            metrics,
            paths,
            failures=len(trials.trials) - trials.successes,
            is_inconclusive=bool(result.more_trials_because),
            base_needs=result.base_needs,
            is_study=trials.trial_kind is TrialKind.ROUND,
            untried=Untried(
                more_trials=not trials.spec.max_trials,
                interleaving=base is not None and not trials.is_interleaved_with(base),
                calibration=not isinstance(judged.calibration, Calibrated),
            ),
        ),
        head=head,
        metrics=metrics,
        paths=paths,
        additions=report_additions(trials),
        calibration=report_calibration(judged.calibration),
        notes=(
            *_describe_commit(trials, THIS_RUN),
            *_describe_influences(trials),
            *describe_uncalibrated(judged.calibration),
            *notes,
        ),
        stack="" if trials.trial_kind is TrialKind.ROUND else trials.stack_kind,
    )
    return section if base is None else _with_base(section, judged, base)


def name_load(reasons: Sequence[str], verdict: Verdict, surroundings: Surroundings | None) -> tuple[str, ...]:
    """The reasons for a verdict; if it is not good, the first one is followed by other use of the machine."""
    load = describe_load(surroundings) if verdict.tone is not Tone.GOOD else ""
    return (*reasons[:1], *([load] if load else []), *reasons[1:])


def _with_base(section: Section, judged: Judged, base: TrialSet) -> Section:
    """The section with the facts that a comparison adds."""
    head = judged.head
    is_judged = head.trial_kind is TrialKind.MOTION and judged.calibration is not None
    variation = describe_run_variation(judged) if is_judged else ""
    return dataclasses.replace(
        section,
        base=report_version(base, label=judged.base_label, file=str(judged.base_file or "")),
        differences=report_differences(head, base),
        score=judged.score,
        interleaving=report_interleaving(head, base, report_drifts(judged.drifts)),
        notes=(
            *section.notes,
            *_describe_commit(base, judged.base_label),
            *map(describe_parts, judged.parts),
            *([variation] if variation else []),
        ),
    )


def _describe_commit(trials: TrialSet, label: str) -> tuple[str, ...]:
    return (f"{label}: its commit is unknown: {trials.commit_unknown}",) if trials.commit_unknown else ()


def _describe_influences(trials: TrialSet) -> tuple[str, ...]:
    inherited = ", ".join(f"{name} {value}" for name, value in trials.influences.items())
    return (f"inherited by the measured processes: {inherited}",) if inherited else ()


def without_verdict(section: Section) -> Section:
    """The same numbers without a verdict."""
    return dataclasses.replace(section, verdict=None, advice=())


def compose_infra(
    scenario: str, reasons: Sequence[str], *, stack: str = "", interference: Interference | None = None
) -> Section:
    """A scenario that could not be measured.

    Args:
        stack: the kind that was requested.
        interference: use of the machine by other processes meanwhile.
    """
    advice = advise(Verdict.INFRA, (), ())
    named = name_load(reasons, Verdict.INFRA, report_surroundings(interference))
    return Section(scenario=scenario, verdict=Verdict.INFRA, reasons=named, advice=advice, stack=stack)


def report_paths(explained: Mapping[str, Explanation], metrics: Sequence[Metric]) -> tuple[PathReport, ...]:
    """Changes of each path and its parts, with the metrics that measure it."""
    return tuple(
        PathReport(
            path=each.path,
            metrics=tuple(metric.name for metric in metrics if path_of(metric) == name),
            whole=_segment(each.whole),
            segments=tuple(_segment(change) for change in each.changes),
        )
        for name, each in explained.items()
    )


def _segment(change: SegmentChange) -> Segment:
    return Segment(
        name=change.segment,
        base_ns=change.base_ns,
        head_ns=change.head_ns,
        change_ns=change.change_ns,
        low_ns=finite(change.low_ns),
        high_ns=finite(change.high_ns),
        share=change.share,
        is_certain=change.is_certain,
    )


def report_calibration(lookup: CalibrationLookup | None) -> CalibrationReport | None:
    """The calibration used by a decision."""
    if not isinstance(lookup, Calibrated):
        return None
    made = lookup.calibration
    return CalibrationReport(
        made_at=made.made_at,
        commit=made.commit,
        starts=made.starts,
        trials=made.trials,
        metrics=tuple(made.metrics),
        file=str(lookup.file),
    )


def describe_uncalibrated(lookup: CalibrationLookup | None) -> tuple[str, ...]:
    """Sentence on a calibration that exists but is not used; empty if there is none."""
    other = lookup.other if isinstance(lookup, Uncalibrated) else None
    return () if other is None else (describe_other_calibration(other),)
