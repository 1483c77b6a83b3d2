"""Studies: their commands exist, their figures are found in recorded results, and the pages are made from them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.compose import compose
from studies.measure import of_scenarios
from studies.model import NAMES, ROOT, Figure, Value, read_study
from studies.pages import DOCS, draw, render_pages, show_cell
from tests.builders.reports import section_of
from tests.builders.trials import noisy_set
from tests.docs.test_pages import unknown_words

STUDIES = [read_study(name) for name in NAMES]
PAGES = render_pages(STUDIES)
RUNS = [pytest.param(study, run, id=f"{study.name}-{run.name}") for study in STUDIES for run in study.runs]
BY_STUDY = pytest.mark.parametrize("study", STUDIES, ids=NAMES)


@pytest.mark.parametrize(("study", "run"), RUNS)
def test_commands_exist_and_their_results_are_recorded(study, run):
    assert list(unknown_words(list(run.command))) == []
    assert study.file(run.name).is_file()


@BY_STUDY
def test_each_figure_is_measured_or_has_a_reason(study):
    for figure in study.figures:
        assert figure.outcome == "reproduced" or figure.note, figure.what


@BY_STUDY
def test_columns_of_sections_are_recorded(study):
    for given in study.settings.get("section", ()):
        for run in given.get("runs", ()):
            rows = study.results[run].tables[given["table"]]
            assert rows
            # only where a reach failed, or with a simulator
            optional = {"T2_failed", "T2_failed_least", "T2_failed_most", "T5"}
            assert set(given["columns"]) - optional <= set(rows[0])


def test_cells_are_shown_with_three_digits_and_absent_ones_as_a_dash():
    assert [show_cell(each) for each in (15.715, 1005.29, 10, None, "", "a")] == ["15.7", "1005", "10", "–", "–", "a"]


@BY_STUDY
def test_study_has_a_test_and_a_readme(study):
    names = {each.name for each in (ROOT / study.name).iterdir()}
    assert {"README.md", "pyproject.toml", "study.toml"} <= names
    assert any(name.startswith("test_") for name in names)


@pytest.mark.parametrize("name", PAGES)
def test_page_is_made_from_the_results(name):
    assert (DOCS / name).read_text("utf-8") == PAGES[name], "write it again: python -m studies write"


@BY_STUDY
def test_every_measured_figure_with_a_number_is_drawn(study, tmp_path):
    draw(study, tmp_path / "drawing.svg")
    text = (tmp_path / "drawing.svg").read_text("utf-8")
    assert text.count("use xlink") > len([each for each in study.figures if each.ours is not None])
    assert (Path(DOCS) / f"studies/{study.name}.svg").is_file()


def figure(ours: Value | None, low: float | None = 450, high: float | None = 500) -> Figure:
    return Figure("p99", "µs", "450 to 500", low, high, ours, "")


@pytest.mark.parametrize(
    ("ours", "outcome"),
    [
        (Value(470), "reproduced"),
        (Value(44, 30, 60), "differs"),
        (Value(430, 410, 455), "reproduced"),
        (None, "not measured"),
    ],
)
def test_outcome_is_that_of_the_interval(ours, outcome):
    assert figure(ours).outcome == outcome


def test_number_for_a_statement_is_not_published():
    assert figure(Value(470), low=None, high=None).outcome == "not published"


def test_invalid_scenario_is_a_note_and_the_others_are_kept():
    valid = section_of(noisy_set(1), None)
    invalid = dataclasses.replace(valid, scenario="busy", verdict=Verdict.INVALID, reasons=("the load was lower",))
    kept = of_scenarios(json.loads(json_text.render(compose([valid, invalid]))))
    assert [row["scenario"] for row in kept["tables"]["scenarios"]] == [valid.scenario]
    assert "busy: the load was lower" in kept["notes"]
