"""Links in recorded traces against what the applications themselves logged: all of them, and no other."""

from __future__ import annotations

import re
import shutil

import polars as pl
import pytest

from pytest_ldos.base.ros2 import LinkRule, LinkSpec, PathSpec
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.threads import shift_clocks
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.transport import estimate_clock_offsets
from tests.oracles.truth import found_links, logged_links, read_log

DECLARED = (
    PathSpec(
        name="fusion",
        via=("/src_a", "/sync_out"),
        links=(
            LinkSpec(
                rule=LinkRule.PERIODIC_ASYNC,
                node="/async_cache",
                inputs=("/relayed", "/src_b"),
                outputs=("/async_out",),
            ),
            LinkSpec(
                rule=LinkRule.PARTIAL_SYNC,
                node="/partial_sync",
                inputs=("/async_out", "/relayed"),
                outputs=("/sync_out",),
            ),
        ),
    ),
)

LINKS = {
    "pipeline_single": (443, 315),
    "pipeline_single_fastdds": (443, 315),
    "pipeline_single_links": (442, 313),
    "pipeline_multi_links": (568, 286),
    "intra_process": (160, 80),
    "talker_listener": (100, 0),
    "talker_listener_fastdds": (99, 0),
    "talker_listener_perpid": (50, 0),
    "rclpy_talker_listener": (80, 0),
}
"""Numbers of links that each application logged: transport, causal."""


@pytest.mark.parametrize("name", LINKS)
def test_every_logged_link_is_found_and_no_other(golden, name):
    log = read_log(golden("truth") / name)
    logged = logged_links(log)
    assert (len(logged.transport), len(logged.causal)) == LINKS[name]
    annotated = name.endswith("_links")
    model = build_execution(read_trace(golden(name)))
    found = found_links(build_flow(model, () if annotated else DECLARED), log)
    assert found.transport == logged.transport
    assert found.causal == logged.causal


def test_without_a_declaration_only_direct_links_are_found(golden):
    log = read_log(golden("truth") / "pipeline_single")
    found = found_links(build_flow(build_execution(read_trace(golden("pipeline_single")))), log)
    logged = logged_links(log)
    assert found.transport == logged.transport
    assert found.causal < logged.causal
    assert {topic for _, (topic, _) in found.causal} == {"/relayed", "/sync_out"}


def test_unlinked_messages_are_counted_by_cause(golden):
    """1039 events of this trace were lost, some of them publications."""
    flow = build_flow(build_execution(read_trace(golden("discarded"))))
    unmatched = len(flow.model.takes) - len(flow.transport)
    assert flow.without_partner["receptions whose publication is not in the trace"] == unmatched == 42
    assert flow.without_partner["publications no observed subscription took"] == 93
    of_these = "of these were published while events of a subscribing process may be missing"
    assert 0 < flow.without_partner[of_these] <= 93


def test_messages_of_processes_older_than_the_trace_are_linked(golden):
    model = build_execution(read_trace(golden("late_start")))
    assert model.unknown == {"publishers": 1, "subscriptions": 1, "callbacks": 2}
    flow = build_flow(model)
    assert len(flow.transport) == len(model.takes) == 69
    assert len(flow.triggers) == 69
    assert (flow.transport["latency_ns"] > 0).all()


def test_processes_on_two_hosts_whose_clocks_differ(golden, tmp_path):
    """Two traces of one recording, one of them made to look like that of another host that is 3 ms ahead."""
    trace = tmp_path / "trace"
    shutil.copytree(golden("talker_listener_perpid"), trace)
    before = build_flow(build_execution(read_trace(trace)))
    metadata = next(file for file in trace.rglob("metadata") if "listener" in str(file))
    reported = metadata.read_bytes()
    offset = re.search(rb"offset = (\d+);", reported)[1]
    ahead = str(int(offset) + 3_000_000).encode()
    assert len(ahead) == len(offset)
    metadata.write_bytes(reported.replace(b'hostname = "vm"', b'hostname = "pc"').replace(offset, ahead))

    flow = build_flow(build_execution(read_trace(trace)))
    assert sorted(flow.model.hosts["name"]) == ["pc", "vm"]
    assert len(flow.transport) == len(before.transport)
    chatter = flow.transport.filter(pl.col("way") == "between_hosts")["latency_ns"]
    assert len(chatter) == 50
    assert chatter.min() > 3_000_000
    corrected = build_flow(shift_clocks(flow.model, {"pc": -3_000_000}))
    assert corrected.transport["latency_ns"].sort().to_list() == before.transport["latency_ns"].sort().to_list()
    (other,) = {name: each for name, each in estimate_clock_offsets(flow).items() if each.messages}.values()
    assert other.uncertainty_ns is None
