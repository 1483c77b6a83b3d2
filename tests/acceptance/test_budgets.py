"""Promises about time and trust, on the long runs."""

from __future__ import annotations

import time
from contextlib import nullcontext

import psutil
import pytest

from pytest_ldos import api
from pytest_ldos.campaign.blocks import Bench, interleave
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.version import head_version
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.measure.trial.artifacts import new_run_folder, new_scenario_folder
from pytest_ldos.measure.trial.rig import open_rig
from pytest_ldos.robot.stack.choose import choose_backend
from tests.fakes.bench import Watching

OVERHEAD_S = 10.0
READY_S = 5.0
STARTS = 5


class Timed:
    """A stack whose motions are timed."""

    def __init__(self, stack) -> None:
        self._stack = stack
        self.moving_s = 0.0

    def __getattr__(self, name: str):
        return getattr(self._stack, name)

    def move(self, *arguments, **options):
        began = time.monotonic()
        try:
            return self._stack.move(*arguments, **options)
        finally:
            self.moving_s += time.monotonic() - began


def test_trace_and_client_agree_on_every_trial(base, again):
    for measured in (base, again):
        for trial in measured.trials.trials:
            assert trial.succeeded
            for name in ("T1", "T2", "T2x", "T3", "T4", "T5"):
                assert trial.measurements[name].number is not None, (trial.index, trial.measurements[name])


def test_ten_trials_cost_little_more_than_their_motions(tmp_path, monkeypatch):
    """Start, warm-up, analysis and end take at most ten seconds in all."""
    timed: list[Timed] = []

    def choose(spec, **settings):
        backend = choose_backend(spec, **settings)
        start = backend.start

        def start_timed(**settings):
            timed.append(Timed(start(**settings)))
            return timed[-1]

        backend.start = start_timed
        return backend

    monkeypatch.setattr("pytest_ldos.measure.trial.rig.choose_backend", choose)
    began = time.monotonic()
    result = api.run_trials(api.ScenarioSpec(name="baseline", trials=10), output=tmp_path)
    wall_s = time.monotonic() - began
    print(f"\nwall {wall_s:.1f} s, motions {timed[0].moving_s:.1f} s")
    assert len(result.trials) == 10
    assert wall_s <= timed[0].moving_s + OVERHEAD_S


class Stopwatch(Watching):
    """Times trials, from the first warm-up to the last return home and the reading of the trace."""

    def __init__(self) -> None:
        super().__init__()
        self.trials_s = 0.0

    def begin(self, spec, *, trials, warmup):
        self.trials_s -= time.monotonic()

    def end(self):
        self.trials_s += time.monotonic()


def test_interleaving_costs_both_versions_trials_and_a_start_per_block(tmp_path):
    """A start contains one warm-up trial. Two blocks of a version have as many as the run alone, which counts
    them with its trials; so here each block costs one more start and end, and nothing else."""
    alone, both = Stopwatch(), Stopwatch()
    spec = api.ScenarioSpec(name="baseline", trials=6)
    began = time.monotonic()
    assert api.run_trials(spec, output=tmp_path, observer=alone).incomplete == ""
    start_s = time.monotonic() - began - alone.trials_s
    head = head_version(tmp_path)
    bench = Bench(
        spec=spec, folder=new_scenario_folder(new_run_folder(tmp_path), "turns"), goals="reach", observer=both
    )
    with measuring_lock():
        made = interleave(bench, dict.fromkeys(Role, head), size=3, decide=lambda *_: pytest.fail("not expected"))
    allowed_s = 2 * alone.trials_s + made.starts * start_s
    print(
        f"\nin turns {made.seconds:.1f} s of {allowed_s:.1f} s; trials {both.trials_s:.1f} s, one start {start_s:.1f} s"
    )
    assert made.head.incomplete == made.base.incomplete == ""
    assert made.starts == 4
    assert made.seconds <= 1.1 * allowed_s, "a tenth for what differs from run to run"


def test_the_stack_is_ready_soon_and_leaves_nothing(tmp_path):
    run = new_run_folder(tmp_path)
    before = {process.pid for process in psutil.process_iter()}
    for _ in range(STARTS):
        began = time.monotonic()
        with open_rig(api.StackSpec(), new_scenario_folder(run, "start")) as rig:
            ready_s = time.monotonic() - began
            pids = rig.stack.pids()
        print(f"\nready after {ready_s:.2f} s")
        assert ready_s < READY_S
        assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids)
    names = {process.name() for process in psutil.process_iter() if process.pid not in before}
    assert not names & {
        "simulator",
        "move_group",
        "robot_state_pub",
        "goal_client",
        "lttng-sessiond",
        "lttng-consumerd",
    }


@pytest.mark.parametrize("trials", [10])
def test_a_flood_holds_its_rate_over_ten_trials(tmp_path, trials):
    from pytest_ldos.measure.load.dds_flood import run_dds_flood
    from pytest_ldos.measure.trial.conduct import conduct
    from pytest_ldos.robot.stack.goals import PANDA_GOALS
    from pytest_ldos.scenario.loads import DdsFloodSpec

    folder = new_scenario_folder(new_run_folder(tmp_path), "msg_load")
    spec = api.ScenarioSpec(name="msg_load", trials=trials)
    with open_rig(spec.stack, folder) as rig, run_dds_flood(DdsFloodSpec(), rig.site) as flood:
        result = conduct(rig, spec, PANDA_GOALS.sets["reach"], disturb=lambda: nullcontext((flood,)))
    print(f"\n{flood.proof.describe()} over {flood.proof.seconds:.0f} s; {result.discarded_events} events lost")
    assert flood.proof.rate_hz >= 0.99 * 4000
    assert result.discarded_events == 0
