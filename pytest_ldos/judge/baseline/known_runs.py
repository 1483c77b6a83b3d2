"""Runs that are known: every plain run of a stack that ran before tells how much nothing changes on this machine.

They lie in ``.ldos/known/<stack>/<host class>/<scenario>/<time>.json``. Runs of the baseline's stack are the baseline
together; runs of any stack that ran twice show how much runs differ here.
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
"""Runs that are kept of a scenario; the oldest go."""

MOST_OF_BASELINE: Final = 8
"""Runs that a baseline consists of, the newest: more hardly sharpen it."""

KNOWN: Final = "known"
"""Folder of known runs, beside that of the local baselines."""

_EMBEDDED: Final = "embedded"


@dataclass(frozen=True, kw_only=True)
class KnownRuns:
    """Variation between runs of unchanged stacks on this machine.

    Attributes:
        of_baseline: runs that the baseline consists of.
        observed: runs of stacks that ran more than once.
        days: on which they were made.
        between: variances by metric.
    """

    of_baseline: int = 1
    observed: int = 0
    days: int = 0
    between: Mapping[str, Between] = field(default_factory=dict)


def is_whole(trials: TrialSet) -> bool:
    """True if the record tells all that ran: the embedded arm with its own goals is a part of pytest-ldos."""
    stack = trials.spec.stack
    return trials.stack_kind == _EMBEDDED and not stack.goals and stack.moves_arm


def settings_of(trials: TrialSet) -> ScenarioSpec:
    """Settings of the scenario, whatever the numbers of trials."""
    return replace(trials.spec, trials=1, max_trials=0)


def stack_of(trials: TrialSet) -> str:
    """Digest of what ran: packages, kernel, settings and sources; empty if the sources are known to nobody.

    Where the record does not tell all sources, and settings name files, the commit does.
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
    """Keeps a plain run, if it can be told what ran.

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
    """The baseline with all known runs of its stack, and what all known runs show; `head` itself is none of them."""
    return join_known(baseline, head, [*_read(_folder(store, BaselineKey.of(baseline)))])


def join_known(baseline: TrialSet, head: TrialSet, kept: Sequence[TrialSet]) -> tuple[TrialSet, KnownRuns]:
    """See `with_known_runs`; `kept` are the known runs, oldest first."""
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
    """The runs that can be read, oldest first: one that cannot, as of a later version, is not known."""
    for file in sorted(folder.glob("*.json")):
        try:
            yield read_trials(file)
        except RecordUnreadable:
            continue
