"""The message-flow graph: causal links between publications, takes and callback runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_ldos.trace.execution.model import ExecutionModel

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class FlowGraph:
    """Links between the instances of a model; columns: `flow.schema`.

    Attributes:
        without_partner: number of publications and receptions without a transport link, by cause.
    """

    model: ExecutionModel
    transport: pl.DataFrame
    triggers: pl.DataFrame
    causes: pl.DataFrame
    uses: pl.DataFrame
    calls: pl.DataFrame
    without_partner: Mapping[str, int]

    @cached_property
    def hops(self) -> pl.DataFrame:
        """Links from each publication to the publications made from it."""
        sent = self.transport.select("take", from_publication="publication")
        joined = self.uses.join(sent, on="take", maintain_order="left")
        return joined.select("from_publication", "take", to_publication="publication", rule="rule")
