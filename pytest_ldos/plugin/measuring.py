"""From a test's wish for trials to trials: of head alone, or of head and base in turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from pytest_ldos.campaign.blocks import Bench
from pytest_ldos.campaign.decision import decide_interleaved
from pytest_ldos.campaign.interleave import interleave
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.top_up import top_up
from pytest_ldos.campaign.versions import Version
from pytest_ldos.judge.baseline.lookup import Found, find_baseline
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.artifacts import write_trials
from pytest_ldos.measure.trial.conduct import Procedure, add_trials, new_record
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.rig import Rig
from pytest_ldos.measure.trial.watch import Watch
from pytest_ldos.plugin.judging import policy_for, stores_of
from pytest_ldos.plugin.progress import Progress
from pytest_ldos.plugin.session import MeasuringSession, ScenarioRun
from pytest_ldos.plugin.watching import TrialWatch
from pytest_ldos.robot.stack.goals import Goal
from pytest_ldos.scenario.model import ScenarioSpec

Goals = Sequence[Goal] | str


@dataclass(frozen=True)
class _Wish:
    """What is to be moved to, and what is to be measured of it."""

    goals: Goals
    catalogue: Catalogue


def measure(session: MeasuringSession, run: ScenarioRun, goals: Goals, n: int | None, catalogue: Catalogue) -> TrialSet:
    """Head's trials for a test.

    Args:
        catalogue: metrics that are taken.
        n: how many the test asks for; the command line knows better.
    """
    spec = dataclasses.replace(run.spec, loads=tuple(load.spec for load in run.loads))
    if isinstance(goals, str):
        spec = dataclasses.replace(spec, goals=goals)
    if n is not None and "trials" not in session.sources.command_line:
        spec = dataclasses.replace(spec, trials=n)
    if run.versions is not None:
        return _measure_in_turns(session, run, spec, _Wish(goals, catalogue), run.versions)
    assert run.rig is not None
    return _measure_alone(session, run, spec, _Wish(goals, catalogue), run.rig)


@contextmanager
def _watched(session: MeasuringSession, run: ScenarioRun, title: str) -> Iterator[TrialWatch]:
    """What the session watches trials with; however they end, what it saw is written."""
    watch = TrialWatch(session.watch_spec, run.folder.path, title)
    try:
        yield watch
    finally:
        run.notes += watch.write()


def _measure_alone(session: MeasuringSession, run: ScenarioRun, spec: ScenarioSpec, wish: _Wish, rig: Rig) -> TrialSet:
    """Trials on the running stack; more of them while the comparison with the stored baseline is undecided."""
    with _watched(session, run, spec.name) as watch:
        return _add_trials(session, run, spec, wish, rig, watch.of(Role.HEAD))


def _add_trials(
    session: MeasuringSession, run: ScenarioRun, spec: ScenarioSpec, wish: _Wish, rig: Rig, watch: Watch
) -> TrialSet:
    procedure = Procedure(
        goals=rig.stack.goal_book.goals(wish.goals) if isinstance(wish.goals, str) else wish.goals,
        catalogue=wish.catalogue,
        beside=tuple(run.loads),
        paths=session.sources.toml.paths,
        observer=Progress(session.config),
        watch=watch,
    )
    save = partial(write_trials, run.folder)
    record = new_record(rig, spec, wish.catalogue, watch=watch)
    trials = add_trials(rig, record, procedure, until=spec.trials, warmup=spec.warmup, save=save)
    lookup = find_baseline(stores_of(session), trials)
    if not isinstance(lookup, Found):
        return trials
    base, policy = lookup.trials, policy_for(session, trials)
    return top_up(
        rig,
        trials,
        procedure,
        base=len(base.trials),
        size=session.value("block"),
        decide=lambda head: decide(head, base, policy),
        save=save,
    )


def _measure_in_turns(
    session: MeasuringSession, run: ScenarioRun, spec: ScenarioSpec, wish: _Wish, versions: Mapping[Role, Version]
) -> TrialSet:
    """Head's trials, made in turns with the base's."""
    with _watched(session, run, spec.name) as watch:
        bench = Bench(
            spec=spec,
            folder=run.folder,
            goals=wish.goals,
            catalogue=wish.catalogue,
            loads=tuple(run.loads),
            paths=session.sources.toml.paths,
            observer=Progress(session.config),
            watch=watch.of,
        )
        made = interleave(
            bench,
            versions,
            size=session.value("block"),
            decide=lambda head, base: decide_interleaved(head, base, policy_for(session, head)),
        )
    run.interleaved.append(made)
    return made.head
