"""One thread and several give the same tables, under the sanitizers: of threads, and of memory."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.native.program import build
from tests.native.test_sanitized import damage
from tests.properties.test_decoder_properties import sample_trace

SANITIZERS = (pytest.param("thread", marks=pytest.mark.acceptance), "address,undefined")
GOLDEN = ("talker_listener", "pipeline_multi_links", "truncated_cut", "service_action")
DAMAGED = 300


@pytest.fixture(scope="module", params=SANITIZERS)
def compare(request) -> Path:
    """The program that compares, built with one of the sanitizers."""
    return build("compare_main.cpp", sanitizers=request.param)


def run(compare: Path, directories: list[Path]) -> None:
    command = [str(compare), *map(str, directories)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(directories)} compared, 0 different" in done.stdout


def test_real_traces(compare, golden):
    run(compare, [metadata.parent for name in GOLDEN for metadata in golden(name).rglob("metadata")])


def test_damaged_traces(compare, tmp_path):
    """Random damage from a fixed seed; a damaged clock may go back, or cut chunks anywhere."""
    rng = random.Random(20261122)
    source = tmp_path / "source"
    sample_trace(source)
    metadata, stream = ((source / name).read_bytes() for name in ("metadata", "s_0"))
    directories = []
    for number in range(DAMAGED):
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "metadata").write_bytes(metadata)
        for name in ("s_0", "s_1"):
            (directory / name).write_bytes(damage(rng, stream) if rng.random() < 0.5 else stream)
        directories.append(directory)
    run(compare, directories)
