"""``ldos join``: results of two stacks in one report, with one verdict."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report import json_text, markdown, workflow_commands
from pytest_ldos.show.report.document import Document
from pytest_ldos.show.report.json_text import read_document
from tests.builders.command_line import run_ldos
from tests.builders.reports import full_section, version


@pytest.fixture
def of(tmp_path):
    """Writes the result of one stack."""

    def write(stack: str, verdict: Verdict, kind: str) -> str:
        head = version("this run", stack=f"{stack} (its versions)")
        section = full_section(scenario="baseline", verdict=verdict, stack=stack, head=head)
        file = tmp_path / f"{kind}.json"
        file.write_text(json_text.render(Document(sections=(section,))), "utf-8")
        return f"{kind}={file}"

    return write


def test_two_stacks_are_two_sections_and_one_verdict(of, tmp_path):
    given = of("ros2-mock", Verdict.PASSED, "ros2"), of("embedded", Verdict.REGRESSED, "embedded")
    files = tmp_path / "joined.json", tmp_path / "joined.html"
    done = run_ldos("join", *given, *(word for file in files for word in ("--output", file)))
    assert (done.returncode, done.stderr) == (0, "")
    joined = read_document(files[0])
    assert [(each.scenario, each.stack) for each in joined.sections] == [
        ("baseline", "ros2-mock"),
        ("baseline", "embedded"),
    ]
    assert joined.verdict is Verdict.REGRESSED
    text = markdown.render(joined)
    assert (
        next(line for line in text.splitlines() if line.startswith("#"))
        == "## ❌ ldos on ros2-mock and embedded: regressed"
    )
    assert "baseline on ros2-mock: passed" in text
    assert "baseline on embedded: regressed" in text
    for stack in ("ros2-mock", "embedded"):
        assert f"stack: {stack} (its versions)" in text
        assert f">baseline on {stack}<" in files[1].read_text("utf-8")
    assert "title=ldos on embedded%3A baseline regressed" in workflow_commands.render(joined)


def test_a_stack_without_a_result_is_infra(of, tmp_path):
    output = tmp_path / "joined.json"
    lost = f"ros2={tmp_path / 'nowhere.json'}"
    assert run_ldos("join", lost, of("embedded", Verdict.PASSED, "embedded"), "--output", output).returncode == 0
    missing, measured = read_document(output).sections
    assert (missing.stack, missing.verdict) == ("ros2", Verdict.INFRA)
    assert "ended without a result" in missing.reasons[0]
    assert measured.stack == "embedded"
    assert json.loads(output.read_text("utf-8"))["verdict"] == "infra"


def test_joined_result_is_printed_without_output_file(of):
    done = run_ldos("join", of("ros2-mock", Verdict.PASSED, "ros2"), of("embedded", Verdict.PASSED, "embedded"))
    assert done.returncode == 0
    assert "baseline on ros2-mock" in done.stdout


@pytest.mark.parametrize("given", ["results/result.json", "=results/result.json", "ros2="])
def test_a_result_without_its_stack_is_refused(given):
    done = run_ldos("join", given)
    assert done.returncode == 2
    assert "names no stack with its result" in done.stderr


def test_file_that_is_not_a_report_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}", "utf-8")
    assert run_ldos("join", f"ros2={tmp_path / 'x.json'}").returncode == 2


def test_the_worse_of_two_exit_codes_is_the_smaller():
    """By the severity of the verdicts that they stand for; pytest's own are worse than any."""
    failing = sorted((each for each in Verdict if each.exit_code), key=lambda each: each.severity, reverse=True)
    codes = [each.exit_code for each in failing]
    assert codes == sorted(codes)
    assert max(pytest.ExitCode) < min(exit_codes.REGRESSED, *codes)
