"""Variances between starts and between runs of unchanged code, from other machines' record and this one's known runs.

A few starts or runs give poor estimates. They are combined with a prior, weighted by degrees of freedom:
``s² = (d₀ s₀² + d s²) / (d₀ + d)``, with ``d₀ + d`` degrees of freedom, so that this machine's data gradually outweigh
the prior. The prior's record ships with the package; ``make runs`` appends to it.

Reference: G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3, 2004.

Known runs are in ``.ldos/known/<stack>/<host class>/<scenario>/<time>.json``. Those of the baseline's stack are pooled
with the baseline. Those of any stack that ran at least twice show how much runs differ.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.files import write_atomically
from pytest_ldos.base.stats.adjust import remove_covariate, winsorize_groups
from pytest_ldos.base.stats.starts import (
    UNKNOWN,
    Numbers,
    Starts,
    Variance,
    pool,
    variance_between_starts,
    variance_within,
)
from pytest_ldos.host.checkout import is_changed
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import join_trials
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import COVARIATES
from pytest_ldos.measure.trial.artifacts import encode_trials, read_trials
from pytest_ldos.measure.trial.record import CONTAINED_IN, TrialSet, to_series, without_other_processes
from pytest_ldos.scenario.model import ScenarioSpec

RECORD: Final = Path(__file__).parent / "unchanged_runs.csv"

MEASURED: Final = ("T1", "T1mean", "T2", "T2x", "T3", "T3mean", "T3p90", "T3p99", "T4", "T5", "T5mean", "T5p99")

COLUMNS: Final = (
    *("machine", "condition", "stack", "scenario", "taken_at", "version"),
    *("trial", "start", "question", "outcome"),
    *COVARIATES,
    *MEASURED,
)
"""Columns of the record, one line per trial.

machine: its host class and a digest of its boot. condition: `idle`, or `busy` if another program ran. version: `head`
or `base` of an interleaved run, empty in a plain one. start: number of the stack's start within its run. Times in
milliseconds; empty where unknown.
"""

DEGREES: Final = 6.0
"""Degrees of freedom of the prior, d₀. The record has too few machines to estimate how much machines differ. With six,
the first comparison finds an effect of six standard errors, and six runs of this machine weigh as much as the
record."""

FEWEST_DEGREES: Final = 4.0
"""Fewest degrees of freedom of the variance between runs with which the record is used. With fewer, a first comparison
on a machine is less certain than by the assumption that it would replace."""

_FEWEST: Final = 4

_NONE: Final = np.empty(0)

_RESOLUTION: Final = 0.1
"""Least variance between starts, in variances between trials: a few trials cannot distinguish less from zero."""


@dataclass(frozen=True)
class Between:
    """Variances of a metric's logarithm between equal versions."""

    starts: Variance = UNKNOWN  # between starts of one run, beyond what the variation of their trials explains
    runs: Variance = UNKNOWN  # between runs at different times, with what their starts contribute
    trials: Variance = UNKNOWN

    def scaled(self, factor: float) -> Between:
        return Between(self.starts * factor, self.runs * factor, self.trials * factor)


@dataclass(frozen=True)
class RunOf:
    """One metric in one run of one version, one element per trial; each question occurs once.

    Values and covariates (`causes`) are logarithms, NaN where unknown.
    """

    questions: tuple[str, ...]
    values: Numbers
    starts: Starts
    causes: Mapping[str, Numbers]

    def of(self, questions: Iterable[str]) -> RunOf:
        places = [self.questions.index(each) for each in questions]
        causes = {name: values[places] for name, values in self.causes.items()}
        return RunOf(tuple(questions), self.values[places], self.starts[places], causes)


_Known = Mapping[tuple[str, str], "Between"]


def known_of(stack: str, metric: str) -> Between | None:
    """The record's variances of a metric; ``None`` if it has too few runs of such a stack."""
    return estimate_record().get((stack, metric))


@cache
def estimate_record() -> _Known:
    with RECORD.open(newline="", encoding="utf-8") as lines:
        return estimate(csv.DictReader(lines))


def estimate(rows: Iterable[Mapping[str, str]]) -> _Known:
    """Variances by kind of stack and metric, from plain runs on idle machines; only of stacks with enough runs."""
    groups: dict[tuple[str, ...], dict[str, list[Mapping[str, str]]]] = {}
    for row in rows:
        if row["condition"] == "idle" and not row["version"] and row["outcome"] == "success":
            of = groups.setdefault((row["stack"], row["scenario"], row["machine"]), {})
            of.setdefault(row["taken_at"], []).append(row)
    found: dict[tuple[str, str], Between] = {}
    for stack in {stack for stack, *_ in groups}:
        for metric in MEASURED:
            seen = [
                between([_run_of(rows, metric) for rows in runs.values()])
                for (name, *_), runs in groups.items()
                if name == stack
            ]
            known = pool_all(seen)
            if known.starts.degrees and known.runs.degrees >= FEWEST_DEGREES:
                starts, of_runs = (
                    Variance(max(each.value, 0.0), min(each.degrees, DEGREES)) for each in (known.starts, known.runs)
                )
                found[stack, metric] = Between(starts, of_runs, known.trials)
    return found


def _run_of(rows: Iterable[Mapping[str, str]], name: str) -> RunOf:
    known = [row for row in rows if row[name] and float(row[name]) > 0]
    taken = CONTAINED_IN.get(name)
    values = np.array([float(row[name]) - float((taken and row[taken]) or 0) for row in known])
    metric = METRICS[name].description
    causes = {
        cause: np.log(np.array([float(row[cause] or "nan") for row in known]))
        for cause in (*metric.adjust_for, *metric.adjust_where_alike)
    }
    starts = np.array([int(row["start"]) for row in known], dtype=np.int64)
    return RunOf(tuple(row["question"] for row in known), np.log(values), starts, causes)


def pool_all(found: Iterable[Between]) -> Between:
    """Pools the variances of several groups of equal runs."""
    every = [*found]
    return Between(*(pool([getattr(each, name) for each in every]) for name in ("starts", "runs", "trials")))


def between(runs: Iterable[RunOf]) -> Between:
    """Variances between the starts and between the runs of one version on one machine, by moments.

    Questions common to all runs are compared; each has its own level. The contribution of trials to the variance
    between runs is subtracted, up to half of that variance: a few runs cannot distinguish less from zero.
    """
    every = [run for run in runs if len(run.questions) >= _FEWEST]
    questions = sorted(set.intersection(*(set(run.questions) for run in every))) if every else []
    if len(every) < 2 or len(questions) < _FEWEST:
        return Between()
    every = [run.of(questions) for run in every]
    starts = np.array([run.starts for run in every])
    values = np.array([run.values for run in every])
    left = values - values.mean(axis=0)
    for name in every[0].causes:
        cause = np.array([run.causes[name] for run in every])
        cause = cause - cause.mean(axis=0)
        (of_all, _), _ = remove_covariate((left.ravel(), _NONE), (cause.ravel(), _NONE))
        left = of_all.reshape(left.shape)
    left = np.array(winsorize_groups([*left]))  # a single disturbed trial is not a property of the machine
    inflation = len(every) / (len(every) - 1)
    of_runs = [*zip(left, starts, strict=True)]
    estimates = [variance_between_starts(*each) for each in of_runs]
    of_starts = pool([Variance(each.value * inflation, each.degrees / inflation) for each in estimates])
    groups = ([values[of == start] for start in np.unique(of)] for values, of in of_runs)
    within = inflation * float(np.mean([variance_within(each) for each in groups]))
    of_starts = Variance(max(of_starts.value, _RESOLUTION * within), of_starts.degrees)
    of_means = float(np.var(left.mean(axis=1), ddof=1))
    of_level = Variance(max(of_means - within / len(questions), of_means / 2), len(every) - 1)
    return Between(of_starts, of_level, Variance(within, left.size / inflation))


MOST_RUNS: Final = 40

MOST_OF_BASELINE: Final = 8
"""Most runs pooled into a baseline, the newest; more would hardly improve its precision."""

KNOWN: Final = "known"
"""Folder of known runs, next to that of the local baselines."""

_EMBEDDED: Final = "embedded"


@dataclass(frozen=True, kw_only=True)
class KnownRuns:
    """Variation between runs of unchanged stacks on this machine."""

    of_baseline: int = 1  # number of runs in the baseline
    observed: int = 0  # number of runs of stacks that ran more than once, made on so many `days`
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
    host, settings = trials.fingerprint, asdict(settings_of(trials))
    parts = [trials.stack, host.kernel, dict(host.versions), commit, dict(trials.influences), settings]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def keep_run(store: Path, trials: TrialSet) -> None:
    """Keeps a plain run if its stack can be identified; for errors see `write_atomically`."""
    if trials.session or trials.watched or trials.distortion or trials.incomplete or not stack_of(trials):
        return
    folder = BaselineKey.of(trials).folder(store.with_name(KNOWN))
    moment = "".join(each for each in trials.started_at if each.isdigit())
    text = encode_trials(trials)
    write_atomically(folder / f"{moment}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json", text)
    for old in sorted(folder.glob("*.json"))[:-MOST_RUNS]:
        old.unlink(missing_ok=True)


def with_known_runs(store: Path, baseline: TrialSet, head: TrialSet) -> tuple[TrialSet, KnownRuns]:
    """The baseline pooled with known runs of its stack, and the variation between known runs.

    `head` and unreadable runs, such as those of a later version, are left out.
    """
    kept = []
    for file in sorted(BaselineKey.of(baseline).folder(store.with_name(KNOWN)).glob("*.json")):
        with suppress(RecordUnreadable):
            kept.append(read_trials(file))
    return join_known(baseline, head, kept)


def join_known(baseline: TrialSet, head: TrialSet, kept: Sequence[TrialSet]) -> tuple[TrialSet, KnownRuns]:
    """As `with_known_runs`; `kept` are the known runs, oldest first.

    Runs under heavy interference differ by more than others: only those count that were as disturbed as the head.
    """
    compared, is_disturbed = {_identity(head), _identity(baseline)}, head.is_disturbed
    groups: dict[str, list[TrialSet]] = {}
    for each in (baseline, *[each for each in kept if _identity(each) not in compared]):
        if each.is_disturbed == is_disturbed:
            groups.setdefault(stack_of(each), []).append(each)
    stack = stack_of(baseline)
    same = [each for each in groups.get(stack, []) if stack and each is not baseline][1 - MOST_OF_BASELINE :]
    if baseline.is_disturbed == is_disturbed or not same:
        same.insert(0, baseline)
    repeated = [group for stack, group in groups.items() if stack and len(group) > 1]
    observed = [each for group in repeated for each in group]
    found: dict[str, Between] = {}
    for name in (metric.name for metric in baseline.metrics):
        seen = pool_all(between([_run_of_trials(run, name) for run in group]) for group in repeated)
        if seen.runs.degrees:
            found[name] = seen
    trials, loads = join_trials(same)
    return replace(baseline, trials=trials, loads=loads), KnownRuns(
        of_baseline=len(same),
        observed=len(observed),
        days=len({each.started_at[:10] for each in observed}),
        between=found,
    )


def _identity(trials: TrialSet) -> tuple[str, ...]:
    return tuple(trial.identity for trial in trials.trials)


def _run_of_trials(trials: TrialSet, name: str) -> RunOf:
    if (metric := next((each for each in trials.metrics if each.name == name), None)) is None:
        return RunOf((), np.empty(0), np.empty(0, dtype=np.int64), {})
    series = to_series(trials, metric)
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
