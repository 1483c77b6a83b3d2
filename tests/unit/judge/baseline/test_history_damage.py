"""Files of a history of which bytes changed: none ends the program, and none gives other numbers."""

from __future__ import annotations

import random

import polars as pl
import pytest

from pytest_ldos.judge.baseline.history import HistoryStore
from tests.builders.command_line import run_ldos
from tests.builders.history import add_run

BITS = 80


@pytest.fixture
def history(tmp_path) -> HistoryStore:
    return HistoryStore(tmp_path / "history")


def test_every_flipped_bit_is_detected_or_harmless(history):
    """Polars aborts the process on some of them, panics on others, and reads other numbers on most."""
    add_run(history, 0)
    add_run(history, 1)
    path, _ = sorted(history.directory.rglob("*.parquet"))
    content, whole = path.read_bytes(), history.read().table
    chance, noticed = random.Random(1), 0
    for _ in range(BITS):
        place = chance.randrange(len(content))
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :])
        read = history.read()
        if read.damaged:
            assert [each.path for each in read.damaged] == [path]
            assert len(set(read.table["trials"])) == 1
            noticed += 1
        else:
            assert read.table.equals(whole), place  # the seal's own name
    assert noticed > 0.9 * BITS
    path.write_bytes(content)
    assert history.read().damaged == ()


def test_a_file_without_a_seal_and_without_a_column_is_named(history):
    """As an earlier version, or another program, may have left it."""
    add_run(history, 0)
    add_run(history, 1)
    path, _ = sorted(history.directory.rglob("*.parquet"))
    metadata = {"pytest-ldos history": "1", "pytest-ldos trial sets": "x"}
    pl.read_parquet(path).drop("status").write_parquet(path, metadata=metadata)
    (damaged,) = history.read().damaged
    assert str(damaged) == (
        f"{path} is damaged and left out: its columns are not those of a history (take it from a copy, or delete it)"
    )


def test_the_command_names_a_damaged_file_and_shows_the_rest(history):
    add_run(history, 0)
    add_run(history, 1)
    path, _ = sorted(history.directory.rglob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 64
    path.write_bytes(bytes(content))
    done = run_ldos("history", "--dir", history.directory)
    assert done.returncode == 0, done.stderr
    assert f"{path.name} is damaged and left out: its content is not what was written" in done.stderr
    assert "Traceback" not in done.stderr
