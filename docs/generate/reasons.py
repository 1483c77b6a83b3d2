"""The page of reasons: what a verdict says, why, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from docs.generate.text import code, flowing, table
from pytest_ldos.campaign.watching import DISTORTION
from pytest_ldos.judge.baseline.key import OtherHost, OtherHostClasses, OtherLoads, OtherScenario
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.reasons import VERDICT_OF
from pytest_ldos.judge.gate.verdict import Verdict

_AGAIN: Final = "record the baseline again: `--ldos-update-baseline`"
_OTHER_NAME: Final = f"give the metric another name, or {_AGAIN}"


@dataclass(frozen=True)
class Told:
    """Message and cure of a kind of reason; … stands for words of a run."""

    message: str
    cure: str


TOLD: Final[Mapping[type, Told]] = {
    why.MissedSuccessRate: Told(
        "… of … trials succeeded, … % are expected",
        "read how trials failed (below it, and the logs of the run); lower `success_rate` if so many may fail",
    ),
    why.MissedDeadline: Told(
        "path '…' is to take at most … ms in … % of its passages: …",
        "see which segment takes the time: `ldos analyze` on the trace; if never passed, check the path's topics",
    ),
    why.TrialsFailed: Told("trial … …: …", "look at the message, then at `logs/` in the run's folder"),
    why.FailuresRose: Told(
        "failures rose from … of … to … of … (p = …, Boschloo's exact test)",
        "the new version fails more often, whatever its times: look at the failed trials' messages",
    ),
    why.ShapeRegressed: Told(
        "… (…) regressed: …",
        "the median may be the same: look for what happens now and then (locks, allocation), or from a trial on",
    ),
    why.NoTrials: Told("no trial was made: …", "do what the message says; `--ldos-trials` must be at least 1"),
    why.Distorted: Told(DISTORTION, "measure again without the tool that slows the stack (`--ldos-syscalls`)"),
    why.LoadNotReached: Told(
        "the load was not what was asked for: …",
        "ask for less, or give the load more of the machine: the message has what was reached",
    ),
    why.Untrusted: Told(
        "… of … of … trials cannot be trusted: …",
        "events lost: less load on the disk, or fewer events; clocks disagree: `ldos doctor`; then measure again",
    ),
    why.NotFinished: Told(
        "the trials could not be finished: …",
        "a process died or the run was ended: see the end of its log in the message",
    ),
    why.BaselineUnreadable: Told("the baseline cannot be read: …", f"restore the file, or {_AGAIN}"),
    why.CalibrationUnreadable: Told(
        "the calibration cannot be read: …", "delete it, or calibrate again: `ldos calibrate`"
    ),
    why.OfBase: Told("base: …", "the reason behind it is the base's: it was not measured well"),
    why.ShortOfSuccessRate: Told(
        "… of … trials succeeded, … % are expected: fewer, which may be chance", "take more trials: `--ldos-trials`"
    ),
    why.NotClear: Told(
        "… is inconclusive: … (measured …)",
        "[quiet the machine](../how-to/quiet-a-noisy-machine.md), then `--ldos-base`, then `--ldos-max-trials`, "
        "then `ldos calibrate`",
    ),
    why.TooFewTrials: Told(
        "… cannot be decided by … against …", "at least eight trials on both sides, nine with several scenarios"
    ),
    why.TooFewComparable: Told(
        "… cannot be decided by … against …: …",
        "the message says why: failed trials, other goals or pairs of starts, or a calibration that knows too little",
    ),
    why.TooFewInBaseline: Told(
        "… cannot be decided by … against …: the baseline has too few, record it again with … or more", _AGAIN
    ),
    why.LostMetric: Told(
        "… has a baseline but no value in this run: …",
        f"a probe, marker or topic is missing now; if that is meant, {_AGAIN}",
    ),
    why.RequiredMetric: Told(
        "… is required and was not measured ([tool.ldos.gate] required)",
        "make it measurable (T3 and T5 need [probes](../how-to/measure-your-robot.md)), or take it out of `required`",
    ),
    why.NewGoal: Told("goal '…' is compared with nothing: the baseline has it not", _AGAIN),
    why.LostGoal: Told("goal '…' of the baseline was not tried", f"try it, or {_AGAIN}"),
    why.OtherGoals: Told("the goals differ: … here, … in the baseline", _AGAIN),
    why.EmptyBaseline: Told("the baseline has no trials", _AGAIN),
    why.NothingInCommon: Told("no metric has values on both sides", f"see why metrics are missing, or {_AGAIN}"),
    why.OtherUnit: Told("… is not comparable: its unit is '…' here, '…' in the baseline (…)", _OTHER_NAME),
    why.OtherDirection: Told("… is not comparable: its better is '…' here, '…' in the baseline (…)", _OTHER_NAME),
    why.OtherSources: Told(
        "… is not comparable: it was taken from … here, from … in the baseline…",
        f"a probe was added or taken away: {_AGAIN}",
    ),
    OtherHost: Told(
        "host class … cannot be compared with …", "compare runs of one class; record a baseline on each machine"
    ),
    OtherHostClasses: Told(
        "there are baselines of host class …, but none of this host's class, …",
        "the machine, governor, turbo, stack or middleware differs (`ldos doctor --host-class`): record one here",
    ),
    OtherScenario: Told(
        "… was recorded for …, this run is …", "the file lies in another scenario's place: move it, or record again"
    ),
    OtherLoads: Told("… was measured beside other loads: … (…)", _AGAIN),
    why.NewMetric: Told("… has no baseline: none of its trials measured it (…)", _AGAIN),
    why.BaselineMissing: Told(
        "there is no baseline to compare with", "measure again: this run became the baseline, unless it was strict"
    ),
    why.BaselineShared: Told(
        "this machine has no baseline yet: …",
        "measure again, or let the repository's count: `--ldos-baselines=baselines`",
    ),
    why.NotTheCode: Told(
        "the commit is not to blame: interleaved, it is as fast as the baseline's; what differs: …",
        "look at what the message names, as at an upgraded package; if it is meant, " + _AGAIN,
    ),
    why.NotConfirmed: Told(
        "… looked worse than the stored baseline, and interleaved with its commit neither worse nor as good: …",
        "allow more time or more trials: `--ldos-confirm`, `--ldos-max-trials`",
    ),
    why.TheMachine: Told(
        "…: the machine's doing, not the code's: exactly the baseline's stack ran",
        "[quiet the machine](../how-to/quiet-a-noisy-machine.md); such runs are kept, and the gate learns from them",
    ),
    why.NotJudged: Told(
        "… is not judged here…",
        "the message has what would do: trials, interleaving, or a calibration; other metrics are judged all the same",
    ),
}


def reasons_page() -> Iterator[str]:
    """Every reason by the verdict that it leads to."""
    yield from (
        "# Reasons of a verdict",
        "",
        "Every sentence that a verdict can give as its reason, by the verdict, the most severe first; … stands for",
        "what only a run knows. A metric that moved has a reason, too: `T1 (planning latency) regressed: +77.9 %`.",
        "",
    )
    for verdict in sorted({*VERDICT_OF.values()}, key=lambda each: -each.severity):
        yield from (f"## `{verdict.value}`", "")
        yield from table(("reason", "cause", "what to do"), _rows(verdict))
        yield ""


def _rows(verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    for kind in (each for each, of in VERDICT_OF.items() if of is verdict):
        cause = flowing((inspect.getdoc(kind) or "").partition("\n\n")[0])
        told = TOLD[kind]
        yield code(told.message), cause, told.cure
