"""Processes of this run are known, wherever they went; those of others are not counted among them."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.builders.ours import OURS, is_of_others


@pytest.mark.parametrize(
    ("environment", "of_others"),
    [
        ({}, False),
        ({OURS: "another"}, True),
        ({OURS: None}, True),
        ({OURS: None, "PATH": None}, False),
    ],
    ids=["ours", "another run's", "no run's", "one that overwrote its environment"],
)
def test_process_is_recognised_by_its_inherited_environment(environment, of_others):
    given = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    waits = ["/bin/sh", "-c", "echo; read _"]
    process = subprocess.Popen(waits, env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert is_of_others(process.pid) == of_others
    finally:
        process.kill()
        process.communicate()


def test_ended_process_is_not_recognised():
    process = subprocess.Popen(["true"])
    process.wait()
    assert not is_of_others(process.pid)
