"""Starts of a stack: measured one after another, joined, and stored until their campaign is complete."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

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
    decode_trials,
    drop_folder,
    encode_trials,
    new_run_folder,
    new_scenario_folder,
    resumable,
)
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.choose import describe_stack, stack_available
from pytest_ldos.robot.stack.cpus import find_placement
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec

_T = TypeVar("_T")
_K = TypeVar("_K")
Answer = TypeVar("Answer", bool, bool | None)


@dataclass(frozen=True, kw_only=True)
class Site:
    """Settings shared by all starts; the folder of each, below `output`, is deleted once the start is complete."""

    output: Path
    paths: Sequence[PathSpec]
    observer: BlockObserver
    catalogue: Catalogue = field(default_factory=lambda: METRICS)


def motions_of(spec: ScenarioSpec) -> int:
    """Number of trials and warm-up trials of one start."""
    return spec.trials + spec.warmup


def measure_start(spec: ScenarioSpec, site: Site, *, block: int) -> TrialSet:
    """Measures one stack start under the scenario's loads; raises as `run_block`, and then keeps logs."""
    folder = new_scenario_folder(new_run_folder(site.output), spec.name)
    whole = Block(number=block, role=Role.HEAD, trials=range(spec.trials))
    trials = run_block(bench_of(spec, site, folder), whole, head_version(Path.cwd()), None, lambda record: None)
    if not trials.incomplete:
        drop_folder(folder)
    return trials


def bench_of(spec: ScenarioSpec, site: Site, folder: ScenarioFolder) -> Bench:
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
    """Adds failed resets to the broken trials: a trial is also broken if its reset took two attempts.

    A start that failed before its first trial yields one broken trial.
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

    Results of several calls are combined only if these are equal. Changes count in the whole checkout, because measured
    code may be outside of `root`, except for those in `baselines`.
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
    host = take_fingerprint(rmw=info.rmw, versions=info.versions, stack_cpus=find_placement(stack).describe())
    return {"host class": host.host_class, **{f"package {name}": each for name, each in sorted(host.versions.items())}}


def key_of(spec: ScenarioSpec) -> BaselineKey:
    """The key of the baseline for trials made here."""
    info = describe_stack(spec.stack)
    host = take_fingerprint(rmw=info.rmw, versions=info.versions, stack_cpus=find_placement(spec.stack).describe())
    return BaselineKey(info.name, host.host_class, spec.name)


class CampaignObserver(Protocol):
    def note(self, text: str) -> None:
        """A remark for the user."""

    def doing(self, what: str) -> None:
        """A start, or a round of starts, begins."""

    def expect(self, steps: int) -> None:
        """Largest number of trials and warm-up trials that are left."""


@dataclass(frozen=True)
class Store(Generic[_T]):
    """Documents of a campaign in a folder; each is written atomically once it is measured.

    Attributes:
        decode: decodes a text; the file is named in errors. It is damaged if this raises.
        stem: documents are named ``STEM-NUMBER.json``; files with other names, such as copies, are ignored. If empty,
            each document has a name of its own.
    """

    folder: Path
    decode: Callable[[str, Path], _T]
    encode: Callable[[_T], str]
    stem: str = ""

    def files(self) -> list[Path]:
        return [file for _, file in self._numbered()]

    def _numbered(self) -> list[tuple[int, Path]]:
        name = re.compile(rf"{self.stem}-([0-9]{{1,9}})\.json" if self.stem else r"[^.].*()\.json")
        found = ((name.fullmatch(file.name), file) for file in self.folder.glob("*.json"))
        return sorted((int(match[1] or 0), file) for match, file in found if match)

    def keep(self, document: _T, name: str = "") -> None:
        """Writes a document, by default with the next number; after `NotWritten`, earlier ones are intact."""
        if not name:
            name = f"{self.stem}-{1 + max((number for number, _ in self._numbered()), default=0):03d}"
        with resumable():
            write_atomically(self.path(name), self.encode(document))

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def read(self, file: Path) -> _T:
        """Reads a document; raises `RecordUnreadable` with its name if it cannot be opened, or is damaged."""
        content = _content_of(file)
        try:
            return self.decode(content.decode("utf-8"), file)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = f"{file} is damaged ({type(error).__name__}: {error})"
            raise RecordUnreadable(reason, remedy=f"delete {file.name}: it is measured again") from None

    def documents(self) -> dict[Path, _T]:
        return {file: self.read(file) for file in self.files()}

    def set_damaged_aside(self) -> list[Path]:
        """Renames damaged files to ``NAME.damaged`` and returns their new paths. Nothing is deleted.

        Raises `RecordUnreadable` if a file cannot be opened (it may be intact), or a damaged one cannot be renamed.
        """
        renamed = []
        for file in self.files():
            _content_of(file)
            try:
                self.read(file)
            except RecordUnreadable:
                numbers = itertools.chain([""], itertools.count(2))
                names = (file.with_name(f"{file.name}{number}.damaged") for number in numbers)
                try:
                    renamed.append(file.rename(next(name for name in names if not name.exists())))
                except OSError as error:
                    reason = f"{file} is damaged, and cannot be renamed: {error.strerror}"
                    raise RecordUnreadable(reason, remedy="delete it, then the start is measured again") from None
        return renamed

    def recover(self, observer: CampaignObserver) -> None:
        """Sets damaged files aside and notes them; raises as `set_damaged_aside`."""
        for damaged in self.set_damaged_aside():
            observer.note(f"damaged, set aside and measured again: {damaged}")


def _content_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy="see its permissions") from None


@dataclass(frozen=True)
class StoredTrials(Generic[_K]):
    """Trials by level or side, from which a search with equal settings resumes."""

    asked: Any  # the requested scenario, as JSON values
    version: Mapping[str, str]  # identity of version and machine; see `version_here`
    sets: Mapping[_K, TrialSet]


def encode_stored(stored: StoredTrials[Any]) -> str:
    sets = {key: plain_trials(trials) for key, trials in stored.sets.items()}
    return json.dumps({"kind": "pytest-ldos trials of a search", **vars(stored), "sets": sets}, allow_nan=False) + "\n"


def decode_stored(text: str, file: Path, *, key: Callable[[str], _K]) -> StoredTrials[_K]:
    """Decodes stored trials; `key` converts the names of the sets."""
    document = json.loads(text)
    sets = {key(name): decode_trials(json.dumps(plain), file) for name, plain in document["sets"].items()}
    return StoredTrials(document["asked"], dict(document["version"]), sets)


def plain_spec(spec: ScenarioSpec) -> Any:
    return json.loads(json.dumps(dataclasses.asdict(spec), default=str))


def plain_trials(trials: TrialSet) -> Any:
    return json.loads(encode_trials(trials))


@dataclass
class TimeLimit:
    """Limit in seconds, if any; a start is expected to take as long as the mean of earlier ones."""

    limit_s: float | None
    now: Callable[[], float]
    _began: list[float] = field(default_factory=list)

    def allows_start(self) -> bool:
        """Notes that a start begins; True if it is expected to end in time, or is the first."""
        self._began.append(self.now())
        spent_s, made = self._began[-1] - self._began[0], len(self._began) - 1
        return self.limit_s is None or not made or spent_s + spent_s / made <= self.limit_s


_UNFINISHED: Final = "unfinished"


class RunStore(Store[TrialSet]):
    """Finished runs of a calibration, one per file, and the starts of an unfinished one.

    ``.ldos/calibration/<stack>/<host class>/<scenario>/`` holds ``run-001.json`` … and ``unfinished.json``.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, decode_trials, encode_trials, stem="run")

    def runs(self) -> list[TrialSet]:
        return [*self.documents().values()]

    def unfinished(self) -> TrialSet | None:
        """The starts of an interrupted run; ``None`` if there are none or they are damaged."""
        with suppress(RecordUnreadable):
            return self.read(self.path(_UNFINISHED))
        return None

    def finish(self, run: TrialSet, *, keep_earlier: bool) -> None:
        """Saves a complete run; only then deletes earlier ones, unless they are kept."""
        earlier = self.files()
        self.keep(run)
        for file in (self.path(_UNFINISHED), *([] if keep_earlier else earlier)):
            file.unlink(missing_ok=True)


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
    """Plan of a sequence of starts; `keep_earlier` includes runs of earlier calibrations of the same version."""

    spec: ScenarioSpec
    starts: int
    runs: int = 1
    pause_s: float = 0.0
    time_limit_s: float | None = None
    keep_earlier: bool = False


@dataclass(frozen=True)
class Sequencer:
    """Measures starts according to a plan; `measure` returns the trials of one start, given its block number."""

    plan: SequencePlan
    store: RunStore
    measure: Callable[[int], TrialSet]
    observer: CampaignObserver
    commit: str = ""
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def runs(self) -> list[TrialSet]:
        """All runs; the last one may be shorter than planned, and the next call resumes from its starts on disk."""
        earlier = self.store.runs() if self.plan.keep_earlier else []
        measured: list[TrialSet] = []
        limit = TimeLimit(self.plan.time_limit_s, self.now)
        run = self.store.unfinished()
        if run is not None and (run.spec, run.commit) == (self.plan.spec, self.commit):
            self.observer.note(f"continues what was interrupted: {len(starts_of([run]))} starts of {run.started_at}")
        else:
            run = None
        total = self.plan.runs * self.plan.starts
        for number in range(self.plan.runs):
            if number:
                self.pause(self.plan.pause_s)
            run, is_complete = self._run(run if number == 0 else None, limit, before=number * self.plan.starts)
            if run is not None:
                measured.append(run)
            if not is_complete:
                self.observer.note(f"the time limit ended it after {len(starts_of(measured))} of {total} starts")
                break
            if run is not None:
                self.store.finish(run, keep_earlier=self.plan.keep_earlier or number > 0)
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

    def _run(self, run: TrialSet | None, limit: TimeLimit, *, before: int) -> tuple[TrialSet | None, bool]:
        """Measures the missing starts of a run, after `before` starts of earlier ones; False if time ended it."""
        for block in range(len(starts_of([run])) if run else 0, self.plan.starts):
            if not limit.allows_start():
                return run, False
            self.observer.doing(f"start {before + block + 1} of {self.plan.runs * self.plan.starts}")
            start = self.measure(block)
            if run is not None and not _are_poolable(run, start):
                self.observer.note("what was measured before belongs to another version: it is left out")
                run = None
            run = append_start(run, start)
            self.store.keep(run, _UNFINISHED)
        return run, True
