"""Launches with recorded processes."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import psutil

from pytest_ldos.base.errors import ConfigurationError, RecordingFailed, TraceUnreadable
from pytest_ldos.host.inherited import pass_on, pids_with
from pytest_ldos.host.processes import describe_end, owned_by_us
from pytest_ldos.launching.available import launch_available
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, new_run_folder, new_scenario_folder
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph


def entities_of(what: Any, arguments: Mapping[str, str] | None = None) -> list[Any]:
    """Entities of a launch description, of a sequence of actions, or of a launch file.

    Args:
        what: any of these; a launch file by its path (Python, XML or YAML).
        arguments: for the launch file.

    Raises:
        ConfigurationError: it is none of these, or the file does not exist.
    """
    from launch import LaunchDescription, LaunchDescriptionEntity  # noqa: PLC0415 - only where ROS is

    if isinstance(what, str | os.PathLike):
        return [_include(Path(what), arguments or {})]
    if arguments is not None:
        raise ConfigurationError("only a launch file takes arguments", remedy="give its path instead of actions")
    if isinstance(what, LaunchDescription):
        return list(what.entities)
    if isinstance(what, LaunchDescriptionEntity):
        return [what]
    if isinstance(what, Sequence) and all(isinstance(each, LaunchDescriptionEntity) for each in what):
        return list(what)
    raise ConfigurationError(
        f"{what!r} cannot be launched",
        remedy="give a LaunchDescription, a list of actions, or the path of a launch file",
    )


def _include(file: Path, arguments: Mapping[str, str]) -> Any:
    from launch.actions import IncludeLaunchDescription  # noqa: PLC0415
    from launch.launch_description_sources import AnyLaunchDescriptionSource  # noqa: PLC0415

    if not file.is_file():
        raise ConfigurationError(f"there is no launch file {file}", remedy="give its path from the current directory")
    return IncludeLaunchDescription(AnyLaunchDescriptionSource(str(file)), launch_arguments=list(arguments.items()))


_ADDITIONS: list[tuple[Mapping[str, str], Mapping[str, str], Callable[[Any], bool]]] = []
"""Variables of each open recording, the environment at its start, and a predicate for its launch contexts."""


@contextmanager
def processes_get(environment: Mapping[str, str], belongs: Callable[[Any], bool]) -> Iterator[None]:
    """Adds variables to the environment of each process whose launch context `belongs`.

    These processes inherit this process's environment as filtered by `pass_on`; variables set by launch are kept.

    Several recordings may be open at once, and end in any order.

    An action that sets variables would not suffice: launch stores them in ``os.environ``, which affects this process
    and all its other children, and does not pass them to a process with its own ``env`` or in a group that does not
    forward the environment (`ResetEnvironment`). Therefore `Executable.prepare`, which creates each process's
    environment, is wrapped.
    """
    addition = (environment, dict(os.environ), belongs)
    if not _ADDITIONS:
        _patch()
    _ADDITIONS.append(addition)
    try:
        yield
    finally:
        _ADDITIONS.remove(addition)
        if not _ADDITIONS:
            _restore()


def _patch() -> None:
    from launch.descriptions import Executable  # noqa: PLC0415 - only where ROS is

    original = Executable.prepare

    def prepare(self: Any, context: Any, action: Any) -> None:
        original(self, context, action)
        for environment, inherited, belongs in tuple(_ADDITIONS):
            if belongs(context):
                passed_on = pass_on(self.final_env, inherited)
                self.final_env.clear()
                self.final_env.update({**passed_on, **environment})

    prepare.original = original  # type: ignore[attr-defined]
    Executable.prepare = prepare


def _restore() -> None:
    from launch.descriptions import Executable  # noqa: PLC0415 - only where ROS is

    original = getattr(Executable.prepare, "original", None)
    if original is not None:  # otherwise another wrapper is outermost; this one no longer adds variables
        Executable.prepare = original


_LADDER: Final = ((signal.SIGINT, 2.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))


@dataclass(frozen=True)
class LaunchedProcess:
    """A process started by launch.

    Attributes:
        name: launch's name of it (``talker-1``).
        exit_code: ``None`` while it runs; the negative signal number if a signal ended it.
    """

    name: str
    pid: int
    exit_code: int | None = None

    def describe(self) -> str:
        """``talker-1 ended with exit code 1``."""
        if self.exit_code is None:
            return f"{self.name} is running"
        return describe_end(self.name, self.exit_code)


class ProcessBook:
    """Records launch's events of starting and ending processes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._processes: dict[int, LaunchedProcess] = {}
        self.unrecorded: list[str] = []

    @property
    def processes(self) -> tuple[LaunchedProcess, ...]:
        return tuple(self._processes.values())

    @property
    def is_running(self) -> bool:
        return any(each.exit_code is None for each in self._processes.values())

    def note_start(self, event: Any, context: Any) -> None:
        self._processes[event.pid] = LaunchedProcess(event.process_name, event.pid)
        if not self._environment.items() <= dict(event.env).items():
            self.unrecorded.append(event.process_name)

    def note_exit(self, event: Any, context: Any) -> None:
        self._processes[event.pid] = LaunchedProcess(event.process_name, event.pid, event.returncode)


def end_survivors(environment: Mapping[str, str]) -> list[str]:
    """Ends all processes that were started with these variables; returns their names.

    They remain if launch is killed, or if a process started others in the background. New children
    of these processes are ended, too.

    Raises:
        RuntimeError: a process survived SIGKILL.
    """
    names: dict[psutil.Process, str] = {}
    for number, patience_s in _LADDER:
        survivors = _started_with(environment)
        if not survivors:
            return list(names.values())
        names.update({process: _name_of(process) for process in survivors if process not in names})
        _send(number, survivors)
        psutil.wait_procs(survivors, timeout=patience_s)
    left = _started_with(environment)
    if left:
        raise RuntimeError(f"processes of the launch survived SIGKILL: {', '.join(map(_name_of, left))}")
    return list(names.values())


def _started_with(environment: Mapping[str, str]) -> list[psutil.Process]:
    found = []
    for pid in pids_with(environment):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def _send(number: signal.Signals, processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _name_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return f"{process.name()} ({process.pid})"
    return f"process {process.pid}"


class RecordedLaunch:
    """Records only the processes of launches, from their start; recording begins at once.

    The recording can be read at any time, and continues. The first read after the end of the launch ends it;
    after `close`, the trace is final.

    Attributes:
        folder: location of trace and logs.
        survivors: processes left by launch, which `close` ended.

    Raises:
        Unavailable: there is no `launch`, or no tracer.
        RecordingFailed: the tracer failed.
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
            RecordingFailed: no process was recorded, or not all were.
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
        """The execution model of `trace`; a new one at each call while the launch runs."""
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
        """Ends the recording, and every process left by launch. May be called at any time and repeatedly."""
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

    Its files are in ``OUTPUT/runs/TIME/NAME``; the trace is kept. It is closed by the first read after
    the end of the launch, at the end of a ``with`` block, and at the end of this process.

    Raises:
        Unavailable: there is no `launch`, or no tracer.
        NotWritten: the folder cannot be written.
        RecordingFailed: the tracer failed.
    """
    return RecordedLaunch(new_scenario_folder(new_run_folder(Path(output)), name))
