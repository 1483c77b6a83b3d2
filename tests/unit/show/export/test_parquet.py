"""A model as Parquet files."""

from __future__ import annotations

import errno

import pytest

from pytest_ldos.base.errors import NotWritten
from pytest_ldos.show.export import parquet
from pytest_ldos.show.export.parquet import is_model_directory, write_parquet
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import read_model
from tests.builders.models import empty_model


@pytest.fixture
def model(golden):
    return build_execution(read_trace(golden("talker_listener")))


def test_the_tables_are_read_back(model, tmp_path):
    write_parquet(model, tmp_path / "deep/tables")
    found = read_model(tmp_path / "deep/tables")
    for name, frame in model.frames().items():
        assert getattr(found, name).equals(frame), name
    assert is_model_directory(tmp_path / "deep/tables")


def test_existing_model_is_replaced(model, tmp_path):
    write_parquet(model, tmp_path / "tables")
    write_parquet(empty_model(), tmp_path / "tables")
    assert len(read_model(tmp_path / "tables").publications) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_other_content_stays(model, tmp_path):
    write_parquet(model, tmp_path / "tables")
    (tmp_path / "tables/notes.txt").write_text("mine")
    assert not is_model_directory(tmp_path / "tables")
    with pytest.raises(OSError, match="not empty"):
        write_parquet(empty_model(), tmp_path / "tables")
    assert (tmp_path / "tables/notes.txt").read_text() == "mine"


def test_a_failure_leaves_nothing_behind(model, tmp_path, monkeypatch):
    def fail(model, directory, *, target):
        directory.mkdir()
        (directory / "hosts.parquet").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "write_model", fail)
    with pytest.raises(OSError, match="No space left"):
        write_parquet(model, tmp_path / "tables")
    assert list(tmp_path.iterdir()) == []


def test_error_names_the_requested_folder(model, tmp_path, monkeypatch):
    def fail(frame, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pytest_ldos.trace.execution.model.write_table", fail)
    with pytest.raises(NotWritten) as raised:
        write_parquet(model, tmp_path / "tables")
    assert raised.value.message == f"{tmp_path / 'tables'} cannot be written: No space left on device"
