"""Size and duration of runs, estimated from earlier ones on this machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

from pytest_ldos.base.text import counted, describe_duration
from pytest_ldos.campaign.order import Role, blocks_alone, first_blocks, next_pair, usual_size_alone
from pytest_ldos.measure.trial.artifacts import RUNS
from pytest_ldos.measure.trial.rig import DURATIONS_FILE, RunPhase, Spent, read_durations
from pytest_ldos.scenario.model import ScenarioSpec


@dataclass(frozen=True)
class Amount:
    starts: int
    warm_ups: int
    trials: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds of a stack start and its end, of a warm-up trial, and of a trial with homing and reading the trace."""

    start_s: float
    warm_up_s: float
    trial_s: float

    def of(self, amount: Amount) -> float:
        return self.start_s * amount.starts + self.warm_up_s * amount.warm_ups + self.trial_s * amount.trials


GUESS: Final = Cost(start_s=12.0, warm_up_s=4.5, trial_s=4.5)
"""Rough cost on a typical machine, for a stack without measurements."""


_OF_START: Final = (RunPhase.STARTING, RunPhase.LOADS, RunPhase.STOPPING)
_OF_TRIAL: Final = (RunPhase.TRIALS, RunPhase.HOMING, RunPhase.READING)


@dataclass(frozen=True)
class Expected:
    """Size of a run, at least and with all trials that may be added, and its cost if there were earlier runs."""

    least: Amount
    most: Amount
    cost: Cost | None

    def seconds(self, amount: Amount) -> float:
        return (self.cost or GUESS).of(amount)


def amount_alone(spec: ScenarioSpec, trials: int, *, size: int | None, problems: int = 1) -> Amount:
    added = max(0, trials - spec.trials)
    first = blocks_alone(spec.trials, size=size, problems=problems)
    starts = len(first) + ceil(added / (size or usual_size_alone(trials, problems)))
    return Amount(starts, starts * spec.warmup, spec.trials + added)


def amount_interleaved(spec: ScenarioSpec, trials: int, *, size: int | None, problems: int = 1) -> Amount:
    """A run of two versions with `trials` each; those beyond the scenario's number are added pair by pair."""
    blocks = first_blocks(spec.trials, size=size, problems=problems)
    while pair := next_pair(blocks[-1], size=size, limit=trials, problems=problems):
        blocks += pair
    return Amount(len(blocks), len(blocks) * spec.warmup, len(Role) * max(trials, spec.trials))


def duration_files(output: Path) -> list[Path]:
    """Files of all runs, the latest first."""
    return sorted(output.glob(f"{RUNS}/*/*/{DURATIONS_FILE}"), reverse=True)


def measured_cost(files: Sequence[Path], *, stack: str, scenario: str) -> Cost | None:
    """The mean cost of the last runs of the scenario, or of any; ``None`` if the stack was not measured here.

    Only runs with trials count; unreadable files are ignored. `stack` may be a prefix of its name.
    """
    for candidates in ([file for file in files if file.parent.name == scenario], files):
        total: defaultdict[RunPhase, Spent] = defaultdict(Spent)
        runs = 0
        for file in candidates:
            with suppress(OSError, ValueError, LookupError, TypeError):
                name, durations = read_durations(file)
                if name.startswith(stack) and RunPhase.TRIALS in durations:
                    for phase, spent in durations.items():
                        total[phase] += spent
                    runs += 1
            if runs == 5:
                break
        if runs:
            trial_s = sum(total[phase].seconds for phase in _OF_TRIAL) / max(1, total[RunPhase.TRIALS].times)
            warm_up = total[RunPhase.WARM_UP]
            return Cost(
                start_s=sum(total[phase].seconds for phase in _OF_START) / max(1, total[RunPhase.STARTING].times),
                warm_up_s=warm_up.seconds / warm_up.times if warm_up.times else trial_s,
                trial_s=trial_s,
            )
    return None


def describe_expected(runs: Sequence[Expected]) -> str:
    least_s = sum(each.seconds(each.least) for each in runs)
    most_s = sum(each.seconds(each.most) for each in runs)
    amounts = [each.least for each in runs]
    starts, trials = sum(each.starts for each in amounts), sum(each.trials for each in amounts)
    trials_s = sum((each.cost or GUESS).trial_s * each.least.trials for each in runs)
    added = f", up to {describe_duration(most_s)} with trials that are added" if most_s > least_s else ""
    source = "as measured here" if all(each.cost for each in runs) else "a guess: this was not measured here yet"
    return (
        f"about {describe_duration(least_s)}{added}: {counted(starts, 'stack start')} of "
        f"{(least_s - trials_s) / starts:.0f} s, {counted(trials, 'trial')} of {trials_s / trials:.0f} s ({source})"
    )
