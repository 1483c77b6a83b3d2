"""Own tracepoints of a program in C++ that the plugin starts and records: its spans are gated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_ldos.base import exit_codes
from tests.builders.pages import ROOT, parse_page
from tests.integration.project import Project

HOW_TO = ROOT / "docs/how-to/gate-your-own-tracepoints.md"
WORK = ROOT / "tests/native/work/work.cpp"

SETTINGS = """
[tool.pytest.ini_options]

[tool.ldos]
metrics = ["span:my_pkg:solve_begin:my_pkg:solve_end", "value:my_pkg:solve_end:cost:max", "count:my_pkg:{event}"]

[tool.ldos.stack]
kind = "embedded"
stimulus = "script"

[tool.ldos.stimulus.script]
command = ["{program}", "{duration_us}"]
"""
SPAN = "span_my_pkg_solve_begin_my_pkg_solve_end_p50"


@pytest.fixture
def program(tmp_path) -> Path:
    """The program, with the provider that the how-to page shows."""
    folder = tmp_path / "program"
    folder.mkdir()
    for session in parse_page("", HOW_TO.read_text("utf-8")):
        for block in session.blocks:
            if block.file.startswith("my_pkg_tp."):
                (folder / block.file).write_text(block.text, "utf-8")
    flags = ["-O1", f"-I{folder}"]
    subprocess.run(["gcc", *flags, "-c", folder / "my_pkg_tp.c", "-o", folder / "tp.o"], check=True)
    parts = [WORK, folder / "tp.o", "-o", folder / "work", "-llttng-ust", "-ldl"]
    subprocess.run(["g++", "-std=c++20", *flags, *parts], check=True)
    return folder / "work"


def measure(
    project: Project, program: Path, duration_us: int, *, trials: int, event: str = "solve_begin"
) -> tuple[int, str]:
    project.write("pyproject.toml", SETTINGS.format(program=program, duration_us=duration_us, event=event))
    return project.run("-m", "baseline", f"--ldos-trials={trials}", "--ldos-confirm=0")


@pytest.mark.acceptance
def test_spans_are_those_of_the_programs_clock(project, program, leaves_nothing):
    code, output = measure(project, program, 5_000, trials=2)
    assert code == 0, output
    for trial in project.saved().trials:
        found = trial.measurements
        assert trial.numbers["shortest_ns"] <= found[SPAN].number * 1e6 <= trial.numbers["longest_ns"]
        assert found[SPAN].details["spans"] == 11
        assert found["count_my_pkg_solve_begin"].number == 11
        assert found["value_my_pkg_solve_end_cost_max"].number == 5


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_planted_slowdown_of_a_span_is_red(project, program):
    assert measure(project, program, 5_000, trials=12)[0] == 0
    code, output = measure(project, program, 20_000, trials=12)
    assert code == exit_codes.REGRESSED, output
    assert f"{SPAN} (my_pkg:solve_begin to my_pkg:solve_end, p50) regressed: +" in output


@pytest.mark.acceptance
def test_unknown_event_is_refused_before_the_first_trial(project, program, leaves_nothing):
    code, output = measure(project, program, 5_000, trials=2, event="solve_bgein")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "the trace has no event my_pkg:solve_bgein: did you mean 'my_pkg:solve_begin'?" in output
    assert project.saved().trials == ()
