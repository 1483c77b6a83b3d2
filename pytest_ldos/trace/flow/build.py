"""Builds the message-flow graph of an execution model, and finds its service calls.

ROS 2 Jazzy traces no transport of services; later distributions do. A call is identified by the
sequence number from its client and by the client's gid. Only the server reports the gid, so a gid
is assigned to the client whose requests match it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.trace.execution.columns import NEVER, IdArray, ids_of, pick, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.causal import (
    Runs,
    annotated,
    declared_in,
    link_causes,
    link_direct_uses,
    link_indirect,
    link_triggers,
)
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.transport import count_without_partner, link_transport

_COLUMNS: Final = ("name", "sequence", "send_request", "take_request", "callback_run", "send_response", "take_response")


def link_calls(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links the steps of each service call; one row per request that a client sent.

    Columns: `name` of the service, `sequence`, and the steps of the call as ids of `requests`, null if
    a step is not in the trace; `callback_run` is the run that gave the response.

    Tracepoints: ``rmw_send_request``, ``rmw_take_request``, ``rmw_send_response``, ``rmw_take_response``.
    """
    sent = _steps(model, "send_request").select("client", "name", "sequence", "time_ns", send_request="id")
    served = _served(model, runs)
    answered = _steps(model, "take_response").select("client", "sequence", take_response="id")
    calls = sent.join(_clients_of_gids(sent, served), on=["client", "name"], how="left")
    calls = calls.join(served.drop("taken_ns"), on=["name", "client_gid", "sequence"], how="left")
    calls = calls.join(answered, on=["client", "sequence"], how="left")
    return calls.sort("send_request").unique("send_request", keep="first", maintain_order=True).select(_COLUMNS)


def _steps(model: ExecutionModel, step: str) -> pl.DataFrame:
    """Steps of one kind with the name of their service."""
    of_client = step in {"send_request", "take_response"}
    owner, owners = ("client", model.clients) if of_client else ("service", model.services)
    own = model.requests.filter(pl.col("step") == step)
    return own.join(owners.select("name", **{owner: "id"}), on=owner, how="left", maintain_order="left")


def _served(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Requests taken by servers, each with its response and the callback run that gave it."""
    key = ("service", "client_gid", "sequence")
    taken = _steps(model, "take_request").select(*key, "name", taken_ns="time_ns", take_request="id")
    sent = _steps(model, "send_response").select(*key, "thread", "time_ns", send_response="id")
    sent = sent.join(taken.select(*key, "taken_ns"), on=key, maintain_order="left")
    run = pl.Series(_answering(sent, runs), dtype=pl.Int32)
    answered = sent.with_columns(callback_run=run.set(run < 0, None)).drop("thread", "time_ns", "taken_ns")
    return taken.join(answered, on=key, how="left", maintain_order="left").drop("service")


def _answering(sent: pl.DataFrame, runs: Runs) -> IdArray:
    """The run that gave each response, -1 if unknown.

    A response sent during a run (a deferred answer) belongs to that run. rclcpp and rclpy send a returned response
    after the callback's end: it belongs to the last run that began after the request was taken.
    """
    thread, sent_ns = ids_of(sent, "thread"), times_of(sent, "time_ns")
    within = runs.at(thread, sent_ns)
    before = runs.timeline.last(runs.clock.keys(thread, sent_ns))
    is_returned = (before >= 0) & (pick(runs.start_ns, before, NEVER) >= times_of(sent, "taken_ns"))
    return np.where(within >= 0, within, np.where(is_returned, before, -1))


def _clients_of_gids(sent: pl.DataFrame, served: pl.DataFrame) -> pl.DataFrame:
    """The client of each gid: the most frequent match, then the one with the shortest delay."""
    pairs = sent.join(served, on=["name", "sequence"]).filter(pl.col("taken_ns") >= pl.col("time_ns"))
    distance = (pl.col("taken_ns") - pl.col("time_ns")).median()
    seen = pairs.group_by("name", "client", "client_gid").agg(count=pl.len(), distance=distance)
    best = seen.sort("count", "distance", descending=[True, False])
    best = best.unique("client_gid", keep="first", maintain_order=True)
    return best.select("client", "name", "client_gid")


def build_flow(model: ExecutionModel, paths: Sequence[PathSpec] = ()) -> FlowGraph:
    """Links every publication to its receptions and to the publications made from them.

    Args:
        paths: their `links` declare indirect causes, in addition to the application's annotations.

    Raises:
        ConfigurationError: a declared link names a topic that its node lacks.
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
