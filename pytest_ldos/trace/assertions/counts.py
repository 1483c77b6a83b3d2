"""Assertions on how often something happened."""

from __future__ import annotations

from typing import Any

import polars as pl

from pytest_ldos.trace.assertions.callbacks import callback_began
from pytest_ldos.trace.assertions.events import event
from pytest_ldos.trace.assertions.evidence import Evidence, Source, Window, require
from pytest_ldos.trace.assertions.happenings import Happening, published, received


def assert_published(
    source: Source,
    topic: str,
    *,
    node: str | None = None,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
) -> pl.DataFrame:
    """Asserts that messages were published on a topic.

    Args:
        node: publishing node; any node by default.
        at_most: ``at_least=0, at_most=0`` asserts that none was published; a topic unknown to the trace
            fails nevertheless.
        within: first and last moment, nanoseconds since the epoch.

    Returns:
        The publications: rows of the model's table, with `node_name`.

    Raises:
        AssertionError: the count is out of bounds; the message lists each node's publications and their times.
    """
    __tracebackhide__ = True
    return _assert_count(source, published(topic, node=node), at_least, at_most, within)


def assert_received(
    source: Source,
    topic: str,
    *,
    node: str | None = None,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
) -> pl.DataFrame:
    """Asserts that messages of a topic were received; see `assert_published`."""
    __tracebackhide__ = True
    return _assert_count(source, received(topic, node=node), at_least, at_most, within)


def assert_callback_ran(  # noqa: PLR0913 - five of them name the callback
    source: Source,
    *,
    node: str | None = None,
    topic: str | None = None,
    service: str | None = None,
    timer_ms: float | None = None,
    symbol: str | None = None,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
) -> pl.DataFrame:
    """Asserts that a callback ran; see `callback_began` for its selection, and `assert_published`.

    Returns:
        The runs: rows of the model's table, with `node_name` and `time_ns` (their start).
    """
    __tracebackhide__ = True
    run = callback_began(node=node, topic=topic, service=service, timer_ms=timer_ms, symbol=symbol)
    return _assert_count(source, run, at_least, at_most, within)


def assert_event(
    source: Source,
    name: str,
    /,
    *,
    at_least: int = 1,
    at_most: int | None = None,
    within: Window | None = None,
    **fields: Any,
) -> pl.DataFrame:
    """Asserts that events were recorded: ``assert_event(trace, "ros2:rcl_node_init", node_name="talker")``.

    Returns:
        The events, with `time_ns` and one column per field.
    """
    __tracebackhide__ = True
    return _assert_count(source, event(name, **fields), at_least, at_most, within)


def _assert_count(
    source: Source, happening: Happening, at_least: int, at_most: int | None, within: Window | None
) -> pl.DataFrame:
    __tracebackhide__ = True
    expected = _bounds(at_least, at_most)
    require(within is None or within[0] <= within[1], f"within={within} ends before it begins")
    seen = Evidence.of(source)
    everywhere = happening.find(seen)
    found = everywhere if within is None else everywhere.filter(pl.col("time_ns").is_between(*within))
    if not at_least <= len(found) <= (len(found) if at_most is None else at_most):
        what = happening.describe(many=(at_most or at_least) != 1)
        where = "" if within is None else f" within {seen.span(within)}"
        in_all = "" if within is None else f" ({len(everywhere)} in all)"
        seen.fail(f"expected {expected} {what}{where}, found {len(found) or 'none'}{in_all}", happening.instead(seen))
    if at_most is not None and happening.hidden(seen):
        seen.fail(f"expected {expected} {happening.describe(many=True)}, which this trace does not show")
    return found


def _bounds(at_least: int, at_most: int | None) -> str:
    require(at_least >= 0, f"at_least={at_least} makes no sense", "it must be 0 or more")
    require(at_most is None or at_most >= at_least, f"nothing can be at least {at_least} and at most {at_most}")
    require(at_least > 0 or at_most is not None, "at_least=0 alone asserts nothing", "give at_most, too")
    if at_most is None:
        return f"at least {at_least}"
    if at_most == at_least:
        return "no" if at_most == 0 else f"exactly {at_most}"
    return f"at most {at_most}" if at_least == 0 else f"{at_least} to {at_most}"
