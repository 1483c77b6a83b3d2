"""The common interface of all stimuli: what makes a running stack work, one trial at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pytest_ldos.robot.stack.client_protocol import TrialTag
from pytest_ldos.robot.stack.outcomes import MotionOutcome


class Case(Protocol):
    """One of the things that a stimulus can do; trials of the same case are compared with each other."""

    @property
    def name(self) -> str:
        """Its name in reports."""


@dataclass(frozen=True)
class Attempt:
    """One use of a stimulus.

    Attributes:
        id: unique, 32 hexadecimal characters.
        index: of the trial that it is, or belongs to.
        seed: of random numbers, for a stimulus that takes one.
        trial: set for a measured trial; ``None`` for a warm-up.
    """

    id: str
    index: int
    seed: int | None
    trial: TrialTag | None


class Stimulus(Protocol):
    """See the module. Each method returns in bounded time.

    Attributes:
        not_reset: text for a failed `reset`: ``the arm could not return home``.
        pids: processes that it started for its trials, beside its own.
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
        """Makes what is cheap of a trial again, for a better estimate; nothing for most stimuli."""

    def warm_up_in_place(self, case: Case, attempt: Attempt) -> MotionOutcome | None:
        """Warms up the stack without a run; ``None`` where that takes a run, after which the stack is brought back."""

    def reset(self, attempt: Attempt) -> MotionOutcome | None:
        """Brings the stack back to where each trial begins; ``None`` if there is nothing to bring back."""
