"""Modules that the planner's process does not load."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from pytest_ldos.robot.stack.embedded.move_group import time_path
assert "toppra" in sys.modules
assert not [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]
import matplotlib.pyplot
assert hasattr(matplotlib.pyplot, "plot")
"""


def test_timing_does_not_load_matplotlib():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
