"""A metric is defined by its description and a name in the catalogue."""

from __future__ import annotations

import subprocess
import sys

from pytest_ldos.measure.metrics.catalogue import METRICS

NINTH = """
import dataclasses

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.measure.metrics import catalogue, latency

catalogue.METRICS["T9"] = dataclasses.replace(
    latency.T1, name="T9", title="waiting", phases=(Phase.GOAL_SENT, Phase.PLANNING), path="waiting", refines="T1",
    in_sweeps=False
)

from pytest_ldos.judge.summary import METRIC_PATHS
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.measure.metrics.extract import find_disagreement
from pytest_ldos.measure.trial.record import OURS
from pytest_ldos.show.report import analysis as fleet
from pytest_ldos.show.report import sweep as tables
from pytest_ldos.trace.execution.model import TrialSpan

assert "T9" in {metric.name for metric in OURS}
assert "T9" in Policy().metrics
assert Policy(floors={"T9": 0.1}).floors["T9"] == 0.1
assert METRIC_PATHS["T9"] == "waiting"
assert "T9" in fleet._REFINING
assert "T9" in tables._IN_DATA_ALONE
trial = TrialSpan(
    goal_id="a", scenario="", index=0, begin_ns=0, phases={Phase.GOAL_SENT: 0, Phase.PLANNING: 9_000_000}, plan=None,
    end_ns=None, error_code=None
)
found = find_disagreement(trial, {Phase.GOAL_SENT: 0, Phase.PLANNING: 1_000_000})
assert found == "T9 is 9.00 ms by the trace but 1.00 ms by the goal client's stamps", found
"""


def test_new_metric_is_supported_everywhere():
    done = subprocess.run([sys.executable, "-c", NINTH], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_refined_metrics_exist():
    assert {metric.refines for metric in METRICS.values() if metric.refines} == {"T1", "T2", "T3", "T5"}
