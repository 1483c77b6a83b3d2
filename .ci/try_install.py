"""Tries an installed pytest-ldos from an empty folder, as somebody does who has just installed it.

Usage: PYTHON .ci/try_install.py TRACE.tar.xz, with the interpreter of the environment that has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_TIMEOUT_S = 120
_SCRIPTS = Path(sysconfig.get_path("scripts"))
_PLAIN = "def test_plain():\n    pass\n"
_SCENARIO = """import pytest

@pytest.mark.baseline
def test_reach(ldos_scenario):
    ldos_scenario()
"""
_INVALID = 11


def try_install(archive: Path, folder: Path) -> None:
    """Raises `SystemExit` with the output if a check fails."""
    ours = version("pytest-ldos")
    (folder / "test_plain.py").write_text(_PLAIN, "utf-8")
    (folder / "test_reach.py").write_text(_SCENARIO, "utf-8")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "trace", filter="data")

    where = run(folder, [sys.executable, "-c", "import pytest_ldos; print(pytest_ldos.__file__)"])
    require(_is_below(where, sysconfig.get_path("platlib")), f"pytest_ldos is imported from elsewhere: {where}")
    run(folder, [sys.executable, "-c", "import pytest_ldos.api, pytest_ldos.trace.ctf._decoder"])
    run(folder, [ldos(), "--version"], f"pytest-ldos {ours}")
    run(folder, [*pytest(), "--trace-config", "test_plain.py"], f"pytest-ldos-{ours}", "1 passed")
    run(folder, [*pytest(), "--markers"], "@pytest.mark.baseline")
    run(folder, [ldos(), "doctor"], "CPU", status=None)
    run(folder, [ldos(), "analyze", str(folder / "trace")], "talker")
    run(folder, [ldos(), "init", "first"], "wrote first/test_arm.py")
    run(folder / "first", [*pytest(), "--collect-only", "-q"], "test_reach_in_a_busy_cell")
    if not is_installed("mujoco"):
        remedy = "pip install 'pytest-ldos[embedded]'"
        run(folder, [*pytest(), "-m", "baseline", "--ldos-stack=embedded"], remedy, status=_INVALID)


def run(folder: Path, command: list[str], *wanted: str, status: int | None = 0) -> str:
    """Runs a command and returns its output.

    Args:
        wanted: text that it must print.
        status: with which it must end; ``None`` for any.
    """
    environment = {**os.environ, "COLUMNS": "200", "PYTHONPATH": ""}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    output = done.stdout + done.stderr
    message = f"{' '.join(command)} ended with {done.returncode}:\n{output}"
    require(status is None or done.returncode == status, message)
    require("Traceback" not in output, message)
    for text in wanted:
        require(text in output, f"{message}\nand does not say {text!r}")
    return done.stdout.strip()


def require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(f"try_install: {message}")


def pytest() -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]


def ldos() -> str:
    return str(_SCRIPTS / "ldos")


def is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _is_below(file: str, folder: str) -> bool:
    return Path(file).resolve().is_relative_to(Path(folder).resolve())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        try_install(Path(sys.argv[1]).resolve(), Path(made).resolve())
    sys.stdout.write(f"pytest-ldos {version('pytest-ldos')} works: {sys.executable}\n")
