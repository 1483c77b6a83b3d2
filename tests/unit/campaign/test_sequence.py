"""Sequences of starts, which are stored even after an early end."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.errors import BringUpFailed, RecordUnreadable
from pytest_ldos.campaign.noise import starts_of
from pytest_ldos.campaign.starts import RunStore, SequencePlan, Sequencer
from tests.builders.breaking import Watching
from tests.builders.starts import measured_run

START = measured_run(1, starts=1, trials=3)


class Stacks:
    """Simulates starts of ten seconds; some of them fail."""

    def __init__(self, *, ends=None, changes=None):
        self.blocks, self.ends, self.changes = [], ends or {}, changes or {}
        self.now_s = 0.0

    def __call__(self, block):
        self.blocks.append(block)
        self.now_s += 10.0
        if len(self.blocks) in self.ends:
            raise self.ends[len(self.blocks)]
        trials = tuple(dataclasses.replace(each, block=block) for each in START.trials)
        return dataclasses.replace(START, trials=trials, **self.changes)


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "calibration")


def sequencer(store, stacks, notes=None, commit=START.commit, **plan):
    pauses = []
    made = Sequencer(
        plan=SequencePlan(spec=START.spec, **{"starts": 3, **plan}),
        store=store,
        measure=stacks,
        observer=notes or Watching(),
        commit=commit,
        now=lambda: stacks.now_s,
        pause=pauses.append,
    )
    return made, pauses


def test_run_is_measured_and_stored(store):
    notes = Watching()
    made, _ = sequencer(store, Stacks(), notes)
    (run,) = made.runs()
    assert [each.block for each in run.trials] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert notes.begun == [f"start {number} of 3" for number in (1, 2, 3)]
    assert store.runs() == [run]
    assert store.unfinished() is None


def test_several_runs_with_time_between(store):
    made, pauses = sequencer(store, Stacks(), runs=2, starts=2, pause_s=600)
    runs = made.runs()
    assert len(runs) == 2
    assert pauses == [600]
    assert [start.run for start in starts_of(runs)] == [0, 0, 1, 1]
    assert store.runs() == runs


@pytest.mark.parametrize("end", [KeyboardInterrupt(), BringUpFailed("it did not start")])
def test_interrupted_run_resumes(store, end):
    broken, _ = sequencer(store, Stacks(ends={3: end}))
    with pytest.raises(type(end)):
        broken.runs()
    assert len(starts_of([store.unfinished()])) == 2
    stacks, notes = Stacks(), Watching()
    (run,) = sequencer(store, stacks, notes)[0].runs()
    assert stacks.blocks == [2]
    assert len(starts_of([run])) == 3
    assert "continues what was interrupted: 2 starts" in notes.notes[0]


@pytest.mark.parametrize("other", [{"commit": "other"}, {"starts": 3, "commit": "0123456789ab+"}])
def test_another_commits_starts_are_not_continued(store, other):
    with pytest.raises(KeyboardInterrupt):
        sequencer(store, Stacks(ends={3: KeyboardInterrupt()}))[0].runs()
    stacks = Stacks()
    sequencer(store, stacks, **other)[0].runs()
    assert stacks.blocks == [0, 1, 2]


def test_starts_with_other_packages_are_omitted_with_a_note(store):
    with pytest.raises(KeyboardInterrupt):
        sequencer(store, Stacks(ends={3: KeyboardInterrupt()}))[0].runs()
    upgraded = dataclasses.replace(START.fingerprint, versions={"mujoco": "9"})
    notes = Watching()
    (run,) = sequencer(store, Stacks(changes={"fingerprint": upgraded}), notes)[0].runs()
    assert len(starts_of([run])) == 1
    assert "belongs to another version" in notes.notes[-1]


def test_start_that_would_exceed_the_time_limit_is_not_begun(store):
    notes = Watching()
    stacks = Stacks()
    (run,) = sequencer(store, stacks, notes, starts=8, time_limit_s=35.0)[0].runs()
    assert len(stacks.blocks) == 3
    assert len(starts_of([run])) == 3
    assert notes.notes == ["the time limit ended it after 3 of 8 starts"]
    assert store.unfinished() == run


def test_earlier_runs_are_included_on_request(store):
    (first,) = sequencer(store, Stacks())[0].runs()
    both = sequencer(store, Stacks(), keep_earlier=True)[0].runs()
    assert len(both) == 2
    assert both[0] == first
    assert store.runs() == both
    assert len(sequencer(store, Stacks())[0].runs()) == 1
    assert len(store.runs()) == 1


def test_damaged_earlier_run_is_named(store):
    sequencer(store, Stacks())[0].runs()
    (store.folder / "run-001.json").write_text("{")
    with pytest.raises(RecordUnreadable, match=r"run-001\.json"):
        sequencer(store, Stacks(), keep_earlier=True)[0].runs()


def test_damaged_unfinished_run_is_restarted(store):
    store.folder.mkdir()
    (store.folder / "unfinished.json").write_text("{")
    assert len(sequencer(store, Stacks())[0].runs()) == 1


@pytest.mark.parametrize("name", ["run-001.bak.json", "run-1 (copy).json", "run-x.json"])
def test_other_files_are_no_runs(store, name):
    (first,) = sequencer(store, Stacks())[0].runs()
    (store.folder / name).write_text("{")
    assert sequencer(store, Stacks(), keep_earlier=True)[0].runs()[0] == first
    assert len(store.runs()) == 2
    sequencer(store, Stacks())[0].runs()
    assert (store.folder / name).exists()


def began(number):
    """A start time that encodes the number of a run."""
    return f"{2000 + number}-01-01T00:00:00+00:00"


def test_runs_are_in_the_order_of_their_numbers(store):
    for number in (1000, 999, 2):
        store.finish(dataclasses.replace(START, started_at=began(number)), keep_earlier=True)
        (store.folder / "run-001.json").rename(store.folder / f"run-{number:03d}.json.moved")
    for moved in store.folder.glob("*.moved"):
        moved.rename(moved.with_suffix(""))
    assert [run.started_at for run in store.runs()] == [began(2), began(999), began(1000)]
    store.finish(START, keep_earlier=True)
    assert (store.folder / "run-1001.json").exists()


def test_failed_write_keeps_earlier_runs(store, monkeypatch):
    (first,) = sequencer(store, Stacks())[0].runs()

    def fail(path, text):
        if path.name.startswith("run-"):
            raise OSError("disk full")

    monkeypatch.setattr("pytest_ldos.campaign.starts.write_atomically", fail)
    with pytest.raises(OSError, match="disk full"):
        sequencer(store, Stacks())[0].runs()
    assert store.runs() == [first]


OTHERS = [
    {"commit": "another"},
    {"spec": dataclasses.replace(START.spec, warmup=START.spec.warmup + 1)},
    {"fingerprint": dataclasses.replace(START.fingerprint, versions={"mujoco": "9"})},
]


@pytest.mark.parametrize("other", OTHERS)
def test_earlier_runs_of_another_version_are_omitted_with_a_note(store, other):
    (first,) = sequencer(store, Stacks())[0].runs()
    store.finish(dataclasses.replace(first, **other), keep_earlier=True)
    notes = Watching()
    both = sequencer(store, Stacks(), notes, keep_earlier=True)[0].runs()
    assert both == [first, both[1]]
    assert notes.notes == ["1 earlier run belongs to another commit, setting or environment: left out"]
    assert len(store.runs()) == 3


def test_starts_with_more_trials_are_pooled(store):
    longer = dataclasses.replace(START, spec=dataclasses.replace(START.spec, trials=9, max_trials=20))
    store.finish(longer, keep_earlier=True)
    notes = Watching()
    assert sequencer(store, Stacks(), notes, keep_earlier=True)[0].runs()[0] == longer
    assert notes.notes == []
