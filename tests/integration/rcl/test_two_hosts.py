"""Two hosts whose clocks differ by known amounts: namespaces with a network, a session daemon and a node each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pytest_ldos.host.availability import installed_rmws
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.threads import shift_clocks
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.transport import Bound, estimate_clock_offsets
from tests.builders.namespaces import why_no_namespaces
from tests.builders.needs import needs_lttng

ALONE = why_no_namespaces("net", "uts")
pytestmark = [needs_lttng, pytest.mark.skipif(bool(ALONE), reason=f"no network namespaces of one's own here: {ALONE}")]

HERE = Path(__file__).with_name("two_hosts")
COUNT = 400
SHIFT_NS = 37_123_456_789
DRIFT_PPB = 20_000
BAR_NS = 1_000_000


@dataclass(frozen=True)
class Recorded:
    """Traces of both hosts; the right one's clock was ahead by `SHIFT_NS` at `base_ns` (epoch), and gains 20 µs a second."""

    folder: Path
    base_ns: int

    def truth_ns(self, model: ExecutionModel) -> int:
        """To be added to the right host's times, in the middle of the messages."""
        times_ns = np.sort(model.takes["time_ns"].to_numpy())
        middle = int(np.median(times_ns[: len(times_ns) // 2]))  # the left host's: the right one's are 37 s later
        return -SHIFT_NS - (middle - self.base_ns) * DRIFT_PPB // 1_000_000_000


@pytest.fixture(scope="module", params=["wheels", "rmw_cyclonedds_cpp"])
def recorded(request, tmp_path_factory):
    """Over Fast DDS of the wheels, and over Cyclone DDS where it is installed and sourced."""
    environment = {"RMW_IMPLEMENTATION": request.param}
    if request.param == "wheels":
        environment = request.getfixturevalue("sourced")
    elif request.param not in installed_rmws():
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp("hosts")
    clock = ["gcc", "-shared", "-fPIC", "-o", folder / "clock.so", HERE / "clock.c", "-llttng-ust"]
    subprocess.run(clock, check=True)
    base_ns = time.monotonic_ns()
    to_epoch_ns = time.time_ns() - time.monotonic_ns()
    common = {**os.environ, **environment, "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "BASE_NS": str(base_ns)}
    common["PYTHONPATH"] = f"{common.get('PYTHONPATH', '')}:{Path.cwd()}"
    clocks = {"left": (0, 0), "right": (SHIFT_NS, DRIFT_PPB)}
    with ExitStack() as resources:
        hosts = []
        for name, (shift, drift) in clocks.items():
            (folder / name).mkdir()
            command = ["unshare", "--net", "--uts", "--", sys.executable, HERE / "host.py", folder, name, str(COUNT)]
            own = {**common, "SHIFT_NS": str(shift), "DRIFT_PPB": str(drift)}
            host = subprocess.Popen(command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            resources.enter_context(host)
            resources.callback(host.kill)
            hosts.append(host)
        left, right = (host.stdout.readline().strip() for host in hosts)
        ends = ["to_left", "netns", left, "type", "veth", "peer", "name", "to_right", "netns", right]
        subprocess.run(["ip", "link", "add", *ends], check=True)
        for host in hosts:
            host.stdin.write("\n")
            host.stdin.flush()
        assert [host.wait(90) for host in hosts] == [0, 0]
    return Recorded(folder, base_ns + to_epoch_ns)


@pytest.fixture(scope="module")
def model(recorded):
    return build_execution(read_trace(recorded.folder))


def test_offset_of_clocks_is_found_from_messages(recorded, model):
    offset = estimate_clock_offsets(build_flow(model))["right"]
    truth_ns = recorded.truth_ns(model)
    print(f"error {offset.offset_ns - truth_ns:+d} ns, uncertainty {offset.uncertainty_ns} ns")
    assert offset.bound is None
    assert offset.messages == 2 * COUNT
    assert abs(offset.offset_ns - truth_ns) < BAR_NS
    corrected = build_flow(shift_clocks(model, {"right": offset.offset_ns})).transport
    between = corrected.filter(pl.col("way") == "between_hosts")["latency_ns"]
    assert len(between) == 2 * COUNT
    assert -BAR_NS < between.min() < between.median() < 20 * BAR_NS


def test_messages_in_one_direction_give_a_bound(recorded, model):
    flow = build_flow(model)
    publications = model.publications.join(model.publishers.select("topic", publisher="id"), on="publisher")
    from_left = publications.filter(pl.col("topic") == "/from_left")["id"]
    one_way = replace(flow, transport=flow.transport.filter(pl.col("publication").is_in(from_left.implode())))
    offset = estimate_clock_offsets(one_way)["right"]
    assert offset.bound is Bound.LEAST
    assert offset.uncertainty_ns is None
    assert 0 <= recorded.truth_ns(model) - offset.offset_ns + BAR_NS < 3 * BAR_NS
