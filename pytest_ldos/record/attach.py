"""Records processes that already run, at the session daemon that they registered with.

A tracepoint fires once when a node, publisher or callback is made. For their names, a snapshot session must have kept
those events since before the nodes began; the recording begins with its contents, as ``ros2 trace --dual-session``
does since ros2_tracing 8.9: ``snapshot/`` next to ``runtime/``, read as one trace.

Reference: lttng-create(1), lttng-snapshot(1), lttng-track(1); tracetools_trace 8.10.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.errors import RecordingFailed, Unavailable
from pytest_ldos.host.availability import Availability, find_programs
from pytest_ldos.host.temporary import RunCommand, undone_at_end
from pytest_ldos.record.lttng import CHANNEL, CONTEXTS, MI_NAMESPACE, LttngRecorder, run_lttng

KEPT: Final = "ldos-snapshot"
"""Name of the snapshot session; one of another name is used as well, such as of tracetools_launch's ``Trace``."""
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
_ROOM: Final = ("--subbuf-size=256K", "--num-subbuf=4", "--overwrite")  # for about ten thousand entities per CPU
_PROVIDERS: Final = tuple(pattern.partition(":")[0] + ":" for pattern in ("ros2:*", "ldos:*"))
_DOMAIN: Final = "ROS_DOMAIN_ID"


def keep_names() -> bool:
    """Begins to keep the events that name nodes, topics and callbacks, in the snapshot session `KEPT`.

    It costs nothing while no entity is made. Starts a session daemon if none runs. Returns False if it is kept already.

    Raises:
        Unavailable: LTTng is not installed.
        RecordingFailed: the daemon refused.
    """
    find_programs(("lttng", "lttng-sessiond"), package="lttng-tools").demand()
    if KEPT in kept_sessions():
        return False
    run_lttng("create", KEPT, "--snapshot", own_daemon=True)
    try:
        run_lttng("enable-channel", "-u", "-s", KEPT, CHANNEL, *_ROOM)
        run_lttng("enable-event", "-u", "-s", KEPT, "-c", CHANNEL, ",".join(_INITIALISATION))
        run_lttng("add-context", "-u", "-s", KEPT, "-c", CHANNEL, *(f"--type={each}" for each in CONTEXTS))
        run_lttng("start", KEPT)
    except RecordingFailed:
        run_lttng("destroy", KEPT)
        raise
    return True


def kept_sessions() -> list[str]:
    """Names of the daemon's active snapshot sessions; none without a daemon."""
    try:
        root = ET.fromstring(run_lttng("--mi", "xml", "list"))  # noqa: S314 - written by LTTng
    except RecordingFailed:
        return []
    sessions = root.iterfind(".//mi:session", MI_NAMESPACE)
    values = [{child.tag.rpartition("}")[2]: child.text or "" for child in each} for each in sessions]
    return [each["name"] for each in values if each.get("snapshot_mode") == "1" and each.get("enabled") == "true"]


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
        kept = kept_sessions()
        self.has_names = bool(kept)
        if kept:  # several would hold the same events
            session = KEPT if KEPT in kept else kept[0]
            place = self.directory.resolve() / "snapshot"
            self._lttng("snapshot", "record", "-s", session, f"file://{place}")
        super().start()

    def stop(self) -> None:
        if self._is_undone_at_end:
            self._machine.stop()
        else:
            super().stop()

    @property
    def _place(self) -> Path:
        return self.directory / "runtime"

    def _prepare(self) -> None:
        """Confines the session to the processes, and ends it with this process."""
        undo = self._machine.resources.enter_context(undone_at_end(Path(os.devnull)))
        undo.register(RunCommand(("lttng", "--no-sessiond", "destroy", self._session)))
        self._is_undone_at_end = True
        self._lttng("untrack", "-u", "-s", self._session, "--vpid", "--all")
        self._lttng("track", "-u", "-s", self._session, f"--vpid={','.join(map(str, self._pids))}")
