"""Charts: the same bytes everywhere, colours of the page, text that is text, values on every mark."""

from __future__ import annotations

import math
import re
import struct
import warnings
from itertools import pairwise
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest

from pytest_ldos.show.report.chart import (
    Axis,
    Chart,
    Field,
    Label,
    Mark,
    Rule,
    Series,
    Shape,
    colours,
    light,
    spans_decades,
    variables,
)
from pytest_ldos.show.report.svg import draw, render_png, render_svg

HOSTILE = "</title></svg><script>alert(1)</script> $\\frac$ _x #515b66 \u6f22\u202e\x1b"
SVG = "{http://www.w3.org/2000/svg}"


def chart(words: str = "words", **changes) -> Chart:
    marks = (Mark(1, 10, f"{words}: 10", 5, 15), Mark(2, 20, f"{words}: 20", 15, None), Mark(3, 30, f"{words}: 30"))
    whole = {
        "title": words,
        "detail": words,
        "note": words,
        "x": Axis.around([1, 2, 3], title=words),
        "y": Axis.around([10, 20, 30], title=words),
        "series": (
            Series(kind="dot", marks=marks, colour="s1", shape=Shape.DIAMOND, line="-"),
            Series(kind="bar", marks=marks, colour="s2", shape=Shape.BAR, size=0.2),
            Series(kind="unfit", marks=marks[:1], colour="bad", shape=Shape.CROSS),
        ),
        "rules": (Rule(kind="anchor", value=12, line="--"),),
        "fields": (Field(kind="floor", low=1, high=2, colour="field", label=words),),
        "labels": (Label(x=1, y=12, text=words),),
        "names": (("line", Series(kind="dot", marks=(), colour="s1", shape=Shape.CIRCLE, line="-")),),
    }
    return Chart(**{**whole, **changes})


def labels(drawn: str) -> list[tuple[float, float, str]]:
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<', drawn)
    return [(float(x), float(y), text) for x, y, text in found]


# --- axes -------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [Axis(low=2, high=8), Axis(low=0.1, high=1000, is_log=True)], ids=["linear", "log"])
def test_scale_and_its_inverse_agree(axis):
    assert [axis.share(axis.low), axis.share(axis.high)] == [0, 1]
    assert [axis.share(axis.at(share)) for share in (0.25, 0.5, 0.9)] == pytest.approx([0.25, 0.5, 0.9])
    assert (axis.share(0), axis.share(1e9)) == (0, 1), "a value beyond stands at the end"
    assert axis.at(-0.1) < axis.low < axis.high < axis.at(1.1)


@pytest.mark.parametrize("values", [[], [3.0], [0.0, 0.0], [1e-9, 1e9], [-5, 5], [math.nan, 1.0]])
@pytest.mark.parametrize("is_log", [False, True])
def test_any_values_have_an_axis_around_them(values, is_log):
    known = [each for each in values if math.isfinite(each) and (each > 0 or not is_log)]
    axis = Axis.around(known, is_log=is_log)
    assert all(axis.low < each < axis.high for each in known)
    assert str(draw(chart(x=axis, y=axis)))


def test_axis_is_logarithmic_if_values_span_a_decade():
    assert [spans_decades(each) for each in ([1, 10], [1, 9], [0, 100], [])] == [True, False, False, False]


@pytest.mark.parametrize(("low", "high"), [(0.08, 7.1), (1, 1e6), (3, 31), (1e-9, 1e9)])
def test_a_logarithmic_axis_has_some_round_labels(low, high):
    drawn = str(
        draw(chart(x=Axis.around([low, high], is_log=True), series=(), fields=(), labels=(), rules=(), note=""))
    )
    below = [float(text) for _, y, text in labels(drawn) if y == 221]
    assert 2 <= len(below) <= 12
    assert below == sorted(below)
    assert all(f"{value:e}"[0] in "125" for value in below)


def test_labels_do_not_overlap():
    ticks = tuple((number, f"{number:04}") for number in range(100))
    drawn = str(draw(chart(x=Axis(low=0, high=100, ticks=ticks), series=(), fields=(), labels=(), rules=())))
    places = [x for x, _, text in labels(drawn) if re.fullmatch(r"\d{4}", text)]
    assert len(places) > 5
    assert min(after - before for before, after in pairwise(places)) >= 44


def test_long_names_are_staggered_on_two_lines():
    ticks = ((0, "short"), (1, "another"), (2, "x" * 200))
    drawn = str(draw(chart(x=Axis(low=-0.5, high=2.5, ticks=ticks))))
    found = {text[:5]: (x, y) for x, y, text in labels(drawn)}
    (first, upper), (second, lower), (third, third_y) = found["short"], found["anoth"], found["xxxxx"]
    assert second - first == pytest.approx(third - second, abs=0.2)
    assert upper == third_y < lower
    assert "x" * 41 not in drawn
    assert "…" in drawn


# --- what is drawn ----------------------------------------------------------------------


def test_every_mark_has_its_value_and_its_class():
    root = ET.fromstring(render_svg(chart()))
    tips = {group.get("class"): [each.text for each in group.iter(f"{SVG}title")] for group in root.iter(f"{SVG}g")}
    values = ["words: 10", "words: 20", "words: 30"]
    assert tips["dot"] == values
    assert tips["unfit"] == values[:1]
    assert tips["bar"] == ["words: 30"], "each bar is a group, and this is the last one"
    assert root.findtext(f"{SVG}title") == root.findtext(f"{SVG}desc") == "words"


def test_unbounded_interval_extends_to_the_edge():
    drawn = render_svg(chart(series=chart().series[:1])).decode()
    ways = re.findall(r'<g class="whisker"[^>]*><path d="M \S+ (\S+) L \S+ (\S+)"', drawn)
    assert len(ways) == 2
    assert float(ways[1][1]) == 26
    assert float(ways[0][1]) > 26


def test_a_mark_without_a_number_is_not_drawn():
    marks = (Mark(1, math.nan, "none"), Mark(math.inf, 3, "none"), Mark(2, 20, "one"))
    drawn = str(draw(chart(series=(Series(kind="dot", marks=marks, colour="s0", shape=Shape.CIRCLE, line="-"),))))
    assert "none<" not in drawn
    assert "one<" in drawn


def test_colours_come_from_the_page():
    inside = str(draw(chart()))
    assert "var(--s1)" in inside
    assert not re.search(r'="#[0-9a-f]{6}"', inside)
    assert "var(" not in render_svg(chart()).decode()


def test_equal_colours_are_equal_in_the_dark_scheme():
    assert light().keys() == colours(dark=True).keys()
    for name, colour in light().items():
        used = re.sub(r"var\(--(\w+)\)", r"\1", variables()[colour])
        assert colours(dark=True)[used] == colours(dark=True)[name]


# --- bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("render", [render_svg, render_png, lambda chart: str(draw(chart)).encode()])
def test_image_is_independent_of_user_settings(render, monkeypatch):
    first = render(chart())
    monkeypatch.setitem(mpl.rcParams, "font.size", 30)
    monkeypatch.setitem(mpl.rcParams, "axes.facecolor", "red")
    assert render(chart()) == first
    assert mpl.rcParams["font.size"] == 30
    assert b"Matplotlib" not in first


def test_image_has_a_high_resolution():
    width, height = struct.unpack(">II", render_png(chart())[16:24])
    assert (width, height) == (1040, 500)


def test_drawings_have_no_identifiers_or_scripts():
    drawn = str(draw(chart())) + render_svg(chart()).decode()
    assert not re.search(
        r"\s(id|style|clip-path|on\w+)=|<(script|style|use|defs|metadata)|url\(|http(?!://www.w3)", drawn
    )


@pytest.mark.filterwarnings("error")
def test_foreign_text_is_escaped():
    hostile = ET.fromstring(render_svg(chart(HOSTILE)))
    plain = ET.fromstring(render_svg(chart("w" * len(HOSTILE))))
    assert [each.tag for each in hostile.iter()] == [each.tag for each in plain.iter()]
    shown = hostile.findtext(f"{SVG}title") or ""
    assert shown.startswith("</title></svg><script>alert(1)</script> $\\frac$ _x #515b66 \u6f22")
    assert not {"\u202e", "\x1b"} & set(shown)
    texts = [each.text for each in hostile.iter(f"{SVG}text")]
    assert texts.count(shown) == 5, "titles of both axes, note, field, label"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert "#515b66" in str(draw(chart(HOSTILE)))
    assert seen == []
