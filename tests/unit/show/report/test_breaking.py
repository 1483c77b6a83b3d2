"""Results of a search for a breaking point, in each format."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.campaign.bisection import LevelScale
from pytest_ldos.show.page.formats import Format
from pytest_ldos.show.report.breaking import answer, cause_of, remarks, render_breaking_as
from tests.builders.breaking import MadeUpStack, plan, search
from tests.builders.command_line import lines_of
from tests.builders.reports import HOSTILE
from tests.oracles import chromium


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return search(MadeUpStack(breaks_at=37, slow_from=37), tmp_path_factory.mktemp("broken"))


def test_the_answer_is_one_sentence(broken):
    assert answer(broken) == (
        "baseline breaks at stack.faults.planning_delay_ms = 35.2 ms (between 31.6 ms and 39.2 ms, 90 % confidence): "
        "from there on fewer than 50 % of trials succeed; 96 trials in 24 starts of the stack"
    )


def test_terminal_shows_result_levels_and_cause(broken):
    lines = lines_of(render_breaking_as(broken, Format.TERMINAL, width=110))
    assert lines[0].startswith("baseline breaks at stack.faults.planning_delay_ms = ")
    assert "where the estimate comes from: middle of the interval" in lines
    assert "1 ms 0 of 12 0 % 0 % … 42 % 3 holds" in lines
    assert "1000 ms 12 of 12 100 % 58 % … 100 % 3 breaks" in lines
    assert any(line.startswith("what leaves its calm range first: planning at 39.2 ms (10.") for line in lines)
    assert any(line.startswith("what explains most of it: planning (T1), ") for line in lines)
    assert any("12 control_failed (the controller gave up)" in line for line in lines)


def test_metric_is_shown_with_its_limit(tmp_path):
    found = search(MadeUpStack(slow_from=20), tmp_path, plan("T1>3x"))
    assert "the median of T1 is beyond 3 × its calm one (" in answer(found)
    table = lines_of(render_breaking_as(found, Format.TERMINAL, width=110))
    assert "level broken share interval median starts result" in table
    assert any(line.startswith("1 ms 0 of 12 0 % 0 % … 42 % 1") and line.endswith(" ms 3 holds") for line in table)
    reported = list(cause_of(found))
    assert any(each.startswith("what explains most of it other than T1 itself: executor queue") for each in reported)
    assert reported[-1].endswith("it is slower or less regular, but arrives")


def test_result_without_a_threshold(tmp_path):
    found = search(MadeUpStack(), tmp_path)
    assert answer(found).startswith("baseline does not break up to stack.faults.planning_delay_ms = 1000 ms, 90 % conf")
    assert any("were tested once, in the middle" in each for each in remarks(found))


def test_limits_break_downwards(tmp_path):
    falling = plan(scale=LevelScale(low=1, high=1000, is_falling=True, precision=0.3))
    found = search(MadeUpStack(fails=lambda level, index: level < 37), tmp_path, falling)
    assert found.breaks < 37 <= found.holds
    assert f"(between {found.breaks:g} ms and {found.holds:g} ms" in answer(found)
    nothing = search(MadeUpStack(), tmp_path, falling)
    assert "does not break down to stack.faults.planning_delay_ms = 1 ms" in answer(nothing)


def test_unreachable_load_is_no_threshold(tmp_path):
    found = search(MadeUpStack(reaches=50), tmp_path)
    text = render_breaking_as(found, Format.TERMINAL, width=110)
    assert "baseline holds up to " in text
    assert "could not be measured: the load was not reached: the load reached 50 of " in " ".join(text.split())
    assert "1000 ms: the load was not reached: the load reached 50 of 1000" in lines_of(text)


def test_failures_of_the_harshest_measured_level_are_shown(tmp_path):
    """Beyond it, nothing counts."""
    found = search(MadeUpStack(reaches=50, fails=lambda level, index: level > 20 and index == 0), tmp_path)
    (reported,) = [each for each in cause_of(found) if "failed" in each]
    assert reported.startswith(("3 of 12 trials at ", "6 of 24 trials at "))
    assert "1000" not in reported


def test_broken_when_calm_is_reported(tmp_path):
    found = search(MadeUpStack(breaks_at=0), tmp_path)
    assert "is broken already at stack.faults.planning_delay_ms = 1 ms" in answer(found)


def test_unmeasured_level_has_a_reason(tmp_path):
    failing = MadeUpStack(ends={1: BringUpFailed("it was not ready"), 2: BringUpFailed("it was not ready")})
    found = search(failing, tmp_path)
    assert (
        "could not be measured at stack.faults.planning_delay_ms = 1 ms: the stack did not start: it was not"
        in answer(found)
    )
    for kind in Format:
        assert "it was not ready" in render_breaking_as(found, kind)


def test_inconclusive_search_is_reported(tmp_path):
    found = search(MadeUpStack(fails=lambda level, index: index % 2 == 0), tmp_path)
    assert "could not be decided: whether fewer than 50 % of trials succeed" in answer(found)


def test_json_has_everything(broken):
    document = json.loads(render_breaking_as(broken, Format.JSON))
    assert (document["schema"], document["finding"], document["scenario"]) == (1, "breaks", "baseline")
    assert document["holds"] < document["estimate"] < document["breaks"]
    assert document["estimate_by"] == "middle of the interval"
    assert [each["trials"] for each in document["levels"]] == [12] * 8
    assert document["cause"]["blamed"]["stage"] == "planning"
    assert document["answer"] == answer(broken)


def test_markdown_has_the_same(broken):
    text = render_breaking_as(broken, Format.MARKDOWN)
    assert text.startswith("## ldos: breaking point\n\nbaseline breaks at ")
    assert "| 1 ms | 0 of 12 | 0 % | 0 % … 42 % | 3 | holds |" in text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return search(MadeUpStack(breaks_at=37, message="".join(HOSTILE)), tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize(("kind", "colour"), [("holds", "good"), ("breaks", "bad")])
def test_points_have_the_colours_that_the_legend_names(broken, kind, colour):
    page = render_breaking_as(broken, Format.HTML)
    assert f'class="point {kind}"' in page
    assert f".{kind} {{ color: var(--{colour}); }}" in page


def test_controller_text_is_escaped(hostile):
    assert "\x1b" not in render_breaking_as(hostile, Format.TERMINAL)
    assert "<script" not in render_breaking_as(hostile, Format.MARKDOWN)
    assert "<script" not in render_breaking_as(hostile, Format.HTML)


@pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)
@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), pytest.param(380, True, marks=pytest.mark.acceptance)],
    ids=["wide, light", "narrow, dark"],
)
def test_page_works_in_a_browser(hostile, tmp_path, width, dark):
    probe = (
        f'{{"overflow": {chromium.OVERFLOW}, "contrasts": {chromium.CONTRASTS}, '
        f'"unreachable": {chromium.HIDDEN_OVERFLOW}, "points": document.querySelectorAll("svg .point path").length, '
        '"band": document.querySelectorAll("svg .floor path").length, "curve": document.querySelectorAll("svg .curve path").length}'
    )
    seen = chromium.look_at(render_breaking_as(hostile, Format.HTML), tmp_path, width=width, dark=dark, script=probe)
    assert seen.console == []
    assert seen.result["overflow"] <= 0
    assert seen.result["unreachable"] == []
    assert {name: ratio for name, ratio in seen.result["contrasts"].items() if ratio < 4.5} == {}
    assert (seen.result["points"], seen.result["band"], seen.result["curve"]) == (8, 1, 1)
