"""Records with LTTng-UST: a session with its channel and contexts, in a private session daemon.

The session daemon is private, so that the trace has no other processes of the user: it has its own ``LTTNG_HOME``.
As root, it also has a private mount namespace with its own run directory, which the recorded processes join.
All of it ends with this process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest_ldos.record
from pytest_ldos.base.errors import NotWritten, RecordingFailed, Unavailable
from pytest_ldos.base.files import writing
from pytest_ldos.base.ros2 import RECORDED, TRACEPOINTS_OFF
from pytest_ldos.base.text import format_bytes, one_line
from pytest_ldos.host.availability import Availability, find_programs, program_version, run_program
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.temporary import EndProcesses, make_folder, temporary_place, undone_at_end
from pytest_ldos.record import run_directory
from pytest_ldos.record.protocol import RecordingReport, last_error_line, run_tool

MI_NAMESPACE: Final = {"mi": "https://lttng.org/xml/ns/lttng-mi"}

_FALSE_WRAP: Final = 1 << 63
"""Excess that LTTng's consumer adds when a stream's counter of discarded events decreases, as if it had overflowed.

An unfinished packet has a counter of 0, so that the counter decreases once and then returns.
"""

_WRITE_FAULT: Final = re.compile(
    r"Error in write mmap .*?: (?P<reason>[^:]+?) \(in lttng_consumer_on_read_subbuffer_mmap"
)
"""Messages in the consumer's log about data that it failed to write and does not count."""


def parse_losses(listing: str) -> RecordingReport:
    root = ET.fromstring(listing)  # noqa: S314 - written by our own session daemon

    def counts(name: str) -> list[int]:
        return [int(element.text or 0) for element in root.iterfind(f".//mi:{name}", MI_NAMESPACE)]

    discarded = sum(count % _FALSE_WRAP for count in counts("discarded_events"))
    return RecordingReport(discarded, sum(counts("lost_packets")))


PLACE: Final = Path("/dev/shm")  # noqa: S108 - where the C library keeps shared memory
_POSSIBLE_CPUS: Final = Path("/sys/devices/system/cpu/possible")
_METADATA_BYTES: Final = 1 << 20
_SIZES: Final = {"k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def require_room_for_buffers(size: str, count: int, *, place: Path = PLACE, cpus: Path = _POSSIBLE_CPUS) -> None:
    """Requires space for a channel's `count` sub-buffers of a size such as ``1M`` for each possible CPU.

    Each has an extra sub-buffer for the reader. Raises `NotWritten` if there is too little space.
    """
    size_bytes = int(size[:-1]) * _SIZES[size[-1]] if size[-1] in _SIZES else int(size)
    needed = possible_cpus(cpus) * (count + 1) * size_bytes + _METADATA_BYTES
    try:
        free = shutil.disk_usage(place).free
    except FileNotFoundError:
        raise NotWritten(
            f"there is no {place}, where the tracer has its buffers",
            remedy=f"sudo mkdir {place} && sudo mount -t tmpfs tmpfs {place}",
        ) from None
    if free < needed:
        raise NotWritten(
            f"the tracer's buffers do not fit into {place}: {format_bytes(needed)} are needed, "
            f"and {format_bytes(free)} are free",
            remedy=f"remove unused files there (ldos doctor), or sudo mount -o remount,size=1G {place} "
            "(a container: --shm-size=1g)",
        )


def possible_cpus(file: Path = _POSSIBLE_CPUS) -> int:
    """Number of CPUs for LTTng: one more than the last of ``0-3`` or ``0,2-5``; without ``/sys``, the present CPUs."""
    try:
        return int(file.read_text("ascii").strip().replace("-", ",").split(",")[-1]) + 1
    except FileNotFoundError:
        return os.sysconf("SC_NPROCESSORS_CONF")


CHANNEL: Final = "ldos"
CONTEXTS: Final = ("vpid", "vtid", "procname")
SUBBUFFER_SIZE: Final = "1M"
SUBBUFFER_COUNT: Final = 16  # sub-buffers per CPU and user: two seconds of a 4000 msg/s flood with all its events

_MARK: Final = "PYTEST_LDOS_TRACER"  # environment variable of the daemon's processes, absent from recorded processes
_LONGEST_SOCKET: Final = ".lttng/ustconsumerd64/command"
"""The longest socket path below the daemon's home (``defaults.h`` of lttng-tools)."""

_READY_TIMEOUT_S: Final = 10.0
_COMMAND_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.01


def daemon_home() -> Path:
    """Returns an unused path for a daemon's home that is short enough for its sockets; raises `NotWritten`."""
    return temporary_place("ldos-lttng-", socket=_LONGEST_SOCKET)


def lttng_available() -> Availability:
    """Checks for the programs, a short path for sockets, and, as root, for mount namespaces."""
    programs = find_programs(("lttng", "lttng-sessiond"), package="lttng-tools")
    if not programs.ok:
        return programs
    try:
        daemon_home()
    except NotWritten as error:
        return Availability(False, error.message, error.remedy)
    if not _is_root():
        return programs
    probe = run_program([*run_directory.COMMAND, "true"])
    if probe.returncode == 0:
        return programs
    return Availability(
        False,
        f"root cannot have a private {run_directory.RUN_DIRECTORY} here ({probe.stderr.strip()})",
        "run as an ordinary user, or give the container CAP_SYS_ADMIN",
    )


def lttng_version() -> str:
    """``LTTng 2.13.9``."""
    return program_version("LTTng", "lttng")


_REGISTER_TIMEOUT: Final = "LTTNG_UST_REGISTER_TIMEOUT"
"""Time for which a process waits to be registered, ms. After LTTng's default, 3 s, it would run unrecorded."""

WRAPPERS: Final = {f"lttng_ust_{name}:*": f"liblttng-ust-{name}-wrapper.so.1" for name in ("libc", "pthread")}
"""LTTng's libraries that emit events of the calls of other libraries' functions if they are preloaded."""

_CALLS: Final = ("calls", 4, ("vpid", "vtid", "ip"))  # the channel of these events
_CALLERS: Final = "libldos_callers.so.1"
_PRELOADING: Final = """
export LD_PRELOAD="$1${LD_PRELOAD:+:$LD_PRELOAD}" LD_LIBRARY_PATH="$2${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
shift 2; exec "$@" """


def preloading(events: Collection[str]) -> Sequence[str]:
    """Command prefix that preloads the wrappers that emit `events`; raises `Unavailable` if one is missing."""
    wrappers = [library for pattern, library in WRAPPERS.items() if pattern in events]
    if not wrappers:
        return ()
    folder = next((each for each in pytest_ldos.record.__path__ if (Path(each) / _CALLERS).is_file()), "/")
    command = ("sh", "-c", _PRELOADING, "sh", ":".join((_CALLERS, *wrappers)), folder)
    errors = run_program([*command, "true"]).stderr  # the loader ignores what it cannot preload
    if missing := [library for library in (_CALLERS, *wrappers) if library in errors]:
        it = "pytest-ldos again" if _CALLERS in missing else "LTTng-UST 2.13 (liblttng-ust1, Ubuntu: liblttng-ust1t64)"
        remedy = f"install {it}, or leave the metric out"
        raise Unavailable(f"{', '.join(missing)} cannot be preloaded to record what a metric counts", remedy=remedy)
    return command


class LttngRecorder:
    """A recording session; see `Recorder`. The trace's `directory` must not exist yet.

    If `lossless`, recorded processes wait for space in full buffers; that disturbs them: not for measurements. `events`
    are patterns of events to record in addition to `RECORDED`; those of calls are recorded from `follow` on.
    """

    def __init__(
        self,
        directory: Path,
        log_directory: Path,
        *,
        lossless: bool = False,
        events: Sequence[str] = (),
        daemon: PrivateDaemon | None = None,
    ) -> None:
        self.name = lttng_version()
        self.directory = directory
        self.processes: Mapping[int, str] = {}
        self._lossless = lossless
        self._events = (*RECORDED, *(each for each in events if each not in WRAPPERS))
        self._calls = [each for each in events if each in WRAPPERS]
        self._settings = {TRACEPOINTS_OFF: "", **({"LTTNG_UST_ALLOW_BLOCKING": "1"} if lossless else {})}
        self._settings[_REGISTER_TIMEOUT] = os.environ.get(_REGISTER_TIMEOUT, "30000")  # ms
        self._preloading = preloading(events)
        self._session = f"ldos-{os.getpid()}-{time.monotonic_ns()}"
        self._daemon = PrivateDaemon(log_directory) if daemon is None else daemon
        self._is_stopped = False
        self._is_on_disk = False

    @property
    def prefix(self) -> Sequence[str]:
        return (*self._daemon.join_prefix, *self._preloading)

    @property
    def environment(self) -> Mapping[str, str]:
        return {**self._daemon.environment, **self._settings}

    @property
    def open_environment(self) -> Mapping[str, str]:
        return {**self._daemon.open_environment, **self._settings}

    def start(self) -> None:
        require_room_for_buffers(SUBBUFFER_SIZE, SUBBUFFER_COUNT + (_CALLS[1] + 1 if self._calls else 0))
        try:
            self._daemon.start()
            self._lttng("create", self._session, f"--output={self._place.resolve()}")
            when_full = "--blocking-timeout=inf" if self._lossless else "--discard"
            for channel, count, contexts in ((CHANNEL, SUBBUFFER_COUNT, CONTEXTS), *([_CALLS] if self._calls else [])):
                options = (f"--subbuf-size={SUBBUFFER_SIZE}", f"--num-subbuf={count}", when_full)
                self._lttng("enable-channel", "-u", "-s", self._session, channel, *options)
                words = [word for context in contexts for word in ("-t", context)]
                self._lttng("add-context", "-u", "-s", self._session, "-c", channel, *words)
            self._lttng("enable-event", "-u", "-s", self._session, "-c", CHANNEL, ",".join(self._events))
            self._prepare()
            self._lttng("start", self._session)
        except RecordingFailed:
            self.stop()
            raise

    @property
    def _place(self) -> Path:
        """The session's output."""
        return self.directory

    def _prepare(self) -> None:
        """Called before the session is started."""
        return

    def follow(self, pids: Collection[int]) -> None:
        which = " || ".join(f"$ctx.vpid == {pid}" for pid in sorted(pids))
        for pattern in self._calls if pids else ():
            self._lttng("enable-event", "-u", "-s", self._session, "-c", _CALLS[0], pattern, "--filter", which)

    def pause(self) -> RecordingReport:
        if self._calls:  # libraries that were loaded since the start name the callers in them
            self._lttng("regenerate", "statedump", "-s", self._session)
        self._lttng("stop", self._session)
        self._is_on_disk = True
        report = parse_losses(self._lttng("--mi", "xml", "list", self._session))
        found = _WRITE_FAULT.search(read_setting(self._daemon.log))
        return report if found is None else replace(report, fault=one_line(found["reason"]))

    def resume(self) -> None:
        self._is_on_disk = False
        self._lttng("start", self._session)

    def rotate(self) -> Path:
        self._is_on_disk = False
        self._lttng("rotate", self._session)
        return self._place / "archives"

    def stop(self) -> None:
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._daemon.is_running:
            # The client polls for data every 200 ms; a paused session has no data left.
            self._run("destroy", *(["--no-wait"] if self._is_on_disk else []), self._session)
        self._daemon.stop()

    def _lttng(self, *arguments: str) -> str:
        """Runs a command of the client; raises `RecordingFailed` if it fails, or if the daemon has ended."""
        return _output_of(self._run(*arguments), arguments, remedy=f"see the session daemon's log, {self._daemon.log}")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return _run(("--no-sessiond", *arguments), self._daemon.join_prefix, self._daemon.environment)


def run_lttng(*arguments: str, own_daemon: bool = False) -> str:
    """Runs LTTng's client at the session daemon of this environment; starts one if `own_daemon` and none runs.

    Raises `RecordingFailed` with LTTng's reason.
    """
    done = _run(arguments if own_daemon else ("--no-sessiond", *arguments))
    return _output_of(done, arguments, remedy="`lttng list` must work: be its user, with its LTTNG_HOME, or root")


def _run(
    arguments: Sequence[str], prefix: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [*prefix, "lttng", *arguments]
    done = run_tool(command, limit_s=_COMMAND_TIMEOUT_S, environment={**os.environ, **(environment or {})})
    if done is None:
        raise RecordingFailed(f"`lttng {' '.join(arguments)}` did not return")
    return done


def _output_of(done: subprocess.CompletedProcess[str], arguments: Sequence[str], *, remedy: str) -> str:
    if done.returncode != 0:
        reason = last_error_line(done.stderr.strip() or done.stdout) or "no reason given"
        raise RecordingFailed(f"`lttng {' '.join(arguments)}` failed: {reason}", remedy=remedy)
    return done.stdout


class PrivateDaemon:
    """A session daemon of our own, with what its clients and recorded processes need; see `Recorder`."""

    def __init__(self, log_directory: Path) -> None:
        self._child: Child | None = None
        self._log_directory = log_directory
        self.resources = ExitStack()
        self._home: Path | None = None
        self.log = log_directory / "lttng-sessiond.log"
        self.join_prefix: Sequence[str] = ()
        self.environment: Mapping[str, str] = {}
        self.open_environment: Mapping[str, str] = {}

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    def start(self) -> None:
        undo = self.resources.enter_context(undone_at_end(Path(os.devnull)))
        self._home = daemon_home()
        make_folder(self._home, undo)
        # Its consumer, and workers of both, would run forever if it is killed before they connect.
        undo.register(EndProcesses(_MARK, self._home.name))
        self.environment = {"LTTNG_HOME": str(self._home)}
        command = ["lttng-sessiond", "--no-kernel"]
        if _is_root():
            command = [*run_directory.COMMAND, *command]
        marked = {**self.environment, _MARK: self._home.name}
        group = ProcessGroup(log_directory=self._log_directory, environment=marked)
        self.resources.callback(group.stop)
        self._child = group.start("lttng-sessiond", command)
        if _is_root():
            target = f"--target={self._child.pid}"
            self.join_prefix = ("nsenter", target, "--mount", "--root", f"--wdns={Path.cwd()}", "--")
        self._await_ready()
        self.open_environment = {"LTTNG_HOME": str(self._open_door())} if _is_root() else self.environment

    def _open_door(self) -> Path:
        """Creates a home with links to the private run directory's sockets, for processes outside its mount namespace.

        A process inside must not use it, because it would register twice.
        """
        assert self._child is not None
        assert self._home is not None
        home = self._home / "open"
        sockets = home / ".lttng"
        with writing(sockets):
            sockets.mkdir(parents=True)
        inside = Path(f"/proc/{self._child.pid}/root{run_directory.RUN_DIRECTORY}")
        for socket in inside.glob("lttng-ust-sock-*"):
            (sockets / socket.name).symlink_to(socket)
        return home

    def _await_ready(self) -> None:
        assert self._child is not None
        mounts = Path(f"/proc/{self._child.pid}/mountinfo")
        command = [*self.join_prefix, "lttng", "--no-sessiond", "list"]
        environment = {**os.environ, **self.environment}
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and self.is_running:
            # Before its private run directory is mounted, a client would connect to another daemon.
            is_mounted = not _is_root() or f" {run_directory.RUN_DIRECTORY} " in read_setting(mounts)
            if is_mounted and run_program(command, environment=environment).returncode == 0:
                return
            time.sleep(_POLL_S)
        raise RecordingFailed(
            f"the LTTng session daemon did not become ready\n{self._child.last_lines()}", remedy=f"see {self.log}"
        )

    def stop(self) -> None:
        self.resources.close()


def _is_root() -> bool:
    return os.geteuid() == 0
