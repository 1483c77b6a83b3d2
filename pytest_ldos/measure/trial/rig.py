"""A running stack under a running recording, ready for trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pytest_ldos.host.interference_meter import InterferenceMeter
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.robot.stack.choose import choose_backend
from pytest_ldos.robot.stack.installation import OURS, Installation
from pytest_ldos.robot.stack.protocol import RunningStack
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
