"""The legend of a chart, beside it in the page, so that it flows with the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.show.report.plots.chart import COLOURS, SHAPES, Shape

_SIGNS: Final = {Shape.CIRCLE: "●", Shape.SQUARE: "■", Shape.DIAMOND: "◆", Shape.TRIANGLE: "▲"}


def draw_legend(title: str, labels: Sequence[str]) -> Node:
    """The colour and mark of each line, with its label; nothing for a single line.

    Args:
        labels: in the order of the lines' colours.
    """
    if len(labels) < 2:
        return None
    entries = [
        h.li[
            h.span(class_=f"s{number % COLOURS}", aria_hidden="true")[_SIGNS[SHAPES[number % len(SHAPES)]]],
            h.bdi[label],
        ]
        for number, label in enumerate(map(one_line, labels))
    ]
    return h.ul(".legend", aria_label=title)[entries]
