"""Spread, tail and rises within a run: in every format, with their numbers."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report import html, markdown, workflow_commands
from pytest_ldos.show.report.compose import compose
from pytest_ldos.show.report.document import AspectReport
from pytest_ldos.show.report.terminal import render, render_failure
from pytest_ldos.show.report.words import describe_details, describe_move, summarize
from tests.builders.reports import full_section

WORDS = "spread × 2.1 (on average 13 % from the median, 6.4 % in the base)"
SPREAD = AspectReport(name="spread", words=WORDS, base=0.064, head=0.134, p_value=2e-6, tail=1e-5, is_regressed=True)
SUSPECT = dataclasses.replace(SPREAD, p_value=0.002, is_regressed=False, is_suspect=True)
QUIET = dataclasses.replace(SPREAD, p_value=0.3, is_regressed=False)


def section_with(aspect, verdict):
    section = full_section(verdict=verdict)
    first = section.metrics[0]
    head = first.head if verdict is Verdict.REGRESSED else first.base
    moved = dataclasses.replace(first, verdict=verdict, head=head, aspects=(aspect,))
    return dataclasses.replace(section, metrics=(moved,))


def formats(section):
    document = compose([section])
    yield render(document, width=300, color=False, setting=False)
    yield markdown.render(document)
    yield html.render(document)


def test_grown_spread_is_shown_with_the_change_of_the_median():
    section = section_with(SPREAD, Verdict.REGRESSED)
    assert summarize(section) == f"T1 +40.0 %; {WORDS}"
    assert describe_move(section.metrics[0]).endswith(f"; {WORDS}")
    assert "spread × 2.1" in render_failure(compose([section]))
    for text in formats(section):
        assert WORDS in text


def test_possibly_grown_spread_is_shown_with_the_verdict():
    section = section_with(SUSPECT, Verdict.PASSED)
    possible = f"T1 may have become worse: {WORDS}, p = 0.002"
    assert summarize(section) == f"nothing moved; {possible}"
    for text in formats(section):
        assert possible in text


@pytest.mark.parametrize("aspect", [SPREAD, SUSPECT, QUIET])
def test_tested_aspects_are_shown_with_p_values(aspect):
    section = section_with(aspect, Verdict.PASSED)
    assert f"T1: {WORDS}, p = {aspect.p_value:.1g}" in describe_details(section)
    described = workflow_commands.junit_properties(compose([section]))
    assert f"{aspect.p_value:.6g}" in {value for name, value in described.items() if name.endswith("T1.spread.p_value")}
