"""The page as Chromium shows it: silent, legible in both schemes, whole at any width, usable by keyboard."""

from __future__ import annotations

import pytest

from pytest_ldos.show.page.formats import Format, render
from pytest_ldos.show.report import html as page
from pytest_ldos.show.report.breaking import render_breaking_as
from pytest_ldos.show.report.study import render_study_as
from pytest_ldos.show.report.sweep import compose_page
from tests.builders.breaking import breaking_result
from tests.builders.reports import HOSTILE, full_document, in_words
from tests.builders.representatives import representatives
from tests.builders.studies import study
from tests.builders.sweeps import full_report
from tests.oracles import chromium

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)

TEXT_CONTRAST = 4.5
"""WCAG 2, level AA."""

NARROW = 420
"""Pixels, of a telephone."""

TOO_WIDE = (
    '[...document.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth)'
    '.map(each => each.getAttribute("aria-label"))'
)
"""Tables and drawings that end behind the edge."""

PROBE = (
    f'{{"overflow": {chromium.OVERFLOW}, "contrasts": {chromium.CONTRASTS}, "width": innerWidth, "wide": {TOO_WIDE}, '
    f'"unreachable": {chromium.HIDDEN_OVERFLOW}, "focused": {chromium.FOCUSED}, '
    '"ground": getComputedStyle(document.body).backgroundColor}'
)


def sweep_page():
    return render(compose_page(full_report()), Format.HTML)


def study_page():
    return render_study_as(study(), Format.HTML)


def breaking_page():
    return render_breaking_as(breaking_result(), Format.HTML)


@pytest.fixture(scope="module", params=[(1200, False), (NARROW, True)], ids=["wide, light", "narrow, dark"])
def seen(request, tmp_path_factory):
    width, dark = request.param
    opened = page.render(full_document()).replace("<details>", "<details open>")
    found = chromium.look_at(opened, tmp_path_factory.mktemp("page"), width=width, dark=dark, script=PROBE)
    assert found.result["width"] == width
    return dark, found


def test_colour_scheme_follows_the_reader(seen):
    dark, found = seen
    assert found.result["ground"] == ("rgb(15, 20, 24)" if dark else "rgb(255, 255, 255)")


def test_text_is_legible(seen):
    contrasts = seen[1].result["contrasts"]
    assert len(contrasts) > 15  # verdicts of one tone look alike
    assert {name: ratio for name, ratio in contrasts.items() if ratio < TEXT_CONTRAST} == {}


def test_the_page_is_no_wider_than_the_window(seen):
    assert seen[1].result["overflow"] <= 0
    assert seen[1].result["wide"] == []


@pytest.mark.parametrize(
    "made", representatives([sweep_page, study_page, breaking_page], 1), ids=["sweep", "study", "breaking"]
)
def test_other_pages_are_no_wider_than_a_phones_window(tmp_path, made):
    opened = made().replace("<details>", "<details open>")
    found = chromium.look_at(opened, tmp_path, width=NARROW, script=PROBE).result
    assert (found["width"], found["overflow"], found["wide"]) == (NARROW, 0, [])


def test_everything_can_be_reached_by_keyboard(seen):
    result = seen[1].result
    assert result["unreachable"] == []
    assert len(result["focused"]) > 20
    assert all(result["focused"])


def test_nothing_is_reported_to_the_console(tmp_path):
    """Neither an error, nor that the page's own rule refused something, whatever names say."""
    found = chromium.look_at(page.render(in_words(full_document(), "".join(HOSTILE))), tmp_path)
    assert found.console == []
    assert "</html>" in found.dom
    assert "<script" not in found.dom
    assert "<iframe" not in found.dom


def test_injected_script_is_refused_with_a_console_message(tmp_path):
    refused = page.render(full_document()).replace("</body>", "<script>document.title = 'ran'</script></body>")
    found = chromium.look_at(refused, tmp_path)
    assert any("Content Security Policy" in line for line in found.console)
    assert "<title>ldos: regressed</title>" in found.dom
