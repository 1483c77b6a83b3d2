"""A process that runs a whole stack and sends it goals, one after another, until SIGINT.

Its argument is a JSON object: ``stack`` (fields of `StackSpec`) and ``log_directory``. After the start and after
each goal it prints a JSON line: the stack's DDS domain, and the numbers of goals completed and failed so far.
It is one process with one session, so that the whole neighbour is in one scheduler group.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.record.protocol import RecordingReport
from pytest_ldos.robot.stack.choose import choose_backend
from pytest_ldos.robot.stack.goals import Goal, GoalBook, OutcomeClass
from pytest_ldos.robot.stack.protocol import RunningStack
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.scenario.words import Simulation, StackKind

LONGEST_S: Final = 1800.0
"""A neighbour ends by itself after this time, whatever happens to its owner."""


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
    ros2 = {**values["ros2"], "sim": Simulation(values["ros2"]["sim"])}
    return StackSpec(
        **{
            **values,
            "kind": StackKind(values["kind"]),
            "faults": FaultSpec(**values["faults"]),
            "ros2": Ros2Spec(**{**ros2, "controllers": tuple(ros2["controllers"])}),
        }
    )


def drive(stack: RunningStack) -> str:
    """Moves the arm there and back until the time is over; returns how the stack died, if it did."""
    ends_at = time.monotonic() + LONGEST_S
    ended = {"completed": 0, "failed": 0}
    _say(domain=stack.domain, **ended)
    for goal in itertools.cycle(_motions(stack.goal_book)):
        outcome = stack.move(goal, goal_id=uuid.uuid4().hex, seed=None, trial=None)
        if outcome.outcome is OutcomeClass.STACK_DIED:
            return outcome.message
        succeeded = outcome.outcome is OutcomeClass.SUCCESS
        ended["completed" if succeeded else "failed"] += 1
        if not succeeded:
            sys.stderr.write(f"goal {goal.name}: {outcome.outcome}, {outcome.message}\n")
        _say(domain=stack.domain, **ended)
        if time.monotonic() > ends_at:
            break
    return ""


def _motions(book: GoalBook) -> list[Goal]:
    """Returns all goals of the first set, each after a move home."""
    first = next(iter(book.sets.values()))
    return [motion for goal in first for motion in (book.home, goal)]


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
