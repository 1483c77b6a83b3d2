"""Settings of the ladder."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.instruments.cpu_cost.ladder import CpuCostSpec, Rung, parse_rungs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topics": 0}, "0 topics"),
        ({"subscribers": 0}, "0 subscribers"),
        ({"topics": 200, "subscribers": 11}, "at most 2000 subscriptions"),
        ({"nodes": 0}, "0 nodes"),
        ({"nodes": 31}, "between 1 and 30"),
        ({"rate_hz": 0.0}, "a rate of 0 Hz"),
        ({"rate_hz": float("nan")}, "a rate of nan Hz"),
        ({"size_bytes": 0}, "messages of 0 bytes"),
        ({"seconds": 0.0}, "rounds of 0 s"),
        ({"seconds": 0.01}, "a round without a message"),
        ({"seconds": float("inf")}, "rounds of inf s"),
        ({"rounds": 0}, "0 rounds"),
        ({"starts": 0}, "0 starts"),
        ({"rmw": "cyclone"}, "as rmw_cyclonedds_cpp"),
        ({"rungs": "dds,one_nod"}, "one_node"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        CpuCostSpec(**settings)


def test_rungs_are_ordered_and_unique():
    assert parse_rungs("one_node, dds,dds,") == [Rung.DDS, Rung.ONE_NODE]
    assert parse_rungs("") == list(Rung)


def test_messages_of_a_round():
    spec = CpuCostSpec(topics=3, subscribers=2, rate_hz=50, seconds=0.1)
    assert (spec.ticks, spec.messages) == (5, 15)
    assert spec.traffic == "3 × 1 → 2, 50 Hz, 64 B"
