"""A running stack under a running recording, ready for trials, and what observes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from pytest_ldos.host.interference import InterferenceMeter
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.stack.choose import choose_backend
from pytest_ldos.robot.stack.protocol import OURS, Installation, RunningStack
from pytest_ldos.scenario.model import StackSpec


@dataclass(frozen=True)
class Rig:
    """Stack, recorder and folder of trials.

    Attributes:
        surroundings: measures interference since the recording was started.
        site: where loads are applied.
    """

    stack: RunningStack
    spec: StackSpec
    recorder: Recorder
    folder: ScenarioFolder
    surroundings: InterferenceMeter = field(default_factory=InterferenceMeter)

    @property
    def site(self) -> LoadSite:
        return LoadSite(
            self.stack.domain,
            self.recorder,
            self.folder.logs,
            kind=self.stack.info.kind,
            has_simulated_clock=self.stack.info.has_simulated_clock,
            environment=self.stack.environment,
            pids=self.stack.pids,
            stack=self.spec,
        )


@contextmanager
def open_rig(
    spec: StackSpec,
    folder: ScenarioFolder,
    *,
    on_waiting: Callable[[str], None] | None = None,
    installation: Installation = OURS,
) -> Iterator[Rig]:
    """Starts the recording, then the stack: events during the start name the entities that run later.

    Args:
        on_waiting: called now and then with what the stack is still waiting for.
        installation: from which the stack is started.

    Raises:
        Unavailable: something needed is not installed.
        RecordingFailed: the tracer refused.
        BringUpFailed: the stack did not become ready.
    """
    surroundings = InterferenceMeter()
    with ExitStack() as resources:
        recorder = choose_recorder(folder.trace, folder.logs, switches=True)
        resources.callback(recorder.stop)
        recorder.start()
        backend = choose_backend(spec, recorder=recorder, log_directory=folder.logs, installation=installation)
        resources.callback(backend.stop)
        yield Rig(backend.start(on_waiting=on_waiting), spec, recorder, folder, surroundings)


class Watch(Protocol):
    """Watches one version of a stack, in all its starts.

    Attributes:
        tools: tools that are to watch; after watching, those that did. Empty if there are none.
        distortion: reason why the trials' times are not comparable with others; empty if they are.
    """

    @property
    def tools(self) -> str: ...

    @property
    def distortion(self) -> str: ...

    def beside(self, rig: Rig) -> AbstractContextManager[None]:
        """Watches while the context lasts, during trials. A failure to watch ends no trials."""

    def read(self, rig: Rig, trials: int) -> None:
        """Reads what was watched; called while the recording is paused, after the given number of trials."""
