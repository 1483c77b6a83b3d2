"""A rig: a recorded, running stack that is ready for trials, and its observation."""

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
        surroundings: measures interference since the start of the recording.
        site: site for loads.
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
    """Starts the recording, then the stack, because events during the start name the entities.

    Args:
        on_waiting: called periodically with the conditions that the stack still waits for.
        installation: installation of the stack.

    Raises:
        Unavailable: a requirement is not installed.
        RecordingFailed: the tracer failed.
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
    """Observes one version of a stack in all its starts, with other tools than the tracer.

    Attributes:
        tools: requested tools; after the trials, those that ran. Empty if there are none.
        distortion: reason why the trials' times are not comparable with others; empty if they are.
    """

    @property
    def tools(self) -> str: ...

    @property
    def distortion(self) -> str: ...

    def attached_to(self, rig: Rig) -> AbstractContextManager[None]:
        """Observes the trials in the ``with`` block. A failure to observe does not end the trials."""

    def read(self, rig: Rig, trials: int) -> None:
        """Reads the results; called while the recording is paused, after the given number of trials."""
