"""Both graphs run, and no message is lost where nothing else runs."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.ldos_topology(file=str(FOLDER / "sierra_nevada.json"), seconds=3.0, rounds=1)
def test_sierra_nevada(ldos_study):
    assert received_of(ldos_study) > 2500


@pytest.mark.ldos_topology(file=str(FOLDER / "mont_blanc.json"), seconds=3.0, rounds=1)
def test_mont_blanc(ldos_study):
    assert received_of(ldos_study) > 3000


def received_of(ldos_study):
    (table,) = (each for each in ldos_study.study.tables if each.name == "latency_total")
    return table.rows[0][[column.name for column in table.columns].index("received")]
