"""Parts of the embedded stack installed in an environment; run by its interpreter, prints them as JSON.

It needs only the standard library, because interpreters of other environments run this file,
and the pytest-ldos installed there may be older.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

PARTS = ("cyclonedds", "mujoco", "ompl", "rosbags", "toppra")
_PROJECT = "pytest-ldos"
_PROVIDER = "pytest_ldos.robot.dds._lttng"
_TIMEOUT_S = 60

_LOAD = """
import ctypes, sys
try:
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    sys.stdout.write(str(error))
    sys.exit(1)
"""


@dataclass(frozen=True)
class Installed:
    """Installed software.

    Attributes:
        versions: versions of the parts, of pytest-ldos and of Python, by name; missing ones are left out.
        is_traced: True if pytest-ldos was built with tracepoints.
        load_fault: why the tracepoints cannot be loaded although they were built; empty if they can.
    """

    versions: dict[str, str]
    is_traced: bool
    load_fault: str = ""

    @property
    def missing(self) -> list[str]:
        return [name for name in (*PARTS, _PROJECT) if name not in self.versions]


def installed_here() -> Installed:
    """Returns what is installed in the environment of this process."""
    found = {name: _version(name) for name in (*PARTS, _PROJECT)}
    versions = {name: text for name, text in found.items() if text}
    provider = _provider()
    fault = load_fault(provider) if provider else ""
    return Installed({**versions, "python": platform.python_version()}, bool(provider), fault)


@lru_cache(maxsize=8)
def installed_in(interpreter: tuple[str, ...]) -> Installed | str:
    """Returns what is installed in the environment of another interpreter, or a text why it cannot be determined."""
    command = [*interpreter, __file__]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=_TIMEOUT_S
        )
        values: dict[str, Any] = json.loads(done.stdout)
        return Installed(**values)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        said: str = error.stderr
        return (said.strip().splitlines() or [str(error)])[-1]
    except (TypeError, ValueError) as error:
        return f"it said what is no description of it ({error})"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _provider() -> str:
    """Path of the library that holds the tracepoints; empty if it was not built."""
    try:
        spec = find_spec(_PROVIDER)
    except ModuleNotFoundError:
        return ""
    return (spec.origin or "") if spec else ""


@lru_cache(maxsize=8)
def load_fault(library: str) -> str:
    """Returns why a library cannot be loaded, in the loader's words; empty if it can.

    A separate process tries it, because LTTng-UST starts threads in each process that loads it.
    """
    command = [sys.executable, "-I", "-c", _LOAD, library]
    environment = {**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "0"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or f"exit status {done.returncode}"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(installed_here())))
