"""A study in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_ldos.middleware.study import Study, Table
from pytest_ldos.report.markdown import escape
from pytest_ldos.report.study.words import failures_of, headings_of, rows_of, setting_of, title_of


def render(study: Study) -> str:
    """Its tables but for the long ones; what other programs said can do nothing."""
    return "\n\n".join(part for part in _parts(study) if part) + "\n"


def _parts(study: Study) -> Iterator[str]:
    yield f"## {escape(title_of(study))}"
    yield _list([*failures_of(study), *study.notes])
    for table in study.tables:
        if not table.is_detail:
            yield f"### {escape(table.title)}"
            yield _table(table)
    yield "\n".join(f"<sub>{escape(each)}</sub>" for each in setting_of(study))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escape(each)}" for each in lines)


def _table(table: Table) -> str:
    rows = [headings_of(table), *rows_of(table)]
    cells = [[escape(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], ["---"] * len(table.columns), *cells[1:]))
