"""The gate by designs: what is drawn, and that a cell is judged the same again."""

import numpy as np
import pytest

from benchmarks.designs import CALIBRATIONS, DESIGNS, MACHINES, Cell, cells
from benchmarks.scorecard.sample import generator


@pytest.mark.parametrize("design", DESIGNS, ids=lambda each: each.name)
def test_a_design_has_its_starts_and_looks(design):
    base, head, looks = design.blocks()
    assert base.size == head.size == looks[-1].head == (design.most or design.starts * design.per_start)
    assert [look.head for look in looks] == sorted({look.head for look in looks})
    if design.is_interleaved:
        assert not set(base) & set(head)
        assert looks[0].head == design.trials


def test_a_machine_has_the_deviations_that_it_states():
    machine = next(each for each in MACHINES if each.name == "starts and runs differ")
    rng = generator("machine")
    logs = np.log(machine.trials(machine.runs(2000, rng), 5, 4, rng))
    assert logs.std(axis=2, ddof=1).mean() == pytest.approx(machine.trial_sd, rel=0.1)
    assert logs.mean(axis=(1, 2)).std() == pytest.approx((0.04**2 + 0.04**2 / 5) ** 0.5, rel=0.1)


def test_a_cell_is_judged_the_same_again():
    cell = Cell(MACHINES[0], DESIGNS[2], "1 run x 8 x 8", runs=2, seed=1)
    assert cell.judge() == cell.judge()
    assert len(list(cells(1, 1, ""))) == len(MACHINES) * len(DESIGNS) * len(CALIBRATIONS)
