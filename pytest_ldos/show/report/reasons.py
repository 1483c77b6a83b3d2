"""The sentence for each reason of a verdict, and for each use of more trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, assert_never

from pytest_ldos.base.text import LARGEST_EFFECT, counted, format_effect, format_quantity
from pytest_ldos.judge.baseline.key import LoadDifference, OtherHost, OtherHostClasses, OtherLoads, OtherScenario
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.comparison import (
    Comparison,
    MayBeWorse,
    MayFailMore,
    MayHaveChanged,
    MoreTrials,
    VariesTooMuch,
)
from pytest_ldos.judge.gate.shape import Aspect, LateRise, Spread, Tail
from pytest_ldos.show.report.sentences import describe_host, describe_key


def describe_aspect(aspect: Aspect) -> str:
    """``spread × 2.1 (on average 13.4 % from the median, 6.4 % in the baseline)``."""
    match aspect:
        case Spread(base, head):
            growth = f" × {head / base:.2g}" if base else ""
            return f"spread{growth} (on average {_percent(head)} from the median, {_percent(base)} in the baseline)"
        case Tail(base, head, beyond):
            shares = f"{100 * head:.0f} % of the trials, {100 * base:.0f} % in the baseline"
            return f"tail: {shares}, are more than {_percent(beyond)} worse than their median"
        case LateRise(from_trial, ratio):
            return f"worse from trial {from_trial} on: × {ratio:.2f}"
        case _:
            assert_never(aspect)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


_RECORD_AGAIN: Final = "record it again: --ldos-update-baseline"


def describe_reasons(reasons: Sequence[why.Reason]) -> tuple[str, ...]:
    """A sentence for each reason, in order."""
    return tuple(map(describe_reason, reasons))


def describe_reason(reason: why.Reason) -> str:  # noqa: C901, PLR0911, PLR0912, PLR0915 (a table of sentences)
    """One sentence, without a full stop."""
    match reason:
        case why.NoTrials(why=cause):
            return f"no trial was made: {cause or 'none was asked for'}"
        case why.Distorted(why=cause):
            return cause
        case why.LoadNotReached(shortfall):
            return f"the load was not what was asked for: {shortfall}"
        case why.Untrusted(metric, invalid, of, first):
            return f"{metric} of {invalid} of {of} trials cannot be trusted: {first}"
        case why.NotFinished(why=cause):
            return f"the trials could not be finished: {cause}"
        case why.MissedSuccessRate(successes, trials, expected):
            return f"{successes} of {trials} trials succeeded, {100 * expected:.0f} % are expected"
        case why.ShortOfSuccessRate(successes, trials, expected):
            short = f"{successes} of {trials} trials succeeded, {100 * expected:.0f} % are expected"
            return f"{short}: fewer, which may be chance"
        case why.MissedDeadline():
            return _missed_deadline(reason)
        case why.TrialsFailed():
            return _trials_failed(reason)
        case why.FailuresRose(base_failures, base_trials, head_failures, head_trials, p_value):
            counts = f"from {base_failures} of {base_trials} to {head_failures} of {head_trials}"
            return f"failures rose {counts} (p = {p_value:.2g}, Boschloo's exact test)"
        case why.Moved(found):
            return f"{found.metric} ({found.title}) {found.location}: {_effect(found)}"
        case why.ShapeRegressed(found, shape):
            return f"{found.metric} ({found.title}) regressed: {describe_aspect(shape.aspect)}"
        case why.NotClear():
            return _not_clear(reason)
        case why.NotJudged():
            return _not_judged(reason)
        case why.TooFewTrials(metrics, head, base, required):
            remedy = f": have {required} or more on both sides" if required else ""
            return f"{_cannot_be_decided(metrics, head, base)}{remedy}"
        case why.TooFewComparable(metrics, head, base, because):
            return f"{_cannot_be_decided(metrics, head, base)}: {because}"
        case why.TooFewInBaseline(metrics, head, base, required):
            remedy = f"the baseline has too few, record it again with {required} or more"
            return f"{_cannot_be_decided(metrics, head, base)}: {remedy}"
        case why.OtherUnit(metric, here, there):
            return _other_meaning(metric, "unit", here, there)
        case why.OtherDirection(metric, here, there):
            return _other_meaning(metric, "better", here, there)
        case why.OtherSources():
            return _other_sources(reason)
        case why.LostMetric(metric, why=cause):
            return f"{metric} has a baseline but no value in this run: {cause}"
        case why.RequiredMetric(metric):
            return f"{metric} is required and was not measured ([tool.ldos.gate] required)"
        case why.NewMetric(metric):
            return f"{metric} has no baseline: none of its trials measured it ({_RECORD_AGAIN})"
        case why.NewGoal(goal):
            return f"goal '{goal}' is compared with nothing: the baseline has it not"
        case why.LostGoal(goal):
            return f"goal '{goal}' of the baseline was not tried"
        case why.OtherGoals(here, there):
            return f"the goals differ: {', '.join(here)} here, {', '.join(there)} in the baseline"
        case why.EmptyBaseline():
            return "the baseline has no trials"
        case why.NothingInCommon():
            return "no metric has values on both sides"
        case why.BaselineMissing():
            return "there is no baseline to compare with"
        case why.BaselineShared():
            return (
                "this machine has no baseline yet: changes since the repository's, which another machine of its host "
                "class recorded, are shown and not judged (--ldos-baselines judges by it)"
            )
        case why.BaselineUnreadable(why=cause):
            return f"the baseline cannot be read: {cause}"
        case why.CalibrationUnreadable(why=cause):
            return f"the calibration cannot be read: {cause}"
        case OtherHost(here, there):
            return f"host class {describe_host(here)} cannot be compared with {describe_host(there)}"
        case OtherHostClasses(here, others):
            own = f"none of this host's class, {here.host_class}"
            return f"there are baselines of host class {', '.join(others)}, but {own}"
        case OtherScenario(file, here, there):
            return f"{file} was recorded for {describe_key(there)}, this run is {describe_key(here, 'on')}"
        case OtherLoads(file, differences):
            unlike = ", ".join(map(_load_difference, differences))
            return f"{file} was measured beside other loads: {unlike} ({_RECORD_AGAIN})"
        case why.NotConfirmed(metrics):
            return (
                f"{', '.join(metrics)} looked worse than the stored baseline, and interleaved with its commit neither "
                "worse nor as good: allow more time or trials (--ldos-confirm, --ldos-max-trials)"
            )
        case why.TheMachine(metrics):
            return f"{', '.join(metrics)}: the machine's doing, not the code's: exactly the baseline's stack ran"
        case why.NotTheCode(unlike):
            named = ", ".join(f"{name} {there} → {here}" for name, there, here in unlike)
            return f"the commit is not to blame: interleaved, it is as fast as the baseline's; what differs: {named}"
        case why.OfBase(inner):
            return f"base: {describe_reason(inner)}"
        case _:
            assert_never(reason)


def _amount(by: float) -> str:
    if not math.isfinite(by):
        return "any amount"
    return f"{100 * by:.0f} %" if by <= LARGEST_EFFECT else f"more than {100 * LARGEST_EFFECT:.0f} %"


def describe_more_trials(use: MoreTrials) -> str:
    """The sentence for a reason why more trials would help."""
    match use:
        case MayFailMore():
            return "failures may have become more frequent"
        case MayBeWorse(metric, by):
            return f"{metric} may have become worse by {_amount(by)}"
        case VariesTooMuch(metric):
            return f"{metric} varies too much for what is to be seen"
        case MayHaveChanged(metric, aspect):
            return f"{metric} may have become worse: {describe_aspect(aspect)}"
        case _:
            assert_never(use)


def describe_other_calibration(other: OtherHostClasses | OtherScenario) -> str:
    """The sentence for a calibration that exists, but is not used."""
    if isinstance(other, OtherHostClasses):
        what = f"host class {', '.join(other.others)}"
    else:
        what = f"{describe_key(other.there)} ({other.file})"
    unused = f"not calibrated: there is a calibration of {what}, which is not used for {describe_key(other.here)}"
    return f"{unused} (ldos calibrate --scenario {other.here.scenario})"


def _load_difference(difference: LoadDifference) -> str:
    """``dds_flood.rate_hz is 2000 here, 1000 there``."""
    name, here, there = difference.name, difference.here, difference.there
    if here is None or there is None:
        return f"{name} only {'there' if here is None else 'here'}"
    return f"{name} is {_value(here)} here, {_value(there)} there"


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _missed_deadline(reason: why.MissedDeadline) -> str:
    share = f"{100 * reason.share:g} % of its passages"
    expected = f"path '{reason.path}' is to take at most {reason.ms:g} ms in {share}"
    if not reason.passages:
        return f"{expected}: it was never passed"
    kept = f"it did in {100 * reason.in_time / reason.passages:.1f} % of {reason.passages}"
    return f"{expected}: {kept}, and {reason.keeping} of {reason.trials} trials kept to it"


def _trials_failed(reason: why.TrialsFailed) -> str:
    code = "" if reason.code is None else f" (MoveIt code {reason.code})"
    goal = f" of goal '{reason.goal}'" if reason.goal else ""
    return f"trial {', '.join(map(str, reason.numbers))} {reason.outcome}{code}{goal}: {reason.message}"


def _not_clear(reason: why.NotClear) -> str:
    found = reason.comparison
    usual = f", {100 * reason.usual:.0f} % are usual on this host" if math.isfinite(reason.usual) else ""
    return f"{found.metric} is inconclusive{_seen(found)}{usual} (measured {_effect(found)})"


def _not_judged(reason: why.NotJudged) -> str:
    """Minimum detectable effect and its limit, what was measured, and what would make the metric judgeable."""
    found = reason.comparison
    doubt = ", and may have become worse" if reason.may_be_worse else ""
    seen = f"{found.metric} is not judged here{doubt}{_seen(found)} (measured {_effect(found)})"
    if math.isinf(found.mde):
        return seen
    return f"{seen}; the limit is {100 * reason.bound:.0f} %, {_remedy(reason)}"


def _remedy(reason: why.NotJudged) -> str:
    """The remedy that would let a metric be judged."""
    if reason.trials:
        return f"about {reason.trials} trials of each version would be enough"
    floor = reason.comparison.floor
    if floor < reason.bound:
        return "measure interleaved to reach it with fewer trials (--ldos-base)"
    return f"but nothing below {100 * floor:.0f} % is reported until ldos calibrate learns a lower floor"


def _seen(found: Comparison) -> str:
    """``: its MDE is 215 %``."""
    if found.is_from_zero:
        return ""
    return ": it has no MDE" if math.isinf(found.mde) else f": its MDE is {format_effect(found.mde)}"


def _effect(found: Comparison) -> str:
    if not found.has_ratio:
        base = "0" if found.is_from_zero else format_quantity(found.base_median, found.unit)
        return f"from {base} to {format_quantity(found.head_median, found.unit)}"
    return f"{100 * (found.ratio - 1):+.1f} %"


def _cannot_be_decided(metrics: Sequence[str], head: int, base: int) -> str:
    return f"{', '.join(metrics)} cannot be decided by {counted(head, 'trial')} against {base}"


def _other_meaning(metric: str, what: str, here: str, there: str) -> str:
    remedy = f"give it another name, or {_RECORD_AGAIN}"
    return f"{metric} is not comparable: its {what} is '{here}' here, '{there}' in the baseline ({remedy})"


def _other_sources(reason: why.OtherSources) -> str:
    here, there = (" and ".join(names) for names in (reason.here, reason.there))
    remedy = f" ({_RECORD_AGAIN})" if len(reason.here) == 1 else ""
    return f"{reason.metric} is not comparable: it was taken from {here} here, from {there} in the baseline{remedy}"
