"""Waterfalls: notes next to bars do not overlap other words."""

from __future__ import annotations

import re

from pytest_ldos.show.report.trace.drawings import draw_waterfalls
from pytest_ldos.show.report.trace.passages import Part, Waterfall

NAME = "outside callbacks: /move_group from planning to executing"
NOTE = "+25.5 ms [+24, +27.2]"


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
