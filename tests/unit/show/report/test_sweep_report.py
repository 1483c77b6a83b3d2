"""A sweep in every format: every cell with its state, and escaping of names."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.sweep import CellState, state_of
from pytest_ldos.show.page.formats import Format, render
from pytest_ldos.show.page.model import Badge, Tone
from pytest_ldos.show.report import sweep as data
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.sweep import (
    compose_page,
    compose_sweep,
    describe_cell,
    metric_table,
    overview,
    render_for,
    render_text,
    require_suffix,
    shown_metrics,
)
from tests.builders.reports import HOSTILE
from tests.builders.representatives import representatives
from tests.builders.sweeps import FLOOD, failed, full_report, grid, measured, results_of, start_of
from tests.oracles import chromium


@pytest.fixture(scope="module")
def full():
    return full_report()


def as_html(report):
    return render(compose_page(report), Format.HTML)


def as_markdown(report):
    return render(compose_page(report), Format.MARKDOWN)


def cell_of(report, *values):
    return next(each for each in report.cells if each.values == values)


def test_states_and_success(full):
    assert [cell.state for cell in full.cells] == [
        *("valid", "valid", "valid", "infra", "skipped", "valid", "invalid", "valid", "valid", "valid", "valid"),
        "not measured",
    ]
    rows = overview(full).rows
    assert rows[0] == ("100", "rmw_one", Badge("valid", Tone.GOOD), "10 of 10", "69 … 100 %", "–")
    assert rows[3][2:4] == (Badge("infra", Tone.BAD), "–")
    assert rows[10][3] == "4 of 10"


def test_medians_and_ratios_are_to_the_first_valid_cell(full):
    first, other = full.cells[0].metrics["T3"], full.cells[2].metrics["T3"]
    assert full.cells[0].is_reference
    assert first.ratio is None
    assert other.ratio == pytest.approx(1.6**2, rel=0.15)
    assert other.ratio_low < 1.6**2 < other.ratio_high
    assert first.low < first.median < first.high


def test_failed_trials_count_as_slower_than_any(full):
    bad = full.cells[10]
    assert bad.successes == 4
    assert bad.metrics["T4"].median is None
    assert bad.metrics["T4"].high is None
    assert bad.metrics["T5"].median is not None
    (row,) = [row for row in tables(full)["T4 total latency"] if row[:2] == ("100000", "rmw_one")]
    assert row[2] == "failed"


def tables(report):
    return {f"{each.name} {each.title}": metric_table(report, each).rows for each in shown_metrics(report)}


def test_reference_other_than_the_first_cell():
    swept = grid()
    names = list(swept.specs)
    records = [
        failed(names[0], CellState.INFRA, "no"),
        *(measured(each, start_of(swept.specs[each])) for each in names[1:]),
    ]
    report = compose_sweep("x", swept.outline, results_of(swept, *records))
    assert [cell.is_reference for cell in report.cells] == [False, True, False, False]
    assert "ratios are to the first valid cell: rate_hz=500, cpus=2" in report.notes


def test_starts_that_differ_widen_the_interval_of_a_ratio():
    def ratio(*factors):
        swept = grid({"dds_flood.rate": [1, 2]}, trials=10)
        one, two = swept.specs
        records = [measured(one, start_of(swept.specs[one], 1))]
        records += [
            measured(two, blocked(start_of(swept.specs[two], seed, factors={"T1": factor}), seed), seed)
            for seed, factor in enumerate(factors)
        ]
        (_, cell) = compose_sweep("x", swept.outline, results_of(swept, *records, starts=3)).cells
        found = cell.metrics["T1"]
        return found.ratio_high - found.ratio_low

    assert ratio(1.0, 1.5, 2.0) > 2 * ratio(1.5, 1.5, 1.5)


def blocked(trials, number):
    return dataclasses.replace(trials, trials=tuple(dataclasses.replace(each, block=number) for each in trials.trials))


def test_a_sweep_without_any_result():
    swept = grid()
    report = compose_sweep("x", swept.outline, results_of(swept))
    assert {cell.state for cell in report.cells} == {"not measured"}
    for made in (as_markdown, as_html, data.render_json, data.render_csv):
        assert made(report)
    assert "not measured" in render_text(report, width=100, color=False)


def test_machines_that_differ_are_named():
    swept = grid()
    records = [measured(name, start_of(spec), host=f"lab{n % 2}") for n, (name, spec) in enumerate(swept.specs.items())]
    report = compose_sweep("x", swept.outline, results_of(swept, *records))
    assert any(note.startswith("measured on 2 machines (lab0, lab1)") for note in report.notes)


def test_terminal_shows_each_cell_untruncated(full):
    shown = render_text(full, width=100, color=False)
    assert "DDS flood: 3990 of 4000 msg/s" in shown
    assert "…  " not in shown.replace(" … ", ""), "no column is cut"
    assert max(len(line) for line in shown.splitlines()) <= 100
    assert "rate_hz=500, rmw=rmw_two: infra: the simulator ended with exit code 1" in shown


def test_trial_with_a_failed_reset_counts_as_failed():
    swept = grid()
    stuck = "the arm could not return home (timed_out)"
    proofs = (FLOOD, {**FLOOD, "kind": "cpu_limit"})
    records = []
    for made, (name, spec) in zip((4, 2, 0), swept.specs.items(), strict=False):
        trials = start_of(spec, loads=proofs)
        if made < 4:
            trials = dataclasses.replace(trials, trials=trials.trials[:made], incomplete=stuck)
        state, reason = state_of(trials, describe_reason)
        records.append(measured(name, trials, state=state, reason=reason))
    report = compose_sweep("x", swept.outline, results_of(swept, *records))
    rows = [(row[2].text, row[3]) for row in overview(report).rows]
    assert rows == [
        ("valid", "4 of 4"), ("broken", "1 of 2"), ("broken", "0 of 1"), ("not measured", "–"),
    ]  # fmt: skip
    reported = describe_cell(report.cells[2], shown_metrics(report))
    assert reported == f"rate_hz=1000, cpus=1: broken: the arm could not go on: {stuck}; 0 of 1 succeeded"
    assert stuck in render_text(report, width=200, color=False)
    assert "✕</span> broken" in as_html(report)


def test_the_line_of_a_cell(full):
    metrics = shown_metrics(full)
    assert re.match(
        r"rate_hz=100, rmw=rmw_one: 10 of 10 succeeded, T1 \S+ ms, T2x ", describe_cell(full.cells[0], metrics)
    )
    assert describe_cell(full.cells[3], metrics).endswith(": infra: the simulator ended with exit code 1")
    assert ": invalid: the simulator ended" in describe_cell(full.cells[6], metrics)


def test_json_has_all_numbers(full):
    document = json.loads(data.render_json(full))
    assert (document["kind"], document["schema"]) == ("pytest-ldos sweep report", 1)
    assert document["axes"][0] == {
        "address": "dds_flood.rate_hz",
        "name": "rate_hz",
        "values": [100.0, 500.0, 1000.0, 5000.0, 20000.0, 100000.0],
        "is_numeric": True,
    }
    assert document["cells"][10]["metrics"]["T4"]["median"] is None
    assert "Infinity" not in data.render_json(full)


def test_csv_has_a_row_for_each_cell_and_metric(full):
    rows = list(csv.DictReader(io.StringIO(data.render_csv(full))))
    assert len([row for row in rows if row["metric"] == "T1"]) == 9
    assert [row["state"] for row in rows if not row["metric"]] == ["infra", "skipped", "not measured"]
    first = rows[0]
    assert (first["dds_flood.rate_hz"], first["stack.ros2.rmw"], first["metric"]) == ("100.0", "rmw_one", "T1")
    assert float(first["low"]) < float(first["median"]) < float(first["high"])


def test_text_in_csv_is_not_a_formula(full):
    report = saying(full, "=cmd|' /C calc'!A0")
    rows = list(csv.DictReader(io.StringIO(data.render_csv(report))))
    assert {row["reason"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    own = dataclasses.replace(report.metrics[0], unit="@SUM(A1)")
    rows = list(csv.DictReader(io.StringIO(data.render_csv(dataclasses.replace(report, metrics=(own,))))))
    assert {row["unit"] for row in rows if row["metric"]} == {"'@SUM(A1)"}


def saying(report, words):
    """A report with other programs' words wherever there may be some."""
    printed = {"label": words, "reasons": (words,), "loads": (words,), "hosts": (words,), "verdict": words or "none"}
    cells = tuple(dataclasses.replace(cell, **printed) for cell in report.cells)
    axes = (report.axes[0], dataclasses.replace(report.axes[1], name=words))
    return dataclasses.replace(report, name=words, stack=words, notes=(words,), cells=cells, axes=axes)


@pytest.fixture(scope="module")
def small(full):
    """A metric alone: each is drawn."""
    return dataclasses.replace(full, metrics=full.metrics[:1])


@pytest.mark.parametrize("words", representatives([each for each in HOSTILE if each], 5))
def test_foreign_text_is_escaped(small, words):
    hostile, plain = saying(small, words), saying(small, "words")
    assert shape(as_html(hostile), r"<[^>]*>") == shape(as_html(plain), r"<[^>]*>")
    assert len(list(csv.reader(io.StringIO(data.render_csv(hostile))))) == len(
        list(csv.reader(io.StringIO(data.render_csv(plain))))
    )
    assert json.loads(data.render_json(hostile))["name"] == words
    for shown in (render_text(hostile, width=120, color=False), as_markdown(hostile)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066]", shown)
    assert as_markdown(hostile).count("\n| ") == as_markdown(plain).count("\n| ")
    assert "<script" not in as_markdown(hostile)


def shape(rendered, pattern):
    """Elements with their names and attributes' names alone: values hold words."""
    return [re.sub(r'="[^"]*"', "", tag) for tag in re.findall(pattern, rendered)]


def test_format_follows_the_file_name(tmp_path, full):
    for suffix in (".html", ".md", ".json", ".csv"):
        require_suffix(tmp_path / f"x{suffix}")
        assert render_for(full, tmp_path / f"x{suffix}")
    for bad in (tmp_path / "x.pdf", tmp_path / "x", tmp_path / "none" / "x.md"):
        with pytest.raises(ConfigurationError):
            require_suffix(bad)


# --- plots -----------------------------------------------------------------------------


def test_each_cell_is_drawn_and_lines_break_at_invalid_ones(full):
    rendered = as_html(full)
    figure = re.search(r'aria-label="T1 planning latency">.*?</figure>', rendered, re.DOTALL)[0]
    dots = marks_of(figure, "dot")
    assert len(dots) == 6
    assert len(marks_of(figure, "dot hollow")) == 1, "the invalid cell's median is drawn, and crossed out"
    assert len(marks_of(figure, "unfit")) == 6
    ways = [path.count("L") + 1 for path in re.findall(r'<g class="dot way"[^>]*><path d="([^"]*)"', figure)]
    assert ways == [2, 2], "100 to 500 Hz with one middleware, 1000 to 5000 Hz with the other"


def marks_of(figure, kind):
    """The tips of all marks of a class."""
    groups = re.findall(rf'<g class="{kind}"[^>]*>(.*?)</g>', figure)
    return [tip for group in groups for tip in re.findall("<title>(.*?)</title>", group)]


def test_additional_axes_become_separate_plots():
    report = full_report(over={"dds_flood.rate": [1, 2], "cpu_limit.cpus": [1, 2], "trials": [8, 9, 10]})
    figure = re.search(r'aria-label="T1 planning latency">.*?</figure>', as_html(report), re.DOTALL)[0]
    assert figure.count("<svg") == 3
    assert "trials=9" in figure


@pytest.mark.skipif(chromium.PROGRAM is None, reason=chromium.REASON)
@pytest.mark.parametrize(
    ("width", "dark"),
    [(1280, False), pytest.param(380, True, marks=pytest.mark.acceptance)],
    ids=["wide, light", "narrow, dark"],
)
def test_page_works_in_a_browser(full, tmp_path, width, dark):
    probe = (
        f'{{"overflow": {chromium.OVERFLOW}, "contrasts": {chromium.CONTRASTS}, '
        f'"unreachable": {chromium.HIDDEN_OVERFLOW}, "focused": {chromium.FOCUSED}}}'
    )
    opened = as_html(full).replace("<details>", "<details open>")
    seen = chromium.look_at(opened, tmp_path, width=width, dark=dark, script=probe)
    assert seen.console == []
    assert seen.result["overflow"] <= 0
    assert seen.result["unreachable"] == []
    assert all(seen.result["focused"])
    assert {name: ratio for name, ratio in seen.result["contrasts"].items() if ratio < 4.5} == {}


def test_load_numbers_are_drawn_if_cells_have_them():
    swept = grid({"dds_flood.rate": [100, 1000]}, trials=4)
    records = []
    for name, spec in swept.specs.items():
        proof = {"kind": "dds_flood", "seconds": 5.0, "shortfall": "", "summary": "flood"}
        proofs = ({**proof, "rate_hz": spec.load("dds_flood").rate_hz / 2},)
        records.append(measured(name, start_of(spec, loads=proofs)))
    report = compose_sweep("flooded", swept.outline, results_of(swept, *records))
    assert [cell.load_numbers for cell in report.cells] == [{"dds_flood.rate_hz": 50}, {"dds_flood.rate_hz": 500}]
    assert "messages sent, all publishers" in as_html(report)
    assert "messages sent" not in as_html(full_report())
