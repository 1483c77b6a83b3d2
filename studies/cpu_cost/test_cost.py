"""The claim of the study that holds on any machine."""

from __future__ import annotations

from statistics import median

import pytest


@pytest.mark.ldos_cpu_cost(layer="embedded", rungs="dds,one_node", starts=2, rounds=2, seconds=0.5)
def test_a_node_costs_more_than_dds_alone(ldos_study):
    costs = {
        rung: median(
            each.values["cpu_per_message"]
            for each in ldos_study.study.rounds
            if f" {rung}: " in each.case and not each.failure
        )
        for rung in ("DDS only", "one node")
    }
    assert costs["DDS only"] < costs["one node"]
