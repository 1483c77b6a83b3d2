"""A model as Parquet files, for any tool that reads tables."""

from __future__ import annotations

from pathlib import Path

from pytest_ldos.show.export.replaced import replaced
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.store import MANIFEST, write_model


def is_model_directory(directory: Path) -> bool:
    """True if all files in the directory were written by `write_parquet`, so that it can be replaced."""
    names = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    return MANIFEST in names and all(name == MANIFEST or name.endswith(".parquet") for name in names)


def write_parquet(model: ExecutionModel, directory: Path) -> None:
    """Writes ``TABLE.parquet`` for each table, and ``model.json``; `read_model` reads them back.

    All files appear at once: after an error the files written so far are discarded. An existing
    model is replaced.

    Raises:
        OSError: the directory cannot be written, or holds something else.
    """
    with replaced(directory, is_ours=is_model_directory) as fresh:
        write_model(model, fresh, target=directory)
