"""A process that runs a second stack and sends it one goal after another until SIGINT.

Its argument is a JSON object: ``stack`` (fields of `StackSpec`) and ``log_directory``. After the start and after
each goal it prints a JSON line: the stack's DDS domain, and the numbers of goals completed and failed so far.
The neighbour has its own session, so that all of it is in one scheduler group.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.plain import PlainReader
from pytest_ldos.record.protocol import RecordingReport
from pytest_ldos.robot.stack.choose import choose_backend
from pytest_ldos.robot.stack.client_protocol import MotionOutcome
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.protocol import RunningStack
from pytest_ldos.robot.stack.stimulus.protocol import Attempt, Stimulus
from pytest_ldos.scenario.model import StackSpec

LONGEST_S: Final = 1800.0
"""Time limit of a neighbour, in case its owner disappears."""


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


def parse_stack(values: Mapping[str, Any]) -> StackSpec:
    stack: StackSpec = PlainReader().read(StackSpec, values, "the stack")
    return stack


def drive(stack: RunningStack) -> str:
    """Sends goals and resets the stack until the time is over; returns the cause of the stack's death, if it died."""
    ends_at = time.monotonic() + LONGEST_S
    ended = {"completed": 0, "failed": 0}
    _say(domain=stack.domain, **ended)
    for outcome, name in _work(stack.stimulus):
        if outcome.outcome is OutcomeClass.STACK_DIED:
            return outcome.message
        succeeded = outcome.outcome is OutcomeClass.SUCCESS
        ended["completed" if succeeded else "failed"] += 1
        if not succeeded:
            sys.stderr.write(f"goal {name}: {outcome.outcome}, {outcome.message}\n")
        _say(domain=stack.domain, **ended)
        if time.monotonic() > ends_at:
            break
    return ""


def _work(stimulus: Stimulus) -> Iterator[tuple[MotionOutcome, str]]:
    """Runs all cases of the first set in turn, each after a reset; yields their outcomes."""
    for case in itertools.cycle(stimulus.cases()):
        back = stimulus.reset(_attempt())
        if back is not None:
            yield back, "home"
        yield stimulus.run(case, _attempt()), case.name


def _attempt() -> Attempt:
    return Attempt(uuid.uuid4().hex, 0, None, None)


def _say(**values: int) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> int:
    settings = json.loads(sys.argv[1])
    logs = Path(settings["log_directory"])
    backend = choose_backend(parse_stack(settings["stack"]), recorder=Unrecorded(logs), log_directory=logs)
    try:
        death = drive(backend.start())
    except KeyboardInterrupt:
        return 0
    except LdosError as error:
        death = str(error)
    finally:
        backend.stop()
    sys.stderr.write(f"{death}\n" if death else "")
    return 1 if death else 0


if __name__ == "__main__":
    sys.exit(main())
