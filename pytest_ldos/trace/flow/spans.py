"""Numbers of messages and their rates, taken where all processes that send or receive them are whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, TimesNs
from pytest_ldos.trace.execution.coverage import Coverage
from pytest_ldos.trace.execution.mapped import chunks

_NS_PER_S: Final = 1e9


def rates_of(group: IdArray, times_ns: TimesNs, coverage: Coverage, processes: Sequence[Iterable[int]]) -> pl.DataFrame:
    """One row for each group that has messages.

    Args:
        group: of each message, -1 for messages that are left out.
        processes: of each group, those that must be whole.

    Columns: `group`, `messages` (all of them), `rate_hz` (from the first to the last message of each stretch in which
    the processes are whole; null without two messages in one).
    """
    partial = [number for number, each in enumerate(processes) if coverage.spans(each)]
    found = pl.DataFrame(schema=_SCHEMA)
    for part in chunks(len(group)):
        own, own_ns = group[part], times_ns[part]
        stretch = np.zeros(len(own), dtype=np.int32)
        for number in partial:
            chosen = own == number
            stretch[chosen] = coverage.stretches(processes[number], own_ns[chosen])
        some = pl.DataFrame({"group": own, "stretch": stretch, "time_ns": own_ns}).filter(pl.col("group") >= 0)
        counted = some.group_by("group", "stretch").agg(
            count=pl.len(), first_ns=pl.col("time_ns").min(), last_ns=pl.col("time_ns").max()
        )
        both = pl.concat([found, counted.cast(_SCHEMA)]).group_by("group", "stretch")
        found = both.agg(pl.col("count").sum(), pl.col("first_ns").min(), pl.col("last_ns").max())
    is_whole = pl.col("stretch") >= 0
    seconds = (pl.col("last_ns") - pl.col("first_ns")).filter(is_whole).sum() / _NS_PER_S
    steps = (pl.col("count") - 1).filter(is_whole).sum()
    rated = found.group_by("group").agg(
        messages=pl.col("count").sum(), rate_hz=pl.when(seconds > 0).then(steps / seconds)
    )
    return rated.sort("group")


_SCHEMA: Final = pl.Schema(
    {"group": pl.Int32(), "stretch": pl.Int32(), "count": pl.Int64(), "first_ns": pl.Int64(), "last_ns": pl.Int64()}
)
