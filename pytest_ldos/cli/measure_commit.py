"""Measures a commit in a job of a CI, interleaved with a base if there is one, and leaves the results in results/.

Usage: ldos measure [pack]

Every CI calls this: GitHub's workflows, and the recipes in examples/ci. It runs in the root of a project, whose tests,
scenarios and settings measure, with pytest-ldos of the checkout that this file belongs to. Only the stack is of the
commit. Earlier contents of results/ are removed.

GATE_STACK      ros2, embedded, or both. Empty: [tool.ldos.stack], else /etc/ldos-lab/stack (written by lab/bootstrap),
                else ros2 if it is sourced or in /opt/ros, else embedded. On ros2 the workspaces of both versions are
                built ([tool.ldos.base]). A stack that cannot be measured is infra; no other takes its place.
                Both are measured one after the other into one report; the worse verdict counts.
GATE_COMMIT     the commit, 40 hexadecimal digits; `ldos measure` uses what is checked out by default
GATE_BASE       revision to interleave with; empty: the stored baseline. 40 zeros (a new branch): its parent
GATE_FROM       folder of another checkout with the whole history, from which missing commits are fetched
GATE_SCENARIOS  names, separated by spaces (baseline cpu_load msg_load cpu_limit)
GATE_TRIALS     measured trials of each (10)
GATE_MAX_TRIALS number up to which trials are added while a comparison is inconclusive (30)
GATE_MINUTES    time limit of the job [min]; a longer run, by a rough estimate without builds, is refused
GATE_RECORD     true: record the commit as the baseline, compare with nothing
GATE_BIN        folder of the programs python and ldos; set by `ldos measure`. Empty: `make setup` makes .venv, and
                `make ros2-setup`, called with ROS 2 sourced, .venv-ros2, in the checkout that this file belongs to
LDOS_ROOT       folder in place of / for /etc/ldos-lab and /opt/ros, for tests

results/result.json, report.html    the report, for programs and for people
results/traces/*.pftrace            kept traces (of what failed or regressed), for Perfetto
results/baselines/                  with GATE_RECORD: to be committed as baselines/
results/junit.xml                   pytest's own results; of both stacks in results/ros2/ and results/embedded/

Exit code: that of pytest: 10 regressed, 11 invalid or infra, 12 no verdict; of two stacks that of the worse.

With `pack`, measures nothing and collects what jobs on other machines read. Nothing in it names this machine.
PAGE_URL, TRACE_URL    addresses of the report's page and the traces

results/packed/result/{result.json,exit-status,page-url,trace-url}
results/packed/trials/RUN/SCENARIO/…    the records, for the history
results/packed/baselines/…
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

# This file runs before anything is installed, with whichever Python the job has: it imports the standard library alone.
if sys.version_info < (3, 11):
    sys.exit("measure: Python 3.11 or later is needed")

import tomllib

_STATUS: Final = "exit-status"
_ROOT: Final = Path(os.environ.get("LDOS_ROOT") or "/")
_RESULTS: Final = Path("results")
_BEFORE: Final = _RESULTS / ".before"
_RUNS: Final = Path(".ldos/runs")
_STORE: Final = Path(".ldos/baselines")
_NO_COMMIT: Final = 40 * "0"
_INFRA: Final = 11
_NO_PROGRAM: Final = 127
_MOST_TRACES: Final = 6
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SCENARIO: Final = re.compile(r"[a-z0-9_+]+")
_STACKS: Final = {"ros2": ("ros2",), "embedded": ("embedded",), "both": ("ros2", "embedded")}
_DUMP: Final = 'set +euf; . "$1" >&2; exec "$2" -I -c "import json, os; print(json.dumps(dict(os.environ)))"'


def say(text: str) -> None:
    print(f"measure: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    say(text)
    sys.exit(2)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Settings of a measurement, checked."""

    commit: str
    base: str  # a full name; empty for the stored baseline
    scenarios: tuple[str, ...]
    stacks: tuple[str, ...]
    trials: int
    max_trials: int
    minutes: int | None
    is_recorded: bool  # True to record the commit as the baseline
    tools: Path | None  # root of the checkout of pytest-ldos; ``None`` if it is the project itself
    bin: Path | None  # folder of python and ldos; ``None`` to make environments

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Job:
        """Reads the variables; ends the program if one is wrong."""
        other = Path.cwd() / settings["GATE_FROM"] if settings.get("GATE_FROM") else None
        if other is not None and not other.is_dir():
            fail("GATE_FROM is no folder")
        if other is not None and _git("rev-parse", "--is-shallow-repository", folder=other) != "false":
            fail("GATE_FROM is no checkout with the whole history")
        commit = settings.get("GATE_COMMIT", "")
        if not _COMMIT.fullmatch(commit):
            fail("GATE_COMMIT is no commit: give its 40 hexadecimal digits")
        if not (_commit_of(commit) or _fetched(commit, other)):
            fail("GATE_COMMIT is no commit here; fetch it, or name a checkout that has it (GATE_FROM)")
        tools = Path(__file__).resolve().parents[2]
        trials = _number(settings, "GATE_TRIALS", "10")
        max_trials = _number(settings, "GATE_MAX_TRIALS", "30")
        scenarios = tuple((settings.get("GATE_SCENARIOS") or "baseline cpu_load msg_load cpu_limit").split())
        if not all(map(_SCENARIO.fullmatch, scenarios)):
            fail("GATE_SCENARIOS holds what is no name of a scenario")
        if not scenarios:
            fail("GATE_SCENARIOS names no scenario")
        is_recorded = settings.get("GATE_RECORD", "false") == "true"
        stack = settings.get("GATE_STACK", "") or _configured_stack()
        stack = _machine_stack(settings) if stack in {"", "auto"} else stack
        if stack not in _STACKS:
            fail("the stack is neither ros2 nor embedded nor both: see GATE_STACK")
        base = "" if is_recorded else settings.get("GATE_BASE", "")
        if base:
            revision = f"{commit}~1" if base == _NO_COMMIT else base
            # A checkout of a commit has the branches of its origin alone.
            names = (revision, f"refs/remotes/origin/{revision}")
            here = next(filter(None, map(_commit_of, names)), "")
            base = here or next(filter(None, (_fetched(name, other) for name in names)), "")
            if not base:
                fail("GATE_BASE is no revision here; fetch the whole history")
        return cls(
            commit=commit,
            base=base,
            scenarios=scenarios,
            stacks=_STACKS[stack],
            trials=trials,
            max_trials=max_trials,
            minutes=_number(settings, "GATE_MINUTES", "") if settings.get("GATE_MINUTES") else None,
            is_recorded=is_recorded,
            tools=None if tools == Path.cwd() else tools,
            bin=Path(settings["GATE_BIN"]).absolute() if settings.get("GATE_BIN") else None,
        )

    @property
    def minutes_needed(self) -> int:
        """Rough time of all trials that may be made, and of the starts of the stack with their warm-up.

        A guess: nothing is installed yet that could read what earlier runs took; see `campaign.estimate`.
        """
        most = self.trials if self.is_recorded else max(self.trials, self.max_trials)
        versions, starts = 1, _starts(most, most, most_starts=6, fewest=4)
        if self.base:
            added = _starts(most - self.trials, most, most_starts=15, fewest=2)
            versions, starts = 2, _starts(self.trials, self.trials, most_starts=15, fewest=2) + added
        seconds = len(self.stacks) * len(self.scenarios) * (versions * (starts * 22 + most * 9) // 2)
        return -(-seconds // 60)


def _number(settings: Mapping[str, str], name: str, usual: str) -> int:
    text = settings.get(name) or usual
    if not (text.isascii() and text.isdigit()):
        fail(f"{name} is no number")
    return int(text)


def _starts(trials: int, of: int, *, most_starts: int, fewest: int) -> int:
    """Starts for some trials where a version has `of` in all; see `campaign.order`."""
    size = max(-(-of // most_starts), fewest)
    return -(-trials // size)


def _run(*command: str | Path, environment: Mapping[str, str] | None = None, **options: Any) -> int:
    """Runs a program and returns its exit code; 127 if there is no such program."""
    try:
        status = subprocess.run(command, env=environment, **options).returncode
    except OSError as error:
        say(f"{command[0]} cannot be run: {error.strerror}")
        return _NO_PROGRAM
    return status if status >= 0 else 128 - status


def _output(*command: str | Path, environment: Mapping[str, str] | None = None, **options: Any) -> str | None:
    """Output of a program; ``None`` if it fails."""
    with tempfile.TemporaryFile() as output:
        status = _run(*command, environment=environment, stdout=output, **options)
        output.seek(0)
        return output.read().decode("utf-8", "surrogateescape").strip() if status == 0 else None


def _git(*arguments: str, folder: Path | None = None) -> str:
    """Output of git; empty if it fails."""
    where = () if folder is None else ("-C", folder)
    return _output("git", *where, *arguments) or ""


def _commit_of(revision: str, folder: Path | None = None) -> str:
    """The commit of a revision; nothing given can be taken for an option."""
    return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", folder=folder)


def _fetched(revision: str, other: Path | None) -> str:
    """The commit of a revision of another checkout, fetched from there; empty if it has none."""
    missing = "" if other is None else _commit_of(revision, other)
    if not missing:
        return ""
    _git("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", str(other), missing)
    return _commit_of(missing)


def _configured_stack() -> str:
    """Kind of stack in the settings; empty if they name none. A launch file of one's own is ROS 2's."""
    own, shared = Path("ldos.toml"), Path("pyproject.toml")
    try:
        if own.is_file():
            table = tomllib.loads(own.read_text("utf-8-sig"))
        else:
            text = shared.read_text("utf-8-sig") if shared.is_file() else ""
            table = tomllib.loads(text).get("tool", {}).get("ldos", {})
        stack = table.get("stack", {})
        found = stack if isinstance(stack, str) else stack.get("kind", "ros2" if "launch_file" in stack else "")
    except (ValueError, AttributeError, OSError):
        fail("[tool.ldos.stack] cannot be read: the file is not valid")
    return str(found)


def _is_sourced(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("ROS_DISTRO") and environment.get("AMENT_PREFIX_PATH"))


def _ros2_setup() -> Path | None:
    return max(_ROOT.glob("opt/ros/*/setup.sh"), default=None)


def _machine_stack(settings: Mapping[str, str]) -> str:
    """The stack of this machine: the bootstrap's choice, else ROS 2 where there is one."""
    chosen = _ROOT / "etc/ldos-lab/stack"
    if os.access(chosen, os.R_OK):
        return chosen.read_text("utf-8", "replace").partition("\n")[0]
    return "ros2" if _is_sourced(settings) or _ros2_setup() else "embedded"


class _CannotMeasure(Exception):
    """The environment of a stack cannot be made."""


def _sourced(script: Path, environment: Mapping[str, str]) -> dict[str, str]:
    say(f"sourcing {script}")
    text = _output("sh", "-c", _DUMP, "sh", script, sys.executable, environment=environment)
    if text is None:
        raise _CannotMeasure(f"{script} failed")
    found: dict[str, str] = json.loads(text)
    return found


def set_up(job: Job, stack: str) -> tuple[Path, dict[str, str]]:
    """Programs and environment of a stack: those of `ldos measure` itself, or what a target of make makes.

    Without ROS 2, the environment of the embedded stack does: in it, pytest reports what is missing.
    """
    environment = dict(os.environ)
    script = _ros2_setup()
    if stack == "ros2" and script is not None and not _is_sourced(environment):
        environment = _sourced(script, environment)
    has_ros2 = stack == "ros2" and _is_sourced(environment)
    programs = job.bin
    if programs is None:
        target, name = ("ros2-setup", ".venv-ros2") if has_ros2 else ("setup", ".venv")
        programs = (job.tools or Path()) / name / "bin"
        where = () if job.tools is None else ("--no-print-directory", "-C", job.tools)
        if _run("make", *where, target, environment=environment) != 0:
            raise _CannotMeasure(f"make {target} failed: the {stack} stack cannot be measured")
    if has_ros2 and (job.bin or job.tools):
        # A project that pytest-ldos is no part of lacks the ROS packages that it brings.
        if (ours := _output(programs / "ldos", "ros-packages", environment=environment)) is None:
            raise _CannotMeasure("the packages of pytest-ldos cannot be built")
        if ours:
            environment = _sourced(Path(ours), environment)
    return programs, environment


def measure_stack(job: Job, stack: str, place: Path, arguments: Sequence[str]) -> int:
    place.mkdir(parents=True, exist_ok=True)
    try:
        programs, environment = set_up(job, stack)
    except _CannotMeasure as error:
        say(str(error))
        return _INFRA
    # The commit may not be checked out, or its environment may be another checkout's.
    needs_own = _commit_of("HEAD") != job.commit or (job.tools is not None and job.bin is None)
    own = [f"--ldos-head={job.commit}"] if needs_own else ["--ldos-build"] if stack == "ros2" else []
    reports = [part for name in ("result.json", "report.html") for part in ("--ldos-report", str(place / name))]
    command = ["-m", "pytest", "-m", " or ".join(job.scenarios), "--ldos-trials", str(job.trials), *arguments, *own]
    command += [f"--ldos-stack={stack}", *reports, "--junitxml", str(place / "junit.xml")]
    status = _run(programs / "python", *command, environment=environment)
    if status == 0 and not _has_content(place / "result.json"):
        say("nothing was measured")
        return _INFRA
    return _INFRA if status == _NO_PROGRAM else status


def _has_content(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0


def _runs() -> list[str]:
    return sorted(str(each) for each in _RUNS.glob("*") if each.is_dir() and not each.is_symlink())


def _remove(path: Path) -> None:
    """Removes a file, a link or a whole folder; what a link leads to stays."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        fail(f"{path} cannot be removed: {error.strerror} ({error.filename})")


def _found(name: str) -> list[Path]:
    """Files and folders of a name in the runs of this measurement, or in all where this program did not begin one.

    No links, which could lead out of them.
    """
    before = set(_BEFORE.read_text("utf-8", "surrogateescape").splitlines()) if _BEFORE.is_file() else set()
    parents = (Path(folder) for run in _runs() if run not in before for folder, *_ in os.walk(run))
    return sorted(each for each in (parent / name for parent in parents) if each.exists() and not each.is_symlink())


def export_traces(programs: Path) -> None:
    folder = _RESULTS / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    traces = [each for each in _found("trace") if each.is_dir()]
    for number, trace in enumerate(traces[:_MOST_TRACES], 1):
        target = str(folder / f"{number}.pftrace")
        command = (programs / "ldos", "export", trace, "--to", "perfetto", "--output", target)
        if _run(*command, stdin=subprocess.DEVNULL) != 0:
            say(f"a trace could not be exported: {trace}")
    if len(traces) > _MOST_TRACES:
        say(f"more than {_MOST_TRACES} traces were kept; the others stay on this machine")


def pack() -> None:
    packed = _RESULTS / "packed"
    _remove(packed)
    packed.mkdir(parents=True)
    if _has_content(_RESULTS / "result.json"):
        (packed / "result").mkdir()
        for name in ("result.json", _STATUS):
            if _has_content(_RESULTS / name):
                shutil.copy(_RESULTS / name, packed / "result")
        for name in ("page-url", "trace-url"):
            url = os.environ.get(name.upper().replace("-", "_"), "")
            (packed / "result" / name).write_text(f"{url}\n", "utf-8")
    for record in (each for each in _found("trials.json") if each.is_file()):
        target = packed / "trials" / record.relative_to(_RUNS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(record, target)
    if (_RESULTS / "baselines").is_dir() and not (_RESULTS / "baselines").is_symlink():
        shutil.copytree(_RESULTS / "baselines", packed / "baselines", symlinks=True)


def _begin(job: Job) -> list[str]:
    """Removes earlier results; returns the arguments of pytest for every stack."""
    _remove(_RESULTS)
    _RESULTS.mkdir()
    if job.is_recorded:
        if _STORE.is_dir():
            aside = _STORE.with_name(f"baselines-before-{time.strftime('%Y%m%d-%H%M%S')}")
            _STORE.rename(aside)
            say(f"the baselines of this machine were moved to {aside}: all are recorded again")
        os.environ["LDOS_STRICT"] = "0"  # that there is no baseline is no fault
    _BEFORE.write_text("".join(f"{each}\n" for each in _runs()), "utf-8", "surrogateescape")
    if job.is_recorded:
        # No baseline is found there, so that all are recorded in the machine's own store.
        return ["--ldos-update-baseline", "--ldos-baselines", "results/none"]
    base = [f"--ldos-base={job.base}"] if job.base else []
    # Machines of one class share what a maintainer committed.
    return ["--ldos-max-trials", str(job.max_trials), *base, "--ldos-baselines=baselines"]


def measure(job: Job) -> int:
    """Measures the commit on each stack; returns the exit code of the worse, which is the smaller that is not 0."""
    say(f"the stack is {' and '.join(job.stacks)}")
    if job.minutes is not None and job.minutes_needed > job.minutes:
        fail(
            f"this may take about {job.minutes_needed} min, and the job has {job.minutes}: "
            "give fewer scenarios or trials (GATE_MAX_TRIALS)"
        )
    arguments = _begin(job)
    is_one = len(job.stacks) == 1
    statuses = [measure_stack(job, stack, _RESULTS if is_one else _RESULTS / stack, arguments) for stack in job.stacks]
    programs = job.bin
    if programs is None:  # of the stack that was measured last, where its environment could be made
        made = (".venv-ros2", ".venv") if job.stacks[-1] == "ros2" else (".venv", ".venv-ros2")
        folders = [(job.tools or Path()) / name / "bin" for name in made]
        programs = next((each for each in folders if os.access(each / "ldos", os.X_OK)), folders[-1])
    if not is_one:
        results = [f"{stack}={_RESULTS / stack}/result.json" for stack in job.stacks]
        outputs = ["--output", str(_RESULTS / "result.json"), "--output", str(_RESULTS / "report.html")]
        if _run(programs / "ldos", "join", *results, *outputs) != 0:
            statuses.append(_INFRA)
    export_traces(programs)
    if job.is_recorded and _STORE.is_dir():
        # What a maintainer pinned and what was calibrated stays as it is.
        shutil.copytree(_STORE, _RESULTS / "baselines", symlinks=True, ignore=shutil.ignore_patterns("*.*.json"))
    worse = min((each for each in statuses if each), default=0)
    (_RESULTS / _STATUS).write_text(f"{worse}\n", "utf-8")
    return worse


def main(arguments: Sequence[str]) -> int:
    given = [*arguments]
    try:
        if not given:
            return measure(Job.of(os.environ))
        if given == ["pack"]:
            pack()
            return 0
    except OSError as error:
        say(f"results cannot be written: {error}")
        return _INFRA
    if given in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    fail("usage: ldos measure [pack]")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
