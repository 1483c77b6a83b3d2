"""Builds the message-flow graph of an execution model."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.calls import link_calls
from pytest_ldos.trace.flow.causal import Runs, link_causes, link_direct_uses, link_triggers
from pytest_ldos.trace.flow.declare import declared_in
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.indirect import annotated, link_indirect
from pytest_ldos.trace.flow.transport import count_without_partner, link_transport


def build_flow(model: ExecutionModel, paths: Sequence[PathSpec] = ()) -> FlowGraph:
    """Links every publication to its receptions and to the publications made from them.

    Args:
        paths: their `links` declare indirect causes, in addition to those annotated by the application.

    Raises:
        ConfigurationError: a declared link names a topic that its node does not have.
    """
    runs = Runs(model)
    transport = link_transport(model)
    triggers = link_triggers(model, runs)
    causes = link_causes(model, runs)
    direct = link_direct_uses(model, triggers, causes)
    declared = annotated(model) + declared_in(paths, model)
    if declared:
        both = pl.concat([direct, link_indirect(model, triggers, causes, declared)])
        uses = both.unique(["take", "publication"], keep="first", maintain_order=True)
    else:
        uses = direct
    return FlowGraph(
        model=model,
        transport=transport,
        triggers=triggers,
        causes=causes,
        calls=link_calls(model, runs),
        uses=uses,
        without_partner=count_without_partner(model, transport),
    )
