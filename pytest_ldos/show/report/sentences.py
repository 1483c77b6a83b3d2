"""Sentences that accompany a verdict: advice, variation between runs, sources of numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.text import counted, format_quantity, percent
from pytest_ldos.judge.baseline.accepted import SUCCESS_RATE, Accepted
from pytest_ldos.judge.baseline.key import ENOUGH_RUNS, BaselineKey
from pytest_ldos.judge.baseline.store import Calibrated
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Judged
from pytest_ldos.judge.summary import PartsExplanation
from pytest_ldos.judge.unchanged import KnownRuns
from pytest_ldos.measure.metrics.model import DECLARED, OWN, WITHOUT_BEGIN, WITHOUT_END, Measurement, Source
from pytest_ldos.measure.trial.record import TrialKind, TrialSet
from pytest_ldos.show.report.document import Difference, MetricReport, Origin, PathReport

_RECORD: Final = "run again with --ldos-update-baseline"
_MEND: Final = "fix what the reasons name (ldos doctor checks this machine), then measure again"

_CHANGED: Final = f"if the change is intended, record it: {_RECORD}"
_GENERAL: Final = {
    Verdict.REGRESSED: f"if the change is intended, accept it (ldos accept), or record it: {_RECORD}",
    Verdict.INVALID: _MEND,
    Verdict.INFRA: _MEND,
    Verdict.NO_BASELINE: f"measure again to compare; if nothing was recorded yet (a strict run), {_RECORD}",
    Verdict.NOT_COMPARABLE: f"record a baseline of what runs here: {_RECORD}",
}
_CALIBRATE: Final = "measure the variation of equal versions on this host: ldos calibrate"
_QUIET: Final = "see what disturbs the machine (ldos doctor), or name what must be judged: required in [tool.ldos.gate]"
_MORE_ROUNDS: Final = "measure more: raise the rounds, or starts, of the test's mark"


@dataclass(frozen=True)
class Untried:
    """Remedies for noise that are still available to a run."""

    more_trials: bool = True
    interleaving: bool = True
    calibration: bool = True


def advise(
    verdict: Verdict,
    metrics: Sequence[MetricReport],
    paths: Sequence[PathReport],
    *,
    trials: TrialSet | None = None,
    is_inconclusive: bool = True,
    base_needs: int = 0,
    untried: Untried = Untried(),
    differences: Sequence[Difference] = (),
) -> tuple[str, ...]:
    """Advice on what to do next; nothing if all is well. Nodes' parameters among the `differences` come first.

    Args:
        is_inconclusive: whether more trials would help.
        base_needs: number of trials with which the baseline must be recorded again; 0 if it has enough.
    """
    is_study = trials is not None and trials.trial_kind is TrialKind.ROUND
    if verdict is Verdict.INCONCLUSIVE and base_needs:
        how = _MORE_ROUNDS if is_study else f"--ldos-trials={base_needs} or more"
        return (f"record the baseline again with enough trials: {_RECORD} ({how})",)
    if verdict is Verdict.INCONCLUSIVE:
        is_noisy = is_inconclusive or bool(_named(metrics, Verdict.INCONCLUSIVE) | _named(metrics, Verdict.NOT_JUDGED))
        return (_advise_noisy(untried, is_study=is_study) if is_noisy else _CHANGED,)
    worse = _named(metrics, Verdict.REGRESSED)
    if verdict is Verdict.REGRESSED and not worse and trials is not None and trials.successes < len(trials.trials):
        return ("see how trials failed: messages, and the stack's logs in the folder of the run",)
    of_worse = [path for path in paths if worse & {*path.metrics}] if verdict is Verdict.REGRESSED else []
    guilty = [path.segments[0] for path in of_worse if path.segments]
    changed = [each for each in differences if verdict is Verdict.REGRESSED and each.name.startswith("parameter ")][:3]
    names = [f"{each.name}: {each.base} → {each.head}" for each in changed]
    names += [segment.name for segment in guilty if segment.is_certain and segment.share > 0]
    general = (_GENERAL[verdict],) if verdict in _GENERAL else ()
    return (*(f"look first at {name}" for name in dict.fromkeys(names)), *general)


def _advise_noisy(untried: Untried, *, is_study: bool) -> str:
    if is_study:
        return _MORE_ROUNDS
    if untried.interleaving:
        return "measure both versions interleaved, which cancels changes of the machine: --ldos-base=REVISION"
    if untried.more_trials:
        return "let the run add trials while it is inconclusive: --ldos-max-trials"
    return _CALIBRATE if untried.calibration else _QUIET


def _named(metrics: Sequence[MetricReport], verdict: Verdict) -> set[str]:
    return {metric.name for metric in metrics if metric.verdict is verdict}


_NAMED_FIRST: Final = ("T1mean", "T1", "call", "T4")


def describe_run_variation(judged: Judged) -> str:
    """Sentence on the variation between runs; empty for interleaved versions, or with a calibration of enough runs."""
    runs = judged.calibration.calibration.runs if isinstance(judged.calibration, Calibrated) else 0
    if judged.base is None or judged.is_interleaved or runs >= ENOUGH_RUNS:
        return ""
    known = judged.known or KnownRuns()
    if known.between:
        name = next((each for each in _NAMED_FIRST if each in known.between), next(iter(known.between)))
        varies = 100 * math.sqrt(known.between[name].runs.value)
        seen = f"{counted(known.observed, 'run')} in {counted(known.days, 'day')}"
        more = "" if known.observed >= ENOUGH_RUNS else "; each run of an unchanged stack improves this estimate"
        return f"run to run, {name} varies by {varies:.2g} % here: {seen}{more}"
    unknown = "the variation between runs is not known here yet, and taken from other machines"
    other = "" if judged.head.spec.stack.ros2.is_running else " (interleaved versions do not need it: --ldos-base)"
    return f"{unknown}: each run of an unchanged stack improves it{other}"


MOST_NAMED: Final = 3  # most processes named for one metric, or segments for one path
SMALLEST_SHARE: Final = 0.05


def describe_parts(found: PartsExplanation) -> str:
    """``cpu_all: 97 % of it in state_publisher, +48.1 ms [+40, +56]``."""
    parts = []
    for each in [each for each in found.parts if each.share >= SMALLEST_SHARE and each.is_certain][:MOST_NAMED]:
        size = f"{'+' if each.change >= 0 else '-'}{format_quantity(abs(each.change), found.metric.unit)}"
        interval = f"[{each.low:+.3g}, {each.high:+.3g}]"
        parts.append(f"{percent(each.share, 0)} of it in {each.process}, {size} {interval}")
    return f"{found.metric.name}: {'; '.join(parts) or 'no single part stands out'}"


def name_unmatched(trials: Iterable[Mapping[str, Measurement]]) -> Iterator[str]:
    """``span_a_b_p50: 3 begins without an end, 1 end without a begin``, for each metric of trials with such events."""
    found = [(name, each.details) for trial in trials for name, each in trial.items()]
    for name in dict.fromkeys(name for name, details in found if {WITHOUT_END, WITHOUT_BEGIN} & details.keys()):
        own = [details for each, details in found if each == name]
        begins, ends = (int(sum(each.get(key, 0) for each in own)) for key in (WITHOUT_END, WITHOUT_BEGIN))
        yield f"{name}: {counted(begins, 'begin')} without an end, {counted(ends, 'end')} without a begin"


def describe_key(key: BaselineKey, on: str = "on host class") -> str:
    return f"scenario '{key.scenario}' of the {key.stack} stack {on} {key.host_class}"


def describe_accepted(change: Accepted) -> str:
    """``accepted: T1 up to +12.3 % (Ada, checks collisions twice)``."""
    is_rate = change.metric == SUCCESS_RATE
    limit = f"{percent(change.size)} of trials failed" if is_rate else percent(change.size, signed=True)
    return f"accepted: {change.metric} up to {limit} ({change.by}, {change.reason})"


def describe_place(key: BaselineKey) -> str:
    return f"stack {key.stack}, host class {key.host_class}"


APPROXIMATELY: Final = "≈"


def report_origins(sources: Collection[Source]) -> tuple[Origin, ...]:
    found = sorted(sources, key=lambda source: source.name)
    return tuple(Origin(name=each.name, caveat=each.caveat, is_usual=each in OWN | DECLARED) for each in found)


def qualified(number: str, origins: Collection[Origin]) -> str:
    """A number as text, prefixed by a sign if a source of it is approximate."""
    return f"{APPROXIMATELY} {number}" if any(origin.caveat for origin in origins) else number


def describe_origins(by_metric: Mapping[str, Collection[Origin]]) -> tuple[str, ...]:
    """A line for each source that differs from the metrics' definitions."""
    metrics: dict[Origin, list[str]] = {}
    for name, origins in by_metric.items():
        for origin in (each for each in origins if not each.is_usual):
            metrics.setdefault(origin, []).append(name)
    found = ((f"{', '.join(names)} from {origin.name}", origin.caveat) for origin, names in metrics.items())
    return tuple(f"{APPROXIMATELY} {sentence}: {caveat}" if caveat else sentence for sentence, caveat in found)
