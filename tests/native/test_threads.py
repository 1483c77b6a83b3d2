"""One thread and several give the same tables, under the sanitizers: of threads, and of memory."""

from __future__ import annotations

import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.native.test_sanitized import SOURCES, damage
from tests.properties.test_decoder_properties import sample_trace

BUILD = Path(__file__).parents[2] / "build/sanitized"
SANITIZERS = ("thread", "address,undefined")
GOLDEN = ("talker_listener", "pipeline_multi_links", "truncated_cut", "service_action")
DAMAGED = 300


@pytest.fixture(scope="module", params=SANITIZERS)
def compare(request) -> Path:
    """The program that compares, built with one of the sanitizers where its sources are newer."""
    folder = BUILD / f"compare_{request.param.replace(',', '_')}"
    program = folder / "compare"
    sources = [file for file in SOURCES.glob("*.cpp") if file.name != "bindings.cpp"]
    sources.append(Path(__file__).with_name("compare_main.cpp"))
    newest = max(file.stat().st_mtime for file in [*sources, *SOURCES.glob("*.hpp")])
    if not program.exists() or program.stat().st_mtime < newest:
        build(program, sources, sanitizers=request.param)
    return program


def build(program: Path, sources: list[Path], *, sanitizers: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++20", "-O1", "-g", "-pthread", f"-I{SOURCES}"]
    flags += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    objects = [str(program.parent / f"{source.stem}.o") for source in sources]

    def compile_one(source: Path, target: str) -> None:
        subprocess.run(["g++", *flags, "-c", str(source), "-o", target], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, sources, objects))
    subprocess.run(["g++", *flags, *objects, "-o", str(program)], check=True)


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
