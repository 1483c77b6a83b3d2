"""Drawings of a trace: distributions of few values have distinct ticks, notes next to bars do not overlap other words."""

from __future__ import annotations

import re

import pytest

from pytest_ldos.show.report.trace_against import Part, Waterfall
from pytest_ldos.show.report.trace_page import draw_values, draw_waterfalls

NAME = "outside callbacks: /move_group from planning to executing"
NOTE = "+25.5 ms [+24, +27.2]"


def ticks_of(values, unit):
    return re.findall(r"<text[^>]*>([^<]+)</text>", str(draw_values("T1", values, unit)))


@pytest.mark.parametrize("values", [(12.0, 12.0, 12.0), (8.1, 12.4, 15.2), (1.0, 30.0)])
def test_ticks_of_few_goals(values):
    texts = ticks_of(values, "ms")
    assert len(set(texts)) == len(texts), texts
    assert not [text for text in texts if re.fullmatch(r"\d+\.\d+", text)], texts


def test_many_goals_have_round_ticks():
    assert "20" in ticks_of([10.0] * 40, "ms")


def test_note_of_a_long_bar_is_right_aligned_inside():
    base = Waterfall("planning, baseline", (Part(NAME, 12_700_000, is_marked=True), Part("CPU wait: /a", 894_000)))
    head = Waterfall("planning, this run", (Part(NAME, 37_600_000, NOTE, is_marked=True), Part("CPU wait: /a", 1_000)))
    drawn = str(draw_waterfalls([base, head], scale_ns=38_601_000))
    bars = [(float(x), float(width)) for x, width in re.findall(r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"', drawn)]
    texts = re.findall(r'</text><rect[^>]*></rect><text x="([\d.]+)"[^>]*>([^<]*)<', drawn)
    assert len(bars) == len(texts) == 4
    for (x, width), (place, words) in zip(bars, texts, strict=True):
        assert x + width < float(place)
        assert float(place) + 6.5 * len(words) <= 800
    assert texts[2][1] == f"37.6 ms, {NOTE}"
