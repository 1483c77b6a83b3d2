"""The rolling model of a system that real LTTng records."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.fleet.live import LiveModel, Reading
from pytest_ldos.fleet.traces import find_traces
from pytest_ldos.record.attach import RunningSession
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.summary import summarize_topics
from tests.builders.needs import needs_lttng
from tests.builders.watched import Watched, watched_daemon

pytestmark = needs_lttng

CLOCK = Path(__file__).parents[2] / "integration/rcl/two_hosts/clock.c"
LIMIT_NS = 20 * NS_PER_MS


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[Watched]:
    with watched_daemon(tmp_path_factory.mktemp("daemon")) as found:
        yield found


@pytest.fixture
def watched(daemon, tmp_path, monkeypatch) -> Iterator[Watched]:
    monkeypatch.setenv("PATH", daemon.path)
    with daemon.cleared(tmp_path):
        yield daemon


class Reader:
    """Reads the session part by part, as the command does, whenever a test asks for it."""

    def __init__(self, folder: Path, **options) -> None:
        folder.mkdir()
        self.session = RunningSession()
        options = {"paths": (), "limits_ns": {"/beat": LIMIT_NS}, "interval_ns": NS_PER_S // 100, **options}
        self.model = LiveModel(folder, **options)
        self._since_ns = time.monotonic_ns()
        self.parts = [self.session.rotate()]
        self.model.learn(self.session.archives)

    def read(self) -> Reading:
        since_ns, self._since_ns = self._since_ns, time.monotonic_ns()
        self.parts.append(self.session.rotate())
        return self.model.add(self.parts[-1], since_ns=since_ns, now_ns=time.monotonic_ns())


def topics(reading: Reading) -> dict[str, int]:
    assert reading.flow is not None
    return dict(summarize_topics(reading.flow).select("topic", "received").iter_rows())


def test_names_of_earlier_parts_name_later_messages(watched, tmp_path):
    watched.create()
    talker = watched.talker()
    talker.do("begin send take")
    reader = Reader(tmp_path / "model")
    for _ in range(5):
        talker.do("send take")
        reading = reader.read()
        assert not reading.notes
    assert reading.events == 8
    assert topics(reading) == {"/beat": 2}, "the window is the last two parts"
    assert reading.flow is not None
    assert reading.flow.model.nodes["name"].to_list() == ["/talker"]


def test_message_across_a_border_is_counted_once(watched, tmp_path):
    watched.create()
    talker = watched.talker()
    talker.do("begin")
    reader = Reader(tmp_path / "model")
    talker.do("send wait,30")
    assert not reader.read().alarms
    talker.do("take")
    (alarm,) = reader.read().alarms
    assert alarm.startswith("missed deadline: topic /beat: 1 of 1 above 20.0 ms, the longest ")
    assert not reader.read().alarms


def test_silent_topic_is_an_alarm_once_until_it_is_published_again(watched, tmp_path):
    watched.create()
    talker = watched.talker()
    talker.do("begin")
    reader = Reader(tmp_path / "model", limits_ns={})
    for _ in range(2):
        talker.do("repeat,8,20")
        readings = [reader.read()]
        while not readings[-1].alarms and len(readings) < 60:
            talker.do("wait,20")
            readings.append(reader.read())
        (alarm,) = readings[-1].alarms
        assert alarm.startswith("silent topic: /beat: no message for ")
        assert not reader.read().alarms


def test_names_from_before_the_session_are_missing(watched, tmp_path):
    """Only a recording of the nodes' start has them."""
    talker = watched.talker()
    watched.create(output=(f"--output={tmp_path / 'start'}",))
    talker.do("begin")
    watched.session.lttng("destroy", "wanted")
    watched.create()
    reader = Reader(tmp_path / "model")
    talker.do("send take")
    (note,) = reader.read().notes
    assert note.startswith("made before the session began: ")
    assert "1 publisher" in note
    assert "--names TRACE" in note
    talker.do("send take")
    assert not reader.read().notes, "it is said once"
    reader.model.learn(tmp_path / "start")
    talker.do("send take")
    assert "/beat" in topics(reader.read())


def test_what_led_to_an_alarm_is_one_trace_with_names(watched, tmp_path):
    watched.create()
    talker = watched.talker()
    talker.do("begin send take")
    reader = Reader(tmp_path / "model", keep_ns=0)
    for _ in range(4):
        talker.do("send wait,30 take")
        assert reader.read().alarms
    target = tmp_path / "saved" / "one"
    reader.model.save(target)
    with pytest.raises(LdosError, match="File exists"):
        reader.model.save(target)
    assert [each.path for each in find_traces([target])] == [target], "a second one does not remove the first"
    model = build_execution(read_trace(target, events=NEEDED_EVENTS))
    assert model.nodes["name"].to_list() == ["/talker"]
    (row,) = summarize_topics(build_flow(model)).filter(pl.col("topic") == "/beat").to_dicts()
    assert (row["messages"], row["received"]) == (2, 2)
    assert [each.exists() for each in reader.parts] == [True, False, False, True, True], (
        "only own old parts are deleted"
    )


@pytest.mark.parametrize("buffers", ["--buffers-uid", "--buffers-pid"])
def test_saved_first_part_is_whole_if_a_cpu_was_idle(watched, tmp_path, buffers):
    """LTTng writes an empty packet at the begin of the part for streams of idle CPUs, and none at its end."""
    watched.create(buffers=buffers)
    talker = watched.talker()
    talker.do(f"stay,{min(os.sched_getaffinity(0))} begin send take")
    reader = Reader(tmp_path / "model", keep_ns=0)
    talker.do("send wait,30 take")
    reading = reader.read()
    assert reading.alarms
    reader.model.save(tmp_path / "saved")
    saved = build_execution(read_trace(tmp_path / "saved", events=NEEDED_EVENTS))
    assert reading.flow is not None
    for model in (reading.flow.model, saved):
        sent_ns, taken_ns = model.publications["time_ns"].max(), model.takes["time_ns"].max()
        ((begin_ns, end_ns),) = model.coverage.whole_spans(0, *model.extent_ns)
        assert begin_ns <= sent_ns < taken_ns <= end_ns


def test_no_part_is_deleted_unasked(watched, tmp_path):
    watched.create()
    talker = watched.talker()
    talker.do("begin")
    reader = Reader(tmp_path / "model")
    for _ in range(4):
        talker.do("send take")
        reader.read()
    assert all(each.is_dir() for each in reader.parts)


@pytest.mark.parametrize("sign", [-1, 1])
def test_clock_that_jumps_is_noted_and_begins_a_new_window(watched, tmp_path, sign):
    shift_s = sign * min(3600, int(time.monotonic()) // 2)  # the clock begins when the machine does
    plugin = tmp_path / "clock.so"
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", plugin, CLOCK, "-llttng-ust"], check=True)
    watched.create()
    before = watched.talker()
    clock = {"SHIFT_NS": str(shift_s * NS_PER_S), "BASE_NS": "0", "DRIFT_PPB": "0"}
    after = watched.talker(LTTNG_UST_CLOCK_PLUGIN=str(plugin), **clock)
    before.do("begin repeat,8,1")
    after.do("begin")
    reader = Reader(tmp_path / "model")
    before.do("repeat,8,1")
    assert not reader.read().notes
    after.do("repeat,8,1")
    jumped = reader.read()
    (note,) = jumped.notes
    assert re.match(rf"the clock of the recording jumped by {'-' * (sign < 0)}\d", note)
    assert not jumped.alarms
    after.do("repeat,3,1")
    following = reader.read()
    assert not following.notes
    assert not following.alarms
    assert topics(following) == {"/beat": 3}


def test_nothing_recorded_is_a_reading_without_a_system(watched, tmp_path):
    watched.create()
    reader = Reader(tmp_path / "model")
    assert reader.read() == Reading()
