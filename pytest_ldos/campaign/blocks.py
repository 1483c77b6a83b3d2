"""Runs one block: starts a stack, makes trials on it, reads its trace and stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.paths import BUILT_IN_PATHS, PathSpec
from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.measure.load.protocol import LoadSite, RunningLoad
from pytest_ldos.measure.load.repeated import RepeatedLoad
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue
from pytest_ldos.measure.trial import rig
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, new_block_folder
from pytest_ldos.measure.trial.conduct import Observer, Procedure, Save, add_trials, new_record
from pytest_ldos.measure.trial.phases import PhaseClock, clocked
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.rig import Rig
from pytest_ldos.measure.trial.watch import Watch
from pytest_ldos.robot.stack.stimulus.protocol import Case
from pytest_ldos.scenario.model import ScenarioSpec

OpenRig = Callable[..., AbstractContextManager[Rig]]
"""See `open_rig`."""


class BlockObserver(Observer, Protocol):
    """Observer of blocks of trials."""

    def block(self, block: Block, version: Version) -> None:
        """A block begins: its stack is being started."""

    def waiting(self, what: str) -> None:
        """The stack still waits for something."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Settings shared by all blocks of a session, for each version.

    Attributes:
        folder: folder of the session.
        goals: the name of a goal set, or goals.
        loads: applied again in each block, once its stack is warm.
        catalogue: metrics to measure.
        open_rig: starts a stack and its recording.
        watch: returns what watches a version in addition to the tracer, if anything does.
        clock: adds up the time of each phase, over all blocks.
    """

    spec: ScenarioSpec
    folder: ScenarioFolder
    goals: Sequence[Case] | str
    observer: BlockObserver
    loads: Sequence[RepeatedLoad] = ()
    paths: Sequence[PathSpec] = BUILT_IN_PATHS
    catalogue: Catalogue = field(default_factory=lambda: METRICS)
    open_rig: OpenRig = field(default_factory=lambda: rig.open_rig)
    watch: Callable[[Role], Watch | None] = lambda role: None
    clock: PhaseClock = field(default_factory=PhaseClock)


def run_block(bench: Bench, block: Block, version: Version, record: TrialSet | None, save: Save) -> TrialSet:
    """Runs a block and returns the version's record with the new trials.

    Args:
        record: record of the version's earlier blocks; ``None`` for its first.
        save: called with the record after each trial.

    Raises:
        BringUpFailed: the stack did not start; names the version.
        Unavailable, RecordingFailed, LoadFailed: see `open_rig` and `RepeatedLoad.beside`.
    """
    bench.observer.block(block, version)
    with ExitStack() as resources:
        rig = resources.enter_context(_started(bench, block, version))
        goals = rig.stack.stimulus.cases(bench.goals) if isinstance(bench.goals, str) else bench.goals
        watch = bench.watch(block.role)
        procedure = Procedure(
            goals=goals,
            catalogue=bench.catalogue,
            disturb=lambda: _beside(bench.loads, replace(rig.site, paths=bench.paths)),
            paths=bench.paths,
            observer=bench.observer,
            watch=watch,
            clock=bench.clock,
            is_under_test=block.role is Role.HEAD,
        )
        return add_trials(
            rig,
            record
            or new_record(
                rig, bench.spec, bench.catalogue, commit=(version.commit, version.commit_unknown), watch=watch
            ),
            procedure,
            until=block.trials.stop,
            warmup=bench.spec.warmup,
            save=save,
            block=block.number,
            is_last=True,
        )


@contextmanager
def _beside(loads: Sequence[RepeatedLoad], site: LoadSite) -> Iterator[list[RunningLoad]]:
    together = replace(site, beside=tuple(load.spec for load in loads))
    with ExitStack() as resources:
        yield [resources.enter_context(load.beside(together)) for load in loads]


@contextmanager
def _started(bench: Bench, block: Block, version: Version) -> Iterator[Rig]:
    """Starts the version's stack with its recording; if that fails, the error names version and block, unless there are
    no others yet.
    """
    folder = _folder_of(bench, block)
    with ExitStack() as resources:
        try:
            opened = bench.open_rig(
                bench.spec.stack, folder, on_waiting=bench.observer.waiting, installation=version.installation
            )
            rig = resources.enter_context(clocked(opened, bench.clock))
        except BringUpFailed as error:
            if folder is bench.folder:
                raise
            message = f"{version.name}, block {block.number + 1}: {error.message}"
            raise BringUpFailed(message, details=error.details, remedy=error.remedy) from None
        yield rig


def _folder_of(bench: Bench, block: Block) -> ScenarioFolder:
    """The scenario's own folder for the first start of head alone, where a single start has always been looked for."""
    is_first_alone = block.number == 0 and block.role is Role.HEAD
    return bench.folder if is_first_alone else new_block_folder(bench.folder, block.number, block.role)
