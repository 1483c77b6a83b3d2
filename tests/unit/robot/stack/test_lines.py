"""The line protocol, spoken with programs that are real processes."""

from __future__ import annotations

import sys

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import TrialTag
from pytest_ldos.robot.stack.protocol import Attempt, single_case
from pytest_ldos.robot.stack.senders import Conversation, ProgramStimulus

PROGRAM = """
import json, sys, time
def say(**event): print(json.dumps(event), flush=True)
say(event="ready", resets=True)
for line in sys.stdin:
    asked = json.loads(line)
    print(line, end="", file=sys.stderr, flush=True)
    begin = time.monotonic_ns()
    stamps = {{}} if asked["command"] == "reset" else {{"goal_sent": begin, "result": time.monotonic_ns()}}
    say(event="ended", id=asked["id"], stamps_ns=stamps, numbers={{"distance_m": 3}}, **{extra})
"""


@pytest.fixture
def stimulate(tmp_path):
    group = ProcessGroup(log_directory=tmp_path)

    def start(code: str) -> ProgramStimulus:
        conversation = Conversation(
            group.start("stimulus", [sys.executable, "-c", code], talk=True), group.describe_ended
        )
        assert conversation.await_ready(60)
        return ProgramStimulus(conversation, single_case("script"), timeout_s=60, why=group.describe_ended)

    yield start
    group.stop()


def attempt(index: int = 0, trial: TrialTag | None = None) -> Attempt:
    return Attempt(f"{index:032x}", index, 7, trial)


def test_a_trial_carries_stamps_and_numbers(stimulate):
    stimulus = stimulate(PROGRAM.format(extra='{"pids": [4711]}'))
    (case,) = stimulus.cases("reach")
    outcome = stimulus.run(case, attempt(3, TrialTag("baseline", 3)))
    assert outcome.outcome is OutcomeClass.SUCCESS
    assert stimulus.pids == {4711}
    assert outcome.numbers == {"distance_m": 3.0}
    assert outcome.stamps_ns["goal_sent"] <= outcome.stamps_ns["result"]


def test_command_has_the_trials_number(stimulate, tmp_path):
    stimulus = stimulate(PROGRAM.format(extra="{}"))
    stimulus.run(stimulus.cases()[0], attempt(3, TrialTag("baseline", 3)))
    log = (tmp_path / "stimulus.log").read_text()
    assert '"scenario": "baseline", "index": 3' in log
    assert '"seed": 7' in log


def test_program_that_requests_it_receives_reset_commands(stimulate):
    outcome = stimulate(PROGRAM.format(extra="{}")).reset(attempt())
    assert outcome is not None
    assert outcome.outcome is OutcomeClass.SUCCESS


def test_program_without_request_receives_no_reset_command(stimulate):
    stimulus = stimulate(PROGRAM.format(extra="{}").replace(", resets=True", ""))
    assert stimulus.reset(attempt()) is None


def test_failure_keeps_its_class_and_message(stimulate):
    stimulus = stimulate(PROGRAM.format(extra='{"outcome": "timed_out", "message": "the door stayed shut"}'))
    outcome = stimulus.run(stimulus.cases()[0], attempt())
    assert (outcome.outcome, outcome.message) == (OutcomeClass.TIMED_OUT, "the door stayed shut")


def test_an_end_without_stamps_is_no_success(stimulate):
    stimulus = stimulate(PROGRAM.format(extra="{}").replace('"goal_sent": begin, ', '"planning": begin, '))
    outcome = stimulus.run(stimulus.cases()[0], attempt())
    assert outcome.outcome is OutcomeClass.STACK_DIED
    assert "without stamps" in outcome.message


def test_a_program_that_dies_ends_the_trial(stimulate):
    stimulus = stimulate('print(\'{"event": "ready"}\', flush=True); input(); raise SystemExit(3)')
    outcome = stimulus.run(stimulus.cases()[0], attempt())
    assert outcome.outcome is OutcomeClass.STACK_DIED
    assert "exit code 3" in outcome.message


@pytest.mark.parametrize(
    "wrong", ['{"outcome": "splendid"}', '{"numbers": {"a": "b"}}', '{"stamps_ns": {"result": "soon"}}', '{"id": 3}']
)
def test_invalid_end_is_reported(stimulate, wrong):
    program = PROGRAM.format(extra="{}").replace(
        'say(event="ended", id=asked["id"], stamps_ns=stamps, numbers={"distance_m": 3}, **{})',
        f'say(**{{**dict(event="ended", id=asked["id"]), **{wrong}}})',
    )
    stimulus = stimulate(program)
    stimulus.run(stimulus.cases()[0], attempt())
    assert "the stimulus printed a line that is not an event" in stimulus._conversation.misunderstood


def test_a_refusal_is_an_error_with_its_remedy(tmp_path):
    group = ProcessGroup(log_directory=tmp_path)
    code = 'print(\'{"event": "refused", "message": "no such door", "remedy": "open another"}\', flush=True); input()'
    try:
        conversation = Conversation(
            group.start("stimulus", [sys.executable, "-c", code], talk=True), group.describe_ended
        )
        with pytest.raises(ConfigurationError) as refused:
            conversation.await_ready(60)
        assert (refused.value.message, refused.value.remedy) == ("no such door", "open another")
    finally:
        group.stop()
