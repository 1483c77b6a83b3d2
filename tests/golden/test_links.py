"""Links of message_filters' synchronizers and of tf2, compared with what the recorded nodes themselves logged.

`links/links.cpp` is the program. An input is found if it is linked, and certain if nothing else could have been used.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict

import pytest

from pytest_ldos.base.ros2 import LinkRule, LinkSpec, PathSpec
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.lineage import find_path

LINKS = {
    "/pair_out": (LinkRule.EXACT_TIME, "/pair", ("/a", "/b")),
    "/overflow_out": (LinkRule.EXACT_TIME, "/overflow", ("/a", "/c")),
    "/triple_out": (LinkRule.EXACT_TIME, "/triple", ("/a", "/b", "/c")),
    "/two_ab": (LinkRule.EXACT_TIME, "/two", ("/a", "/b")),
    "/two_ac": (LinkRule.EXACT_TIME, "/two", ("/a", "/c")),
    "/approx_out": (LinkRule.APPROXIMATE_TIME, "/approx", ("/p", "/q")),
    "/lookup_out": (LinkRule.TRANSFORM, "/lookup", ("/tf",)),
    "/filter_out": (LinkRule.TRANSFORM, "/filter", ("/a", "/tf")),
}

DECLARED = [
    PathSpec(
        name=output,
        via=(inputs[0], output),
        links=(LinkSpec(rule=rule, node=node, inputs=inputs, outputs=(output,)),),
    )
    for output, (rule, node, inputs) in LINKS.items()
]

RECORDED = ("links_single", "links_multi_fastdds", "links_multi_stamps")

CERTAIN = {
    "links_single": {"/pair_out": 105, "/overflow_out": 44, "/triple_out": 120, "/two_ab": 96, "/two_ac": 120},
    "links_multi_fastdds": {"/pair_out": 105, "/overflow_out": 23, "/triple_out": 115, "/two_ab": 105, "/two_ac": 120},
    "links_multi_stamps": {"/pair_out": 110, "/overflow_out": 50, "/triple_out": 165, "/two_ab": 110, "/two_ac": 120},
}
"""Numbers of inputs of exact-time synchronizers that are certain."""

LOGGED = {"/pair_out": 110, "/triple_out": 165, "/two_ab": 110, "/two_ac": 120, "/approx_out": 120}
"""Numbers of inputs that the nodes logged, the same in each recording."""

Message = tuple[str, int]


@pytest.fixture(scope="module")
def compared(golden):
    """For each recording: links by output, and inputs by output, as the nodes logged them; both as messages."""
    found = {}

    def compare(name: str, paths=DECLARED):
        if (name, bool(paths)) not in found:
            lines = [
                line for file in (golden(name) / "truth").iterdir() for line in file.read_text("utf-8").splitlines()
            ]
            log = [json.loads(line) for line in lines]
            flow = build_flow(build_execution(read_trace(golden(name))), paths)
            found[name, bool(paths)] = flow, linked(flow, log), used(log)
        return found[name, bool(paths)]

    return compare


def linked(flow, log) -> dict[Message, dict[Message, tuple[int, bool]]]:
    """Candidates and certainty of each input of each output; the n-th publication is the n-th of the log."""
    logged = defaultdict(list)
    for entry in log:
        logged[entry["pid"], entry["topic"]].append((entry["topic"], entry["seq"]))
    model = flow.model
    senders = model.publishers.join(model.processes.select("pid", process="id"), on="process")
    sent = model.publications.join(senders.select("pid", "topic", publisher="id"), on="publisher").sort("time_ns")
    queues = {key: iter(messages) for key, messages in logged.items()}
    message = {
        row: next(queues.get((pid, topic), iter(())), None) for row, pid, topic in sent["id", "pid", "topic"].rows()
    }
    origin = dict(flow.transport.select("take", "publication").iter_rows())
    found: dict[Message, dict[Message, tuple[int, bool]]] = defaultdict(dict)
    for take, publication, candidates, certain in flow.uses["take", "publication", "candidates", "certain"].rows():
        output, each = message.get(publication), message.get(origin.get(take))
        if output and each:
            found[output][each] = candidates, certain
    return found


def used(log) -> dict[Message, set[Message]]:
    """Inputs of each output. Of a transform at a time, these are the messages before and after it, or exactly of it."""
    base = sorted((entry["stamp"], entry["seq"]) for entry in log if entry["node"] == "base")
    found = {}
    for entry in log:
        inputs = set()
        for topic, number in entry["inputs"]:
            if topic != "tf:map>base":
                inputs.add((topic, number))
                continue
            after = bisect_left(base, (number, -1))
            is_exact = base[after][0] == number
            inputs |= {("/tf", seq) for _, seq in base[after : after + 1] + base[after - 1 : after] * (not is_exact)}
        if inputs:
            found[entry["topic"], entry["seq"]] = inputs
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_nothing_certain_is_wrong(compared, name):
    _, found, logged = compared(name)
    certain = {(output, each) for output, inputs in found.items() for each, (_, sure) in inputs.items() if sure}
    assert len(certain) > 500
    assert certain <= {(output, each) for output, inputs in logged.items() for each in inputs}


@pytest.mark.parametrize("name", RECORDED)
def test_inputs_of_exact_time_are_certain_unless_others_were_dropped(compared, name):
    """Without stamps of headers, a message that found no partner stays a candidate."""
    _, found, logged = compared(name)
    certain = dict.fromkeys(CERTAIN[name], 0)
    count = defaultdict(int)
    for (topic, number), inputs in logged.items():
        count[topic] += len(inputs)
        if topic in certain:
            links = found[topic, number]
            certain[topic] += sum(links[each][1] for each in inputs if each in links)
    assert certain == CERTAIN[name]
    assert {topic: count[topic] for topic in LOGGED} == LOGGED
    if name == "links_multi_stamps":
        assert certain == {topic: count[topic] for topic in certain}


@pytest.mark.parametrize("name", RECORDED)
def test_one_input_of_each_approximate_set_is_certain(compared, name):
    """The message whose callback publishes is a later one, which is not linked as certain."""
    _, found, logged = compared(name)
    outputs = [output for output in logged if output[0] == "/approx_out"]
    certain = [each for output in outputs for each, (_, sure) in found[output].items() if sure]
    assert len(certain) == len(outputs) == 60
    assert {topic for topic, _ in certain} == {"/p"}


@pytest.mark.parametrize("name", RECORDED)
def test_no_lookup_used_a_newer_transform_than_the_linked_one(compared, name):
    _, found, logged = compared(name)
    lookups = {output: inputs for output, inputs in logged.items() if output[0] == "/lookup_out"}
    assert len(lookups) > 40
    for output, inputs in lookups.items():
        assert not any(sure for _, sure in found[output].values())
        assert max(inputs)[1] <= max(number for _, number in found[output])


@pytest.mark.parametrize("name", RECORDED)
def test_transform_that_released_a_message_is_certain(compared, name):
    _, found, logged = compared(name)
    certain = {
        (output, each)
        for output in logged
        if output[0] == "/filter_out"
        for each, (_, sure) in found[output].items()
        if sure and each[0] == "/tf"
    }
    assert len(certain) >= 10


def test_uncertain_links_are_explained(compared):
    flow, _, _ = compared("links_single")
    for beginning in (
        "/triple → /triple_out (exact_time): ≈ in 45 of 55 publications: one of 2 to 5 messages on /a was used; others ",
        "/approx → /approx_out (approximate_time): ≈ in 60 of 60 publications: one of 2 to 41 messages on /q was used; ",
        "/lookup → /lookup_out (transform): ≈ in 50 publications: no event names the transform that was used; ",
    ):
        assert any(each.startswith(beginning) for each in flow.uncertain), beginning
    assert not any("/two_ac" in each for each in flow.uncertain)


def test_passages_over_uncertain_links_are_marked(compared):
    flow, _, _ = compared("links_single")
    certain = {path.name: find_path(flow, path).table["certain"] for path in DECLARED}
    assert certain["/two_ac"].all()
    assert certain["/triple_out"].sum() == 10
    assert not certain["/lookup_out"].any()


def test_synchronizers_are_inferred_and_never_certain(compared):
    flow, found, logged = compared("links_single", ())
    synchronizers = {f"{node} → {out}" for out, (rule, node, _) in LINKS.items() if rule != LinkRule.TRANSFORM}
    assert {each.partition(" looks like a synchronizer of ")[0] for each in flow.uncertain} == synchronizers
    for topic in ("/pair_out", "/two_ac", "/approx_out"):
        links = {output: found[output] for output in logged if output[0] == topic}
        assert all(len(inputs) == 2 for inputs in links.values())
        assert not any(sure for inputs in links.values() for _, sure in inputs.values())
        assert sum(each in links[output] for output in links for each in logged[output]) > 100
