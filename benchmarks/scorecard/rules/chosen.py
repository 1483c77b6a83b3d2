"""All rules that take samples as they are; ours and Otava's need more and are asked elsewhere."""

from __future__ import annotations

from typing import Final

from benchmarks.scorecard.rules.asv import Asv
from benchmarks.scorecard.rules.bencher import Bencher
from benchmarks.scorecard.rules.classical import MannWhitney, Welch
from benchmarks.scorecard.rules.mean_ratio import GithubActionBenchmark, PytestBenchmark
from benchmarks.scorecard.rules.ours import Ours
from benchmarks.scorecard.rules.protocol import Rule

OURS: Final = Ours(calibrated=False, name="ours", title="pytest-ldos")
OURS_CALIBRATED: Final = Ours(calibrated=True, name="ours_calibrated", title="pytest-ldos, one ldos calibrate")
OWN: Final = (OURS, OURS_CALIBRATED)
"""The gate as it is by default: without a calibration of the host, and with one run of it."""

OTHERS: Final[tuple[Rule, ...]] = (
    PytestBenchmark(),
    GithubActionBenchmark(2.0, "github_action_benchmark_200"),
    GithubActionBenchmark(1.1, "github_action_benchmark_110"),
    Asv(),
    Bencher(),
    MannWhitney(0.05, "mann_whitney"),
    MannWhitney(0.01 / 20, "mann_whitney_corrected"),
    Welch(0.05, "welch"),
    Welch(0.01 / 20, "welch_corrected"),
)
