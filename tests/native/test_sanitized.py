"""The decoder under the address and undefined-behaviour sanitizers: on real traces and on damaged ones."""

from __future__ import annotations

import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.properties.test_decoder_properties import sample_trace

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "pytest_ldos/ctf/native"
BUILD = ROOT / "build/sanitized"
DAMAGED = 400


@pytest.fixture(scope="module")
def decoder() -> Path:
    """The decoder as a program, built once and again when its sources are newer."""
    program = BUILD / "decode"
    sources = [file for file in SOURCES.glob("*.cpp") if file.name != "bindings.cpp"]
    sources.append(Path(__file__).with_name("decode_main.cpp"))
    newest = max(file.stat().st_mtime for file in [*sources, *SOURCES.glob("*.hpp")])
    if not program.exists() or program.stat().st_mtime < newest:
        build(program, sources)
    return program


def build(program: Path, sources: list[Path]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{SOURCES}"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    objects = [str(BUILD / f"{source.stem}.o") for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = [
            ["g++", *flags, "-c", str(source), "-o", target] for source, target in zip(sources, objects, strict=True)
        ]
        list(pool.map(lambda command: subprocess.run(command, check=True), commands))
    subprocess.run(["g++", *flags, *objects, "-o", str(program)], check=True)


def run(decoder: Path, directories: list[Path]) -> list[str]:
    done = subprocess.run(
        [str(decoder), *map(str, directories)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_real_traces(decoder, golden):
    names = ["talker_listener", "pipeline_multi_links", "truncated_cut", "truncated_live_meta", "discarded"]
    directories = [metadata.parent for name in names for metadata in golden(name).rglob("metadata")]
    lines = run(decoder, directories)
    assert all("events" in line for line in lines)


def test_damaged_traces(decoder, tmp_path):
    """Random damage from a fixed seed: nothing may be read or written out of bounds."""
    rng = random.Random(20261121)
    source = tmp_path / "source"
    sample_trace(source)
    originals = {file.name: file.read_bytes() for file in source.iterdir()}
    directories = []
    for number in range(DAMAGED):
        directory = tmp_path / str(number)
        directory.mkdir()
        victim = rng.choice(sorted(originals))
        for name, content in originals.items():
            (directory / name).write_bytes(damage(rng, content) if name == victim else content)
        directories.append(directory)
    lines = run(decoder, directories)
    assert len(lines) == DAMAGED
    assert any("refused" in line for line in lines)


def damage(rng: random.Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data)) if data else 0
        match rng.randint(0, 3):
            case 0 if data:
                data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            case 1:
                del data[at : at + rng.randint(1, 40)]
            case 2:
                data[at:at] = rng.randbytes(rng.randint(1, 40))
            case _:
                del data[rng.randrange(len(data) + 1) :]
    return bytes(data)
