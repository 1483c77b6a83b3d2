"""Builds the execution model of a decoded trace."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.tracepoints import Marker, Ros2
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.actions import build_actions
from pytest_ldos.trace.execution.annotations import build_link_annotations
from pytest_ldos.trace.execution.callback_runs import build_callback_runs, count_unpaired
from pytest_ldos.trace.execution.callbacks import build_callbacks
from pytest_ldos.trace.execution.coverage import build_missing_spans
from pytest_ldos.trace.execution.endpoints import build_endpoints
from pytest_ldos.trace.execution.executors import build_executions, build_executors, build_waits
from pytest_ldos.trace.execution.lifecycle import build_transitions
from pytest_ldos.trace.execution.missing_events import find_missing_events
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import Observed, count_threads
from pytest_ldos.trace.execution.publications import build_publications
from pytest_ldos.trace.execution.requests import build_requests
from pytest_ldos.trace.execution.takes import build_enqueues, build_takes
from pytest_ldos.trace.execution.threads import ThreadCensus
from pytest_ldos.trace.execution.trials import build_ticks, build_trials

NEEDED_EVENTS: Final = frozenset({*Marker, *Ros2})
"""Events that `build_execution` reads. Given to `read_trace` as `events`, nothing else is decoded."""


READ_EVENTS: Final = NEEDED_EVENTS - {Ros2.RCL_INIT}
"""Events whose threads are those of the model."""


def build_execution(trace: DecodedTrace, *, pids: Collection[int] | None = None) -> ExecutionModel:
    """Builds the model of a trace.

    Args:
        pids: processes to observe; all by default. Give the stack's own: another stack, a
            load or the ``ros2`` daemon may be in the same trace.

    Raises:
        TraceUnreadable: its events have no time.
    """
    check_time(trace)
    census = ThreadCensus(trace.traces)
    count_threads(census, trace, READ_EVENTS, pids)
    observed = Observed(trace, census, pids)
    endpoints = build_endpoints(observed)
    callbacks = build_callbacks(observed, endpoints)
    publications, own = build_publications(observed, endpoints)
    takes, without = build_takes(observed, endpoints, callbacks)
    runs, _ = build_callback_runs(observed, callbacks, lossy=bool(trace.stats.losses))
    annotations, strange = build_link_annotations(observed, endpoints)
    frames = {
        "link_annotations": annotations,
        "publications": publications,
        "takes": takes,
        "enqueues": build_enqueues(observed, endpoints),
        "callback_runs": runs,
        "waits": build_waits(observed),
        "executions": build_executions(observed, endpoints).frame,
        "requests": build_requests(observed, endpoints),
        "transitions": build_transitions(observed, endpoints),
        **build_trials(observed),
        **build_ticks(observed),
    }
    kinds = (*endpoints.kinds(), callbacks)
    frames |= {kind.table: kind.frame() for kind in kinds}
    frames |= observed.threads.frames()
    frames |= build_executors(frames["threads"], runs, frames["waits"])
    frames["missing_spans"] = build_missing_spans(trace, census, READ_EVENTS)
    frames["actions"] = build_actions(frames["services"], frames["clients"])
    unpaired = {
        "publications of the middleware itself": own,
        **without,
        **count_unpaired(runs, len(observed.events(Ros2.CALLBACK_END)), trace.stats.losses),
        "handles in link annotations that nothing is known of": strange,
    }
    return ExecutionModel(
        **frames,
        stats=trace.stats,
        unknown=counted({kind.table: len(kind.registry.unknown) for kind in kinds}),
        unpaired=counted(unpaired),
        missing_events=find_missing_events(observed.threads.writers(), frames),
    )


def check_time(trace: DecodedTrace) -> None:
    """Requires events to have times.

    Raises:
        TraceUnreadable: a trace has no clock.
    """
    untimed = next((info for info in trace.traces if not info.clock), None)
    if untimed is not None and trace.stats.events:
        raise TraceUnreadable(untimed.directory, None, "its events have no time: the metadata gives them no clock")


def require_events(model: ExecutionModel, trace: Path) -> None:
    """Requires a trace to have events that a model is built of.

    Raises:
        TraceUnreadable: it has none; says what it has.
    """
    if len(model.processes):
        return
    events = model.stats.events
    reason = f"none of its {events} events says what ran (ros2:*, ldos:*)"
    if not events:
        has = "its streams hold no event" if model.stats.streams else "it has no stream of events"
        reason = f"{has}: nothing that could be traced ran while it was recorded"
    raise TraceUnreadable(
        trace,
        None,
        reason,
        remedy="record ros2:* before the nodes start, with a ROS 2 that can be traced (ros2 run tracetools status)",
    )


def counted(counts: dict[str, int]) -> dict[str, int]:
    """Counts without those that are 0."""
    return {name: count for name, count in counts.items() if count}
