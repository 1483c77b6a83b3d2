"""Pages of the studies, made from their settings and recorded results."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter

from docs.generate.text import table
from studies.model import NAMES, Figure, Study, Value, read_study

DOCS: Final = Path(__file__).parents[1] / "docs"


def write_pages() -> None:
    """Writes the page and the drawing of each study, and the list of all figures."""
    studies = [read_study(name) for name in NAMES]
    for name, text in render_pages(studies).items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text, "utf-8")
    for study in studies:
        draw(study, DOCS / f"studies/{study.name}.svg")


def render_pages(studies: Sequence[Study]) -> dict[str, str]:
    """Texts by their paths below ``docs``."""
    pages = {f"studies/{study.name}.md": "\n".join(study_page(study)) + "\n" for study in studies}
    pages["explanation/seeds.md"] = "\n".join(all_figures(studies)) + "\n"
    return pages


def study_page(study: Study) -> Iterator[str]:
    settings = study.settings
    yield from (f"# {study.title}", "", settings["question"].strip(), "")
    yield from (f"Published: {settings['source']}. {settings['published_on']}.", "")
    for date, machine in dict.fromkeys((each.started_at[:10], each.machine) for each in study.results.values()):
        yield f"Measured: {date}, {machine}."
    yield from ("", "```console", f"$ python -m studies measure {study.name}", "```", "")
    yield from figures_table(study.figures)
    yield from ("", f"```{{image}} {study.name}.svg", f":alt: {study.title}: published and measured figures", "```", "")
    yield from ("Grey is published, blue measured here, with its 95 % interval where there is one.", "")
    notes = [f"- **{each.what}**: {each.note}" for each in study.figures if each.note]
    yield from (("## Notes", "", *notes, "") if notes else ())
    if text := settings.get("answer", "").strip():
        yield from ("## Answer", "", text, "")
    for each in settings.get("section", ()):
        yield from section(study, each)
    yield from ("## Commands", "")
    for run in study.runs:
        yield from ("```console", f"$ {shlex.join(run.command)}", "```", "")


def section(study: Study, given: Mapping[str, Any]) -> Iterator[str]:
    """A text, and a table of recorded rows: those of each run in `runs`, which names them in the first column."""
    yield from (f"## {given['title']}", "", given["text"].strip(), "")
    if columns := given.get("columns"):
        rows = [
            (name, *(show_cell(row.get(column)) for column in columns))
            for run, name in given["runs"].items()
            for row in study.results[run].tables[given["table"]]
        ]
        first = given.get("first", "")
        yield from (
            table((first, *columns.values()), rows) if first else table(columns.values(), [row[1:] for row in rows])
        )
        yield ""


def show_cell(cell: str | float | None) -> str:
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 1000 else f"{cell:.0f}"
    return "–" if cell in {None, ""} else str(cell)


def figures_table(figures: Iterable[Figure]) -> Iterator[str]:
    rows = [(each.what, _published(each), show(each), each.outcome) for each in figures]
    yield from table(("figure", "published", "measured here", "outcome"), rows)


def _published(figure: Figure) -> str:
    has_number = any(letter.isdigit() for letter in figure.published)
    return _with_unit(figure.published, figure.unit if has_number else "")


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}".strip()


def show(figure: Figure) -> str:
    """``52 µs (48 … 61)``; ``–`` if it was not measured."""
    if (ours := figure.ours) is None:
        return "–"
    interval = "" if ours.low is None or ours.high is None else f" ({ours.low:.3g} … {ours.high:.3g})"
    number = f"{ours.number:.3g}" if abs(ours.number) < 1000 else f"{ours.number:.0f}"
    return _with_unit(number, figure.unit) + interval


def all_figures(studies: Iterable[Study]) -> Iterator[str]:
    yield from (
        "# What the seeds published, measured again",
        "",
        "pytest-ldos takes in five systems, its seeds. Each figure that they published is here, with ours from the",
        "commands of its study. *Reproduced*: the published range and ours, or its 95 % interval, meet. Machines",
        "differ, and so do most times; each study's page gives the reason.",
        "",
    )
    for study in studies:
        yield from (f"## [{study.title}](../studies/{study.name}.md)", "")
        yield from figures_table(study.figures)
        yield ""
    yield from ("```{toctree}", ":hidden:", "", *(f"../studies/{study.name}" for study in studies), "```")


def draw(study: Study, file: Path) -> None:
    """Draws published ranges as bars and ours as dots, a panel for each unit."""
    rcParams.update({"svg.hashsalt": study.name, "svg.fonttype": "none"})
    shown = [(each, each.ours) for each in study.figures if each.ours is not None and each.low is not None]
    units = list(dict.fromkeys(each.unit for each, _ in shown))
    groups = [[pair for pair in shown if pair[0].unit == unit] for unit in units]
    heights = [len(group) + 1.0 for group in groups] or [1.0]
    canvas = Canvas(figsize=(8, 0.45 * sum(heights) + 0.6), layout="tight")
    axes = canvas.subplots(len(heights), 1, height_ratios=heights, squeeze=False)
    for axis, unit, group in zip(axes[:, 0], units, groups, strict=False):
        for place, (figure, ours) in enumerate(reversed(group)):
            _draw_figure(axis, place, figure, ours)
        axis.set_yticks(range(len(group)), [figure.what for figure, _ in reversed(group)])
        axis.set_ylim(-0.6, len(group) - 0.4)
        axis.set_xlabel(unit or "ratio")
        numbers = [each for figure, ours in group for each in (figure.low or 0.0, figure.high or 0.0, ours.number)]
        if min(numbers) > 0 and max(numbers) / min(numbers) > 10:
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter(NullFormatter())
        axis.spines[["top", "right"]].set_visible(False)
    canvas.savefig(file, format="svg", metadata={"Date": None})


def _draw_figure(axis: Axes, place: int, figure: Figure, ours: Value) -> None:
    low, high = figure.low, figure.high
    assert low is not None
    assert high is not None
    if low == high:
        axis.plot([low], [place], "D", color="#8a8f98", markersize=8)
    else:
        axis.plot([low, high], [place, place], color="#c3c7ce", linewidth=10, solid_capstyle="butt")
    if ours.low is not None and ours.high is not None and math.isfinite(ours.low):
        axis.plot([ours.low, ours.high], [place, place], color="#1f6feb", linewidth=1.5)
    axis.plot([ours.number], [place], "o", color="#1f6feb", markersize=6)
