"""Sweeps of fake starts: storage, resumption and failures."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_ldos.base.errors import (
    BringUpFailed,
    ConfigurationError,
    LoadFailed,
    MachineBusy,
    RecordUnreadable,
    TraceUnreadable,
)
from pytest_ldos.campaign.sweep import (
    CellState,
    Definition,
    Sweeper,
    SweepFolder,
    SweepPlan,
    all_sweeps,
    can_be_measured,
    decode_start,
    encode_start,
    name_for,
    open_sweep,
    state_of,
)
from pytest_ldos.host.availability import Availability
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.measure.load import protocol as choose
from pytest_ldos.measure.load.protocol import Load
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.words import WhenUnavailable
from pytest_ldos.show.report.reasons import describe_reason
from tests.builders.breaking import STUCK, Watching, at, plan, search
from tests.builders.sweeps import FLOOD, failed, grid, measured, start_of

ENDS = {
    "stack": BringUpFailed("the stack was not ready after 60 s", remedy="look at its logs", details="long\nlogs"),
    "load": LoadFailed("stress-ng did not begin to work"),
    "cpus": ConfigurationError("CPU 9 does not exist"),
    "trace": TraceUnreadable(Path("trace"), None, "no metadata"),
}


class Stacks:
    """Simulates starts; the n-th one fails."""

    def __init__(self, ends=None, **changes):
        self.ends, self.changes, self.starts = ends or {}, changes, []

    def __call__(self, spec, start):
        self.starts.append((spec.name, start))
        if len(self.starts) in self.ends:
            raise self.ends[len(self.starts)]
        return start_of(spec, len(self.starts), **self.changes)


@pytest.fixture
def run(tmp_path):
    """Runs a sweep of four cells, like a repeated command."""

    def runner(stacks, *, swept=None, fresh=False, watching=None, version=None, available=None, done=None, **plan):
        swept = swept or grid()
        definition = Definition(name="mine", grid=swept, version=version or {"commit": "c1"})
        folder, _ = open_sweep(tmp_path, definition, fresh=fresh)
        sweeper = Sweeper(
            plan=SweepPlan(grid=swept, **plan),
            folder=folder,
            measure=stacks,
            observer=watching or Watching(),
            describe=describe_reason,
            available=available or (lambda spec: Availability(True)),
            done=done or (lambda result: None),
        )
        return sweeper.run()

    return runner


def states(results):
    return [each.state for each in results]


def test_each_cell_is_a_start_and_is_reported(run, tmp_path):
    stacks, watching, done = Stacks(), Watching(), []
    results = run(stacks, watching=watching, done=done.append)
    assert states(results) == [CellState.MEASURED] * 4
    assert sorted(name for name, _ in stacks.starts) == sorted(grid().specs)
    assert watching.begun == [f"{number} of 4: {each.cell.label}" for number, each in enumerate(done, start=1)]
    assert results[0].trials.spec.name == "msg_load@dds_flood.rate_hz=500,cpu_limit.cpus=1"
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_several_starts_are_spread_over_time(run):
    stacks = Stacks()
    results = run(stacks, starts=3)
    assert [start for _, start in stacks.starts] == [0] * 4 + [1] * 4 + [2] * 4
    assert [len(each.trials.trials) for each in results] == [12] * 4
    assert [len(each.trials.loads) for each in results] == [3] * 4


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), SystemExit(1), MachineBusy("somebody measures")])
def test_interrupted_sweep_resumes_without_losses(run, reason):
    first = Stacks({3: reason})
    with pytest.raises(type(reason)):
        run(first)
    second = Stacks()
    assert states(run(second)) == [CellState.MEASURED] * 4
    assert first.starts[:2] + second.starts == [*first.starts[:3], second.starts[-1]]


def test_finished_sweep_returns_its_results(run):
    first, again = Stacks(), Stacks()
    assert run(again) == run(again)
    assert run(first) == run(again)
    assert first.starts == []
    assert len(again.starts) == 4


def test_starts_are_added_to_a_finished_sweep(run):
    run(Stacks())
    more = Stacks()
    assert [len(each.records) for each in run(more, starts=2)] == [2] * 4
    assert [start for _, start in more.starts] == [1] * 4
    assert [len(each.records) for each in run(Stacks())] == [1] * 4, "fewer are shown again"


@pytest.mark.parametrize(
    "changes",
    [
        {"fresh": True},
        {"version": {"commit": "c2"}},
        {"swept": grid({"dds_flood.rate": [500, 1000], "cpu_limit.cpus": [1, 3]})},
        {"swept": grid(trials=5)},
        {"swept": grid(name="baseline")},
    ],
    ids=["fresh", "another commit", "another value", "more trials", "another scenario"],
)
def test_other_definition_has_a_new_folder(run, tmp_path, changes):
    run(Stacks({3: BringUpFailed("no")}))
    other_stacks = Stacks()
    results = run(other_stacks, **changes)
    assert len(other_stacks.starts) == 4
    assert states(results) == [CellState.MEASURED] * 4
    assert len(all_sweeps(tmp_path)) == 2
    if "fresh" not in changes:
        before = Stacks()
        assert states(run(before)).count(CellState.INFRA) == 1
        assert before.starts == [], "what was measured of the old one is still there"


@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        ("stack", CellState.INFRA, "the stack was not ready after 60 s\n  → look at its logs"),
        ("load", CellState.INFRA, "stress-ng did not begin to work"),
        ("cpus", CellState.INFRA, "CPU 9 does not exist"),
        ("trace", CellState.INVALID, "trace: no metadata"),
    ],
)
def test_unmeasurable_cell_is_recorded_and_the_sweep_continues(run, end, state, reason):
    stacks = Stacks({2: ENDS[end]})
    results = run(stacks)
    bad = next(each for each in results if each.cell.name == stacks.starts[1][0])
    assert (bad.state, bad.reasons, bad.trials) == (state, (reason,), None)
    assert states(results).count(CellState.MEASURED) == 3


def test_failed_cell_is_retried_only_on_request(run):
    first = Stacks({2: ENDS["stack"]})
    run(first)
    without, retrying = Stacks(), Stacks()
    run(without)
    results = run(retrying, retry=True)
    assert without.starts == []
    assert retrying.starts == [first.starts[1]]
    assert states(results) == [CellState.MEASURED] * 4


def test_unreached_load_makes_a_cell_invalid_and_keeps_its_numbers(run):
    short = {"kind": "dds_flood", "shortfall": "the flood reached 3000 of 4000 msg/s", "block": 0}
    results = run(Stacks(loads=(short,)))
    assert states(results) == [CellState.INVALID] * 4
    assert "3000 of 4000" in results[0].reasons[0]
    assert len(results[0].trials.trials) == 4


def test_failed_goals_are_results(run):
    results = run(Stacks(failures=3))
    assert states(results) == [CellState.MEASURED] * 4
    assert (results[0].failures, results[0].reasons) == ((True, True, True, False), ())


WHOLE = (FLOOD, {"kind": "cpu_limit", "shortfall": "", "summary": "2 CPUs", "block": 0})


@pytest.mark.parametrize("made", [0, 1, 4])
def test_failed_reset_under_load_is_broken(run, made):
    """Even if earlier goals succeeded."""

    class Stuck(Stacks):
        def __call__(self, spec, start):
            whole = super().__call__(spec, start)
            return dataclasses.replace(whole, trials=whole.trials[:made], loads=WHOLE, incomplete=STUCK)

    stacks = Stuck()
    results = run(stacks)
    assert states(results) == [CellState.BROKEN] * 4
    assert results[0].reasons == (f"the arm could not go on: {STUCK}",)
    assert (len(results[0].trials.trials), results[0].failures) == (made, (*(False,) * (made - 1), True))
    again = Stacks()
    assert states(run(again, retry=True)) == [CellState.BROKEN] * 4
    assert again.starts == [], "it is a result, and not tried until it holds"


def test_stack_that_dies_in_a_trial_is_broken(run):
    class Dying(Stacks):
        def __call__(self, spec, start):
            whole = super().__call__(spec, start)
            dead = dataclasses.replace(whole.trials[2], outcome=OutcomeClass.STACK_DIED, message="move_group ended")
            trials = (*whole.trials[:2], dead)
            return dataclasses.replace(whole, trials=trials, loads=WHOLE, incomplete="move_group ended")

    results = run(Dying())
    assert states(results) == [CellState.BROKEN] * 4
    assert results[0].failures == (False, False, True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"loads": ()}, why.NotFinished(STUCK)),
        ({"loads": (), "trials": ()}, why.NoTrials(STUCK)),
        (
            {"loads": (FLOOD, {**FLOOD, "shortfall": "stress-ng died"})},
            why.LoadNotReached("stress-ng"),
        ),
        (
            {"loads": (FLOOD, {**FLOOD, "shortfall": "it died"}), "trials": ()},
            why.LoadNotReached("it"),
        ),
        ({"session": "in turns", "loads": WHOLE}, why.NotFinished(STUCK)),
    ],
    ids=["before the load", "before the load, at once", "without its load", "without its load, at once", "in turns"],
)
def test_failed_reset_without_the_load_is_not_broken(changes, reason):
    (spec, *_) = grid().specs.values()
    trials = dataclasses.replace(start_of(spec), incomplete=STUCK, **changes)
    state, found_reason = state_of(trials, describe_reason)
    assert state is CellState.INVALID
    assert found_reason.startswith(describe_reason(reason))


@pytest.mark.parametrize("made", [0, 1, 4])
@pytest.mark.parametrize("proof", [FLOOD, {**FLOOD, "shortfall": "too little"}], ids=["reached", "not reached"])
def test_a_sweep_and_a_search_agree_on_what_is_broken(made, proof, tmp_path):
    """Both evaluate the same start."""

    def stuck(spec):
        return dataclasses.replace(
            start_of(spec), trials=start_of(spec).trials[:made], loads=(proof,), incomplete=STUCK
        )

    found = search(SimpleNamespace(measure=stuck), tmp_path, plan())
    level = found.levels[0]
    state, _ = state_of(stuck(at(1)), describe_reason)
    assert (state is CellState.BROKEN) == (level.broken > 0) == (not level.mishaps)
    if not level.mishaps:
        assert level.broken == level.starts
        assert level.trials == level.starts * max(made, 1)


def test_cell_has_the_state_of_its_worst_start_and_trials_of_the_others(run):
    stacks = Stacks({6: ENDS["stack"]})
    results = run(stacks, starts=2)
    bad = next(each for each in results if each.cell.name == stacks.starts[5][0])
    assert bad.state is CellState.INFRA
    assert len(bad.trials.trials) == 4


@pytest.mark.parametrize(("unavailable", "state"), [("error", CellState.INFRA), ("skip", CellState.SKIPPED)])
def test_forbidden_cell_is_not_started(run, unavailable, state):
    swept = grid(unavailable=WhenUnavailable(unavailable))
    stacks = Stacks()
    results = run(stacks, swept=swept, available=lambda spec: Availability(False, "no permission", "be root"))
    assert states(results) == [state] * 4
    assert results[0].reasons == ("no permission → be root",)
    assert stacks.starts == []


def test_availability_checks_stack_and_loads(monkeypatch):
    monkeypatch.setattr("pytest_ldos.campaign.sweep.stack_available", lambda stack: Availability(True))
    refused = Load(None, lambda spec, stack: Availability(False, "no permission for tc", "run as root"))
    monkeypatch.setitem(choose.IMPLEMENTATIONS, "network_impairment", refused)
    (spec,) = grid({"network_impairment.delay": [5]}).specs.values()
    assert can_be_measured(spec) == Availability(
        False, "network_impairment cannot be had here: no permission for tc", "run as root"
    )
    assert can_be_measured(grid().base).ok


def test_too_long_sweep_is_refused_with_its_duration():
    plan = SweepPlan(grid=grid({"dds_flood.rate": range(1, 101)}, trials=100), starts=2)
    with pytest.raises(ConfigurationError, match=r"100 cells × 2 starts would take about 2\d hours; up to 24"):
        plan.refuse_endless(longest_s=24 * 3600)
    plan.refuse_endless(longest_s=math.inf)
    with pytest.raises(ConfigurationError, match="0 starts"):
        SweepPlan(grid=grid(), starts=0)


# --- on disk ---------------------------------------------------------------------------


def test_records_round_trip(tmp_path):
    (name, spec), *_ = grid().specs.items()
    whole = measured(name, start_of(spec), verdict="regressed", message="T1 +30 %", start=2)
    bare = failed(name, CellState.INFRA, "why\nnot")
    for record in (whole, bare):
        assert decode_start(encode_start(record), tmp_path) == record
        SweepFolder(tmp_path).keep(record)
    assert SweepFolder(tmp_path).records() == {(name, 2): whole, (name, 0): bare}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: json.dumps({**json.loads(text), "schema": 2}),
        lambda text: json.dumps({**json.loads(text), "state": "good"}),
        lambda text: json.dumps({**json.loads(text), "began_ns": "now"}),
        lambda text: json.dumps({**json.loads(text), "more": 1}),
        lambda text: json.dumps({**json.loads(text), "trials": {}}),
    ],
)
def test_a_damaged_record_is_refused_by_name(tmp_path, damage):
    (name, spec), *_ = grid().specs.items()
    SweepFolder(tmp_path).keep(measured(name, start_of(spec)))
    (file,) = (tmp_path / "cells").glob("*.json")
    file.write_text(damage(file.read_text()))
    with pytest.raises(RecordUnreadable) as caught:
        SweepFolder(tmp_path).records()
    assert str(file) in str(caught.value)


def test_a_damaged_start_is_set_aside_and_measured_again(run, tmp_path):
    run(Stacks())
    (file, *_) = sorted(tmp_path.glob("sweeps/mine/*/cells/*.json"))
    file.write_bytes(cut := file.read_bytes()[:500])
    again, watching = Stacks(), Watching()
    assert states(run(again, watching=watching)) == [CellState.MEASURED] * 4
    assert [f"{name}.{start + 1}.json" for name, start in again.starts] == [file.name]
    aside = file.with_name(f"{file.name}.damaged")
    assert watching.notes == [f"damaged, set aside and measured again: {aside}"]
    assert aside.read_bytes() == cut


def test_folder_without_definition_is_ignored(tmp_path):
    definition = Definition(name="mine", grid=grid())
    folder, _ = open_sweep(tmp_path, definition, fresh=False)
    assert folder.outline() == grid().outline
    (folder.path / "sweep.json").write_text("{")
    assert open_sweep(tmp_path, definition, fresh=False)[1] is False
    with pytest.raises(RecordUnreadable, match=r"sweep\.json is damaged"):
        folder.outline()


def test_paths_of_a_project_are_the_same_on_each_machine():
    here = Definition(name="mine", grid=grid(goals="reach"), root="/home/a/project")
    swept = grid()
    stacks = [dataclasses.replace(swept.base.stack, goals=f"{root}/goals.yaml") for root in ("/home/a/p", "/home/b/p")]
    keys = [
        Definition(
            name="mine", grid=dataclasses.replace(swept, base=dataclasses.replace(swept.base, stack=stack)), root=root
        ).key
        for stack, root in zip(stacks, ("/home/a/p", "/home/b/p"), strict=True)
    ]
    assert keys[0] == keys[1]
    assert keys[0] != here.key


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a/b", "a b", "x" * 200, "-x"])
def test_invalid_names_are_refused(name):
    with pytest.raises(ConfigurationError, match="a sweep cannot be called"):
        Definition(name=name, grid=grid())
    Definition(name=name_for(name), grid=grid())
