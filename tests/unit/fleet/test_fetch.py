"""Results of Dask tasks are fetched, or their loss is an error."""

from __future__ import annotations

import time

import pytest

from pytest_ldos.fleet import tasks
from pytest_ldos.fleet.choose import connected_cluster
from tests.builders.stressors import wait_until


@pytest.fixture(scope="module")
def client():
    with connected_cluster(2) as client:
        yield client


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
