"""Features without the libraries of the extras: commands that read traces and records, the API, the plugin."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

IMPORTED_AS = {"py-spy": "py_spy", "hdrhistogram": "hdrh", "osrf-pycommon": "osrf_pycommon"}

WITHOUT = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
importlib.import_module(sys.argv[1])
"""


def libraries_of_extras() -> set[str]:
    """As they are imported; what is also needed without any extra is none of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: found for name, found in project["optional-dependencies"].items() if name != "dev"}
    named = {re.split(r"[\s\[<>=;!~]", each)[0] for found in extras.values() for each in found}
    always = {re.split(r"[\s\[<>=;!~]", each)[0] for each in project["dependencies"]}
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in named - always - {"packaging"}}


def test_extras_are_read():
    assert {
        "cyclonedds",
        "rosbags",
        "mujoco",
        "ompl",
        "toppra",
        "hdrh",
        "matplotlib",
        "py_spy",
    } <= libraries_of_extras()


@pytest.mark.parametrize(
    "module",
    ["pytest_ldos.cli.main", "pytest_ldos.api", "pytest_ldos.plugin.scenario_test"],
)
def test_package_is_imported_without_extras(module):
    code = f"ABSENT = {sorted(libraries_of_extras())!r}\n{WITHOUT}"
    done = subprocess.run([sys.executable, "-c", code, module], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
