"""Known runs: earlier runs of unchanged stacks, from which the variation between runs on this machine is estimated.

They are stored in ``.ldos/known/<stack>/<host class>/<scenario>/<time>.json``. Runs of the baseline's stack are pooled
with the baseline. Runs of any stack that ran at least twice show how much runs differ.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.host.checkout import is_changed
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import join_trials
from pytest_ldos.judge.unchanged import Between, RunOf, between, pool_all
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.measure.trial.record import TrialSet, to_series, without_other_processes
from pytest_ldos.scenario.model import ScenarioSpec

MOST_RUNS: Final = 40
"""Most runs kept for a scenario; the oldest are deleted."""

MOST_OF_BASELINE: Final = 8
"""Most runs pooled into a baseline, the newest; more would hardly improve its precision."""

KNOWN: Final = "known"
"""Folder of known runs, next to that of the local baselines."""

_EMBEDDED: Final = "embedded"


@dataclass(frozen=True, kw_only=True)
class KnownRuns:
    """Variation between runs of unchanged stacks on this machine.

    Attributes:
        of_baseline: number of runs in the baseline.
        observed: number of runs of stacks that ran more than once.
        days: number of days on which they were made.
        between: variances by metric.
    """

    of_baseline: int = 1
    observed: int = 0
    days: int = 0
    between: Mapping[str, Between] = field(default_factory=dict)


def is_whole(trials: TrialSet) -> bool:
    """True if the record identifies everything that ran; the embedded arm with its own goals is part of pytest-ldos."""
    stack = trials.spec.stack
    return trials.stack_kind == _EMBEDDED and not stack.goals and stack.moves_arm


def settings_of(trials: TrialSet) -> ScenarioSpec:
    """Settings of the scenario without its numbers of trials."""
    return replace(trials.spec, trials=1, max_trials=0)


def stack_of(trials: TrialSet) -> str:
    """Digest of packages, kernel, settings and sources; empty if the sources cannot be identified.

    The commit identifies sources that the record does not, such as files named in the settings.
    """
    commit = "" if is_whole(trials) else trials.commit
    if not is_whole(trials) and (not commit or is_changed(commit)):
        return ""
    parts = [
        trials.stack,
        trials.fingerprint.kernel,
        dict(trials.fingerprint.versions),
        commit,
        dict(trials.influences),
    ]
    text = json.dumps([*parts, asdict(settings_of(trials))], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def keep_run(store: Path, trials: TrialSet) -> None:
    """Keeps a plain run if its stack can be identified.

    Raises:
        NotWritten: see `write_atomically`.
    """
    if trials.session or trials.watched or trials.distortion or trials.incomplete or not stack_of(trials):
        return
    folder = _folder(store, BaselineKey.of(trials))
    moment = "".join(each for each in trials.started_at if each.isdigit())
    write_atomically(folder / f"{moment}.json", encode_trials(trials))
    for old in sorted(folder.glob("*.json"))[:-MOST_RUNS]:
        old.unlink(missing_ok=True)


def with_known_runs(store: Path, baseline: TrialSet, head: TrialSet) -> tuple[TrialSet, KnownRuns]:
    """The baseline pooled with known runs of its stack, and the variation between known runs; `head` is left out."""
    return join_known(baseline, head, [*_read(_folder(store, BaselineKey.of(baseline)))])


def join_known(baseline: TrialSet, head: TrialSet, kept: Sequence[TrialSet]) -> tuple[TrialSet, KnownRuns]:
    """As `with_known_runs`; `kept` are the known runs, oldest first."""
    runs = [each for each in kept if _identity(each) not in {_identity(head), _identity(baseline)}]
    groups: dict[str, list[TrialSet]] = {stack_of(baseline): [baseline]}
    for each in runs:
        groups.setdefault(stack_of(each), []).append(each)
    same = groups[stack_of(baseline)][1:][1 - MOST_OF_BASELINE :] if stack_of(baseline) else []
    repeated = [group for stack, group in groups.items() if stack and len(group) > 1]
    observed = [each for group in repeated for each in group]
    trials, loads = join_trials([baseline, *same])
    return replace(baseline, trials=trials, loads=loads), KnownRuns(
        of_baseline=1 + len(same),
        observed=len(observed),
        days=len({each.started_at[:10] for each in observed}),
        between=_between(baseline, repeated),
    )


def _identity(trials: TrialSet) -> tuple[str, ...]:
    return tuple(trial.identity for trial in trials.trials)


def _between(baseline: TrialSet, groups: Iterable[Sequence[TrialSet]]) -> dict[str, Between]:
    found = {}
    of_groups = [*groups]
    for metric in baseline.metrics:
        seen = pool_all(between([_run_of(run, metric.name) for run in group]) for group in of_groups)
        if seen.runs.degrees:
            found[metric.name] = seen
    return found


def _run_of(trials: TrialSet, name: str) -> RunOf:
    metric = next((each for each in trials.metrics if each.name == name), None)
    series = to_series(trials, metric) if metric is not None else None
    if metric is None or series is None:
        return RunOf((), np.empty(0), np.empty(0, dtype=np.int64), {})
    series, _ = without_other_processes(series, series)
    chosen = [at for at, value in enumerate(series.values) if series.questions[at] and 0 < value < math.inf]
    causes = {
        cause: np.log(np.array(series.covariates[cause], dtype=np.float64)[chosen])
        for cause in (*metric.adjust_for, *metric.adjust_where_alike)
    }
    return RunOf(
        tuple(series.questions[at] for at in chosen),
        np.log(np.array(series.values, dtype=np.float64)[chosen]),
        np.array(series.blocks, dtype=np.int64)[chosen],
        causes,
    )


def _folder(store: Path, key: BaselineKey) -> Path:
    return key.folder(store.with_name(KNOWN))


def _read(folder: Path) -> Iterable[TrialSet]:
    """The runs, oldest first; unreadable ones, such as those of a later version, are left out."""
    for file in sorted(folder.glob("*.json")):
        try:
            yield read_trials(file)
        except RecordUnreadable:
            continue
