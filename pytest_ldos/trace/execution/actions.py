"""Action servers and clients, identified by the names of their services.

An action has no events of its own in ROS 2 Jazzy; its services and topics are named
``ACTION/_action/…``.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.schema import ENTITIES

SEND_GOAL: Final = "/_action/send_goal"


def build_actions(services: pl.DataFrame, clients: pl.DataFrame) -> pl.DataFrame:
    """One row per action server or client.

    Args:
        services, clients: tables of the model.
    """
    found = [
        (row["node"], role, row["name"].removesuffix(SEND_GOAL))
        for role, table in (("server", services), ("client", clients))
        for row in table.filter(pl.col("name").str.ends_with(SEND_GOAL)).iter_rows(named=True)
    ]
    columns = {key: [row[at] for row in found] for at, key in enumerate(("node", "role", "name"))}
    return frame_of(ENTITIES["actions"], columns)
