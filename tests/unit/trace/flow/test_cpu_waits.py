"""CPU waits within segments, from ROS 2 and scheduler events."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pytest_ldos.base.ros2 import PathSpec, Phase
from pytest_ldos.judge.summary import explain
from pytest_ldos.measure.metrics.extract import PathSegments
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.scheduling import build_thread_states
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.critical import break_down
from pytest_ldos.trace.flow.lineage import find_path
from tests.builders.kernel import EPOCH_NS, PREEMPTED, KernelTrace
from tests.builders.ros2 import HOST, Recording
from tests.builders.trials import TYPICAL, trial, trial_set

US = 1_000
MS = 1_000_000
PATH = PathSpec(name="relayed", via=("/in", "/out"))
RELAY, RIVAL = 2, 9
PERIOD = 20 * MS


class Contended:
    """/relay turns /in into /out in 1 ms of CPU time; in each run it is also runnable for `waits_ns`.

    It is preempted halfway through its work, and blocked between messages.
    """

    def __init__(self, folder, waits_ns):
        recording = Recording()
        talker, relay = recording.process(1), recording.process(RELAY)
        out, subscription = talker.node("/talker").publisher("/in"), relay.node("/relay").subscription("/in")
        relayed = relay.node("/relay").publisher("/out")
        kernel = KernelTrace(hostname=HOST)
        kernel.switch(0, 0, 0, RIVAL)
        for number, wait in enumerate(waits_ns):
            sent = (number + 1) * PERIOD
            message = talker.thread().at(EPOCH_NS + sent).publish(out)
            taken = sent + 100 * US
            kernel.switch(taken - 10 * US, 0, RIVAL, RELAY, state=PREEMPTED)
            with relay.thread().at(EPOCH_NS + taken).receiving(subscription, message) as thread:
                half = taken + 500 * US
                kernel.switch(half, 0, RELAY, RIVAL, state=PREEMPTED)
                kernel.switch(half + wait, 0, RIVAL, RELAY, state=PREEMPTED)
                thread.at(EPOCH_NS + half + wait + 500 * US).publish(relayed)
            kernel.switch(half + wait + 510 * US, 0, RELAY, RIVAL)
        self.flow = build_flow(recording.model())
        self.states = build_thread_states(read_trace(kernel.write(folder)))

    def segments(self) -> pl.DataFrame:
        return break_down(self.flow, find_path(self.flow, PATH), thread_states=self.states)


def test_cpu_wait_is_a_separate_segment(tmp_path):
    waits = [0, 700 * US, 3 * MS]
    contended = Contended(tmp_path, waits)
    table = contended.segments()
    found = find_path(contended.flow, PATH).table
    for passage, wait in enumerate(waits):
        own = table.filter(pl.col("passage") == passage)
        assert own["duration_ns"].sum() == found["latency_ns"][passage]
        assert own["position"].to_list() == list(range(len(own)))
        of_callback = own.filter(pl.col("subject") == "/relay: /in")
        durations = dict(of_callback.select("kind", "duration_ns").iter_rows())
        # The callback begins three events after the take.
        assert durations.pop("callback run") == 1 * MS - 3
        assert durations.pop("CPU wait", 0) == wait
        assert durations == {}


def test_without_kernel_events_cpu_wait_is_part_of_the_callback(tmp_path):
    contended = Contended(tmp_path, [3 * MS])
    table = break_down(contended.flow, find_path(contended.flow, PATH))
    assert "CPU wait" not in table["kind"]
    assert table.filter(pl.col("kind") == "callback run")["duration_ns"].to_list() == [4 * MS - 3]


def run_of(folder, waits_ns):
    """One trial around each passage."""
    contended = Contended(folder, waits_ns)
    segments = PathSegments(contended.flow, [PATH], thread_states=contended.states)
    trials = []
    for number in range(len(waits_ns)):
        begin = EPOCH_NS + (number + 1) * PERIOD - 1 * MS
        phases = {Phase.GOAL_SENT: begin, Phase.RESULT: begin + PERIOD - 1}
        span = TrialSpan(
            goal_id=f"{number:032x}",
            scenario="baseline",
            index=number,
            begin_ns=begin,
            phases=phases,
            plan=None,
            end_ns=begin + PERIOD - 1,
            error_code=1,
        )
        trials.append(trial(number, TYPICAL, segments_ns=segments.of(span)))
    return trial_set(trials)


def test_cpu_contention_is_the_first_cause(tmp_path):
    """Each run waits about 2 ms (± 20 %) longer than usual."""
    random = np.random.default_rng(5)
    usual = (300 * US * random.uniform(0.5, 1.5, 20)).astype(int).tolist()
    planted = (2 * MS * random.uniform(0.8, 1.2, 20)).astype(int).tolist()
    base = run_of(tmp_path / "base", usual)
    head = run_of(tmp_path / "head", [one + other for one, other in zip(usual, planted, strict=True)])
    first, *others = explain(base, head)["relayed"].changes
    assert first.segment == "CPU wait: /relay: /in"
    assert first.change_ns == pytest.approx(2 * MS, rel=0.2)
    assert first.low_ns > 1 * MS
    assert all(each.change_ns == pytest.approx(0, abs=50 * US) for each in others)
