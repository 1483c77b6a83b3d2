"""Checks that the trace and the goal client agree.

The client stamps each phase where it marks it. If the latencies from markers and from stamps
differ, the recording (or the client's clock) is wrong, and the trial is invalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_ldos.base.units import NS_PER_MS, ns_to_ms
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.trace.execution.model import TrialSpan

TOLERANCE_NS: Final = NS_PER_MS
TOLERANCE_FRACTION: Final = 0.01


def find_disagreement(trial: TrialSpan, stamps_ns: Mapping[str, int]) -> str | None:
    """Reason why a trial's recording cannot be trusted, with both numbers; ``None`` if they agree.

    For a trial without markers, only phases that both report are compared.
    No publication shows when the goal was sent.
    """
    for name, phases in ((each.name, each.phases) for each in METRICS.values() if each.phases):
        first, last = phases
        if first not in stamps_ns or last not in stamps_ns:
            continue
        stamped = stamps_ns[last] - stamps_ns[first]
        if first not in trial.phases or last not in trial.phases:
            if not trial.marked:
                continue
            return f"{name} is {ns_to_ms(stamped):.2f} ms by the goal client's stamps, but not marked in the trace"
        traced = trial.phases[last] - trial.phases[first]
        if abs(traced - stamped) > TOLERANCE_NS + TOLERANCE_FRACTION * stamped:
            return (
                f"{name} is {ns_to_ms(traced):.2f} ms by the trace but "
                f"{ns_to_ms(stamped):.2f} ms by the goal client's stamps"
            )
    return None
