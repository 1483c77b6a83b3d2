"""Builds the message-flow graph: links from messages to callbacks and publications, and service calls.

A thread takes a message and runs the callback with it. Everything that the thread publishes before
the callback ends was caused by that message. Publications made from several messages: `flow.links`.

ROS 2 Jazzy traces no transport of services; later distributions do. A call is identified by the
sequence number from its client and by the client's gid. Only the server reports the gid, so a gid
is assigned to the client whose requests match it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import NEVER, IdArray, ids_at, ids_of, pick, times_at, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import Timeline
from pytest_ldos.trace.flow.graph import DIRECT, LINKS, RULES, FlowGraph, Runs, begins_of
from pytest_ldos.trace.flow.links import link_inputs
from pytest_ldos.trace.flow.transport import count_without_partner, link_transport


def link_triggers(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links each message to the callback run that it triggered, in the order of the messages."""
    takes = runs.clock.timeline(ids_of(model.takes, "thread"), times_of(model.takes, "time_ns"))
    of_run = mapped.computed(len(runs.start_ns), np.int32, lambda part: _take_of_runs(model, runs, takes, part))
    runs_of_take = mapped.index_by(of_run, len(model.takes))
    columns = mapped.growing(take=np.int32, callback_run=np.int32, polled=np.bool_)
    for part in mapped.chunks(len(model.takes)):
        which, run = runs_of_take.of(np.arange(part.start, part.stop))
        free = np.flatnonzero(np.bincount(which, minlength=part.stop - part.start) == 0)
        own = mapped.rows_of(model.takes, part)[free]
        polling_run = runs.at(ids_of(own, "thread"), times_of(own, "time_ns"))
        is_polled = polling_run >= 0
        take = np.concatenate((which, free[is_polled]))
        order = np.argsort(take, kind="stable")
        columns["take"].add(take[order] + part.start)
        columns["callback_run"].add(np.concatenate((run, polling_run[is_polled]))[order])
        columns["polled"].add(np.repeat([False, True], [len(run), int(is_polled.sum())])[order])
    return mapped.frame_of(LINKS["triggers"], {name: column.finish() for name, column in columns.items()})


def link_causes(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    columns = mapped.growing(callback_run=np.int32, publication=np.int32)
    for part in mapped.chunks(len(model.publications)):
        table = mapped.rows_of(model.publications, part)
        run = runs.at(ids_of(table, "thread"), begins_of(table))
        columns["callback_run"].add(run[run >= 0])
        columns["publication"].add(np.flatnonzero(run >= 0) + part.start)
    return mapped.frame_of(LINKS["causes"], {name: column.finish() for name, column in columns.items()})


def link_direct_uses(model: ExecutionModel, triggers: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    by_run = mapped.index_by(ids_of(triggers, "callback_run"), len(model.callback_runs))
    columns = mapped.growing(take=np.int32, publication=np.int32)
    for part in mapped.chunks(len(causes)):
        links = mapped.rows_of(causes, part)
        which, trigger = by_run.of(ids_of(links, "callback_run"))
        take = ids_at(triggers, "take", trigger)
        publication = ids_of(links, "publication")[which]
        called_ns = begins_of(model.publications[ids_of(links, "publication")])[which]
        is_used = times_at(model.takes, "time_ns", take) <= called_ns
        columns["take"].add(take[is_used])
        columns["publication"].add(publication[is_used])
    rows = columns["take"].rows
    rule, one = mapped.filled(rows, np.uint32, RULES.index(DIRECT)), mapped.filled(rows, np.int32, 1)
    known = {"rule": rule, "candidates": one, "certain": mapped.filled(rows, np.bool_, 1)}
    return mapped.frame_of(LINKS["uses"], {name: column.finish() for name, column in columns.items()} | known)


def _take_of_runs(model: ExecutionModel, runs: Runs, takes: Timeline, part: slice) -> IdArray:
    """The last message that each run's thread took; -1 if of another subscription or older than the run before."""
    start_ns, table = runs.start_ns[part], mapped.rows_of(model.callback_runs, part)
    keys = runs.clock.keys(runs.thread[part], start_ns)
    take = takes.last(keys)
    before = runs.timeline.last(keys, before=True)
    begun_ns, ended_ns = pick(runs.start_ns, before, NEVER), pick(runs.end_ns, before, NEVER)
    if model.takes.is_empty():
        return take
    taken = model.takes[np.maximum(take, 0)]  # a row of -1 stays one, whatever the first take is
    taken_ns = times_of(taken, "time_ns")
    stale = taken_ns < np.where(ended_ns <= start_ns, np.maximum(begun_ns, ended_ns), begun_ns)
    callback = ids_of(table, "callback")
    wanted = pick(ids_of(model.callbacks, "subscription"), callback, -1)
    known = pick(model.callbacks["known"].to_numpy().astype(np.int32), callback, 0) == 1
    other = known & (ids_of(taken, "subscription") != wanted)
    other |= taken["intra"].to_numpy() != table["intra"].to_numpy()
    take[stale | other] = -1
    return take


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
    pairs = sent.join(served, on=["name", "sequence"]).filter(pl.col("taken_ns") >= pl.col("time_ns"))
    distance = (pl.col("taken_ns") - pl.col("time_ns")).median()
    matches = pairs.group_by("name", "client", "client_gid").agg(count=pl.len(), distance=distance)
    best = matches.sort("count", "distance", descending=[True, False])
    clients = best.unique("client_gid", keep="first", maintain_order=True).select("client", "name", "client_gid")
    calls = sent.join(clients, on=["client", "name"], how="left")
    calls = calls.join(served.drop("taken_ns"), on=["name", "client_gid", "sequence"], how="left")
    calls = calls.join(answered, on=["client", "sequence"], how="left")
    return calls.sort("send_request").unique("send_request", keep="first", maintain_order=True).select(_COLUMNS)


def _steps(model: ExecutionModel, step: str) -> pl.DataFrame:
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
    # A response sent during a run (a deferred answer) belongs to that run. rclcpp and rclpy send a returned response
    # after the callback's end: it belongs to the last run that began after the request was taken.
    thread, sent_ns = ids_of(sent, "thread"), times_of(sent, "time_ns")
    within = runs.at(thread, sent_ns)
    before = runs.timeline.last(runs.clock.keys(thread, sent_ns))
    is_returned = (before >= 0) & (pick(runs.start_ns, before, NEVER) >= times_of(sent, "taken_ns"))
    run = pl.Series(np.where(within >= 0, within, np.where(is_returned, before, -1)), dtype=pl.Int32)
    answered = sent.with_columns(callback_run=run.set(run < 0, None)).drop("thread", "time_ns", "taken_ns")
    return taken.join(answered, on=key, how="left", maintain_order="left").drop("service")


def build_flow(model: ExecutionModel, paths: Sequence[PathSpec] = ()) -> FlowGraph:
    """Links every publication to its receptions and to the publications made from them.

    The `links` of the paths declare indirect causes, in addition to the application's annotations. Synchronizers of
    message_filters that neither names are found by their callbacks; their links are not certain.

    Raises:
        ConfigurationError: a declared link names a topic that its node lacks.
    """
    runs = Runs(model)
    transport = link_transport(model)
    triggers = link_triggers(model, runs)
    causes = link_causes(model, runs)
    flow = FlowGraph(
        model=model,
        transport=transport,
        triggers=triggers,
        causes=causes,
        calls=link_calls(model, runs),
        uses=link_direct_uses(model, triggers, causes),
        without_partner=count_without_partner(model, transport),
    )
    return link_inputs(flow, runs, paths)
