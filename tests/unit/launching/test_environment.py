"""Environment variables of each launch's own processes."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partialmethod
from types import ModuleType

import pytest

from pytest_ldos.launching import processes_get


class Executable:
    """The patched part of launch's class."""

    def prepare(self, context, action):
        self.final_env = {"OWN": "1"}


ORIGINAL = Executable.prepare


@pytest.fixture(autouse=True)
def launch(monkeypatch):
    descriptions = ModuleType("launch.descriptions")
    descriptions.Executable = Executable
    monkeypatch.setitem(sys.modules, "launch", ModuleType("launch"))
    monkeypatch.setitem(sys.modules, "launch.descriptions", descriptions)


def environment_in(context: str) -> dict[str, str]:
    process = Executable()
    process.prepare(context, None)
    return process.final_env


def open_recording(name: str) -> ExitStack:
    recording = ExitStack()
    recording.enter_context(processes_get({name: "recorded"}, lambda context: context == name))
    return recording


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_recordings_may_end_in_any_order(order):
    recordings = {name: open_recording(name) for name in ("first", "second")}
    for name in recordings:
        assert environment_in(name) == {"OWN": "1", name: "recorded"}
    recordings[order[0]].close()
    assert environment_in(order[0]) == {"OWN": "1"}
    assert environment_in(order[1]) == {"OWN": "1", order[1]: "recorded"}
    recordings[order[1]].close()
    assert Executable.prepare is ORIGINAL


def test_variables_of_the_tests_are_withheld_unless_set_by_launch(monkeypatch):
    monkeypatch.setenv("COVERAGE_PROCESS_START", "setup.cfg")
    monkeypatch.setenv("PYTHONDEVMODE", "1")
    monkeypatch.setattr(
        Executable, "prepare", lambda self, *_: setattr(self, "final_env", {**os.environ, "PYTHONDEVMODE": "0"})
    )
    with processes_get({"RECORDED": "yes"}, lambda context: context == "ours"):
        ours, other = environment_in("ours"), environment_in("other")
    assert "COVERAGE_PROCESS_START" not in ours
    assert ours["PYTHONDEVMODE"] == "0"
    assert other["COVERAGE_PROCESS_START"] == "setup.cfg"


def test_another_recording_may_follow():
    for name in ("first", "second"):
        with processes_get({name: "recorded"}, lambda context: True):
            assert environment_in("any") == {"OWN": "1", name: "recorded"}
        assert Executable.prepare is ORIGINAL


def test_other_wrappers_are_kept(monkeypatch):
    monkeypatch.setattr(Executable, "prepare", ORIGINAL)
    with processes_get({"A": "1"}, lambda context: True):
        ours = Executable.prepare
        theirs = partialmethod(ours)
        Executable.prepare = theirs
    assert vars(Executable)["prepare"] is theirs
    assert environment_in("any") == {"OWN": "1"}
