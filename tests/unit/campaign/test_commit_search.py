"""A search over commits: result, skipped commits, stored rounds and failures."""

from __future__ import annotations

import dataclasses
import json

import pytest

from pytest_ldos.base.errors import BringUpFailed, PreparationFailed
from pytest_ldos.campaign.bisection import LevelState
from pytest_ldos.campaign.commit_rounds import CommitFailed
from pytest_ldos.campaign.commit_search import Finding
from pytest_ldos.show.report.bisect import answer, commit_table, remarks
from tests.builders.breaking import Watching
from tests.builders.commits import SPEC, MadeUpHistory, commit, search


@pytest.mark.parametrize("first", range(1, 9))
def test_slow_commit_is_found_at_any_position(tmp_path, first):
    result = search(MadeUpHistory(slow={first: 1.2}), tmp_path)
    assert result.finding is Finding.FOUND
    assert result.suspects == (commit(first),)
    assert result.sound == commit(first - 1)
    assert result.why == ""
    assert not list(tmp_path.iterdir()), "a finished search leaves nothing"


def test_result_has_commit_date_subject_change_and_segment(tmp_path):
    result = search(MadeUpHistory(slow={5: 1.2}), tmp_path)
    assert answer(result).startswith("T1 became worse with 000000000005 of 2026-01-02, “change 5” (95 % confidence): +")
    assert "% of it in callback run: /move_group: plan" in " ".join(remarks(result))
    (found,) = [each for each in result.visited if each.commit == commit(5)]
    assert found.standing is LevelState.BREAKS
    assert found.worse == found.pairs
    assert found.low <= 0.2 <= found.high
    assert len(commit_table(result).rows) == len(result.visited)


def test_each_commit_is_measured_with_good_and_bad(tmp_path):
    history = MadeUpHistory(slow={5: 1.2})
    result = search(history, tmp_path)
    assert history.rounds[0] == 8, "BAD first: without a regression there is nothing to search for"
    bad = history.rounds.count(8)
    assert result.starts == 2 * bad + 3 * (len(history.rounds) - bad)
    assert result.trials == 4 * result.starts


@pytest.mark.parametrize("last", [3, 5, 8])
def test_unbuildable_commits_are_skipped_and_named(tmp_path, last):
    watching = Watching()
    result = search(MadeUpHistory(slow={8: 1.3}, unbuildable=frozenset({4, last} - {8})), tmp_path, watching)
    assert result.suspects == (commit(8),)
    assert {each for each, _ in result.skipped} <= {commit(4), commit(last)}
    (reason,) = {reason for each, reason in result.skipped if each == commit(4)}
    assert "`make` ended with exit code 2" in reason
    assert any(note.startswith("skipped: 000000000004 2026-01-02 change 4: ") for note in watching.notes)
    assert any("skipped, because it could not be measured: 000000000004" in each for each in remarks(result))


def test_indistinguishable_commits_are_an_interval(tmp_path):
    """The slow commit and its successor do not build: the result is these and the next one."""
    result = search(MadeUpHistory(slow={4: 1.3}, unbuildable=frozenset({4, 5})), tmp_path)
    assert result.finding is Finding.NARROWED
    assert result.suspects == (commit(4), commit(5), commit(6))
    assert result.why == "the commits between could not be measured"
    assert "one of 3 commits, from 000000000004" in answer(result)


def test_failed_stack_is_restarted_once_and_then_skipped(tmp_path):
    watching = Watching()
    result = search(MadeUpHistory(slow={5: 1.3}, flaky={4}, unstartable=frozenset({6})), tmp_path, watching)
    assert result.suspects in {(commit(5),), (commit(5), commit(6))}
    assert "000000000004, block 1: the controller did not start: tried again" in watching.notes
    assert commit(4) not in {each for each, _ in result.skipped}
    assert [each for each, _ in result.skipped] == [commit(6)]


def test_spent_trials_leave_an_interval(tmp_path):
    result = search(MadeUpHistory(slow={3: 1.3}), tmp_path, max_trials=100)
    assert result.finding is Finding.NARROWED
    assert commit(3) in result.suspects
    assert result.trials <= 100
    assert result.why == "the trials were not enough to narrow it further: --max-trials"


def test_commit_between_good_and_bad_is_not_the_result(tmp_path):
    """Two steps: the commits between are better than BAD and worse than GOOD."""
    result = search(MadeUpHistory(slow={2: 1.15, 6: 1.3}), tmp_path, max_trials=3000)
    assert result.finding is Finding.NARROWED
    assert {commit(2), commit(6)} & {*result.suspects}
    assert "several commits brought it" in result.why


def test_failure_is_worse_than_any_time(tmp_path):
    result = search(MadeUpHistory(fails=frozenset({6, 7, 8})), tmp_path)
    assert result.suspects == (commit(6),)
    assert result.explanation is None


def test_failing_good_ends_the_search(tmp_path):
    history = MadeUpHistory(fails=frozenset(range(9)))
    result = search(history, tmp_path)
    assert result.finding is Finding.GOOD_FAILS
    assert {*history.rounds} == {8}, "no search"
    assert answer(result).startswith("no search: GOOD 000000000000 is bad already: fewer than half")


@pytest.mark.acceptance
def test_good_as_slow_as_bad_ends_the_search(tmp_path):
    history = MadeUpHistory(slow={0: 1.3})
    result = search(history, tmp_path)
    assert result.finding is Finding.UNKNOWN
    assert {*history.rounds} == {8}
    assert result.suspects == ()
    assert "GOOD may be bad already (name an older GOOD" in answer(result)


def test_better_bad_ends_the_search(tmp_path):
    history = MadeUpHistory(slow={0: 1.3, 1: 1.0}, commits=3)
    result = search(history, tmp_path)
    assert result.finding is Finding.NOT_WORSE
    assert {*history.rounds} == {3}
    assert "BAD 000000000003 is not worse than GOOD 000000000000 but better" in answer(result)


@pytest.mark.parametrize(("end", "place"), [("unbuildable", 0), ("unbuildable", 8), ("unstartable", 8)])
def test_unmeasurable_end_is_an_error(tmp_path, end, place):
    with pytest.raises((PreparationFailed, CommitFailed), match=commit(place).name):
        search(MadeUpHistory(slow={4: 1.3}, **{end: frozenset({place})}), tmp_path)


def test_stack_of_good_may_fail_once_per_commit(tmp_path):
    dead = BringUpFailed("000000000000, block 1: no controller")
    watching = Watching()
    once = search(MadeUpHistory(slow={5: 1.2}, ends={2: dead}), tmp_path, watching)
    assert once.suspects == (commit(5),)
    assert watching.notes == ["000000000000, block 1: no controller: tried again"]
    with pytest.raises(BringUpFailed, match="no controller"):
        search(MadeUpHistory(slow={5: 1.2}, ends={2: dead, 3: dead}), tmp_path)


@pytest.mark.parametrize("interrupted_at", [1, 3, 8])
def test_interrupted_search_resumes(tmp_path, interrupted_at):
    whole = MadeUpHistory(slow={5: 1.2})
    undisturbed = search(whole, tmp_path / "whole")
    first = MadeUpHistory(slow={5: 1.2}, ends={interrupted_at: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        search(first, tmp_path / "again")
    rest, watching = MadeUpHistory(slow={5: 1.2}), Watching()
    result = search(rest, tmp_path / "again", watching)
    assert first.rounds[:-1] + rest.rounds == whole.rounds
    assert dataclasses.replace(result, template=None) == dataclasses.replace(undisturbed, template=None)
    assert any(each.startswith("continues what was interrupted") for each in watching.notes) == (interrupted_at > 1)


def test_other_metric_reuses_rounds(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpHistory(ends={5: KeyboardInterrupt()}), tmp_path)
    again = MadeUpHistory(ends={1: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        search(again, tmp_path, Watching(), metric="T4")
    (file,) = tmp_path.iterdir()
    assert len(json.loads(file.read_text())["sets"]["good"]["trials"]) == 16


def test_rounds_of_other_settings_are_ignored_and_damaged_ones_set_aside(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(MadeUpHistory(slow={5: 1.2}, ends={3: KeyboardInterrupt()}), tmp_path)
    (file,) = tmp_path.iterdir()
    other, watching = MadeUpHistory(slow={5: 1.2}, ends={1: KeyboardInterrupt()}), Watching()
    with pytest.raises(KeyboardInterrupt):
        search(other, tmp_path, watching, spec=dataclasses.replace(SPEC, warmup=3))
    assert watching.notes == []
    file.write_text(file.read_text()[:-40])
    search(MadeUpHistory(slow={5: 1.2}), tmp_path, watching)
    assert watching.notes == [f"damaged, set aside and measured again: {file}.damaged"]
