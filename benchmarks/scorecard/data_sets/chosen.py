"""Every data set of the scorecard, with its numbers."""

from __future__ import annotations

from typing import Final

from benchmarks.scorecard.data_sets.process import Machine, Process, alike
from benchmarks.scorecard.data_sets.protocol import DataSet
from benchmarks.scorecard.data_sets.recorded import Recorded
from benchmarks.scorecard.data_sets.seed import Seed
from benchmarks.scorecard.data_sets.simulated import Simulated
from benchmarks.scorecard.sample import SCENARIOS

_RECORDED: Final = (
    "Trials of the embedded stack on a virtual machine with two cores: baseline while it was mostly idle, msg_load during "
    "compilations. cpu_load is represented by baseline during such compilations, cpu_limit by the calm "
    "baseline once more."
)

LIKE_OURS: Final = Machine(
    processes={
        "T1": Process(trial_sd=0.21, start_sd=0.08),
        "T2": Process(trial_sd=0.017, start_sd=0.02),
        "T3": Process(trial_sd=0.6, start_sd=0.7, correlation=0.35),
        "T4": Process(trial_sd=0.017, start_sd=0.02),
        "T5": Process(trial_sd=0.43, start_sd=0.6, correlation=0.3),
    }
)
"""Fitted to the calm recording: nested analysis of variance, and the starts' correlation with the next one."""

STRONG: Final = Machine(
    processes=alike(Process(trial_sd=0.06, start_sd=0.1, correlation=0.95, step_rate=0.02, step_sd=0.1))
)

_STUDENT: Final = Process(trial_sd=0.1, start_sd=0.01, degrees=3.0)
STUDENT: Final = Machine(processes=alike(_STUDENT))
FAILING: Final = Machine(processes=alike(_STUDENT), failure_rate=0.05)
CONTAMINATED: Final = Machine(
    processes=alike(Process(trial_sd=0.06, start_sd=0.01, outlier_rate=0.03, outlier_size=0.2))
)

STEADY: Final = {
    name: Machine(processes=alike(Process(trial_sd=sd, start_sd=0.0)))
    for name, sd in zip(SCENARIOS, (0.0975, 0.08, 0.05, 0.02), strict=True)
}

_STEADY: Final = (
    "Made numbers of a machine that does not drift: log-normal trials that differ by 9.8, 8, 5 and 2 % in the four scenarios, "
    "and starts that do not differ."
)
_HEAVY: Final = (
    "Made numbers that do not drift: log-normal trials whose logarithms follow Student's t with 3 degrees of freedom (scaled "
    "for a standard deviation of 0.1), or in cpu_load and cpu_limit a normal of 0.06 where 3 % of the trials take a "
    "Pareto-distributed (shape 3) 20 % or more longer; starts differ by 1 %; in msg_load 5 % of all trials fail, on both "
    "sides."
)
_LIKE_OURS: Final = (
    "Made numbers: trials and starts differ by as much as in our calm recording (T1 21 and 8 %, T2 and T4 1.7 and 2 %, "
    "T3 60 and 70 %, T5 43 and 60 %); starts of T3 and T5 are correlated by a third with the next one."
)
_STRONG: Final = (
    "Made numbers: trials differ by 6 %, levels wander by 10 % with a correlation of 0.95 from start to start, and one "
    "start in fifty brings a lasting step of about 10 %."
)
_LATER: Final = "Ten trials each in three starts, 30 other starts between base and head."
_TURNS: Final = "Base and head are interleaved (ABBA): five pairs of starts with two trials each, then pairs of five trials up to 30 trials."

DATA_SETS: Final[tuple[DataSet, ...]] = (
    Recorded(
        name="recorded_in_turns",
        title="recorded, interleaved",
        about=f"{_RECORDED} {_TURNS} Each pair is two neighbouring starts.",
        interleaved=True,
    ),
    Recorded(
        name="recorded_sequential",
        title="recorded, one after another",
        about=f"{_RECORDED} Ten trials each in three neighbouring starts, from two places of the recording.",
        interleaved=False,
    ),
    Seed(),
    Simulated(
        name="steady_in_turns",
        title="steady, interleaved",
        about=f"{_STEADY} {_TURNS}",
        machines=STEADY,
        interleaved=True,
    ),
    Simulated(
        name="steady_sequential",
        title="steady, sequential",
        about=f"{_STEADY} {_LATER}",
        machines=STEADY,
        interleaved=False,
    ),
    Simulated(
        name="heavy_tails",
        title="heavy tails, interleaved",
        about=f"{_HEAVY} {_TURNS}",
        machines={"baseline": STUDENT, "cpu_load": CONTAMINATED, "msg_load": FAILING, "cpu_limit": CONTAMINATED},
        interleaved=True,
    ),
    Simulated(
        name="drift_in_turns",
        title="drift as ours, interleaved",
        about=f"{_LIKE_OURS} {_TURNS}",
        machines=dict.fromkeys(SCENARIOS, LIKE_OURS),
        interleaved=True,
    ),
    Simulated(
        name="drift_sequential",
        title="drift as ours, sequential",
        about=f"{_LIKE_OURS} {_LATER}",
        machines=dict.fromkeys(SCENARIOS, LIKE_OURS),
        interleaved=False,
    ),
    Simulated(
        name="strong_drift_in_turns",
        title="strong drift, interleaved",
        about=f"{_STRONG} {_TURNS}",
        machines=dict.fromkeys(SCENARIOS, STRONG),
        interleaved=True,
    ),
    Simulated(
        name="strong_drift_sequential",
        title="strong drift, sequential",
        about=f"{_STRONG} {_LATER}",
        machines=dict.fromkeys(SCENARIOS, STRONG),
        interleaved=False,
    ),
)
