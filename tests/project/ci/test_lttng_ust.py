"""``.ci/lttng-ust``: releases are held to their checksums before anything of them runs, then built in order."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci" / "lttng-ust"
SUMS = SCRIPT.with_suffix(".sha256")
TOOLS = ("bzip2", "curl", "make")
ABSENT = [name for name in TOOLS if shutil.which(name) is None]
needs_tools = pytest.mark.skipif(
    bool(ABSENT), reason=f"{', '.join(ABSENT)} not installed (make setup installs it where apt has it)"
)

CONFIGURE = """#!/bin/sh
echo "configured %s $*" >>"$TOLD"
printf 'all:\\n\\ninstall:\\n\\techo "installed %s" >>"$(TOLD)"\\n' >Makefile
"""


def release(file: Path, name: str) -> str:
    """Writes a release; its checksum."""
    text = (CONFIGURE % (name, name)).encode()
    member = tarfile.TarInfo(f"{name}-1/configure")
    member.size, member.mode = len(text), 0o755
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w:bz2") as archive:
        archive.addfile(member, io.BytesIO(text))
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def build(tmp_path) -> Callable[[], subprocess.CompletedProcess[str]]:
    files = tmp_path / "files"
    first, second = release(files / "urcu/rcu.tar.bz2", "rcu"), release(files / "ust/ust.tar.bz2", "ust")
    script = tmp_path / "ci" / "lttng-ust"
    script.parent.mkdir()
    script.write_bytes(SCRIPT.read_bytes())
    script.with_suffix(".sha256").write_text(f"{first}  urcu/rcu.tar.bz2\n{second}  ust/ust.tar.bz2\n", "utf-8")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "ldconfig").symlink_to("/bin/true")

    def run() -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "LTTNG_FILES": f"file://{files}",
            "TOLD": str(tmp_path / "reported"),
            "TMPDIR": str(tmp_path),
        }
        command = ["sh", str(script), str(tmp_path / "prefix")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    return run


@needs_tools
def test_releases_are_built_one_after_the_other(build, tmp_path):
    done = build()
    assert done.returncode == 0, done.stderr
    reported = (tmp_path / "reported").read_text("utf-8").splitlines()
    assert [line.split(" --")[0] for line in reported] == [
        "configured rcu",
        "installed rcu",
        "configured ust",
        "installed ust",
    ]
    assert f"--prefix={tmp_path / 'prefix'} --libdir={tmp_path / 'prefix'}/lib64" in reported[0]
    assert list(tmp_path.glob("tmp.*")) == []


@needs_tools
def test_a_release_with_another_checksum_is_refused_before_anything_runs(build, tmp_path):
    release(tmp_path / "files/ust/ust.tar.bz2", "other")
    done = build()
    assert done.returncode != 0
    assert "ust/ust.tar.bz2: FAILED" in done.stdout + done.stderr
    assert not (tmp_path / "reported").exists()


@needs_tools
def test_missing_release(build, tmp_path):
    (tmp_path / "files/urcu/rcu.tar.bz2").unlink()
    done = build()
    assert done.returncode != 0
    assert not (tmp_path / "reported").exists()


@pytest.mark.parametrize("absent", ["curl", "bzip2"])
def test_missing_tools_are_named(tmp_path, absent):
    for name in {"curl", "bzip2"} - {absent}:
        (tmp_path / name).symlink_to("/bin/true")
    command = [shutil.which("sh"), str(SCRIPT), str(tmp_path / "prefix")]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"lttng-ust: {absent} is missing; install it\n")


def test_releases_are_pinned():
    """LTTng-UST 2.13 is the first whose library is liblttng-ust.so.1, as in Debian 12 and Ubuntu 24.04."""
    lines = SUMS.read_text("utf-8").splitlines()
    assert [re.fullmatch(r"[0-9a-f]{64}  ([\w/-]+)-\d+\.\d+\.\d+\.tar\.bz2", line)[1] for line in lines] == [
        "urcu/userspace-rcu",
        "lttng-ust/lttng-ust",
    ]
    assert "lttng-ust-2.13." in lines[1]
