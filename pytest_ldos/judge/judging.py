"""Judges trials: the only way from trials to a verdict.

`Grounds` are what trials are judged by: a policy, the base, and the host's calibration. `judge` is a function of the
trials and their grounds alone, so a verdict does not depend on other scenarios or on the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_ldos.host.fingerprint import find_differences
from pytest_ldos.judge.baseline.known_runs import KnownRuns, is_whole, settings_of, stack_of, with_known_runs
from pytest_ldos.judge.baseline.lookup import (
    Calibrated,
    CalibrationLookup,
    Found,
    Lookup,
    NoBaseline,
    NotComparable,
    Uncalibrated,
    Unreadable,
    UnreadableCalibration,
    compare_with,
    find_baseline,
    find_calibration,
    shown_baseline,
)
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.judge.drift import Drift, find_drift
from pytest_ldos.judge.explain import Explanation, PartsExplanation, explain, explain_parts
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.comparison import VariesTooMuch
from pytest_ldos.judge.gate.decide import GateResult, decide, failures_became_more, falls_short, judge_alone
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import (
    VERDICT_OF,
    BaselineMissing,
    BaselineShared,
    BaselineUnreadable,
    CalibrationUnreadable,
    Moved,
    NotConfirmed,
    NotFinished,
    NotJudged,
    NotTheCode,
    OfBase,
    Reason,
    TheMachine,
    by_weight,
)
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.judge.summarize import median_ratio, score_of, summarize
from pytest_ldos.judge.summary import Score, Summary
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet, metrics_of

BASELINE: Final = "baseline"
UNJUDGED: Final = "unjudged"
"""Stored in the history instead of a verdict for trials that were not compared with a baseline."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    """A plain run that was suspicious against the stored baseline, and was then measured interleaved.

    Attributes:
        head: its trials.
        suspicious: names of metrics; empty if only failures are suspicious.
        known: see `Policy.known`.
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
        label: name of the base in reports.
        screen: comparison with the stored baseline that the trials confirm or refute; ``None`` if there was none.
    """

    policy: Policy
    base: Lookup
    calibration: CalibrationLookup = field(default_factory=Uncalibrated)
    label: str = BASELINE
    screen: Screen | None = None

    @classmethod
    def stored(cls, head: TrialSet, stores: BaselineStores, policy: Policy) -> Grounds:
        """The grounds for judging trials by the stored baseline and calibration."""
        found = cls(policy=policy, base=find_baseline(stores, head), calibration=find_calibration(stores, head))
        return found._with_known_runs(head, stores)

    @classmethod
    def given(
        cls, head: TrialSet, base: TrialSet, file: Path, *, stores: BaselineStores, policy: Policy, label: str
    ) -> Grounds:
        """The grounds for comparing trials with the interleaved base, or with saved trials.

        Args:
            file: location of the base.
        """
        there = Found(base, file)
        is_interleaved = head.is_interleaved_with(base)
        found = there if is_interleaved else compare_with(head, base, file)
        if isinstance(found, NotComparable):
            found = replace(found, shown=there)
        made = cls(policy=policy, base=found, calibration=find_calibration(stores, head), label=label)
        return made if is_interleaved else made._with_known_runs(head, stores)

    def _with_known_runs(self, head: TrialSet, stores: BaselineStores) -> Grounds:
        """The same grounds, with known runs of the base's stack on this host pooled into the base."""
        if not isinstance(self.base, Found):
            return self
        trials, known = with_known_runs(stores.local, self.base.trials, head)
        return replace(self, base=replace(self.base, trials=trials), policy=replace(self.policy, known=known))

    def shortened(self, root: Path) -> Grounds:
        """The same grounds, with paths of files below `root` relative to it."""

        def short(found: Found) -> Found:
            return replace(found, file=_relative(found.file, root))

        base, calibration = self.base, self.calibration
        if isinstance(base, Found):
            base = short(base)
        elif isinstance(base, NoBaseline) and isinstance(base.shared, Found):
            base = NoBaseline(short(base.shared))
        if isinstance(calibration, Calibrated):
            calibration = replace(calibration, file=_relative(calibration.file, root))
        return replace(self, base=base, calibration=calibration)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Trials with their verdict, and all numbers that a report needs.

    Attributes:
        own: verdict on the trials alone.
        base: trials whose numbers are shown next to the head's; ``None`` if there are none.
        calibration: noise of the host; ``None`` if there is no base.
        known: runs of unchanged stacks on this host; ``None`` if the base is not a stored baseline.
        drifts: over the blocks of an interleaved session.
    """

    head: TrialSet
    result: GateResult
    own: GateResult
    base: TrialSet | None = None
    base_file: Path | None = None
    base_label: str = BASELINE
    calibration: CalibrationLookup | None = None
    known: KnownRuns | None = None
    drifts: tuple[Drift, ...] = ()

    @property
    def is_interleaved(self) -> bool:
        """True if the base was measured in the same interleaved session."""
        return self.base is not None and self.head.is_interleaved_with(self.base)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics of the head, and those that only the base has."""
        return tuple(self.head.metrics if self.base is None else metrics_of(self.head, self.base).values())

    @cached_property
    def head_summaries(self) -> Mapping[str, Summary]:
        """Summary of each metric over the head's trials, by name."""
        return summarize(self.metrics, self.result.head_series)

    @cached_property
    def base_summaries(self) -> Mapping[str, Summary]:
        """Summary of each metric over the base's trials, by name."""
        return summarize(self.metrics, self.result.base_series)

    def median_ratio(self, metric: Metric) -> float | None:
        """See `judge.summarize.median_ratio`; ``None`` without a comparison."""
        found, name = self.result.comparison(metric.name), metric.name
        if found is None:
            return None
        return median_ratio(metric, found, self.head_summaries.get(name), self.base_summaries.get(name))

    @cached_property
    def score(self) -> Score:
        """The overall score of the comparison."""
        return score_of(self.head.metrics, self.result.comparisons)

    @cached_property
    def explained(self) -> Mapping[str, Explanation]:
        """Changes of each path and its segments, by path; empty without a base."""
        return {} if self.base is None else explain(self.base, self.head)

    @cached_property
    def parts(self) -> tuple[PartsExplanation, ...]:
        """Changes by process, of each changed metric that is a sum over several processes."""
        changed = {each.metric for each in self.result.comparisons if each.verdict.is_change}
        metrics = [metric for metric in self.head.metrics if metric.name in changed]
        return () if self.base is None else tuple(explain_parts(self.base, self.head, metrics))


def judge(head: TrialSet, grounds: Grounds) -> Judged:
    """Judges the trials of one scenario."""
    policy = with_calibration(grounds.policy, grounds.calibration)
    own = judge_alone(head, policy)
    if isinstance(grounds.base, Found):
        result = _compare(head, own, grounds.base.trials, policy)
        if policy.known is not None and is_equal_stack(head, grounds.base.trials):
            result = _blame_machine(result, own, policy, grounds.base.trials, head)
        if grounds.screen is not None:
            result = _confirm(result, grounds.screen, policy)
            if any(isinstance(each, NotTheCode) for each in result.reasons):
                return _by_screen(result, grounds.screen, policy, grounds.calibration)
        if isinstance(grounds.calibration, UnreadableCalibration):
            reasons = by_weight([*result.reasons, CalibrationUnreadable(grounds.calibration.reason)])
            verdict = worst([result.verdict, Verdict.INVALID])
            result = replace(result, verdict=verdict, reasons=reasons, more_trials_because=())
    else:
        result = _without_base(head, own, grounds.base, policy)
    shown = shown_baseline(grounds.base)
    if shown is None:
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
        drifts=find_drift(head, shown.trials) if head.is_interleaved_with(shown.trials) else (),
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
    others = [each for each in result.reasons if not (isinstance(each, Moved) and each.comparison.metric in worse)]
    verdicts = (VERDICT_OF[type(each)] for each in others if not isinstance(each, Moved | NotJudged))
    return replace(result, verdict=worst([Verdict.PASSED, *verdicts]), reasons=(TheMachine(worse), *others))


def _confirm(result: GateResult, screen: Screen, policy: Policy) -> GateResult:
    """The verdict of an interleaved comparison that a screen asked for.

    If it finds no regression, but something else than the commit differs from the baseline, the stored comparison
    decides: an upgrade may have caused a regression.
    """
    if result.verdict not in {Verdict.PASSED, Verdict.IMPROVED}:
        return result
    comparisons = (each for each in result.comparisons if each.metric in screen.suspicious)
    clear = {Verdict.PASSED, Verdict.IMPROVED}
    if inconclusive := [each for each in comparisons if each.more_trials_because or each.location not in clear]:
        reasons = by_weight([*result.reasons, NotConfirmed(tuple(each.metric for each in inconclusive))])
        more = tuple(each.more_trials_because or VariesTooMuch(each.metric) for each in inconclusive)
        return replace(result, verdict=Verdict.INCONCLUSIVE, reasons=reasons, more_trials_because=more)
    differences = find_other_differences(screen.head, screen.base)
    stored = decide(screen.head, screen.base, replace(policy, known=screen.known))
    if stored.verdict is not Verdict.REGRESSED or not differences:
        return result
    return replace(stored, reasons=(NotTheCode(differences), *stored.reasons), more_trials_because=())


def _by_screen(result: GateResult, screen: Screen, policy: Policy, calibration: CalibrationLookup) -> Judged:
    return Judged(
        head=screen.head,
        result=result,
        own=judge_alone(screen.head, policy),
        base=screen.base,
        calibration=calibration,
        known=screen.known,
    )


def find_other_differences(head: TrialSet, base: TrialSet) -> tuple[tuple[str, str, str], ...]:
    """Differences between two runs other than their commits: name, value of the base and of the head."""
    here, there = head.fingerprint, base.fingerprint
    kernel = [("kernel", there.kernel, here.kernel)] if here.kernel != there.kernel else []
    inherited = [("inherited settings", "as they were", "others")] if head.influences != base.influences else []
    return (*find_differences(here, there), *kernel, *inherited)


def has_other_settings(head: TrialSet, base: TrialSet) -> bool:
    """True if settings of the scenario other than the numbers of trials differ."""
    return settings_of(head) != settings_of(base)


def judge_only(trials: TrialSet, policy: Policy) -> Judged:
    """Judges trials without a comparison."""
    own = judge_alone(trials, policy)
    return Judged(head=trials, result=own, own=own)


def with_calibration(policy: Policy, lookup: CalibrationLookup) -> Policy:
    """The policy with the calibration found for this host; unchanged if there is none."""
    if not isinstance(lookup, Calibrated):
        return policy
    found = lookup.calibration
    return replace(policy, calibrations={**policy.calibrations, found.scenario: found})


def verdict_alone(trials: TrialSet, policy: Policy) -> str:
    """`UNJUDGED` if the trials are valid; otherwise their verdict, which excludes them as an anchor."""
    verdict = judge_alone(trials, policy).verdict
    return UNJUDGED if verdict is Verdict.PASSED else verdict.value


def _relative(file: Path, root: Path) -> Path:
    return file.relative_to(root) if file.is_relative_to(root) else file


def _compare(head: TrialSet, own: GateResult, base: TrialSet, policy: Policy) -> GateResult:
    """Compares with a base. An interleaved base was not judged before, so its measurement must be valid. If it is not
    (a load was not reached, events were lost, trials are missing), the comparison is invalid, unless head regressed by
    itself. If the base missed its success rate, the comparison stands: only the head is judged.
    """
    result = decide(head, base, policy)
    faults = _measurement_faults(base, policy) if head.is_interleaved_with(base) else []
    if not faults or result.verdict is Verdict.INVALID:
        return result
    if own.verdict is Verdict.REGRESSED:  # head missed its own expectation, which needs no base
        return replace(result, reasons=(*result.reasons, *faults), more_trials_because=())
    return replace(result, verdict=Verdict.INVALID, reasons=(*faults, *result.reasons), more_trials_because=())


def _measurement_faults(base: TrialSet, policy: Policy) -> list[OfBase]:
    alone = judge_alone(base, policy)
    if alone.verdict is Verdict.INVALID:
        return [*map(OfBase, alone.reasons)]
    return [OfBase(NotFinished(base.incomplete))] if base.incomplete else []


def _without_base(
    head: TrialSet, own: GateResult, lookup: NoBaseline | NotComparable | Unreadable, policy: Policy
) -> GateResult:
    """The verdict without a base; it includes changes from a shared baseline, which are not judged."""
    verdict, reason = _why_not(lookup)
    short = falls_short(head) if own.verdict is Verdict.PASSED else []
    reasons = by_weight([*own.reasons, *short, reason])
    result = replace(own, verdict=worst([own.verdict, verdict]), reasons=reasons)
    shown = shown_baseline(lookup)
    if shown is None:
        return result
    if isinstance(lookup, NotComparable):
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


def _why_not(lookup: NoBaseline | NotComparable | Unreadable) -> tuple[Verdict, Reason]:
    if isinstance(lookup, NotComparable):
        return Verdict.NOT_COMPARABLE, lookup.reason
    if isinstance(lookup, Unreadable):
        return Verdict.INVALID, BaselineUnreadable(lookup.reason)
    if isinstance(lookup.shared, Found):
        return Verdict.NO_BASELINE, BaselineShared()
    if lookup.shared is not None:
        return Verdict.NO_BASELINE, _why_not(lookup.shared)[1]
    return Verdict.NO_BASELINE, BaselineMissing()
