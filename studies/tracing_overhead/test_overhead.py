"""The claim of the study that holds on any machine."""

from __future__ import annotations

import pytest


@pytest.mark.ldos_tracing_cost(layer="embedded", sizes="1", rates="500", starts=2, seconds=0.3, ebpf=False)
def test_a_tracepoint_takes_less_than_a_microsecond(ldos_study):
    traced = [
        each.values["tracepoint"]
        for each in ldos_study.study.rounds
        if each.case.endswith("LTTng: a tracepoint") and not each.failure
    ]
    assert traced
    assert min(traced) < 1000  # ns
