"""The shell's programs of ``lab/``, as shellcheck and dash read them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.builders.lab import LAB

SCRIPTS = sorted(
    path
    for path in LAB.rglob("*")
    if path.is_file() and (path.suffix == ".sh" or path.read_bytes().startswith(b"#!/bin/sh"))
)


@pytest.mark.skipif(
    shutil.which("shellcheck") is None, reason="shellcheck is not installed: apt-get install shellcheck"
)
def test_shellcheck_finds_nothing():
    done = subprocess.run(["shellcheck", "-x", *map(str, SCRIPTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_they_are_posix_shell():
    assert len(SCRIPTS) > 15
    shell = shutil.which("dash") or "sh"
    for script in SCRIPTS:
        subprocess.run([shell, "-n", str(script)], check=True)
