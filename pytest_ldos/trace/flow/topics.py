"""Numbers for topics, and topics whose messages cannot be linked."""

from __future__ import annotations

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, ids_of, pick, rows_of
from pytest_ldos.trace.execution.mapped import chunks
from pytest_ldos.trace.execution.model import ExecutionModel


def number_topics(model: ExecutionModel) -> dict[str, int]:
    """Number of each topic."""
    return {topic: number for number, topic in enumerate(model.topics())}


def topics_of(instances: pl.DataFrame, end: str, ends: pl.DataFrame, numbers: dict[str, int]) -> IdArray:
    """Topic number of each publication or take, -1 where it is unknown.

    Args:
        end: the column that refers to `ends`, which are publishers or subscriptions.
    """
    of_end = np.array([numbers.get(topic, -1) for topic in ends["topic"]], dtype=np.int32)
    return pick(of_end, ids_of(instances, end), -1)


def unlinked_topics(model: ExecutionModel) -> dict[str | None, int]:
    """Number of receptions by topic, of topics on which messages cannot be linked with their receptions.

    Some of their publications or takes have no stamp of the middleware, since an event is missing.
    """
    if not model.missing_events:
        return {}
    sent = _unstamped(model.publications, "publisher", model.publishers)
    taken = _unstamped(model.takes, "subscription", model.subscriptions)
    subscription, count = ids_of(model.takes, "subscription"), len(model.subscriptions)
    takes = np.zeros(count + 1, dtype=np.int64)  # those of no known subscription first
    for part in chunks(len(subscription)):
        takes += np.bincount(subscription[part] + 1, minlength=count + 1)
    ends = model.subscriptions.select("topic", takes=pl.Series(takes[1:]))
    received = dict(ends.group_by("topic").agg(pl.col("takes").sum()).iter_rows())
    return {topic: received.get(topic, 0) for topic in {*sent, *taken}}


def _unstamped(instances: pl.DataFrame, end: str, ends: pl.DataFrame) -> list[str | None]:
    """Topics of publications or takes without a stamp; those inside a process are linked by their buffers."""
    buffered = pl.col("buffer") != 0 if "buffer" in instances.columns else pl.col("intra")
    is_unstamped = pl.col("source_ns").is_null() & ~(pl.col("intra") & buffered)
    parts = (rows_of(instances, part) for part in chunks(len(instances)))
    own: set[int] = set().union(*(part.filter(is_unstamped)[end].unique() for part in parts))
    return ends.filter(pl.col("id").is_in(list(own)))["topic"].unique().to_list()
