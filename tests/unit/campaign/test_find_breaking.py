"""A search that measures: what is kept, what counts, and what it says in the end."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ldos.base.errors import (
    BringUpFailed,
    LoadFailed,
    RecordingFailed,
    RecordUnreadable,
    TraceUnreadable,
    Unavailable,
)
from pytest_ldos.base.series import Missing
from pytest_ldos.campaign.bisection import Finding, LevelState
from pytest_ldos.campaign.breaking_result import BreakingEvidence, EstimateBy
from pytest_ldos.campaign.find_breaking import reached_level
from pytest_ldos.measure.metrics.model import Measurement
from pytest_ldos.scenario.loads.spec import CpuLoadSpec
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.breaking.page import answer, render_breaking_as, to_plain
from tests.builders.breaking import STUCK, VERSION, MadeUpStack, Watching, at, level_of, plan, search
from tests.builders.representatives import representatives
from tests.builders.trials import trial_set


def test_a_threshold_of_success_is_found(tmp_path):
    result = search(MadeUpStack(breaks_at=37), tmp_path)
    assert result.finding is Finding.BREAKS
    assert result.holds < 37 <= result.breaks
    assert result.holds < result.estimate < result.breaks
    assert result.estimate_by is EstimateBy.MIDDLE
    assert (result.trials, result.starts) == (96, 24)
    assert [each.level for each in result.levels] == sorted(each.level for each in result.levels)
    assert result.limit == ""
    assert result.notes == ()
    assert not list(tmp_path.iterdir())


def test_a_threshold_of_a_metric_is_found_beside_its_calm_median(tmp_path):
    result = search(MadeUpStack(slow_from=20), tmp_path, plan("T1>3x"))
    assert result.finding is Finding.BREAKS
    assert result.holds < 20 <= result.breaks
    calm = result.levels[0]
    assert result.limit.endswith(f"× the median of {calm.median:.1f} ms")
    assert result.levels[-1].median > 9 * calm.median


def test_of_a_gradual_change_the_curve_gives_the_estimate(tmp_path):
    """Every second trial fails from 20 to 60, all beyond."""
    gradual = MadeUpStack(fails=lambda level, index: level > 60 or (level > 20 and index % 2 == 0))
    result = search(gradual, tmp_path, plan(max_trials=400))
    assert result.finding is Finding.BREAKS
    assert result.holds <= 20
    assert result.breaks >= 60
    assert result.estimate_by is EstimateBy.FIT
    assert result.holds <= result.estimate <= result.breaks
    assert "stayed undecided after 24 trials each" in result.stopped


def test_what_calm_is_does_not_depend_on_later_levels(tmp_path):
    """All trials of the calm end count, and they are all made before others."""
    stack = MadeUpStack(slow_from=20)
    search(stack, tmp_path, plan("T1>3x"))
    assert stack.levels[:4] == [1, 1, 1, 1000]
    assert 1 not in stack.levels[3:]


@pytest.mark.parametrize("interrupted_at", representatives([1, 2, 5, 14], 2))
@pytest.mark.parametrize("until", ["success<0.5", "T1>3x"])
def test_it_goes_on_where_it_was_interrupted(tmp_path, interrupted_at, until):
    whole = MadeUpStack(breaks_at=37, slow_from=20)
    undisturbed = search(whole, tmp_path / "whole", plan(until))
    first = MadeUpStack(breaks_at=37, slow_from=20, ends={interrupted_at: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        search(first, tmp_path / "again", plan(until))
    rest, watching = MadeUpStack(breaks_at=37, slow_from=20), Watching()
    rest.levels = first.levels[:-1]
    again = search(rest, tmp_path / "again", plan(until), watching)
    assert again == dataclasses.replace(undisturbed, plan=again.plan)
    assert rest.levels == whole.levels
    assert len(watching.levels) == len(whole.levels) - interrupted_at + 1
    kept = interrupted_at - 1
    assert (f"continues what was interrupted; starts that are there: {kept}" in watching.notes) == (kept > 0)


def test_what_another_criterion_needs_is_not_measured_again(tmp_path):
    """The same starts say whether they failed and how long they planned."""
    first = MadeUpStack(slow_from=20, ends={6: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        search(first, tmp_path, plan("success<0.5"))
    second = MadeUpStack(slow_from=20)
    search(second, tmp_path, plan("T1>3x"))
    assert second.levels[0] == 1000


@pytest.mark.parametrize("name", ["commit", "changes", "package numpy", "metrics"])
def test_starts_of_another_version_are_left_out_and_go_with_the_search(tmp_path, name):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpStack(ends={3: KeyboardInterrupt()}), tmp_path)
    watching, stack = Watching(), MadeUpStack(breaks_at=37)
    search(stack, tmp_path, watching=watching, version={**VERSION, name: "another"})
    assert stack.levels[:3] == [1, 1, 1]
    assert "starts of another version or setting, left out: 2" in watching.notes
    assert not list(tmp_path.iterdir())


def test_a_finished_search_leaves_what_another_may_go_on_with(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpStack(ends={3: KeyboardInterrupt()}), tmp_path)
    fewer = lambda level: dataclasses.replace(at(level), trials=2)  # noqa: E731
    search(MadeUpStack(breaks_at=37), tmp_path, plan(trials_per_start=2), at=fewer)
    rest = MadeUpStack(breaks_at=37)
    search(rest, tmp_path)
    assert rest.levels[:2] == [1, 1000]


def test_a_damaged_start_is_set_aside_and_measured_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpStack(breaks_at=37, ends={4: KeyboardInterrupt()}), tmp_path)
    second = tmp_path / "start-0002.json"
    cut = second.read_bytes()[:1000]
    for _ in range(2):
        second.write_bytes(cut)
        watching = Watching()
        with pytest.raises(KeyboardInterrupt):
            search(MadeUpStack(ends={1: KeyboardInterrupt()}), tmp_path, watching=watching)
    assert f"damaged, set aside and measured again: {tmp_path}/start-0002.json2.damaged" in watching.notes
    rest = MadeUpStack(breaks_at=37)
    result = search(rest, tmp_path)
    assert (result.finding, result.starts) == (Finding.BREAKS, 24)
    assert rest.levels[0] == 1
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [cut, cut], "nothing is deleted"


def test_a_start_that_cannot_be_read_is_not_damaged(tmp_path):
    BreakingEvidence(tmp_path).keep(1, at(1), trial_set([]), VERSION)
    (tmp_path / "start-0002.json").mkdir()
    with pytest.raises(RecordUnreadable, match=r"start-0002\.json cannot be read: Is a directory"):
        search(MadeUpStack(), tmp_path)
    assert (tmp_path / "start-0002.json").is_dir()


def test_the_time_limit_ends_it_with_what_there_is(tmp_path):
    times = iter(range(0, 10_000, 10))
    limited = plan(time_limit_s=200)
    stack = MadeUpStack(breaks_at=37)
    result = search(stack, tmp_path, limited, now=lambda: next(times))
    assert "the same command goes on from here" in result.stopped
    assert len(list(tmp_path.iterdir())) == len(stack.levels)
    assert 1 < len(stack.levels) < 21
    rest = search(MadeUpStack(breaks_at=37), tmp_path)
    assert rest.finding is Finding.BREAKS
    assert rest.stopped == ""


def test_a_load_that_is_not_reached_counts_as_neither(tmp_path):
    watching = Watching()
    result = search(MadeUpStack(reaches=50), tmp_path, watching=watching)
    assert result.finding is Finding.OUT_OF_REACH
    assert result.holds < 50
    assert result.ceiling.standing is LevelState.UNREACHED
    assert result.ceiling.trials == 0
    assert result.breaks is None
    assert "at 1000 the load was not reached: the load reached 50 of 1000" in watching.notes


def test_a_stack_that_does_not_start_is_tried_once_more(tmp_path):
    watching = Watching()
    stack = MadeUpStack(breaks_at=37, ends={4: BringUpFailed("it was not ready")})
    result = search(stack, tmp_path, watching=watching)
    assert result.finding is Finding.BREAKS
    assert stack.levels[3:5] == [1000, 1000]
    assert "at 1000 the stack did not start: it was not ready" in watching.notes
    assert result.levels[-1].mishaps == ("the stack did not start: it was not ready",)


def test_an_arm_that_does_not_come_home_is_broken(tmp_path):
    """No trial could be made, but a motion failed beside the whole load."""
    watching, stack = Watching(), MadeUpStack(stuck_from=37)
    result = search(stack, tmp_path, watching=watching)
    assert result.finding is Finding.BREAKS
    assert result.holds < 37 <= result.breaks
    harsh = result.levels[-1]
    assert (harsh.trials, harsh.broken, harsh.starts) == (harsh.starts, harsh.starts, stack.levels.count(1000))
    assert result.cause.failures[0].outcome == "between trials"
    assert result.cause.failures[0].message.startswith("the arm could not return home")
    assert f"at 1000 a start ended early: {STUCK}" in watching.notes


def test_a_start_has_no_more_trials_than_the_test_knows_of(tmp_path):
    """The arm does not come home after the last trial of each start."""

    class LateStuck(MadeUpStack):
        def measure(self, spec):
            return dataclasses.replace(super().measure(spec), incomplete=STUCK)

    result = search(LateStuck(), tmp_path)
    assert result.finding is Finding.UNDECIDED
    assert result.trials == 4 * result.starts
    assert [each.broken for each in result.levels] == [each.starts for each in result.levels], "a trial ends at home"


def test_a_way_home_at_the_second_attempt_breaks_its_trial(tmp_path):
    class Lost(MadeUpStack):
        def measure(self, spec):
            made = super().measure(spec)
            if level_of(spec) < 37:
                return made
            lost = (dataclasses.replace(trial, reset_failure=STUCK) for trial in made.trials)
            return dataclasses.replace(made, trials=tuple(lost))

    result = search(Lost(), tmp_path)
    assert result.finding is Finding.BREAKS
    assert result.holds < 37 <= result.breaks


def test_an_arm_that_is_stuck_before_its_load_begins_says_nothing_of_the_load(tmp_path):
    class StuckWithoutLoad(MadeUpStack):
        def measure(self, spec):
            trials = super().measure(spec)
            loaded = dataclasses.replace(spec, loads=(CpuLoadSpec(),))
            return dataclasses.replace(trials, spec=loaded, loads=() if trials.incomplete else trials.loads)

    result = search(StuckWithoutLoad(stuck_from=37), tmp_path)
    assert result.breaks is None
    assert result.levels[-1].mishaps == (f"nothing was measured: {STUCK}",) * 2


def test_such_a_start_is_kept_too(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpStack(stuck_from=37, ends={5: KeyboardInterrupt()}), tmp_path)
    rest = MadeUpStack(stuck_from=37)
    search(rest, tmp_path)
    assert rest.levels[0] == 1000
    assert rest.levels.count(1) == 0


def test_a_calm_end_that_cannot_be_measured_says_why(tmp_path):
    ends: dict[int, BaseException] = {1: LoadFailed("no message arrived")}
    result = search(MadeUpStack(ends=ends), tmp_path)
    assert result.finding is Finding.UNMEASURED
    assert result.levels[0].mishaps == ("the load was not reached: no message arrived",)
    assert result.cause is None


@pytest.mark.parametrize(
    "end",
    [RecordingFailed("`lttng stop` did not return"), TraceUnreadable(Path("trace"), 96, "the packet is cut off")],
    ids=["recording", "trace"],
)
def test_a_tracer_that_a_load_starves_counts_as_neither(tmp_path, end):
    result = search(MadeUpStack(breaks_at=37, ends={4: end}), tmp_path)
    assert result.finding is Finding.BREAKS
    assert result.levels[-1].mishaps == (f"nothing was measured: {end.message}",)


def test_what_is_missing_ends_it_and_keeps_what_there_is(tmp_path):
    with pytest.raises(Unavailable):
        search(MadeUpStack(ends={3: Unavailable("stress-ng is gone")}), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_metric_that_nobody_measured_is_no_answer(tmp_path):
    class Unmeasured(MadeUpStack):
        def measure(self, spec):
            trials = super().measure(spec)
            bare = (dataclasses.replace(each, measurements={}) for each in trials.trials)
            return dataclasses.replace(trials, trials=tuple(bare))

    result = search(Unmeasured(), tmp_path, plan("T1>3x"))
    assert result.finding is Finding.UNMEASURED
    assert "no trial has a value" in result.levels[0].mishaps[0]


class Unsure(MadeUpStack):
    """Some trials have no T1.

    Attributes:
        lacking: how many of each start, by level.
    """

    lacking = staticmethod(lambda level: 0)

    def measure(self, spec):
        trials = super().measure(spec)
        few = self.lacking(self.levels[-1])
        nothing = {"T1": Measurement(Missing("PLANNING was never answered"))}
        made = [
            dataclasses.replace(each, measurements={**each.measurements, **(nothing if number < few else {})})
            for number, each in enumerate(trials.trials)
        ]
        return dataclasses.replace(trials, trials=tuple(made))


def test_trials_without_the_value_are_counted_and_told(tmp_path):
    stack, watching = Unsure(slow_from=20), Watching()
    stack.lacking = lambda level: 1 if level == 1 else 0
    result = search(stack, tmp_path, plan("T1>3x"), watching)
    calm = result.levels[0]
    assert result.finding is Finding.BREAKS
    assert (calm.unvalued, calm.trials, calm.standing) == (calm.starts, 3 * calm.starts, LevelState.HOLDS)
    left_out = f"trials that succeeded but have no T1, left out: {calm.unvalued} ({calm.unvalued} at 1)"
    assert left_out in result.notes
    assert left_out in " ".join(render_breaking_as(result, Format.TERMINAL, width=120).split())
    assert to_plain(result)["levels"][0]["unvalued"] == calm.unvalued
    assert "at 1 1 of 4 trials that succeeded have no T1: PLANNING was never answered" in watching.notes


def test_a_calm_end_whose_trials_mostly_lack_the_value_ends_the_search(tmp_path):
    stack = Unsure()
    stack.lacking = lambda level: 3
    result = search(stack, tmp_path, plan("T1>3x"))
    assert (result.finding, result.levels[0].standing) == (Finding.UNMEASURED, LevelState.UNVALUED)
    assert stack.levels == [1, 1]
    told = "it is not judged: 6 of 8 trials that succeeded have no T1 (PLANNING was never answered)"
    assert told in " ".join(render_breaking_as(result, Format.TERMINAL, width=120).split())


def test_a_level_whose_trials_mostly_lack_the_value_is_not_judged(tmp_path):
    stack = Unsure(slow_from=20)
    stack.lacking = lambda level: 3 if level >= 20 else 0
    result = search(stack, tmp_path, plan("T1>3x"))
    assert result.finding is Finding.OUT_OF_REACH
    assert (result.holds < 20, result.breaks) == (True, None)
    assert {each.standing for each in result.levels if each.level >= 20} == {LevelState.UNVALUED}
    assert "could not be measured: it is not judged: 6 of 8 trials that succeeded have no T1" in answer(result)


def test_a_level_that_breaks_whatever_those_trials_would_say_is_broken(tmp_path):
    """One trial of every third start at the harsh levels succeeds, and has no value."""
    stack = Unsure()
    stack.fails = lambda level, index: level >= 20 and (index > 0 or len(stack.levels) % 3 > 0)
    stack.lacking = lambda level: 1 if level >= 20 else 0
    result = search(stack, tmp_path, plan("T1>3x", max_trials=400))
    harsh = result.levels[-1]
    assert (result.finding, harsh.standing) == (Finding.BREAKS, LevelState.BREAKS)
    assert harsh.broken == harsh.trials > 12, "more than it takes where each trial says something"
    assert harsh.unvalued > 0


def test_harsher_that_holds_is_said(tmp_path):
    result = search(MadeUpStack(fails=lambda level, index: 30 < level < 100), tmp_path)
    assert any("1000 holds though" in note for note in result.notes)


def test_starts_that_differ_much_are_said(tmp_path):
    """Around the threshold, all trials of a start fail or none does."""
    stack = MadeUpStack()
    stack.fails = lambda level, index: level > 60 or (level > 20 and len(stack.levels) % 2 == 0)
    result = search(stack, tmp_path, plan(max_trials=400))
    assert any("starts of the stack differ more than supposed" in note for note in result.notes)


def test_what_a_load_reached_is_read_from_its_proof():
    proof = {"kind": "dds_flood", "rate_hz": 30_000.0, "requested_hz": 80_000.0, "allowed_hz": 80_000.0}
    trials = trial_set([], loads=(proof, {"kind": "cpu_load", "used_percent": 70.0}))
    assert reached_level(trials, "dds_flood.rate_hz", 20_000) == 7500
    held_back = trial_set([], loads=({**proof, "allowed_hz": 40_000.0},))
    assert reached_level(held_back, "dds_flood.rate_hz", 20_000) == 15_000, "a guard's doing is no failure of it"
    withheld = trial_set([], loads=({**proof, "rate_hz": 0.0, "allowed_hz": 0.0},))
    assert reached_level(withheld, "dds_flood.rate_hz", 20_000) == 20_000
    assert reached_level(trials, "dds_flood.size_bytes", 1024) is None
    assert reached_level(trials, "cpu_load.percent", 80) is None
