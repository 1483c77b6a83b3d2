"""Distributions of few values have few and distinct ticks."""

from __future__ import annotations

import re

import pytest

from pytest_ldos.show.report.trace.drawings import draw_values


def ticks_of(values, unit):
    return re.findall(r"<text[^>]*>([^<]+)</text>", str(draw_values("T1", values, unit)))


@pytest.mark.parametrize("values", [(12.0, 12.0, 12.0), (8.1, 12.4, 15.2), (1.0, 30.0)])
def test_ticks_of_few_goals(values):
    texts = ticks_of(values, "ms")
    assert len(set(texts)) == len(texts), texts
    assert not [text for text in texts if re.fullmatch(r"\d+\.\d+", text)], texts


def test_many_goals_have_round_ticks():
    assert "20" in ticks_of([10.0] * 40, "ms")
