"""Timeliness of a topic's messages at their subscriptions, relative to their period.

With period p a message is *too late* above min(p, 50 ms) from publication to reception,
*late* above min(0.2 p, 5 ms), otherwise *on time*. It is *lost* if a subscription that took later
messages of its publisher never took it. Messages sent within a process and messages given to the
middleware are counted separately: a message that goes both ways counts as published twice.
Definitions of iRobot's topology benchmark.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph

_TOO_LATE_NS: Final = 50_000_000
_LATE_NS: Final = 5_000_000
_LATE_SHARE: Final = 0.2


def classify_receptions(flow: FlowGraph) -> pl.DataFrame:
    """One row per publisher and subscription between which messages passed.

    Columns: `topic`, `publisher`, `subscription`, `period_ns` (median time between the publisher's
    messages), `on_time`, `late`, `too_late`, `lost` (numbers of messages).
    """
    model = flow.model
    sent = _sent(model)
    periods = sent.group_by("publisher", "intra").agg(period_ns=pl.col("time_ns").diff().median().cast(pl.Int64))
    got = flow.transport.join(model.takes.select("subscription", "intra", take="id"), on="take")
    got = got.join(sent, on=["publication", "intra"])
    limit = got.join(periods, on=["publisher", "intra"]).with_columns(
        too_late=pl.min_horizontal("period_ns", pl.lit(_TOO_LATE_NS)),
        late=pl.min_horizontal(pl.col("period_ns") * _LATE_SHARE, pl.lit(_LATE_NS)),
    )
    too_late = pl.col("latency_ns") > pl.col("too_late")
    late = ~too_late & (pl.col("latency_ns") > pl.col("late"))
    pairs = limit.group_by("publisher", "subscription", "intra").agg(
        pl.col("period_ns").first(),
        on_time=(~too_late & ~late).sum(),
        late=late.sum(),
        too_late=too_late.sum(),
        first=pl.col("publication").min(),
        last=pl.col("publication").max(),
        taken=pl.col("publication").n_unique(),
    )
    return (
        _with_lost(pairs, sent)
        .join(model.publishers.select("topic", publisher="id"), on="publisher")
        .select("topic", "publisher", "subscription", "period_ns", "on_time", "late", "too_late", "lost")
        .sort("topic", "publisher", "subscription")
    )


def _sent(model: ExecutionModel) -> pl.DataFrame:
    """Messages published each way: `intra` inside the process, the others through the middleware."""
    table = model.publications.select("publisher", "intra", "time_ns", "intra_ns", publication="id")
    through = table.filter(~pl.col("intra")).with_columns(intra=pl.lit(value=False))
    within = table.filter(pl.col("intra_ns").is_not_null()).with_columns(intra=pl.lit(value=True), time_ns="intra_ns")
    return pl.concat([through, within]).drop("intra_ns")


def _with_lost(pairs: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Adds the number of messages between the first and the last taken that were not taken."""
    within = pairs.select("publisher", "subscription", "intra", "first", "last").join(sent, on=["publisher", "intra"])
    between = pl.col("publication").is_between(pl.col("first"), pl.col("last"))
    due = within.group_by("publisher", "subscription", "intra").agg(due_between=between.sum())
    return pairs.join(due, on=["publisher", "subscription", "intra"]).with_columns(
        lost=pl.col("due_between").cast(pl.Int64) - pl.col("taken").cast(pl.Int64)
    )
