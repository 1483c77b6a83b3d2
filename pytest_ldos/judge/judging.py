"""Judges trials, the only way from trials to a verdict, and stores the verdict with its grounds (``judged.json``).

`Grounds` are what trials are judged by: a policy, the base, and the host's calibration. `judge` is a function of the
trials and their grounds alone, so a verdict does not depend on other scenarios or on the caller.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.files import PlainReader, RecordFormat, write_atomically
from pytest_ldos.base.series import Better
from pytest_ldos.host.fingerprint import find_differences
from pytest_ldos.judge import summary
from pytest_ldos.judge.baseline import store
from pytest_ldos.judge.baseline.accepted import Accepted, find_accepted
from pytest_ldos.judge.baseline.key import Calibration, decode_calibration, encode_calibration
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.case import Case, Policy, failures_became_more, falls_short
from pytest_ldos.judge.gate.decide import GateResult, decide, judge_alone
from pytest_ldos.judge.gate.reasons import Reason, by_weight
from pytest_ldos.judge.gate.verdict import VariesTooMuch, Verdict, worst
from pytest_ldos.judge.unchanged import KnownRuns, is_whole, settings_of, stack_of, with_known_runs
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.artifacts import LARGEST_RECORD, ScenarioFolder, decode_trials, encode_trials
from pytest_ldos.measure.trial.record import TrialSet, metrics_of
from pytest_ldos.record.profiles import Evidence
from pytest_ldos.scenario.words import StimulusKind

BASELINE: Final = "baseline"
OF_SUITES: Final = ("T1", "path_length")
"""Metrics of planning problems that are reported for each problem."""
UNJUDGED: Final = "unjudged"
"""Stored in the history instead of a verdict for trials that were not compared with a baseline."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    """A plain run that was suspicious against the stored baseline, and was then measured interleaved.

    `suspicious` names metrics; it is empty if only failures are suspicious.
    """

    head: TrialSet
    base: TrialSet
    suspicious: tuple[str, ...]
    known: KnownRuns | None = None


@dataclass(frozen=True, kw_only=True)
class Grounds:
    """Grounds of a verdict on trials.

    Attributes:
        policy: of the run; the calibration of the host is added when the trials are judged.
        base: the baseline or the interleaved base, or the reason why there is none.
        screen: comparison with the stored baseline that the trials confirm or refute; ``None`` if there was none.
    """

    policy: Policy
    base: store.Lookup
    calibration: store.CalibrationLookup = field(default_factory=store.Uncalibrated)
    label: str = BASELINE
    screen: Screen | None = None

    @classmethod
    def stored(cls, head: TrialSet, stores: store.BaselineStores, policy: Policy) -> Grounds:
        found = cls(
            policy=policy, base=store.find_baseline(stores, head), calibration=store.find_calibration(stores, head)
        )
        return found._completed(head, stores)

    @classmethod
    def given(
        cls, head: TrialSet, base: TrialSet, file: Path, *, stores: store.BaselineStores, policy: Policy, label: str
    ) -> Grounds:
        """The grounds for comparing trials with the interleaved base, or with saved trials, which are in `file`."""
        there = store.Found(base, file)
        found = there if head.is_interleaved_with(base) else store.compare_with(head, base, file)
        if isinstance(found, store.NotComparable):
            found = replace(found, shown=there)
        made = cls(policy=policy, base=found, calibration=store.find_calibration(stores, head), label=label)
        return made._completed(head, stores)

    def _completed(self, head: TrialSet, stores: store.BaselineStores) -> Grounds:
        """The same grounds, with what the base accepts, and with known runs pooled into a base that is stored."""
        if not isinstance(self.base, store.Found):
            return self
        base, policy = self.base, self.policy
        if stores.project is not None:
            try:
                policy = replace(policy, accepted=find_accepted(stores.project, head, base.trials))
            except RecordUnreadable as error:
                policy = replace(policy, accepted_unreadable=error.message)
        if not head.is_interleaved_with(base.trials):
            trials, known = with_known_runs(stores.local, base.trials, head)
            base, policy = replace(base, trials=trials), replace(policy, known=known)
        return replace(self, base=base, policy=policy)

    def accepting(self, changes: Mapping[str, Accepted]) -> Grounds:
        return replace(self, policy=replace(self.policy, accepted=changes))

    def shortened(self, root: Path) -> Grounds:
        def short(file: Path) -> Path:
            return file.relative_to(root) if file.is_relative_to(root) else file

        base, calibration = self.base, self.calibration
        if isinstance(base, store.Found):
            base = replace(base, file=short(base.file))
        elif isinstance(base, store.NoBaseline) and isinstance(base.shared, store.Found):
            base = store.NoBaseline(replace(base.shared, file=short(base.shared.file)))
        if isinstance(calibration, store.Calibrated):
            calibration = replace(calibration, file=short(calibration.file))
        return replace(self, base=base, calibration=calibration)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Trials with their verdict, and all numbers that a report needs.

    Attributes:
        own: verdict on the trials alone.
        base: trials whose numbers are shown next to the head's; ``None`` if there are none.
        calibration: noise of the host; ``None`` if there is no base.
        known: runs of unchanged stacks on this host; ``None`` if the base is not a stored baseline.
    """

    head: TrialSet
    result: GateResult
    own: GateResult
    base: TrialSet | None = None
    base_file: Path | None = None
    base_label: str = BASELINE
    calibration: store.CalibrationLookup | None = None
    known: KnownRuns | None = None
    drifts: tuple[summary.Drift, ...] = ()

    @property
    def is_interleaved(self) -> bool:
        return self.base is not None and self.head.is_interleaved_with(self.base)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics of the head, and those that only the base has."""
        return tuple(self.head.metrics if self.base is None else metrics_of(self.head, self.base).values())

    @cached_property
    def head_summaries(self) -> Mapping[str, summary.Summary]:
        return summary.summarize(self.metrics, self.result.head_series)

    @cached_property
    def base_summaries(self) -> Mapping[str, summary.Summary]:
        return summary.summarize(self.metrics, self.result.base_series)

    def median_ratio(self, metric: Metric) -> float | None:
        """Ratio of the medians, the worse over the better, if the metric passed although it exceeds the MDE.

        Medians are of all values as measured; the verdict compares them by goal and start, without covariates.
        """
        found = self.result.comparison(metric.name)
        if found is None or found.verdict is not Verdict.PASSED:
            return None
        both = [each.get(metric.name) for each in (self.head_summaries, self.base_summaries)]
        medians = [each and each.median for each in both]
        worse, other = medians if metric.better is Better.LOWER else medians[::-1]
        if not worse or not other or min(worse, other) <= 0:
            return None
        return worse / other if worse / other > 1 + found.mde else None

    @cached_property
    def score(self) -> summary.Score:
        ratios = {each.metric: each.ratio for each in self.result.comparisons if each.has_ratio}
        scored = {metric.name: metric.score_weight for metric in self.head.metrics if metric.score_weight > 0}
        weights = {name: weight for name, weight in scored.items() if ratios.get(name, math.inf) < math.inf}
        without = tuple(name for name in scored if name not in weights)
        if not weights:
            return summary.Score(value=None, without=without)
        total = sum(weight * math.log(ratios[name]) for name, weight in weights.items())
        return summary.Score(value=math.exp(total / sum(weights.values())), without=without)

    @cached_property
    def explained(self) -> Mapping[str, summary.Explanation]:
        if self.base is None:
            return {}
        larger = {each.metric: each.ratio > 1 for each in self.result.comparisons if each.has_ratio}
        directions = {summary.path_of(each): 1 if larger.get(each.name, True) else -1 for each in self._changed}
        return summary.explain(self.base, self.head, directions=directions)

    @cached_property
    def parts(self) -> tuple[summary.PartsExplanation, ...]:
        """Changes by process, of each changed metric that is a sum over several processes."""
        return () if self.base is None else tuple(summary.explain_parts(self.base, self.head, self._changed))

    @property
    def _changed(self) -> list[Metric]:
        changed = {each.metric for each in self.result.comparisons if each.verdict.is_change}
        return [metric for metric in self.head.metrics if metric.name in changed]

    @property
    def is_suite(self) -> bool:
        """True if the trials plan problems, each of which is reported."""
        return self.head.spec.stack.stimulus is StimulusKind.PLAN and bool(self.head.motions)

    @cached_property
    def by_case(self) -> Mapping[str, tuple[summary.CaseNumbers, ...]]:
        """Numbers by case of each changed metric if there are several cases, or of a suite's times and paths."""
        heads, bases = self.result.head_series, self.result.base_series
        found = {
            name: summary.numbers_by_case(heads[name], bases.get(name) if self.result.comparison(name) else None)
            for name in (OF_SUITES if self.is_suite else [each.name for each in self._changed])
            if name in heads
        }
        return {name: numbers for name, numbers in found.items() if len(numbers) > (0 if self.is_suite else 1)}


def judge(head: TrialSet, grounds: Grounds) -> Judged:
    policy = with_calibration(grounds.policy, grounds.calibration)
    own = judge_alone(head, policy)
    if isinstance(grounds.base, store.Found):
        result = _compare(head, own, grounds.base.trials, policy)
        if policy.known is not None and is_equal_stack(head, grounds.base.trials):
            result = _blame_machine(result, own, policy, grounds.base.trials, head)
        if grounds.screen is not None:
            result = _confirm(result, grounds.screen, policy)
            if any(isinstance(each, why.NotTheCode) for each in result.reasons):
                return Judged(
                    head=grounds.screen.head,
                    result=result,
                    own=judge_alone(grounds.screen.head, policy),
                    base=grounds.screen.base,
                    calibration=grounds.calibration,
                    known=grounds.screen.known,
                )
        if isinstance(grounds.calibration, store.UnreadableCalibration):
            reasons = by_weight([*result.reasons, why.CalibrationUnreadable(grounds.calibration.reason)])
            verdict = worst([result.verdict, Verdict.INVALID])
            result = replace(result, verdict=verdict, reasons=reasons, more_trials_because=())
    else:
        result = _without_base(head, own, grounds.base, policy)
    if (shown := store.shown_baseline(grounds.base)) is None:
        return Judged(head=head, result=result, own=own)
    return Judged(
        head=head,
        result=result,
        own=own,
        base=shown.trials,
        base_file=shown.file,
        base_label=grounds.label,
        calibration=grounds.calibration,
        known=grounds.policy.known,
        drifts=summary.find_drift(head, shown.trials) if head.is_interleaved_with(shown.trials) else (),
    )


def is_equal_stack(head: TrialSet, base: TrialSet) -> bool:
    """True if exactly the base's stack ran, file by file; this is known for the embedded arm only."""
    return is_whole(head) and stack_of(head) == stack_of(base)


def _blame_machine(result: GateResult, own: GateResult, policy: Policy, base: TrialSet, head: TrialSet) -> GateResult:
    """The verdict if only the machine can have changed; failures stay failures."""
    worse = tuple(each.metric for each in result.comparisons if each.verdict is Verdict.REGRESSED)
    is_ours = METRICS.keys() >= {*worse}  # a user's own metric may measure something outside the stack
    if not worse or not is_ours or own.verdict is not Verdict.PASSED or failures_became_more(head, base, policy):
        return result
    others = [each for each in result.reasons if not (isinstance(each, why.Moved) and each.comparison.metric in worse)]
    verdicts = (why.VERDICT_OF[type(each)] for each in others if not isinstance(each, why.Moved | why.NotJudged))
    return replace(result, verdict=worst([Verdict.PASSED, *verdicts]), reasons=(why.TheMachine(worse), *others))


def _confirm(result: GateResult, screen: Screen, policy: Policy) -> GateResult:
    """The verdict of an interleaved comparison that a screen asked for.

    If it finds no regression, but something else than the commit differs from the baseline, the stored comparison
    decides: an upgrade may have caused a regression.
    """
    clear = {Verdict.PASSED, Verdict.ACCEPTED, Verdict.IMPROVED}
    if result.verdict not in clear:
        return result
    comparisons = (each for each in result.comparisons if each.metric in screen.suspicious)
    if inconclusive := [each for each in comparisons if each.more_trials_because or each.location not in clear]:
        reasons = by_weight([*result.reasons, why.NotConfirmed(tuple(each.metric for each in inconclusive))])
        more = tuple(each.more_trials_because or VariesTooMuch(each.metric) for each in inconclusive)
        return replace(result, verdict=Verdict.INCONCLUSIVE, reasons=reasons, more_trials_because=more)
    here, there = screen.head.fingerprint, screen.base.fingerprint
    differences = [*find_differences(here, there)]
    if screen.head.influences != screen.base.influences:
        differences.append(("inherited settings", "as they were", "others"))
    stored = decide(screen.head, screen.base, replace(policy, known=screen.known))
    if stored.verdict is not Verdict.REGRESSED or not differences:
        return result
    return replace(stored, reasons=(why.NotTheCode(tuple(differences)), *stored.reasons), more_trials_because=())


def has_other_settings(head: TrialSet, base: TrialSet) -> bool:
    """True if settings of the scenario other than the numbers of trials differ."""
    return settings_of(head) != settings_of(base)


def judge_only(trials: TrialSet, policy: Policy) -> Judged:
    own = judge_alone(trials, policy)
    return Judged(head=trials, result=own, own=own)


def with_calibration(policy: Policy, lookup: store.CalibrationLookup) -> Policy:
    if not isinstance(lookup, store.Calibrated):
        return policy
    found = lookup.calibration
    return replace(policy, calibrations={**policy.calibrations, found.scenario: found})


def verdict_alone(trials: TrialSet, policy: Policy) -> str:
    """`UNJUDGED` if the trials are valid; otherwise their verdict, which excludes them as an anchor."""
    verdict = judge_alone(trials, policy).verdict
    return UNJUDGED if verdict is Verdict.PASSED else verdict.value


def _compare(head: TrialSet, own: GateResult, base: TrialSet, policy: Policy) -> GateResult:
    """Compares with a base.

    An interleaved base was not judged before: with an invalid measurement (a load was not reached, events were lost,
    trials are missing) the comparison is invalid, unless head regressed by itself. A base below its success rate is
    compared all the same: only the head is judged.
    """
    result = decide(head, base, policy)
    faults: list[why.OfBase] = []
    if head.is_interleaved_with(base):
        alone = judge_alone(base, policy)
        if alone.verdict is Verdict.INVALID:
            faults = [*map(why.OfBase, alone.reasons)]
        elif base.incomplete:
            faults = [why.OfBase(why.NotFinished(base.incomplete))]
    if not faults or result.verdict is Verdict.INVALID:
        return result
    if own.verdict is Verdict.REGRESSED:  # head missed its own expectation, which needs no base
        return replace(result, reasons=(*result.reasons, *faults), more_trials_because=())
    return replace(result, verdict=Verdict.INVALID, reasons=(*faults, *result.reasons), more_trials_because=())


def _without_base(
    head: TrialSet, own: GateResult, lookup: store.NoBaseline | store.NotComparable | store.Unreadable, policy: Policy
) -> GateResult:
    """The verdict without a base; it includes changes from a shared baseline, which are not judged."""
    verdict, reason = _why_not(lookup)
    short = falls_short(head) if own.verdict is Verdict.PASSED else []
    reasons = by_weight([*own.reasons, *short, reason])
    result = replace(own, verdict=worst([own.verdict, verdict]), reasons=reasons)
    if (shown := store.shown_baseline(lookup)) is None:
        return result
    if isinstance(lookup, store.NotComparable):
        case = Case.of(head, shown.trials)
        return replace(result, head_series=case.head_series, base_series=case.base_series)
    compared = decide(head, shown.trials, policy)
    unjudged = (
        replace(each, location=Verdict.NO_BASELINE, findings=(), more_trials_because=None, base_needs=0)
        for each in compared.comparisons
    )
    return replace(
        result, comparisons=tuple(unjudged), incomparable=compared.incomparable, base_series=compared.base_series
    )


def _why_not(lookup: store.NoBaseline | store.NotComparable | store.Unreadable) -> tuple[Verdict, Reason]:
    if isinstance(lookup, store.NotComparable):
        return Verdict.NOT_COMPARABLE, lookup.reason
    if isinstance(lookup, store.Unreadable):
        return Verdict.INVALID, why.BaselineUnreadable(lookup.reason)
    if isinstance(lookup.shared, store.Found):
        return Verdict.NO_BASELINE, why.BaselineShared()
    if lookup.shared is not None:
        return Verdict.NO_BASELINE, _why_not(lookup.shared)[1]
    return Verdict.NO_BASELINE, why.BaselineMissing()


JUDGED_FILE: Final = "judged.json"
_REMEDY: Final = f"delete {JUDGED_FILE} to judge by what is stored now"
_FORMAT: Final = RecordFormat("pytest-ldos judgement", 3, remedy=_REMEDY, again=_REMEDY)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict with its grounds, the version of pytest-ldos, and facts and evidence that every report of it shows."""

    grounds: Grounds
    verdict: Verdict
    made_by: str
    notes: tuple[str, ...] = ()
    evidence: Evidence | None = None


def write_judgement(folder: ScenarioFolder, judgement: Judgement) -> None:
    """Writes a judgement next to its trials; for errors see `write_atomically`."""
    write_atomically(folder.path / JUDGED_FILE, _FORMAT.encode(_to_plain(judgement)))


def read_judgement(folder: ScenarioFolder) -> Judgement | None:
    """The judgement of the trials in a folder, if any; `RecordUnreadable` if damaged, or of another schema version."""
    file = folder.path / JUDGED_FILE
    if not file.is_file():
        return None
    try:
        if file.stat().st_size > LARGEST_RECORD:
            raise RecordUnreadable(f"{file} is larger than {LARGEST_RECORD} bytes: no run wrote it", remedy=_REMEDY)
        text = file.read_text("utf-8", errors="replace")
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy=_REMEDY) from None
    reader = PlainReader(is_whole=True)  # all fields, which distinguishes the kinds of a lookup
    reader.by_type.update(
        {
            TrialSet: lambda value, what: decode_trials(json.dumps(value), file),
            Calibration: lambda value, what: decode_calibration(json.dumps(value), file),
            Path: lambda value, what: Path(value),
            Collection[str]: lambda value, what: frozenset(reader.read(tuple[str, ...], value, what)),
        }
    )
    judgement: Judgement = _FORMAT.decode(text, file, lambda values: reader.read(Judgement, values, ""))
    return judgement


def _to_plain(value: Any) -> Any:
    """The value as JSON data; trials and calibrations as in their own files."""
    if isinstance(value, TrialSet):
        return json.loads(encode_trials(value))
    if isinstance(value, Calibration):
        return json.loads(encode_calibration(value))
    if is_dataclass(value):
        return {each.name: _to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _to_plain(each) for name, each in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [_to_plain(each) for each in items]
    return str(value) if isinstance(value, Path) else value
