"""perf with real processes, and if it is missing, forbidden or killed."""

from __future__ import annotations

import os
import shutil
import signal
from xml.etree import ElementTree as ET

import pytest

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.record.perf import PerfProfiler, perf_available
from pytest_ldos.record.profiles import parse_folded, render_folded
from pytest_ldos.show.report.drawings import draw_flame
from tests.builders import hostile
from tests.builders.busy import busy_process, ready_process, run_for, suspend
from tests.builders.forbidden import forbid
from tests.builders.watchers import perf_here

ABLE = perf_here()
pytestmark = pytest.mark.skipif(not ABLE.ok, reason=ABLE.reason or "perf can sample")


def test_running_process_is_sampled_with_its_stacks(tmp_path):
    profiler = PerfProfiler(tmp_path, rate_hz=499)
    assert profiler.name.startswith("perf ")
    with busy_process() as process:
        profiler.start({process.pid: "worker"})
        run_for(process, 0.15)
        sampled = profiler.stop()
    assert sampled.profile.samples >= 10
    assert {stack[0] for stack in sampled.profile.counts} == {"worker"}
    assert max(map(len, sampled.profile.counts)) > 3, "stacks were not unwound"
    assert any("Py" in frame for stack in sampled.profile.counts for frame in stack)
    assert any("py-spy gives them" in note for note in sampled.notes)


@pytest.mark.acceptance
@pytest.mark.skipif(bool(hostile.REASON), reason=hostile.REASON or "a compiler is there")
def test_hostile_names_are_sanitised(tmp_path):
    profiler = PerfProfiler(tmp_path, rate_hz=499)
    with ready_process(str(hostile.build_hostile(tmp_path)), hostile.THREAD) as process:
        profiler.start({process.pid: hostile.THREAD})
        run_for(process, 0.15)
        sampled = profiler.stop()
    names = {frame for stack in sampled.profile.counts for frame in stack}
    (evil,) = [name for name in names if name.startswith("evil<script>")]
    assert not any(letter in name for name in names for letter in ";\x1b\x07")
    assert parse_folded(render_folded(sampled.profile), "it") == sampled.profile
    svg = draw_flame(sampled.profile, title="it")
    assert {each.tag.rpartition("}")[2] for each in ET.fromstring(svg).iter()} == {
        "svg",
        "style",
        "rect",
        "text",
        "g",
        "title",
    }
    assert any((each.text or "").startswith(f"{evil}: ") for each in ET.fromstring(svg).iter())


def test_missing_process_is_reported(tmp_path):
    profiler = PerfProfiler(tmp_path, rate_hz=99)
    with pytest.raises(ProfilingFailed, match=r"perf record ended: .*No such process"):
        profiler.start({4_194_303: "absent"})


def test_killed_perf_gives_no_profile_and_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    profiler = PerfProfiler(tmp_path, rate_hz=99)
    with busy_process() as process:
        profiler.start({process.pid: "worker"})
        assert list((tmp_path / "temporary").glob("ldos-perf-*"))
        (child,) = profiler._group.children
        os.kill(child.pid, signal.SIGKILL)
        child.process.wait()
        with pytest.raises(ProfilingFailed, match="killed by SIGKILL"):
            profiler.stop()
    assert not list((tmp_path / "temporary").iterdir())


def test_samples_of_an_ended_process_are_kept(tmp_path):
    profiler = PerfProfiler(tmp_path, rate_hz=499)
    with busy_process() as process:
        profiler.start({process.pid: "worker"})
        run_for(process, 0.1)
    assert profiler.stop().profile.samples > 0


def test_damaged_recording_is_reported(tmp_path):
    profiler = PerfProfiler(tmp_path, rate_hz=99)
    with busy_process() as process:
        profiler.start({process.pid: "worker"})
        (child,) = profiler._group.children
        child.process.send_signal(signal.SIGINT)
        child.process.wait()
        child.process.returncode = 0
        profiler._data.write_bytes(b"PERFILE2 and nothing else" * 10)
        with pytest.raises(ProfilingFailed, match="perf script cannot read"):
            profiler.stop()


def test_sleeping_process_gives_no_samples(tmp_path):
    profiler = PerfProfiler(tmp_path, rate_hz=99)
    with busy_process() as process:
        suspend(process)
        profiler.start({process.pid: "worker"})
        assert not profiler.stop().profile


def test_missing_permission_has_a_reason(tmp_path, monkeypatch):
    forbid("perf", tmp_path / "bin", "perf_event_open")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    able = perf_available()
    assert not able.ok
    assert "perf may not sample here" in able.reason
    assert "perf_event_paranoid" in able.remedy


def test_missing_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "true").symlink_to(shutil.which("true") or "/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    able = perf_available()
    assert (able.ok, able.reason) == (False, "perf not found")
    assert "linux-perf" in able.remedy
