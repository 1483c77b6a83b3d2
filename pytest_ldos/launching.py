"""Launches with recorded processes."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
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
from pytest_ldos.host.availability import Availability, find_modules, ros_python_available
from pytest_ldos.host.fingerprint import pass_on, pids_with
from pytest_ldos.host.processes import describe_end, owned_by_us
from pytest_ldos.measure.trial.artifacts import ScenarioFolder, new_run_folder, new_scenario_folder
from pytest_ldos.record import attach
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph

_NEEDED = ("launch", "lark", "yaml", "osrf_pycommon", "packaging")


def launch_available() -> Availability:
    """Checks that this interpreter can import `launch`, without importing it."""
    specs = (importlib.util.find_spec(name) for name in _NEEDED)
    if all(spec is not None and spec.origin is not None for spec in specs):  # a folder of that name has no origin
        return Availability(True)
    ros = ros_python_available()
    return find_modules(_NEEDED, extra="ros2") if ros.ok else ros


def entities_of(what: Any, arguments: Mapping[str, str] | None = None) -> list[Any]:
    """Entities of a launch description, of actions, or of a launch file; raises `ConfigurationError` for others."""
    from launch import LaunchDescription, LaunchDescriptionEntity  # noqa: PLC0415 - only where ROS is

    if isinstance(what, str | os.PathLike):
        from launch.actions import IncludeLaunchDescription  # noqa: PLC0415
        from launch.launch_description_sources import AnyLaunchDescriptionSource  # noqa: PLC0415

        file, given = Path(what), list((arguments or {}).items())
        if not file.is_file():
            raise ConfigurationError(
                f"there is no launch file {file}", remedy="give its path from the current directory"
            )
        return [IncludeLaunchDescription(AnyLaunchDescriptionSource(str(file)), launch_arguments=given)]
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
    from launch.descriptions import Executable  # noqa: PLC0415 - only where ROS is

    addition = (environment, dict(os.environ), belongs)
    if not _ADDITIONS:
        original = Executable.prepare

        def prepare(self: Any, context: Any, action: Any) -> None:
            original(self, context, action)
            for added, inherited, is_recorded in tuple(_ADDITIONS):
                if is_recorded(context):
                    passed_on = pass_on(self.final_env, inherited)
                    self.final_env.clear()
                    self.final_env.update({**passed_on, **added})

        prepare.original = original  # type: ignore[attr-defined]
        Executable.prepare = prepare
    _ADDITIONS.append(addition)
    try:
        yield
    finally:
        _ADDITIONS.remove(addition)
        inner = getattr(Executable.prepare, "original", None)
        if not _ADDITIONS and inner is not None:  # else another wrapper is outermost; this one no longer adds variables
            Executable.prepare = inner


_LADDER: Final = ((signal.SIGINT, 2.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))


@dataclass(frozen=True)
class LaunchedProcess:
    """A process started by launch."""

    name: str  # launch's name of it (``talker-1``)
    pid: int
    exit_code: int | None = None  # ``None`` while it runs; the negative signal number if a signal ended it

    def describe(self) -> str:
        if self.exit_code is None:
            return f"{self.name} is running"
        return describe_end(self.name, self.exit_code)


def end_survivors(environment: Mapping[str, str]) -> list[str]:
    """Ends all processes that were started with these variables, and their new children; returns their names.

    They remain if launch is killed, or a process started others. Raises `RuntimeError` if one survives SIGKILL.
    """
    names: dict[psutil.Process, str] = {}
    for number, patience_s in _LADDER:
        survivors = _started_with(environment)
        if not survivors:
            return list(names.values())
        names.update({process: _name_of(process) for process in survivors if process not in names})
        for process in survivors:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
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


def _name_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return f"{process.name()} ({process.pid})"
    return f"process {process.pid}"


def keep_names() -> Any:
    """A launch action that keeps the names of all nodes after it for a later recording; see `attach.keep_names`."""
    from launch.actions import OpaqueFunction  # noqa: PLC0415 - only where ROS is

    return OpaqueFunction(function=lambda _: attach.keep_names() and None)


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
        self._processes: dict[int, LaunchedProcess] = {}
        self._unrecorded: list[str] = []
        self._whole: DecodedTrace | None = None
        self._is_closed = False
        self._resources = ExitStack()
        self._recorder = choose_recorder(folder.trace, folder.logs)
        with ExitStack() as resources:
            resources.callback(self._recorder.stop)
            try:
                self._recorder.start()
            except OSError as error:
                remedy = "it needs a temporary directory (TMPDIR) and a place for its log (--ldos-output)"
                raise RecordingFailed(f"LTTng could not be started: {error}", remedy=remedy) from None
            self._environment = {**self._recorder.open_environment, **owned_by_us()}
            added = processes_get(self._environment, lambda context: any(context is each for each in self._contexts))
            resources.enter_context(added)
            self._resources = resources.pop_all()
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def describe(self, what: Any, arguments: Mapping[str, str] | None = None) -> Any:
        """A `LaunchDescription` of `what`, with its processes recorded.

        Args:
            what: a `LaunchDescription`, a list of actions, or the path of a launch file, which takes `arguments`.

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
            RegisterEventHandler(OnProcessStart(on_start=self._note_start)),
            RegisterEventHandler(OnProcessExit(on_exit=self._note_exit)),
        ]
        return LaunchDescription([*ours, *entities_of(what, arguments)])

    def _note_start(self, event: Any, context: Any) -> None:
        self._processes[event.pid] = LaunchedProcess(event.process_name, event.pid)
        if not self._environment.items() <= dict(event.env).items():
            self._unrecorded.append(event.process_name)

    def _note_exit(self, event: Any, context: Any) -> None:
        self._processes[event.pid] = LaunchedProcess(event.process_name, event.pid, event.returncode)

    @property
    def processes(self) -> tuple[LaunchedProcess, ...]:
        """Processes that launch has started so far."""
        return tuple(self._processes.values())

    @property
    def is_over(self) -> bool:
        """True if launch has shut down and all its processes have ended."""
        is_running = any(each.exit_code is None for each in self.processes)
        return bool(self._contexts) and all(each.is_shutdown for each in self._contexts) and not is_running

    @property
    def trace(self) -> DecodedTrace:
        """The trace recorded so far; see the class.

        Raises:
            RecordingFailed: no process was recorded, or not all were.
        """
        if self._whole is not None:
            return self._whole
        if self._unrecorded:
            names = ", ".join(self._unrecorded)
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
