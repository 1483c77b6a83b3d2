"""A study in every format, with names escaped."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from pytest_ldos.instruments.study import Axis, Column, Curve, Figure, Point, Round, Shape, Table
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.figures import draw_figure
from pytest_ldos.show.report.study import render_study_as
from tests.builders.studies import study

HOSTILE = "<script>alert(1)</script> [x](http://x) |\x1b[31m @all"


@pytest.mark.parametrize("kind", list(Format))
def test_every_format_has_numbers_and_notes(kind):
    text = render_study_as(study([10.25, 11.5]), kind)
    assert "10.25" in text
    assert "11.5" in text
    assert "CPUs were not pinned" in text
    assert "rmw_" in text or "rmw\\_" in text


def test_terminal_shows_names_units_and_missing_values():
    text = render_study_as(study(), Format.TERMINAL, width=100)
    assert "p50 [µs]" in text
    assert "–" in text
    assert "reliable yes" in text


@pytest.mark.parametrize("kind", [Format.HTML, Format.MARKDOWN, Format.TERMINAL])
def test_foreign_names_are_escaped(kind):
    table = Table(name="t", title=HOSTILE, columns=(Column(name="case"), Column(name="n")), rows=((HOSTILE, 1),))
    failed = Round(case=HOSTILE, block=0, failure=HOSTILE)
    text = render_study_as(
        study(tables=(table,), rounds=(failed,), notes=(HOSTILE,), middleware=HOSTILE), kind, color=False
    )
    assert "\x1b[31m" not in text
    if kind is Format.HTML:
        found: list[str] = []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, attrs: found.append(tag)
        parser.feed(text)
        assert "script" not in found
        assert "a" in found
    if kind is Format.MARKDOWN:
        assert "<script" not in text
        assert "[x](" not in text


WIDE = Table(
    name="wide",
    title="Wide",
    columns=(
        Column(name="size", unit="B"),
        Column(name="program"),
        *(Column(name=f"p{number}", unit="ms") for number in range(16)),
    ),
    rows=(
        (1048576, "one with a name", *(123.4 + number for number in range(16))),
        (1, "another", *(float(number) for number in range(16))),
    ),
)


@pytest.mark.parametrize("width", [80, 100, 120, 400])
def test_numbers_are_never_truncated(width):
    text = render_study_as(study(tables=(WIDE,)), Format.TERMINAL, width=width)
    words = text.split()
    assert "…" not in text.partition("Wide")[2]
    assert all(f"{123.4 + number:.4g}" in words for number in range(16))
    assert max(map(len, text.splitlines())) <= width
    blocks = [line for line in text.splitlines() if "one with a name" in line]
    assert all(line.split()[0] == "1048576" for line in blocks)
    assert len(blocks) == {80: 3, 100: 2, 120: 2, 400: 1}[width]


def test_units_that_look_like_markup_are_shown_in_headings():
    narrow = Table(name="t", title="T", columns=(Column(name="a"), Column(name="time", unit="s")), rows=(("x", 1.5),))
    assert "time [s]" in render_study_as(study(tables=(narrow,)), Format.TERMINAL)


def test_long_names_wrap_to_keep_numbers_whole():
    named = Table(
        name="t",
        title="T",
        columns=(Column(name="node"), Column(name="topic"), *(Column(name=f"n{each}") for each in range(8))),
        rows=(("/cell/panda_link8", "n" * 90, *range(1000, 1008)),),
    )
    text = render_study_as(study(tables=(named,)), Format.TERMINAL, width=80)
    assert all(str(number) in text.split() for number in range(1000, 1008))
    assert text.count("n") >= 90
    assert "/cell/panda_link8" in text.split()
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("columns", range(2, 30))
def test_no_block_is_much_smaller_than_the_others(columns):
    """A column that is alone below the others looks like a table of its own."""
    names = tuple(Column(name=f"p{number}", unit="ms") for number in range(columns))
    wide = Table(name="w", title="W", columns=(Column(name="size"), *names), rows=((1, *[123.4] * columns),))
    text = render_study_as(study(tables=(wide,)), Format.TERMINAL, width=80).partition("W\n")[2]
    blocks = [line.split().count("123.4") for line in text.splitlines() if "123.4" in line]
    assert sum(blocks) == columns
    assert max(blocks) - min(blocks) <= 1


def test_equal_failures_of_rounds_are_one_line():
    failed = tuple(Round(case="1 B", block=0, failure="no peer answered within 5 s") for _ in range(3))
    text = render_study_as(study(rounds=failed), Format.TERMINAL)
    assert "1 B: 3 rounds without a result: no peer answered within 5 s" in text


def test_long_table_is_omitted_on_a_terminal_and_folded_in_html():
    long = Table(name="all", title="Every message", columns=(Column(name="n"),), rows=((1,),), is_detail=True)
    assert "Every message" not in render_study_as(study(tables=(long,)), Format.TERMINAL)
    assert "<summary><bdi>Every message" in render_study_as(study(tables=(long,)), Format.HTML)


def test_json_has_all_values_and_no_invalid_numbers():
    plain = json.loads(render_study_as(study(), Format.JSON))
    assert plain["kind"] == "pytest-ldos study"
    assert plain["tables"]["rounds_seen"]["rows"][0] == {"case": "1 KiB", "round": 0, "p50": 10.0, "lost": None}
    assert plain["tables"]["rounds_seen"]["units"] == {"p50": "µs"}
    assert [each["values"]["half_p50"] for each in plain["rounds"]] == [10.0, 11.0, 12.0]
    assert plain["figures"][0]["curves"][0]["points"][0] == {"x": 1, "y": 10.0, "low": 9.0, "high": 11.0}


def test_figures_are_drawn_with_their_intervals():
    text = render_study_as(study(), Format.HTML)
    assert text.count('class="whisker"') == 3
    assert text.count('class="bar"') == 4
    assert "ours, best effort: 8 µs" in text


@pytest.mark.parametrize(("names", "lines"), [(("node",) * 6, 1), (("many participants",) * 6, 2)])
def test_crowded_labels_are_staggered_on_two_lines(names, lines):
    points = tuple(Point(place, 1.0) for place in range(len(names)))
    figure = Figure(
        name="f",
        title="F",
        x=Axis(title="rung", names=names),
        y=Axis(title="cost"),
        curves=(Curve("c", points),),
        shape=Shape.BAR,
    )
    label = names[0][:10]
    heights = re.findall(rf' y="([\d.]+)"[^>]*>(?:<title>[^<]*</title>)?{label}', str(draw_figure(figure)))
    assert len(set(heights)) == lines


def test_tables_with_clashing_file_names_are_refused():
    def table(name: str) -> Table:
        return Table(name=name, title="T", columns=(Column(name="a"),), rows=((1,),))

    for names in (("rounds",), ("seen", "seen")):
        with pytest.raises(ValueError, match=f"more than one table '{names[0]}'"):
            study(tables=tuple(map(table, names)))


@pytest.mark.parametrize("row", [("a",), ("a", float("nan"))])
def test_table_with_mismatched_rows_is_refused(row):
    with pytest.raises(ValueError, match="table 't'"):
        Table(name="t", title="T", columns=(Column(name="a"), Column(name="b")), rows=(row,))
