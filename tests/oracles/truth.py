"""Logs of the recorded applications, as links to compare a flow graph with.

An application's log has one line a publication and a reception, with the sequence number in
the message. The n-th publication of a process on a topic in the trace is the n-th in its
log, and the n-th message a node received likewise: which is independent of any linking.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph

Message = tuple[str, int]
"""Topic and sequence number."""

RECEIVED = "recv"
PUBLISHED = "pub"


@dataclass(frozen=True)
class Links:
    """Transport: (message, receiving node). Causal: (input message, output message)."""

    transport: set[tuple[Message, str]]
    causal: set[tuple[Message, Message]]


def read_log(folder: Path) -> list[dict[str, Any]]:
    """All lines of the logs in a folder, in time order."""
    lines = [line for log in sorted(folder.glob("*.jsonl")) for line in log.read_text("utf-8").splitlines()]
    return sorted((json.loads(line) for line in lines), key=lambda entry: entry["mono_ns"])


def logged_links(log: list[dict[str, Any]]) -> Links:
    return Links(
        transport={((e["topic"], e["seq"]), f"/{e['node']}") for e in log if e["kind"] == RECEIVED},
        causal={
            ((topic, seq), (e["topic"], e["seq"]))
            for e in log
            if e["kind"] == PUBLISHED
            for topic, seq in e.get("inputs", ())
        },
    )


def found_links(flow: FlowGraph, log: list[dict[str, Any]]) -> Links:
    """The links of a graph on the topics that were logged, in the words of the log.

    A reception whose transport link leads to a message with another number than the
    receiver logged shows as a pair that no log has.
    """
    sent = _numbered(_sent(flow.model), _by_key(log, PUBLISHED, "pid"))
    got = _numbered(_got(flow.model), _by_key(log, RECEIVED, "node"))
    nodes = dict(_got(flow.model).select("id", "key").iter_rows())
    origin = dict(flow.transport.select("take", "publication").iter_rows())
    transport = {(sent[origin[take]], nodes[take]) for take in got if origin.get(take) in sent}
    mismatched = {
        (sent[origin[take]], f"{nodes[take]}, which logged {got[take]}")
        for take in got
        if origin.get(take) in sent and sent[origin[take]] != got[take]
    }
    causal = {
        (got[take], sent[publication])
        for take, publication in flow.uses.select("take", "publication").iter_rows()
        if publication in sent and take in got
    }
    return Links(transport | mismatched, causal)


def _by_key(log: list[dict[str, Any]], kind: str, key: str) -> dict[tuple[Any, str], list[int]]:
    found = defaultdict(list)
    for entry in log:
        if entry["kind"] == kind:
            name = f"/{entry['node']}" if key == "node" else entry[key]
            found[(name, entry["topic"])].append(entry["seq"])
    return found


def _numbered(instances: pl.DataFrame, logged: dict[tuple[Any, str], list[int]]) -> dict[int, Message]:
    """The message each instance was about: the n-th of its key and topic."""
    counters: dict[tuple[Any, str], Iterator[int]] = {key: iter(numbers) for key, numbers in logged.items()}
    found = {}
    for instance, key, topic in instances.select("id", "key", "topic").iter_rows():
        if (key, topic) in counters:
            found[instance] = (topic, next(counters[(key, topic)], -instance))
    return found


def _sent(model: ExecutionModel) -> pl.DataFrame:
    return (
        model.publications.join(model.publishers.select("id", "process", "topic"), left_on="publisher", right_on="id")
        .join(model.processes.select("id", key="pid"), left_on="process", right_on="id")
        .sort("time_ns")
    )


def _got(model: ExecutionModel) -> pl.DataFrame:
    return (
        model.takes.join(model.subscriptions.select("id", "node", "topic"), left_on="subscription", right_on="id")
        .join(model.nodes.select("id", key="name"), left_on="node", right_on="id")
        .sort("time_ns")
    )
