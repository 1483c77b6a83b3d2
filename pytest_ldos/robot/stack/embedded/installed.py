"""Determines the parts of the embedded stack in an environment, whose interpreter runs this file and prints JSON.

It needs only the standard library, because the pytest-ldos of another environment may be older.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PARTS = ("cyclonedds", "mujoco", "ompl", "rosbags", "toppra")
_PROJECT = "pytest-ldos"
_WING = "pytest_ldos.robot"
_PLACES = (_WING, "pytest_ldos")
"""Packages that contain `stack` and `dds`: the present one, and that of earlier versions, which can be a base."""
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
    """Installed software."""

    versions: dict[str, str]  # versions of the parts, of pytest-ldos and of Python, by name; missing ones are left out
    is_traced: bool  # True if pytest-ldos was built with tracepoints
    load_fault: str = ""  # why the tracepoints cannot be loaded although they were built; empty if they can
    place: str = _WING  # package that contains `stack` and `dds` there

    @property
    def missing(self) -> list[str]:
        return [name for name in (*PARTS, _PROJECT) if name not in self.versions]

    def node(self, name: str) -> str:
        return f"{self.place}.stack.embedded.{name}"


@cache
def installed_here() -> Installed:
    """Returns the software installed in the environment of this process, as of the first call."""
    place = next((each for each in _PLACES if _file_of(f"{each}.stack.embedded")), _WING)
    versions = {}
    for name in (*PARTS, _PROJECT):
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name) + (_sources(_file_of(place)) if name == _PROJECT else _changed(name))
    provider = _file_of(f"{place}.dds._lttng")
    fault = load_fault(provider) if provider else ""
    return Installed({**versions, "python": platform.python_version()}, bool(provider), fault, place)


def _run(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=env, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=_TIMEOUT_S
    )


@lru_cache(maxsize=8)
def installed_in(interpreter: tuple[str, ...]) -> Installed | str:
    """Returns the software installed in another interpreter's environment, or a text why it cannot be determined."""
    try:
        done = _run([*interpreter, __file__])
        done.check_returncode()
        values: dict[str, Any] = json.loads(done.stdout)
        return Installed(**values)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        output: str = error.stderr
        return (output.strip().splitlines() or [str(error)])[-1]
    except (TypeError, ValueError) as error:
        return f"it printed an invalid description ({error})"


def _changed(name: str) -> str:
    """Local version of a package that was changed since it was installed: a digest."""
    digest, is_changed = hashlib.sha256(), False
    for file in distribution(name).files or ():
        path = Path(str(file.locate()))
        if file.hash is None or ".." in file.parts or not path.is_file():
            continue
        found = hashlib.new(file.hash.mode, path.read_bytes()).digest()
        is_changed |= base64.urlsafe_b64encode(found).decode().rstrip("=") != file.hash.value
        digest.update(found)
    return f"+{digest.hexdigest()[:8]}" if is_changed else ""


def _sources(package: str) -> str:
    """Local version with a digest of the nodes' sources, because checkouts of one version differ."""
    if not package:
        return ""
    sources = b"".join(file.read_bytes() for file in sorted(Path(package).parent.rglob("*.py")))
    return f"+{hashlib.sha256(sources).hexdigest()[:8]}"


def _file_of(module: str) -> str:
    """Path of a module, without importing it; empty if there is none, such as for tracepoints that were not built."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return ""
    return (spec.origin or "") if spec else ""


@lru_cache(maxsize=8)
def load_fault(library: str) -> str:
    """Returns the loader's message if a library cannot be loaded; empty if it can.

    A separate process loads it, because LTTng-UST starts threads in each process that loads it.
    """
    command = [sys.executable, "-I", "-c", _LOAD, library]
    environment = {**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "0"}
    try:
        done = _run(command, environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or f"exit status {done.returncode}"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(installed_here())))
