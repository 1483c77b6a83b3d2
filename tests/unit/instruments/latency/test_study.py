"""Tables, figures and trials from rounds."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.instruments.latency.findings import (
    QUANTITIES,
    Counts,
    Exchange,
    by_case,
    comparable_setups,
    compare_all,
    remarks_of,
    rounds_of,
    to_exchange,
)
from pytest_ldos.instruments.latency.spec import LatencySpec, Program, Transport, cases_of, setups_of
from pytest_ldos.instruments.latency.tables import figures_of, tables_of

PROGRAMS = (Program.CYCLONE, Program.TWIN, Program.DDSPERF)


def exchange(tmp_path, case, block, scale=1.0, lost=0):
    draw = np.random.default_rng(block)
    round_trips = (draw.lognormal(10, 0.5, 3000) * scale * (1 + case.size / 1e5)).astype(np.int64)
    file = tmp_path / "times"
    np.concatenate([round_trips, round_trips // 3]).tofile(file)
    counts = Counts(sent=3000 + lost, lost=lost, late=0, elapsed_ns=1_000_000_000)
    return to_exchange(case, block, counts, file)


def measured(tmp_path, spec, rounds=3):
    setups = setups_of(spec)
    cases = cases_of(setups, PROGRAMS)
    found = [
        exchange(tmp_path, case, block, scale=1.1 if case.program is Program.DDSPERF else 1.0)
        for block in range(rounds)
        for case in cases
    ]
    findings = by_case(cases, found)
    return findings, compare_all([each for case in findings for each in case.exchanges], setups)


def test_one_way_times_sum_to_the_round_trip(tmp_path):
    (case,) = cases_of(setups_of(LatencySpec(sizes="1", transports="loopback")), [Program.CYCLONE])
    found = exchange(tmp_path, case, 0)
    assert found.per_second == 3000
    assert found.there.mean + found.back.mean == pytest.approx(found.round_trip.mean)
    assert found.there.p50 < found.back.p50


def test_no_answer_is_a_failure_with_counts(tmp_path):
    (case,) = cases_of(setups_of(LatencySpec(sizes="1", transports="loopback")), [Program.CYCLONE])
    (tmp_path / "times").write_bytes(b"")
    found = to_exchange(case, 0, Counts(sent=4, lost=4, late=0, elapsed_ns=0), tmp_path / "times")
    assert found.failure == "none of 4 messages was answered in time"
    assert found.lost == 4
    assert found.round_trip is None


def test_tables_compare_all_programs(tmp_path):
    findings, agreements = measured(tmp_path, LatencySpec(sizes="1,64KiB", transports="loopback,one_process"))
    tables = {table.name: table for table in tables_of(findings, agreements)}
    assert len(tables["round_trips_loopback"].rows) == len(tables["round_trips_one_process"].rows) == 6
    names = [column.name for column in tables["round_trips_loopback"].columns]
    assert names[:2] == ["size", "program"]
    assert "fragment_size" not in names
    assert "reliable" in tables["round_trips_loopback"].title
    comparison = tables["beside_ddsperf"]
    ratios = [row[[column.name for column in comparison.columns].index("ratio")] for row in comparison.rows]
    assert all(abs(ratio - 1 / 1.1) < 1e-3 for ratio in ratios)
    assert len(comparison.rows) == 8
    assert len(tables["every_round"].rows) == 36
    assert tables["histograms"].is_detail


def test_swept_settings_are_columns_and_figures(tmp_path):
    spec = LatencySpec(
        sizes="64KiB", transports="loopback", fragment_sizes="1344,8000,60000", max_message_sizes="65500"
    )
    findings, agreements = measured(tmp_path, spec)
    tables = {table.name: table for table in tables_of(findings, agreements)}
    table = tables["round_trips_loopback"]
    names = [column.name for column in table.columns]
    assert {row[names.index("fragment_size")] for row in table.rows} == {1344, 8000, 60000}
    assert "max message size 65500 B" in table.title
    assert "max_message_size" not in names
    figures = {figure.name: figure for figure in figures_of(findings)}
    assert [point.x for point in figures["fragment_size_loopback"].curves[0].points] == [1344, 8000, 60000]


def test_figures_show_percentiles_over_size_and_the_complementary_distribution(tmp_path):
    findings, _ = measured(tmp_path, LatencySpec(sizes="1,1KiB,64KiB", transports="loopback"))
    figures = {figure.name: figure for figure in figures_of(findings)}
    assert set(figures) == {"percentiles_loopback", "distribution_loopback"}
    labels = [curve.label for curve in figures["percentiles_loopback"].curves]
    assert "ddsperf, p99" in labels
    shares = [point.y for point in figures["distribution_loopback"].curves[0].points]
    assert shares == sorted(shares, reverse=True)
    assert min(shares) > 0


def test_case_without_numbers_has_a_row(tmp_path):
    (case,) = cases_of(setups_of(LatencySpec(sizes="1", transports="loopback")), [Program.CYCLONE])
    findings = by_case([case], [Exchange(case=case, block=0, failure="ping and pong did not find each other")])
    tables = {table.name: table for table in tables_of(findings, [])}
    assert tables["round_trips_loopback"].rows[0][2:9] == (None,) * 7
    assert "every_round" in tables
    assert figures_of(findings) == ()


def test_one_process_is_compared_only_unpinned():
    notes: list[str] = []
    setups = setups_of(LatencySpec(sizes="1"))
    assert comparable_setups(setups, LatencySpec(sizes="1"), notes) == setups
    assert not notes
    pinned = comparable_setups(setups, LatencySpec(sizes="1", ping_cpu=0, pong_cpu=0), notes)
    assert [each.transport for each in pinned] == [Transport.LOOPBACK]
    assert "not compared" in notes[0]
    one_side = comparable_setups(setups, LatencySpec(sizes="1", ping_cpu=0), notes)
    assert [each.transport for each in one_side] == [Transport.LOOPBACK]


def test_ddsperf_failures_are_notes_and_its_rounds_are_not_gated(tmp_path):
    spec = LatencySpec(sizes="1", transports="loopback")
    ours, _, theirs = cases_of(setups_of(spec), PROGRAMS)
    found = [exchange(tmp_path, ours, 0, lost=2), Exchange(case=theirs, block=0, failure="oh dear")]
    assert remarks_of(found) == [
        "2 of 3002 messages had no answer in time",
        "ddsperf, loopback, 1 B, reliable: oh dear",
    ]
    (gated,) = rounds_of(found, spec)
    assert gated.case == "cyclonedds, loopback, 1 B, reliable"
    assert set(gated.values) == {each.name for each in QUANTITIES}
    assert gated.details == {"sent": 3002, "lost": 2, "late": 0}
