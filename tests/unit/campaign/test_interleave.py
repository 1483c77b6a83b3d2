"""Interleaved sessions with fake stacks: order, records, looks and early ends."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from pytest_ldos.base.errors import BringUpFailed, LoadFailed
from pytest_ldos.campaign.blocks import describe_turns, interleave, measure_alone
from pytest_ldos.campaign.order import Role
from pytest_ldos.measure.load.protocol import LoadProof, RepeatedLoad
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import Look
from pytest_ldos.robot.stack.goals import REACH
from pytest_ldos.scenario.loads import CpuLoadSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.stimuli import PlanSpec, StimuliSpec
from pytest_ldos.scenario.words import StimulusKind
from tests.fakes.bench import CLEAR, VERSIONS, Undecided, Watching, make_bench
from tests.fakes.rig import Motion, open_fake_rig


def test_ten_trials_are_abba_with_one_start_per_block(tmp_path):
    watching = Watching()
    bench = make_bench(tmp_path, observer=watching)
    made = interleave(bench, VERSIONS, size=5, decide=CLEAR)
    assert watching.letters == "ABBA"
    assert made.starts == 4
    assert [trial.block for trial in made.base.trials] == [0] * 5 + [3] * 5
    assert [trial.block for trial in made.head.trials] == [1] * 5 + [2] * 5
    assert [trial.index for trial in made.head.trials] == list(range(10))
    assert made.head.session == made.base.session != ""
    assert (made.head.commit, made.base.commit) == ("new", "0ld")
    assert all(trial.measurements["T4"].number for each in (made.head, made.base) for trial in each.trials)


def test_by_default_ten_trials_have_five_starts_of_each_version(tmp_path):
    made = interleave(make_bench(tmp_path), VERSIONS, decide=CLEAR)
    assert made.starts == 10
    assert [trial.block for trial in made.head.trials] == [1, 1, 2, 2, 4, 4, 7, 7, 8, 8]


def test_goals_seeds_and_starts_are_the_same_for_both(tmp_path):
    stacks = []

    @contextmanager
    def remembered(*arguments, **settings):
        with open_fake_rig(*arguments, **settings) as rig:
            stacks.append(rig.stack)
            yield rig

    made = interleave(make_bench(tmp_path, open_rig=remembered, trials=4), VERSIONS, size=2, decide=CLEAR)
    assert [trial.seed for trial in made.head.trials] == [trial.seed for trial in made.base.trials] == [1, 2, 3, 4]
    goals = ["reach", "home", "reach", "home", "reach"]
    assert [stack.goals for stack in stacks] == [goals] * 4, "a warm-up and two trials, home between them"


@pytest.mark.parametrize("asked", [0, 1, 5])
def test_each_start_is_warmed_up(tmp_path, asked):
    motions = []

    @contextmanager
    def remembered(*arguments, **settings):
        with open_fake_rig(*arguments, **settings) as rig:
            yield rig
            motions.append(rig.stack.goals.count("reach"))

    interleave(make_bench(tmp_path, open_rig=remembered, trials=4, warmup=asked), VERSIONS, size=2, decide=CLEAR)
    assert motions == [2 + asked] * 4


def test_both_records_are_on_disk_after_every_trial(tmp_path):
    seen = []

    class Looking(Watching):
        def trial(self, trial):
            folders = (bench.folder.base, bench.folder)
            seen.append([len(read_trials(each.path).trials) for each in folders if each.trials_file.exists()])

    bench = make_bench(tmp_path, trials=2, observer=Looking())
    made = interleave(bench, VERSIONS, size=1, decide=CLEAR)
    assert seen == [[1], [1, 1], [1, 2], [2, 2]]
    assert read_trials(bench.folder.path) == made.head
    assert read_trials(bench.folder.base.path) == made.base


def test_inconclusive_comparison_gets_more_pairs(tmp_path):
    watching, decide = Watching(), Undecided(looks=3)
    bench = make_bench(tmp_path, trials=4, max_trials=12, observer=watching)
    made = interleave(bench, VERSIONS, size=2, decide=decide)
    assert decide.shown == [(4, 4), (6, 6), (8, 8)]
    assert watching.letters == "ABBABAAB"
    assert made.head.looks == made.base.looks == (Look(4, 4), Look(6, 6), Look(8, 8))
    assert made.head.last_look == Look(12, 12)


def of_suite(bench):
    """The same trials plan four problems."""
    plans = StackSpec(stimulus=StimulusKind.PLAN, stimuli=StimuliSpec(plan=PlanSpec(problems="problems.yaml")))
    goals = tuple(replace(REACH, name=name) for name in "abcd")
    return replace(bench, spec=replace(bench.spec, stack=plans), goals=goals)


@pytest.mark.parametrize(("trials", "notes"), [(3, 2), (4, 0)])
def test_fewer_trials_than_problems_are_noted(tmp_path, trials, notes):
    class Noting(Watching):
        def note(self, text):
            noted.append(text)

    noted = []
    alone, both = (
        of_suite(make_bench(tmp_path / each, trials=trials, observer=Noting())) for each in ("alone", "both")
    )
    measure_alone(alone, VERSIONS[Role.HEAD], find_base=lambda record: None)
    interleave(both, VERSIONS, decide=CLEAR)
    assert noted == ["3 of 4 problems are planned; more trials plan all (--ldos-trials)"] * notes


def test_pairs_of_a_suite_plan_each_problem_in_each_start(tmp_path):
    decide = Undecided(looks=99)
    bench = make_bench(tmp_path, trials=20, max_trials=28)
    made = interleave(of_suite(bench), VERSIONS, decide=decide)
    assert decide.shown == [(20, 20), (28, 28)]
    for record in (made.head, made.base):
        planned = Counter((trial.block, trial.goal) for trial in record.trials)
        assert set(planned.values()) == {1}
        assert len(planned) == 7 * 4


def test_conclusive_comparison_gets_no_more_pairs(tmp_path):
    made = interleave(make_bench(tmp_path, trials=4, max_trials=12), VERSIONS, size=2, decide=CLEAR)
    assert len(made.head.trials) == len(made.base.trials) == 4
    assert made.head.looks == (Look(4, 4),)


def test_session_ends_at_the_limit_of_trials(tmp_path):
    bench = make_bench(tmp_path, trials=4, max_trials=7)
    made = interleave(bench, VERSIONS, size=2, decide=Undecided(looks=99))
    assert [len(each.trials) for each in (made.head, made.base)] == [7, 7]
    assert [look.head for look in made.head.looks] == [4, 6, 7]


def test_run_of_fixed_size_has_no_looks(tmp_path):
    decide = Undecided(looks=99)
    made = interleave(make_bench(tmp_path, trials=2), VERSIONS, size=1, decide=decide)
    assert (made.head.looks, made.head.last_look, decide.shown) == ((), None, [])


@dataclass(frozen=True, kw_only=True)
class Proof(LoadProof):
    level: float

    @property
    def applied(self):
        return self.level


@dataclass
class Load:
    spec: CpuLoadSpec
    proof: Proof


def repeated(levels, sites):
    @contextmanager
    def apply(spec, site):
        sites.append(site)
        level = levels[len(sites) - 1]
        yield Load(spec, Proof(kind="load", seconds=1.0, shortfall="" if level > 1 else "too little", level=level))

    return RepeatedLoad(CpuLoadSpec(), apply)


def test_every_block_of_both_versions_has_the_load_and_its_proof(tmp_path):
    sites = []
    load = repeated([4.0, 3.0, 2.0, 5.0], sites)
    made = interleave(make_bench(tmp_path, trials=2, loads=(load,)), VERSIONS, size=1, decide=CLEAR)
    assert [site.log_directory.parent.name for site in sites] == ["0-base", "1-head", "2-head", "3-base"]
    assert [(proof["block"], proof["level"]) for proof in made.head.loads] == [(1, 3.0), (2, 2.0)]
    assert [(proof["block"], proof["level"]) for proof in made.base.loads] == [(0, 4.0), (3, 5.0)]
    assert load.proof.level == 2.0, "the least"


def test_missing_proof_has_a_reason():
    with pytest.raises(LoadFailed, match=r"no proof of this load yet(.|\n)*after ldos_trials"):
        _ = repeated([], []).proof


def test_losses_are_summed_over_a_versions_blocks(tmp_path):
    def lossy(*arguments, **settings):
        return open_fake_rig(*arguments, discarded=7, **settings)

    made = interleave(make_bench(tmp_path, trials=2, open_rig=lossy), VERSIONS, size=1, decide=CLEAR)
    assert (made.head.discarded_events, made.base.discarded_events) == (14, 14)


def failing_at(numbers, error):
    """Opens rigs, except those of the given starts."""
    opened = []

    @contextmanager
    def open_rig(*arguments, **settings):
        opened.append(1)
        if len(opened) - 1 in numbers:
            raise error
        with open_fake_rig(*arguments, **settings) as rig:
            yield rig

    return open_rig


def test_failed_block_keeps_earlier_trials(tmp_path):
    error = BringUpFailed("simulator ended with exit code 3", remedy="look at its log", details="last words")
    bench = make_bench(tmp_path, trials=4, open_rig=failing_at({3, 4}, error))
    with pytest.raises(BringUpFailed, match=r"base old, block 4: simulator ended(.|\n)*last words(.|\n)*its log"):
        interleave(bench, VERSIONS, size=2, decide=CLEAR)
    head, base = read_trials(bench.folder.path), read_trials(bench.folder.base.path)
    assert [len(each.trials) for each in (head, base)] == [4, 2]
    assert "simulator ended" in head.incomplete
    assert "simulator ended" in base.incomplete
    assert all(trial.measurements["T1"].number for trial in (*head.trials, *base.trials))


def test_one_failed_start_is_made_again(tmp_path):
    error = BringUpFailed("simulator ended with exit code 3", details="last words")
    bench = make_bench(tmp_path, trials=4, open_rig=failing_at({3}, error))
    made = interleave(bench, VERSIONS, size=2, decide=CLEAR)
    assert [len(each.trials) for each in (made.head, made.base)] == [4, 4]
    assert not made.head.incomplete
    assert "a start was made again: base old, block 4: simulator ended with exit code 3" in describe_turns(made)
    assert (bench.folder.path / "blocks" / "3-base-failed").is_dir()


def test_failed_first_start_is_not_made_again(tmp_path):
    error = BringUpFailed("simulator ended with exit code 3")
    bench = make_bench(tmp_path, trials=4, open_rig=failing_at({0}, error))
    with pytest.raises(BringUpFailed, match="simulator ended"):
        interleave(bench, VERSIONS, size=2, decide=CLEAR)


@pytest.mark.parametrize("where", ["trial", "start"])
def test_interrupt_keeps_earlier_trials(tmp_path, where):
    def head(index):
        if index == 3 and where == "trial":
            raise KeyboardInterrupt
        return Motion(planning_ms=10)

    changes = {"open_rig": failing_at({2}, KeyboardInterrupt())} if where == "start" else {"head": head}
    bench = make_bench(tmp_path, trials=4, **changes)
    with pytest.raises(KeyboardInterrupt):
        interleave(bench, VERSIONS, size=2, decide=CLEAR)
    saved, base = read_trials(bench.folder.path), read_trials(bench.folder.base.path)
    assert [len(each.trials) for each in (saved, base)] == [3 if where == "trial" else 2, 2]
    assert saved.incomplete == base.incomplete == "the run was interrupted"
    assert all(trial.measurements["T1"].number for trial in saved.trials)


@pytest.mark.parametrize("where", ["trial", "start"])
@pytest.mark.parametrize("end", [ValueError("no such joint"), SystemExit(3)])
def test_reason_of_an_early_end_is_in_both_records(tmp_path, where, end):
    def head(index):
        if index == 3 and where == "trial":
            raise end
        return Motion(planning_ms=10)

    changes = {"open_rig": failing_at({2}, end)} if where == "start" else {"head": head}
    bench = make_bench(tmp_path, trials=4, **changes)
    with pytest.raises(type(end)):
        interleave(bench, VERSIONS, size=2, decide=CLEAR)
    saved, base = read_trials(bench.folder.path), read_trials(bench.folder.base.path)
    assert [len(each.trials) for each in (saved, base)] == [3 if where == "trial" else 2, 2]
    assert saved.incomplete == base.incomplete == f"{type(end).__name__}: {end}"


def test_dead_stack_ends_the_session_in_both_records(tmp_path):
    death = Motion(error_code=None, message="simulator was killed by SIGKILL")
    bench = make_bench(tmp_path, trials=4, head=lambda index: death if index == 1 else Motion())
    made = interleave(bench, VERSIONS, size=2, decide=CLEAR)
    assert [len(each.trials) for each in (made.head, made.base)] == [2, 2]
    assert "SIGKILL" in made.head.incomplete
    assert made.base.incomplete.startswith("head: ")
    assert made.starts == 2


def test_base_that_dies_at_once_is_an_error(tmp_path):
    death = Motion(error_code=None, message="simulator was killed by SIGKILL")
    bench = make_bench(tmp_path, trials=4, base=lambda index: death)
    with pytest.raises(BringUpFailed, match=r"head was not measured, because of base old: .*SIGKILL"):
        interleave(bench, VERSIONS, size=2, decide=CLEAR)
    assert len(read_trials(bench.folder.base.path).trials) == 1


def test_interleaving_is_described(tmp_path):
    made = interleave(make_bench(tmp_path, trials=2), VERSIONS, size=1, decide=CLEAR)
    assert describe_turns(made).startswith("interleaved with 2 trials of base old; 4 stack starts in ")
    same = dict.fromkeys(Role, VERSIONS[Role.HEAD])
    bench = make_bench(tmp_path / "same", trials=2)
    assert "A/A" in describe_turns(interleave(bench, same, size=1, decide=CLEAR))
    assert "A/A" not in describe_turns(made)
