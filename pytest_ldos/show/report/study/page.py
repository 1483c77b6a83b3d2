"""A study as one HTML page that needs nothing else; see `report.html.page`."""

from __future__ import annotations

import htpy as h
from htpy import Node

from pytest_ldos.base.text import Rendered
from pytest_ldos.instruments.study import Figure, Study, Table
from pytest_ldos.show.report.html.elements import Column, bullet_list, folded, said, table
from pytest_ldos.show.report.html.page import series_style, whole_page
from pytest_ldos.show.report.study.drawing import draw, legend
from pytest_ldos.show.report.study.words import failures_of, is_words, rows_of, setting_of, title_of


def render(study: Study) -> Rendered:
    """The page as text."""
    title = title_of(study)
    remarks = [*failures_of(study), *study.notes]
    body = h.body[
        h.a(".skip", href="#results")["Skip to the results"],
        h.header[h.h1[said(title)], bullet_list(setting_of(study))],
        h.main(id="results", tabindex="-1")[
            h.section[h.h2["What must be known"], bullet_list(remarks)] if remarks else None,
            h.section[h.h2["Numbers"], [_table(each) for each in study.tables]],
            h.section[h.h2["Figures"], h.div(".charts")[[_figure(each) for each in study.figures]]]
            if study.figures
            else None,
        ],
        h.footer[h.p[said(f"measured {study.started_at}")]],
    ]
    return whole_page(title, body, series_style())


def _table(shown: Table) -> Node:
    columns = [
        Column(column.heading, is_number=place > 0 and not is_words(shown, column))
        for place, column in enumerate(shown.columns)
    ]
    whole = table(shown.title, columns, rows_of(shown))
    return folded(shown.title, whole) if shown.is_detail else whole


def _figure(figure: Figure) -> Node:
    return h.figure[h.figcaption[said(figure.title)], legend(figure), draw(figure)]
