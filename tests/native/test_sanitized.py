"""The decoder under the address and undefined-behaviour sanitizers: on real traces and on damaged ones."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.native.hostile_inputs import write_hostile_inputs
from tests.native.program import HERE, build
from tests.native.seeds import write_seeds
from tests.properties.test_decoder_properties import sample_trace

SANITIZERS = "address,undefined"
DAMAGED = 400


@pytest.fixture(scope="module")
def decoder() -> Path:
    """The decoder as a program."""
    return build("decode_main.cpp", sanitizers=SANITIZERS)


@pytest.fixture(scope="module")
def replay() -> Path:
    """The fuzz target as a program that runs the files it is given."""
    return build("replay_main.cpp", "fuzz_decoder.cpp", sanitizers=SANITIZERS)


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


LIMITS = "max_allocation_size_mb=512:hard_rss_limit_mb=1024"


@pytest.mark.acceptance
def test_hostile_inputs_stay_within_limits(replay, tmp_path):
    """Written to hang or to fill memory, or found by the fuzzer: bounded time, bounded space."""
    inputs = [*sorted((HERE / "regressions").glob("*.trace")), *write_hostile_inputs(tmp_path)]
    environment = {**os.environ, "ASAN_OPTIONS": LIMITS}
    for path in inputs:
        done = subprocess.run(
            [str(replay), str(path)], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, (path.name, done.stderr)


def test_seeds_of_the_fuzzer(replay, tmp_path):
    assert write_seeds(tmp_path) > 10
    done = subprocess.run([str(replay), *map(str, tmp_path.iterdir())], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
