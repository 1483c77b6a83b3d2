"""The grid of a sweep, and the order of its cells."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.cells import LARGEST_GRID, Axis, at_cell, running_order, show_value, unlike, value_at
from pytest_ldos.measure.trial.artifacts import new_scenario_folder
from pytest_ldos.scenario.loads import CpuLimitSpec, DdsFloodSpec
from tests.builders.sweeps import grid


def test_every_combination_is_a_cell():
    swept = grid()
    assert [cell.label for cell in swept.outline.cells] == [
        "rate_hz=500, cpus=1",
        "rate_hz=500, cpus=2",
        "rate_hz=1000, cpus=1",
        "rate_hz=1000, cpus=2",
    ]
    last = swept.specs["msg_load@dds_flood.rate_hz=1000,cpu_limit.cpus=2"]
    assert last.loads == (CpuLimitSpec(cpus=2), DdsFloodSpec(rate_hz=1000))
    assert last.name == list(swept.specs)[-1]


def test_settings_with_equal_names_are_shown_by_address():
    swept = grid({"cpu_load.workers": [1, 2], "cache_load.workers": [3]})
    assert swept.outline.names == ("cpu_load.workers", "cache_load.workers")
    assert swept.outline.cells[0].label == "cpu_load.workers=1, cache_load.workers=3"


def test_settings_of_all_loads_apply_to_added_loads():
    swept = grid({"load.group": ["own"], "dds_flood.rate": [500]})
    (spec,) = swept.specs.values()
    assert spec.loads[0].group == "own"


def test_equal_values_have_the_same_name():
    typed, text = grid({"dds_flood.rate": [500, 2000]}), grid({"dds_flood.rate_hz": ["500.0", "2kHz"]})
    assert typed.specs == text.specs


def test_names_are_valid_file_names(tmp_path):
    values = ["a/b", "../x", "α", "x" * 200, "x" * 201, "a b", "a_b"]
    names = list(grid({"goals": values}).specs)
    assert len(set(names)) == len(values)
    assert all(re.fullmatch(r"[A-Za-z0-9_.+@,=-]{1,120}", name) for name in names)
    assert all(new_scenario_folder(tmp_path, name).path.parent == tmp_path for name in names)


def test_long_name_is_shortened_and_unique():
    over = {each: ["y" * 39, "z" * 39] for each in ("goals", "stack.goals", "stack.group", "stack.base_frame")}
    names = list(grid(over).specs)
    assert len(set(names)) == 16
    assert max(map(len, names)) < 200


@pytest.mark.parametrize(
    ("over", "message", "remedy"),
    [
        ({"dds_flood.rate": []}, "no values", "dds_flood.rate=1,2,3"),
        ({"dds_flood.rate": "500"}, "swept over '500'", "a list of values"),
        ({"dds_flood.rate": 500}, "swept over 500", "a list of values"),
        ({"dds_flood.rat": [1]}, "unknown address", "dds_flood.rate"),
        ({"dds_flood.rate": [1, 2], "dds_flood.rate_hz": [3]}, "dds_flood.rate_hz is swept twice", "one axis"),
        ({"dds_flood.rate": [1, "1Hz"]}, "is there twice", "each value once"),
        ({"dds_flood.rate": [1, -1]}, "dds_flood.rate_hz=-1", ""),
        ({"trials": [5, 50]}, "max_trials is 8, less than", ""),
        ({"dds_flood.rate": range(1, 41), "trials": range(1, 42)}, "40 × 41 = 1640 cells would take about", "fewer"),
    ],
)
def test_invalid_grids_are_refused(over, message, remedy):
    with pytest.raises(ConfigurationError) as caught:
        _ = grid(over, max_trials=8).specs
    assert message in str(caught.value)
    assert remedy in caught.value.remedy


def test_grid_without_axes():
    with pytest.raises(ConfigurationError, match="needs an axis"):
        type(grid())(base=grid().base, axes=())


def test_order_is_deterministic_and_has_each_cell_once_per_round():
    swept = grid({"dds_flood.rate": range(1, 8), "cpu_limit.cpus": [1, 2, 3]})
    order = running_order(swept, 3)
    assert order == running_order(grid({"dds_flood.rate": range(1, 8), "cpu_limit.cpus": [1, 2, 3]}), 3)
    for number in range(3):
        names = [name for name, start in order if start == number]
        assert sorted(names) == sorted(swept.specs)
    assert [start for _, start in order] == sorted(start for _, start in order)


def test_mean_time_of_cells_is_equal_over_two_rounds():
    swept = grid({"dds_flood.rate": range(1, 8)})
    moments = {name: [] for name in swept.specs}
    for moment, (name, _) in enumerate(running_order(swept, 2)):
        moments[name].append(moment)
    assert {sum(each) for each in moments.values()} == {13}


@pytest.mark.parametrize("values", [4, 5, 6, 9, 20])
def test_drift_does_not_look_like_an_effect(values):
    """The slope of a linear drift over the axis is nearly zero; in the grid's order it would be one."""
    swept = grid({"dds_flood.rate": range(1, values + 1), "cpu_limit.cpus": [1, 2]})
    drift = {name: moment for moment, (name, _) in enumerate(running_order(swept, 1))}
    for address in swept.outline.addresses:
        assert abs(slope([(value_at(spec, address), drift[name]) for name, spec in swept.specs.items()])) < 0.15
    in_order = {name: moment for moment, name in enumerate(swept.specs)}
    assert slope([(value_at(spec, "dds_flood.rate"), in_order[name]) for name, spec in swept.specs.items()]) > 0.9


def slope(pairs):
    """Correlation of two columns."""
    import numpy as np

    return float(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])


def test_largest_grid_is_ordered_quickly():
    swept = grid({"dds_flood.rate": range(1, LARGEST_GRID + 1)})
    order = [name for name, _ in running_order(swept, 1)]
    assert len(order) == LARGEST_GRID
    assert [a for a, b in pairwise(order) if a == b] == []


def test_different_settings_of_a_test_are_found():
    base = grid().base
    cell = {"dds_flood.rate_hz": 500.0, "trials": 4}
    assert unlike(at_cell(base, cell), cell) == []
    assert unlike(base, cell) == ["dds_flood.rate_hz"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(500.0, "500"), (0.5, "0.5"), (True, "yes"), (False, "no"), ("a", "a"), (None, "None"), (7, "7")],
)
def test_values_are_shown_shortly(value, text):
    assert show_value(value) == text


def test_axis_has_the_full_address():
    assert Axis.of("dds_flood.rate", (1, 2)) == Axis("dds_flood.rate_hz", (1, 2))
