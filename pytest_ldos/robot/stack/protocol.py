"""The common interfaces of all stimuli and of all stacks under test, and installed versions of a stack.

.. code-block:: yaml

    goal_sets:
      corners:
        - name: near
          message: {pose: {header: {frame_id: map}, pose: {position: {x: 1.0}, orientation: {w: 1.0}}}}
    reset: {pose: {header: {frame_id: map}, pose: {orientation: {w: 1.0}}}}
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from pytest_ldos.base.errors import ConfigurationError, require
from pytest_ldos.base.series import Moments
from pytest_ldos.robot.stack.goals import as_table, find_set, load_goal_file, parse_sets
from pytest_ldos.robot.stack.lines import MotionOutcome, TrialTag
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import StackKind


class StimulusCase(Protocol):
    """One case of a stimulus; trials of the same case are compared."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class Attempt:
    """One use of a stimulus, with the index of its trial."""

    id: str  # unique, 32 hexadecimal characters
    index: int
    seed: int | None  # of random numbers, for a stimulus that supports seeds
    trial: TrialTag | None  # set for a measured trial; ``None`` for a warm-up


class Stimulus(Protocol):
    """Interface of a stimulus. Each method returns in bounded time."""

    not_reset: ClassVar[str] = "nothing is reset"  # text for a failed `reset`: ``the arm could not return home``
    pids: Collection[int] = ()  # processes that it started for its trials, in addition to its own

    @property
    def takes_seeds(self) -> bool:
        """True if equal seeds make equal trials."""

    def cases(self, name: str | None = None) -> Sequence[StimulusCase]:
        """Returns a set of cases by its name, which must exist; ``None`` for the first."""

    def run(self, case: StimulusCase, attempt: Attempt) -> MotionOutcome:
        """Makes the stack work once and waits for the end."""

    def repeat(self, case: StimulusCase, attempt: Attempt, outcome: MotionOutcome) -> None:
        """Repeats the cheap part of a trial for a better estimate; does nothing for most stimuli."""
        return

    def warm_up_in_place(self, case: StimulusCase, attempt: Attempt) -> MotionOutcome | None:
        """Warms up the stack without a run; ``None`` if that takes a run followed by a reset."""
        return None

    def reset(self, attempt: Attempt) -> MotionOutcome | None:
        """Resets the stack to the start state of trials; ``None`` if there is nothing to reset."""
        return None


@dataclass(frozen=True)
class MessageCase:
    """See `StimulusCase`; `message` has fields of a goal or a request, by name. Missing ones keep their defaults."""

    name: str
    message: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require(bool(self.name), "a goal has no name", remedy="name: near")


_UNNAMED: Final = ScenarioSpec(name="default").goals  # default name of a scenario's set


@dataclass(frozen=True)
class CaseBook:
    """Sets of cases by name, and the message of the goal sent after each trial (`reset`), if any."""

    sets: Mapping[str, Sequence[MessageCase]]
    reset: Mapping[str, Any] | None = None

    def cases(self, name: str | None = None) -> Sequence[MessageCase]:
        """Returns a set by name (see `find_set`); the default name also means the only set."""
        if name is None or (name == _UNNAMED and name not in self.sets and len(self.sets) == 1):
            return next(iter(self.sets.values()))
        return find_set(self.sets, name)

    @property
    def all_messages(self) -> Mapping[str, Mapping[str, Any]]:
        """All messages, by their first location in the file."""
        cases: dict[int, tuple[str, MessageCase]] = {}
        for set_name, of_set in self.sets.items():
            for each in of_set:
                cases.setdefault(id(each), (set_name, each))
        found = {f"goal set '{name}', goal '{case.name}'": case.message or {} for name, case in cases.values()}
        return found if self.reset is None else {**found, "reset": self.reset}


def single_case(name: str) -> CaseBook:
    return CaseBook({name: (MessageCase(name),)})


def read_cases(file: Path) -> CaseBook:
    """Reads sets of messages from YAML, not checked against a type; raises `ConfigurationError` with the location."""
    table = load_goal_file(file, {"goal_sets", "reset"})
    reset = table.get("reset")
    given = parse_sets(table, file, MessageCase, example="corners")
    sets = {name: tuple(replace(case, message=case.message or {}) for case in cases) for name, cases in given.items()}
    return CaseBook(sets, None if reset is None else as_table(reset, f"{file}: reset"))


def digest_of_data(path: Path) -> str:
    """Returns the short SHA-256 of a file, or of a folder's files; raises `ConfigurationError` without one."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    try:
        return _digest_of(tuple((file, (found := file.stat()).st_mtime_ns, found.st_size) for file in files))
    except OSError as error:
        raise ConfigurationError(
            f"the data of the stimulus, {path}, cannot be read: {error.strerror}",
            remedy="its path in [tool.ldos.stimulus] is a folder or a file, from pyproject.toml",
        ) from None


@functools.lru_cache(maxsize=8)
def _digest_of(files: tuple[tuple[Path, int, int], ...]) -> str:
    """Digest of files; their times and sizes are part of the cache key, so that changed ones are read again."""
    digest = hashlib.sha256()
    for file, _, _ in files:
        with file.open("rb") as opened:
            digest.update(f"{file.name} {hashlib.file_digest(opened, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class StackInfo:
    """Description of a running stack, for headers and records."""

    name: str  # name of its baselines' folder, such as ``ros2-gz``
    description: str  # text that names the parts
    rmw: str  # the middleware, as part of the host class
    versions: Mapping[str, str]  # versions of the relevant software, by name
    kind: StackKind = StackKind.EMBEDDED
    has_simulated_clock: bool = False  # True if its nodes take time from a topic
    # True if each start begins in the same state, as a simulation does; hardware stays where it is
    starts_afresh: bool = True


class RunningStack(Protocol):
    """A running stack; `environment` has variables for other processes that use its domain and middleware."""

    info: StackInfo
    domain: int
    environment: Mapping[str, str]

    @property
    def stimulus(self) -> Stimulus: ...

    def pids(self) -> list[int]:
        """Returns pids of the stack's processes, which may appear in its trace."""

    def processes(self) -> Mapping[int, str]:
        """Names of the running processes under test, by pid, without those of the stimulus."""

    def all_processes(self) -> Mapping[int, str]:
        """Names of all processes under test, by pid, including those that have ended."""

    def loop_statistics(self) -> Mapping[str, Moments]:
        """Statistics of a controller manager's loops since their activation, by name; empty without a manager.

        Raises:
            Unavailable: its messages are not installed.
            BringUpFailed: the process that listens to it ended.
        """

    def topic_numbers(self, subjects: Sequence[str]) -> Mapping[str, list[float] | str]:
        """Numbers that arrived since the last call, by ``TOPIC:FIELD``, or the reason why there are none.

        Raises:
            BringUpFailed: the process that listens to the topics ended.
        """

    def settle(self) -> None:
        """Waits until all start-up helpers have ended. Called after warm-up, before the first trial."""


class StackBackend(Protocol):
    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> RunningStack:
        """Starts the stack and returns when it accepts goals.

        Args:
            on_waiting: called every few seconds with the missing parts, if the backend knows them.

        Raises:
            BringUpFailed: the stack did not become ready; includes the last lines of each process.
        """

    def stop(self) -> None:
        """Ends every process. May be called at any time, and repeatedly."""


@dataclass(frozen=True)
class Installation:
    """An installed version of the stack."""

    python: str = sys.executable  # interpreter of the embedded stack's processes
    # variables of a sourced ROS 2 workspace, which replace ours of the same names; ``None`` for ours
    environment: Mapping[str, str] | None = None
    launch_file: str = ""  # replaces the launch file in the settings; empty for that one

    @property
    def is_ours(self) -> bool:
        return self == OURS

    @property
    def interpreter(self) -> tuple[str, ...]:
        """Command that runs Python.

        In another environment, it does not import our sources from ``PYTHONPATH`` or the current folder.
        """
        return (self.python,) if self.python == sys.executable else (self.python, "-I")


OURS: Final = Installation()  # the environment of this process
