"""Trials of head alone in several starts, and added starts."""

from __future__ import annotations

import contextlib

import pytest

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.ros2 import BUILT_IN_PATHS
from pytest_ldos.campaign.blocks import StoredBase, measure_alone
from pytest_ldos.campaign.order import Role, blocks_alone
from pytest_ldos.measure.metrics.catalogue import catalogue_of
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import Look
from pytest_ldos.scenario.metrics import parse_metrics
from tests.builders.trials import noisy_set
from tests.fakes.bench import VERSIONS, Undecided, make_bench
from tests.fakes.rig import Motion, open_fake_rig

BASE = noisy_set(1, n=8)
HEAD = VERSIONS[Role.HEAD]


def measure(path, *, looks=1, size=None, **changes):
    """Returns the trials, the decisions' arguments, and the record on disk."""
    decide = Undecided(looks)
    base = StoredBase(8, lambda head: decide(head, BASE))
    bench = make_bench(path, **changes)
    made = measure_alone(bench, HEAD, find_base=lambda record: base, size=size)
    return made, [head for head, _ in decide.shown], read_trials(bench.folder.trials_file)


def blocks_of(record):
    return [trial.block for trial in record.trials]


@pytest.mark.parametrize(
    ("trials", "size", "sizes"),
    [
        (1, None, [1]),
        (4, None, [4]),
        (5, None, [2, 3]),
        (8, None, [4, 4]),
        (10, None, [3, 3, 4]),
        (30, None, [5] * 6),
        (10, 10, [10]),
        (10, 2, [2] * 5),
    ],
)
def test_trials_are_divided_among_starts_as_evenly_as_possible(trials, size, sizes):
    blocks = blocks_alone(trials, size=size)
    assert [len(block.trials) for block in blocks] == sizes
    assert [index for block in blocks for index in block.trials] == list(range(trials))


def test_ten_trials_are_three_starts_each_warmed_up(tmp_path):
    opened = []

    def remembered(*arguments, **settings):
        opened.append(arguments[1].path)
        return open_fake_rig(*arguments, **settings)

    made, _, saved = measure(tmp_path, trials=10, open_rig=remembered)
    assert blocks_of(made) == [0] * 3 + [1] * 3 + [2] * 4
    folder = tmp_path / "scenario"
    assert opened == [folder, folder / "blocks/1-head", folder / "blocks/2-head"]
    assert (made.session, saved) == ("", made)


def test_events_of_declared_metrics_are_recorded(tmp_path):
    asked = []

    def remembered(*arguments, **settings):
        asked.append(settings["events"])
        return open_fake_rig(*arguments, **settings)

    declared = parse_metrics(["count:arm:solve", "cpu:planner", "count:ros2:callback_start"], BUILT_IN_PATHS)
    measure(tmp_path, trials=4, open_rig=remembered, catalogue=catalogue_of((), declared))
    assert set(asked) == {("arm:*", "lttng_ust_tracef:*")}


def test_conclusive_comparison_gets_no_more_starts(tmp_path):
    made, shown, saved = measure(tmp_path, trials=4, max_trials=12)
    assert (len(made.trials), shown) == (4, [4])
    assert made.looks == (Look(4, 8),)
    assert made.last_look == Look(12, 8)
    assert saved == made


def test_inconclusive_comparison_gets_more_starts(tmp_path):
    made, shown, saved = measure(tmp_path, looks=3, size=3, trials=4, max_trials=12)
    assert shown == [4, 7, 10]
    assert [trial.index for trial in made.trials] == list(range(10))
    assert blocks_of(made) == [0] * 2 + [1] * 2 + [2] * 3 + [3] * 3
    assert all(trial.measurements["T1"].number for trial in made.trials)
    assert saved == made


def test_trials_end_at_the_limit(tmp_path):
    made, shown, _ = measure(tmp_path, looks=99, size=3, trials=4, max_trials=12)
    assert len(made.trials) == 12
    assert shown == [4, 7, 10]
    assert [look.head for look in made.looks] == [4, 7, 10, 12]


@pytest.mark.parametrize("most", [0, 4])
def test_complete_trials_have_no_interim_look(tmp_path, most):
    made, shown, _ = measure(tmp_path, looks=99, trials=4, max_trials=most)
    assert (len(made.trials), shown, made.looks, made.last_look) == (4, [], (), None)


def test_without_baseline_no_starts_are_added(tmp_path):
    made = measure_alone(make_bench(tmp_path, trials=4, max_trials=12), HEAD, find_base=lambda record: None)
    assert (len(made.trials), made.looks) == (4, ())


@pytest.mark.parametrize("dies_at", [1, 5])
def test_dead_stack_gets_no_more_starts(tmp_path, dies_at):
    death = Motion(error_code=None, message="killed")
    made, shown, _ = measure(
        tmp_path, looks=99, size=4, trials=4, max_trials=12, head=lambda i: death if i == dies_at else Motion()
    )
    assert len(made.trials) == dies_at + 1
    assert made.incomplete
    assert shown == ([] if dies_at < 4 else [4])


@pytest.mark.parametrize("error", [BringUpFailed("no answer"), KeyboardInterrupt("enough")])
def test_failed_start_keeps_earlier_trials_with_the_reason(tmp_path, error):
    starts = []

    @contextlib.contextmanager
    def failing(*arguments, **settings):
        starts.append(1)
        if len(starts) >= 2:
            raise error
        with open_fake_rig(*arguments, **settings) as rig:
            yield rig

    with pytest.raises(type(error)):
        measure(tmp_path, trials=10, open_rig=failing)
    saved = read_trials(tmp_path / "scenario/trials.json")
    assert len(saved.trials) == 3
    assert str(error) in saved.incomplete


def test_lost_events_of_all_starts_are_summed(tmp_path):
    def lossy(*arguments, **settings):
        return open_fake_rig(*arguments, **settings, discarded=5)

    made, _, _ = measure(tmp_path, trials=10, open_rig=lossy)
    assert made.discarded_events == 15
