"""The common interface of all stimuli, and their cases.

.. code-block:: yaml

    goal_sets:
      corners:
        - name: near
          message: {pose: {header: {frame_id: map}, pose: {position: {x: 1.0}, orientation: {w: 1.0}}}}
    reset: {pose: {header: {frame_id: map}, pose: {orientation: {w: 1.0}}}}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.robot.stack.client_protocol import MotionOutcome, TrialTag
from pytest_ldos.robot.stack.goals import as_table, load_goal_file
from pytest_ldos.scenario.model import ScenarioSpec


class Case(Protocol):
    """One case of a stimulus; trials of the same case are compared."""

    @property
    def name(self) -> str:
        """Its name in reports."""


@dataclass(frozen=True)
class Attempt:
    """One use of a stimulus.

    Attributes:
        id: unique, 32 hexadecimal characters.
        index: of its trial.
        seed: of random numbers, for a stimulus that supports seeds.
        trial: set for a measured trial; ``None`` for a warm-up.
    """

    id: str
    index: int
    seed: int | None
    trial: TrialTag | None


class Stimulus(Protocol):
    """Interface of a stimulus. Each method returns in bounded time.

    Attributes:
        not_reset: text for a failed `reset`: ``the arm could not return home``.
        pids: processes that it started for its trials, in addition to its own.
    """

    not_reset: ClassVar[str]

    @property
    def pids(self) -> Collection[int]: ...

    @property
    def takes_seeds(self) -> bool:
        """True if equal seeds make equal trials."""

    def cases(self, name: str | None = None) -> Sequence[Case]:
        """Returns a set of cases by its name; ``None`` for the first.

        Raises:
            ConfigurationError: there is no set of that name.
        """

    def run(self, case: Case, attempt: Attempt) -> MotionOutcome:
        """Makes the stack work once and waits for the end."""

    def repeat(self, case: Case, attempt: Attempt, outcome: MotionOutcome) -> None:
        """Repeats the cheap part of a trial for a better estimate; does nothing for most stimuli."""

    def warm_up_in_place(self, case: Case, attempt: Attempt) -> MotionOutcome | None:
        """Warms up the stack without a run; ``None`` if that takes a run followed by a reset."""

    def reset(self, attempt: Attempt) -> MotionOutcome | None:
        """Resets the stack to the start state of trials; ``None`` if there is nothing to reset."""


@dataclass(frozen=True)
class MessageCase:
    """See `Case`.

    Attributes:
        message: fields of a goal or a request, by name; missing ones keep their defaults.
    """

    name: str
    message: Mapping[str, Any] | None = None


_UNNAMED: Final = ScenarioSpec(name="default").goals
"""Default name of a scenario's set."""


@dataclass(frozen=True)
class CaseBook:
    """Sets of cases by name.

    Attributes:
        reset: message of the goal sent after each trial; ``None`` for none.
    """

    sets: Mapping[str, Sequence[MessageCase]]
    reset: Mapping[str, Any] | None = None

    def cases(self, name: str | None = None) -> Sequence[MessageCase]:
        """Returns a set by name; the default name also means the only set.

        Raises:
            ConfigurationError: there is no set of that name.
        """
        if name is None or (name == _UNNAMED and name not in self.sets and len(self.sets) == 1):
            return next(iter(self.sets.values()))
        if name not in self.sets:
            raise ConfigurationError(f"there is no goal set '{name}'", remedy=f"known are: {', '.join(self.sets)}")
        return self.sets[name]

    @property
    def all_messages(self) -> Mapping[str, Mapping[str, Any]]:
        """All messages, by location in the file."""
        found = {
            f"goal set '{set_name}', goal '{case.name}'": case.message or {}
            for set_name, cases in self.sets.items()
            for case in cases
        }
        return found if self.reset is None else {**found, "reset": self.reset}


def single_case(name: str) -> CaseBook:
    """A book of one case without a message."""
    return CaseBook({name: (MessageCase(name),)})


def read_cases(file: Path) -> CaseBook:
    """Reads sets of messages from a YAML file, without checking their fields against a type.

    Raises:
        ConfigurationError: it cannot be read, is not YAML, or has a wrong key; names the location.
    """
    table = as_table(load_goal_file(file), f"{file}")
    refuse_unknown(table, {"goal_sets", "reset"}, f"key of {file}")
    sets = as_table(table.get("goal_sets"), f"{file}: goal_sets")
    if not sets:
        raise ConfigurationError(f"{file} has no goal set", remedy="name one below goal_sets, as in `corners:`")
    reset = table.get("reset")
    return CaseBook(
        {str(name): _parse_set(cases, f"{file}: goal set {name!r}") for name, cases in sets.items()},
        None if reset is None else as_table(reset, f"{file}: reset"),
    )


def _parse_set(cases: Any, where: str) -> tuple[MessageCase, ...]:
    if not isinstance(cases, list) or not cases:
        raise ConfigurationError(f"{where} is not a list of goals", remedy="begin each goal with a dash")
    return tuple(_parse_case(as_table(case, where), where) for case in cases)


def _parse_case(table: Mapping[str, Any], where: str) -> MessageCase:
    refuse_unknown(table, {"name", "message"}, f"key in {where}:")
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{where} has a goal without a name", remedy="name: near")
    return MessageCase(name, as_table(table.get("message", {}), f"{where}, goal {name!r}, message"))
