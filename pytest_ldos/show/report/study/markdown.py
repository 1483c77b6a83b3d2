"""A study in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ldos.base.text import Rendered
from pytest_ldos.instruments.study import Study
from pytest_ldos.show.report.markdown_parts import Markdown, bullets, heading, join, small, table
from pytest_ldos.show.report.study.words import failures_of, headings_of, rows_of, setting_of, title_of


def render(study: Study) -> Rendered:
    """Its tables but for the long ones."""
    return join(_parts(study))


def _parts(study: Study) -> Iterator[Markdown]:
    yield heading(2, title_of(study))
    yield bullets([*failures_of(study), *study.notes])
    for each in study.tables:
        if not each.is_detail:
            yield heading(3, each.title)
            yield table(headings_of(each), rows_of(each))
    yield small(setting_of(study))
