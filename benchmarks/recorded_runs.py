"""Judges recorded runs of unchanged code, as they are and slowed down: how often is the gate red, and what does it find?

    python -m benchmarks.recorded_runs        # three minutes

The runs are those of `judge/unchanged_runs.csv`, idle. Runs that follow each other on one machine within two hours are a
session; the runs of a session are judged by the record without it. A comparison of interleaved versions is repeated with
the versions of random pairs of starts exchanged, which changes nothing where both are equal.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.judge.baseline.known_runs import join_known
from pytest_ldos.judge.gate.comparison import Comparison
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.unchanged import MEASURED, RECORD, known_by
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

_PAUSE: Final = timedelta(hours=2)
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
class Session:
    """Runs of one machine, one after another.

    Attributes:
        plain: rows of each plain run.
        interleaved: rows of head and of base of each interleaved run.
        others: record without this session.
    """

    name: str
    plain: Sequence[Sequence[Row]]
    interleaved: Sequence[tuple[Sequence[Row], Sequence[Row]]]
    others: Path


def sessions(record: Path, folder: Path) -> Iterator[Session]:
    """The sessions of a record; their `others` are written to a folder."""
    with record.open(newline="", encoding="utf-8") as lines:
        rows: list[Row] = [row for row in csv.DictReader(lines) if row["condition"] == "idle"]
    named: dict[str, list[Row]] = {}
    name = ""
    last: dict[str, datetime] = {}
    for row in sorted(rows, key=lambda row: (row["machine"], row["taken_at"])):
        at = datetime.fromisoformat(row["taken_at"])
        if row["machine"] not in last or at - last[row["machine"]] > _PAUSE:
            name = f"{row['machine'].split()[-1]} {row['taken_at'][:16]}"
        last[row["machine"]] = at
        named.setdefault(name, []).append(row)
    for number, (name, own) in enumerate(named.items()):
        others = folder / f"without-{number}.csv"
        with others.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(row for row in rows if row not in own)
        runs: dict[tuple[str, str], list[Row]] = {}
        for row in own:
            runs.setdefault((row["taken_at"], row["version"]), []).append(row)
        heads = [moment for moment, version in runs if version == "head"]
        pairs = [(runs[at, "head"], base) for at in heads if (base := _base_of(at, runs))]
        yield Session(name, [each for (_, version), each in runs.items() if not version], pairs, others)


def _base_of(head_at: str, runs: Mapping[tuple[str, str], Sequence[Row]]) -> Sequence[Row]:
    """The base of an interleaved run: of those that began within a minute of its head."""
    began = datetime.fromisoformat(head_at)
    bases = (each for (at, version), each in runs.items() if version == "base" and _is_near(at, began))
    return next(bases, ())


def _is_near(at: str, began: datetime) -> bool:
    return abs(datetime.fromisoformat(at) - began) < timedelta(minutes=1)


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


def stored(session: Session, runs: int) -> Draw:
    """Compares a run with a baseline of so many runs."""
    plain = {number: trial_set(rows, {}) for number, rows in enumerate(session.plain)}

    def draw(rng: np.random.Generator, slower: Slower) -> Sequence[Comparison]:
        of_head, *of_base = (int(each) for each in rng.permutation(len(plain))[: runs + 1])
        head = trial_set(session.plain[of_head], slower)
        base, known = join_known(plain[of_base[0]], head, [plain[each] for each in of_base[1:]])
        return decide(head, base, Policy(known=known, screens=True)).comparisons

    return draw


def interleaved(session: Session) -> Draw:
    """Compares both versions of an interleaved run, with random pairs of starts exchanged."""

    def draw(rng: np.random.Generator, slower: Slower) -> Sequence[Comparison]:
        rows = session.interleaved[int(rng.integers(len(session.interleaved)))]
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
            certain, doubted = (
                np.mean([test(each) for each in found])
                for test in (lambda each: each.verdict is Verdict.REGRESSED, lambda each: each.is_suspicious)
            )
            shown.append(f"+{100 * effect:.3g} % {100 * certain:.0f} / {100 * doubted:.0f} %")
        print(f"  {metric}: MDE {100 * np.median(mdes):.1f} %; red / suspicious: {', '.join(shown)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=400, help="of equal versions; a fourth for each effect")
    parser.add_argument("--seed", type=int, default=42)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        for session in sessions(RECORD, Path(folder)):
            print(f"\n{session.name}: {len(session.plain)} plain runs, {len(session.interleaved)} interleaved")
            with known_by(session.others):
                for runs in (1, 5, 20):
                    if len(session.plain) > runs:
                        report(f"stored, {runs} known", stored(session, runs), asked.comparisons, rng)
                if session.interleaved:
                    report("interleaved", interleaved(session), asked.comparisons, rng)


if __name__ == "__main__":
    main()
