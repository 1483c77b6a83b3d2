"""A second stack alongside the one under test, on another domain, with a constantly moving arm.

Run as a program, this module starts that stack and sends it one goal after another until SIGINT. Its argument is a JSON
object: ``stack`` (fields of `StackSpec`) and ``log_directory``. After the start and after each goal it prints a JSON
line: the stack's DDS domain, and the numbers of goals completed and failed so far. It has its own session, so that all
of the neighbour is in one scheduler group.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import LdosError, LoadFailed
from pytest_ldos.base.files import PlainReader, writing
from pytest_ldos.base.text import one_line
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.counters import CpuTime
from pytest_ldos.host.cpu import with_descendants
from pytest_ldos.host.processes import Child
from pytest_ldos.measure.load.protocol import (
    NOT_READ,
    GroupedProof,
    Load,
    LoadSite,
    load_processes,
    read_group,
    watched,
)
from pytest_ldos.record.protocol import RecordingReport
from pytest_ldos.robot.stack.choose import choose_backend, stack_available
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import MotionOutcome
from pytest_ldos.robot.stack.protocol import Attempt, RunningStack, Stimulus
from pytest_ldos.scenario.loads import NeighbourStack, NoisyNeighbourSpec
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from pytest_ldos.scenario.words import StackKind

IDLE_S: Final = 30.0  # time without a finished goal after which a neighbour counts as not moving
LONGEST_S: Final = 1800.0  # time limit of a neighbour, in case its owner disappears
_READY_TIMEOUT_S: Final = 120.0
_END_TIMEOUT_S: Final = 20.0
_DRIVER: Final = "pytest_ldos.measure.load.noisy_neighbour"


@dataclass(frozen=True, kw_only=True)
class NeighbourProof(GroupedProof):
    """Proof of a neighbour.

    Attributes:
        domain: DDS domain of the neighbour.
        completed, failed: numbers of its goals that ended during the measurement.
        cpu_seconds: CPU time used during the measurement.
    """

    stack: str
    domain: int
    completed: int
    failed: int
    cpu_seconds: float

    @property
    def applied(self) -> float:
        return self.cpu_seconds / self.seconds if self.seconds > 0 else 0.0

    def describe(self) -> str:
        return (
            f"noisy neighbour ({self.stack}, domain {self.domain}): {self.completed} goals reached, "
            f"{self.failed} failed, {self.cpu_seconds:.1f} s of CPU time in {self.seconds:.1f} s ({self.group_found})"
        )


class RunningNeighbour:
    def __init__(self, spec: NoisyNeighbourSpec, driver: Child, site: LoadSite) -> None:
        self.spec = spec
        self._driver = driver
        self._site = site
        self._changed = threading.Condition(threading.RLock())
        self._report: dict[str, Any] = {"domain": -1, "completed": 0, "failed": 0}
        self._at_begin = dict(self._report)
        self._has_ended = False
        self._heard_s = time.monotonic()
        self._idle_s = 0.0
        self._time = CpuTime(())
        self._group = NOT_READ
        self._trouble = ""
        threading.Thread(target=self._read_reports, name="neighbour", daemon=True).start()

    def _read_reports(self) -> None:
        assert self._driver.process.stdout is not None
        for line in self._driver.process.stdout:
            with self._changed:
                try:
                    report = json.loads(line)
                    self._report = {name: int(report[name]) for name in self._report}
                    self._heard_s = time.monotonic()
                except (ValueError, KeyError, TypeError):
                    self._trouble = self._trouble or f"the neighbour printed {one_line(line.strip())[:200]!r}"
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def await_motion(self) -> None:
        """Begins the measurement when its arm has reached a goal; raises `LoadFailed` if it does not."""
        with self._changed:
            self._changed.wait_for(lambda: self._report["completed"] > 0 or self._has_ended, _READY_TIMEOUT_S)
            moves = self._report["completed"] > 0 and not self._has_ended
            self._at_begin = dict(self._report)
        if not moves:
            with suppress(subprocess.TimeoutExpired):
                self._driver.process.wait(_END_TIMEOUT_S if self._has_ended else 0)
            raise LoadFailed(
                f"the neighbour did not start to move ({self._driver.describe_end()})",
                details=self._driver.last_lines(),
                remedy="look at what it says, and at the load of this machine",
            )
        self._time = CpuTime(self._pids())
        self.look()

    def look(self) -> None:
        """Records its CPU time and idle time so far, or its death."""
        with self._changed:
            if self._trouble or self._driver.process.returncode is not None:
                return
            if self._has_ended or self._driver.exit_code is not None:
                self._trouble = f"the neighbour died: {self._driver.last_lines() or self._driver.describe_end()}"
                return
            self._idle_s = time.monotonic() - self._heard_s
            pids = self._pids()
            self._time.note(pids)
            self._group = read_group(self.spec.group, pids, self._site) or self._group

    def _pids(self) -> list[int]:
        return with_descendants([self._driver.pid])

    @property
    def proof(self) -> NeighbourProof:
        self.look()
        with self._changed:
            completed, failed = (self._report[each] - self._at_begin[each] for each in ("completed", "failed"))
            idleness = ""
            if failed > completed:
                idleness = f"the neighbour failed in {failed} of {completed + failed} goals"
            elif self._idle_s > IDLE_S:
                idleness = f"none of the neighbour's goals ended in {self._idle_s:.0f} s"
            return NeighbourProof(
                kind=self.spec.KIND,
                seconds=self._time.elapsed_s,
                shortfall=self._trouble or self._group.shortfall or idleness,
                group=self.spec.group,
                group_found=self._group.found,
                stack=self.spec.stack,
                domain=self._report["domain"],
                completed=completed,
                failed=failed,
                cpu_seconds=self._time.used_s,
            )


def neighbour_available(spec: NoisyNeighbourSpec, stack: StackSpec) -> Availability:
    return stack_available(stack_of_neighbour(spec, stack))


def stack_of_neighbour(spec: NoisyNeighbourSpec, stack: StackSpec) -> StackSpec:
    """Returns the embedded stack, or a copy of the stack under test, without injected faults and its own CPUs."""
    if spec.stack == NeighbourStack.EMBEDDED:
        return StackSpec(kind=StackKind.EMBEDDED)
    return replace(stack, kind=StackKind.ROS2, faults=FaultSpec(), cpus="")


@contextmanager
def run_neighbour(spec: NoisyNeighbourSpec, site: LoadSite) -> Iterator[RunningNeighbour]:
    neighbour_available(spec, site.stack).demand()
    logs = site.log_directory / "neighbour"
    with writing(logs):
        logs.mkdir(exist_ok=True)
    with load_processes(spec.group, site) as group:
        driver = group.start("neighbour", _command(stack_of_neighbour(spec, site.stack), logs), talk=True)
        neighbour = RunningNeighbour(spec, driver, site)
        neighbour.await_motion()
        with watched(neighbour.look):
            yield neighbour
        driver.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):  # its stack shuts down
            driver.process.wait(_END_TIMEOUT_S)


def _command(stack: StackSpec, logs: Path) -> list[str]:
    return [sys.executable, "-m", _DRIVER, json.dumps({"stack": asdict(stack), "log_directory": str(logs)})]


LOADS: Final = {NoisyNeighbourSpec.KIND: Load(run=run_neighbour, available=neighbour_available, proof=NeighbourProof)}


class Unrecorded:
    """A `Recorder` that records nothing."""

    name = "none"
    prefix: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    open_environment: Mapping[str, str] = {}

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def start(self) -> None:
        pass

    def pause(self) -> RecordingReport:
        return RecordingReport(0, 0)

    def resume(self) -> None:
        pass

    def rotate(self) -> Path:
        return self.directory

    def stop(self) -> None:
        pass


def drive(stack: RunningStack) -> str:
    """Sends goals until the time is over; returns the cause of the stack's death, or an empty text."""
    ends_at = time.monotonic() + LONGEST_S
    ended = {"completed": 0, "failed": 0}
    _print_report(stack, ended)
    for outcome, name in _work(stack.stimulus):
        if outcome.outcome is OutcomeClass.STACK_DIED:
            return outcome.message
        succeeded = outcome.outcome is OutcomeClass.SUCCESS
        ended["completed" if succeeded else "failed"] += 1
        if not succeeded:
            sys.stderr.write(f"goal {name}: {outcome.outcome}, {outcome.message}\n")
        _print_report(stack, ended)
        if time.monotonic() > ends_at:
            break
    return ""


def _work(stimulus: Stimulus) -> Iterator[tuple[MotionOutcome, str]]:
    """Yields the outcomes of cases in turn, each after a reset."""
    for case in itertools.cycle(stimulus.cases()):
        back = stimulus.reset(Attempt(uuid.uuid4().hex, 0, None, None))
        if back is not None:
            yield back, "home"
        yield stimulus.run(case, Attempt(uuid.uuid4().hex, 0, None, None)), case.name


def _print_report(stack: RunningStack, ended: Mapping[str, int]) -> None:
    sys.stdout.write(json.dumps({"domain": stack.domain, **ended}) + "\n")
    sys.stdout.flush()


def main() -> str:
    """Runs the neighbour; returns its cause of death, or an empty text."""
    settings = json.loads(sys.argv[1])
    stack: StackSpec = PlainReader().read(StackSpec, settings["stack"], "the stack")
    logs = Path(settings["log_directory"])
    backend = choose_backend(stack, recorder=Unrecorded(logs), log_directory=logs)
    try:
        return drive(backend.start())
    except KeyboardInterrupt:
        return ""
    except LdosError as error:
        return str(error)
    finally:
        backend.stop()


if __name__ == "__main__":
    sys.exit(main() or 0)
