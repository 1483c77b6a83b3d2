"""Takes: one row per message that a subscription received.

Tracepoints: ``rmw_take`` → ``rcl_take`` → ``rclcpp_take`` on one thread; inside a process
``rclcpp_ring_buffer_enqueue`` and ``rclcpp_ring_buffer_dequeue`` on a buffer that
``rclcpp_construct_ring_buffer``, ``rclcpp_buffer_to_ipb`` and ``rclcpp_ipb_to_subscription`` tie to its
subscription. In a process without ``rmw_take``, or without ``rclcpp_ring_buffer_dequeue``, each run of a subscription's
callback is a message that it received, at the begin of the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.callbacks import subscriptions_by_object
from pytest_ldos.trace.execution.columns import NEVER, IdArray, frame_of, pick
from pytest_ldos.trace.execution.endpoints import Endpoints, Kind, registry_of
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.schema import INSTANCES

Columns = dict[str, Any]


def build_takes(
    observed: Observed, endpoints: Endpoints, callbacks: Kind, *, earlier_runs: int = 0
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The table, and the number of takes that returned nothing or were the middleware's own.

    Args:
        earlier_runs: first rows of `callback_start` that an earlier window has counted.
    """
    inter, counts = _inter_process(observed, endpoints)
    parts = (inter, _intra_process(observed, endpoints), _by_callbacks(observed, callbacks, earlier_runs))
    merged = {name: np.concatenate([part[name] for part in parts]) for name in inter}
    order = np.argsort(merged["time_ns"], kind="stable")
    return frame_of(INSTANCES["takes"], {name: values[order] for name, values in merged.items()}), counts


def build_enqueues(observed: Observed, endpoints: Endpoints) -> pl.DataFrame:
    """Messages that publishers put into the buffers of subscriptions in their own process."""
    enqueued = observed.events(Ros2.RING_BUFFER_ENQUEUE)
    columns = {
        "time_ns": enqueued.times_ns,
        "thread": enqueued.thread,
        "subscription": _subscription_of(enqueued, observed, endpoints),
        "buffer": enqueued.handles("buffer"),
        "slot": enqueued["index"],
        "overwritten": enqueued["overwritten"] != 0,
    }
    return frame_of(INSTANCES["enqueues"], columns)


def _inter_process(observed: Observed, endpoints: Endpoints) -> tuple[Columns, dict[str, int]]:
    taken = observed.events(Ros2.RMW_TAKE)
    rcl = _following(observed, Ros2.RCL_TAKE)
    rclcpp = _following(observed, Ros2.RCLCPP_TAKE)
    handles = taken.handles("rmw_subscription_handle")
    registry = endpoints.subscriptions.registry
    known = registry.find(taken.process, handles, taken.times_ns) >= 0
    got = taken["taken"] != 0
    rows = np.flatnonzero(got & (known | (rcl >= 0)))
    columns = {
        "time_ns": taken.times_ns[rows],
        "thread": taken.thread[rows],
        "subscription": registry.resolve(taken.process[rows], handles[rows], taken.times_ns[rows]),
        "source_ns": taken["source_timestamp"][rows].astype(np.int64),
        "rcl_ns": pick(observed.events(Ros2.RCL_TAKE).times_ns, rcl[rows], NEVER),
        "rclcpp_ns": pick(observed.events(Ros2.RCLCPP_TAKE).times_ns, rclcpp[rows], NEVER),
        "intra": np.zeros(len(rows), dtype=bool),
        "buffer": np.zeros(len(rows), dtype=np.uint64),
        "slot": np.zeros(len(rows), dtype=np.uint64),
    }
    empty = int(np.count_nonzero(~got))
    return columns, {"takes of nothing": empty, "takes of the middleware itself": len(taken) - empty - len(rows)}


def _intra_process(observed: Observed, endpoints: Endpoints) -> Columns:
    taken = observed.events(Ros2.RING_BUFFER_DEQUEUE)
    unset = np.full(len(taken), NEVER, dtype=np.int64)
    return {
        "time_ns": taken.times_ns,
        "thread": taken.thread,
        "subscription": _subscription_of(taken, observed, endpoints),
        "source_ns": unset,
        "rcl_ns": unset,
        "rclcpp_ns": unset,
        "intra": np.ones(len(taken), dtype=bool),
        "buffer": taken.handles("buffer"),
        "slot": taken["index"].astype(np.uint64),
    }


def _by_callbacks(observed: Observed, callbacks: Kind, earlier_runs: int) -> Columns:
    starts = observed.events(Ros2.CALLBACK_START)
    intra = starts["is_intra_process"] != 0
    is_unseen = np.where(
        intra, observed.without(Ros2.RING_BUFFER_DEQUEUE, starts), observed.without(Ros2.RMW_TAKE, starts)
    )
    is_unseen[:earlier_runs] = False
    rows = np.flatnonzero(is_unseen)
    callback = callbacks.registry.find(starts.process[rows], starts.handles("callback")[rows], starts.times_ns[rows])
    subscription = pick(np.asarray(callbacks.columns["subscription"], dtype=np.int32), callback, -1)
    rows, subscription = rows[subscription >= 0], subscription[subscription >= 0]
    unset = np.full(len(rows), NEVER, dtype=np.int64)
    return {
        "time_ns": starts.times_ns[rows],
        "thread": starts.thread[rows],
        "subscription": subscription,
        "source_ns": unset,
        "rcl_ns": unset,
        "rclcpp_ns": unset,
        "intra": intra[rows],
        "buffer": np.zeros(len(rows), dtype=np.uint64),
        "slot": np.zeros(len(rows), dtype=np.uint64),
    }


def _following(observed: Observed, name: str) -> IdArray:
    """For each `rmw_take`, the row of the event that reports the same message one layer up."""
    taken, reported = observed.events(Ros2.RMW_TAKE), observed.events(name)
    if len(taken) == 0 or len(reported) == 0:
        return np.full(len(taken), -1, dtype=np.int32)
    timeline = observed.timeline(Ros2.RMW_TAKE)
    found = observed.timeline(name).next_for(timeline)
    found[pick(reported.handles("message"), found, 0) != taken.handles("message")] = -1
    later = timeline.next_for(timeline, after=True)
    until = np.where(later >= 0, taken.times_ns[later], np.iinfo(np.int64).max)
    found[pick(reported.times_ns, found, NEVER) > until] = -1
    return found


def _subscription_of(events: Events, observed: Observed, endpoints: Endpoints) -> IdArray:
    """The subscription whose buffer each event concerns; an unknown one is identified by its buffer."""
    to_ipb = observed.events(Ros2.BUFFER_TO_IPB)
    to_subscription = observed.events(Ros2.IPB_TO_SUBSCRIPTION)
    objects, owners = subscriptions_by_object(observed, endpoints)
    objects_of_ipb = objects.find_nearest(
        to_subscription.process, to_subscription.handles("subscription"), to_subscription.times_ns
    )
    owner_of_ipb = pick(owners, objects_of_ipb, -1)
    ipb = registry_of(to_subscription, "ipb").find_nearest(to_ipb.process, to_ipb.handles("ipb"), to_ipb.times_ns)
    owner_of_buffer = pick(owner_of_ipb, ipb, -1)
    handles = events.handles("buffer")
    buffer = registry_of(to_ipb, "buffer").find(events.process, handles, events.times_ns)
    return endpoints.subscriptions.registry.complete(pick(owner_of_buffer, buffer, -1), events.process, handles)
