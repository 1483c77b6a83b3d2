"""Judges recorded runs of unchanged code, as they are and slowed down: how often is the gate red, and what does it find?

    python -m benchmarks.recorded_runs        # ten minutes

The runs are those of `judge/unchanged_runs.csv`, idle; stored runs are judged by the record without them. A comparison of
interleaved versions is repeated with the versions of random pairs of starts exchanged, which changes nothing where both
are equal.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from unittest.mock import patch

import numpy as np

from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Comparison, Verdict
from pytest_ldos.judge.unchanged import MEASURED, RECORD, estimate, join_known
from pytest_ldos.measure.metrics.model import (
    CPU_WORK,
    MARKERS,
    PLANNED_DURATION,
    PLANS_CPU_WORK,
    PLANS_WAITED_FOR_OTHERS,
    WAITED_FOR_OTHERS,
    Measurement,
)
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import ScenarioSpec

Row = Mapping[str, str]
Slower = Mapping[str, float]

_FEWEST_LEFT: Final = 2
"""Fewest runs of the record that are left to judge the others by."""

_DETAILS: Final = {"T1": (WAITED_FOR_OTHERS,), "T1mean": (PLANS_CPU_WORK, PLANS_WAITED_FOR_OTHERS)}
_HOST: Final = Fingerprint(
    cpu_model="recorded",
    cores=2,
    smt="off",
    governor="none",
    turbo="unknown",
    rmw="cyclonedds",
    kernel="recorded",
    hostname="recorded",
    versions={},
)

PLANTED: Final[Mapping[str, Sequence[float]]] = {
    "T1": (0.15, 0.2, 0.35, 0.5),
    "T1mean": (0.07, 0.15, 0.3, 0.5),
    "T2x": (0.07, 0.1, 0.2),
    "T4": (0.015, 0.02, 0.03),
    "T3mean": (0.015, 0.02, 0.03),
}


@dataclass(frozen=True)
class Runs:
    """The idle runs of one machine.

    Attributes:
        rows: of all plain runs of the record.
        plain: rows of each plain run.
        interleaved: rows of head and of base of each interleaved run.
    """

    rows: Sequence[Row]
    plain: Sequence[Sequence[Row]]
    interleaved: Sequence[tuple[Sequence[Row], Sequence[Row]]]


def read_runs(record: Path) -> Iterator[tuple[str, Runs]]:
    """The runs of each machine of a record."""
    with record.open(newline="", encoding="utf-8") as lines:
        rows: list[Row] = [row for row in csv.DictReader(lines) if row["condition"] == "idle"]
    machines: dict[str, dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        runs = machines.setdefault(row["machine"], {})
        runs.setdefault((row["taken_at"], row["version"]), []).append(row)
    for machine, runs in machines.items():
        plain = [each for (_, version), each in runs.items() if not version]
        heads = [(datetime.fromisoformat(at), each) for (at, version), each in runs.items() if version == "head"]
        pairs = [(each, base) for at, each in heads if (base := _base_of(at, runs))]
        yield machine, Runs([row for row in rows if not row["version"]], plain, pairs)


def _base_of(began: datetime, runs: Mapping[tuple[str, str], Sequence[Row]]) -> Sequence[Row]:
    """The base of an interleaved run: of those that began within a minute of its head."""
    bases = ((datetime.fromisoformat(at), each) for (at, version), each in runs.items() if version == "base")
    return next((each for at, each in bases if abs(at - began) < timedelta(minutes=1)), ())


def trial_set(rows: Sequence[Row], slower: Slower, *, session: str = "") -> TrialSet:
    """A run of the record, with some metrics slowed down by a relative effect."""
    spec = ScenarioSpec(name="baseline", trials=len(rows))
    return TrialSet(
        spec=spec,
        started_at=rows[0]["taken_at"],
        commit="recorded",
        stack_kind=rows[0]["stack"],
        stack="recorded",
        recorder="LTTng",
        fingerprint=_HOST,
        trials=tuple(_trial(row, slower) for row in sorted(rows, key=lambda row: int(row["trial"]))),
        session=session,
    )


def _trial(row: Row, slower: Slower) -> MotionTrial:
    goal, seed = row["question"].rsplit(" ", 1)

    def of(name: str) -> Measurement:
        details = {detail: float(row[detail]) for detail in _DETAILS.get(name, ()) if row[detail]}
        return Measurement(float(row[name]) * (1 + slower.get(name, 0.0)), details, MARKERS)

    def in_ns(name: str) -> int | None:
        return round(float(row[name]) * 1e6) if row[name] else None

    return MotionTrial(
        index=int(row["trial"]),
        goal=goal,
        goal_id=f"{row['taken_at']} {row['trial']}",
        seed=int(seed),
        block=int(row["start"]),
        outcome=OutcomeClass(row["outcome"]),
        error_code=None,
        message="",
        stamps_ns={},
        plan_duration_ns=in_ns(PLANNED_DURATION),
        plan_points=0,
        position_error_m=None,
        rotation_error_rad=None,
        measurements={name: of(name) for name in MEASURED if row[name]},
        cpu_work_ns=in_ns(CPU_WORK),
    )


Draw = Callable[[np.random.Generator, Slower], Sequence[Comparison]]


def stored(runs: Runs, known: int) -> Draw:
    """Compares a run with a baseline of so many runs, by the record without these runs."""
    plain = [trial_set(rows, {}) for rows in runs.plain]

    def draw(rng: np.random.Generator, slower: Slower) -> Sequence[Comparison]:
        chosen = [int(each) for each in rng.permutation(len(plain))[: known + 1]]
        left_out = {id(row) for each in chosen for row in runs.plain[each]}
        head = trial_set(runs.plain[chosen[0]], slower)
        base, seen = join_known(plain[chosen[1]], head, [plain[each] for each in chosen[2:]])
        record = estimate(row for row in runs.rows if id(row) not in left_out)
        with patch("pytest_ldos.judge.unchanged.estimate_record", return_value=record):
            return decide(head, base, Policy(known=seen, screens=True)).comparisons

    return draw


def interleaved(runs: Runs) -> Draw:
    """Compares both versions of an interleaved run, with random pairs of starts exchanged."""

    def draw(rng: np.random.Generator, slower: Slower) -> Sequence[Comparison]:
        rows = runs.interleaved[int(rng.integers(len(runs.interleaved)))]
        exchanged = rng.random(1 + max(int(row["start"]) // 2 for row in (*rows[0], *rows[1]))) < 0.5
        sides: tuple[list[Row], list[Row]] = [], []
        for side, own in enumerate(rows):
            for row in own:
                sides[side ^ bool(exchanged[int(row["start"]) // 2])].append(row)
        head, base = trial_set(sides[0], slower, session="one"), trial_set(sides[1], {}, session="one")
        return decide(head, base, Policy()).comparisons

    return draw


def report(name: str, draw: Draw, count: int, rng: np.random.Generator) -> None:
    """Prints how often equal versions are red or suspicious, and how often each planted effect is found."""
    equal = [draw(rng, {}) for _ in range(count)]
    red = sum(any(each.verdict is Verdict.REGRESSED for each in found) for found in equal)
    suspicious = sum(any(each.is_suspicious for each in found) for found in equal)
    print(f"{name}: {count} comparisons of equal versions, {red} red, {suspicious} suspicious")
    for metric, effects in PLANTED.items():
        mdes = [each.mde for found in equal for each in found if each.metric == metric]
        shown = []
        for effect in effects:
            found = [each for _ in range(count // 4) for each in draw(rng, {metric: effect}) if each.metric == metric]
            certain, suspected = (
                np.mean([test(each) for each in found])
                for test in (lambda each: each.verdict is Verdict.REGRESSED, lambda each: each.is_suspicious)
            )
            shown.append(f"+{100 * effect:.3g} % {100 * certain:.0f} / {100 * suspected:.0f} %")
        print(f"  {metric}: MDE {100 * np.median(mdes):.1f} %; red / suspicious: {', '.join(shown)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=400, help="of equal versions; a fourth for each effect")
    parser.add_argument("--seed", type=int, default=42)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    for machine, runs in read_runs(RECORD):
        print(f"\n{machine}: {len(runs.plain)} plain runs, {len(runs.interleaved)} interleaved")
        for known in (1, 5, 20):
            if len(runs.plain) > known + _FEWEST_LEFT:
                report(f"stored, {known} known", stored(runs, known), asked.comparisons, rng)
        if runs.interleaved:
            report("interleaved", interleaved(runs), asked.comparisons, rng)


if __name__ == "__main__":
    main()
