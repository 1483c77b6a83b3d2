"""Storage of models on disk."""

from __future__ import annotations

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import MANIFEST, SCHEMA_VERSION, read_model, write_model


@pytest.fixture(scope="module")
def model(golden):
    return build_execution(read_trace(golden("discarded")))


@pytest.mark.parametrize("name", ["discarded", "pipeline_single_links", "lifecycle", "late_start"])
def test_model_round_trip(golden, tmp_path, name):
    model = build_execution(read_trace(golden(name)))
    write_model(model, tmp_path / "model")
    again = read_model(tmp_path / "model")
    for table, frame in model.frames().items():
        assert_frame_equal(again.frames()[table], frame)
    assert (again.stats, again.unknown, again.unpaired) == (model.stats, model.unknown, model.unpaired)


def test_folder_without_model_is_refused(tmp_path):
    with pytest.raises(RecordUnreadable, match=r"no complete model.*\n.*ldos analyze"):
        read_model(tmp_path)


def test_other_schema_is_refused(model, tmp_path):
    write_model(model, tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(manifest | {"schema_version": 99}))
    with pytest.raises(RecordUnreadable, match=f"has schema version 99, this version reads {SCHEMA_VERSION}"):
        read_model(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PAR1 and no more"])
def test_a_damaged_table_is_named(model, tmp_path, damage):
    write_model(model, tmp_path)
    (tmp_path / "takes.parquet").write_bytes(damage)
    with pytest.raises(RecordUnreadable, match=r"takes\.parquet"):
        read_model(tmp_path)


def test_invalid_manifest_is_refused(model, tmp_path):
    write_model(model, tmp_path)
    (tmp_path / MANIFEST).write_text("[1, 2")
    with pytest.raises(RecordUnreadable, match=MANIFEST):
        read_model(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        {"sha256": 1},
        {"sha256": ["takes"]},
        {"stats": None},
        {"stats": {"streams": [3]}},
        {"stats": {"streams": [], "linked_files": [3]}},
        {"unknown": 4},
    ],
)
def test_manifest_of_another_kind_is_refused(model, tmp_path, damage):
    write_model(model, tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(manifest | damage))
    with pytest.raises(RecordUnreadable, match=rf"{MANIFEST}: is damaged"):
        read_model(tmp_path)


def test_truncated_manifest_is_refused(model, tmp_path):
    write_model(model, tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({"schema_version": manifest["schema_version"]}))
    with pytest.raises(RecordUnreadable, match="is damaged: KeyError 'stats'"):
        read_model(tmp_path)


def test_error_without_message_shows_its_type(model, tmp_path, monkeypatch):
    def panic(path):
        raise pl.exceptions.ComputeError

    write_model(model, tmp_path)
    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(RecordUnreadable, match=r"\.parquet: ComputeError"):
        read_model(tmp_path)
