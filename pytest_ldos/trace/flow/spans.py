"""Number of messages of each publisher or subscription, and when the first and the last one passed."""

from __future__ import annotations

import polars as pl

from pytest_ldos.trace.execution.columns import rows_of
from pytest_ldos.trace.execution.mapped import chunks


def spans_of(instances: pl.DataFrame, end: str) -> pl.DataFrame:
    """One row for each publisher or subscription that has messages.

    Args:
        instances: publications or takes; time column `time_ns`.
        end: column of the publisher or subscription.

    Columns: `id`, `count`, `first_ns`, `last_ns`.
    """
    found = pl.DataFrame(schema={"id": pl.Int32, "count": pl.UInt32, "first_ns": pl.Int64, "last_ns": pl.Int64})
    for part in chunks(len(instances)):
        some = rows_of(instances, part).select("time_ns", id=end).drop_nulls("id")
        own = some.group_by("id").agg(count=pl.len(), first_ns=pl.col("time_ns").min(), last_ns=pl.col("time_ns").max())
        both = pl.concat([found, own]).group_by("id")
        found = both.agg(pl.col("count").sum(), pl.col("first_ns").min(), pl.col("last_ns").max())
    return found.sort("id")
