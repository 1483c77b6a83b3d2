"""Parquet files with a digest, which detects damage before reading: Polars crashes or panics on corrupt bytes."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import polars as pl

from pytest_ldos.base.text import one_line

FAULTS: Final = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""Polars' exceptions for damaged files without a seal."""

_SEAL: Final = "pytest-ldos seal"
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")
_OPEN: Final = "0" * 64
_SEALED: Final = re.compile(rb"pytest-ldos seal\x18@([0-9a-f]{64})")
"""Key and value in Parquet's footer (Thrift's compact protocol): a digest of the file with a blank seal."""


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Writes a Parquet file; raises `OSError` also for Polars' own exceptions."""
    try:
        frame.write_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        number = _OS_ERROR.search(str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from None


def sealed(frame: pl.DataFrame, metadata: Mapping[str, str]) -> bytes:
    """A Parquet file of a table; its metadata has the given entries and a digest of the whole file."""
    file = io.BytesIO()
    frame.write_parquet(file, metadata={**metadata, _SEAL: _OPEN})
    content = file.getvalue()
    found = _SEALED.search(content)
    assert found is not None
    return _with_seal(content, found, hashlib.sha256(content).hexdigest().encode())


def read_whole(path: Path) -> io.BytesIO:
    """Reads a file with a valid seal, or without one (of an earlier version); `ValueError` if it is damaged."""
    content = path.read_bytes()
    found = _SEALED.search(content)
    if found is not None:
        opened = _with_seal(content, found, _OPEN.encode())
        if hashlib.sha256(opened).hexdigest().encode() != found[1]:
            raise ValueError("its content is not what was written")
    elif len(content) < len(b"PAR1....PAR1") or not (content.startswith(b"PAR1") and content.endswith(b"PAR1")):
        raise ValueError("it is cut short, or no Parquet file")
    return io.BytesIO(content)


def _with_seal(content: bytes, found: re.Match[bytes], seal: bytes) -> bytes:
    return content[: found.start(1)] + seal + content[found.end(1) :]


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason_of(fault: BaseException) -> str:
    """The first line of Polars' message about a damaged file, or the exception's type."""
    return one_line(next(iter(str(fault).splitlines()), type(fault).__name__))
