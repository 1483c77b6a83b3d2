"""Figures as SVG, once for a light and once for a dark ground."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from docs.figures.cases import COUNTS, LOOKS, SPREADS, changed_runs, critical_of_looks, detectable, drifting
from pytest_ldos.judge.gate.verdict import Verdict

MADE: Final = Path(__file__).parents[1] / "pictures" / "made"
_INK: Final = {"light": "#1b1f24", "dark": "#e6e6e6"}
_COLOURS: Final = {
    "light": {
        "bad": "#b3261e",
        "good": "#1a7f37",
        "plain": "#57606a",
        "one": "#0969da",
        "two": "#b35900",
        "band": "#d0d7de",
    },
    "dark": {
        "bad": "#ff8f87",
        "good": "#56d364",
        "plain": "#adbac7",
        "one": "#6cb6ff",
        "two": "#f0a35e",
        "band": "#444c56",
    },
}
_OF_VERDICT: Final = {Verdict.REGRESSED: "bad", Verdict.IMPROVED: "good"}

Draw = Callable[[Any, dict[str, str]], None]


def draw_all() -> None:
    """Writes every figure in both schemes."""
    MADE.mkdir(parents=True, exist_ok=True)
    figures: dict[str, tuple[Draw, tuple[float, float]]] = {
        "trial": (_draw_trial, (8, 2.6)),
        "verdict": (_draw_verdict, (8, 3.2)),
        "mde": (_draw_detectable, (8, 3.4)),
        "looks": (_draw_looks, (8, 2.8)),
        "drift": (_draw_drift, (8, 4.6)),
    }
    for scheme, ink in _INK.items():
        style: dict[Any, Any] = dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink
        )
        style |= {"svg.hashsalt": "ldos", "svg.fonttype": "none", "font.size": 10, "legend.frameon": False}
        with mpl.rc_context(style):
            for name, (draw, size) in figures.items():
                figure = Figure(figsize=size, layout="constrained")
                draw(figure, _COLOURS[scheme])
                figure.savefig(MADE / f"{name}-{scheme}.svg", transparent=True, metadata={"Date": None})


def _draw_trial(figure: Any, colours: dict[str, str]) -> None:
    axes = figure.subplots()
    spans = (
        ("T4 total latency", 0, 10, 3),
        ("T1 planning", 1, 3, 2),
        ("T2 execution", 3, 10, 2),
        ("planned duration", 3, 8.6, 1),
    )
    for title, begin, end, row in spans:
        colour = colours["band"] if title == "planned duration" else colours["one"]
        axes.barh(row, end - begin, left=begin, height=0.6, color=colour, alpha=0.55)
        axes.text((begin + end) / 2, row, title, ha="center", va="center")
    axes.barh(1, 1.4, left=8.6, height=0.6, color=colours["two"], alpha=0.7)
    axes.text(9.3, 1, "T2x", ha="center", va="center")
    axes.vlines([3 + 0.12 * step for step in range(59)], -0.3, 0.3, color=colours["plain"], lw=0.7)
    axes.text(2.9, 0, "T3: periods of the control loop", ha="right", va="center")
    axes.set_xticks([0, 1, 3, 10], ["goal sent", "planning", "executing", "result"])
    axes.set_yticks([])
    axes.set_xlim(-0.3, 10.3)
    axes.spines[["top", "left", "right"]].set_visible(False)


def _draw_verdict(figure: Any, colours: dict[str, str]) -> None:
    axes = figure.subplots()
    labels = []
    runs = list(changed_runs())
    axes.axvspan(-5, 5, color=colours["band"], alpha=0.5, lw=0)
    axes.axvline(0, color=colours["plain"], lw=0.8)
    for row, (change, spread, found) in enumerate(runs):
        colour = colours[_OF_VERDICT.get(found.verdict, "plain")]
        low, middle, high = (100 * (value - 1) for value in (found.low, found.ratio, found.high))
        axes.plot([low, high], [row, row], color=colour, lw=2)
        axes.plot([middle], [row], "o", color=colour)
        axes.text(51, row, found.verdict.word, va="center", color=colour)
        labels.append(f"{100 * change:+.0f} %, spread {100 * spread:.0f} %")
    axes.set_yticks(range(len(runs)), labels)
    axes.invert_yaxis()
    axes.set_xlim(-50, 50)
    axes.set_xlabel("change of T1 [%] with its interval; band: a floor of 5 %")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_detectable(figure: Any, colours: dict[str, str]) -> None:
    axes = figure.subplots()
    for spread, name in zip(SPREADS, ("good", "one", "two", "bad"), strict=True):
        axes.plot(
            COUNTS,
            [100 * each for each in detectable(spread)],
            "o-",
            ms=3,
            color=colours[name],
            label=f"spread {100 * spread:.0f} %",
        )
    axes.set_ylim(0, 80)
    axes.set_xlabel("trials of each version")
    axes.set_ylabel("minimum detectable effect [%]")
    axes.legend()
    axes.spines[["top", "right"]].set_visible(False)


def _draw_looks(figure: Any, colours: dict[str, str]) -> None:
    axes = figure.subplots()
    values, single = critical_of_looks()
    axes.step(LOOKS, values, "o-", where="mid", color=colours["one"], label="looks at 10, 15, 20, 25 and 30 trials")
    axes.axhline(single, color=colours["two"], ls="--", label="one look at 30 trials")
    axes.set_xlabel("trials of each version")
    axes.set_ylabel("critical value [sd]")
    axes.set_xticks(LOOKS)
    axes.legend()
    axes.spines[["top", "right"]].set_visible(False)


def _draw_drift(figure: Any, colours: dict[str, str]) -> None:
    for axes, is_interleaved in zip(figure.subplots(2, 1, sharex=True, sharey=True), (False, True), strict=True):
        run = drifting(is_interleaved=is_interleaved)
        for wanted, name, colour in ((False, "base", "one"), (True, "head", "two")):
            chosen = [place for place, is_head in enumerate(run.is_head) if is_head is wanted]
            axes.plot(
                [place + 1 for place in chosen],
                [run.values[place] for place in chosen],
                "o",
                ms=4,
                color=colours[colour],
                label=name,
            )
        design = "interleaved" if is_interleaved else "one after the other"
        axes.set_title(f"{design}: estimated change {100 * (run.ratio - 1):+.1f} %", loc="left")
        axes.set_ylabel("T1 [ms]")
        axes.legend(loc="lower right", ncols=2)
        axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("trial, in the order of time")
