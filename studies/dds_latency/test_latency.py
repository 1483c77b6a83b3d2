"""The claims of the study that hold on any machine."""

from __future__ import annotations

from statistics import median

import pytest


def medians(study, quantity):
    """By case: the median over the rounds."""
    cases = dict.fromkeys(each.case for each in study.rounds)
    return {case: median(each.values[quantity] for each in study.rounds if each.case == case) for case in cases}


@pytest.mark.ldos_latency(sizes="64", rounds=3, seconds=0.3, ddsperf=False, ros=False)
def test_one_process_answers_sooner_than_two(ldos_study):
    found = medians(ldos_study.study, "round_trip_p50")
    assert found["cyclonedds, one_process, 64 B, reliable"] < found["cyclonedds, loopback, 64 B, reliable"]


@pytest.mark.ldos_latency(sizes="64,1MiB", transports="loopback", rounds=3, seconds=0.3, ddsperf=False, ros=False)
def test_large_messages_take_longer(ldos_study):
    small, large = medians(ldos_study.study, "round_trip_p50").values()
    assert small < large
