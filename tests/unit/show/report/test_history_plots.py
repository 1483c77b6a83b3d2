"""Trends as charts: legible in both schemes, named values, and no name does anything."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree as ET

import pytest

from pytest_ldos.judge.baseline.trend import build_trend
from pytest_ldos.show.report import figures as figure
from pytest_ldos.show.report.history_page import render_page
from tests.builders.history import series_of
from tests.oracles import chromium

HOSTILE = "<b>bold</b> <a href='https://evil.example'>x</a> </script><img src=x onerror=alert(1)>"

READABLE = 4.5
"""WCAG 2, level AA."""

PROBE = (
    f'{{"contrasts": {chromium.CONTRASTS}, "ground": getComputedStyle(document.body).backgroundColor, '
    f'"overflow": {chromium.OVERFLOW}, "unreachable": {chromium.HIDDEN_OVERFLOW}, '
    '"titles": [...document.querySelectorAll("svg text")].map(each => each.textContent), '
    '"tags": document.querySelectorAll("svg a, svg b, svg img, section img").length}'
)

in_browser = pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)


def shown(levels=(0.0,) * 6 + (0.2,) * 6, **changes):
    trend = build_trend(series_of(list(levels)))
    series = dataclasses.replace(trend.series, **changes)
    return [(dataclasses.replace(trend, series=series), trend.commits)]


@in_browser
@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), pytest.param(420, True, marks=pytest.mark.acceptance)],
    ids=["wide, light", "narrow, dark"],
)
def test_colour_scheme_and_width_follow_the_reader(tmp_path, width, dark):
    page = render_page(shown()).replace("<details>", "<details open>")
    found = chromium.look_at(page, tmp_path, width=width, dark=dark, script=PROBE).result
    assert found["ground"] == ("rgb(15, 20, 24)" if dark else "rgb(255, 255, 255)")
    assert len(found["contrasts"]) >= 5
    assert {name: ratio for name, ratio in found["contrasts"].items() if ratio < READABLE} == {}
    assert found["overflow"] <= 0
    assert found["unreachable"] == []


@in_browser
def test_names_are_escaped(tmp_path):
    found = chromium.look_at(render_page(shown(metric=HOSTILE, unit="<i>ms</i>")), tmp_path, script=PROBE).result
    assert f"{HOSTILE}, <i>ms</i>" in found["titles"]
    assert found["tags"] == 0


@in_browser
def test_page_has_no_scripts(tmp_path):
    page = render_page([*shown(), *shown(metric="T2")])
    assert page.count('role="img"') == 2
    assert chromium.look_at(page, tmp_path).console == []
    added = page.replace("</body>", "<script>document.title = 'ran'</script></body>")
    found = chromium.look_at(added, tmp_path)
    assert any("Content Security Policy" in line for line in found.console)
    assert "<title>History of performance</title>" in found.dom


def test_image_shows_names_as_text():
    image = ET.fromstring(figure.render_image(shown(metric="<b>bold</b>"), "svg"))
    texts = [each.text for each in image.iter("{http://www.w3.org/2000/svg}text")]
    assert "<b>bold</b>, ms" in texts
    assert "rolling anchor" in texts


def test_notable_commits_are_marked_and_every_commit_has_its_value():
    """The text shown when pointing at a commit is also in the table."""
    ((trend, points),) = found = shown([0.0] * 12 + [0.2] * 12 + [0.2 + 0.02 * number for number in range(12)])
    page = render_page(found)
    tips = {kind: re.findall(rf"<title>(\w+): [^<]*{kind}", page) for kind in ("level changes", "creep")}
    assert tips["level changes"] == [each.label for each in points if each.change_point] * 2
    assert tips["creep"] == [each.label for each in points if each.creeps] * 2
    assert tips["creep"]
    for point in points:
        assert f"<title>{point.label}: " in page
        assert f"<bdi>{point.label}</bdi>" in page
    assert trend.rolling is not None
