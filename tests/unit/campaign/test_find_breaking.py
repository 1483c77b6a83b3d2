"""A search for a breaking point: stored starts, counted trials and results."""

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
from pytest_ldos.campaign.breaking_result import EstimateBy
from pytest_ldos.campaign.find_breaking import BreakingStore, reached_level
from pytest_ldos.campaign.starts import StoredTrials, plain_spec
from pytest_ldos.measure.metrics.model import Measurement
from pytest_ldos.scenario.loads import CpuLoadSpec
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.breaking import answer, render_breaking_as, to_plain
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


def test_threshold_of_a_metric_is_found(tmp_path):
    result = search(MadeUpStack(slow_from=20), tmp_path, plan("T1>3x"))
    assert result.finding is Finding.BREAKS
    assert result.holds < 20 <= result.breaks
    calm = result.levels[0]
    assert result.limit.endswith(f"× the median of {calm.median:.1f} ms")
    assert result.levels[-1].median > 9 * calm.median


def test_curve_gives_the_estimate_of_a_gradual_change(tmp_path):
    """Every second trial fails between 20 and 60, all above."""
    gradual = MadeUpStack(fails=lambda level, index: level > 60 or (level > 20 and index % 2 == 0))
    result = search(gradual, tmp_path, plan(max_trials=400))
    assert result.finding is Finding.BREAKS
    assert result.holds <= 20
    assert result.breaks >= 60
    assert result.estimate_by is EstimateBy.FIT
    assert result.holds <= result.estimate <= result.breaks
    assert "stayed inconclusive after 24 trials each" in result.stopped


def test_calm_median_is_independent_of_later_levels(tmp_path):
    """All trials of the calm end count, and they are run first."""
    stack = MadeUpStack(slow_from=20)
    search(stack, tmp_path, plan("T1>3x"))
    assert stack.levels[:4] == [1, 1, 1, 1000]
    assert 1 not in stack.levels[3:]


@pytest.mark.parametrize("interrupted_at", representatives([1, 2, 5, 14], 2))
@pytest.mark.parametrize("until", ["success<0.5", "T1>3x"])
def test_interrupted_search_resumes(tmp_path, interrupted_at, until):
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
    assert len(watching.begun) == len(whole.levels) - interrupted_at + 1
    kept = interrupted_at - 1
    assert (f"continues what was interrupted; starts that are there: {kept}" in watching.notes) == (kept > 0)


def test_other_criterion_reuses_starts(tmp_path):
    """The same starts have outcomes and planning times."""
    first = MadeUpStack(slow_from=20, ends={6: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        search(first, tmp_path, plan("success<0.5"))
    second = MadeUpStack(slow_from=20)
    search(second, tmp_path, plan("T1>3x"))
    assert second.levels[0] == 1000


@pytest.mark.parametrize("name", ["commit", "changes", "package numpy", "metrics"])
def test_starts_of_another_version_are_ignored_and_deleted_at_the_end(tmp_path, name):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpStack(ends={3: KeyboardInterrupt()}), tmp_path)
    watching, stack = Watching(), MadeUpStack(breaks_at=37)
    search(stack, tmp_path, watching=watching, version={**VERSION, name: "another"})
    assert stack.levels[:3] == [1, 1, 1]
    assert "starts of another version or setting, left out: 2" in watching.notes
    assert not list(tmp_path.iterdir())


def test_finished_search_keeps_starts_of_other_searches(tmp_path):
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
    second = tmp_path / "start-002.json"
    cut = second.read_bytes()[:1000]
    for _ in range(2):
        second.write_bytes(cut)
        watching = Watching()
        with pytest.raises(KeyboardInterrupt):
            search(MadeUpStack(ends={1: KeyboardInterrupt()}), tmp_path, watching=watching)
    assert f"damaged, set aside and measured again: {tmp_path}/start-002.json2.damaged" in watching.notes
    rest = MadeUpStack(breaks_at=37)
    result = search(rest, tmp_path)
    assert (result.finding, result.starts) == (Finding.BREAKS, 24)
    assert rest.levels[0] == 1
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [cut, cut], "nothing is deleted"


def test_unreadable_start_is_not_set_aside(tmp_path):
    BreakingStore(tmp_path).keep(StoredTrials(plain_spec(at(1)), VERSION, {1.0: trial_set([])}))
    (tmp_path / "start-002.json").mkdir()
    with pytest.raises(RecordUnreadable, match=r"start-002\.json cannot be read: Is a directory"):
        search(MadeUpStack(), tmp_path)
    assert (tmp_path / "start-002.json").is_dir()


def test_time_limit_ends_with_a_partial_result(tmp_path):
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


def test_unreached_load_is_excluded(tmp_path):
    watching = Watching()
    result = search(MadeUpStack(reaches=50), tmp_path, watching=watching)
    assert result.finding is Finding.OUT_OF_REACH
    assert result.holds < 50
    assert result.ceiling.standing is LevelState.UNREACHED
    assert result.ceiling.trials == 0
    assert result.breaks is None
    assert "at 1000 the load was not reached: the load reached 50 of 1000" in watching.notes


def test_failed_start_is_repeated(tmp_path):
    watching = Watching()
    stack = MadeUpStack(breaks_at=37, ends={4: BringUpFailed("it was not ready")})
    result = search(stack, tmp_path, watching=watching)
    assert result.finding is Finding.BREAKS
    assert stack.levels[3:5] == [1000, 1000]
    assert "at 1000 the stack did not start: it was not ready" in watching.notes
    assert result.levels[-1].mishaps == ("the stack did not start: it was not ready",)


def test_failed_reset_is_broken(tmp_path):
    """There is no trial, but a motion failed under the full load."""
    watching, stack = Watching(), MadeUpStack(stuck_from=37)
    result = search(stack, tmp_path, watching=watching)
    assert result.finding is Finding.BREAKS
    assert result.holds < 37 <= result.breaks
    harsh = result.levels[-1]
    assert (harsh.trials, harsh.broken, harsh.starts) == (harsh.starts, harsh.starts, stack.levels.count(1000))
    assert result.cause.failures[0].outcome == "between trials"
    assert result.cause.failures[0].message.startswith("the arm could not return home")
    assert f"at 1000 a start ended early: {STUCK}" in watching.notes


def test_failed_resets_do_not_exceed_the_trials_per_start(tmp_path):
    """The arm does not return home after the last trial of each start."""

    class LateStuck(MadeUpStack):
        def measure(self, spec):
            return dataclasses.replace(super().measure(spec), incomplete=STUCK)

    result = search(LateStuck(), tmp_path)
    assert result.finding is Finding.UNDECIDED
    assert result.trials == 4 * result.starts
    assert [each.broken for each in result.levels] == [each.starts for each in result.levels], "a trial ends at home"


def test_reset_at_the_second_attempt_breaks_its_trial(tmp_path):
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


def test_failure_before_the_load_is_excluded(tmp_path):
    class StuckWithoutLoad(MadeUpStack):
        def measure(self, spec):
            trials = super().measure(spec)
            loaded = dataclasses.replace(spec, loads=(CpuLoadSpec(),))
            return dataclasses.replace(trials, spec=loaded, loads=() if trials.incomplete else trials.loads)

    result = search(StuckWithoutLoad(stuck_from=37), tmp_path)
    assert result.breaks is None
    assert result.levels[-1].mishaps == (f"nothing was measured: {STUCK}",) * 2


def test_excluded_start_is_stored(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpStack(stuck_from=37, ends={5: KeyboardInterrupt()}), tmp_path)
    rest = MadeUpStack(stuck_from=37)
    search(rest, tmp_path)
    assert rest.levels[0] == 1000
    assert rest.levels.count(1) == 0


def test_unmeasurable_calm_end_has_a_reason(tmp_path):
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
def test_starved_tracer_is_excluded(tmp_path, end):
    result = search(MadeUpStack(breaks_at=37, ends={4: end}), tmp_path)
    assert result.finding is Finding.BREAKS
    assert result.levels[-1].mishaps == (f"nothing was measured: {end.message}",)


def test_missing_requirement_ends_the_search_and_keeps_starts(tmp_path):
    with pytest.raises(Unavailable):
        search(MadeUpStack(ends={3: Unavailable("stress-ng is gone")}), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_unmeasured_metric_gives_no_result(tmp_path):
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
        lacking: number of such trials per start, by level.
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


def test_trials_without_a_value_are_counted_and_noted(tmp_path):
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


def test_calm_end_with_mostly_missing_values_ends_the_search(tmp_path):
    stack = Unsure()
    stack.lacking = lambda level: 3
    result = search(stack, tmp_path, plan("T1>3x"))
    assert (result.finding, result.levels[0].standing) == (Finding.UNMEASURED, LevelState.UNVALUED)
    assert stack.levels == [1, 1]
    sentence = "it is not judged: 6 of 8 trials that succeeded have no T1 (PLANNING was never answered)"
    assert sentence in " ".join(render_breaking_as(result, Format.TERMINAL, width=120).split())


def test_level_with_mostly_missing_values_is_not_judged(tmp_path):
    stack = Unsure(slow_from=20)
    stack.lacking = lambda level: 3 if level >= 20 else 0
    result = search(stack, tmp_path, plan("T1>3x"))
    assert result.finding is Finding.OUT_OF_REACH
    assert (result.holds < 20, result.breaks) == (True, None)
    assert {each.standing for each in result.levels if each.level >= 20} == {LevelState.UNVALUED}
    assert "could not be measured: it is not judged: 6 of 8 trials that succeeded have no T1" in answer(result)


def test_level_broken_despite_missing_values_is_broken(tmp_path):
    """One trial of every third start at the harsh levels succeeds, and has no value."""
    stack = Unsure()
    stack.fails = lambda level, index: level >= 20 and (index > 0 or len(stack.levels) % 3 > 0)
    stack.lacking = lambda level: 1 if level >= 20 else 0
    result = search(stack, tmp_path, plan("T1>3x", max_trials=400))
    harsh = result.levels[-1]
    assert (result.finding, harsh.standing) == (Finding.BREAKS, LevelState.BREAKS)
    assert harsh.broken == harsh.trials > 12, "more than it takes where each trial says something"
    assert harsh.unvalued > 0


def test_harsher_level_that_holds_is_noted(tmp_path):
    result = search(MadeUpStack(fails=lambda level, index: 30 < level < 100), tmp_path)
    assert any("1000 holds though" in note for note in result.notes)


def test_large_spread_between_starts_is_noted(tmp_path):
    """Near the threshold, either all trials of a start fail or none."""
    stack = MadeUpStack()
    stack.fails = lambda level, index: level > 60 or (level > 20 and len(stack.levels) % 2 == 0)
    result = search(stack, tmp_path, plan(max_trials=400))
    assert any("starts of the stack differ more than supposed" in note for note in result.notes)


def test_reached_level_is_read_from_the_proof():
    proof = {"kind": "dds_flood", "rate_hz": 30_000.0, "requested_hz": 80_000.0}
    trials = trial_set([], loads=(proof, {"kind": "cpu_load", "used_percent": 70.0}))
    assert reached_level(trials, "dds_flood.rate_hz", 20_000) == 7500
    assert reached_level(trials, "dds_flood.size_bytes", 1024) is None
    assert reached_level(trials, "cpu_load.percent", 80) is None
