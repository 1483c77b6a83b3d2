"""Edges, totals, events, resources and rounds of hand-made messages."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.series import Missing
from pytest_ldos.instruments.topology.edges import Limits
from pytest_ldos.instruments.topology.presentation import figures_of_study, tables_of
from pytest_ldos.instruments.topology.rounds import QUANTITIES, Code, analyse
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.study import render_study_as
from tests.builders.studies import study
from tests.builders.topologies import SECOND, arrivals, recorded, topology

LATENCIES = {0: 1.0, 1: 2.0, 2: 3.0, 4: 12.0, 5: 0.5}
"""Messages every 10 ms: one late (above 2 ms), one too late (above 10 ms), number 3 lost."""


def analysed(*starts, rounds=2, cores=2):
    return analyse(topology(), starts, Limits(), case="two", rounds=rounds, cores=cores)


def test_edge_counts_its_messages():
    first, service = analysed(recorded(arrivals(LATENCIES), sent={0: 7, 2: 0})).edges
    assert (first.edge.node, first.edge.topic, first.edge.sources[0].size_bytes) == ("listener", "counts", 8)
    assert (first.received, first.late, first.too_late, first.lost) == (5, 1, 1, 2)
    assert first.mean_us == pytest.approx((1000 + 2000 + 3000 + 500) / 4)
    assert first.sd_us == pytest.approx(1108.678, abs=0.01)
    assert (first.min_us, first.max_us) == (500, 3000)
    assert first.p99_us == pytest.approx(11_640)
    assert first.nominal_hz == 100
    assert first.duration_s == pytest.approx(0.051)
    assert first.rate_hz == pytest.approx(4 / 0.051)
    assert (service.edge.is_service, service.received, service.mean_us, service.rate_hz) == (True, 0, None, None)


def test_totals_weigh_edges_by_their_messages():
    replies = arrivals({0: 4.0}, receiver=2, sender=2, period_ms=50)
    totals = analysed(recorded([*arrivals(LATENCIES), *replies])).totals
    assert (totals.received, totals.late, totals.too_late, totals.lost) == (6, 1, 1, 1)
    assert totals.mean_us == pytest.approx((6500 + 4000) / 5)
    assert totals.late_percent == pytest.approx(100 / 6)
    assert totals.lost_percent == pytest.approx(100 / 7)


def test_events_have_time_and_caller():
    events = analysed(recorded(arrivals(LATENCIES), sent={0: 7})).events
    assert [(each.time_ms, each.caller, each.code) for each in events] == [
        (0, "SYSTEM", Code.DISCOVERY),
        (33, "counts->listener", Code.LATE),
        (62, "counts->listener", Code.TOO_LATE),
        (62, "counts->listener", Code.LOST),
        (1000, "counts->listener", Code.LOST),
    ]
    assert events[0].description == "[discovery] all ends have met their peers, 400ms after the processes were started"
    assert events[1].description == "msg 2 late. 3000us > 2000us"
    assert events[2].description == "msg 4 too late. 12000us > 10000us"
    assert [each.description for each in events[3:]] == ["msg 3 lost.", "msg 6 lost."]


def test_cpu_is_of_all_cores_and_since_the_start():
    usage = analysed(recorded([])).usage
    assert [each.time_ms for each in usage] == [0, 500, 1000]
    assert [each.cpu_percent for each in usage] == [0.0, 25.0, 25.0]
    assert [each.cpu_now_percent for each in usage] == [None, 25.0, 25.0]
    assert usage[1].rss_kb == 10 * 1024


def test_rounds_have_their_own_messages():
    late_half = dict.fromkeys(range(49), 1.0) | {number: 6.0 for number in range(49, 99) if number != 60}
    first, second = analysed(recorded(arrivals(late_half), sent={0: 99})).rounds
    assert (first.block, first.case) == (0, "two")
    assert first.values["mean"] == pytest.approx(1000, rel=0.15)
    assert first.values["lost"] == 0
    assert second.values["late"] == 100
    assert second.values["lost"] == pytest.approx(100 / 50, rel=0.05)
    assert second.values["cpu"] == pytest.approx(25)
    assert second.values["rss"] == pytest.approx(10 * 1024 * 1024 / 1e6)


def test_cpu_is_unknown_after_the_last_sample():
    early = recorded([])
    looks = early.resources["two"][:2]
    first, second = analysed(dataclasses.replace(early, resources={"two": looks})).rounds
    assert first.values["cpu"] == pytest.approx(25)
    assert isinstance(second.values["cpu"], Missing)


def test_round_without_messages_fails():
    (only,) = analysed(recorded([]), rounds=1).rounds
    assert isinstance(only.values["mean"], Missing)
    assert isinstance(only.values["lost"], Missing)


def test_dead_process_fails_the_remaining_rounds():
    dead = recorded(
        arrivals(dict.fromkeys(range(60), 1.0)), ended_ns=SECOND + SECOND * 6 // 10, sent={0: 90}, failure="it died"
    )
    found = analysed(dead, rounds=4)
    assert [each.failure for each in found.rounds] == ["", "", "it died", "it died"]
    assert found.edges[0].lost == 0  # messages in transit at the stop
    assert found.failures == ("it died",)
    assert found.events[-1].code is Code.FAILURE


def test_undiscovered_processes_give_only_failed_rounds():
    never = recorded([], start_ns=0, end_ns=0, ended_ns=0, matched_ns={}, failure="never met", resources={"two": ()})
    found = analysed(never, rounds=3)
    assert [each.failure for each in found.rounds] == ["never met"] * 3
    assert found.usage == ()
    assert found.totals.late_percent is None


@pytest.mark.parametrize("kind", list(Format))
def test_undiscovered_processes_are_shown_in_every_format(kind):
    never = recorded([], start_ns=0, end_ns=0, ended_ns=0, matched_ns={}, failure="never met", resources={"two": ()})
    found = analysed(never, rounds=3)
    shown = study(rounds=found.rounds, tables=tables_of(found), figures=figures_of_study(found), quantities=QUANTITIES)
    text = render_study_as(shown, kind)
    assert "never met" in text
    assert "nan" not in text


def test_starts_are_blocks_on_one_scale_of_time():
    later = recorded(arrivals({0: 3.0}), start_ns=SECOND, end_ns=2 * SECOND)
    found = analysed(recorded(arrivals({0: 3.0})), later, rounds=1)
    assert [each.block for each in found.rounds] == [0, 1]
    assert found.edges[0].received == 2
