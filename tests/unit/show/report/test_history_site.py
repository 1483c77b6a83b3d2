"""A site of a history: states, a badge that is never better than they are, links, and names that stay words."""

from __future__ import annotations

import dataclasses
import json
import re
from xml.etree import ElementTree as ET

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.trend import Pin, build_trend
from pytest_ldos.show.page.model import Badge, Column, Table, Tone, Words
from pytest_ldos.show.report.history import Origins
from pytest_ldos.show.report.history_page import file_of, overall, render_site, states_of
from tests.builders.history import commit, series_of
from tests.oracles import chromium

HOSTILE = "<b>x</b></script><script>alert(1)</script>\u202e ../../etc \x1b[31m"
URL = "https://github.example/owner/robot"
PLACE = {"stack": "embedded", "host_class": "host", "scenario": "baseline"}

in_browser = pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)
PROBE = (
    f'{{"overflow": {chromium.OVERFLOW}, "contrasts": {chromium.CONTRASTS}, "unreachable": {chromium.HIDDEN_OVERFLOW}, '
)
PROBE += '"scripts": document.querySelectorAll("script:not(:last-of-type), b, main img").length}'


def trend_of(levels=(0.0,) * 6, verdict: str = "passed", version: str = "head", **changes):
    """A trend whose last run has a verdict."""
    of_key = {name: changes.pop(name) for name in PLACE if name in changes}
    series = series_of(list(levels), verdicts={len(levels) - 1: verdict})
    runs = tuple(dataclasses.replace(run, version=version) for run in series.runs)
    return build_trend(dataclasses.replace(series, key=BaselineKey(**{**PLACE, **of_key}), runs=runs, **changes))


def site(*trends, origins: Origins | None = None) -> dict[str, Rendered]:
    return render_site([(trend, trend.commits) for trend in trends], origins or Origins())


def badge_of(*trends) -> Badge:
    return overall(states_of(trends))


CREEPING = [0.005 * number for number in range(60)]


@pytest.mark.parametrize(
    ("verdicts", "text", "tone"),
    [
        (["passed", "passed"], "passed", Tone.GOOD),
        (["passed", "regressed"], "regressed", Tone.BAD),
        (["improved"], "improved", Tone.GOOD),
        (["infra", "inconclusive"], "infra", Tone.BAD),
        (["passed", "inconclusive"], "inconclusive", Tone.DOUBT),
        (["passed", "no_baseline"], "no baseline", Tone.DOUBT),
        (["unjudged"], "unknown", Tone.PLAIN),
        (["passed", "unjudged"], "unknown", Tone.PLAIN),
        (["a verdict of later versions"], "unknown", Tone.PLAIN),
        ([""], "unknown", Tone.PLAIN),
        ([], "unknown", Tone.PLAIN),
    ],
)
def test_badge_is_the_worst_state_and_not_good_if_unjudged(verdicts, text, tone):
    found = badge_of(*(trend_of(verdict=each, scenario=f"s{number}") for number, each in enumerate(verdicts)))
    assert (found.text, found.tone) == (text, tone)


def test_base_does_not_affect_the_badge():
    assert badge_of(trend_of(version="base")).text == "unknown"


def test_badge_of_a_creeping_metric_is_not_good():
    found = badge_of(trend_of(CREEPING))
    assert (found.text, found.tone) == ("passed, creep", Tone.DOUBT)
    assert badge_of(trend_of(CREEPING, verdict="regressed")).text == "regressed"


def test_each_host_class_has_its_own_page_and_state():
    pages = site(trend_of(), trend_of(verdict="regressed", host_class="other"))
    states = re.findall(r'class="badge (\w+)"', pages["index.html"])
    assert states == ["bad", "good", "bad"]
    assert len([name for name in pages if name.startswith("baseline-")]) == 2
    for name, page in pages.items():
        if name.startswith("baseline-"):
            assert ("host class other" in page) != ("host class host" in page)


def test_links_lead_to_existing_files_and_headings():
    pages = site(trend_of(), trend_of(metric="T2"), trend_of(scenario="a/b", host_class="ö"))
    for name, page in pages.items():
        if name.endswith(".html"):
            for address in re.findall(r'href="([^"]+)"', page):
                file, _, anchor = address.partition("#")
                assert file in {*pages, "", "data:,"}, address
                assert not anchor or f'id="{anchor}"' in page, address


@pytest.mark.parametrize("scenario", ["a/b", "../x", "", ".", "con\0x", "x" * 5000, "ü\udcff", HOSTILE])
def test_file_names_are_safe(scenario):
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}\.html", file_of(BaselineKey("s", "h", scenario)))


def test_similar_names_have_separate_files():
    keys = [("a", "b", "c/d"), ("a", "b", "c_d"), ("a", "b", "c-d"), ("a", "bc", "-d"), ("ab", "", "c-d")]
    assert len({file_of(BaselineKey(*key)) for key in keys}) == len(keys)


def test_the_badge_for_shields():
    """Schema: https://shields.io/badges/endpoint-badge."""
    found = {verdict: json.loads(site(trend_of(verdict=verdict))["badge.json"]) for verdict in ("passed", "unjudged")}
    assert found["passed"] == {"schemaVersion": 1, "label": "ldos", "message": "passed", "color": "brightgreen"}
    assert found["unjudged"] == {"schemaVersion": 1, "label": "ldos", "message": "unknown", "color": "lightgrey"}


@pytest.mark.parametrize("verdict", ["passed", "regressed", "unjudged"])
def test_badge_is_an_image_with_text(verdict):
    drawn = ET.fromstring(site(trend_of(verdict=verdict))["badge.svg"])
    words = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert words == ["ldos", {"unjudged": "unknown"}.get(verdict, verdict)]
    assert drawn.get("aria-label") == ": ".join(words)


# --- origins ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Plan faster (#123)", "#123"),
        ("Merge pull request #45 from someone/branch", "#45"),
        ('Revert "Plan faster (#123)" (#130)', "#130"),
        ("Plan faster, as (#123) wanted", ""),
        ("Plan faster (#0)", ""),
        ("Plan faster (#٣)", ""),
        ("Plan (#1234567890)", ""),
        ("fixup: Merge pull request #45 from someone/branch", ""),
        ("", ""),
    ],
)
def test_pull_requests_by_the_subject_of_their_commit(subject, number):
    point = trend_of().commits[0]
    found = Origins(URL, {point.commit: subject}).pull_request(point)
    assert (found.title if found else "", found.url if found else "") == (number, number and f"{URL}/pull/{number[1:]}")
    assert Origins("", {point.commit: subject}).pull_request(point) is None


@pytest.mark.parametrize(
    ("branch", "number"),
    [("gh-readonly-queue/main/pr-7-" + "a" * 40, "#7"), ("pr-7-abc", ""), ("gh-readonly-queue/main/pr-7-x?y", "")],
)
def test_pull_requests_by_the_branch_of_a_merge_queue(branch, number):
    (point, *_) = trend_of().commits
    point = dataclasses.replace(point, runs=tuple(dataclasses.replace(run, branch=branch) for run in point.runs))
    found = Origins(URL).pull_request(point)
    assert (found.title if found else "") == number


@pytest.mark.parametrize("name", ["abcdef012345+", "x" * 12, "../../settings", "abc", '"onclick="', ""])
def test_only_a_commit_has_an_address(name):
    assert Origins(URL).commit_url(name) == ""
    assert Origins(URL).commit_url(commit(1)) == f"{URL}/commit/{commit(1)}"


@pytest.mark.parametrize("url", ["http://github.example/a/b", "javascript:alert(1)", "a/b", 'https://x/"onclick="'])
def test_repository_address_is_validated(url):
    with pytest.raises(ConfigurationError, match="is not an address"):
        Origins(url)


# --- pages ------------------------------------------------------------------------------


def hostile_site() -> dict[str, Rendered]:
    trend = trend_of([0.0] * 12 + [0.2] * 12, scenario=HOSTILE, host_class=HOSTILE, metric=HOSTILE, title=HOSTILE)
    subjects = {point.commit: f"{HOSTILE} (#{number})" for number, point in enumerate(trend.commits, 1)}
    return site(trend, trend_of(), origins=Origins(URL, subjects))


@in_browser
@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), pytest.param(390, True, marks=pytest.mark.acceptance)],
    ids=["wide, light", "narrow, dark"],
)
def test_pages_are_legible_and_names_are_escaped(tmp_path, width, dark):
    pages = {name: page for name, page in hostile_site().items() if name.endswith(".html")}
    assert len(pages) == 3
    for name, page in pages.items():
        assert "<script" not in page
        assert "\x1b" not in page
        opened = page.replace("<details>", "<details open>")
        found = chromium.look_at(opened, tmp_path, width=width, dark=dark, script=PROBE).result
        assert (found["overflow"] <= 0, found["unreachable"], found["scripts"]) == (True, [], 0), name
        assert min(found["contrasts"].values()) >= 4.5, name


def test_the_same_history_makes_the_same_bytes():
    trends = [trend_of(scenario="b"), trend_of(CREEPING), trend_of(metric="T2", host_class="other")]
    assert site(*trends) == site(*trends)
    assert site(*trends)["index.html"] == site(*reversed(trends))["index.html"]


def test_every_commit_is_drawn_and_changes_are_marked():
    wander = [0.004 * (number * 7 % 5) for number in range(36)]
    levels = [0.0] * 12 + [0.2] * 12 + [0.2 + 0.02 * number for number in range(12)]
    trend = trend_of([sum(each) for each in zip(levels, wander, strict=True)])
    (page,) = (page for name, page in site(trend).items() if name.startswith("baseline-"))
    rows = [re.sub(r"<[^>]+>", " ", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    of_commit = {point.label: row for point in trend.commits for row in rows if row.split()[0] == point.label}
    assert of_commit.keys() == {point.label for point in trend.commits}
    assert "+23.1 %" in of_commit[trend.commits[12].label]
    for point in trend.commits:
        assert ("level changes" in of_commit[point.label]) == bool(point.change_point)
        assert ("creep:" in of_commit[point.label]) == bool(point.creeps)
    assert any(point.change_point for point in trend.commits)
    assert any(point.creeps for point in trend.commits)


def test_pinned_commit_is_marked():
    series = series_of([0.0] * 6)
    trend = build_trend(series, pin=Pin(series.runs[2].commit, "", series.runs[2].commit))
    (page,) = (page for name, page in site(trend).items() if name.startswith("baseline-"))
    assert re.findall(r"<title>(\w+): [^<]*, pinned<", page) == [series.runs[2].commit] * 2
    assert "pinned anchor" in page
    assert "since pin" in page
    assert "since start" not in page


def test_empty_columns_are_left_out():
    columns = (Column("a"), Column("b"), Column("c"))
    table = Table(columns=columns, rows=(("1", "", Words("")), ("2", Words("x"), Words("")))).without_empty()
    assert table.columns == columns[:2]
    assert table.rows == (("1", ""), ("2", Words("x")))
