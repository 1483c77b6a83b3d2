"""A load is defined by a line in `words.LOADS` a spec in `scenario.loads`, and an entry of `LOADS` in `measure.load`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import pytest

from docs.generate.loads import loads_page
from pytest_ldos import api
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.cells import assign, known_addresses
from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load.protocol import (
    IMPLEMENTATIONS,
    Load,
    LoadProof,
    LoadSite,
    in_order,
    load_available,
    run_load,
)
from pytest_ldos.plugin import hooks
from pytest_ldos.scenario import words
from pytest_ldos.scenario.loads import LOAD_SPECS, CpuLimitSpec, LoadSpec
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.settings import parse_table
from tests.fakes.rig import FakeRecorder


@dataclass(frozen=True, kw_only=True)
class FanLoadSpec(LoadSpec):
    """Heats the machine.

    Attributes:
        speed_hz: speed of the fan.
    """

    KIND: ClassVar[str] = "fan_load"

    speed_hz: float = 20.0


@dataclass
class RunningFan:
    """See `RunningLoad`."""

    spec: FanLoadSpec

    @property
    def proof(self) -> LoadProof:
        return LoadProof(kind=self.spec.KIND, seconds=self.spec.speed_hz, shortfall="")


@contextmanager
def run_fan(spec: FanLoadSpec, site: LoadSite) -> Iterator[RunningFan]:
    yield RunningFan(spec)


def module(name: str, **content: object) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture
def fan_load(monkeypatch) -> Iterator[str]:
    """A tenth load."""
    kind = FanLoadSpec.KIND
    load = f"pytest_ldos.measure.load.{kind}"
    monkeypatch.setitem(LOAD_SPECS, kind, FanLoadSpec)
    available = Load(run=run_fan, available=lambda spec, stack: Availability(False, "no fan", "buy one"))
    monkeypatch.setitem(sys.modules, load, module(load, LOADS={kind: available}))
    monkeypatch.setitem(words.LOADS, kind, "A fan: ``with fan_load():``.")
    known_addresses.cache_clear()
    yield kind
    known_addresses.cache_clear()
    IMPLEMENTATIONS.pop(kind, None)


def test_toml_accepts_the_load(fan_load):
    scenarios = parse_table({"scenarios": {"hot": {"loads": {fan_load: {"speed_hz": 30}}}}}).scenarios
    assert scenarios["hot"].loads == {fan_load: FanLoadSpec(speed_hz=30)}
    with pytest.raises(ConfigurationError, match="did you mean 'fan_load'") as error:
        parse_table({"scenarios": {"hot": {"loads": {"fan_loads": True}}}})
    assert "fan_loads" in error.value.message


def test_sweeps_accept_the_load(fan_load):
    assert known_addresses()["fan_load.speed_hz"] == 20.0
    assert assign(ScenarioSpec(name="any"), "fan_load.speed", "1kHz").loads == (FanLoadSpec(speed_hz=1000),)


def test_load_is_applied_last(fan_load):
    assert in_order([FanLoadSpec(), CpuLimitSpec()]) == [CpuLimitSpec(), FanLoadSpec()]


def test_load_is_applied(fan_load, tmp_path):
    assert load_available(FanLoadSpec(), StackSpec()).reason == "no fan"
    with run_load(
        FanLoadSpec(), LoadSite(domain=1, recorder=FakeRecorder(tmp_path), log_directory=tmp_path)
    ) as running:
        assert running.proof.seconds == 20.0


def test_reference_lists_the_load(fan_load):
    text = "\n".join(loads_page())
    assert "## `loads.fan_load`\n\nHeats the machine.\n" in text
    assert "| `speed_hz` | a number, Hz | `20` | speed of the fan. |" in text


@pytest.mark.parametrize("kind", LOAD_SPECS)
def test_each_load_is_complete(kind):
    assert kind == LOAD_SPECS[kind].KIND
    assert isinstance(IMPLEMENTATIONS[kind], Load)
    assert LOAD_SPECS[kind].__name__ in api.__all__
    assert type(getattr(hooks, kind)).__name__ == "FixtureFunctionDefinition"
