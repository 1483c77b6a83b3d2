"""The wording of reasons, one table from which their page is generated, and the sentence of each aspect."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from pytest_ldos.base.text import LARGEST_EFFECT, counted, format_effect, format_quantity, percent, without_logs
from pytest_ldos.judge.baseline import key as keys
from pytest_ldos.judge.baseline.key import LoadDifference, OtherHost, OtherHostClasses, OtherLoads, OtherScenario
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate import verdict
from pytest_ldos.show.report.sentences import describe_key

ELLIPSIS: Final = "…"  # stands for the facts of a run in `Wording.pattern`


_FEW: Final = 8


class _Sentences(string.Formatter):
    """Format strings with more formats: ``list``, ``few``, ``and``, ``percent`` (of a share) and ``trials``."""

    def format_field(self, value: Any, format_spec: str) -> str:
        match format_spec:
            case "list":
                return ", ".join(map(str, value))
            case "few":
                return ", ".join([*map(str, value[:_FEW]), *["…"] * (len(value) > _FEW)])
            case "and":
                return " and ".join(value)
            case "percent":
                return f"{100 * value:g} %"
            case "trials":
                return counted(value, "trial")
        return str(super().format_field(value, format_spec))


_FORMAT: Final = _Sentences()


@dataclass(frozen=True)
class Wording:
    """The words for one kind of reason; its `facts` are further fields of the sentence."""

    sentence: str  # a format string over the attributes of the reason, without a full stop
    remedy: str  # what to do, as the page of reasons says it, in Markdown
    facts: Callable[[Any], Mapping[str, object]] = lambda _: {}

    @property
    def pattern(self) -> str:
        """The sentence with `ELLIPSIS` in place of facts."""
        parts = _FORMAT.parse(self.sentence)
        whole = "".join(literal if field is None else f"{literal}{ELLIPSIS}" for literal, field, *_ in parts)
        return re.sub(f"{ELLIPSIS}+", ELLIPSIS, whole)


def describe_reason(reason: why.Reason) -> str:
    wording = WORDINGS[type(reason)]
    return _FORMAT.vformat(wording.sentence, (), {**vars(reason), **wording.facts(reason)})


def describe_aspect(aspect: verdict.Aspect) -> str:
    """``spread × 2.1 (on average 13 % from the median, 6.4 % in the base)``."""
    match aspect:
        case verdict.Spread(base, head):
            growth = f" × {head / base:.2g}" if base else ""
            here, there = percent(head, None), percent(base, None)
            return f"spread{growth} (on average {here} from the median, {there} in the base)"
        case verdict.Tail(base, head, beyond):
            shares = f"{percent(head, 0)} of the trials, {percent(base, 0)} in the base"
            return f"tail: {shares}, are more than {percent(beyond, None)} worse than their median"
        case verdict.LateRise(from_trial, ratio):
            return f"worse from trial {from_trial} on: × {ratio:.2f}"
        case _:
            assert_never(aspect)


def _deadline_facts(reason: why.MissedDeadline) -> Mapping[str, object]:
    if not reason.passages:
        return {"kept": "it was never passed"}
    met = f"{percent(reason.in_time / reason.passages)} of {reason.passages}"
    return {"kept": f"it did in {met}, and {reason.keeping} of {reason.trials} trials met this"}


def _failure_facts(reason: why.TrialsFailed) -> Mapping[str, object]:
    code = "" if reason.code is None else f" (MoveIt code {reason.code})"
    return {"coded": code, "of_goal": f" of goal '{reason.goal}'" if reason.goal else ""}


def _not_clear_facts(reason: why.NotClear) -> Mapping[str, object]:
    usual = f", {percent(reason.usual, 0)} are usual on this host" if math.isfinite(reason.usual) else ""
    return {**_effect_facts(reason), "mde": _mde(reason.comparison), "usually": usual}


def _not_judged_facts(reason: why.NotJudged) -> Mapping[str, object]:
    found = reason.comparison
    doubt = ", and may have become worse" if reason.may_be_worse else ""
    if reason.trials:
        remedy = f"about {reason.trials} trials of each version would be enough"
    elif found.floor < reason.bound and reason.is_running:
        remedy = "longer trials, such as a longer window, may reach it, or a calibration of this host (ldos calibrate)"
    elif found.floor < reason.bound:
        remedy = "measure interleaved to reach it with fewer trials (--ldos-base)"
    else:
        remedy = f"but nothing below {percent(found.floor, 0)} is reported until ldos calibrate learns a lower floor"
    limit = "" if math.isinf(found.mde) else f"; the limit is {percent(reason.bound, 0)}, {remedy}"
    return {**_effect_facts(reason), "doubt": doubt, "mde": _mde(found), "limit": limit}


def _mde(found: verdict.Comparison) -> str:
    """``: its MDE is 215 %``."""
    if found.is_from_zero:
        return ""
    return ": it has no MDE" if math.isinf(found.mde) else f": its MDE is {format_effect(found.mde)}"


def _effect_facts(reason: why.Moved | why.NotClear | why.NotJudged) -> Mapping[str, object]:
    found = reason.comparison
    if found.has_ratio:
        return {"effect": percent(found.ratio - 1, signed=True)}
    base = "0" if found.is_from_zero else format_quantity(found.base_median, found.unit)
    return {"effect": f"from {base} to {format_quantity(found.head_median, found.unit)}"}


def _accepted_facts(reason: why.AcceptedChange) -> Mapping[str, object]:
    found, size = reason.change, reason.accepted.size
    if isinstance(found, why.FailuresRose):
        return {"effect": f"{found.head_failures} of {found.head_trials} trials failed", "limit": percent(size)}
    return {"effect": f"{found.metric} {percent(found.ratio - 1, signed=True)}", "limit": percent(size, signed=True)}


_RECORD_AGAIN: Final = "record it again: --ldos-update-baseline"
_TO_RECORD: Final = "record the baseline again: `--ldos-update-baseline`"
_RENAME: Final = f"give the metric another name, or {_TO_RECORD}"
_QUIET: Final = "[quiet the machine](../how-to/quiet-a-noisy-machine.md)"
_COUNTS: Final = "{head_count:trials} against {base_count}"
_SUCCESSES: Final = "{successes} of {trials} trials succeeded, {expected:percent} are expected"
_UNLIKE: Final = (
    "{{metric}} is not comparable: its {} is '{{here}}' here, '{{there}}' in the base "
    f"(give it another name, or {_RECORD_AGAIN})"
)

WORDINGS: Final[Mapping[type, Wording]] = {
    why.Moved: Wording(
        "{comparison.metric} ({comparison.title}) {comparison.location}: {effect}",
        "look at the segment that the report names, or [accept it](../how-to/accept-a-slowdown.md) if it is intended",
        _effect_facts,
    ),
    why.AcceptedChange: Wording(
        "accepted: {effect} ({accepted.by}, {accepted.reason}; at most {limit})",
        "nothing: somebody [accepted it](../how-to/accept-a-slowdown.md), up to this size",
        _accepted_facts,
    ),
    why.AcceptedUnreadable: Wording("nothing is accepted: {why}", "correct the file on the branch of the base"),
    why.MissedSuccessRate: Wording(
        _SUCCESSES,
        "read how trials failed (below it, and the logs of the run); lower `success_rate` if so many may fail",
    ),
    why.MissedDeadline: Wording(
        "path '{path}' must take at most {ms:g} ms in {share:percent} of its passages: {kept}",
        "see which segment takes the time: `ldos analyze` on the trace; if never passed, check the path's topics",
        _deadline_facts,
    ),
    why.FoundAny: Wording(
        "{metric}: {found} in {runs_with_any} of {runs} runs, where none is expected (:any compares only); by {by:few}",
        "[remove the calls](../how-to/prove-real-time.md), or let the metric end in `:any` to compare it only",
    ),
    why.TrialsFailed: Wording(
        "trial {numbers:few} {outcome}{coded}{of_goal}: {message}",
        "read the message, then `logs/` in the run's folder",
        _failure_facts,
    ),
    why.FailuresRose: Wording(
        "failures rose from {base_failures} of {base_trials} to {head_failures} of {head_trials} "
        "(p = {p_value:.2g}, Boschloo's exact test)",
        "the new version fails more often, whatever its times: read the failed trials' messages",
    ),
    why.ShapeRegressed: Wording(
        "{comparison.metric} ({comparison.title}) regressed: {aspect}",
        "the median may be the same: look for what happens now and then (locks, allocation), or from a trial on",
        lambda reason: {"aspect": describe_aspect(reason.shape.aspect)},
    ),
    why.NotTheCode: Wording(
        "the commit is not to blame: interleaved, it is as fast as the baseline's; what differs: {unlike:list}",
        f"check what the message names, such as an upgraded package; if it is intended, {_TO_RECORD}",
        lambda reason: {"unlike": [f"{name} {there} → {here}" for name, there, here in reason.differences]},
    ),
    why.NoTrials: Wording(
        "no trial was made: {cause}",
        "do what the message says; `--ldos-trials` must be at least 1",
        lambda reason: {"cause": without_logs(reason.why) or "none was requested"},
    ),
    why.Distorted: Wording("{why}", "measure again without the tool that slows the stack (`--ldos-syscalls`)"),
    why.LoadNotReached: Wording(
        "the load was not as requested: {shortfall}",
        "the message says what was reached: request less, or give the load more of the machine",
    ),
    why.Untrusted: Wording(
        "{metric} cannot be trusted in {invalid} of {of} trials: {first}",
        "events lost: less load on the disk, or fewer events; clocks disagree: `ldos doctor`; then measure again",
    ),
    why.NotFinished: Wording(
        "the trials could not be finished: {why}",
        "a process died or the run was ended: read `logs/` in the run's folder",
        lambda reason: {"why": without_logs(reason.why)},
    ),
    why.BaselineUnreadable: Wording("the baseline cannot be read: {why}", f"restore the file, or {_TO_RECORD}"),
    why.CalibrationUnreadable: Wording(
        "the calibration cannot be read: {why}", "delete it, or calibrate again: `ldos calibrate`"
    ),
    why.OfBase: Wording(
        "base: {sentence}",
        "the reason behind it is the base's: it was not measured well",
        lambda reason: {"sentence": describe_reason(reason.reason)},
    ),
    why.NotConfirmed: Wording(
        "{metrics:list} looked worse than the stored baseline; interleaved with the baseline's commit, this was "
        "neither confirmed nor ruled out: allow more time or trials (--ldos-confirm, --ldos-max-trials)",
        "allow more time or more trials: `--ldos-confirm`, `--ldos-max-trials`",
    ),
    why.ShortOfSuccessRate: Wording(f"{_SUCCESSES}; this may be chance", "make more trials: `--ldos-trials`"),
    why.NotClear: Wording(
        "{comparison.metric} is inconclusive{mde}{usually} (measured {effect})",
        f"{_QUIET}, then `--ldos-base` (not for running nodes), then `--ldos-max-trials`, then `ldos calibrate`",
        _not_clear_facts,
    ),
    why.TooFewTrials: Wording(
        f"{_COUNTS} are too few to compare {{metrics:list}}{{needed}}",
        "make at least eight trials on both sides, nine with several scenarios",
        lambda reason: {"needed": f": each side needs {reason.required} or more" if reason.required else ""},
    ),
    why.TooFewComparable: Wording(
        f"{_COUNTS} cannot be compared in {{metrics:list}}: {{because}}",
        "the message says why: failed trials, other goals or pairs of starts, or a calibration that knows too little",
    ),
    why.TooFewInBaseline: Wording(
        f"{_COUNTS} are too few to compare {{metrics:list}}: record the baseline again with {{required}} or more",
        _TO_RECORD,
    ),
    why.LostMetric: Wording(
        "{metric} has a value in the base but none in this run: {why}",
        f"a probe, marker or topic is missing now; if that is intended, {_TO_RECORD}",
    ),
    why.RequiredMetric: Wording(
        "{metric} is required and was not measured ([tool.ldos.gate] required)",
        "make it measurable (T3 and T5 need [probes](../how-to/measure-your-robot.md)), or take it out of `required`",
    ),
    why.NewGoal: Wording("goal '{goal}' is missing from the baseline", _TO_RECORD),
    why.LostGoal: Wording("goal '{goal}' of the baseline was not tried", f"try it, or {_TO_RECORD}"),
    why.OtherGoals: Wording("the goals differ: {here:list} here, {there:list} in the base", _TO_RECORD),
    why.EmptyBaseline: Wording("the baseline has no trials", _TO_RECORD),
    why.NothingInCommon: Wording("no metric has values on both sides", f"see why metrics are missing, or {_TO_RECORD}"),
    why.OtherUnit: Wording(_UNLIKE.format("unit"), _RENAME),
    why.OtherDirection: Wording(_UNLIKE.format("better"), _RENAME),
    why.OtherSources: Wording(
        "{metric} is not comparable: it was taken from {here:and} here, from {there:and} in the base{again}",
        f"a probe was added or removed: {_TO_RECORD}",
        lambda reason: {"again": f" ({_RECORD_AGAIN})" if len(reason.here) == 1 else ""},
    ),
    OtherHost: Wording(
        "host class {here.host_class} ({here.stack}) cannot be compared with {there.host_class} ({there.stack})",
        "compare runs of one class; record a baseline on each machine",
    ),
    OtherHostClasses: Wording(
        "there are baselines of host class {others:list}, but none of this host's class, {here.host_class}",
        "machine, governor, turbo, stack, `cpus` or middleware differs (`ldos doctor --host-class`): record one here",
    ),
    OtherScenario: Wording(
        "{file} was recorded for {recorded}, this run is {this}",
        "the file is in another scenario's place: move it, or record again",
        lambda reason: {"recorded": describe_key(reason.there), "this": describe_key(reason.here, "on")},
    ),
    OtherLoads: Wording(
        f"{{file}} was measured under other loads: {{unlike:list}} ({_RECORD_AGAIN})",
        _TO_RECORD,
        lambda reason: {"unlike": map(_load_difference, reason.differences)},
    ),
    keys.OtherProblems: Wording(
        f"{{file}} has plans of other problems: {{differences:few}} ({_RECORD_AGAIN})", _TO_RECORD
    ),
    why.NewMetric: Wording(f"{{metric}} is missing from the baseline ({_RECORD_AGAIN})", _TO_RECORD),
    why.BaselineMissing: Wording(
        "there is no baseline to compare with", "measure again: this run became the baseline, unless it was strict"
    ),
    why.BaselineShared: Wording(
        "this machine has no baseline yet: changes from the repository's baseline, which another machine of this host "
        "class recorded, are shown but not judged (--ldos-baselines judges by it)",
        "measure again, or let the repository's count: `--ldos-baselines=baselines`",
    ),
    why.TheMachine: Wording(
        "{metrics:list} changed with the machine, not the code: exactly the baseline's stack ran",
        f"{_QUIET}; such runs are kept, and the gate learns from them",
    ),
    why.NotJudged: Wording(
        "{comparison.metric} is not judged here{doubt}{mde} (measured {effect}){limit}",
        "the message says what would do: trials, interleaving or a calibration; other metrics are judged all the same",
        _not_judged_facts,
    ),
}


def _amount(by: float) -> str:
    if not math.isfinite(by):
        return "any amount"
    return percent(by, 0) if by <= LARGEST_EFFECT else f"more than {percent(LARGEST_EFFECT, 0)}"


def describe_more_trials(use: verdict.MoreTrials) -> str:
    match use:
        case verdict.MayFailMore():
            return "failures may have become more frequent"
        case verdict.MayBeWorse(metric, by):
            return f"{metric} may have become worse by {_amount(by)}"
        case verdict.VariesTooMuch(metric):
            return f"{metric} varies too much to show a relevant change"
        case verdict.MayHaveChanged(metric, aspect):
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
