"""Planning problems in reports: three lines, a table, and a drawing of each change."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ldos.judge.baseline.store import Found
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.judging import Grounds, judge, judge_only
from pytest_ldos.show.report import html, markdown
from pytest_ldos.show.report.compose import compose, compose_section
from pytest_ldos.show.report.json_text import decode_document
from pytest_ldos.show.report.json_text import render as to_json
from pytest_ldos.show.report.terminal import render, render_problems
from pytest_ldos.show.report.words import describe_cases
from tests.builders.plans import planned_suite

NUMBER = r"[+-][\d.]+ %"
BASE = planned_suite(1, is_head=False)
HEAD = planned_suite(2, time=0.8, path=1.2, slow={7: 3.0}, failing={3: 2})


@pytest.fixture(scope="module")
def section():
    return compose_section(judge(HEAD, Grounds(policy=Policy(), base=Found(BASE, Path("base")), label="main")))


def rows_of(text):
    return [line.split() for line in text.splitlines() if re.match(r" +problem \d", line)]


def test_three_lines_say_what_became_of_the_suite(section):
    times, paths, solved = describe_cases(section)
    assert re.fullmatch(
        rf"T1 in 30 problems: {NUMBER} \({NUMBER} … {NUMBER}\), geometric mean; "
        rf"worst: problem 7 {NUMBER}, problem \d+ {NUMBER}, problem \d+ {NUMBER}",
        times,
    )
    assert paths.startswith("path_length in 30 problems: +")
    assert solved == "solved: 298 of 300, 300 of 300 in the base; worst: problem 3 8 of 10"


def test_comment_has_the_lines_and_no_table_of_problems(section):
    text = markdown.render(compose([section]))
    lines = text[text.index("Planning problems") :].splitlines()[2:5]
    assert [line.split(" ")[1] for line in lines] == ["T1", "path\\_length", "solved:"]
    assert "| problem 7" not in text


def test_terminal_shows_the_worst_problems(section):
    text = render(compose([section]), width=160, color=False)
    rows = rows_of(text)
    assert len(rows) == 10
    assert rows[0][:2] == ["problem", "7"]
    assert "Planning problems, the worst 10 of 30" in text


def test_page_shows_and_draws_all_problems(section):
    text = html.render(compose([section]))
    tables = re.findall(r"<table class=.*?</table>", text, re.DOTALL)
    found = [each for each in tables if "by problem, the worst first" in each]
    assert len(found) == 2
    for table in found:
        assert table.count("<tr>") == 31
        assert table.count("<circle") == 30
        assert "planning stage: search" in table


def test_result_file_has_all_problems(section):
    document = compose([section])
    assert decode_document(to_json(document).encode()) == document
    (times, _) = document.sections[0].of_suite
    assert [times.cases[0].name, times.cases[0].trials, times.cases[0].base_successes] == ["problem 7", 10, 10]


def test_suite_without_a_base_shows_its_own_numbers():
    text = render_problems(compose_section(judge_only(HEAD, Policy())), width=120, color=False)
    assert "solved: 298 of 300; worst: problem 3 8 of 10" in text
    rows = rows_of(text)
    assert len(rows) == 30
    assert rows[0][:2] == ["problem", "29"]
    assert rows[0][-3:] == ["planning", "stage:", "search"]
    assert "T1 quartiles" in text


def test_problem_that_was_not_planned_has_lost_nothing(section):
    """A run that ended early may have planned no seed of a problem that its base has."""
    first, *others = section.metrics
    cases = (replace(first.cases[0], name="unplanned", trials=0, successes=0), *first.cases[1:])
    lines = [*describe_cases(replace(section, metrics=(replace(first, cases=cases), *others)))]
    assert "unplanned" not in lines[-1]
