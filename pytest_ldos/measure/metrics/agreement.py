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
    for name, metric in METRICS.items():
        stamped, traced = metric.latency_ns(stamps_ns), metric.latency_ns(trial.phases)
        if stamped is None or (traced is None and not trial.marked):
            continue
        if traced is None:
            return f"{name} is {ns_to_ms(stamped):.2f} ms by the goal client's stamps, but not marked in the trace"
        if abs(traced - stamped) > TOLERANCE_NS + TOLERANCE_FRACTION * stamped:
            return (
                f"{name} is {ns_to_ms(traced):.2f} ms by the trace but "
                f"{ns_to_ms(stamped):.2f} ms by the goal client's stamps"
            )
    return None
