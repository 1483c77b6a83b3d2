"""Fixtures for tests with the real LTTng."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_ldos.record.lttng import LttngRecorder
from tests.builders.lttng import Session


@pytest.fixture
def session(tmp_path) -> Iterator[Session]:
    recorder = LttngRecorder(tmp_path / "other", tmp_path)
    recorder.start()
    try:
        yield Session(recorder, tmp_path / "wanted")
    finally:
        recorder.stop()
