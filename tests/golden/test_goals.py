"""Goals and metrics of recorded traces, against what the goal client of each recording stamped itself.

A trace is a row of `RECORDED`, an archive ``NAME.tar.xz`` and ``clients/NAME.jsonl``: the goal client's own lines
(`stack.client_protocol`). `reduce.py` makes archives small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_ldos.ctf.read import read_trace
from pytest_ldos.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.metrics.extract import extract_metrics, extract_trial, find_trial
from pytest_ldos.metrics.sources import CONTROL_PROBE, FEEDBACK, FEEDBACK_AND_STATUS, SIMULATOR_PROBE, STATUS
from pytest_ldos.stack.client_protocol import MoveReport, parse_event
from pytest_ldos.stack.goals import ErrorCode
from pytest_ldos.units import ns_to_ms

PERIOD_NS = 2_000_000
CLIENTS = Path(__file__).parent / "clients"

BY_PUBLICATIONS = {
    "T1": FEEDBACK.name,
    "T2": FEEDBACK_AND_STATUS.name,
    "T3": "/joint_states publications",
    "T4": STATUS.name,
}
BY_PROBES = {"T3": CONTROL_PROBE.name, "T5": SIMULATOR_PROBE.name}
PHASES = {"T1": ("planning", "executing"), "T2": ("executing", "result"), "T4": ("goal_sent", "result")}
NEAR_MS = {"T1": 0.5, "T2": 0.5, "T4": 4.0}
"""How far a metric may be from the client's. Only T4 is of one sign: it begins with the acceptance."""


@dataclass(frozen=True)
class Recorded:
    """A trace, and what its goals are measured by where they have a metric: its source by metric."""

    name: str
    goals: int = 1
    sources: Mapping[str, str] = field(default_factory=lambda: BY_PUBLICATIONS)


RECORDED = [
    Recorded("panda_baseline_1"),
    Recorded("panda_baseline_2_fastdds"),
    Recorded("panda_cpu_2"),
    Recorded("panda_flood_1_fastdds"),
    Recorded("panda_flood_2"),
    Recorded("panda_flood_sub_1"),
    Recorded("panda_unreachable_1"),
    Recorded("gz_panda_baseline", goals=3, sources={**BY_PUBLICATIONS, **BY_PROBES}),
]


def reports_of(name: str) -> list[MoveReport]:
    events = [parse_event(line) for line in (CLIENTS / f"{name}.jsonl").read_text().splitlines()]
    return [event for event in events if isinstance(event, MoveReport)]


def measure(trace_directory, report: MoveReport, events=NEEDED_EVENTS):
    trace = read_trace(trace_directory, events=events)
    model = build_execution(trace)
    offset_ns = trace.traces[0].clock_offset_ns
    trial = find_trial(report.goal_id, model, stamps_ns=report.stamps_ns, clock_offset_ns=offset_ns)
    return extract_trial(trial, model, stamps_ns=report.stamps_ns, nominal_period_ns=PERIOD_NS).measurements


@pytest.fixture(params=RECORDED, ids=lambda recorded: recorded.name)
def recorded(request):
    return request.param


def test_every_goal_of_the_client_is_found_and_no_other(golden, recorded):
    model = build_execution(read_trace(golden(recorded.name), events=NEEDED_EVENTS))
    measured = extract_metrics(model, nominal_period_ns=PERIOD_NS)
    assert len(measured) == len(reports_of(recorded.name)) == recorded.goals


def test_latencies_are_the_clients(golden, recorded):
    """T1 and T2 are nearer to the client's than the 0.5 ms that its receptions differ by; T4 is 1 to 4 ms shorter."""
    for report in reports_of(recorded.name):
        measured = measure(golden(recorded.name), report)
        for name, (first, last) in PHASES.items():
            if first not in report.stamps_ns:
                assert report.error_code != ErrorCode.SUCCESS
                continue
            if last not in report.stamps_ns:
                continue
            stamped_ms = ns_to_ms(report.stamps_ns[last] - report.stamps_ns[first])
            assert measured[name].number == pytest.approx(stamped_ms, abs=NEAR_MS[name]), name
