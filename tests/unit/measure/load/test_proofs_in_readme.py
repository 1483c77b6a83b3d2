"""The README's table of proofs and the proofs themselves name the same fields."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from pytest_ldos.measure.load.cache_load import CacheLoadProof
from pytest_ldos.measure.load.cpu_limit import CpuLimitProof
from pytest_ldos.measure.load.cpu_load import CpuLoadProof
from pytest_ldos.measure.load.flood_proof import FloodProof
from pytest_ldos.measure.load.guard_proof import GuardProof
from pytest_ldos.measure.load.io_load import IoLoadProof
from pytest_ldos.measure.load.memory_load import MemoryLoadProof
from pytest_ldos.measure.load.network_impairment import NetworkImpairmentProof
from pytest_ldos.measure.load.noisy_neighbour import NeighbourProof
from pytest_ldos.measure.load.protocol import LoadProof
from pytest_ldos.measure.load.scheduler_group import GroupedProof
from pytest_ldos.scenario.words import LOADS

README = Path(__file__).parents[4] / "README.md"
ASKED = {
    "kind",
    "workers",
    "percent",
    "method",
    "size_mb",
    "publishers",
    "size_bytes",
    "quota_percent",
    "asked",
    "stack",
    "topic",
    "deadline_ms",
}
"""What a proof repeats of its load; and `details`, which is text for people."""

PROOFS = {
    "cpu_load": CpuLoadProof,
    "memory_load": MemoryLoadProof,
    "cache_load": CacheLoadProof,
    "io_load": IoLoadProof,
    "dds_flood": FloodProof,
    "guard": GuardProof,
    "cpu_limit": CpuLimitProof,
    "network_impairment": NetworkImpairmentProof,
    "noisy_neighbour": NeighbourProof,
}


def documented() -> dict[str, set[str]]:
    """Fields by what stands in the table's first column; an empty one means the row above."""
    _, _, table = README.read_text("utf-8").partition("| proof of | field |")
    found: dict[str, set[str]] = {}
    names: list[str] = []
    for line in table.partition("\n\n")[0].splitlines()[2:]:
        first, fields = line.split("|")[1:3]
        names = re.findall(r"`(\w+)`", first) or (["each load"] if "each load" in first else names)
        for name in names:
            found.setdefault(name, set()).update(re.findall(r"`(\w+)`", fields))
    return found


def settings() -> str:
    """The first column of the table of loads."""
    _, _, table = README.read_text("utf-8").partition("| load | ")
    return "".join(line.split("|")[1] for line in table.partition("\n\n")[0].splitlines()[2:])


def fields_of(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)} - ASKED - {"details"}


def test_what_every_proof_has():
    assert documented()["each load"] == fields_of(LoadProof) | fields_of(GroupedProof)


def test_every_load_has_a_proof_and_a_row_of_settings():
    assert set(PROOFS) == set(LOADS)
    assert [kind for kind in LOADS if f"`{kind}`" not in settings()] == []


@pytest.mark.parametrize(("kind", "proof"), PROOFS.items())
def test_what_each_has_besides(kind, proof):
    assert documented()[kind] == fields_of(proof) - fields_of(LoadProof) - fields_of(GroupedProof)
