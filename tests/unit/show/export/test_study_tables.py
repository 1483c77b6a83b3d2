"""Tables of a study as Parquet."""

from __future__ import annotations

import polars as pl
import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.series import Missing
from pytest_ldos.instruments.study import Round
from pytest_ldos.show.export.parquet import write_study_tables
from tests.builders.studies import study


def test_each_table_is_a_file_with_units_in_its_columns(tmp_path):
    files = write_study_tables(study(), tmp_path / "tables")
    assert {file.name for file in files} == {"rounds_seen.parquet", "rounds.parquet"}
    seen = pl.read_parquet(tmp_path / "tables" / "rounds_seen.parquet")
    assert seen.columns == ["case", "round", "p50_us", "lost"]
    assert seen["p50_us"].to_list() == [10.0, 11.0, 12.0]


def test_every_round_and_quantity_has_a_row_with_a_number_or_a_reason(tmp_path):
    rounds = (
        Round(case="a", block=0, values={"half_p50": 5.0, "rate": Missing("nothing arrived")}),
        Round(case="a", block=1, failure="no peer answered"),
    )
    write_study_tables(study(rounds=rounds), tmp_path)
    found = pl.read_parquet(tmp_path / "rounds.parquet").rows()
    assert found == [
        (0, "a", 0, "half_p50", "µs", 5.0, ""),
        (0, "a", 0, "rate", "Hz", None, "nothing arrived"),
        (1, "a", 1, "half_p50", "µs", None, "no peer answered"),
        (1, "a", 1, "rate", "Hz", None, "no peer answered"),
    ]


def test_unwritable_folder_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written") as caught:
        write_study_tables(study(), tmp_path / "file")
    assert caught.value.remedy
