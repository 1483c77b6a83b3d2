"""Publications and takes: one row per message that left a publisher, or that a subscription received.

Tracepoints: ``rclcpp_publish`` → ``rcl_publish`` → ``rmw_publish`` on one thread;
``rclcpp_intra_publish`` for communication inside a process. In a process without ``rmw_publish``
(another middleware, another list of events), ``rcl_publish`` gives the rows, and without that ``rclcpp_publish``.
``rmw_publish`` of ROS 2 Humble and Iron has neither publisher nor time stamp.

Tracepoints: ``rmw_take`` → ``rcl_take`` → ``rclcpp_take`` on one thread; inside a process
``rclcpp_ring_buffer_enqueue`` and ``rclcpp_ring_buffer_dequeue`` on a buffer that
``rclcpp_construct_ring_buffer``, ``rclcpp_buffer_to_ipb`` and ``rclcpp_ipb_to_subscription`` tie to its
subscription. In a process without ``rmw_take``, or without ``rclcpp_ring_buffer_dequeue``, each run of a subscription's
callback is a message that it received, at the begin of the run. CARET's ``dds_bind_addr_to_stamp`` and
``dispatch_subscription_callback`` then have the stamps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import Caret, Ros2
from pytest_ldos.trace.execution.callbacks import subscriptions_by_object
from pytest_ldos.trace.execution.columns import NEVER, Columns, IdArray, TimesNs, in_time_order, joined, pick
from pytest_ldos.trace.execution.endpoints import Endpoints, Handles, Kind, registry_of
from pytest_ldos.trace.execution.model import INSTANCES
from pytest_ldos.trace.execution.observed import Events, Observed

_NO_HANDLE: Final = 0  # handle of a publisher that no event names

_BLANK: Final[dict[Any, Any]] = {pl.Int64: np.int64(NEVER), pl.UInt64: np.uint64(0), pl.Boolean: np.False_}


def _columns(table: str, events: Events, rows: IdArray, **known: Any) -> Columns:
    """Columns of a table for some events; `known` are those besides time and thread that are not blank."""
    given = {"time_ns": events.times_ns[rows], "thread": events.thread[rows], **known}
    schema = {name: kind for name, kind in INSTANCES[table].items() if name != "id"}
    return {name: given[name] if name in given else np.full(len(rows), _BLANK[kind]) for name, kind in schema.items()}


def build_publications(observed: Observed, endpoints: Endpoints) -> tuple[Columns, int]:
    """Builds the table, and counts the middleware's own publications.

    A publisher is identified by its rmw handle where that is recorded: `rcl_publish` of ``/rosout`` carries
    addresses on the call stack. A publication with neither an init event nor a preceding `rcl_publish` is discovery
    traffic of the middleware.
    """
    of_middleware, own = _of_middleware(observed, endpoints)
    inter = joined([of_middleware, _of_rcl(observed, endpoints), _of_rclcpp(observed, endpoints)])
    intra = _intra_process(observed, endpoints)
    same = _same_call(observed, inter, intra)
    inter["intra_ns"] = pick(intra["time_ns"], same, NEVER)
    intra = {name: np.delete(values, same[same >= 0]) for name, values in intra.items()}
    return in_time_order([inter, intra]), own


def _of_middleware(observed: Observed, endpoints: Endpoints) -> tuple[Columns, int]:
    published, reported = observed.events(Ros2.RMW_PUBLISH), observed.events(Ros2.RCL_PUBLISH)
    rcl = _of_same_call(observed, Ros2.RCL_PUBLISH, Ros2.RMW_PUBLISH)
    rclcpp = _of_same_call(observed, Ros2.RCLCPP_PUBLISH, Ros2.RMW_PUBLISH)
    handles = published.optional("rmw_publisher_handle", _NO_HANDLE).astype(np.uint64)
    known = endpoints.publishers.registry.find(published.process, handles, published.times_ns)
    rows = np.flatnonzero((known >= 0) | (rcl >= 0))
    by_rcl = pick(reported.handles("publisher_handle"), rcl[rows], _NO_HANDLE)
    found = _found_by_rcl(endpoints, published.process[rows], by_rcl, published.times_ns[rows])
    is_named = handles[rows] != _NO_HANDLE
    publisher, named_by = (
        np.where(is_named, one[rows], other) for one, other in zip((known, handles), found, strict=True)
    )
    columns = _columns(
        "publications",
        published,
        rows,
        publisher=endpoints.publishers.registry.complete(publisher, published.process[rows], named_by),
        source_ns=published.optional("timestamp", NEVER)[rows].astype(np.int64),
        rclcpp_ns=pick(observed.events(Ros2.RCLCPP_PUBLISH).times_ns, rclcpp[rows], NEVER),
        rcl_ns=pick(reported.times_ns, rcl[rows], NEVER),
    )
    return columns, len(published) - len(rows)


def _of_rcl(observed: Observed, endpoints: Endpoints) -> Columns:
    """Publications of processes without ``rmw_publish``."""
    published = observed.events(Ros2.RCL_PUBLISH)
    rows = np.flatnonzero(observed.without(Ros2.RMW_PUBLISH, published))
    rclcpp = _of_same_call(observed, Ros2.RCLCPP_PUBLISH, Ros2.RCL_PUBLISH)[rows]
    process, times_ns = published.process[rows], published.times_ns[rows]
    found = _found_by_rcl(endpoints, process, published.handles("publisher_handle")[rows], times_ns)
    publisher = endpoints.publishers.registry.complete(found[0], process, found[1])
    rclcpp_ns = pick(observed.events(Ros2.RCLCPP_PUBLISH).times_ns, rclcpp, NEVER)
    copy = _of_same_call(observed, Caret.BIND_ADDRESS, Ros2.RCL_PUBLISH, after=True, keys=("addr_from", "message"))
    copied = pick(observed.events(Caret.BIND_ADDRESS).handles("addr_to"), copy, 0)
    address = np.where(copy >= 0, copied, published.handles("message"))
    bound = _of_same_call(observed, Caret.BIND, Ros2.RCL_PUBLISH, after=True, keys=("addr", address))[rows]
    source_ns = pick(observed.events(Caret.BIND)["source_stamp"].astype(np.int64), bound, NEVER)
    known = {"publisher": publisher, "source_ns": source_ns, "rclcpp_ns": rclcpp_ns, "rcl_ns": times_ns}
    return _columns("publications", published, rows, **known)


def _of_rclcpp(observed: Observed, endpoints: Endpoints) -> Columns:
    """Publications, without their publishers, of processes with ``rclcpp_publish`` only."""
    published = observed.events(Ros2.RCLCPP_PUBLISH)
    rows = np.flatnonzero(observed.without(Ros2.RMW_PUBLISH, published) & observed.without(Ros2.RCL_PUBLISH, published))
    nothing = np.full(len(rows), -1, dtype=np.int32)
    handles = np.full(len(rows), _NO_HANDLE, dtype=np.uint64)
    publisher = endpoints.publishers.registry.complete(nothing, published.process[rows], handles)
    return _columns("publications", published, rows, publisher=publisher, rclcpp_ns=published.times_ns[rows])


def _found_by_rcl(
    endpoints: Endpoints, process: IdArray, handles: Handles, times_ns: TimesNs
) -> tuple[IdArray, Handles]:
    """Publishers by rcl's handles, -1 for none, and handles for `Registry.complete`.

    In a process with init events of publishers, a handle without one is an address on the call stack (``/rosout``):
    all of these are one unknown publisher.
    """
    found = endpoints.publishers_by_rcl.find(process, handles, times_ns)
    return found, np.where(np.isin(process, endpoints.publishers.inits.process), np.uint64(_NO_HANDLE), handles)


def _intra_process(observed: Observed, endpoints: Endpoints) -> Columns:
    published = observed.events(Ros2.INTRA_PUBLISH)
    handles = published.handles("publisher_handle")
    by_rcl = endpoints.publishers_by_rcl.find(published.process, handles, published.times_ns)
    publisher = endpoints.publishers.registry.complete(by_rcl, published.process, handles)
    every, times_ns = np.arange(len(published)), published.times_ns
    intra = np.ones(len(published), dtype=bool)
    return _columns("publications", published, every, publisher=publisher, intra_ns=times_ns, intra=intra)


def _same_call(observed: Observed, inter: Columns, intra: Columns) -> IdArray:
    """For each publication through the middleware, the intra-process one of the same call, or -1.

    rclcpp first delivers a message within its process: on the same thread, from the same publisher, after the
    thread's previous publication.
    """
    keys = observed.clock.keys(inter["thread"], inter["time_ns"])
    found = observed.clock.timeline(intra["thread"], intra["time_ns"]).last(keys)
    earlier = observed.clock.timeline(inter["thread"], inter["time_ns"]).last(keys, before=True)
    other = pick(intra["publisher"], found, -1) != inter["publisher"]
    found[other | (pick(intra["time_ns"], found, NEVER) < pick(inter["time_ns"], earlier, NEVER))] = -1
    return found


def _of_same_call(
    observed: Observed,
    name: str,
    own: str,
    *,
    after: bool = False,
    keys: tuple[str, str | Handles] = ("message", "message"),
) -> IdArray:
    """For each event `own`, the row of the last event `name` before it, or the next one after it, in the same call.

    Both are on one thread and concern one message, by these fields of theirs, or are the next if the first one is 0 (as
    CARET writes it for Fast DDS since ROS 2 Humble), and no other event `own` lies between.
    """
    events, others = observed.events(own), observed.events(name)
    if len(events) == 0 or len(others) == 0:
        return np.full(len(events), -1, dtype=np.int32)
    timeline, named = observed.timeline(own), observed.timeline(name)
    found = named.next_for(timeline) if after else named.last_for(timeline)
    message = pick(others.handles(keys[0]), found, 0)
    found[(message != 0) & (message != (events.handles(keys[1]) if isinstance(keys[1], str) else keys[1]))] = -1
    times_ns = pick(others.times_ns, found, NEVER)
    if after:
        limit_ns = pick(events.times_ns, timeline.next_for(timeline, after=True), np.iinfo(np.int64).max)
        is_beyond = times_ns > limit_ns
    else:
        is_beyond = times_ns < pick(events.times_ns, timeline.last_for(timeline, before=True), NEVER)
    found[is_beyond] = -1
    return found


def build_takes(
    observed: Observed, endpoints: Endpoints, callbacks: Kind, *, earlier_runs: int = 0
) -> tuple[Columns, dict[str, int]]:
    """Builds the table, and counts takes of nothing or of the middleware; an earlier window counted `earlier_runs`."""
    inter, counts = _inter_process(observed, endpoints)
    parts = (inter, _intra_process_takes(observed, endpoints), _by_callbacks(observed, callbacks, earlier_runs))
    return in_time_order(parts), counts


def build_enqueues(observed: Observed, endpoints: Endpoints) -> Columns:
    enqueued = observed.events(Ros2.RING_BUFFER_ENQUEUE)
    return enqueued.timed(
        subscription=_subscription_of(enqueued, observed, endpoints),
        buffer=enqueued.handles("buffer"),
        slot=enqueued["index"].astype(np.uint64),
        overwritten=enqueued["overwritten"] != 0,
    )


def _inter_process(observed: Observed, endpoints: Endpoints) -> tuple[Columns, dict[str, int]]:
    taken = observed.events(Ros2.RMW_TAKE)
    rcl = _of_same_call(observed, Ros2.RCL_TAKE, Ros2.RMW_TAKE, after=True)
    rclcpp = _of_same_call(observed, Ros2.RCLCPP_TAKE, Ros2.RMW_TAKE, after=True)
    handles = taken.handles("rmw_subscription_handle")
    registry = endpoints.subscriptions.registry
    known = registry.find(taken.process, handles, taken.times_ns) >= 0
    got = taken["taken"] != 0
    rows = np.flatnonzero(got & (known | (rcl >= 0)))
    columns = _columns(
        "takes",
        taken,
        rows,
        subscription=registry.resolve(taken.process[rows], handles[rows], taken.times_ns[rows]),
        source_ns=taken["source_timestamp"][rows].astype(np.int64),
        rcl_ns=pick(observed.events(Ros2.RCL_TAKE).times_ns, rcl[rows], NEVER),
        rclcpp_ns=pick(observed.events(Ros2.RCLCPP_TAKE).times_ns, rclcpp[rows], NEVER),
    )
    empty = int(np.count_nonzero(~got))
    return columns, {"takes of nothing": empty, "takes of the middleware itself": len(taken) - empty - len(rows)}


def _intra_process_takes(observed: Observed, endpoints: Endpoints) -> Columns:
    taken = observed.events(Ros2.RING_BUFFER_DEQUEUE)
    return _columns(
        "takes",
        taken,
        np.arange(len(taken)),
        subscription=_subscription_of(taken, observed, endpoints),
        intra=np.ones(len(taken), dtype=bool),
        buffer=taken.handles("buffer"),
        slot=taken["index"].astype(np.uint64),
    )


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
    given = _of_same_call(observed, Caret.DISPATCH, Ros2.CALLBACK_START, keys=("callback", "callback"))[rows]
    source_ns = pick(observed.events(Caret.DISPATCH)["source_stamp"].astype(np.int64), given, NEVER)
    return _columns("takes", starts, rows, subscription=subscription, intra=intra[rows], source_ns=source_ns)


def _subscription_of(events: Events, observed: Observed, endpoints: Endpoints) -> IdArray:
    """The subscription that owns each event's buffer; an unknown one is identified by its buffer."""
    handles, to_ipb = events.handles("buffer"), observed.events(Ros2.BUFFER_TO_IPB)
    to_subscription = observed.events(Ros2.IPB_TO_SUBSCRIPTION)
    if not len(events):  # for entities without init events, calls are counted
        return endpoints.subscriptions.registry.complete(np.empty(0, dtype=np.int32), events.process, handles)
    objects, owners = subscriptions_by_object(observed, endpoints)
    objects_of_ipb = objects.find_nearest(
        to_subscription.process, to_subscription.handles("subscription"), to_subscription.times_ns
    )
    owner_of_ipb = pick(owners, objects_of_ipb, -1)
    ipb = registry_of(to_subscription, "ipb").find_nearest(to_ipb.process, to_ipb.handles("ipb"), to_ipb.times_ns)
    owner_of_buffer = pick(owner_of_ipb, ipb, -1)
    buffer = registry_of(to_ipb, "buffer").find(events.process, handles, events.times_ns)
    return endpoints.subscriptions.registry.complete(pick(owner_of_buffer, buffer, -1), events.process, handles)
