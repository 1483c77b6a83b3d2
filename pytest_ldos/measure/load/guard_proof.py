"""The proof of a guard: the messages it received, and its effect on publishers."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pytest_ldos.base.units import NS_PER_S
from pytest_ldos.measure.load.flood_reports import Guarded
from pytest_ldos.measure.load.scheduler_group import GroupedProof, GroupReading
from pytest_ldos.scenario.loads.guard import GuardedTopic, GuardSpec


@dataclass(frozen=True, kw_only=True)
class GuardProof(GroupedProof):
    """See `GroupedProof`.

    Attributes:
        topic: the topic watched.
        deadline_ms: deadline of its messages.
        received, late: messages on it, and those of them that came later than the deadline.
        late_share: share of late messages, 0 to 1.
        silent_windows: windows of time in which nothing had come for too long.
        share: share of their rate that publishers might use, mean over time, 0 to 1.
        least: smallest value of that share.
        throttled_s: time for which it was below 1, s.
        shares: its mean in each second.
        decreases, increases: numbers of its changes.
        obedient: number of publishers that obeyed.
        missing: a text for each publisher that never obeyed.
    """

    topic: str
    deadline_ms: float
    received: int
    late: int
    late_share: float
    silent_windows: int
    share: float
    least: float
    throttled_s: float
    shares: tuple[float, ...]
    decreases: int
    increases: int
    obedient: int
    missing: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"guard of {self.topic}: {self.late} of {self.received} messages later than {self.deadline_ms:g} ms"
            f"{f', {self.silent_windows} silent windows' if self.silent_windows else ''}; {self._deeds}"
            f"{self._missing_words}"
        )

    @property
    def _missing_words(self) -> str:
        return f"; not obeyed by {', '.join(self.missing)}" if self.missing else ""

    @property
    def _deeds(self) -> str:
        if not self.decreases:
            return f"never throttled {_publishers(self.obedient)}"
        return (
            f"throttled {_publishers(self.obedient)} for {self.throttled_s:.1f} of {self.seconds:.1f} s, to "
            f"{100 * self.least:.0f} % at the least, {100 * self.share:.0f} % in the mean"
        )


def _publishers(count: int) -> str:
    return f"{count} publisher{'' if count == 1 else 's'}"


@dataclass
class GuardHistory:
    """All reports of a guard since its beginning, as far as a proof needs them.

    Attributes:
        lock: must be held while reading or adding.
    """

    publishers: Sequence[str]
    lock: threading.Condition
    _shares: list[tuple[int, float]] = field(default_factory=list)
    _troubles: dict[str, str] = field(default_factory=dict)
    _obedient: set[str] = field(default_factory=set)

    def parse(self, report: Mapping[str, Any]) -> Guarded:
        """Parses a report and adds it to the history."""
        guarded = Guarded.parse(report)
        self._shares.append((guarded.mono_ns, guarded.share))
        troubles = dict(each.split(": ", 1) for each in guarded.missing)
        self._troubles |= troubles
        self._obedient |= set(self.publishers) - set(troubles)
        return guarded

    def begin(self) -> None:
        """Begins the measurement: forgets earlier obedience, which the guard may have reported before checking it."""
        self._troubles.clear()
        self._obedient.clear()

    @property
    def obedient(self) -> int:
        """Number of publishers that obeyed at some time."""
        return len(self._obedient)

    @property
    def missing(self) -> tuple[str, ...]:
        """Publishers that never obeyed, with their last problem."""
        return tuple(f"{name}: {why}" for name, why in self._troubles.items() if name not in self._obedient)

    def shares(self, begin_ns: int, end_ns: int) -> list[tuple[int, int, float]]:
        """Returns intervals with their share: a report's share holds until the next report."""
        told = pairwise([*self._shares, (end_ns, 1.0)])
        stretches = ((max(ns, begin_ns), min(end, end_ns), share) for (ns, share), (end, _) in told)
        return [each for each in stretches if each[0] < each[1]]


def build_proof(
    spec: GuardSpec,
    watched: GuardedTopic,
    history: GuardHistory,
    *,
    first: Guarded | None,
    last: Guarded | None,
    failure: str,
    group: GroupReading,
) -> GuardProof:
    """Builds the proof from the reports between the first and the last.

    Args:
        failure: why the guard is incomplete; empty if it is not.
    """
    begin = first or last or Guarded(0, 1.0, 0, 0, 0, 0, 0, ())
    end = last or begin
    stretches = history.shares(begin.mono_ns, end.mono_ns)
    seconds = (end.mono_ns - begin.mono_ns) / NS_PER_S
    received, late = end.received - begin.received, end.late - begin.late
    return GuardProof(
        kind=spec.KIND,
        seconds=seconds,
        shortfall=failure or group.shortfall or _shortfall(watched, history, received, seconds),
        group=spec.group,
        group_found=group.found,
        topic=watched.topic,
        deadline_ms=watched.deadline_ms,
        received=received,
        late=late,
        late_share=late / received if received else 0.0,
        silent_windows=end.silent_windows - begin.silent_windows,
        share=_mean(stretches, begin.share),
        least=min((share for _, _, share in stretches), default=begin.share),
        throttled_s=sum(end_ns - begin_ns for begin_ns, end_ns, share in stretches if share < 1) / NS_PER_S,
        shares=_second_by_second(history, begin.mono_ns, end.mono_ns),
        decreases=end.decreases - begin.decreases,
        increases=end.increases - begin.increases,
        obedient=history.obedient,
        missing=history.missing,
    )


def _shortfall(watched: GuardedTopic, history: GuardHistory, received: int, seconds: float) -> str:
    if seconds > 0 and not received:
        return f"the guard heard nothing on {watched.topic}"
    if history.publishers and not history.obedient:
        return f"no publisher obeyed the guard ({'; '.join(history.missing)})"
    return ""


def _mean(stretches: Sequence[tuple[int, int, float]], otherwise: float) -> float:
    total_ns = sum(end_ns - begin_ns for begin_ns, end_ns, _ in stretches)
    if not total_ns:
        return otherwise
    return sum((end_ns - begin_ns) * share for begin_ns, end_ns, share in stretches) / total_ns


def _second_by_second(history: GuardHistory, begin_ns: int, end_ns: int) -> tuple[float, ...]:
    return tuple(
        round(_mean(history.shares(ns, min(ns + NS_PER_S, end_ns)), 1.0), 3) for ns in range(begin_ns, end_ns, NS_PER_S)
    )
