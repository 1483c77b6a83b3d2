"""A model from windows read by several processes equals that of the whole trace."""

from __future__ import annotations

import shutil
import time

import numpy as np
import pytest

from pytest_ldos.base.errors import TraceUnreadable, Unavailable
from pytest_ldos.fleet import tasks
from pytest_ldos.fleet.choose import LocalCluster, RemoteScheduler, connected_cluster
from pytest_ldos.fleet.tasks import InProcess, spread_over
from pytest_ldos.trace.ctf.read import open_in_windows, read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution, build_execution_in_windows
from tests.builders.fatal_windows import FatalTrace
from tests.builders.stressors import wait_until

NAMES = ("workspace_mock", "intra_process", "service_action", "late_start", "discarded")
BORDERS = 9


@pytest.fixture(scope="module")
def client():
    with connected_cluster(2) as client:
        yield client


def whole(trace):
    return build_execution(read_trace(trace, events=NEEDED_EVENTS))


def random_borders(trace):
    times = [table.timestamp_ns for table in read_trace(trace, events=NEEDED_EVENTS).events.values() if len(table)]
    first, last = min(int(each[0]) for each in times), max(int(each[-1]) for each in times)
    random = np.random.default_rng(sum(trace.name.encode()))
    return np.unique(random.integers(first, last, BORDERS)).tolist()


def assert_equal(found, expected):
    for name, frame in expected.frames().items():
        assert found.frames()[name].equals(frame, null_equal=True), name
    assert (found.unknown, found.unpaired, found.stats) == (expected.unknown, expected.unpaired, expected.stats)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", NAMES)
def test_windows_over_two_processes(golden, client, name):
    trace = golden(name)
    with open_in_windows(trace, borders_ns=random_borders(trace)) as windows:
        assert_equal(build_execution_in_windows(windows, spread=spread_over(client)), whole(trace))


@pytest.mark.parametrize("which", ["this process", "a scheduler", pytest.param("two", marks=pytest.mark.acceptance)])
def test_each_reader_gives_the_same_model(golden, scheduler, which):
    readers = {"this process": InProcess(), "a scheduler": RemoteScheduler(scheduler.address), "two": LocalCluster(2)}
    trace = golden("workspace_mock")
    with readers[which].spreading() as spread, open_in_windows(trace, borders_ns=random_borders(trace)) as windows:
        assert_equal(build_execution_in_windows(windows, spread=spread), whole(trace))


@pytest.mark.acceptance
def test_killed_worker_is_replaced(golden, client, tmp_path):
    """Other workers read all windows of the killed one."""
    trace = golden("workspace_mock")
    with open_in_windows(trace, borders_ns=random_borders(trace)) as windows:
        fatal = FatalTrace.of(windows, windows.windows[4], tmp_path, most=1)
        found = build_execution_in_windows(fatal, spread=spread_over(client))
    assert len(list(tmp_path.iterdir())) == 1
    assert_equal(found, whole(trace))


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_window_that_kills_all_workers_is_an_error(golden, client, tmp_path):
    trace = golden("workspace_mock")
    with open_in_windows(trace, borders_ns=random_borders(trace)) as windows:
        fatal = FatalTrace.of(windows, windows.windows[4], tmp_path, most=100)
        with pytest.raises(Unavailable, match="each worker that read a window was killed") as caught:
            build_execution_in_windows(fatal, spread=spread_over(client))
    assert "--window" in caught.value.remedy
    assert len(list(tmp_path.iterdir())) == 3


def test_growing_trace_is_refused_by_workers(golden, client, tmp_path):
    """A worker reads a window after the trace has grown."""
    trace = shutil.copytree(golden("workspace_mock"), tmp_path / "growing")
    with open_in_windows(trace, borders_ns=random_borders(trace)) as windows:

        def grown(opened, whole, tasks):
            stream = max(trace.rglob("*_*"), key=lambda file: file.stat().st_size)
            task = next(tasks)
            stream.write_bytes(stream.read_bytes() + bytes(4096))
            yield from spread_over(client)(opened, whole, iter([task]))

        with pytest.raises(TraceUnreadable, match="was written to while the trace was read in windows") as caught:
            build_execution_in_windows(windows, spread=grown)
    assert "lttng stop" in caught.value.remedy


def test_missing_workers_are_an_error(golden, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "PATIENCE_S", 0.5)
    trace = golden("workspace_mock")
    with connected_cluster(1) as client, open_in_windows(trace, borders_ns=random_borders(trace)) as windows:

        def without_workers(opened, whole, tasks):
            client.retire_workers(list(client.scheduler_info()["workers"]))
            yield from spread_over(client)(opened, whole, tasks)

        with pytest.raises(Unavailable, match="no worker is left that could read the trace"):
            build_execution_in_windows(windows, spread=without_workers)


def forgotten(client):
    """A finished task that the scheduler has forgotten."""
    future = client.submit(int, 5, pure=False)
    wait_until(future.done)

    def forget(dask_scheduler, key):
        del dask_scheduler.tasks[key]

    client.run_on_scheduler(forget, key=future.key)
    return future


class NeverComes:
    """A fake task whose result is lost in transfer."""

    def __init__(self, key):
        self.key = key

    def result(self, timeout):
        raise TimeoutError


def test_forgotten_result_is_an_error(client):
    """On a busy machine, a worker's death occasionally leaves such tasks."""
    future = forgotten(client)
    for lost in (NeverComes(future.key), future):
        with pytest.raises(LookupError):
            tasks.fetch(client, lost)


def test_task_that_no_worker_takes_up_is_an_error(client, monkeypatch):
    """After a worker's death, a task may wait for ever while all workers are idle."""
    monkeypatch.setattr(tasks, "PATIENCE_S", 0.2)
    future = client.submit(int, 5, pure=False, resources={"none has it": 1})
    with pytest.raises(LookupError):
        tasks.fetch(client, future)


def test_a_long_task_is_waited_for(client, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "PATIENCE_S", 0.2)
    gate, asked = tmp_path / "gate", []

    def wait(path):
        while not path.exists():
            time.sleep(0.05)
        return 5

    def asking(*arguments, **settings):
        asked.append(run(*arguments, **settings))
        if len(asked) == 4:
            gate.touch()
        return asked[-1]

    run = client.run_on_scheduler
    monkeypatch.setattr(client, "run_on_scheduler", asking)
    assert tasks.fetch(client, client.submit(wait, gate, pure=False)) == 5
    assert len(asked) >= 4


def test_a_result_is_fetched(client):
    future = client.submit(int, 5, pure=False)
    wait_until(future.done)
    assert tasks.fetch(client, future) == 5
