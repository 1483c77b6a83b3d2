"""Tables that are worked on in small chunks, and lie in mapped files, as those of a long trace do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl
import pytest

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.summary import (
    summarize_callbacks,
    summarize_executors,
    summarize_paths,
    summarize_topics,
)
from pytest_ldos.trace.flow.timeliness import classify_receptions, summarize_connections

_SUMMARIES = (summarize_topics, summarize_callbacks, summarize_executors, summarize_connections, classify_receptions)
_LINKS = ("transport", "triggers", "causes", "uses", "calls", "hops")


@contextmanager
def small_chunks(rows: int) -> Iterator[None]:
    """Tables in chunks of so many rows, and all but the shortest arrays in files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "CHUNK_ROWS", rows)
        patch.setattr(mapped, "MOST_BYTES", 400)
        yield


def found_in(model: ExecutionModel, paths: list[PathSpec]) -> tuple[FlowGraph, dict[str, pl.DataFrame]]:
    """The flow of a model, and all tables of both."""
    flow = build_flow(model, paths)
    links = {name: getattr(flow, name) for name in _LINKS}
    summaries = {each.__name__: each(flow) for each in _SUMMARIES}
    return flow, {**model.frames(), **links, **summaries, "paths": summarize_paths(flow, paths)}


def assert_equal_tables(found: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    for name, table in expected.items():
        assert found[name].schema == table.schema, name
        assert found[name].equals(table, null_equal=True), (name, found[name], table)
