"""Fingerprint of a host and its software, and inherited settings that affect a run.

Variables of the tests, such as those of coverage tools and debuggers, are withheld from all child processes. Variables
that may be meant for the measured programs are passed on and recorded, and differences between two runs are reported.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.host.cpu import read_fields, read_governor, read_setting, read_smt, read_turbo


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """A machine and the software installed on it.

    The first six fields and `stack_cpus` form the host class. The others are recorded and shown, but do not prevent
    comparisons, so that regressions due to upgrades are found.

    Attributes:
        smt: ``on``, ``off`` or ``unknown``.
        governor: governor of the first CPU; ``none`` without frequency scaling.
        turbo: ``on``, ``off`` or ``unknown``.
        stack_cpus: CPUs of the stack alone; empty if it shares all.
        versions: versions of relevant packages, by name.
    """

    cpu_model: str
    cores: int
    smt: str
    governor: str
    turbo: str
    rmw: str
    kernel: str
    hostname: str
    stack_cpus: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def host_class(self) -> str:
        """Name of the folder of this class's baselines."""
        settings = (f"smt-{self.smt}", f"governor-{self.governor}", f"turbo-{self.turbo}")
        pinned = (f"cpus-{self.stack_cpus.replace(',', 'and')}",) if self.stack_cpus else ()
        parts = (self.cpu_model, f"{self.cores}-cores", *settings, self.rmw, *pinned)
        return "_".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in parts)


def take_fingerprint(*, rmw: str, versions: Mapping[str, str], stack_cpus: str = "") -> Fingerprint:
    model = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", read_setting(Path("/proc/cpuinfo")), re.MULTILINE)
    return Fingerprint(
        cpu_model=model.group(1).strip() if model else platform.machine(),
        cores=os.cpu_count() or 1,
        smt=read_smt(),
        governor=read_governor(),
        turbo=read_turbo(),
        rmw=rmw,
        kernel=platform.release(),
        hostname=platform.node(),
        stack_cpus=stack_cpus,
        versions=versions,
    )


def find_differences(head: Fingerprint, base: Fingerprint) -> list[tuple[str, str, str]]:
    """Packages whose versions differ: name, base version, head version (``absent`` if not installed)."""
    names = sorted({*head.versions, *base.versions})
    found = [(name, base.versions.get(name, "absent"), head.versions.get(name, "absent")) for name in names]
    found.append(("kernel", base.kernel, head.kernel))
    return [(name, before, after) for name, before, after in found if before != after]


_SETTINGS: Final = {
    "microcode": ("proc/cpuinfo", r"(?m)^microcode\s*:\s*(\S+)"),
    "firmware": ("sys/class/dmi/id/bios_version", "(.+)"),
    "clock source": ("sys/devices/system/clocksource/clocksource0/current_clocksource", "(.+)"),
    "transparent huge pages": ("sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
}
"""Settings that influence times: the file, and the form of its value."""

_KERNEL_OPTION: Final = re.compile(
    r"(?<!\S)(amd_pstate|clocksource|idle|intel_idle\.max_cstate|intel_pstate|irqaffinity|isolcpus|mitigations|nohz_full"
    r"|nosmt|preempt|processor\.max_cstate|rcu_nocbs|skew_tick|threadirqs|tsc)(?:=(\S+))?(?!\S)"
)
_OF_MIDDLEWARE: Final = re.compile(r"(CYCLONEDDS|FAST(DDS|RTPS)|RCUTILS|RMW|ROS_DISABLE|ZENOH)_(?!IMPLEM)").match


def find_settings(environment: Mapping[str, str], *, root: Path = Path("/")) -> dict[str, str]:
    """Settings of firmware, kernel and middleware, by name, and digests of the files that its variables name."""
    read = {name: re.search(form, read_setting(root / place)) for name, (place, form) in _SETTINGS.items()}
    found = {name: each[1] for name, each in read.items() if each}
    for option, value in _KERNEL_OPTION.findall(read_setting(root / "proc/cmdline")):
        found[f"kernel option {option}"] = value or "set"
    for name in filter(_OF_MIDDLEWARE, environment):
        found[name] = environment[name]
        files = [Path(each.removeprefix("file://")) for each in environment[name].split(",")]
        if any(texts := [read_setting(each) for each in files if os.path.isfile(each)]):  # noqa: PTH113 - no path is too long
            found[f"content of {name}"] = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    return found


WITHHELD: Final[Mapping[str, str]] = {
    "COVERAGE_*": "coverage of the tests, which a .pth file starts in every Python (patch = subprocess)",
    "COV_CORE_*": "the same of pytest-cov before 7",
    **dict.fromkeys(("PYDEVD_*", "DEBUGPY_*", "BUNDLED_DEBUGPY_PATH", "PYTHONBREAKPOINT"), "a debugger of the tests"),
    "PYTHONHUNTER": "traces every call (hunter)",
    "PYTHONMANHOLE": "opens a console in every Python (manhole)",
    "LINE_PROFILE": "times every line (line_profiler)",
    "PYTHONDEVMODE": "checks of a developer's Python, and slower memory",
    "PYTHONTRACEMALLOC": "traces every allocation",
    "PYTHONMALLOCSTATS": "prints at every new arena",
    "PYTHONASYNCIODEBUG": "checks every callback of asyncio",
    "PYTHONPROFILEIMPORTTIME": "times and prints every import",
    "PYTHONVERBOSE": "prints every import",
    "PYTHONDEBUG": "prints what the parser does",
    "PYTHONDUMPREFS*": "prints every object at the end",
    "PYTHONINSPECT": "does not end with its program",
    "PYTHONWARNINGS": "makes the tests' warnings errors",
    **dict.fromkeys(("PYTHONPERFSUPPORT", "PYTHON_PERF_JIT_SUPPORT"), "writes a map of every function for perf"),
    "LD_DEBUG*": "prints what the dynamic linker does",
    "LD_PROFILE*": "profiles a shared library",
    "LD_TRACE_LOADED_OBJECTS": "lists libraries in place of running",
    "MALLOC_TRACE": "logs every allocation (mtrace)",
}
"""Withheld variables, by `fnmatch` pattern, with their effect."""

PASSED_ON: Final[Mapping[str, str]] = {
    "LD_PRELOAD": "libraries in front of the program's own, such as an allocator",
    "LD_AUDIT": "libraries that watch the dynamic linker",
    "LD_BIND_NOW": "when symbols are resolved",
    "GLIBC_TUNABLES": "settings of the C library",
    "MALLOC_*": "settings of the C library's allocator, and of jemalloc",
    **dict.fromkeys(("TCMALLOC_*", "MIMALLOC_*"), "settings of an allocator"),
    **dict.fromkeys(("CPUPROFILE*", "HEAPPROFILE*", "HEAPCHECK*"), "gperftools"),
    "*SAN_OPTIONS": "settings of programs that are built with sanitizers",
    "PYTHONMALLOC": "Python's allocator",
    "PYTHONOPTIMIZE": "Python without assertions",
    "PYTHON_GIL": "Python's lock",
    "PYTHON_JIT": "Python's compiler",
    "PYTHON_CPU_COUNT": "the CPUs that Python reports",
    **dict.fromkeys(("OMP_*", "GOMP_*", "KMP_*", "OPENBLAS_*", "MKL_*"), "threads of numerical libraries"),
    "RUST_LOG": "logging of Zenoh",
}
"""Variables that are passed on, because they may be meant for the measured programs, with their effect."""

_PATH: Final = "PYTHONPATH"
_CUSTOMIZE: Final = ("sitecustomize.py", "usercustomize.py")
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


_IS_WITHHELD: Final = re.compile("|".join(map(translate, WITHHELD))).match
_IS_PASSED_ON: Final = re.compile("|".join(map(translate, PASSED_ON))).match


def pass_on(environment: Mapping[str, str], inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment for processes, without variables of `WITHHELD` that have the inherited value.

    A value that differs from that in `inherited` (by default the environment of this process) was set on purpose.
    """
    ours = os.environ if inherited is None else inherited
    kept = {name: value for name, value in environment.items() if not (_IS_WITHHELD(name) and ours.get(name) == value)}
    if kept.get(_PATH):
        kept[_PATH] = os.pathsep.join(each for each in kept[_PATH].split(os.pathsep) if not _starts_a_tool(each))
    return kept


def find_withheld(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that `pass_on` withholds; ``PYTHONPATH`` if it removes folders of it."""
    names = [name for name, value in environment.items() if value and _IS_WITHHELD(name)]
    return tuple(sorted([*names, *([_PATH] if any(map(_starts_a_tool, _folders(environment))) else [])]))


def find_influences(environment: Mapping[str, str], allowed: Collection[int] | None = None) -> dict[str, str]:
    """Inherited settings that influence a program, by name: variables, priority, scheduler and CPUs (`allowed`)."""
    influences = (name for name in sorted(environment) if _IS_PASSED_ON(name) and not _IS_WITHHELD(name))
    found = {name: environment[name] for name in influences if environment[name]}
    for name in {"LD_PRELOAD", "LD_AUDIT"} & found.keys():
        found[name] = " ".join(Path(each).name for each in re.split("[: ]+", found[name]) if each)
    custom = [each for each in _folders(environment) if _customizes(each) and not _starts_a_tool(each)]
    if custom:
        found[_PATH] = f"sitecustomize of {', '.join(Path(each).name for each in custom)}"
    niceness, policy = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
    allowed, cpus = allowed or os.sched_getaffinity(0), os.cpu_count() or 1
    if niceness:
        found["nice"] = str(niceness)
    if policy != os.SCHED_OTHER:
        found["scheduling policy"] = str(policy)
    if len(allowed) < cpus:
        found["CPUs"] = f"{','.join(map(str, sorted(allowed)))} of {cpus}"
    return found


def find_tracers(pids: Iterable[int]) -> dict[str, str]:
    """Programs that trace these processes (``strace -f``, a debugger), as an influence."""
    tracers = set()
    for pid in pids:
        tracer = read_fields(Path(f"/proc/{pid}/status")).get("TracerPid", "0")
        tracers.add(read_setting(Path(f"/proc/{tracer}/comm")))  # there is no process 0
    return {"ptrace": ", ".join(sorted(tracers - {""}))} if tracers - {""} else {}


def _folders(environment: Mapping[str, str]) -> list[str]:
    return [each for each in environment.get(_PATH, "").split(os.pathsep) if each]


def _customizes(folder: str) -> bool:
    return any(Path(folder, name).is_file() for name in _CUSTOMIZE)


def _starts_a_tool(folder: str) -> bool:
    """True for a folder by which an installed tool starts in every Python, such as ddtrace's and OpenTelemetry's."""
    return _customizes(folder) and not _INSTALLED.isdisjoint(Path(folder).parent.parts)


def pids_with(environment: Mapping[str, str]) -> list[int]:
    """Processes started with all these variables, except zombies and those of other users."""
    entries = {f"{name}={value}".encode() for name, value in environment.items()}
    return [pid for pid in psutil.pids() if entries <= read_environment(pid)]


def read_environment(pid: int, root: Path = Path("/")) -> set[bytes]:
    """Variables that a process was started with; empty for zombies and for processes of other users."""
    try:
        with open(f"{root}/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - a thousand times a second at the end
            return set(file.read().split(b"\0"))
    except OSError:
        return set()
