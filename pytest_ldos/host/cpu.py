"""CPUs: settings, speed, affinity of processes, scheduler groups, and theft. Paths are relative to a root, for tests.

Affinity belongs to a thread; a new thread inherits it from its creator, also across ``fork`` and ``exec``.
The program ``python -m pytest_ldos.host.cpu CPU SHARE`` uses a share of one CPU, see `steal`.

Reference: the kernel's ``Documentation/admin-guide/pm/cpufreq.rst`` and ``intel_pstate.rst``; ``sched(7)``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import psutil

from pytest_ldos.base.text import NS_PER_S

UNKNOWN: Final = "unknown"
SYSFS_CPU: Final = "sys/devices/system/cpu"
SMT_CONTROL: Final = f"{SYSFS_CPU}/smt/control"
_FLAGS: Final = {"1": "on", "0": "off"}


@dataclass(frozen=True)
class TurboSwitch:
    """The file that disables the clock's boost, relative to the root, and the value to write there."""

    place: str
    off: str


def read_smt(root: Path = Path("/")) -> str:
    """``on``, ``off`` or ``unknown``."""
    return _FLAGS.get(read_setting(root / SYSFS_CPU / "smt/active"), UNKNOWN)


def read_governors(root: Path = Path("/")) -> Mapping[str, str]:
    """Governor of each CPU, by the path of its setting; empty without frequency scaling."""
    files = sorted((root / SYSFS_CPU).glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return {str(file.relative_to(root)): read_setting(file) for file in files}


def read_governor(root: Path = Path("/")) -> str:
    """Governor of the first CPU; ``none`` without frequency scaling."""
    return read_setting(root / SYSFS_CPU / "cpu0/cpufreq/scaling_governor") or "none"


def read_turbo(root: Path = Path("/")) -> str:
    """``on``, ``off`` or ``unknown``."""
    switch = find_turbo_switch(root)
    if switch is None:
        return UNKNOWN
    value = read_setting(root / switch.place)
    return UNKNOWN if value not in _FLAGS else "off" if value == switch.off else "on"


def find_turbo_switch(root: Path = Path("/")) -> TurboSwitch | None:
    """Finds the switch; that of Intel's own driver has the opposite meaning."""
    files = {"intel_pstate/no_turbo": "1", "cpufreq/boost": "0"}
    switches = (TurboSwitch(f"{SYSFS_CPU}/{file}", off) for file, off in files.items())
    return next((switch for switch in switches if (root / switch.place).is_file()), None)


def read_isolated_cpus(root: Path = Path("/")) -> str:
    """The kernel's list, e.g. ``2-3``; empty if no CPU is isolated."""
    return read_setting(root / SYSFS_CPU / "isolated")


def read_setting(file: Path) -> str:
    """Content of a small file, empty if it cannot be read."""
    try:
        return file.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""


def read_fields(file: Path) -> dict[str, str]:
    """Values of a file of the form ``name: value``, by name; empty if it cannot be read."""
    lines = (line.partition(":") for line in read_setting(file).splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


Cpus = frozenset[int]

_MOST_PASSES: Final = 20


@dataclass(frozen=True)
class Thread:
    """A thread; its name is the kernel's, ``move_group/dq.recv`` if it differs from the process's."""

    pid: int
    tid: int
    name: str

    def describe(self) -> str:
        return f"thread {self.tid} of {self.name} (pid {self.pid})"


def our_cpus() -> Cpus:
    return frozenset(os.sched_getaffinity(0))


def describe_cpus(cpus: Collection[int]) -> str:
    """CPU list in the kernel's notation: ``0-2,5``."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


MOST_CPUS: Final = 1 << 13  # the most that Linux supports; larger numbers in a list are reduced to it


def parse_cpus(text: str) -> Cpus:
    """CPUs of a valid list in the kernel's notation; none for an empty one."""
    spans = [span.partition("-") for span in text.split(",") if span]
    ends = [(min(int(first), MOST_CPUS), min(int(last or first), MOST_CPUS)) for first, _, last in spans]
    return frozenset(cpu for first, last in ends for cpu in range(first, last + 1))


def reachable(cpus: Cpus) -> Cpus:
    """Those of the CPUs that exist and that this process may take, even if isolated and not among `our_cpus`."""
    ours, found = our_cpus(), frozenset[int]()
    with contextlib.suppress(OSError):  # it may take none of them
        os.sched_setaffinity(0, cpus)
        found = our_cpus()
    os.sched_setaffinity(0, ours)
    return found


@contextlib.contextmanager
def kept_off(cpus: Cpus) -> Iterator[Cpus]:
    """Confines this process, and what it starts, to its other CPUs inside the ``with`` block; yields these, if any."""
    others = our_cpus() - cpus if cpus else frozenset()
    before = confine(lambda: [os.getpid()], others) if others else {}
    try:
        yield others
    finally:
        release(lambda: [os.getpid()], before)


def with_descendants(pids: Iterable[int]) -> list[int]:
    """The running ones of the given processes, with all their descendants."""
    found: dict[int, None] = {}
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.update(dict.fromkeys([pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]))
    return list(found)


def read_affinities(pids: Iterable[int]) -> dict[Thread, Cpus]:
    found = {}
    for pid in pids:
        folder = Path(f"/proc/{pid}/task")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            process = read_setting(folder / str(pid) / "comm") or "?"
            for entry in os.listdir(folder):  # noqa: PTH208 - hundreds of threads, now and then while a stack is measured
                name = read_setting(folder / entry / "comm") or "?"
                thread = Thread(pid, int(entry), name if name == process else f"{process}/{name}")
                with contextlib.suppress(ProcessLookupError):
                    found[thread] = frozenset(os.sched_getaffinity(thread.tid))
    return found


def confine(pids: Callable[[], Iterable[int]], cpus: Cpus) -> dict[Thread, Cpus]:
    """Confines all threads of the processes to `cpus`, in passes until there is no new one; returns their former CPUs.

    A thread that is already confined to fewer CPUs is unchanged. Raises `PermissionError` for processes of another
    user, after it has undone everything, and `OSError` if none of the CPUs exists.
    """
    before = read_affinities(pids())
    try:
        for _ in range(_MOST_PASSES):
            outside = {thread: had for thread, had in read_affinities(pids()).items() if not had <= cpus}
            if not outside:
                break
            for thread, had in outside.items():
                before.setdefault(thread, had)
                _set(thread, had & cpus or cpus)
    except OSError:
        release(pids, before)
        raise
    return before


def release(pids: Callable[[], Iterable[int]], before: dict[Thread, Cpus]) -> None:
    """Restores the CPUs of every thread, in passes as `confine`; a new thread gets the former CPUs of its process."""
    if not before:
        return
    of_process: dict[int, Cpus] = {}
    for thread, had in before.items():
        of_process[thread.pid] = of_process.get(thread.pid, frozenset()) | had
    widest = frozenset().union(*before.values())
    had_by_tid = {thread.tid: had for thread, had in before.items()}
    released: set[Thread] = set()
    for _ in range(_MOST_PASSES):
        left = read_affinities(pids()).keys() - released
        for thread in left:
            with contextlib.suppress(PermissionError):  # a thread without permission was never confined
                _set(thread, had_by_tid.get(thread.tid, of_process.get(thread.pid, widest)))
        released |= left
        if not left:
            break


def _set(thread: Thread, cpus: Cpus) -> None:
    """Sets the CPUs of a thread; does nothing if it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.sched_setaffinity(thread.tid, cpus)


SWITCH: Final = "proc/sys/kernel/sched_autogroup_enabled"
_V2_MOUNTS: Final = ("sys/fs/cgroup", "sys/fs/cgroup/unified")


@dataclass(frozen=True)
class SchedulingGroup:
    """Scheduler group of a process: the control group, or in the root that of the session if the kernel groups so."""

    autogroup: str  # the kernel's name of its session's group, e.g. ``/autogroup-913``; empty if unknown
    cgroup: str  # path of its control group if that has a CPU share; empty in the root
    by_session: bool

    @property
    def effective(self) -> str:
        return self.cgroup or (self.autogroup if self.by_session else "/")

    def describe(self) -> str:
        if self.cgroup:
            return f"control group {self.cgroup}"
        return self.autogroup or "the root group"


def is_grouped_by_session(root: Path = Path("/")) -> bool:
    return read_setting(root / SWITCH) == "1"


def read_scheduling_group(pid: int, root: Path = Path("/")) -> SchedulingGroup | None:
    """Reads the group of a running process; ``None`` if it has ended."""
    if not (root / f"proc/{pid}").exists():
        return None
    words = read_setting(root / f"proc/{pid}/autogroup").split()
    return SchedulingGroup(words[0] if words else "", _cpu_cgroup(pid, root), is_grouped_by_session(root))


def _cpu_cgroup(pid: int, root: Path) -> str:
    """The nearest control group with a CPU share: in version 2, one with the CPU controller; empty for the root."""
    mounts = [root / each for each in _V2_MOUNTS if (root / each / "cgroup.controllers").is_file()]
    lines = [line.split(":", 2) for line in read_setting(root / f"proc/{pid}/cgroup").splitlines()]
    for number, controllers, group in lines:
        if "cpu" in controllers.split(","):
            return "" if group == "/" else group
        path = group
        while number == "0" and path.strip("/"):
            if any((mount / path.lstrip("/") / "cpu.weight").is_file() for mount in mounts):
                return path
            path = path.rpartition("/")[0]
    return ""


_LOOPS: Final = 40_000


def time_fixed_work() -> int:
    """CPU time of a fixed computation of about a millisecond, ns.

    On shared machines a core's speed can halve within seconds (hyperthread, clock, caches). CPU time excludes waits for
    a CPU or for the interpreter, which the program under test may cause.
    """
    began_ns = time.thread_time_ns()
    total = 0
    for number in range(_LOOPS):
        total += number * number
    return time.thread_time_ns() - began_ns


THIEF: Final = "cpu_thief"
_PRIORITY: Final = 90  # real-time priority, below the kernel's own threads
_PERIOD_NS: Final = 10_000_000


def thief_commands(share: float, cpus: Cpus | None = None) -> dict[str, list[str]]:
    """One named command for each of the CPUs, by default those of this process; none for a share of 0."""
    chosen = sorted(cpus or our_cpus()) if share > 0 else []
    return {f"{THIEF}_{cpu}": [sys.executable, "-m", "pytest_ldos.host.cpu", str(cpu), str(share)] for cpu in chosen}


def steal(cpu: int, share: float) -> NoReturn:
    """Uses a share of one CPU, never more, because it measures its own CPU time.

    If permitted (`SCHED_FIFO`, root or ``CAP_SYS_NICE``), it preempts everything, even a real-time control loop
    (ros2_control's has priority 50), like a neighbour on the same machine; otherwise it competes, and gets less on a
    busy CPU.
    """
    Path("/proc/self/comm").write_text(THIEF, "ascii")
    os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    while True:
        ends_ns = time.monotonic_ns() + _PERIOD_NS
        has_had_ns = time.thread_time_ns() + round(share * _PERIOD_NS)
        while time.thread_time_ns() < has_had_ns and time.monotonic_ns() < ends_ns:
            pass
        time.sleep(max(0, ends_ns - time.monotonic_ns()) / NS_PER_S)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    steal(int(sys.argv[1]), float(sys.argv[2]))
