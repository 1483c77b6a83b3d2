"""Plots of trends as Chromium shows them: legible in both schemes, and no name does anything."""

from __future__ import annotations

import dataclasses
import html

import pytest

from pytest_ldos.judge.baseline.history.trend import build_trend
from pytest_ldos.show.report.history import figure
from tests.builders.history import series_of
from tests.oracles import chromium

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)

HOSTILE = "<b>bold</b> <a href='https://evil.example'>x</a> </script><img src=x onerror=alert(1)>"

READABLE = 4.5
"""WCAG 2, level AA."""

PROBE = (
    f'{{"contrasts": {chromium.CONTRASTS}, "ground": getComputedStyle(document.body).backgroundColor, '
    '"titles": [...document.querySelectorAll(".ytitle")].map(each => each.textContent), '
    '"tags": document.querySelectorAll(".main-svg a, .main-svg tspan[style*=bold], section img").length}'
)


def shown(**changes):
    trend = build_trend(series_of([0.0] * 6 + [0.2] * 6))
    series = dataclasses.replace(trend.series, **changes)
    return [(dataclasses.replace(trend, series=series), trend.commits)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_readers_scheme_is_followed(tmp_path, dark):
    found = chromium.look_at(figure.render_page(shown()), tmp_path, dark=dark, script=PROBE).result
    assert found["ground"] == ("rgb(15, 20, 24)" if dark else "rgb(255, 255, 255)")
    assert len(found["contrasts"]) > 5
    assert {name: ratio for name, ratio in found["contrasts"].items() if ratio < READABLE} == {}


def test_names_are_words(tmp_path):
    page = figure.render_page(shown(metric=HOSTILE, unit="<i>ms</i>"))
    found = chromium.look_at(page, tmp_path, script=PROBE).result
    assert found["titles"] == [f"{HOSTILE}, <i>ms</i>"]
    assert found["tags"] == 0


def test_the_plots_are_all_that_runs(tmp_path):
    page = figure.render_page([*shown(), *shown(metric="T2")])
    found = chromium.look_at(page, tmp_path)
    assert found.console == []
    assert found.dom.count('class="ytitle"') == 2
    added = page.replace("</body>", "<script>document.title = 'ran'</script></body>")
    found = chromium.look_at(added, tmp_path)
    assert any("Content Security Policy" in line for line in found.console)
    assert "<title>History of performance</title>" in found.dom


def test_an_image_shows_names_as_words(monkeypatch):
    """Kaleido finds Chromium by this variable, or by itself."""
    pytest.importorskip("kaleido")
    monkeypatch.setenv("BROWSER_PATH", chromium.PROGRAM or "")
    image = figure.render_image(shown(metric="<b>bold</b>"), "svg").decode()
    assert image.startswith("<svg")
    assert "><b>bold</b>, ms<" in html.unescape(image)
    assert ">rolling anchor<" in image
