"""Events that processes did not write although others of theirs call for them, and what is not known without these.

An event is missing because it was not recorded (a list of events), because the middleware has no tracepoints, or
because tracetools is older than the tracepoint. What the buffers lost is counted elsewhere (`ctf.stats`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import rows_of
from pytest_ldos.trace.execution.mapped import chunks
from pytest_ldos.trace.execution.model import ExecutionModel, MissingEvent

Writers = Mapping[str, frozenset[int]]
"""Processes that wrote each declared event."""


class _Rule(NamedTuple):
    """An event that must accompany others.

    Attributes:
        along_with: events of which a process that wrote any should have written this one, too.
        is_optional: True if a process may have written none; the event is then missing where the trace does not
            declare it.
    """

    event: str
    along_with: tuple[str, ...]
    effect: str
    hides: tuple[str, ...] = ()
    is_optional: bool = True


_PUBLISHED: Final = (Ros2.RMW_PUBLISH, Ros2.RCL_PUBLISH, Ros2.RCLCPP_PUBLISH)
_TAKEN: Final = (Ros2.RMW_TAKE, Ros2.RCL_TAKE, Ros2.RCLCPP_TAKE)
_NOT_LINKED: Final = "latencies, late and lost messages are not known"

_RULES: Final = (
    _Rule(Ros2.NODE_INIT, (Ros2.PUBLISHER_INIT, Ros2.SUBSCRIPTION_INIT), "nodes have no names"),
    _Rule(Ros2.PUBLISHER_INIT, _PUBLISHED, "who publishes what is not known"),
    _Rule(Ros2.SUBSCRIPTION_INIT, _TAKEN, "who receives what is not known"),
    _Rule(Ros2.CALLBACK_REGISTER, (Ros2.CALLBACK_START,), "callbacks have no names"),
    _Rule(
        Ros2.CALLBACK_START,
        (Ros2.CALLBACK_REGISTER, Ros2.CALLBACK_END, Ros2.RCLCPP_TAKE),
        "which callbacks ran is not known",
        ("callback_runs",),
    ),
    _Rule(Ros2.CALLBACK_END, (Ros2.CALLBACK_START,), "how long callbacks ran is not known"),
    _Rule(Ros2.EXECUTOR_EXECUTE, (Ros2.CALLBACK_START,), "when executors worked is not known"),
    _Rule(Ros2.EXECUTOR_WAIT_FOR_WORK, (Ros2.CALLBACK_START,), "when executors waited is not known"),
    _Rule(
        Ros2.LIFECYCLE_TRANSITION,
        (Ros2.STATE_MACHINE_INIT,),
        "changes of lifecycle states are not known",
        ("transitions",),
    ),
    _Rule(Ros2.RMW_PUBLISH, (Ros2.RCL_PUBLISH, Ros2.RCLCPP_PUBLISH), _NOT_LINKED, is_optional=False),
)
"""Events that are missing by what is written; those of publications and takes need the tables, too."""


def find_missing_events(writers: Writers, frames: Mapping[str, pl.DataFrame]) -> tuple[MissingEvent, ...]:
    """Events that are missing in a trace, by process.

    Args:
        frames: publications, takes, callback runs and threads.
    """
    found = [
        MissingEvent(rule.event, _sorted(_affected(rule, writers)), rule.effect, rule.hides)
        for rule in _RULES
        if not (rule.is_optional and rule.event in writers)
    ]
    found += [*_of_publications(writers, frames), *_of_takes(writers, frames)]
    return tuple(each for each in found if each.processes)


def _sorted(processes: frozenset[int]) -> tuple[int, ...]:
    return tuple(sorted(processes))


def _affected(rule: _Rule, writers: Writers) -> frozenset[int]:
    return _any_of(writers, *rule.along_with) - _any_of(writers, rule.event)


def _any_of(writers: Writers, *events: str) -> frozenset[int]:
    return frozenset().union(*(writers.get(event, ()) for event in events))


def _of_publications(writers: Writers, frames: Mapping[str, pl.DataFrame]) -> Iterator[MissingEvent]:
    unstamped = _processes("publications", _UNSTAMPED, frames) & _any_of(writers, Ros2.RMW_PUBLISH)
    by_jazzy = f"written by ROS 2 Jazzy and later; {_NOT_LINKED}"
    yield MissingEvent(f"{Ros2.RMW_PUBLISH}.timestamp", _sorted(unstamped), by_jazzy)
    nameless = _any_of(writers, Ros2.RCLCPP_PUBLISH) - _any_of(writers, Ros2.RMW_PUBLISH, Ros2.RCL_PUBLISH)
    yield MissingEvent(Ros2.RCL_PUBLISH, _sorted(nameless), "who published is not known", ("publications",))
    if not any(event in writers for event in _PUBLISHED):
        silent = _any_of(writers, Ros2.PUBLISHER_INIT, Ros2.RMW_PUBLISHER_INIT)
        yield MissingEvent(Ros2.RMW_PUBLISH, _sorted(silent), "publications are not known", ("publications",))
    within = _processes("callback_runs", pl.col("intra"), frames) - _any_of(writers, Ros2.INTRA_PUBLISH)
    yield MissingEvent(
        Ros2.INTRA_PUBLISH, _sorted(within), "publications inside a process are not known", ("publications",)
    )


def _of_takes(writers: Writers, frames: Mapping[str, pl.DataFrame]) -> Iterator[MissingEvent]:
    """Takes are those of callbacks where the middleware reports none, and are missing where there are none of these."""
    seen = _processes("takes", _UNSTAMPED, frames) | _any_of(writers, Ros2.RCL_TAKE, Ros2.RCLCPP_TAKE)
    if Ros2.RMW_TAKE not in writers:
        seen |= _any_of(writers, Ros2.SUBSCRIPTION_INIT)
    unseen = seen - _any_of(writers, Ros2.RMW_TAKE)
    runs = _any_of(writers, Ros2.CALLBACK_START)
    only_runs = "receptions are runs of callbacks, not linked with their publications"
    yield MissingEvent(Ros2.RMW_TAKE, _sorted(unseen & runs), only_runs)
    yield MissingEvent(Ros2.RMW_TAKE, _sorted(unseen - runs), "receptions are not known", ("takes",))


_UNSTAMPED: Final = ~pl.col("intra") & pl.col("source_ns").is_null()


def _processes(table: str, wanted: pl.Expr, frames: Mapping[str, pl.DataFrame]) -> frozenset[int]:
    """Processes of the threads of some rows."""
    parts = (rows_of(frames[table], part) for part in chunks(len(frames[table])))
    threads: set[int] = set().union(*(part.filter(wanted)["thread"].unique() for part in parts))
    return frozenset(frames["threads"].filter(pl.col("id").is_in(list(threads)))["process"])


def name_missing(model: ExecutionModel) -> str:
    """``"without ros2:rmw_publish, ros2:rmw_take"``, or ``""``."""
    names = ", ".join(dict.fromkeys(each.event for each in model.missing_events))
    return f"without {names}" if names else ""


def describe_missing(missing: MissingEvent, processes: pl.DataFrame) -> str:
    """``"no ros2:rmw_publish from talker (4711): …"``."""
    names = [_name(row) for row in processes.filter(pl.col("id").is_in(missing.processes)).iter_rows(named=True)]
    more = len(names) - _MOST_NAMED
    shown = ", ".join([*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
    of = "" if len(names) == len(processes) else f" from {shown}"
    return f"no {missing.event}{of}: {missing.effect}"


_MOST_NAMED: Final = 4


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['name'] or 'process'} ({row['pid']})"
