"""Long runs of the real stack, shared by the proofs that look at them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from pytest_ldos import api
from pytest_ldos.judge.summary import coefficient_of_variation
from pytest_ldos.measure.trial.record import all_series

TRIALS = 30
KILLS = 200


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=KILLS, help="runs that test_kills ends")
    parser.addoption("--kill-seed", type=int, default=1, help="of the moments and signals")


@pytest.fixture(scope="session")
def kills(request) -> int:
    return request.config.getoption("kills")


@pytest.fixture(scope="session")
def kill_seed(request) -> int:
    return request.config.getoption("kill_seed")


@dataclass(frozen=True)
class Measured:
    """A run and how long it took, wall clock."""

    trials: api.TrialSet
    seconds: float


@pytest.fixture(scope="session")
def measure(tmp_path_factory) -> Callable[..., Measured]:
    """Runs the baseline scenario with planted faults, and prints what came out."""
    output: Path = tmp_path_factory.mktemp("acceptance")

    def run(name: str, *, trials: int = TRIALS, **faults: float) -> Measured:
        spec = api.ScenarioSpec(name="baseline", trials=trials, stack=api.StackSpec(faults=api.FaultSpec(**faults)))
        began = time.monotonic()
        result = api.run_trials(spec, output=output)
        measured = Measured(result, time.monotonic() - began)
        print(f"\n{name}: {result.successes} of {len(result.trials)} trials in {measured.seconds:.1f} s")
        for metric, series in all_series(result).items():
            spread = 100 * coefficient_of_variation(series)
            print(f"  {metric:4} median {median(series.finite):9.3f} {series.unit}  CV {spread:5.1f} %")
        return measured

    return run


@pytest.fixture(scope="session")
def base(measure) -> Measured:
    """The version that everything is compared with."""
    return measure("base")


@pytest.fixture(scope="session")
def again(measure) -> Measured:
    """The same version once more."""
    return measure("the same again")
