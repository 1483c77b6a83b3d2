"""Descriptions of exit statuses."""

from __future__ import annotations

import pytest

from pytest_ldos.host.processes import describe_end


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-9, "was killed by SIGKILL"),
        (-40, "was killed by signal 40"),
        (-99, "was killed by signal 99"),
    ],
)
def test_exit_codes_and_signals(code, words):
    assert describe_end("arm-1", code) == f"arm-1 {words}"
