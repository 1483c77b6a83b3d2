"""Rules that hold one mean against another: pytest-benchmark's and github-action-benchmark's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pytest_benchmark.utils import parse_compare_fail

from benchmarks.scorecard.sample import Flags, Indices, Numbers


@dataclass(frozen=True)
class PytestBenchmark:
    """``--benchmark-compare-fail``: its own check, asked about each run."""

    option: str = "mean:10%"
    name: str = "pytest_benchmark_mean_10"

    @property
    def title(self) -> str:
        return f"pytest-benchmark {self.option}"

    @property
    def source(self) -> str:
        return "pytest_benchmark.utils.parse_compare_fail, called in process"

    def fires(self, base: Numbers, head: Numbers, base_blocks: Indices) -> Flags:
        check = parse_compare_fail(self.option)
        pairs = zip(np.nanmean(head, axis=1), np.nanmean(base, axis=1), strict=True)
        return np.array([check.fails({"mean": now}, {"mean": before}) is not None for now, before in pairs])


@dataclass(frozen=True)
class GithubActionBenchmark:
    """``alert-threshold``: alerts where the present mean is more than so many times the previous one.

    With ``tool: pytest`` it reads operations a second, whose quotient is that of the means.
    """

    threshold: float
    name: str

    @property
    def title(self) -> str:
        return f"github-action-benchmark {100 * self.threshold:.0f} %"

    @property
    def source(self) -> str:
        return "benchmark-action/github-action-benchmark c38cce9, src/write.ts: findAlerts, getRatio (stated again)"

    def fires(self, base: Numbers, head: Numbers, base_blocks: Indices) -> Flags:
        exceeded: Flags = np.nanmean(head, axis=1) / np.nanmean(base, axis=1) > self.threshold
        return exceeded
