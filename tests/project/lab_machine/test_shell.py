"""The shell's programs of ``lab/``, as dash reads them; shellcheck does in `make check`."""

from __future__ import annotations

import shutil
import subprocess

from tests.builders.lab import LAB

SCRIPTS = sorted(
    path
    for path in LAB.rglob("*")
    if path.is_file() and (path.suffix == ".sh" or path.read_bytes().startswith(b"#!/bin/sh"))
)


def test_scripts_are_posix_shell():
    assert len(SCRIPTS) > 15
    shell = shutil.which("dash") or "sh"
    for script in SCRIPTS:
        subprocess.run([shell, "-n", str(script)], check=True)
