"""Starts of a stack: measured one after another, joined, and stored until their purpose is complete.

``.ldos/calibration/<stack>/<host class>/<scenario>/`` holds ``run-001.json`` … and ``unfinished.json``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.files import write_atomically
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.campaign.blocks import Bench, BlockObserver, run_block
from pytest_ldos.campaign.noise import starts_of, template_of
from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.versions.version import head_version
from pytest_ldos.host.checkout import CHANGED, ask_git, describe_commit
from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.host.interference import add_up
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.load.protocol import RepeatedLoad
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue
from pytest_ldos.measure.trial.artifacts import (
    ScenarioFolder,
    drop_folder,
    new_run_folder,
    new_scenario_folder,
    read_trials,
    resumable,
)
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.choose import describe_stack, stack_available
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec

_T = TypeVar("_T")
Answer = TypeVar("Answer", bool, bool | None)


@dataclass(frozen=True, kw_only=True)
class Site:
    """Settings shared by all starts.

    Attributes:
        output: parent of a folder per start; the folder of a complete start is deleted.
    """

    output: Path
    paths: Sequence[PathSpec]
    observer: BlockObserver
    catalogue: Catalogue = field(default_factory=lambda: METRICS)


def motions_of(spec: ScenarioSpec) -> int:
    """Number of trials and warm-up trials of one start."""
    return spec.trials + spec.warmup


def measure_start(spec: ScenarioSpec, site: Site, *, block: int) -> TrialSet:
    """Measures one stack start under the scenario's loads, like a block of an interleaved session.

    Raises:
        Unavailable, RecordingFailed, BringUpFailed, LoadFailed: see `run_block`; logs are kept.
    """
    folder = new_scenario_folder(new_run_folder(site.output), spec.name)
    whole = Block(number=block, role=Role.HEAD, trials=range(spec.trials))
    trials = run_block(bench_of(spec, site, folder), whole, head_version(Path.cwd()), None, lambda record: None)
    if not trials.incomplete:
        drop_folder(folder)
    return trials


def bench_of(spec: ScenarioSpec, site: Site, folder: ScenarioFolder) -> Bench:
    """The bench for starts under the scenario's loads."""
    return Bench(
        spec=spec,
        folder=folder,
        goals=spec.goals,
        loads=tuple(map(RepeatedLoad, spec.loads)),
        paths=site.paths,
        catalogue=site.catalogue,
        observer=site.observer,
    )


def append_start(run: TrialSet | None, start: TrialSet) -> TrialSet:
    """Appends a start to a run."""
    if run is None:
        return start
    return dataclasses.replace(
        run,
        trials=(*run.trials, *start.trials),
        loads=(*run.loads, *start.loads),
        discarded_events=run.discarded_events + start.discarded_events,
        incomplete=start.incomplete or run.incomplete,
        surroundings=add_up(each.surroundings for each in (run, start) if each.surroundings is not None),
        repeated=(*run.repeated, *start.repeated),
        metrics=template_of([run, start]).metrics,
    )


def shortfall_of(trials: TrialSet) -> str:
    """Shortfall of the first load that was not as requested; empty if all were."""
    return next((str(proof["shortfall"]) for proof in trials.loads if proof.get("shortfall")), "")


def arm_ended(trials: TrialSet) -> bool:
    """True if the arm failed under all its loads so that no further trial was possible.

    Either its stack died, or it could not return home. Failures before all loads were running do not count. For
    interleaved versions, the record does not show which stack failed.
    """
    return bool(trials.incomplete) and not trials.session and len(trials.loads) >= len(trials.spec.loads)


def has_lost_motion(trials: TrialSet) -> bool:
    """True if the start ended in a motion that is not a trial, such as the way home."""
    last = trials.trials[-1] if trials.trials else None
    return arm_ended(trials) and (last is None or last.outcome is not OutcomeClass.STACK_DIED)


def with_lost_motion(broken: Sequence[Answer], trials: TrialSet) -> list[Answer]:
    """Adds failed resets to the broken trials: a trial also counts as broken if its reset took two attempts.

    Args:
        broken: results of the trials without resets. A start that failed before its first trial yields one broken
            trial.
    """
    answers = list(broken)
    for place, trial in enumerate(trials.motions):
        if trial.reset_failure:
            answers[place] = True
    if has_lost_motion(trials):
        answers[-1:] = [True]
    return answers


def version_here(root: Path, stack: StackSpec, *, baselines: Path) -> Mapping[str, str]:
    """The project's commit, its uncommitted changes, and this machine's host class and packages.

    Results of several calls are combined only if these are equal.

    Args:
        root: root of the project; changes count in its whole checkout, because measured code may be outside of it.
        baselines: the repository's baselines; files recorded there do not count as changes.
    """
    commit, changes = describe_commit(root), None
    if commit.endswith(CHANGED):
        asked = ("diff", "HEAD", "--", ":/")
        changes = ask_git(root, *asked, f":(exclude,literal){baselines}")
        if changes is None:  # git refuses a path outside its checkout
            changes = ask_git(root, *asked)
    digest = hashlib.sha256(changes.encode("utf-8", "surrogateescape")).hexdigest()[:12] if changes else ""
    return {"commit": commit.removesuffix(CHANGED), "changes": digest, **machine_here(stack)}


def machine_here(stack: StackSpec) -> dict[str, str]:
    """Host class and package versions; empty if the stack is not available."""
    if not stack_available(stack).ok:
        return {}
    info = describe_stack(stack)
    host = take_fingerprint(rmw=info.rmw, versions=info.versions)
    return {"host class": host.host_class, **{f"package {name}": each for name, each in sorted(host.versions.items())}}


def key_of(spec: ScenarioSpec) -> BaselineKey:
    """The key of the baseline for trials made here."""
    info = describe_stack(spec.stack)
    host = take_fingerprint(rmw=info.rmw, versions=info.versions)
    return BaselineKey(info.name, host.host_class, spec.name)


class Notes(Protocol):
    """Observer of a search."""

    def note(self, text: str) -> None:
        """A remark for the user."""


def numbered_files(folder: Path, stem: str) -> list[tuple[int, Path]]:
    """Files ``STEM-NUMBER.json`` of a folder with their numbers, in order; copies with other names are ignored."""
    name = re.compile(rf"{stem}-([0-9]{{1,9}})\.json")
    found = ((name.fullmatch(file.name), file) for file in folder.glob(f"{stem}-*.json"))
    return sorted((int(match[1]), file) for match, file in found if match)


def write_document(file: Path, document: Mapping[str, Any]) -> None:
    """Writes a document atomically.

    Raises:
        NotWritten: it could not be written.
    """
    with resumable():
        write_atomically(file, json.dumps(document, allow_nan=False) + "\n")


def read_document(file: Path, parse: Callable[[Any], _T], *, remedy: str) -> _T:
    """Reads a document and parses it.

    Raises:
        RecordUnreadable: it is damaged; the message names it.
    """
    try:
        return parse(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RecordUnreadable(f"{file} is damaged ({type(error).__name__}: {error})", remedy=remedy) from None


def plain_spec(spec: ScenarioSpec) -> Any:
    return json.loads(json.dumps(dataclasses.asdict(spec), default=str))


def plain_trials(trials: TrialSet) -> Any:
    return json.loads(encode_trials(trials))


def set_damaged_aside(files: Iterable[Path], read: Callable[[Path], object]) -> list[Path]:
    """Renames damaged files to ``NAME.damaged`` and returns their new paths. Nothing is deleted.

    Args:
        read: reads a file; raises `RecordUnreadable` if it is damaged.

    Raises:
        RecordUnreadable: a file cannot be opened (it may be intact), or a damaged one cannot be renamed.
    """
    renamed = []
    for file in files:
        try:
            file.read_bytes()
        except OSError as error:
            raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy="see its permissions") from None
        try:
            read(file)
        except RecordUnreadable:
            numbers = itertools.chain([""], itertools.count(2))
            names = (file.with_name(f"{file.name}{number}.damaged") for number in numbers)
            try:
                renamed.append(file.rename(next(name for name in names if not name.exists())))
            except OSError as error:
                reason = f"{file} is damaged, and cannot be renamed: {error.strerror}"
                raise RecordUnreadable(reason, remedy="delete it, then the start is measured again") from None
    return renamed


_STEM: Final = "run"


@dataclass(frozen=True)
class Evidence:
    """The runs of one scenario on one host class."""

    folder: Path

    @classmethod
    def of(cls, output: Path, key: BaselineKey) -> Evidence:
        return cls(key.folder(output / "calibration"))

    def runs(self) -> list[TrialSet]:
        """The finished runs, in chronological order.

        Raises:
            RecordUnreadable: a file is damaged; names it.
        """
        return [read_trials(file) for _, file in numbered_files(self.folder, _STEM)]

    def unfinished(self) -> TrialSet | None:
        """The starts of an interrupted run; ``None`` if there are none or they are damaged."""
        try:
            return read_trials(self._unfinished)
        except RecordUnreadable:
            return None

    def keep(self, run: TrialSet) -> None:
        """Saves the starts of a run that is not finished."""
        write_atomically(self._unfinished, encode_trials(run))

    def finish(self, run: TrialSet, *, keep_earlier: bool) -> None:
        """Saves a complete run; only then deletes earlier ones, unless they are kept."""
        earlier = numbered_files(self.folder, _STEM)
        number = 1 + max((number for number, _ in earlier), default=0)
        write_atomically(self.folder / f"{_STEM}-{number:03d}.json", encode_trials(run))
        for file in (self._unfinished, *([] if keep_earlier else [file for _, file in earlier])):
            file.unlink(missing_ok=True)

    @property
    def _unfinished(self) -> Path:
        return self.folder / "unfinished.json"


def _are_poolable(run: TrialSet, other: TrialSet) -> bool:
    """True if starts of both can be pooled: the same version, measured in the same way."""
    return (
        BaselineKey.of(run) == BaselineKey.of(other)
        and run.spec == other.spec
        and run.commit == other.commit
        and run.fingerprint.versions == other.fingerprint.versions
    )


@dataclass(frozen=True, kw_only=True)
class SequencePlan:
    """Plan of a sequence of starts.

    Attributes:
        time_limit_s: starts that are expected to end later are not begun; ``None`` for no limit.
        keep_earlier: True to include runs of earlier calibrations of the same version.
    """

    spec: ScenarioSpec
    starts: int
    runs: int = 1
    pause_s: float = 0.0
    time_limit_s: float | None = None
    keep_earlier: bool = False


class SequenceObserver(Notes, Protocol):
    def start(self, number: int, of: int) -> None:
        """A start (from 1) begins."""


@dataclass(frozen=True)
class Sequencer:
    """Measures starts according to a plan.

    Attributes:
        measure: returns the trials of one start, by its block number.
        now, pause: time of a clock and sleep, in seconds.
    """

    plan: SequencePlan
    evidence: Evidence
    measure: Callable[[int], TrialSet]
    observer: SequenceObserver
    commit: str = ""
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    _began: list[float] = field(default_factory=list)

    def runs(self) -> list[TrialSet]:
        """Measures and returns all runs; the last one may be shorter than planned.

        After an early end, the next call resumes from the complete starts on disk.
        """
        earlier = self.evidence.runs() if self.plan.keep_earlier else []
        measured: list[TrialSet] = []
        self._began.clear()
        run = self.evidence.unfinished()
        if run is not None and (run.spec != self.plan.spec or run.commit != self.commit):
            run = None
        if run is not None:
            self.observer.note(f"continues what was interrupted: {len(starts_of([run]))} starts of {run.started_at}")
        total = self.plan.runs * self.plan.starts
        for number in range(self.plan.runs):
            if number:
                self.pause(self.plan.pause_s)
            run, is_complete = self._run(run if number == 0 else None, before=number * self.plan.starts, total=total)
            if run is not None:
                measured.append(run)
            if not is_complete:
                self.observer.note(f"the time limit ended it after {len(starts_of(measured))} of {total} starts")
                break
            if run is not None:
                self.evidence.finish(run, keep_earlier=self.plan.keep_earlier or number > 0)
        return [*(self._poolable(earlier, measured[-1]) if measured else earlier), *measured]

    def _poolable(self, earlier: list[TrialSet], last: TrialSet) -> list[TrialSet]:
        """Earlier runs of the same version, with any number of trials; differences between versions are not noise."""
        trials, max_trials = last.spec.trials, last.spec.max_trials
        alike = [replace(run, spec=replace(run.spec, trials=trials, max_trials=max_trials)) for run in earlier]
        found = [run for run, each in zip(earlier, alike, strict=True) if _are_poolable(each, last)]
        if left_out := len(earlier) - len(found):
            runs = "1 earlier run belongs" if left_out == 1 else f"{left_out} earlier runs belong"
            self.observer.note(f"{runs} to another commit, setting or environment: left out")
        return found

    def _run(self, run: TrialSet | None, *, before: int, total: int) -> tuple[TrialSet | None, bool]:
        """Measures the missing starts of a run; False if the time limit ended it.

        Args:
            before: number of starts of earlier runs.
        """
        for block in range(len(starts_of([run])) if run else 0, self.plan.starts):
            if not self._is_in_time():
                return run, False
            self.observer.start(before + block + 1, total)
            start = self.measure(block)
            if run is not None and not _are_poolable(run, start):
                self.observer.note("what was measured before belongs to another version: it is left out")
                run = None
            run = append_start(run, start)
            self.evidence.keep(run)
        return run, True

    def _is_in_time(self) -> bool:
        """Notes that a start begins; True if it is expected to end within the time limit."""
        self._began.append(self.now())
        spent_s, made = self._began[-1] - self._began[0], len(self._began) - 1
        return self.plan.time_limit_s is None or not made or spent_s + spent_s / made <= self.plan.time_limit_s
