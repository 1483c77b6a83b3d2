"""One block: a stack is started, trials are made on it, its trace is read, it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.versions import Version
from pytest_ldos.errors import BringUpFailed
from pytest_ldos.load.protocol import LoadSite, RunningLoad
from pytest_ldos.load.repeated import RepeatedLoad
from pytest_ldos.metrics.catalogue import METRICS, Catalogue
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.paths import BUILT_IN_PATHS, PathSpec
from pytest_ldos.stack.goals import Goal
from pytest_ldos.trial.artifacts import ScenarioFolder, new_block_folder
from pytest_ldos.trial.conduct import Observer, Procedure, Save, Unwatched, add_trials, new_record
from pytest_ldos.trial.record import TrialSet
from pytest_ldos.trial.rig import Rig, open_rig
from pytest_ldos.trial.watch import NoWatch, Watch

WARM_UPS: Final = 1
"""Of a block, at most, whatever is asked for: each stack start is cold, and they are time that measures nothing."""

OpenRig = Callable[..., AbstractContextManager[Rig]]
"""See `open_rig`."""


class BlockObserver(Observer, Protocol):
    """Somebody who watches blocks of trials being made."""

    def block(self, block: Block, version: Version) -> None:
        """A block begins: its stack is being started."""

    def waiting(self, what: str) -> None:
        """The stack still waits for something."""


class UnwatchedBlocks(Unwatched):
    """See `BlockObserver`."""

    def block(self, block: Block, version: Version) -> None: ...

    def waiting(self, what: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What all blocks of a session have in common, whichever version they run.

    Attributes:
        folder: of the session.
        goals: the name of a goal set, or goals.
        loads: applied anew in each block, once its stack is warm.
        catalogue: metrics that are taken.
        open_rig: starts a stack and what records it.
        watch: watches a version beside the tracer.
    """

    spec: ScenarioSpec
    folder: ScenarioFolder
    goals: Sequence[Goal] | str
    loads: Sequence[RepeatedLoad] = ()
    paths: Sequence[PathSpec] = BUILT_IN_PATHS
    catalogue: Catalogue = field(default_factory=lambda: METRICS)
    observer: BlockObserver = field(default_factory=UnwatchedBlocks)
    open_rig: OpenRig = open_rig
    watch: Callable[[Role], Watch] = lambda role: NoWatch()

    @property
    def warmup(self) -> int:
        """Warm-up trials of a block: part of what its start costs."""
        return min(self.spec.warmup, WARM_UPS)


def run_block(bench: Bench, block: Block, version: Version, record: TrialSet | None, save: Save) -> TrialSet:
    """The record of a version with the trials of a block.

    Args:
        record: of the version's earlier blocks; ``None`` for its first.
        save: called with the record after each trial.

    Raises:
        BringUpFailed: names the version.
        Unavailable, RecordingFailed, LoadFailed: see `open_rig` and `RepeatedLoad.beside`.
    """
    bench.observer.block(block, version)
    with ExitStack() as resources:
        rig = resources.enter_context(_started(bench, block, version))
        goals = rig.stack.goal_book.goals(bench.goals) if isinstance(bench.goals, str) else bench.goals
        watch = bench.watch(block.role)
        procedure = Procedure(
            goals=goals,
            catalogue=bench.catalogue,
            disturb=lambda: _beside(bench.loads, replace(rig.site, paths=bench.paths)),
            paths=bench.paths,
            observer=bench.observer,
            watch=watch,
        )
        return add_trials(
            rig,
            record or new_record(rig, bench.spec, bench.catalogue, commit=version.commit, watch=watch),
            procedure,
            until=block.trials.stop,
            warmup=bench.warmup,
            save=save,
            block=block.number,
        )


@contextmanager
def _beside(loads: Sequence[RepeatedLoad], site: LoadSite) -> Iterator[list[RunningLoad]]:
    together = replace(site, beside=tuple(load.spec for load in loads))
    with ExitStack() as resources:
        yield [resources.enter_context(load.beside(together)) for load in loads]


@contextmanager
def _started(bench: Bench, block: Block, version: Version) -> Iterator[Rig]:
    """The version's stack, recorded; that it did not start is told with its name."""
    folder = new_block_folder(bench.folder, block.number, block.role)
    with ExitStack() as resources:
        try:
            rig = resources.enter_context(
                bench.open_rig(
                    bench.spec.stack, folder, on_waiting=bench.observer.waiting, installation=version.installation
                )
            )
        except BringUpFailed as error:
            message = f"{version.name}, block {block.number + 1}: {error.message}"
            raise BringUpFailed(message, details=error.details, remedy=error.remedy) from None
        yield rig
