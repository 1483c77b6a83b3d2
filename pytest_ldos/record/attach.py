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
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.errors import MendFailed, RecordingFailed, Unavailable, refuse_unknown, require
from pytest_ldos.base.files import writing
from pytest_ldos.host.availability import find_programs
from pytest_ldos.host.temporary import RunCommand, state_folder, undone_at_end
from pytest_ldos.record.lttng import CHANNEL, CONTEXTS, MI_NAMESPACE, LttngRecorder, PrivateDaemon, run_lttng

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
_DOMAIN: Final = "ROS_DOMAIN_ID"


def keep_names() -> bool:
    """Begins to keep the events that name nodes, topics and callbacks, in the session `KEPT`.

    It costs nothing while no entity is made. Starts a session daemon if none runs. Returns False if it is kept already.

    Raises:
        Unavailable: LTTng is not installed.
        RecordingFailed: the daemon refused.
    """
    find_programs(("lttng", "lttng-sessiond"), package="lttng-tools").demand()
    with suppress(Unavailable):
        if KEPT in list_sessions():
            return False
    place = state_folder(os.environ) / f"{KEPT}-{time.time_ns()}"
    run_lttng("create", KEPT, f"--output={place}", own_daemon=True)
    try:
        run_lttng("enable-channel", "-u", "-s", KEPT, CHANNEL, "--subbuf-size=64K", "--num-subbuf=4")
        run_lttng("enable-event", "-u", "-s", KEPT, "-c", CHANNEL, ",".join(_INITIALISATION))
        run_lttng("add-context", "-u", "-s", KEPT, "-c", CHANNEL, *(f"--type={each}" for each in CONTEXTS))
        run_lttng("start", KEPT)
    except RecordingFailed:
        run_lttng("destroy", KEPT)
        raise
    return True


def _list(*options: str, remedy: str = "") -> ET.Element:
    """The daemon's list as XML; raises `Unavailable` without a session daemon."""
    try:
        return ET.fromstring(run_lttng("--mi", "xml", "list", *options))  # noqa: S314 - written by LTTng
    except RecordingFailed as error:
        raise Unavailable(f"no LTTng session daemon answers: {error.message}", remedy=remedy or error.remedy) from None


def list_sessions() -> dict[str, dict[str, str]]:
    """Attributes of the daemon's sessions, by name; raises `Unavailable` without a session daemon."""
    sessions = _list().iterfind(".//mi:session", MI_NAMESPACE)
    every = ({child.tag.rpartition("}")[2]: child.text or "" for child in each} for each in sessions)
    return {each["name"]: each for each in every}


def copy_names(target: Path) -> bool:
    """Copies what a session has kept, ours first, as several would hold the same events; False if there is none.

    Raises `RecordingFailed`, and for files as `writing`.
    """
    with suppress(Unavailable):
        active = {name: each for name, each in list_sessions().items() if each["enabled"] == "true"}
        if KEPT in active:
            run_lttng("rotate", KEPT)
            with writing(target):
                shutil.copytree(Path(active[KEPT]["path"]) / "archives", target)
            return True
        snapshots = [name for name, each in active.items() if each["snapshot_mode"] == "1"]
        if snapshots:
            run_lttng("snapshot", "record", "-s", snapshots[0], f"file://{target.resolve()}")
            return True
    return False


class RunningSession:
    """A session of the user that is read in parts; it is neither stopped nor destroyed."""

    def __init__(self, name: str | None = None) -> None:
        """Finds a session by name, by default the only one; raises `ConfigurationError` if it has no parts to read."""
        find_programs(("lttng",), package="lttng-tools").demand()
        found = {each: values for each, values in list_sessions().items() if each != KEPT}
        require(bool(found), "the session daemon has no recording session", remedy="begin one: ros2 trace start NAME")
        self.name = (next(iter(found)) if len(found) == 1 else "") if name is None else name
        require(bool(self.name), "which recording session?", remedy=f"name one of {', '.join(sorted(found))}")
        refuse_unknown([self.name], found, "recording session")
        session, remedy = found[self.name], "lttng start, or ros2 trace start NAME: files of this machine are read"
        for key, mode in (("snapshot_mode", "in snapshot mode"), ("live_timer_interval", "in live mode")):
            require(session[key] == "0", f"session {self.name} is {mode}, and cannot be rotated", remedy=remedy)
        require(session["enabled"] == "true", f"session {self.name} is stopped", remedy=remedy)
        self.archives = Path(session["path"]) / "archives"  # its earlier parts

    def rotate(self) -> Path:
        """Returns the folder of the part that ends now; raises `RecordingFailed` if the session or its daemon ended."""
        try:
            done = ET.fromstring(run_lttng("--mi", "xml", "rotate", self.name))  # noqa: S314 - written by LTTng
        except RecordingFailed as error:
            with suppress(Unavailable):
                if list_sessions().get(self.name, {}).get("enabled") != "true":  # destroyed ones are stopped first
                    raise RecordingFailed(f"session {self.name} was stopped or destroyed while watched") from None
            raise RecordingFailed(f"session {self.name} cannot be read any more: {error.message}") from None
        place = done.findtext(".//mi:absolute_path", "", MI_NAMESPACE)
        if not place:
            raise RecordingFailed(f"session {self.name} has no part on this machine to read")
        return Path(place)


def registered_processes() -> Mapping[int, str]:
    """Names of the running processes with ROS 2's tracepoints in this environment's DDS domain, by pid.

    Raises `Unavailable` without a session daemon, or if none has registered there.
    """
    domain = os.environ.get(_DOMAIN, "0")
    traced = set()
    no_daemon = "start `lttng-sessiond --daemonize` before the nodes, as their user; root's needs the group tracing"
    for each in _list("--userspace", remedy=no_daemon).iterfind(".//mi:pid", MI_NAMESPACE):
        names = [event.text or "" for event in each.iterfind(".//mi:event/mi:name", MI_NAMESPACE)]
        if any(name.startswith(("ros2:", "ldos:")) for name in names):
            traced.add(int(each.findtext("mi:id", "0", MI_NAMESPACE)))
    found: dict[int, str] = {}
    for pid in sorted(traced - {os.getpid()}):
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.environ().get(_DOMAIN, "0") == domain:
                found[pid] = process.name()
    if not found:
        remedy = f"set {_DOMAIN} as the nodes have it, and be their user or root; they register at their start"
        others = f"; {len(traced)} in others, or of other users" if traced else ""
        raise Unavailable(f"no process with ROS 2's tracepoints runs in domain {domain}{others}", remedy=remedy)
    return found


class _MachineDaemon(PrivateDaemon):
    """The daemon that runs."""

    @property
    def is_running(self) -> bool:
        try:
            return bool(run_lttng("list"))
        except RecordingFailed:
            return False

    def start(self) -> None:
        self.log = Path(os.devnull)


class AttachedRecorder(LttngRecorder):
    """A recording of running processes, by pid; see `Recorder`.

    Attributes:
        has_names: True if a session has kept the names of their nodes.
    """

    def __init__(
        self, directory: Path, log_directory: Path, *, processes: Mapping[int, str], events: Sequence[str] = ()
    ) -> None:
        super().__init__(directory, log_directory, events=events, daemon=_MachineDaemon(log_directory))
        self.processes = processes
        self.has_names = False
        self._is_undone_at_end = False

    def start(self) -> None:
        self.has_names = copy_names(self.directory / "snapshot")
        super().start()

    def stop(self) -> None:
        if not self._is_undone_at_end:
            super().stop()
            return
        is_gone = self._run("list", self._session).returncode != 0
        with suppress(MendFailed) if is_gone else nullcontext():  # somebody destroyed it
            self._daemon.stop()

    @property
    def _place(self) -> Path:
        return self.directory / "runtime"

    def _prepare(self) -> None:
        """Confines the session to the processes, and ends it with this process."""
        undo = self._daemon.resources.enter_context(undone_at_end(Path(os.devnull)))
        undo.register(RunCommand((*self._daemon.join_prefix, "lttng", "--no-sessiond", "destroy", self._session)))
        self._is_undone_at_end = True
        self._lttng("untrack", "-u", "-s", self._session, "--vpid", "--all")
        self._lttng("track", "-u", "-s", self._session, f"--vpid={','.join(map(str, sorted(self.processes)))}")
