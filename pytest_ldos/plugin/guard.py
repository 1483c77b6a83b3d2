"""What would spoil a measurement is refused before it begins."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pytest_ldos.base.errors import ConfigurationError

_WRITTEN_AT_THE_END: Final = ("report", "summary", "benchmark_json")
"""Options for what holds all scenarios of a session: no worker has them."""


def refuse_reruns(config: pytest.Config, item: pytest.Item) -> None:
    """A red scenario that is run again until it is green hides the regression it found."""
    if config.getoption("reruns", default=0) or item.get_closest_marker("flaky"):
        raise ConfigurationError(
            "scenario tests must not be rerun until they pass: that hides the regressions they find",
            remedy="leave out --reruns and flaky marks for them, or ask for more trials (--ldos-trials)",
        )


def refuse_parallel_runs(config: pytest.Config, *, is_one_sweep: bool) -> None:
    """Tests in other processes would disturb the stack, and be disturbed by it; cells of a sweep take turns.

    Args:
        is_one_sweep: whether all tests of the session are cells of sweeps.
    """
    worker_input: Any = getattr(config, "workerinput", None)
    if worker_input is None:
        return
    if not is_one_sweep:
        raise ConfigurationError(
            f"scenario tests cannot run in pytest-xdist workers ({worker_input['workercount']} here): other tests "
            "would disturb them",
            remedy="run them alone, with -n 0; only a sweep (ldos_sweep), without other tests, can be spread",
        )
    written = [name for name in _WRITTEN_AT_THE_END if config.getoption(f"ldos_{name}")]
    if written:
        raise ConfigurationError(
            f"--ldos-{written[0].replace('_', '-')} cannot be written by pytest-xdist's workers",
            remedy="leave it out: a sweep's tables lie in .ldos/sweeps; or run without workers",
        )
