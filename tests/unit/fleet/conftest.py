from __future__ import annotations

import shutil

import pytest

from pytest_ldos.fleet.traces import Request, find_traces
from pytest_ldos.measure.metrics.model import USUAL
from tests.builders.dask_processes import running_scheduler

NAMES = ("workspace_mock", "panda_baseline_1", "service_action", "talker_listener_perpid")


@pytest.fixture(scope="module")
def folder(golden, tmp_path_factory):
    """Recorded traces, a damaged one, and one that is deleted before it is read."""
    place = tmp_path_factory.mktemp("traces")
    for name in NAMES:
        (place / name).symlink_to(golden(name))
    shutil.copytree(golden("service_action"), place / "broken")
    metadata = next((place / "broken").rglob("metadata"))
    metadata.write_bytes(metadata.read_bytes()[:100])
    return place


@pytest.fixture(scope="module")
def traces(folder):
    return find_traces([folder, folder / "nothing"])


@pytest.fixture(scope="module")
def request_of():
    """A request with changes from the defaults."""

    def make(**changes):
        return Request(**{"nominal_period_ns": 2_000_000, "interfaces": USUAL, "usual": USUAL, **changes})

    return make


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    with running_scheduler(tmp_path_factory.mktemp("dask")) as running:
        yield running
