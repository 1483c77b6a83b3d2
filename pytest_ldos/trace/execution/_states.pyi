from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Rows: TypeAlias = npt.NDArray[np.int32]
_Calls: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.uint64]]

def build(
    *,
    switches: dict[str, Any],
    moves: list[tuple[int, dict[str, Any]]],
    host_of_trace: list[int],
    losses: list[list[tuple[int, int]]],
) -> dict[str, Any]: ...
def pair(starts: _Calls, ends: _Calls, *, lossy: bool) -> tuple[_Rows, _Rows, _Rows]: ...
def distinct(columns: Sequence[npt.NDArray[Any]]) -> tuple[_Rows, _Rows]: ...
def order(
    thread: npt.NDArray[Any], since_ns: npt.NDArray[np.int64], *, bits: int
) -> tuple[npt.NDArray[np.int64], _Rows]: ...
def near(
    keys: npt.NDArray[np.int64],
    rows: npt.NDArray[Any],
    others: npt.NDArray[np.int64],
    places: npt.NDArray[Any] | None,
    *,
    bits: int,
    above: bool,
    shift: int,
) -> _Rows: ...
def trim() -> None: ...
