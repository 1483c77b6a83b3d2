"""Site for the loads of these tests: this process."""

from __future__ import annotations

import os

import pytest

from pytest_ldos.measure.load.protocol import LoadSite
from tests.fakes.rig import FakeRecorder


@pytest.fixture
def site(tmp_path):
    return LoadSite(
        domain=1, recorder=FakeRecorder(tmp_path / "trace"), log_directory=tmp_path, pids=lambda: [os.getpid()]
    )
