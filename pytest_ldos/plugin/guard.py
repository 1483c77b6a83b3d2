"""What would spoil a measurement is refused before it begins."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ldos.errors import ConfigurationError


def refuse_reruns(config: pytest.Config, item: pytest.Item) -> None:
    """A red scenario that is run again until it is green hides the regression it found."""
    if config.getoption("reruns", default=0) or item.get_closest_marker("flaky"):
        raise ConfigurationError(
            "scenario tests must not be rerun until they pass: that hides the regressions they find",
            remedy="leave out --reruns and flaky marks for them, or ask for more trials (--ldos-trials)",
        )


def refuse_parallel_runs(config: pytest.Config) -> None:
    """Tests in other processes would disturb the stack, and be disturbed by it."""
    worker_input: Any = getattr(config, "workerinput", None)
    if worker_input is not None:
        raise ConfigurationError(
            f"scenario tests cannot run in pytest-xdist workers ({worker_input['workercount']} here): other tests "
            "would disturb them",
            remedy="run them alone, with -n 0",
        )
