"""A launch whose processes are recorded."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pytest_ldos.base.errors import ConfigurationError, RecordingFailed, TraceUnreadable
from pytest_ldos.host.owner import owned_by_us
from pytest_ldos.launching.available import launch_available
from pytest_ldos.launching.description import entities_of
from pytest_ldos.launching.environment import processes_get
from pytest_ldos.launching.processes import LaunchedProcess, ProcessBook, end_survivors
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, new_run_folder, new_scenario_folder
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph


class RecordedLaunch:
    """Records the processes of launches from before their start, and no others; begins at once.

    The recording can be read at any time, and continues. The first read after the launch is over is the
    last; after this is closed, the trace is read in its final state.

    Attributes:
        folder: location of trace and logs.
        survivors: processes that launch left behind when it was closed; they were ended.

    Raises:
        Unavailable: there is no `launch`, or no tracer.
        RecordingFailed: the tracer refused.
    """

    def __init__(self, folder: ScenarioFolder) -> None:
        launch_available().demand()
        self.folder = folder
        self.survivors: list[str] = []
        self._contexts: list[Any] = []
        self._whole: DecodedTrace | None = None
        self._is_closed = False
        self._resources = ExitStack()
        self._recorder = choose_recorder(folder.trace, folder.logs)
        with ExitStack() as resources:
            resources.callback(self._recorder.stop)
            _start(self._recorder)
            self._environment = {**self._recorder.open_environment, **owned_by_us()}
            resources.enter_context(processes_get(self._environment, self._is_ours))
            self._resources = resources.pop_all()
        self._book = ProcessBook(self._environment)
        atexit.register(self.close)

    def _is_ours(self, context: Any) -> bool:
        return any(context is each for each in self._contexts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def describe(self, what: Any, arguments: Mapping[str, str] | None = None) -> Any:
        """A `LaunchDescription` of `what`, with its processes recorded.

        Args:
            what: a `LaunchDescription`, a list of actions, or the path of a launch file.
            arguments: for the launch file.

        Raises:
            ConfigurationError: it is none of these, or the recording is over.
        """
        from launch import LaunchDescription  # noqa: PLC0415 - only where ROS is
        from launch.actions import OpaqueFunction, RegisterEventHandler  # noqa: PLC0415
        from launch.event_handlers import OnProcessExit, OnProcessStart  # noqa: PLC0415

        if self._is_closed:
            raise ConfigurationError("this recording is over", remedy="make another one for another launch")
        ours = [
            OpaqueFunction(function=self._contexts.append),
            RegisterEventHandler(OnProcessStart(on_start=self._book.note_start)),
            RegisterEventHandler(OnProcessExit(on_exit=self._book.note_exit)),
        ]
        return LaunchDescription([*ours, *entities_of(what, arguments)])

    # --- results ----------------------------------------------------------------------

    @property
    def processes(self) -> tuple[LaunchedProcess, ...]:
        """Processes that launch has started so far."""
        return self._book.processes

    @property
    def is_over(self) -> bool:
        """True if launch has shut down and all its processes have ended."""
        return bool(self._contexts) and all(each.is_shutdown for each in self._contexts) and not self._book.is_running

    @property
    def trace(self) -> DecodedTrace:
        """The trace recorded so far; see the class.

        Raises:
            RecordingFailed: nothing was recorded, or not all processes were.
        """
        if self._whole is not None:
            return self._whole
        if self._book.unrecorded:
            names = ", ".join(self._book.unrecorded)
            raise RecordingFailed(f"launch started {names} without what makes it recorded")
        if not self._is_closed:
            if not self.is_over:
                return self._read(self._recorder.rotate())
            self._recorder.pause()
        self._whole = self._read(self.folder.trace)
        self.close()
        return self._whole

    def _read(self, directory: Path) -> DecodedTrace:
        try:
            found = read_trace(directory)
        except TraceUnreadable:
            if any(directory.rglob("metadata")):
                raise
            raise self._nothing_recorded() from None
        if not len(found):
            raise self._nothing_recorded()
        return found

    def _nothing_recorded(self) -> RecordingFailed:
        ends = "; ".join(each.describe() for each in self.processes) or "launch started none"
        remedy = "see launch's log; `ros2 run tracetools status` says whether this ROS 2 was built with tracing"
        return RecordingFailed(f"no process of the launch has recorded anything ({ends})", remedy=remedy)

    @property
    def model(self) -> ExecutionModel:
        """The execution model of `trace`; while the launch runs, a new one each time."""
        trace = self.trace
        return build_execution(trace) if self._whole is None else self._whole_model

    @cached_property
    def _whole_model(self) -> ExecutionModel:
        return build_execution(self.trace)

    @property
    def flow(self) -> FlowGraph:
        """The message flow of `model`; with declared links: ``build_flow(recorded.model, paths)``."""
        return build_flow(self.model)

    def close(self) -> None:
        """Ends the recording, and every process that launch left behind. May be called at any time, and repeatedly."""
        atexit.unregister(self.close)
        self._is_closed = True
        self._resources.close()
        self.survivors += end_survivors(self._environment)


def _start(recorder: Recorder) -> None:
    try:
        recorder.start()
    except OSError as error:
        remedy = "it needs a temporary directory (TMPDIR) and a place for its log (--ldos-output)"
        raise RecordingFailed(f"LTTng could not be started: {error}", remedy=remedy) from None


def record_launch(output: str | os.PathLike[str] = ".ldos", *, name: str = "launch") -> RecordedLaunch:
    """Records a launch without pytest's fixtures, for `launch_testing` and scripts.

    All its files lie in ``OUTPUT/runs/TIME/NAME``; the trace is kept. It closes itself when it is
    read after the launch is over, at the end of a ``with``, and when this process ends.

    Raises:
        Unavailable: there is no `launch`, or no tracer.
        NotWritten: nothing can be written there.
        RecordingFailed: the tracer refused.
    """
    return RecordedLaunch(new_scenario_folder(new_run_folder(Path(output)), name))
