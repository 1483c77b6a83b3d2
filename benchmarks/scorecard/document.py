"""The scorecard as plain values: everything that the table, the plot and the file say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from benchmarks.scorecard.data_sets.protocol import DataSet
from benchmarks.scorecard.environment import PACKAGES, Peers
from benchmarks.scorecard.family import Alarms
from benchmarks.scorecard.interval import clopper_pearson
from benchmarks.scorecard.plan import Plan
from benchmarks.scorecard.power import FAILURES, Found, PlantedShift
from benchmarks.scorecard.rules.chosen import OTHERS, OURS, OWN
from benchmarks.scorecard.rules.otava import Otava
from benchmarks.scorecard.rules.ours import Ours
from benchmarks.scorecard.rules.protocol import Rule
from benchmarks.scorecard.work import Results

SCHEMA_VERSION: Final = 1
LARGEST_VARIATION: Final = 0.10
"""Coefficient of variation up to which a metric's power counts in the headline."""

Cells = list[tuple[PlantedShift, Found]]


def compose(plan: Plan, results: Results, peers: Peers, checks: Mapping[str, str]) -> dict[str, Any]:
    """Everything but the targets."""
    return {
        "kind": "pytest-ldos scorecard",
        "schema": SCHEMA_VERSION,
        "seed": plan.seed,
        "largest_variation": LARGEST_VARIATION,
        "data": {data.name: _describe(data) for data in plan.data_sets},
        "rules": {name: {**about, **_rule(name, plan, results)} for name, about in _rules(peers).items()},
        "ours": {
            data: {
                "verdicts": dict(sorted(family.verdicts.items())),
                "head_trials": spent(family.head_trials),
            }
            for data, family in results.families.items()
        },
        "self_checks": dict(checks),
    }


def _rules(peers: Peers) -> dict[str, dict[str, Any]]:
    all_rules: list[Ours | Rule | Otava] = [*OWN, *OTHERS, Otava(peers.python or Path())]
    found: dict[str, dict[str, Any]] = {rule.name: {"title": rule.title, "source": rule.source} for rule in all_rules}
    if peers.python is None:
        found[Otava.name]["missing"] = f"{PACKAGES[0]}: {peers.reason}"
    return found


def _describe(data: DataSet) -> dict[str, Any]:
    named = {name: getattr(data, name) for name in ("title", "about", "metrics", "scenarios", "drifts")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}


def _rule(name: str, plan: Plan, results: Results) -> dict[str, Any]:
    alarms = {data: family.rules[name] for data, family in results.families.items() if name in family.rules}
    if not alarms:
        return {"false_alarm": None, "power": {}}
    total = Alarms()
    for each in alarms.values():
        total.add(each)
    false_alarm = {**_red(total), "by_data": {data: _red(each) for data, each in alarms.items()}}
    power = {shift: _power(name, _cells(results, shift)) for shift in plan.shift_names}
    power[FAILURES] = _failures(name, results)
    return {"false_alarm": false_alarm, "power": {shift: found for shift, found in power.items() if found}}


def _red(alarms: Alarms) -> dict[str, Any]:
    plain = clopper_pearson(alarms.red, alarms.runs).plain()
    if alarms.comparisons:
        plain["per_comparison"] = clopper_pearson(alarms.fired, alarms.comparisons).plain()
    return plain


def _cells(results: Results, shift: str) -> Cells:
    return [(planted, found) for planted, found in results.shifts if planted.shift == shift]


def _power(rule: str, cells: Cells) -> dict[str, Any]:
    """Metrics of small variance in data without drift, next to every data set and metric."""
    asked = [(planted, found) for planted, found in cells if rule in found.found]
    by_data: dict[str, Any] = {}
    for data in dict.fromkeys(planted.data.name for planted, _ in asked):
        own = [each for each in asked if each[0].data.name == data]
        by_metric = {f"{p.scenario} {p.metric}": {**_rate(rule, [(p, f)]), **_cell(rule, f)} for p, f in own}
        by_data[data] = {**_rate(rule, steady(own)), "by_metric": by_metric}
    return {**_rate(rule, [each for each in steady(asked) if not each[0].data.drifts]), "by_data": by_data}


def steady(cells: Cells) -> Cells:
    """Those whose metric varies by `LARGEST_VARIATION` at most."""
    return [each for each in cells if each[1].variation <= LARGEST_VARIATION]


def _rate(rule: str, cells: Cells) -> dict[str, Any]:
    runs = sum(runs_of(rule, planted, found) for planted, found in cells)
    if runs == 0:
        return {}
    plain = clopper_pearson(sum(found.found[rule] for _, found in cells), runs).plain()
    return {**plain, "head_trials": spent_in(cells)} if rule == OURS.name else plain


def runs_of(rule: str, planted: PlantedShift, found: Found) -> int:
    return planted.for_otava if rule == Otava.name else found.runs


def _cell(rule: str, found: Found) -> dict[str, Any]:
    plain = {"variation": round(found.variation, 4)}
    return {**plain, "bound": round(found.bound, 4), "fewest_head_trials": found.fewest} if rule == OURS.name else plain


def _failures(rule: str, results: Results) -> dict[str, Any]:
    asked = [(planted, found) for planted, found in results.failures if rule in found.found]
    if not asked:
        return {}
    runs = sum(found.runs for _, found in asked)
    plain = clopper_pearson(sum(found.found[rule] for _, found in asked), runs).plain()
    by_data = {p.data.name: clopper_pearson(f.found[rule], f.runs).plain() for p, f in asked}
    if rule == OURS.name:
        plain |= {"head_trials": spent(_total(f.head_trials for _, f in asked)), "bound": round(asked[0][1].bound, 4)}
    return {**plain, "by_data": by_data}


def spent_in(cells: Cells) -> dict[str, float]:
    return spent(_total(found.head_trials for _, found in cells))


def spent(trials: Counter[int]) -> dict[str, float]:
    """Median, mean and largest number of head trials."""
    numbers = sorted(trials.elements())
    middle = len(numbers) // 2
    median = numbers[middle] if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2
    return {"median": median, "mean": round(sum(numbers) / len(numbers), 2), "max": numbers[-1]}


def _total(counters: Iterable[Counter[int]]) -> Counter[int]:
    total: Counter[int] = Counter()
    for each in counters:
        total += each
    return total


def plan_as_values(plan: Plan) -> dict[str, Any]:
    numbers = {each.name: getattr(plan, each.name) for each in fields(plan)}
    return {name: value for name, value in numbers.items() if isinstance(value, int)}
