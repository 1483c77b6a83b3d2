"""Killed, unsuitable and missing workers end in a row or an error, in bounded time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import threading
import time
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.fleet import choose as remote
from pytest_ldos.fleet import tasks
from pytest_ldos.fleet.choose import LocalCluster, RemoteScheduler, connected_cluster, require_able_workers
from pytest_ldos.fleet.tasks import InProcess
from pytest_ldos.fleet.traces import Found, find_traces
from pytest_ldos.measure.metrics.catalogue import OwnSource
from tests.builders.dask_processes import end, running_scheduler
from tests.builders.stressors import wait_until

OWN = """
import os, signal, time
from pathlib import Path
from pytest_ldos.api import Better, OwnMetric

FLAG = Path(__file__).with_name("flag")

def measure(context, window):
    {body}
    return 1.0

def pytest_ldos_metrics():
    return [OwnMetric(name="own", title="own", unit="ms", better=Better.LOWER, measure=measure)]
"""
KILLS = """
    if {condition}:
        FLAG.touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def own(tmp_path, request_of):
    """A request with a user metric that has a side effect."""

    def make(body):
        (tmp_path / "own.py").write_text(OWN.format(body=body.strip()))
        return request_of(own=OwnSource("own.py", str(tmp_path)))

    return make


@pytest.fixture(scope="module")
def two(golden):
    """The first has marked trials, the second has none."""
    return find_traces([golden("workspace_mock"), golden("panda_baseline_1")])


def read(scheduler, traces, request):
    return {each.trace: each for each in scheduler.summarize(traces, request)}


@pytest.fixture
def ours():
    """New processes of Dask; Python's resource tracker remains until the end of this process."""

    def list_ours():
        tree = psutil.Process().children(recursive=True)
        return {each.pid for each in tree if "spawn_main" in str(each.cmdline())}

    before = list_ours()
    return lambda: list_ours() - before


@pytest.mark.acceptance
def test_killed_workers_are_replaced_and_a_deadly_trace_is_a_row(own, two, golden, tmp_path):
    """One trace kills its first worker, one all workers, and one none."""
    marked, unmarked = sorted(two, key=lambda each: "workspace" not in each.name)
    calm = Found.at(golden("service_action"))
    traces = [marked, unmarked, calm]
    found = read(LocalCluster(2), traces, own(KILLS.format(condition="context.trial.marked or not FLAG.exists()")))
    assert (tmp_path / "flag").exists()
    assert found.pop(marked.name).problem == "each worker that read it was killed, or ran out of memory"
    assert found == read(InProcess(), [unmarked, calm], own(""))


def await_status(client, wanted):
    """Waits until each answer has this status."""
    wait_until(lambda: {state.status for state in client.futures.values()} == {wanted})


@pytest.mark.acceptance
def test_lost_answer_is_recomputed(two, request_of):
    """The worker is killed after it has finished, before its answers are fetched."""
    with connected_cluster(1) as client:
        found = tasks.run_tasks(client, two, request_of())
        answers = [next(found)]
        await_status(client, "finished")
        (worker,) = client.run(os.getpid).values()
        os.kill(worker, signal.SIGKILL)
        await_status(client, "lost")
        answers += found
    assert {each.trace: each for each in answers} == read(InProcess(), two, request_of())


@pytest.mark.acceptance
def test_killed_remote_worker_is_replaced_by_its_nanny(own, two, scheduler, tmp_path):
    request = own(KILLS.format(condition="context.trial.marked and not FLAG.exists()"))
    found = read(RemoteScheduler(scheduler.address), two, request)
    assert (tmp_path / "flag").exists()
    assert found == read(InProcess(), two, request)


@pytest.mark.acceptance
def test_scheduler_that_ends_early_is_an_error(own, two, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "PATIENCE_S", 1.0)
    request = own(
        'FLAG.touch()\n    while Path(f"/proc/{os.getppid()}").exists() and os.getppid() > 1: time.sleep(0.1)'
    )
    with running_scheduler(tmp_path, workers=1) as running:

        def end_when_it_reads():
            while not (tmp_path / "flag").exists():
                time.sleep(0.01)
            end(running.scheduler)

        threading.Thread(target=end_when_it_reads, daemon=True).start()
        found = read(RemoteScheduler(running.address), two, request)
    assert len(found) == 2
    reasons = {"the scheduler ended before it was read", "no worker is left that could read it"}
    assert {each.problem for each in found.values()} <= reasons


@pytest.mark.acceptance
def test_workers_that_end_early_are_an_error(own, two, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "PATIENCE_S", 1.0)
    request = own("FLAG.touch()\n    time.sleep(30)")
    with running_scheduler(tmp_path, workers=1) as running:

        def end_when_it_reads():
            while not (tmp_path / "flag").exists():
                time.sleep(0.01)
            for worker in running.workers:
                end(worker)

        threading.Thread(target=end_when_it_reads, daemon=True).start()
        found = read(RemoteScheduler(running.address), two, request)
    assert {each.problem for each in found.values()} == {"no worker is left that could read it"}


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(remote, "ANSWER_S", 1.0)


def test_missing_scheduler_is_an_error(hasty, two, request_of):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Unavailable, match=f"no Dask scheduler answers at tcp://127.0.0.1:{port}: ") as caught:
        read(RemoteScheduler(f"tcp://127.0.0.1:{port}"), two, request_of())
    assert "dask scheduler --host" in caught.value.remedy


def test_other_service_is_no_scheduler(hasty, two, request_of):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Unavailable, match="no Dask scheduler answers at"):
            read(RemoteScheduler(address), two, request_of())


def test_scheduler_without_workers_is_an_error(monkeypatch, two, request_of, tmp_path):
    def require_at_once(*arguments, limit_s):
        require_able_workers(*arguments, limit_s=0.1)

    monkeypatch.setattr(remote, "require_able_workers", require_at_once)
    with (
        running_scheduler(tmp_path, workers=0) as running,
        pytest.raises(Unavailable, match=r"has no worker\n.*dask worker tcp://"),
    ):
        read(RemoteScheduler(running.address), two, request_of())


@pytest.mark.acceptance
def test_workers_of_another_version_are_refused(two, request_of, tmp_path):
    """An older package has precedence on their path."""
    of_package = tmp_path / "older" / "pytest_ldos-0.0.1.dist-info"
    of_package.mkdir(parents=True)
    (of_package / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-ldos\nVersion: 0.0.1\n")
    environment = {"PYTHONPATH": str(of_package.parent)}
    with (
        running_scheduler(tmp_path, workers=1, environment=environment) as running,
        pytest.raises(Unavailable, match=rf"{socket.gethostname()} has pytest-ldos 0\.0\.1, this is ") as caught,
    ):
        read(RemoteScheduler(running.address), two, request_of())
    assert "give them pytest-ldos" in caught.value.remedy


@pytest.mark.acceptance
def test_workers_that_do_not_see_the_traces_are_refused(golden, request_of, tmp_path, monkeypatch):
    """The path resolves to each process's own folder, like a local disk on each machine."""
    monkeypatch.chdir(golden("service_action").parent)
    traces = find_traces([Path("/proc/self/cwd/service_action")])
    assert [each.problem for each in traces] == [""]
    (tmp_path / "elsewhere").mkdir()
    with (
        running_scheduler(tmp_path, workers=1, cwd=tmp_path / "elsewhere") as running,
        pytest.raises(Unavailable, match="does not see /proc/self/cwd/service_action"),
    ):
        read(RemoteScheduler(running.address), traces, request_of())


@pytest.mark.acceptance
def test_local_processes_listen_on_loopback_with_keys_and_leave_nothing(own, two, tmp_path, monkeypatch, ours):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    request = own(
        "import json, psutil; tree = psutil.Process().parent(); ps = [tree, *tree.children(recursive=True)]\n"
        "    FLAG.write_text(json.dumps([c.laddr for p in ps for c in p.net_connections() if c.status == 'LISTEN']))"
    )
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    of_others = [[*each.laddr] for process in tree for each in process.net_connections()]  # plugins of pytest, too
    summaries = LocalCluster(2).summarize(two, request)
    read_already = [next(summaries) for _ in two]
    assert not any(each.problem for each in read_already)
    assert {folder.stat().st_mode & 0o777 for folder in tmp_path.glob("ldos-analyze-*")} == {0o700}
    listening = [each for each in json.loads((tmp_path / "flag").read_text()) if each not in of_others]
    assert len(listening) >= 5  # scheduler, nannies, workers
    assert {host for host, _ in listening} == {"127.0.0.1"}
    for _, port in listening:
        assert refuses_connections_without_keys(port)
    summaries.close()
    assert not list(tmp_path.glob("ldos-analyze-*"))
    assert not ours()


def refuses_connections_without_keys(port):
    """It refuses plain text and clients without the keys."""
    answers = [ask(port, lambda plain: plain), ask(port, ssl._create_unverified_context().wrap_socket)]
    return all(not answer or answer.startswith(b"HTTP/1.1 404 ") for answer in answers)


def ask(port, secure):
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=1) as plain,
        secure(plain) as client,
    ):
        client.sendall(b"GET /status HTTP/1.0\r\n\r\n")
        return client.recv(1000)
    return b""


@pytest.mark.acceptance
def test_cancelled_reading_leaves_nothing(two, request_of, ours):
    summaries = LocalCluster(2).summarize(two, request_of())
    next(iter(summaries))
    assert ours()
    summaries.close()
    assert not ours()
