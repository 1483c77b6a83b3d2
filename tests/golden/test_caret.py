"""Recordings by CARET: names and messages are those that the application logged."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pytest_ldos.base.ros2 import CARETS_OWN, Caret, Ros2
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.window_rows import select_rows
from pytest_ldos.trace.flow.build import build_flow

MIDDLEWARE = pytest.mark.parametrize("name", ["caret", "caret_fastdds"])
TOPIC = "/chatter"


def logged_ns(folder: Path, node: str, words: str) -> list[int]:
    """Times in the log of a node at which it said these words, to the nanosecond."""
    lines = (folder / "truth" / f"{node}.log").read_text("utf-8").splitlines()
    stamps = [re.match(r"\[INFO\] \[(\d+)\.(\d{9})\]", line) for line in lines if words in line]
    return [int(found[1]) * NS_PER_S + int(found[2]) for found in stamps if found]


def without(trace: DecodedTrace, *names: str) -> DecodedTrace:
    return replace(trace, events={name: table for name, table in trace.events.items() if name not in names})


def sent_on(model: ExecutionModel, topic: str) -> pl.DataFrame:
    publishers = model.publishers.filter(topic=topic).select(publisher="id")
    return model.publications.join(publishers, on="publisher").sort("time_ns")


@MIDDLEWARE
def test_messages_are_those_of_the_log(golden, name):
    folder = golden(name)
    model = build_execution(read_trace(folder, events=NEEDED_EVENTS))
    assert {"/talker", "/listener"} < {*model.nodes["name"]}
    sent, heard = logged_ns(folder, "talker", "Publishing"), logged_ns(folder, "listener", "I heard")
    published = sent_on(model, TOPIC)
    assert len(sent) == len(heard) == len(published) > 5
    for before, at, after in zip(sent, published["time_ns"], heard, strict=True):
        assert before < at < after
    graph = build_flow(model)
    arrived = graph.transport.filter(pl.col("publication").is_in(published["id"].implode()))
    assert len(arrived) == len(heard)
    assert not {each.event for each in model.missing_events}


@MIDDLEWARE
def test_stamps_by_address_are_those_of_the_publications(golden, name):
    """Without CARET's event of a publication, as before ROS 2 Jazzy; its address is that of the message, or none."""
    trace = read_trace(golden(name), events=NEEDED_EVENTS)
    (written,) = (each for each, usual in CARETS_OWN.items() if usual == Ros2.RMW_PUBLISH)
    expected, found = (sent_on(build_execution(each), TOPIC) for each in (trace, without(trace, written)))
    assert found["source_ns"].to_list() == expected["source_ns"].to_list()
    assert (trace.events[Caret.BIND]["addr"] == 0).all() == (name == "caret_fastdds")


@MIDDLEWARE
def test_names_of_processes_with_and_without_caret_are_joined(golden, name):
    """Half of the events of names, under those that ROS 2 itself writes: the model is the same."""
    trace = read_trace(golden(name), events=NEEDED_EVENTS)
    expected = build_execution(trace)
    talker = expected.processes.filter(name="talker")["pid"].item()
    events = dict(trace.events)
    for own, usual in CARETS_OWN.items():
        if own in events and len(events[own]):
            of_talker = events[own]["vpid"] == talker
            events[usual] = replace(select_rows(events[own], of_talker), name=usual)
            events[own] = select_rows(events[own], ~of_talker)
    found = build_execution(replace(trace, events=events))
    for table, frame in expected.frames().items():
        assert found.frames()[table].equals(frame, null_equal=True), table
