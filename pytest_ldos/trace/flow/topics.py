"""Numbers for topics."""

from __future__ import annotations

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, ids_of, pick
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
