"""A flight recorder's snapshot agrees with the application's log within complete spans.

`flight_recorder` was recorded in overwrite mode. A talker and a listener moved from one CPU to the other every few
messages, while a third process filled the ring of CPU 1: of its ring less than a second is left, of the other all.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.analysis import Analysis, render_analysis
from pytest_ldos.trace.assertions import assert_published
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.summary import busy_shares, executor_states, summarize_callbacks, summarize_topics
from pytest_ldos.trace.flow.timeliness import classify_receptions, summarize_connections
from tests.builders.chunks import small_chunks

TOPIC = "/chatter"


@pytest.fixture(scope="module")
def flow(golden) -> FlowGraph:
    return build_flow(build_execution(read_trace(golden("flight_recorder"))))


@pytest.fixture(scope="module")
def truth(golden) -> pl.DataFrame:
    """Messages with the moments of their publication and reception, by the clock of the trace."""
    folder = golden("flight_recorder")
    offset_ns = read_trace(folder).traces[0].clock_offset_ns
    logs = {name: logged(folder / "truth" / f"{name}.jsonl") for name in ("talker", "listener")}
    sent, received = (log.select("seq", time_ns=pl.col("mono_ns") + offset_ns) for log in logs.values())
    return sent.join(received, on="seq", how="left", suffix="_received")


def logged(file: Path) -> pl.DataFrame:
    return pl.DataFrame([json.loads(line) for line in file.read_text("utf-8").splitlines()])


def whole(flow: FlowGraph) -> tuple[int, int]:
    """The one span in which all processes are whole."""
    model = flow.model
    (span,) = {span for each in model.processes["id"] for span in model.coverage.whole_spans(each, *model.extent_ns)}
    return span


def true_rate(truth: pl.DataFrame, span: tuple[int, int]) -> float:
    times_ns = truth.filter(pl.col("time_ns").is_between(*span))["time_ns"].to_numpy()
    return float((len(times_ns) - 1) / np.ptp(times_ns) * 1e9)


def test_the_rings_cover_different_spans(flow):
    begins = {each.path.name: (each.missing_before_ns, each.earlier_packets) for each in flow.model.stats.streams}
    assert begins["c_0"] == (None, 0)
    assert begins["c_1"][0] is not None
    assert begins["c_1"][1] == 9
    first_ns, last_ns = flow.model.extent_ns
    assert whole(flow) == (begins["c_1"][0] - 1, last_ns)
    assert whole(flow)[1] - whole(flow)[0] < (last_ns - first_ns) / 4


def test_the_rate_is_that_of_the_log(flow, truth):
    (row,) = summarize_topics(flow).iter_rows(named=True)
    assert row["rate_hz"] == pytest.approx(true_rate(truth, whole(flow)), rel=0.01)
    rates = summarize_connections(flow).filter(pl.col("messages") > 1)["rate_hz"].to_list()
    assert rates == pytest.approx([true_rate(truth, whole(flow))] * len(rates), rel=0.02)


def test_received_messages_are_not_lost(flow, truth):
    assert truth["time_ns_received"].null_count() <= 1, "the listener had all but perhaps the last one"
    assert summarize_topics(flow)["lost"].to_list() == [0]
    assert summarize_connections(flow)["lost"].drop_nulls().sum() == 0


def test_periods_are_between_consecutive_messages(flow, truth):
    (period_ns,) = classify_receptions(flow)["period_ns"]
    assert period_ns == pytest.approx(truth["time_ns"].diff().median(), rel=0.01)


def test_thread_states_are_known_within_complete_spans(flow):
    span = whole(flow)
    states = executor_states(flow.model)
    assert states["begin_ns"].min() >= span[0]
    assert states["end_ns"].max() <= span[1]
    shares = busy_shares(flow.model)
    assert shares["observed_ns"].max() <= span[1] - span[0]
    assert shares["executing"].max() < 0.1


def test_states_in_small_chunks_are_the_same(flow):
    expected = busy_shares(flow.model)
    with small_chunks(16):
        found = busy_shares(flow.model)
    assert found.sort("thread").equals(expected.sort("thread"))


def test_no_callback_lasts_from_one_run_to_the_next(flow):
    """An end that was overwritten made one run of two, of 210 ms."""
    assert summarize_callbacks(flow)["max_ns"].max() < 30_000_000


def test_summary_shows_missing_and_complete_spans(flow):
    analysis = Analysis(name="snapshot", flow=flow, paths=(), goals={}, metrics=())
    text = " ".join(str(render_analysis(analysis, Format.TERMINAL, width=1000)).split())
    assert "no event of the trace is missing" not in text
    assert "9 packets before the first one of a stream" in text
    first_ns, last_ns = flow.model.extent_ns
    begin, end = ((at - first_ns) / 1e9 for at in whole(flow))
    assert f"whole: {begin:.3f} s to {end:.3f} s of {(last_ns - first_ns) / 1e9:.3f} s" in text


def test_failed_assertion_names_missing_events(flow):
    with pytest.raises(AssertionError, match="9 packets before the first one of a stream"):
        assert_published(flow, TOPIC, at_least=100)


def test_values_of_an_incomplete_span_are_refused(flow):
    stats, (begin_ns, end_ns) = flow.model.stats, whole(flow)
    assert [each.packets for each in stats.gaps_within(begin_ns - 1, end_ns)] == [9]
    assert stats.gaps_within(begin_ns + 1, end_ns) == []


def test_message_is_lost_only_within_a_complete_span(flow):
    """Without one reception of that time, one message is lost; without one from before, none."""
    takes, (begin_ns, _) = flow.model.takes, whole(flow)
    for is_known, lost in ((takes["time_ns"] > begin_ns, 1), (takes["time_ns"] < begin_ns, 0)):
        row = takes.filter(is_known)["id"][2]
        model = replace(flow.model, takes=takes.with_columns(source_ns=pl.when(pl.col("id") != row).then("source_ns")))
        assert classify_receptions(build_flow(model))["lost"].to_list() == [lost]
