"""Runs that are ended at random moments, in any way: nothing is left of them, and no trial is lost."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_ldos.host.cgroup import NAME as GROUP_NAME
from pytest_ldos.host.fingerprint import pids_with
from pytest_ldos.host.lock import LOCK_VARIABLE
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.record.run_directory import RUN_DIRECTORY
from tests.integration.project import Project, left_in_memory, make_project, shared_memory

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 2
PATIENCE_S = 30.0
_FINISHED = re.compile(r"^baseline: trial (\d+) of", re.MULTILINE)
_BEGUN = "starting the stack"
_COMPLETE = re.compile(r"^=+ .* in [\d.]+s", re.MULTILINE)
"""pytest's last line: what comes then ends an interpreter that ends."""


@dataclass
class Left:
    """State of the machine: each kind of thing that a run makes."""

    mark: str
    temporary: Path
    memory: set[str] = field(default_factory=shared_memory)
    mounts: set[str] = field(default_factory=lambda: set(_mounts()))
    groups: set[Path] = field(default_factory=lambda: set(_control_groups()))

    def found(self) -> list[str]:
        """Describes what exists now and did not before."""
        found = [f"process {pid}: {name}" for pid, name in self._processes()]
        found += [f"temporary {file.name}" for file in self.temporary.iterdir()]
        found += [f"shared memory {name}" for name in left_in_memory(self.memory)]
        found += [f"mount {line}" for line in _mounts() if line not in self.mounts and self._is_a_runs(line)]
        found += [f"control group {group}" for group in set(_control_groups()) - self.groups]
        found += [f"lock {line}" for line in Path("/proc/net/unix").read_text().splitlines() if self.mark in line]
        return found

    def _is_a_runs(self, mount: str) -> bool:
        """True if a run could have mounted it, because other programs of the machine also mount."""
        return any(place in mount for place in (RUN_DIRECTORY, str(self.temporary)))

    def _processes(self) -> Iterator[tuple[int, str]]:
        """Whatever has the run's environment: all that it started, whoever owns it now."""
        for pid in pids_with({LOCK_VARIABLE: self.mark}):
            yield pid, _command_of(Path(f"/proc/{pid}"))


def _command_of(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "(has ended)"


def _mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines()


def _control_groups() -> Iterator[Path]:
    return Path("/sys/fs/cgroup").rglob(f"{GROUP_NAME}*")


@dataclass(frozen=True)
class Kill:
    """One run's end."""

    number: signal.Signals
    after_s: float
    code: int
    output: str
    saved: int
    left: list[str]

    @property
    def finished(self) -> int:
        """Trials that it reported as finished."""
        return len(_FINISHED.findall(self.output))

    @property
    def phase(self) -> str:
        if _BEGUN not in self.output:
            return "before the recording"
        return "during trials" if self.finished else "while it starts"

    @property
    def faults(self) -> list[str]:
        faults = [f"left: {each}" for each in self.left]
        if self.saved < self.finished:
            faults.append(f"{self.finished - self.saved} finished trials are in no record")
        was_at_it = _BEGUN in self.output and not _COMPLETE.search(self.output)
        # pytest itself lets Ctrl-C through while it ends its session.
        expected = {INTERRUPTED, -signal.SIGINT} if self.number is signal.SIGINT else {INTERRUPTED}
        if self.number is not signal.SIGKILL and was_at_it and self.code not in expected:
            faults.append(f"exit code {self.code}")
        if self.code == INTERRUPTED and self.finished and "\nresults: " not in self.output:
            faults.append("no summary")
        return [f"{self.number.name} after {self.after_s:.2f} s ({self.phase}): {each}" for each in faults]


def start(project: Project) -> subprocess.Popen:
    return project.start("-m", "baseline", "--ldos-trials=2", "--ldos-warmup=0")


def kill(path: Path, number: signal.Signals, after_s: float) -> Kill:
    """Starts a run and ends it after a while; what is left is looked for until it is nothing, or for long enough."""
    with tempfile.TemporaryDirectory(prefix="ldos-kill-") as temporary:
        project = make_project(path)
        mark = project.environment[LOCK_VARIABLE]
        project.environment["TMPDIR"] = temporary
        left = Left(mark, Path(temporary))
        process = start(project)
        try:
            try:
                process.wait(after_s)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        deadline = time.monotonic() + PATIENCE_S
        while (found := left.found()) and time.monotonic() < deadline:
            time.sleep(0.05)
        files = path.glob(".ldos/runs/*/baseline/trials.json")
        saved = sum(len(read_trials(file).trials) for file in files)
        return Kill(number, after_s, process.returncode, output, saved, found)


@pytest.fixture(scope="module")
def whole_run_s(tmp_path_factory) -> float:
    """Seconds of a run that is not killed."""
    began = time.monotonic()
    done = start(make_project(tmp_path_factory.mktemp("whole")))
    output, _ = done.communicate(timeout=180)
    assert _COMPLETE.search(output), output
    return time.monotonic() - began


def test_killed_run_leaves_nothing_and_loses_no_trial(tmp_path, whole_run_s, kills: int, kill_seed: int):
    chance = random.Random(kill_seed)
    made = []
    for count in range(kills):
        path = tmp_path / str(count)
        path.mkdir()
        made.append(kill(path, chance.choice(SIGNALS), chance.uniform(0.1, whole_run_s)))
        print(made[-1].faults or ".", end="", flush=True)
    print(f"\n{kills} kills, seed {kill_seed}, of runs of {whole_run_s:.1f} s:")
    for (name, phase), count in sorted(Counter((each.number.name, each.phase) for each in made).items()):
        print(f"  {count:3} {name} {phase}")
    assert [fault for each in made for fault in each.faults] == []
