"""Progress during trials."""

from __future__ import annotations

import io

import pytest

from pytest_ldos.plugin.messages import encodable
from tests.plugin.conftest import AGAIN, SCENARIO

TWO = ("--ldos-trials=2", "--ldos-warmup=1")
START = "baseline: trials to make: 2, 1 before them to warm up"


def test_quiet_run_prints_a_line_per_start(run, project):
    project.makepyfile(test_scenario=SCENARIO + AGAIN)
    result = run("-q", *TWO)
    shown = [line.rstrip() for line in result.stdout.lines if not line.startswith("ldos: ")]
    assert shown[:3] == [START, ".", START.replace("baseline", "again")]
    assert shown[3].startswith(".")
    assert "trial 1 of 2" not in result.stdout.str()


def test_quietest_run_prints_no_progress(run):
    assert START not in run("-qq", *TWO).stdout.str()


def test_non_ascii_characters_are_escaped_on_an_ascii_terminal():
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii") as terminal:
        with pytest.raises(UnicodeEncodeError):
            terminal.write("cc1plus \N{HORIZONTAL ELLIPSIS}")
        terminal.write(encodable("cc1plus \N{HORIZONTAL ELLIPSIS}", terminal))
        terminal.flush()
        assert terminal.buffer.getvalue() == rb"cc1plus \u2026"
