"""Present state of each scenario of a history, and of all together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pytest_ldos.judge.baseline.history.rows import Version
from pytest_ldos.judge.baseline.history.series import Run
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.model import Badge, Tone
from pytest_ldos.show.report.badges import badge_of

UNKNOWN: Final = Badge("unknown")
"""Stands for everything where something was not judged."""

_SEVERITY: Final = (Tone.GOOD, Tone.PLAIN, Tone.DOUBT, Tone.BAD)


@dataclass(frozen=True)
class State:
    """The last run of a scenario in one place.

    Attributes:
        verdict: on the last run; ``None`` if it was compared with nothing.
        creeping: metrics that have crept away by now.
        runs: number of sets of trials.
    """

    key: BaselineKey
    last: Run
    verdict: Verdict | None
    creeping: tuple[str, ...]
    runs: int

    @property
    def badge(self) -> Badge:
        """The verdict; what has crept away is never good."""
        shown = badge_of(self.verdict)
        return Badge(f"{shown.text}, creep", Tone.DOUBT) if self.creeping and shown.tone is Tone.GOOD else shown


def states_of(trends: Sequence[Trend]) -> list[State]:
    """One state for each stack, host class and scenario, in their order."""
    ordered = sorted(trends, key=lambda trend: trend.series.key)
    return [_state(key, list(some)) for key, some in groupby(ordered, key=lambda trend: trend.series.key)]


def overall(states: Iterable[State]) -> Badge:
    """The worst badge; `UNKNOWN` is worse than a good one."""
    badges = [UNKNOWN if state.verdict is None else state.badge for state in states]
    return max(badges, key=lambda badge: _SEVERITY.index(badge.tone), default=UNKNOWN)


def _state(key: BaselineKey, trends: Sequence[Trend]) -> State:
    runs = {run.trials: run for trend in trends for run in trend.series.runs}
    heads = [run for run in runs.values() if run.version == Version.HEAD.value]
    last = max(heads or runs.values(), key=lambda run: (run.started_at, run.trials))
    judged = last.verdict if heads else ""
    return State(
        key=key,
        last=last,
        verdict=Verdict(judged) if judged in set(Verdict) else None,
        creeping=tuple(dict.fromkeys(trend.series.metric for trend in trends if trend.commits[-1].creeps)),
        runs=len(runs),
    )
