"""Wheel and source distribution, built and installed as a release is: with and without a compiler. Takes minutes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package_index(tmp_path) -> None:
    """Packages can be installed; what pip says of it is the reason where they cannot."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), "iniconfig"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        pytest.skip(f"no package can be installed: {done.stderr.strip().splitlines()[-1]}")


@pytest.mark.usefixtures("package_index")
def test_both_distributions_install_and_work():
    done = subprocess.run(["sh", ".ci/wheels"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert done.stdout.count(" works: ") == 2
