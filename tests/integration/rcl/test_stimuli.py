"""The stimuli `service` and `action` against servers of real rclpy, and messages of a user's values."""

from __future__ import annotations

import json
import sys
import uuid
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.messages import fill, find_type
from pytest_ldos.robot.stack.protocol import Attempt, CaseBook, MessageCase
from pytest_ldos.robot.stack.senders import Conversation, ProgramStimulus
from pytest_ldos.scenario.stimuli import FEEDBACK, ActionSpec, ServiceSpec
from pytest_ldos.scenario.words import StimulusKind
from tests.builders.stressors import wait_until

PROGRAM = "pytest_ldos.robot.stack.ros2.programs"


@contextmanager
def stimulus(graph, kind, spec, message, reset=None):
    """The program of a stimulus, ready, with one case."""
    settings = {"stimulus": kind, "spec": asdict(spec), "messages": {"the goal": message}, "reset": reset}
    file = graph.folder / "stimulus.json"
    file.write_text(json.dumps(settings), "utf-8")
    child = graph.run_module("stimulus", "-m", PROGRAM, str(file), talk=True)
    conversation = Conversation(child, graph.group.describe_ended)
    assert conversation.await_ready(30), graph.log("stimulus")
    book = CaseBook({"only": (MessageCase("case", message),)}, reset)
    yield ProgramStimulus(conversation, book, timeout_s=spec.longest_s, why=graph.group.describe_ended)


def run(program):
    (case,) = program.cases()
    return program.run(case, Attempt(uuid.uuid4().hex, 0, None, None))


def service(**changes):
    return ServiceSpec(**{"name": "/switch", "type": "std_srvs/srv/SetBool", "calls": 5, "timeout_s": 5.0, **changes})


def action(**changes):
    return ActionSpec(**{"name": "/count", "type": "test_msgs/action/Fibonacci", "timeout_s": 5.0, **changes})


def refusal(graph, kind, spec, message):
    with pytest.raises(ConfigurationError) as refused, stimulus(graph, kind, spec, message):
        pass
    return refused.value


def test_calls_of_a_service_are_timed(graph):
    graph.start("server")
    with stimulus(graph, StimulusKind.SERVICE, service(), {"data": True}) as program:
        ended = run(program)
    assert ended.outcome is OutcomeClass.SUCCESS, ended.message
    assert 0 < ended.numbers["calls_p50_ms"] <= ended.numbers["calls_max_ms"]


def test_response_without_success_is_a_failure(graph):
    graph.start("server")
    with stimulus(graph, StimulusKind.SERVICE, service(), {"data": False}) as program:
        ended = run(program)
    assert ended.outcome is OutcomeClass.ABORTED
    assert ended.message == "call 1 did not succeed (the switch is stuck)"


def test_server_that_stops_answering_is_named(graph):
    server = graph.start("server")
    with stimulus(graph, StimulusKind.SERVICE, service(timeout_s=0.5), {"data": True}) as program:
        assert run(program).outcome is OutcomeClass.SUCCESS
        server.process.send_signal(19)  # stopped, not ended
        ended = run(program)
        server.process.send_signal(18)
    assert (ended.outcome, ended.message) == (OutcomeClass.TIMED_OUT, "call 1 was not answered")


def test_server_that_dies_is_named(graph):
    server = graph.start("server")
    with stimulus(graph, StimulusKind.SERVICE, service(timeout_s=1.0), {"data": True}) as program:
        server.process.kill()
        server.process.wait(10)
        ended = run(program)
    assert ended.outcome is OutcomeClass.STACK_DIED
    assert "server" in ended.message


def test_action_passes_its_phases(graph):
    graph.start("server")
    with stimulus(graph, StimulusKind.ACTION, action(executing=FEEDBACK), {"order": 3}) as program:
        ended = run(program)
    assert ended.outcome is OutcomeClass.SUCCESS, ended.message
    stamps = ended.stamps_ns
    for phase in ("goal_accepted", "executing"):  # the first feedback may arrive before the acceptance
        assert stamps["goal_sent"] <= stamps[phase] <= stamps["result"]


@pytest.mark.parametrize(("order", "words"), [(-1, "the server rejected the goal"), (0, "aborted")])
def test_failed_goal_has_its_reason(graph, order, words):
    graph.start("server")
    with stimulus(graph, StimulusKind.ACTION, action(), {"order": order}) as program:
        ended = run(program)
    assert ended.outcome is OutcomeClass.ABORTED
    assert words in ended.message


def test_goal_that_takes_too_long_is_canceled(graph):
    graph.start("server")
    with stimulus(graph, StimulusKind.ACTION, action(timeout_s=0.3), {"order": 1000}) as program:
        ended = run(program)
    assert (ended.outcome, ended.message) == (OutcomeClass.TIMED_OUT, "no result within 0.3 s")
    wait_until(lambda: "canceled" in graph.log("server"))


def test_goal_of_a_reset_is_sent_each_time(graph):
    graph.start("server")
    with stimulus(graph, StimulusKind.ACTION, action(), {"order": 1}, reset={"order": 2}) as program:
        for _ in range(2):
            assert run(program).outcome is OutcomeClass.SUCCESS
            assert program.reset(Attempt(uuid.uuid4().hex, 0, None, None)).outcome is OutcomeClass.SUCCESS


@pytest.mark.parametrize(
    ("kind", "spec", "message", "words"),
    [
        (StimulusKind.SERVICE, service(name="/lever"), {"data": True}, "there is no service /lever"),
        (StimulusKind.SERVICE, service(), {"dta": True}, "SetBool_Request has no field 'dta'"),
        (StimulusKind.SERVICE, service(type="none_msgs/srv/Set"), {}, "no package none_msgs"),
        pytest.param(
            *(StimulusKind.ACTION, action(name="/lever"), {"order": 1}, "there is no action server /lever"),
            marks=pytest.mark.acceptance,  # waits for ten seconds, as the case above
        ),
        (StimulusKind.ACTION, action(), {"order": "one"}, "order is 'one', and its type is int32"),
        pytest.param(
            *(StimulusKind.ACTION, action(executing="/nothing"), {"order": 1}, "topic /nothing, which does not exist"),
            marks=pytest.mark.acceptance,
        ),
    ],
)
def test_wrong_settings_are_refused_before_a_trial(graph, kind, spec, message, words):
    graph.start("server")
    assert words in refusal(graph, kind, spec, message).message


@pytest.fixture
def make(rcl, monkeypatch):
    """Fills a message of a type; its Python classes need no middleware."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(rcl)])
    return lambda name, values: fill(find_type(name, name.split("/")[1])(), values, "goal 'near'")


def test_values_reach_nested_fields_and_lists(make):
    values = {"position": [1, 2.5], "name": ["hinge"], "header": {"frame_id": "base", "stamp": {"sec": 3}}}
    first, second = (make("sensor_msgs/msg/JointState", values) for _ in range(2))
    assert first == second
    assert ([*first.position], first.name, first.header.stamp.sec) == ([1.0, 2.5], ["hinge"], 3)
    assert values["position"] == [1, 2.5]


def test_lists_of_messages_are_made(make):
    values = {"basic_types_values": [{"int8_value": 1}, {"float64_value": 2}, {}]}
    made, again = (make("test_msgs/msg/Arrays", values) for _ in range(2))
    assert made == again, "as the goal that a reset sends after each trial"
    assert [each.int8_value for each in made.basic_types_values] == [1, 0, 0]
    assert made.basic_types_values[1].float64_value == 2.0


def test_whole_numbers_and_octets_are_accepted(make):
    made = make("test_msgs/msg/BasicTypes", {"int32_value": 3.0, "byte_value": 2, "float32_value": 1})
    assert (made.int32_value, made.byte_value, made.float32_value) == (3, b"\x02", 1.0)


def test_constants_may_be_named(make):
    assert make("action_msgs/msg/GoalStatus", {"status": "status_succeeded"}).status == 4
    with pytest.raises(ConfigurationError, match="status is 'status_unheard', and its type is int8"):
        make("action_msgs/msg/GoalStatus", {"status": "status_unheard"})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"uint8_value": 256}, "uint8_value is 256, and its type is uint8"),
        ({"int8_value": -129}, "int8_value is -129, and its type is int8"),
        ({"int32_value": 1.5}, "int32_value is 1.5, and its type is int32"),
        ({"int32_value": True}, "int32_value is True, and its type is int32"),
        ({"bool_value": 1}, "bool_value is 1, and its type is boolean"),
        ({"float64_value": "1"}, "float64_value is '1', and its type is double"),
        ({"int8_valu": 1}, "BasicTypes has no field 'int8_valu'"),
    ],
)
def test_value_of_another_type_is_refused(make, values, words):
    with pytest.raises(ConfigurationError) as refused:
        make("test_msgs/msg/BasicTypes", values)
    assert words in refused.value.message


def test_field_in_a_list_of_messages_is_checked(make):
    with pytest.raises(ConfigurationError, match=r"basic_types_values\[1\]: BasicTypes has no field 'int9_value'"):
        make("test_msgs/msg/Arrays", {"basic_types_values": [{}, {"int9_value": 1}, {}]})


@pytest.mark.parametrize(
    ("name", "values"),
    [("Arrays", {"bool_values": [True]}), ("BoundedSequences", {"int32_values": [1, 2, 3, 4]})],
)
def test_list_of_another_length_is_refused(make, name, values):
    with pytest.raises(ConfigurationError, match=r"goal 'near', .*, and its type is"):
        make(f"test_msgs/msg/{name}", values)


@pytest.mark.parametrize("name", ["std_srvs/srv/Bell", "std_srvs/action/SetBool", "std_srvs"])
def test_unknown_type_is_refused(make, name):
    with pytest.raises(ConfigurationError, match="std_srvs"):
        find_type(name, "srv")
