"""The scorecard for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.scorecard.plan import MAIN_SHIFT
from benchmarks.scorecard.power import FAILURES
from benchmarks.scorecard.targets import Target


def print_scorecard(console: Console, card: dict[str, Any], targets: Iterable[Target]) -> None:
    console.print(_false_alarms(card))
    console.print(_power(card))
    console.print(_power_by_data(card))
    console.print(_targets(targets))
    for rule, printed in card["self_checks"].items():
        console.print(f"{rule}: {printed}")


def _false_alarms(card: dict[str, Any]) -> Table:
    title = "Runs of unchanged code that are red, % (95 % interval)"
    table = Table("rule", *(data["title"] for data in card["data"].values()), title=title, title_justify="left")
    for rule in card["rules"].values():
        alarms = rule["false_alarm"]
        cells = (_interval(alarms["by_data"].get(data)) for data in card["data"]) if alarms else [rule["missing"]]
        table.add_row(rule["title"], *cells)
    return table


def _power(card: dict[str, Any]) -> Table:
    shifts = list(next(iter(card["rules"].values()))["power"])
    title = (
        f"Planted changes that are found, % (95 % interval): metrics that vary by {100 * card['largest_variation']:.0f} % "
        "or less, data that does not drift"
    )
    heads = ("red without", *shifts)
    table = Table("rule", *heads, title=title, title_justify="left")
    for rule in card["rules"].values():
        if rule["false_alarm"]:
            found = (_interval(rule["power"].get(shift)) for shift in shifts)
            table.add_row(rule["title"], _interval(rule["false_alarm"]), *found)
    table.caption = f"'{FAILURES}' is 30 trials against 60; the other rules see only the trials that succeeded."
    return table


def _power_by_data(card: dict[str, Any]) -> Table:
    title = f"{MAIN_SHIFT} that is found, % (95 % interval), by data; metrics that vary as little"
    table = Table("rule", *(data["title"] for data in card["data"].values()), title=title, title_justify="left")
    for rule in card["rules"].values():
        found = rule["power"].get(MAIN_SHIFT, {}).get("by_data", {})
        if found:
            table.add_row(rule["title"], *(_interval(found.get(data)) for data in card["data"]))
    table.caption = (
        "Interleaved: 10 + 10 trials, up to 30 + 30 for ours while a comparison is inconclusive; the others see all 30. Sequential: "
        "10 against 10 in three starts. 'one ldos calibrate' is one run of 8 starts of 8 trials."
    )
    return table


def _targets(targets: Iterable[Target]) -> Table:
    table = Table("target", "data", "", "measured", title="Targets of ours", title_justify="left")
    for target in targets:
        measured = f"{target.measured}; {target.bound}" if target.bound else target.measured
        table.add_row(target.name, target.data, "PASS" if target.met else "MISS", measured)
    return table


def _interval(rate: dict[str, Any] | None) -> str:
    if not rate or "rate" not in rate:
        return "–"
    low, high = (f"{100 * rate[end]:.1f}" for end in ("low", "high"))
    return f"{100 * rate['rate']:.1f} ({low}–{high})"
