"""Annotations: one line per scenario, on the test that requested the verdict, and no foreign command."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report import workflow_commands
from pytest_ldos.show.report.document import Document, Place, Section
from tests.builders.reports import HOSTILE, full_document, full_section, in_words, section_of
from tests.builders.trials import noisy_set

COMMANDS = ("error", "warning", "notice")


def taken(line: str) -> tuple[str, dict[str, str], str]:
    """A line as the runner takes it: command, properties, text (``ActionCommand.TryParseV2``)."""
    assert line.startswith("::")
    information, _, data = line[2:].partition("::")
    name, _, properties = information.partition(" ")
    pairs = (each.split("=", 1) for each in properties.strip().split(",") if each)
    decoded = {key: decode(value, {":": "%3A", ",": "%2C"}) for key, value in pairs}
    return name, decoded, decode(data, {})


def decode(text: str, more: dict[str, str]) -> str:
    for character, code in {"\r": "%0D", "\n": "%0A", **more, "%": "%25"}.items():
        text = text.replace(code, character)
    return text


def test_message_of_a_regression():
    """The text as GitHub shows it next to the test."""
    (line, infra) = workflow_commands.render(full_document()).splitlines()
    name, properties, text = taken(line)
    assert name == "error"
    assert properties == {
        "file": "tests/scenarios/test_msg_load.py",
        "line": "12",
        "title": "ldos: msg_load regressed",
    }
    assert text.splitlines() == [
        "T1 planning latency +40.0 % (+30.0 % … +50.0 %), 10.5 ms → 14.2 ms",
        "T4 total latency -50.0 % (-60.0 % … -40.0 %), 10.5 ms → 14.2 ms",
        "T4_p99 failed trials only +∞ (+∞ … +∞), 10.5 ms → –",
        "T1 +5.00 ms [+4.9, +5.1]: 80 % of it in transport: /joint_states → /robot, +4.00 ms [+3.9, +4.1]",
        "path state feedback +0.200 ms [+0.1, +0.3]: 80 % of it in transport: /joint_states → /robot, "
        "+4.00 ms [+3.9, +4.1]",
        "CPU time grew in move_group: plan (libplan) 1.0 % → 20.0 % of all CPU time, called by run",
        "CPU time is from profiles, which are not judged (perf at 499 Hz, 4 starts)",
        "changed files, in packages of these functions if there are any: src/plan.cpp +5 -2",
        "→ look first at transport",
    ]
    assert taken(infra) == ("error", {"title": "ldos: cpu_load infra"}, "the stack did not start")


def test_notice_names_unjudged_metrics_of_a_good_verdict():
    head, base = (noisy_set(seed, cv={"T3": 3.0}, session="one") for seed in (1, 2))
    section = section_of(head, base)
    (line,) = workflow_commands.render(Document(sections=(section,))).splitlines()
    name, properties, text = taken(line)
    assert (name, properties["title"]) == ("notice", "ldos on embedded: baseline passed")
    assert text.startswith("T3 is not judged here: its MDE is")


def test_the_title_names_the_stack():
    section = Section(scenario="reach", verdict=Verdict.INFRA, stack="ros2", reasons=("no ROS 2",))
    (line,) = workflow_commands.render(Document(sections=(section,))).splitlines()
    assert taken(line) == ("error", {"title": "ldos on ros2: reach infra"}, "no ROS 2")


@pytest.mark.parametrize("verdict", list(Verdict))
def test_verdicts_with_annotations(verdict):
    text = workflow_commands.render(Document(sections=(Section(scenario="arm", verdict=verdict, reasons=("why",)),)))
    if verdict in {Verdict.PASSED, Verdict.ACCEPTED, Verdict.IMPROVED, Verdict.SHOWN}:
        assert text == ""
    else:
        assert taken(text.rstrip("\n"))[0] in COMMANDS


def test_accepted_changes_are_a_notice():
    changes = ("accepted: T1 +11.8 % (Ada, why; at most +12.3 %)",)
    section = Section(scenario="arm", verdict=Verdict.ACCEPTED, reasons=changes, accepted=changes)
    (line,) = workflow_commands.render(Document(sections=(section,))).splitlines()
    assert taken(line) == ("notice", {"title": "ldos: arm accepted"}, changes[0])


def test_regressions_are_named_before_accepted_changes():
    head = noisy_set(1, factors={"T1": 1.5, "T4": 1.5})
    regressed = dataclasses.replace(section_of(head, noisy_set(2)), accepted=("accepted: T2x",) * 9)
    (line,) = workflow_commands.render(Document(sections=(regressed,))).splitlines()
    assert taken(line)[2].startswith("T1 planning latency")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_reason_of_an_acceptance_is_no_workflow_command(text):
    section = Section(scenario="arm", verdict=Verdict.ACCEPTED, accepted=(text,))
    (line,) = workflow_commands.render(Document(sections=(section,))).splitlines()
    assert line.startswith("::notice ")
    value = workflow_commands.junit_properties(Document(sections=(section,)))["ldos.accepted"]
    assert value.isprintable()


def test_unjudged_scenarios_have_no_annotation():
    assert workflow_commands.render(Document(sections=(dataclasses.replace(full_section(), verdict=None),))) == ""


COMMIT_MESSAGES = ("Fix\n::error file=a.py::x", "100%0A::stop-commands::x", "a,b=c:d::e", "\r::add-mask::secret")


@pytest.mark.parametrize("text", [*HOSTILE, *COMMIT_MESSAGES])
def test_hostile_text_is_no_workflow_command(text):
    document = in_words(full_document(), text)
    lines = workflow_commands.render(document).split("\n")
    assert lines.pop() == ""
    assert len(lines) == 2
    for line in lines:
        assert not [character for character in line if ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0]
        name, properties, shown = taken(line)
        assert name == "error"
        assert {*properties} <= {"file", "line", "title"}
        assert not [each for each in shown.splitlines() if each.lstrip().startswith("::")]
        assert "##[" not in line


@pytest.mark.parametrize(
    "file", ["/etc/passwd", "../x.py", "a/../../x.py", "a/..", "..", "", "a\nb.py", "a\\b.py", "C:\\x", "\x1b[31m"]
)
def test_file_outside_the_root_is_not_named(file):
    section = dataclasses.replace(full_section(), test=Place(file=file, line=3))
    _, properties, _ = taken(workflow_commands.render(Document(sections=(section,))).rstrip("\n"))
    assert {*properties} == {"title"}


def test_special_characters_in_file_names_are_escaped():
    section = dataclasses.replace(full_section(), test=Place(file="a,line=1::b/t%0A..st.py", line=3))
    _, properties, _ = taken(workflow_commands.render(Document(sections=(section,))).rstrip("\n"))
    assert properties["file"] == "a,line=1::b/t%0A..st.py"
    assert properties["line"] == "3"


def test_annotations_are_limited_to_those_github_shows():
    sections = tuple(Section(scenario=f"s{number}", verdict=Verdict.INFRA) for number in range(25))
    lines = workflow_commands.render(Document(sections=sections)).splitlines()
    assert len(lines) == workflow_commands.MOST
    assert lines[-1] == "::error title=ldos::and 16 scenarios more: see the report"


def test_a_long_sentence_is_cut():
    section = Section(scenario="s", verdict=Verdict.INFRA, reasons=("y" * 10_000,) * 100)
    assert len(workflow_commands.render(Document(sections=(section,)))) < 10_000
