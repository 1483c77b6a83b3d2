"""Loads that disturb nothing, with proofs as a test wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from pytest_ldos.measure.load import protocol as choose
from pytest_ldos.measure.load.protocol import Load, LoadProof, LoadSite
from pytest_ldos.scenario.loads import DdsFloodSpec

REACHED_HZ = 3960.0


@dataclass(frozen=True, kw_only=True)
class FakeFloodProof(LoadProof):
    """See `LoadProof`: of a flood of 4000 messages a second."""

    rate_hz: float

    @property
    def applied(self) -> float:
        return self.rate_hz

    def describe(self) -> str:
        return f"DDS flood: {self.rate_hz:.0f} of 4000 msg/s sent"


@dataclass(frozen=True)
class FakeFlood:
    """See `RunningLoad`."""

    spec: DdsFloodSpec
    proof: FakeFloodProof


def install_flood(monkeypatch: pytest.MonkeyPatch, rate_at: Callable[[LoadSite], float]) -> None:
    """Floods that reach the given rate for each site."""

    @contextmanager
    def flood(spec: DdsFloodSpec, site: LoadSite) -> Iterator[FakeFlood]:
        rate_hz = rate_at(site)
        shortfall = "" if rate_hz >= REACHED_HZ else "the flood reached too little"
        yield FakeFlood(spec, FakeFloodProof(kind=spec.KIND, seconds=5.0, shortfall=shortfall, rate_hz=rate_hz))

    monkeypatch.setitem(choose.IMPLEMENTATIONS, DdsFloodSpec.KIND, Load(flood))
