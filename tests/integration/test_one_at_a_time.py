"""The project's own scenario tests hold the machine, as everybody's do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pytest_ldos.base import exit_codes
from pytest_ldos.host.lock import measuring_lock

PROJECT = Path(__file__).parents[2]


def test_a_second_measurement_of_this_project_is_refused(tmp_path):
    """Holding the lock that the other run inherits the name of: nothing is started."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "baseline", f"--ldos-output={tmp_path}"]
    with measuring_lock():
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)
    assert "another measuring session holds this machine" in done.stdout
    assert done.returncode == exit_codes.INVALID
