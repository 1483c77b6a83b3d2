"""Table of all settings (name, type, default and meaning), and the file of a project's settings.

The command line (``--ldos-NAME``), the environment (``LDOS_NAME``), markers and TOML keys are made from this table.

Every pytest run with the plugin installed loads this module, and looks for settings above its tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

from pytest_ldos.scenario import words

OWN_FILE: Final = "ldos.toml"
"""Alternative to ``[tool.ldos]`` in pyproject.toml."""

CI_WAIT_S: Final = 1800
"""Default wait for the machine in CI. It allows for several comparisons of a scenario (30 + 30 trials take six
minutes), and is well below the jobs' limit of three hours, so that a message names the holder."""

LEFT_OUT: Final = "LDOS_LEFT_OUT"
"""Variable that ``.ci/ros2-setup`` sets for its run."""

OTHER_VARIABLES: Final[Mapping[str, str]] = {
    "LDOS_THREADS": "threads that decode a trace at once (default: the number of CPUs)",
    "LDOS_LOCK": "name of the lock that a measuring session holds: sessions with different locks do not wait for each "
    "other, and disturb each other",
    "LDOS_ROOT": "folder in place of `/` in which `ldos measure` looks for /opt/ros and /etc/ldos-lab, for tests",
    LEFT_OUT: "packages of `ros_ws` that `make ros2-baseline` could not build and left out, with the reasons",
}

REPORT_SUFFIXES: Final = (".html", ".md", ".json")


@dataclass(frozen=True)
class Option:
    """One setting.

    Attributes:
        metavar: placeholder of the argument in help texts; empty for a flag, which takes none.
        parse: converts a text or TOML value to the value; raises `ValueError` with the required form.
        meaning: help text; a default in words is at its end, others are added.
        per_scenario: True if it may also be given by a marker or for one scenario in TOML.
        is_repeatable: True if it may be given several times; `parse` gets a sequence, or a text with commas.
    """

    name: str
    metavar: str
    parse: Callable[[Any], Any]
    meaning: str
    default: Any = None
    per_scenario: bool = False
    is_repeatable: bool = False

    @property
    def is_flag(self) -> bool:
        return not self.metavar

    @property
    def flag(self) -> str:
        return f"--ldos-{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"LDOS_{self.name.upper()}"

    @property
    def help(self) -> str:
        is_shown = self.default is not None and self.default is not False and self.default not in ("", ())
        default = f"{self.default:g}" if isinstance(self.default, float) else self.default
        return f"{self.meaning} (default: {default})" if is_shown else self.meaning


def _at_least(least: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        number = int(words.parse_number(int, value, "a whole number"))
        if number < least:
            raise ValueError(f"a whole number, at least {least}")
        return number

    return parse


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _share(value: Any) -> float:
    number = words.parse_number(float, value, "a number")
    if not 0 <= number <= 1:
        raise ValueError("a number between 0 and 1")
    return number


def _path(value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError("a path")
    return Path(value)


def _report_files(value: Any) -> tuple[Path, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise ValueError("files, or one with commas between them")
    files = tuple(Path(each.strip()) for each in given)
    if not all(file.suffix in REPORT_SUFFIXES for file in files):
        raise ValueError(f"files that end with {', '.join(REPORT_SUFFIXES)}")
    return files


def _one_of(kind: type[StrEnum]) -> Callable[[Any], StrEnum]:
    return partial(words.parse_word, kind)


def _flag(name: str, meaning: str, *, default: bool | None = False) -> Option:
    return Option(name, "", words.parse_truth, meaning, default)


OPTIONS: Final[Mapping[str, Option]] = {
    option.name: option
    for option in (
        Option(
            "stack",
            "KIND",
            _one_of(words.StackKind),
            "stack under test: ros2, embedded, or auto: ros2 if it is installed and sourced (default: auto)",
        ),
        Option(
            "sim",
            "WHAT",
            _one_of(words.Simulation),
            "simulator or hardware of the ros2 stack: gz, mock, or auto: gz if it is installed (default: auto)",
        ),
        Option("rmw", "NAME", str, "middleware of the ros2 stack (default: RMW_IMPLEMENTATION, or rmw_fastrtps_cpp)"),
        Option("trials", "N", _at_least(1), "measured trials of each scenario", 10, per_scenario=True),
        Option(
            "max_trials",
            "N",
            _at_least(0),
            "add trials up to this number while a comparison is inconclusive; 0 adds none",
            0,
            per_scenario=True,
        ),
        Option(
            "base",
            "PATH_OR_REV",
            _text,
            "version to measure interleaved with this one, instead of comparing with a stored baseline: a "
            "revision (git), a checkout, an environment, or for the ros2 stack an install prefix",
            "",
        ),
        Option(
            "confirm",
            "MINUTES",
            _at_least(0),
            "time limit for measuring a suspicious run again, interleaved with the baseline's commit; 0: the stored "
            "baseline alone decides",
            10,
        ),
        Option(
            "evidence",
            "PAIRS",
            _at_least(0),
            "starts of each version that are profiled after interleaved versions regressed, to report functions whose "
            "CPU time grew; they are not judged; 0: none",
            2,
        ),
        Option(
            "head",
            "REV",
            _text,
            "revision (git) whose stack is measured in place of this checkout's; tests and settings stay this "
            "checkout's; for the ros2 stack its workspace is built",
            "",
        ),
        _flag(
            "build",
            "build head's ROS 2 workspace before it is measured, as [tool.ldos.base] says (a base that is built "
            "has head built, too)",
        ),
        Option(
            "block",
            "N",
            _at_least(1),
            "trials of one version between two stack starts, and trials that are added at once, with "
            "--ldos-max-trials (default: a sixth of the trials, at least 4; with --ldos-base a fifteenth, at least 2, "
            "and a sixth is added; for planning, the number of problems if that leaves 3 starts, with --ldos-base 5)",
        ),
        Option(
            "warmup",
            "N",
            _at_least(0),
            "number of trials dropped after each start; the embedded arm only plans in them",
            1,
            per_scenario=True,
        ),
        Option(
            "seeds",
            "MODE",
            _one_of(words.SeedMode),
            "the planner's random seeds: fixed for each trial index, or random",
            words.SeedMode.FIXED,
            per_scenario=True,
        ),
        Option("success_rate", "RATE", _share, "expected share of successful trials, 0 to 1", 1.0, per_scenario=True),
        Option("goals", "SET", _text, "goal set that trials move to", "reach", per_scenario=True),
        Option(
            "unavailable",
            "WHAT",
            _one_of(words.WhenUnavailable),
            "what to do if a scenario's load is not installed or not permitted: error or skip",
            words.WhenUnavailable.ERROR,
            per_scenario=True,
        ),
        Option(
            "config",
            "FILE",
            _path,
            "read settings from this TOML file (default: from the tests upwards, the nearest ldos.toml, or "
            "pyproject.toml with [tool.ldos])",
        ),
        Option(
            "output",
            "DIR",
            _path,
            "folder for runs, traces and local baselines, below the project's folder",
            Path(".ldos"),
        ),
        Option(
            "baselines",
            "DIR",
            _path,
            "judge by the repository's baselines in this folder of the project; if not set, those in baselines are "
            "shown until this machine has its own",
            Path("baselines"),
        ),
        Option("history", "DIR", _path, "add judged runs to the history in this directory, below the project's folder"),
        _flag("update_baseline", "record this run as the new baseline of its scenarios"),
        _flag("resume", "skip cells of sweeps (ldos_sweep) that were measured before in the same version"),
        _flag(
            "strict",
            "fail if no verdict is possible: no baseline, not comparable, nothing judged, inconclusive "
            "(default: only when CI is set in the environment)",
            default=None,
        ),
        Option(
            "wait",
            "SECONDS",
            _at_least(0),
            "time to wait for another measuring session to end, instead of being refused at once "
            f"(default: {CI_WAIT_S} when CI is set in the environment, otherwise 0)",
        ),
        _flag(
            "profile",
            "profile the measured processes: flame graph and speedscope file in the run's folder, and with "
            "--ldos-base their difference; such trials do not become a baseline",
        ),
        Option(
            "profiler",
            "TOOL",
            _one_of(words.ProfilerKind),
            "profiler: perf, py-spy (names Python's functions), py-spy+perf (py-spy for processes of Python, perf for "
            "others), or auto: perf if it is permitted, else py-spy",
            words.ProfilerKind.AUTO,
        ),
        Option("profile_rate", "HZ", _at_least(1), "samples per second of each CPU", words.DEFAULT_RATE_HZ),
        _flag(
            "syscalls",
            "count the measured processes' system calls with strace; this distorts all times: such trials are "
            "invalid, and do not become a baseline",
        ),
        Option(
            "traces",
            "WHICH",
            _one_of(words.KeepTraces),
            "traces to keep: failed (scenarios that failed or regressed), all or none",
            words.KeepTraces.FAILED,
        ),
        Option("traces_limit_mb", "MB", _at_least(0), "disk space for kept traces; the oldest are deleted first", 2000),
        Option(
            "report",
            "FILE",
            _report_files,
            "also write a report; the name ends with .html, .md or .json (may be given several times)",
            (),
            is_repeatable=True,
        ),
        _flag("summary", "append the report to the job summary of the GitHub workflow"),
        Option("benchmark_json", "FILE", _path, "also write duration metrics in pytest-benchmark's format"),
    )
}

PER_SCENARIO: Final = tuple(sorted(option.name for option in OPTIONS.values() if option.per_scenario))

PROJECT_FILE: Final = "pyproject.toml"

SETTINGS_FILES: Final = (OWN_FILE, PROJECT_FILE)
"""Files that may hold a project's settings; only one of them may."""

_WORD: Final = b"ldos"
_OUR_NAME: Final = b"pytest-ldos"
"""The distribution's name, which projects that only depend on it also contain."""


def find_settings_file(place: Path, look: Callable[[Path], Path | None] | None = None) -> Path | None:
    """The settings file of the project that a file or folder belongs to: the nearest one upwards.

    Looks above the path as given; if that finds none, above the path with links resolved. `look` finds the settings
    file in a folder: `settings_file_in`, or a cache of it.
    """
    named = Path(os.path.abspath(place))  # noqa: PTH100 - keeps links
    for start in dict.fromkeys([named, Path(os.path.realpath(place))]):
        found = next(filter(None, map(look or settings_file_in, (start, *start.parents))), None)
        if found is not None:
            return found
    return None


def settings_file_in(folder: Path) -> Path | None:
    """The settings file in a folder: ``ldos.toml``, or a ``pyproject.toml`` with ``[tool.ldos]``."""
    own, shared = folder / OWN_FILE, folder / PROJECT_FILE
    if _is_file(own):
        return own
    return shared if has_table(shared) else None


def has_table(file: Path) -> bool:
    """True if a ``pyproject.toml`` has ``[tool.ldos]``, or cannot be read: reading its settings reports the reason.

    Parses it only if it contains our name.
    """
    if not _is_file(file):
        return False
    try:
        content = file.read_bytes()
        if _WORD not in content.replace(_OUR_NAME, b""):
            return False
        import tomllib  # noqa: PLC0415 - for files that may have settings only

        tools = tomllib.loads(content.decode("utf-8")).get("tool")
    except (OSError, ValueError):
        return True
    return isinstance(tools, dict) and "ldos" in tools


def _is_file(file: Path) -> bool:
    """True for a file; False in a folder that may not be searched, where `Path.is_file` raises."""
    return os.path.isfile(file)  # noqa: PTH113
