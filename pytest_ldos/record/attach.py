"""Records processes that already run, at the session daemon that they registered with.

A tracepoint fires once when a node, publisher or callback is made. For their names, another session must have kept
those events since before the nodes began: ours, or a snapshot session such as that of tracetools_launch's ``Trace``.
Both sessions make one trace, ``snapshot/`` and ``runtime/``, as with ros2_tracing's ``--dual-session`` since 8.9.

Ours is no snapshot session, because each snapshot empties a sub-buffer of the ring: after as many as the ring has, the
names are gone.

Reference: lttng-create(1), lttng-rotate(1), lttng-snapshot(1), lttng-track(1); tracetools_trace 8.10.
"""

from __future__ import annotations

import os
import shutil
import time
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.errors import MendFailed, RecordingFailed, Unavailable
from pytest_ldos.base.files import writing
from pytest_ldos.host.availability import Availability, find_programs
from pytest_ldos.host.temporary import RunCommand, state_folder, undone_at_end
from pytest_ldos.record.lttng import CHANNEL, CONTEXTS, MI_NAMESPACE, LttngRecorder, run_lttng

KEPT: Final = "ldos-names"
NAMES_UNKNOWN: Final = (
    "nodes, topics and callbacks have no names: none were kept before they started (ldos record --keep-names); "
    "a stimulus, loops, and processes can be measured"
)

_INITIALISATION: Final = (
    "ros2:*_init",
    "ros2:*_added",
    "ros2:*_register",
    "ros2:*link*",
    "ros2:*_to_*",
    "ros2:rclcpp_construct_ring_buffer",
    "ros2:rcl_lifecycle_transition",
)
_ROOM: Final = ("--subbuf-size=64K", "--num-subbuf=4")
_PROVIDERS: Final = tuple(pattern.partition(":")[0] + ":" for pattern in ("ros2:*", "ldos:*"))
_DOMAIN: Final = "ROS_DOMAIN_ID"


def keep_names() -> bool:
    """Begins to keep the events that name nodes, topics and callbacks, in the session `KEPT`.

    It costs nothing while no entity is made. Starts a session daemon if none runs. Returns False if it is kept already.

    Raises:
        Unavailable: LTTng is not installed.
        RecordingFailed: the daemon refused.
    """
    find_programs(("lttng", "lttng-sessiond"), package="lttng-tools").demand()
    if KEPT in kept_sessions():
        return False
    place = state_folder(os.environ) / f"{KEPT}-{time.time_ns()}"
    run_lttng("create", KEPT, f"--output={place}", own_daemon=True)
    try:
        run_lttng("enable-channel", "-u", "-s", KEPT, CHANNEL, *_ROOM)
        run_lttng("enable-event", "-u", "-s", KEPT, "-c", CHANNEL, ",".join(_INITIALISATION))
        run_lttng("add-context", "-u", "-s", KEPT, "-c", CHANNEL, *(f"--type={each}" for each in CONTEXTS))
        run_lttng("start", KEPT)
    except RecordingFailed:
        run_lttng("destroy", KEPT)
        raise
    return True


def kept_sessions() -> Mapping[str, Path]:
    """Folders of the daemon's active sessions that keep names, ours first, by name; none without a daemon."""
    try:
        root = ET.fromstring(run_lttng("--mi", "xml", "list"))  # noqa: S314 - written by LTTng
    except RecordingFailed:
        return {}
    sessions = root.iterfind(".//mi:session", MI_NAMESPACE)
    values = [{child.tag.rpartition("}")[2]: child.text or "" for child in each} for each in sessions]
    active = [each for each in values if each.get("enabled") == "true"]
    kept = [each for each in active if each["name"] == KEPT or each.get("snapshot_mode") == "1"]
    return {each["name"]: Path(each.get("path", "")) for each in sorted(kept, key=lambda each: each["name"] != KEPT)}


def registered_processes(domain: str | None = None) -> Mapping[int, str]:
    """Names of the running processes with ROS 2's tracepoints in a DDS domain, by default this environment's, by pid.

    Raises `Unavailable` without a session daemon, or if none has registered there.
    """
    domain = os.environ.get(_DOMAIN, "0") if domain is None else domain
    try:
        root = ET.fromstring(run_lttng("--mi", "xml", "list", "--userspace"))  # noqa: S314 - written by LTTng
    except RecordingFailed as error:
        remedy = "start `lttng-sessiond --daemonize` before the nodes, as the same user (or root)"
        raise Unavailable(f"no LTTng session daemon answers here: {error.message}", remedy=remedy) from None
    traced = set()
    for each in root.iterfind(".//mi:pid", MI_NAMESPACE):
        names = [event.text or "" for event in each.iterfind(".//mi:event/mi:name", MI_NAMESPACE)]
        if any(name.startswith(_PROVIDERS) for name in names):
            traced.add(int(each.findtext("mi:id", "0", MI_NAMESPACE)))
    found: dict[int, str] = {}
    for pid in sorted(traced - {os.getpid()}):
        try:
            process = psutil.Process(pid)
            if process.environ().get(_DOMAIN, "0") == domain:
                found[pid] = process.name()
        except psutil.Error:
            continue
    if not found:
        remedy = f"set {_DOMAIN} as the nodes have it; they register at their start, if they are built with tracing"
        others = f"; {len(traced)} in others" if traced else ""
        raise Unavailable(f"no process with ROS 2's tracepoints runs in domain {domain}{others}", remedy=remedy)
    return found


def attaching_available() -> Availability:
    programs = find_programs(("lttng",), package="lttng-tools")
    if not programs.ok:
        return programs
    try:
        registered_processes()
    except Unavailable as error:
        return Availability(False, error.message, error.remedy)
    return programs


class _MachineDaemon:
    """The daemon that runs; see `lttng.PrivateDaemon`."""

    log = Path(os.devnull)
    join_prefix: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    open_environment: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.resources = ExitStack()

    @property
    def is_running(self) -> bool:
        try:
            return bool(run_lttng("list"))
        except RecordingFailed:
            return False

    def start(self) -> None:
        return

    def stop(self) -> None:
        self.resources.close()


class AttachedRecorder(LttngRecorder):
    """A recording of running processes, by pid; see `Recorder`.

    Attributes:
        has_names: True if a snapshot session has kept the names of their nodes.
    """

    def __init__(
        self, directory: Path, log_directory: Path, *, processes: Collection[int], events: Sequence[str] = ()
    ) -> None:
        self._machine = _MachineDaemon()
        super().__init__(directory, log_directory, events=events, daemon=self._machine)
        self._pids = sorted(processes)
        self.has_names = False
        self._is_undone_at_end = False

    def start(self) -> None:
        self._copy_names(self.directory.resolve() / "snapshot")
        super().start()

    def _copy_names(self, target: Path) -> None:
        """Copies what one session has kept; several would hold the same events."""
        name, folder = next(iter(kept_sessions().items()), ("", Path()))
        self.has_names = bool(name)
        if name == KEPT:
            self._lttng("rotate", name)
            with writing(target):
                shutil.copytree(folder / "archives", target)
        elif name:
            self._lttng("snapshot", "record", "-s", name, f"file://{target}")

    def stop(self) -> None:
        if not self._is_undone_at_end:
            super().stop()
            return
        is_gone = self._run("list", self._session).returncode != 0
        with suppress(MendFailed) if is_gone else nullcontext():  # somebody destroyed it
            self._machine.stop()

    @property
    def _place(self) -> Path:
        return self.directory / "runtime"

    def _prepare(self) -> None:
        """Confines the session to the processes, and ends it with this process."""
        undo = self._machine.resources.enter_context(undone_at_end(Path(os.devnull)))
        undo.register(RunCommand((*self._machine.join_prefix, "lttng", "--no-sessiond", "destroy", self._session)))
        self._is_undone_at_end = True
        self._lttng("untrack", "-u", "-s", self._session, "--vpid", "--all")
        self._lttng("track", "-u", "-s", self._session, f"--vpid={','.join(map(str, self._pids))}")
