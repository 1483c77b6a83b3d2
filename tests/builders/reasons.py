"""A reason of each kind with its sentence, as `show.report.reasons` words it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from pytest_ldos.base.series import Better
from pytest_ldos.campaign.watching import DISTORTION
from pytest_ldos.judge.baseline.accepted import SUCCESS_RATE
from pytest_ldos.judge.baseline.key import (
    BaselineKey,
    LoadDifference,
    OtherHost,
    OtherHostClasses,
    OtherLoads,
    OtherProblems,
    OtherScenario,
)
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import LateRise, Shape, Spread, Tail
from tests.builders.accepted import accepted
from tests.builders.trials import noisy_set

HERE = BaselineKey("ros2", "mine", "cpu_load")
THERE = BaselineKey("embedded", "theirs", "baseline")
FILE = Path("baseline.json")
T1, *_ = decide(noisy_set(1, factors={"T1": 1.5}), noisy_set(2), Policy()).comparisons
NOISY, *_ = decide(noisy_set(1, n=4), noisy_set(2, n=4), Policy()).comparisons
WIDE = dataclasses.replace(T1, mde=2.15)
MEASURED = f"{100 * (T1.ratio - 1):+.1f} %"
AS_MANY = 10, 3
SPREAD = Spread(base=0.064, head=0.134)

REASONS = [
    (why.NoTrials(""), "no trial was made: none was requested"),
    (why.NoTrials("interrupted"), "no trial was made: interrupted"),
    (why.Distorted(DISTORTION), DISTORTION),
    (why.LoadNotReached("3 of 4"), "the load was not as requested: 3 of 4"),
    (why.Untrusted("T3", 2, 10, "events lost"), "T3 cannot be trusted in 2 of 10 trials: events lost"),
    (why.NotFinished("it died\n--- its log ---\nSegmentation fault"), "the trials could not be finished: it died"),
    (why.MissedSuccessRate(7, 10, 0.95), "7 of 10 trials succeeded, 95 % are expected"),
    (
        why.MissedDeadline("p", 5.0, 0.99, 200, 186, 4, 10),
        "path 'p' must take at most 5 ms in 99 % of its passages: it did in 93.0 % of 200, and 4 of 10 trials met this",
    ),
    (
        why.MissedDeadline("p", 5.0, 0.999, 10000, 9980, 4, 10),
        "path 'p' must take at most 5 ms in 99.9 % of its passages: it did in 99.8 % of 10000, and 4 of 10 trials met this",
    ),
    (why.MissedDeadline("p", 5.0, 1.0, 0, 0, 0, 2), "path 'p' must take at most 5 ms in 100 % of its passages: it was never passed"),
    (
        why.FoundAny("allocations_control_loop", 10, 1000, 9, ("update() (lib.so)", "main (loop)")),
        "allocations_control_loop: 10 in 9 of 1000 runs, where none is expected (:any compares only); by update() (lib.so), main (loop)",
    ),
    (why.TrialsFailed((1, 3), "stack_died", None, "", "gone"), "trial 1, 3 stack_died: gone"),
    (why.TrialsFailed((2,), "planning_failed", -31, "shelf", "no"), "trial 2 planning_failed (MoveIt code -31) of goal 'shelf': no"),
    (why.FailuresRose(0, 10, 6, 10, 0.0054), "failures rose from 0 of 10 to 6 of 10 (p = 0.0054, Boschloo's exact test)"),
    (
        why.ShapeRegressed(T1, Shape(SPREAD, 1e-5, 0.2)),
        f"T1 ({T1.title}) regressed: spread × 2.1 (on average 13 % from the median, 6.4 % in the base)",
    ),
    (
        why.ShapeRegressed(T1, Shape(Tail(0.04, 0.2, 0.43), 1e-5, 0.2)),
        f"T1 ({T1.title}) regressed: tail: 20 % of the trials, 4 % in the base, are more than 43 % worse than their median",
    ),
    (
        why.ShapeRegressed(T1, Shape(LateRise(20, 1.4), 1e-5, 0.4)),
        f"T1 ({T1.title}) regressed: worse from trial 20 on: × 1.40",
    ),
    (why.Moved(T1), f"T1 ({T1.title}) regressed: {100 * (T1.ratio - 1):+.1f} %"),
    (
        why.AcceptedChange(T1, accepted("T1", 0.6)),
        f"accepted: T1 {100 * (T1.ratio - 1):+.1f} % (Ada, it checks collisions twice; at most +60.0 %)",
    ),
    (
        why.AcceptedChange(why.FailuresRose(0, 10, 4, 10, 0.04), accepted(SUCCESS_RATE, 0.4)),
        "accepted: 4 of 10 trials failed (Ada, it checks collisions twice; at most 40.0 %)",
    ),
    (why.AcceptedUnreadable("it is damaged"), "nothing is accepted: it is damaged"),
    (
        why.NotClear(NOISY),
        f"T1 is inconclusive: it has no MDE (measured {100 * (NOISY.ratio - 1):+.1f} %)",
    ),
    (
        why.NotClear(WIDE, 0.12),
        f"T1 is inconclusive: its MDE is 215.0 %, 12 % are usual on this host (measured {MEASURED})",
    ),
    (
        why.NotJudged(WIDE, 1.0, 81, may_be_worse=False),
        f"T1 is not judged here: its MDE is 215.0 % (measured {MEASURED}); "
        "the limit is 100 %, about 81 trials of each version would be enough",
    ),
    (
        why.NotJudged(WIDE, 1.0, 0, may_be_worse=True),
        f"T1 is not judged here, and may have become worse: its MDE is 215.0 % (measured {MEASURED}); "
        "the limit is 100 %, measure interleaved to reach it with fewer trials (--ldos-base)",
    ),
    (
        why.NotJudged(WIDE, 1.0, 0, may_be_worse=False, is_running=True),
        f"T1 is not judged here: its MDE is 215.0 % (measured {MEASURED}); the limit is 100 %, "
        "longer trials, such as a longer window, may reach it, or a calibration of this host (ldos calibrate)",
    ),
    (
        why.NotJudged(WIDE, 0.04, 0, may_be_worse=False),
        f"T1 is not judged here: its MDE is 215.0 % (measured {MEASURED}); the limit is 4 %, "
        f"but nothing below {100 * WIDE.floor:.0f} % is reported until ldos calibrate learns a lower floor",
    ),
    (
        why.NotJudged(NOISY, 1.0, 0, may_be_worse=False),
        f"T1 is not judged here: it has no MDE (measured {100 * (NOISY.ratio - 1):+.1f} %)",
    ),
    (why.RequiredMetric("T5"), "T5 is required and was not measured ([tool.ldos.gate] required)"),
    (why.TooFewTrials(("T1", "T3"), *AS_MANY, 8), "10 trials against 3 are too few to compare T1, T3: each side needs 8 or more"),
    (why.TooFewTrials(("T1",), *AS_MANY, 0), "10 trials against 3 are too few to compare T1"),
    (why.TooFewInBaseline(("T1",), *AS_MANY, 8), "10 trials against 3 are too few to compare T1: record the baseline again with 8 or more"),
    (why.TooFewComparable(("T1",), *AS_MANY, why.Unusable.FAILED), "10 trials against 3 cannot be compared in T1: more than half of the trials of one version failed"),
    (
        why.TooFewComparable(("T1",), *AS_MANY, why.Unusable.UNPAIRED),
        "10 trials against 3 cannot be compared in T1: too few of them have the goals and pairs of starts of the other version",
    ),
    (why.ShortOfSuccessRate(7, 10, 0.9), "7 of 10 trials succeeded, 90 % are expected; this may be chance"),
    (why.OtherUnit("grip", "ms", "s"), "grip is not comparable: its unit is 'ms' here, 's' in the base (give it another name, or record it again: --ldos-update-baseline)"),
    (
        why.OtherDirection("grip", Better.LOWER, Better.HIGHER),
        "grip is not comparable: its better is 'lower' here, 'higher' in the base (give it another name, or record it again: --ldos-update-baseline)",
    ),
    (why.OtherSources("T3", ("a", "b"), ("c",)), "T3 is not comparable: it was taken from a and b here, from c in the base"),
    (why.OtherSources("T3", ("a",), ("c",)), "T3 is not comparable: it was taken from a here, from c in the base (record it again: --ldos-update-baseline)"),
    (why.LostMetric("T3", "no probe"), "T3 has a value in the base but none in this run: no probe"),
    (why.NewMetric("T3"), "T3 is missing from the baseline (record it again: --ldos-update-baseline)"),
    (why.NewGoal("shelf"), "goal 'shelf' is missing from the baseline"),
    (why.LostGoal("shelf"), "goal 'shelf' of the baseline was not tried"),
    (why.OtherGoals(("a", "b"), ("c",)), "the goals differ: a, b here, c in the base"),
    (why.EmptyBaseline(), "the baseline has no trials"),
    (why.NothingInCommon(), "no metric has values on both sides"),
    (why.BaselineMissing(), "there is no baseline to compare with"),
    (
        why.BaselineShared(),
        "this machine has no baseline yet: changes from the repository's baseline, which another machine of this host class recorded, are shown but not judged (--ldos-baselines judges by it)",
    ),
    (why.BaselineUnreadable("no JSON"), "the baseline cannot be read: no JSON"),
    (why.CalibrationUnreadable("no JSON"), "the calibration cannot be read: no JSON"),
    (OtherHost(HERE, THERE), "host class mine (ros2) cannot be compared with theirs (embedded)"),
    (OtherHostClasses(HERE, ("a", "b")), "there are baselines of host class a, b, but none of this host's class, mine"),
    (
        OtherScenario(FILE, HERE, THERE),
        "baseline.json was recorded for scenario 'baseline' of the embedded stack on host class theirs, this run is scenario 'cpu_load' of the ros2 stack on mine",
    ),
    (
        OtherLoads(FILE, (LoadDifference("dds_flood.rate_hz", 2000.0, 1000.0), LoadDifference("cpu", None, {}))),
        "baseline.json was measured under other loads: dds_flood.rate_hz is 2000 here, 1000 there, cpu only there (record it again: --ldos-update-baseline)",
    ),
    (
        OtherProblems(FILE, ("shelf changed", *(f"{number} is new" for number in range(9)))),
        "baseline.json has plans of other problems: shelf changed, 0 is new, 1 is new, 2 is new, 3 is new, 4 is new, 5 is new, 6 is new, … (record it again: --ldos-update-baseline)",
    ),
    (why.NotConfirmed(("T1", "T4")), "T1, T4 looked worse than the stored baseline; interleaved with the baseline's commit, "
     "this was neither confirmed nor ruled out: allow more time or trials (--ldos-confirm, --ldos-max-trials)"),
    (why.NotTheCode((("ompl", "1.6", "1.7"), ("kernel", "6.1", "6.2"))), "the commit is not to blame: interleaved, it is as "
     "fast as the baseline's; what differs: ompl 1.6 → 1.7, kernel 6.1 → 6.2"),
    (why.TheMachine(("T1",)), "T1 changed with the machine, not the code: exactly the baseline's stack ran"),
    (why.OfBase(why.NotFinished("it died")), "base: the trials could not be finished: it died"),
]  # fmt: skip
