"""The scorecard as one picture: how often each rule is red without a cause, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.scorecard.power import SHIFTS

_COLOURS: Final = ("#0b3d91", "#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#7f7f7f", "#8c6d31", "#000000")
_MARKERS: Final = "osv^DPX*h"


def draw_scorecard(card: dict[str, Any], path: Path) -> None:
    """Writes an SVG, the same for the same numbers."""
    rules = {name: rule for name, rule in card["rules"].items() if rule["false_alarm"]}
    with mpl.rc_context({"svg.hashsalt": "scorecard", "font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(13, 6.5), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        _draw_false_alarms(left, card, rules)
        _draw_power(right, card, rules)
        handles, labels = right.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_false_alarms(axes: Axes, card: dict[str, Any], rules: dict[str, Any]) -> None:
    height = 0.8 / len(rules)
    for number, rule in enumerate(rules.values()):
        rates = [rule["false_alarm"]["by_data"][data] for data in card["data"]]
        places = [place + (number - len(rules) / 2 + 0.5) * height for place in range(len(rates))]
        shares = [100 * rate["rate"] for rate in rates]
        spans = [
            [100 * max(0.0, rate["rate"] - rate["low"]) for rate in rates],
            [100 * max(0.0, rate["high"] - rate["rate"]) for rate in rates],
        ]
        axes.errorbar(
            shares,
            places,
            xerr=spans,
            linestyle="none",
            markersize=5,
            label=rule["title"],
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
        )
    axes.axvline(1, color="#0b3d91", linewidth=0.8, linestyle="--")
    axes.set_xscale("symlog", linthresh=1, linscale=0.6)
    axes.set_xlim(-0.05, 130)
    axes.set_xticks([0, 0.5, 1, 2, 5, 10, 20, 50, 100], ["0", "0.5", "1", "2", "5", "10", "20", "50", "100"])
    axes.set_yticks(range(len(card["data"])), [data["title"] for data in card["data"].values()])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("runs of unchanged code that are red, % (95 % interval; dashed: 1 %)")
    axes.set_title("False alarms a run: 5 metrics × 4 scenarios")


def _draw_power(axes: Axes, card: dict[str, Any], rules: dict[str, Any]) -> None:
    for number, rule in enumerate(rules.values()):
        found = [(shift, rule["power"].get(shift, {})) for shift in SHIFTS]
        known = [(100 * (SHIFTS[shift] - 1), rate) for shift, rate in found if "rate" in rate]
        shares = [100 * rate["rate"] for _, rate in known]
        axes.plot(
            [shift for shift, _ in known],
            shares,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=5,
            linewidth=2.2 if number == 0 else 1,
            label=rule["title"],
        )
    axes.set_xscale("log")
    axes.set_xticks([5, 10, 15, 25, 50, 100], ["+5", "+10", "+15", "+25", "+50", "+100"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set_ylim(-3, 103)
    axes.set_xlabel("planted change of one metric, %")
    axes.set_ylabel("found, %")
    axes.set_title(f"Power: metrics with CV ≤ {100 * card['largest_variation']:.0f} %, data without drift")
